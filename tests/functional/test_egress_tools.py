"""Tools that people use, inside a sandbox: they work with hosts that its policy allows, and tell why not with others. The servers are
those of the lab (lib/netlab.py), with files that are made here."""

import base64
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import zipfile

import pytest
from lib.api import Api
from lib.netlab import DNS, lab  # noqa: F401

PIP = "/usr/share/python-wheels"


@pytest.fixture(scope="module")
def site(lab):  # noqa: F811
    www = lab.directory / "www"
    www.mkdir()
    lab.directory.chmod(0o755)
    make_wheel(www / "pip" / "osb-hello")
    make_npm(www / "npm")
    make_apt(www / "apt")
    make_git(www / "repo.git", lab.directory / "work")
    return www


@pytest.fixture(scope="module")
def api(site, bin_dir, request):
    from lib.plugin import service_class

    service = service_class(request)(bin_dir, sections={"egress": {"name_servers": [DNS]}})
    request.addfinalizer(service.destroy)
    service.start()
    return Api(service)


@pytest.fixture
def box(api):
    """Reaches allowed.test and its address, nothing else."""
    policy = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "allowed.test"}]}
    sandbox = api.create(networkPolicy=policy)["id"]
    yield sandbox
    api.delete(sandbox)


def make_wheel(directory):
    directory.mkdir(parents=True)
    name = "osb_hello-1.0-py3-none-any.whl"
    files = {
        "osb_hello.py": "print('hello from a wheel')\n",
        "osb_hello-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: osb-hello\nVersion: 1.0\n",
        "osb_hello-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files["osb_hello-1.0.dist-info/RECORD"] = "".join(f"{path},,\n" for path in [*files, "osb_hello-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(directory / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    (directory / "index.html").write_text(f'<!DOCTYPE html><html><body><a href="{name}">{name}</a></body></html>')


def make_npm(directory):
    directory.mkdir()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in {"package/package.json": '{"name":"osb-hello","version":"1.0.0","main":"x.js"}', "package/x.js": "console.log('hello from npm')\n"}.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    (directory / "osb-hello-1.0.0.tgz").write_bytes(packed.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    version = {"name": "osb-hello", "version": "1.0.0", "dist": {"tarball": "http://allowed.test/files/npm/osb-hello-1.0.0.tgz", "integrity": integrity}}
    (directory / "osb-hello").write_text(json.dumps({"name": "osb-hello", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def make_apt(directory):
    directory.mkdir()
    packages = b"Package: osb-hello\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody\nFilename: ./none.deb\nSize: 1\nDescription: of the lab\n\n"
    for name, data in (("Packages", packages), ("Packages.gz", gzip.compress(packages))):
        (directory / name).write_bytes(data)
    sums = "".join(f" {hashlib.sha256((directory / name).read_bytes()).hexdigest()} {(directory / name).stat().st_size} {name}\n" for name in ("Packages", "Packages.gz"))
    (directory / "Release").write_text(f"Origin: lab\nSuite: lab\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n{sums}")


def make_git(bare, work):
    if not shutil.which("git"):
        return
    run = lambda *words: subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example", *words], check=True, capture_output=True)  # noqa: E731
    run("init", "-q", str(work))
    (work / "README").write_text("hello from git\n")
    run("-C", str(work), "add", "README")
    run("-C", str(work), "commit", "-qm", "one")
    run("clone", "-q", "--bare", str(work), str(bare))
    run("-C", str(bare), "update-server-info")  # so that plain files are enough


def shell(api, box, command):
    """Exit code and everything it said; with a home of its own and without a proxy."""
    done = api.run(box, ["bash", "-c", f"export HOME=/tmp/home no_proxy='*'; mkdir -p $HOME; cd $HOME; unset http_proxy https_proxy; {command}"], timeout=60_000)
    return done.exit_code, done.stdout + done.stderr


def needs(api, box, program):
    if shell(api, box, f"command -v {program} || ls {program}")[0] != 0:
        pytest.skip(f"sandboxes of this host have no {program}")


class TestPip:
    COMMAND = "wheel=$(echo " + PIP + "/pip-*.whl); /usr/bin/python3 $wheel/pip install --no-cache-dir --disable-pip-version-check --retries 0 --target lib --trusted-host {host} -i http://{host}/files/pip/ osb-hello 2>&1"

    def test_installs(self, api, box):
        needs(api, box, PIP + "/pip-*.whl")
        code, out = shell(api, box, self.COMMAND.format(host="allowed.test") + " && PYTHONPATH=lib /usr/bin/python3 -m osb_hello")
        assert code == 0 and "hello from a wheel" in out, out

    def test_says_why_not(self, api, box):
        needs(api, box, PIP + "/pip-*.whl")
        # Without a second try pip keeps its reasons to itself.
        command = self.COMMAND.replace("--retries 0", "--retries 1 -vvv")
        code, out = shell(api, box, command.format(host="other.test"))
        assert code != 0 and "Name or service not known" in out, out
        code, out = shell(api, box, command.format(host="1.2.3.11"))
        assert code != 0 and "403" in out, out


class TestGit:
    def test_clones(self, api, box):
        needs(api, box, "git")
        code, out = shell(api, box, "git clone -q http://allowed.test/files/repo.git r && cat r/README")
        assert code == 0 and "hello from git" in out, out

    def test_says_why_not(self, api, box):
        needs(api, box, "git")
        code, out = shell(api, box, "git clone -q http://other.test/files/repo.git r")
        assert code != 0 and "Could not resolve host: other.test" in out, out
        code, out = shell(api, box, "git clone -q http://1.2.3.11/files/repo.git r")
        assert code != 0 and "403" in out, out


class TestNpm:
    COMMAND = "npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --registry http://{host}/files/npm/ osb-hello 2>&1"

    def test_installs(self, api, box):
        needs(api, box, "npm")
        code, out = shell(api, box, self.COMMAND.format(host="allowed.test") + " && node -e 'require(\"osb-hello\")'")
        assert code == 0 and "hello from npm" in out, out

    def test_says_why_not(self, api, box):
        needs(api, box, "npm")
        code, out = shell(api, box, self.COMMAND.format(host="other.test"))
        assert code != 0 and "ENOTFOUND" in out, out


class TestApt:
    COMMAND = (
        "mkdir -p apt/lists/partial apt/cache/archives/partial apt/etc && echo 'deb [trusted=yes] http://{host}/files/apt ./' > apt/etc/sources.list && "
        "apt-get -o Dir::Etc::sourcelist=$HOME/apt/etc/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$HOME/apt/lists -o Dir::Cache=$HOME/apt/cache "
        "-o Acquire::Retries=0 -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false update 2>&1; code=$?; ls apt/lists; exit $code"
    )

    def test_updates(self, api, box):
        needs(api, box, "apt-get")
        code, out = shell(api, box, self.COMMAND.format(host="allowed.test"))
        assert code == 0 and "allowed.test_files_apt_._Packages" in out, out

    def test_says_why_not(self, api, box):
        needs(api, box, "apt-get")
        _, out = shell(api, box, self.COMMAND.format(host="other.test"))
        assert "Could not resolve 'other.test'" in out or "Temporary failure resolving 'other.test'" in out, out
        _, out = shell(api, box, self.COMMAND.format(host="1.2.3.11"))
        assert "403" in out, out
