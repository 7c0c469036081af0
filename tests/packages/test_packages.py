"""Packages as strangers get them: made by scripts/package, installed where nothing of the build is, and tried there."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from lib.api import Api
from lib.plugin import REPOSITORY
from lib.service import Service, remove_claims
from lib.tls_front import TlsFront
from lib.venvs import ensure_venv

# The dynamic loader, the C library, a shell: none of it is in here.
CLEAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


def succeed(*words, **options):
    done = run(*words, **options)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def dist(bin_dir, tmp_path_factory):
    if not (bin_dir / "osb-static").exists():
        pytest.skip(f"no osb-static in {bin_dir}: cmake --build build/release --target osb-static")
    out = tmp_path_factory.mktemp("dist")
    succeed(REPOSITORY / "scripts/package", "--bin", bin_dir, "--out", out)
    return out


def only(folder, pattern):
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def test_sums_and_changelog(dist):
    lines = (dist / "SHA256SUMS").read_text().splitlines()
    assert sorted(line.split()[1] for line in lines) == sorted(path.name for path in dist.iterdir() if path.name != "SHA256SUMS")
    for line in lines:
        digest, name = line.split()
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    assert (dist / "CHANGELOG.md").read_text() == (REPOSITORY / "CHANGELOG.md").read_text()


def test_unknown_kind_is_refused(bin_dir):
    done = run(REPOSITORY / "scripts/package", "--bin", bin_dir, "rpm")
    assert done.returncode == 2 and "wheel, tarball, deb, image" in done.stderr


def test_tarball_runs_in_an_empty_root(dist, tmp_path):
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    root = only(tmp_path, "opensandbox-*") / "bin"
    assert succeed("chroot", root, "/osb", "--version").startswith("osb, version ")
    assert succeed("chroot", root, "/opensandbox-server", "--version").startswith("opensandbox-server, version ")
    # It resolves names with what is built in: there is no file and no server to ask, and it says so instead of crashing.
    done = run("chroot", root, "/osb", "ls", "--server", "nobody.invalid:1")
    assert done.returncode not in (0, -6, -11) and "nobody.invalid" in done.stderr


def test_static_client_asks_files_and_dns(dist, tmp_path, keyed_service):
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    root = only(tmp_path, "opensandbox-*") / "bin"
    (root / "etc").mkdir()
    (root / "etc/hosts").write_text("127.0.0.1 sandboxes.example\n")
    # A module that is not built in is not looked for.
    (root / "etc/nsswitch.conf").write_text("hosts: mymachines resolve files\npasswd: systemd\n")
    where = ["--server", f"sandboxes.example:{keyed_service.address[1]}", "--api-key", keyed_service.api_key]
    assert json.loads(succeed("chroot", root, "/osb", "ls", "--json", *where)) == []


def test_static_client_speaks_tls(dist, tmp_path, keyed_service):
    """Without any library or trust store of the machine."""
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    root = only(tmp_path, "opensandbox-*") / "bin"
    (tmp_path / "front").mkdir()
    front = TlsFront(tmp_path / "front", "%s:%d" % keyed_service.address)
    try:
        (root / "etc").mkdir()
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        shutil.copy(front.ca, root / "ca.pem")
        where = ["--server", f"https://localhost:{front.port}", "--api-key", keyed_service.api_key]
        assert json.loads(succeed("chroot", root, "/osb", "--ca-file", "/ca.pem", "ls", "--json", *where)) == []
        assert "SERVER::UNTRUSTED" in run("chroot", root, "/osb", "ls", *where).stderr
    finally:
        front.close()


def test_static_client_says_what_import_lacks(dist, tmp_path):
    """Names in archives need a locale of the machine, which an empty root has not."""
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    root = only(tmp_path, "opensandbox-*") / "bin"
    (root / "given").mkdir()
    succeed("tar", "c", "-f", root / "given.tar", "-C", root / "given", ".")
    done = run("chroot", root, "/osb", "images", "import", "--state-dir", "/state", "-n", "x", "/given.tar")
    assert done.returncode == 1 and "C.UTF-8" in done.stderr and "remedy" in done.stderr, done


def install_wheel(dist, home):
    """An empty environment, filled by uv from the file alone."""
    uv = Path(sys.executable).parent / "uv"
    environment = {**CLEAN, "HOME": str(home), "UV_CACHE_DIR": str(home / "cache")}
    succeed(uv, "venv", "--python", "/usr/bin/python3", home / "venv", env=environment)
    succeed(uv, "pip", "install", "--offline", "--python", home / "venv/bin/python", only(dist, "*.whl"), env=environment)
    return home / "venv/bin", environment


def test_wheel_brings_the_server_alone(dist, tmp_path):
    bin_dir, environment = install_wheel(dist, tmp_path)
    assert succeed(bin_dir / "opensandbox-server", "--version", env=environment).startswith("opensandbox-server, version ")
    assert not (bin_dir / "osb").exists()
    assert "opensandbox-server" in succeed(Path(sys.executable).parent / "uv", "pip", "list", "--python", bin_dir / "python", env=environment)


class Quickstart(Service):
    """The documents' way: a file made by init-config in the home directory, and the command without a word."""

    def __init__(self, bin_dir, environment):
        super().__init__(bin_dir, env=environment)

    def command(self):
        return [self.bin_dir / "opensandbox-server"]


def test_wheel_does_what_the_documents_show(dist, request):
    home = Path("/var/tmp") / f"osb-wheel-{os.getpid()}"
    home.mkdir(mode=0o755)
    request.addfinalizer(lambda: shutil.rmtree(home, ignore_errors=True))
    bin_dir, environment = install_wheel(dist, home)
    made = succeed(bin_dir / "opensandbox-server", "init-config", home / ".sandbox.toml", "--example", "docker-zh", env=environment)
    assert str(home / ".sandbox.toml") in made

    service = Quickstart(bin_dir, environment)
    request.addfinalizer(service.destroy)
    # The example's own port and state directory may be in use by this machine.
    config = home / ".sandbox.toml"
    assert "port = 8080" in config.read_text()
    config.write_text(config.read_text().replace("port = 8080", f"port = {service.address[1]}") + f'\n[native]\nstate_dir = "{service.state_dir}"\n')
    service.start()
    api = Api(service)
    sandbox = api.create()
    assert api.run(sandbox["id"], "echo from the wheel").stdout.strip() == "from the wheel"
    api.delete(sandbox["id"])


def test_wheel_quickstart_unmodified(dist, request):
    """As written, with the port and the state directory of the example: on a machine whose port 8080 and /var/lib are free."""
    home = Path("/var/tmp") / f"osb-quick-{os.getpid()}"
    home.mkdir(mode=0o755)
    (home / "lib").mkdir()
    bin_dir, environment = install_wheel(dist, home)
    script = f"mount --make-rprivate / && mount --bind {home}/lib /var/lib && ip link set lo up && echo && exec sleep infinity"
    holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", script], stdout=subprocess.PIPE)
    holder.stdout.readline()
    enter = ["nsenter", "-t", str(holder.pid), "-m", "-n"]
    succeed(*enter, bin_dir / "opensandbox-server", "init-config", home / ".sandbox.toml", "--example", "docker-zh", env=environment)
    with open(home / "log", "wb") as log:
        server = subprocess.Popen([*enter, bin_dir / "opensandbox-server"], env=environment, stdout=log, stderr=log)
    try:
        script = "from opensandbox import SandboxSync\nwith SandboxSync.create('host') as s:\n    print(s.commands.run('echo from the wheel').logs.stdout[0].text)\n    s.kill()\n"
        client = [*enter, ensure_venv("sdk-new"), "-c", f"import time, socket\nfor _ in range(200):\n    try: socket.create_connection(('localhost', 8080)).close(); break\n    except OSError: time.sleep(0.05)\n{script}"]
        assert "from the wheel" in succeed(*client, env={**environment, "OPEN_SANDBOX_DOMAIN": "localhost:8080"}), (home / "log").read_text()
    finally:
        server.terminate()
        server.wait(20)
        remove_claims(home / "lib/opensandbox")
        holder.kill()
        holder.wait()
        shutil.rmtree(home, ignore_errors=True)


def test_image_is_accepted_by_others(dist, tmp_path):
    archive = only(dist, "*-image-*.tar")
    seen = json.loads(succeed("skopeo", "inspect", f"oci-archive:{archive}"))
    assert seen["Os"] == "linux" and seen["Labels"]["org.opencontainers.image.title"] == "opensandbox-server"
    # Copying reads and checks every digest; the second form is the one that `docker load` takes.
    succeed("skopeo", "copy", "--insecure-policy", f"oci-archive:{archive}", f"dir:{tmp_path}/dir")
    succeed("skopeo", "copy", "--insecure-policy", f"oci-archive:{archive}", f"docker-archive:{tmp_path}/docker.tar:opensandbox:test")
    layer = seen["Layers"][0].removeprefix("sha256:")
    with tarfile.open(tmp_path / "dir" / layer) as root:
        root.extractall(tmp_path / "root", filter="tar")
    assert succeed("chroot", tmp_path / "root", "/usr/bin/opensandbox-server", "--version").startswith("opensandbox-server, version ")


def test_debian_package_is_whole(dist, tmp_path):
    package = only(dist, "*.deb")
    fields = succeed("dpkg-deb", "-f", package)
    for needed in ("libc6 (>= ", "libsqlite3-0", "libarchive13", "libssl3", "adduser"):
        assert needed in fields
    succeed("dpkg-deb", "-x", package, tmp_path)
    assert os.readlink(tmp_path / "usr/bin/opensandbox-server") == "osb"
    assert succeed(tmp_path / "usr/bin/opensandbox-server", "--version").startswith("opensandbox-server, version ")
    unit = tmp_path / "usr/lib/systemd/system/opensandbox.service"
    assert "ExecStart=/usr/bin/opensandbox-server --config /etc/opensandbox/config.toml" in unit.read_text()
    assert oct((tmp_path / "etc/opensandbox/config.toml").stat().st_mode)[-3:] == "644"


@pytest.mark.long
def test_debian_package_installs_in_a_clean_root(dist, tmp_path):
    """What it names is all that it gets: dpkg refuses to configure it when a dependency is missing or too old."""
    if not shutil.which("mmdebstrap"):
        pytest.skip("no mmdebstrap here: apt-get install mmdebstrap")
    root, package = tmp_path / "root", only(dist, "*.deb")
    needed = [name.split()[0] for name in succeed("dpkg-deb", "-f", package, "Depends").split(",")]
    hooks = [f"--customize-hook=copy-in {package} /tmp", f'--customize-hook=chroot "$1" dpkg --install /tmp/{package.name}']
    succeed("mmdebstrap", "--variant=minbase", "--mode=root", f"--include={','.join(needed)}", *hooks, "bookworm", root)
    assert succeed("chroot", root, "osb", "--version").startswith("osb, version ")
    assert "opensandbox" in (root / "etc/passwd").read_text()
    assert succeed("chroot", root, "dpkg-query", "-W", "-f", "${db:Status-Status}", "opensandbox") == "installed"
    succeed("chroot", root, "dpkg", "--purge", "opensandbox")
    assert not (root / "usr/bin/osb").exists() and not (root / "etc/opensandbox").exists()


def test_cmake_installs(bin_dir, tmp_path):
    succeed("cmake", "--install", bin_dir.resolve().parent, "--prefix", tmp_path / "prefix")
    assert succeed(tmp_path / "prefix/bin/opensandbox-server", "--version").startswith("opensandbox-server, version ")
    assert (tmp_path / "prefix/lib/systemd/system/opensandbox.service").exists()
