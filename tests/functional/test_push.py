"""Images to registries: what arrives is what was here, what is there is not sent again, what goes wrong leaves nothing; kill -9."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from lib import images as make
from lib import snapshots as of
from lib.api import Api, assert_envelope
from lib.image_processes import children_named, keeper_of, osb, parent_of, swallow
from lib.images import Images
from lib.plugin import shared_service
from lib.registries import MANIFEST, DebianRegistry, Made, authority_for, fake_registry_for_pushes, has_debian_registry, relay_before
from lib.service import Service
from lib.waiting import wait_for

CONFIG = {"Env": ["GREETING=hello"], "User": "app", "WorkingDir": "/home/app", "Entrypoint": ["/bin/sh"], "Cmd": ["-c", "true"], "Labels": {"a": "b"}}
TOOLS = ("rm", "mkdir", "ln", "chmod", "chown")
pytestmark = pytest.mark.skipif(not has_debian_registry(), reason="docker-registry is not installed")


def fill_more(tar):
    """What a layer can have: owners, modes, links, attributes, names, things that go."""
    make.add(tar, "opt", kind=tarfile.DIRTYPE, mode=0o755)
    for name in ("gone", "replaced", "kept", "emptied"):
        make.add(tar, f"opt/{name}", kind=tarfile.DIRTYPE, mode=0o755, uid=7, gid=8)
        make.add(tar, f"opt/{name}/file", name * 100, mode=0o640, uid=1000, gid=1001)
    make.add(tar, "opt/set-id", b"x", mode=0o4755, uid=3, gid=4)
    make.add(tar, "opt/link", kind=tarfile.SYMTYPE, link="../opt/kept/file", uid=5, gid=6)
    make.add(tar, "opt/hard", kind=tarfile.LNKTYPE, link="opt/kept/file")
    make.add(tar, "opt/pipe", kind=tarfile.FIFOTYPE, mode=0o600, uid=9)
    make.add(tar, "opt/ümlaut " + "x" * 180, b"long", pax={"SCHILY.xattr.user.note": "hello"})
    make.add(tar, "opt/last-id", b"", uid=65535, gid=65535)


@pytest.fixture(scope="module")
def root():
    return make.root_tar(fill_more, more=TOOLS)


@pytest.fixture(scope="module")
def host(bin_dir, request, root, tmp_path_factory):
    service = shared_service(request, bin_dir, registry={})
    service.images = Images(bin_dir, service.config_path, service.state_dir)
    archive = tmp_path_factory.mktemp("images") / "app.tar"
    archive.write_bytes(make.docker_archive([root, make.tar_bytes(lambda tar: make.add(tar, "opt/.wh.gone"))], CONFIG, tags=("app:1",), compression="gzip"))
    service.images.import_(archive)
    return service


@pytest.fixture(scope="module")
def elsewhere(bin_dir, request):
    """Another host, as far as images are concerned."""
    service = Service(bin_dir, registry={}).start()
    request.addfinalizer(service.destroy)
    return service


@pytest.fixture(scope="module")
def api(host):
    return Api(host)


@pytest.fixture
def registry():
    with fake_registry_for_pushes() as one:
        yield one


def push(service, *words, **more):
    return osb(service, "images", "push", *words, **more)


def pushed(service, *words, **more):
    done = push(service, *words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def layers_of(service, name):
    """Directories of the layers of an image, lowest first."""
    index = json.loads((service.state_dir / "catalog/index.json").read_text())
    image = index["names"].get(name, name)
    record = next(one for one in index["images"] if one["id"] == image)
    return [service.state_dir / "images/store/layers" / layer for layer in record["layers"]], record


def layers_of_snapshot(service, snapshot):
    lines = [line.split() for line in (service.state_dir / "images/snapshots/kept" / snapshot / "manifest").read_text().splitlines()]
    below, _ = layers_of(service, next(line[1] for line in lines if line[0] == "image"))
    return below + [service.state_dir / "images/snapshots/layers" / line[2] for line in reversed(lines) if line[0] == "layer"]


@contextmanager
def merged(layers, place):
    """The files as a sandbox sees them."""
    (place / "empty").mkdir(exist_ok=True)
    (place / "root").mkdir(exist_ok=True)
    lowers = ":".join(str(one) for one in [*reversed(layers), place / "empty"])
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"ro,lowerdir={lowers}", place / "root"], check=True)
    try:
        yield place / "root"
    finally:
        subprocess.run(["umount", place / "root"], check=True)


def tree(layers, place):
    """Everything that a layer keeps of a file: path -> kind, mode, owner, content, time, attributes, and whom it is linked with."""
    found, linked = {}, {}
    with merged(layers, place) as top:
        for directory, names, files in os.walk(top):
            for name in names + files + (["."] if directory == str(top) else []):
                path = os.path.join(directory, name)
                info = os.lstat(path)
                kind = oct(info.st_mode)
                content = os.readlink(path) if os.path.islink(path) else ""
                if kind.startswith("0o100"):
                    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                    if info.st_nlink > 1:
                        linked.setdefault(info.st_ino, []).append(os.path.relpath(path, top))
                attributes = {a: os.getxattr(path, a, follow_symlinks=False) for a in os.listxattr(path, follow_symlinks=False) if a.startswith(("user.", "security.capability"))}
                found[os.path.relpath(path, top)] = (kind, info.st_uid, info.st_gid, content, int(info.st_mtime), attributes)
    return found, sorted(sorted(names) for names in linked.values())


def assert_same(one, other):
    (files, links), (others, other_links) = one, other
    assert {path: (files.get(path), others.get(path)) for path in files.keys() | others.keys() if files.get(path) != others.get(path)} == {}
    assert links == other_links


def pull(service, name, *words, **more):
    done = osb(service, "images", "pull", name, *words, **more)
    assert done.returncode == 0, done.stderr
    return layers_of(service, name)


# What arrives


def test_an_image_arrives_as_it_is(host, elsewhere, debian, tmp_path):
    name = f"{debian.host}/team/app:1"
    digest = pushed(host, "app:1", name)
    layers, record = pull(elsewhere, name)
    assert "sha256:" + record["manifest"] == digest
    here, known = layers_of(host, "app:1")
    assert len(layers) == len(here)
    assert_same(tree(layers, tmp_path), tree(here, tmp_path))
    assert not (layers[-1] / "opt/kept").exists(), "what a layer removes does not bring back what is below"
    assert record["config"] == known["config"]


@pytest.fixture(scope="module")
def changed(api):
    """A sandbox that removed, replaced and made things, and its snapshot."""
    sandbox = api.create(image={"uri": "app:1"}, entrypoint=["sleep", "600"])["id"]
    done = api.run(sandbox, """set -e; cd /opt
        rm kept/file; rm -r replaced; mkdir replaced; echo new > replaced/other; rm -r emptied; mkdir emptied
        mkdir -p a/b; echo one > a/b/one; ln a/b/one a/two; ln -s b/one a/three; chmod 2750 a/b; touch a/'odd
name'; chown 12:13 a/two; chmod 0 last-id; rm set-id""", uid=0, gid=0)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    snapshot = of.make(api, sandbox)["id"]
    yield sandbox, snapshot
    api.delete(sandbox)
    api.call("DELETE", f"/snapshots/{snapshot}")


def test_a_snapshot_arrives_as_it_is(host, elsewhere, debian, changed, tmp_path):
    _, snapshot = changed
    name = f"{debian.host}/team/changed:1"
    pushed(host, f"opensandbox-snapshots:{snapshot}", name)
    layers, _ = pull(elsewhere, name)
    here = layers_of_snapshot(host, snapshot)
    found, links = tree(layers, tmp_path)
    assert_same((found, links), tree(here, tmp_path))
    assert ["opt/a/b/one", "opt/a/two"] in links
    assert "opt/kept/file" not in found and "opt/replaced/file" not in found and "opt/set-id" not in found
    assert "opt/replaced/other" in found and "opt/hard" in found and "opt/a/odd\nname" in found
    # As a sandbox of it sees it.
    there = Api(elsewhere)
    sandbox = there.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"]
    seen = there.run(sandbox, "cd /opt; cat replaced/other; ls emptied kept gone 2>/dev/null; stat -c '%a %u %g' a/two a/b; echo $GREETING")
    assert seen.stdout.split("\n")[0] == "new" and "file" not in seen.stdout, seen.stdout
    assert "644 12 13" in seen.stdout and "2750 0 0" in seen.stdout and seen.stdout.rstrip().endswith("hello")
    there.delete(sandbox)


def test_other_tools_accept_it(host, debian, changed, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    name = f"{debian.host}/tools/app:2"
    digest = pushed(host, f"opensandbox-snapshots:{changed[1]}", name)
    run = lambda *words: subprocess.run(["skopeo", *words], check=True, capture_output=True, text=True).stdout  # noqa: E731
    seen = json.loads(run("inspect", "--tls-verify=false", f"docker://{name}"))
    assert seen["Digest"] == digest and seen["Labels"] == {"a": "b"} and "GREETING=hello" in seen["Env"] and seen["Os"] == "linux"
    config = json.loads(run("inspect", "--config", "--tls-verify=false", f"docker://{name}"))
    assert config["config"]["User"] == "app" and config["config"]["Entrypoint"] == ["/bin/sh"] and config["created"].startswith("20")
    run("copy", "--src-tls-verify=false", f"docker://{name}", f"oci:{tmp_path}/layout:x")
    # Whoever reads tar with other hands: the marks are the standard's.
    run("copy", "--src-tls-verify=false", f"docker://{name}", f"dir:{tmp_path}/dir")
    top = json.loads((tmp_path / "dir/manifest.json").read_text())["layers"][-1]["digest"].split(":")[1]
    with tarfile.open(tmp_path / "dir" / top) as layer:
        names = layer.getnames()
        assert all(member.uname == "" and member.gname == "" for member in layer.getmembers())
    assert "opt/kept/.wh.file" in names and "opt/.wh.set-id" in names and "opt/replaced/.wh..wh..opq" in names
    assert not [one for one in names if "/.wh." not in one and one.endswith("kept/file")]


# What is not sent


def test_a_second_push_sends_nothing(host, debian):
    name = f"{debian.host}/again/app:1"
    first = pushed(host, "app:1", name)
    before = len(debian.asked("PATCH")), len(debian.asked("PUT"))
    assert pushed(host, "app:1", name) == first
    # The manifest itself, and no byte of anything else.
    assert (len(debian.asked("PATCH")), len(debian.asked("PUT"))) == (before[0], before[1] + 1)
    # Also when nobody remembers what was packed: the same tree gives the same bytes.
    for layer in layers_of(host, "app:1")[0]:
        for note in ("came", "packed"):
            if f"trusted.opensandbox.{note}" in os.listxattr(layer):
                os.removexattr(layer, f"trusted.opensandbox.{note}")
    second = pushed(host, "app:1", f"{debian.host}/again/app:2")
    for layer in layers_of(host, "app:1")[0]:
        os.removexattr(layer, "trusted.opensandbox.packed")
    patches = len(debian.asked("PATCH"))
    assert pushed(host, "app:1", f"{debian.host}/again/app:3") == second
    assert len(debian.asked("PATCH")) == patches


def test_what_came_from_a_registry_is_not_packed_again(elsewhere, debian, root):
    """A pulled image under another name of its registry: its layers are lent by the repository that has them, and keep their digests."""
    image = Made([root], CONFIG)
    name = debian.push("origin/app", image)
    pull(elsewhere, name)
    patches = len(debian.asked("PATCH"))
    pushed(elsewhere, name, f"{debian.host}/copies/app:1")
    assert len(debian.asked("PATCH")) == patches
    manifest = subprocess.run(["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{debian.host}/copies/app:1"], check=True, capture_output=True, text=True).stdout
    assert [layer["digest"] for layer in json.loads(manifest)["layers"]] == ["sha256:" + image.layers[0]]


# Passwords


def test_a_password(host):
    registry = DebianRegistry(password="s3cret")
    try:
        name = f"{registry.host}/private/app:1"
        refused = push(host, "app:1", name)
        assert refused.returncode == 1 and "IMAGE::UNAUTHORIZED" in refused.stderr
        wrong = push(host, "app:1", name, "--username", "me", input="wrong\n")
        assert wrong.returncode == 1 and "IMAGE::UNAUTHORIZED" in wrong.stderr
        assert registry.asked("PUT") == []
        pushed(host, "app:1", name, "--username", "me", input="s3cret\n")
        assert registry.call("GET", "/v2/private/app/manifests/1", Accept=MANIFEST).status == 200
        assert "s3cret" not in host.log_path.read_text()
    finally:
        registry.close()


def loopback_name():
    """A name of this host's own that is not localhost, which needs no TLS."""
    for line in Path("/etc/hosts").read_text().splitlines():
        words = line.split("#")[0].split()
        if words and words[0].startswith("127."):
            for name in words[1:]:
                if name != "localhost" and name.replace("-", "").replace(".", "").isalnum():
                    return name
    return None


def test_tls_with_an_authority_of_ones_own_and_a_login_file(bin_dir, tmp_path_factory, root):
    name = loopback_name()
    if not name:
        pytest.skip("/etc/hosts has no name for loopback but localhost")
    place = tmp_path_factory.mktemp("tls")
    place.chmod(0o755)
    authority_for(f"DNS:{name}", place)
    registry = DebianRegistry(password="s3cret", tls=(place / "cert.pem", place / "key.pem"), name=name)
    login = place / "login.json"
    login.write_text(json.dumps({"auths": {registry.host: {"auth": "bWU6czNjcmV0"}}}))
    login.chmod(0o600)
    archive = place / "app.tar"
    archive.write_bytes(make.docker_archive([root], CONFIG, tags=("app:1",)))
    services = []
    try:
        for settings in ({}, {"ca_files": [str(place / "ca.pem")]}):
            services.append(Service(bin_dir, registry={"auth_file": str(login), **settings}).start())
            Images(bin_dir, services[-1].config_path, services[-1].state_dir).import_(archive)
        stranger, believer = services
        refused = push(stranger, "app:1", f"{registry.host}/secure:1")
        assert refused.returncode == 1 and "IMAGE::UNREACHABLE" in refused.stderr and "certificate" in refused.stderr
        pushed(believer, "app:1", f"{registry.host}/secure:1")
        assert registry.call("GET", "/v2/secure/manifests/1", Accept=MANIFEST).status == 200
    finally:
        for service in services:
            service.destroy()
        registry.close()


def test_tls_on_loopback(bin_dir, tmp_path_factory, root):
    """By a name that needs no TLS: it comes first all the same, and a certificate that is not believed is the end."""
    place = tmp_path_factory.mktemp("tls")
    place.chmod(0o755)
    authority_for("DNS:localhost", place)
    registry = DebianRegistry(tls=(place / "cert.pem", place / "key.pem"), name="localhost")
    archive = place / "app.tar"
    archive.write_bytes(make.docker_archive([root], CONFIG, tags=("app:1",)))
    services = []
    try:
        for settings in ({}, {"ca_files": [str(place / "ca.pem")]}):
            services.append(Service(bin_dir, registry=settings).start())
            Images(bin_dir, services[-1].config_path, services[-1].state_dir).import_(archive)
        stranger, believer = services
        with relay_before(registry, "localhost") as relay:
            refused = push(stranger, "app:1", f"{relay.host}/secure:1")
            assert refused.returncode == 1 and "IMAGE::UNREACHABLE" in refused.stderr and "certificate" in refused.stderr
            assert relay.openings and set(relay.openings) == {b"\x16"}, "nothing was said in the clear"
        pushed(believer, "app:1", f"{registry.host}/secure:1")
        assert registry.call("GET", "/v2/secure/manifests/1", Accept=MANIFEST).status == 200
    finally:
        for service in services:
            service.destroy()
        registry.close()


def test_a_token_is_asked_for_with_the_right_to_write(registry, host):
    registry.login, registry.token = ("me", "s3cret"), "abc.def"
    name = f"{registry.host}/x/app:1"
    assert "IMAGE::UNAUTHORIZED" in push(host, "app:1", name).stderr
    pushed(host, "app:1", name, "--username", "me", input="s3cret\n")
    assert "scope=repository%3Ax%2Fapp%3Apull%2Cpush" in registry.asked("/token")[-1]
    assert f"/v2/x/app/manifests/1" in registry.documents


def test_passwords_do_not_follow_uploads_elsewhere(registry, host):
    """A registry may say that the bytes go to another host: they do, its token does not."""
    registry.token = "abc.def"
    with fake_registry_for_pushes() as store:

        def lead_away(handler, method, path):
            if method != "POST":
                return False
            place = f"/upload/{len(store.uploads)}/blobs/"
            store.uploads[place] = bytearray()
            registry.send(handler, 202, b"", Location=f"http://{store.host}{place}")
            return True

        registry.before_write = lead_away
        push(host, "app:1", f"{registry.host}/x/app:1")
        assert [given for _, given in store.authorizations if given] == []
        assert [method for method, _ in store.writes if method == "PATCH"], "the bytes went there"


# What goes wrong


def test_what_is_not_there(host, api, debian):
    assert_envelope(api.call("POST", "/images/push", json={"image": "nobody:1"}), 404, "IMAGE::NOT_FOUND")
    assert_envelope(api.call("POST", "/images/push", json={"image": "host", "as": f"{debian.host}/x:1"}), 400, "SANDBOX::UNSUPPORTED")
    assert_envelope(api.call("POST", "/images/push", json={"image": "app:1", "as": "../x"}), 400, "IMAGE::NOT_FOUND")
    assert_envelope(api.call("POST", "/images/push", json={"image": "app:1", "as": f"{debian.host}/x@sha256:{'0' * 64}"}), 400, "IMAGE::NOT_FOUND")
    assert_envelope(api.call("POST", "/images/push", json={"image": "opensandbox-snapshots:none", "as": f"{debian.host}/x:1"}), 404, "SNAPSHOT::NOT_FOUND")
    assert_envelope(api.call("POST", "/images/push", json={}), 422)


def test_a_snapshot_of_the_hosts_own_files(host, api, debian):
    sandbox = api.create()["id"]
    api.run(sandbox, "echo x > /root/x")
    snapshot = of.make(api, sandbox)["id"]
    found = assert_envelope(api.call("POST", "/images/push", json={"image": f"opensandbox-snapshots:{snapshot}", "as": f"{debian.host}/x:1"}), 400, "SANDBOX::UNSUPPORTED")
    assert "host" in found["message"]
    assert_envelope(api.call("POST", "/images/push", json={"image": f"opensandbox-snapshots:{snapshot}"}), 400, "SANDBOX::INVALID_PARAMETER")
    api.delete(sandbox)
    api.call("DELETE", f"/snapshots/{snapshot}")


def test_a_name_that_would_remove_something(host, api, debian, root):
    """A file of a sandbox that a layer would take for a mark."""
    sandbox = api.create(image={"uri": "app:1"}, entrypoint=["sleep", "600"])["id"]
    api.run(sandbox, "echo x > /opt/.wh.kept", uid=0, gid=0)
    snapshot = of.make(api, sandbox)["id"]
    done = push(host, f"opensandbox-snapshots:{snapshot}", f"{debian.host}/marked/app:1")
    assert done.returncode == 1 and "SANDBOX::UNSUPPORTED" in done.stderr and ".wh.kept" in done.stderr
    assert debian.tags("marked/app") == []
    api.delete(sandbox)
    api.call("DELETE", f"/snapshots/{snapshot}")


def test_a_registry_that_is_away(host):
    done = push(host, "app:1", "127.0.0.1:9/x:1")
    assert done.returncode == 1 and "IMAGE::UNREACHABLE" in done.stderr


def test_a_registry_without_tls(host):
    done = push(host, "app:1", "registry.invalid:5000/x:1")
    assert done.returncode == 1 and "IMAGE::UNREACHABLE" in done.stderr


def test_a_registry_that_refuses(registry, host):
    """At whatever point: there is no manifest afterwards."""
    name = f"{registry.host}/x/app:1"
    for number, (method, part, code) in enumerate([("POST", "uploads", "IMAGE::UNAUTHORIZED"), ("PATCH", "uploads", "IMAGE::UNAUTHORIZED"), ("PUT", "digest=", "IMAGE::UNAUTHORIZED"), ("PUT", "manifests", "IMAGE::UNAUTHORIZED")]):
        registry.blobs.clear()

        def refuse(handler, asked, path, method=method, part=part):
            if asked != method or part not in path:
                return False
            handler.close_connection = True
            registry.send(handler, 403, b'{"errors":[{"code":"DENIED","message":"not today"}]}')
            return True

        registry.before_write = refuse
        done = push(host, "app:1", name)
        assert done.returncode == 1 and code in done.stderr, (number, done.stderr)
        assert "/v2/x/app/manifests/1" not in registry.documents


def big_image(service, name, size, tmp_path):
    """An image with a layer of bytes that do not compress."""
    archive = tmp_path / "big.tar"
    archive.write_bytes(make.docker_archive([make.tar_bytes(lambda tar: make.add(tar, "big", os.urandom(size)))], tags=(name,)))
    Images(service.bin_dir, service.config_path, service.state_dir).import_(archive)


def test_a_connection_that_breaks_is_gone_on_with(registry, host, tmp_path):
    size = 66 << 20
    big_image(host, "big:1", size, tmp_path)
    received, broken = [], []

    def break_once(handler, method, path):
        if method != "PATCH":
            return False
        start = int(handler.headers["Content-Range"].split("-")[0])
        received.append(start)
        if len(received) != 2 or broken:
            return False
        broken.append(start)
        registry.uploads[path] += handler.rfile.read(5 << 20)
        handler.close_connection = True
        handler.connection.close()
        return True

    registry.before_write = break_once
    pushed(host, "big:1", f"{registry.host}/x/big:1")
    assert received[0] == 0 and received[1] == 32 << 20
    assert received[2] == (32 << 20) + (5 << 20), "it goes on with what arrived"
    (blob,) = [data for path, data in registry.blobs.items() if len(data) > size // 2]
    assert len(blob) >= size


def test_a_busy_registry_is_asked_again(registry, host):
    busy = {"POST": 1, "PUT": 1}

    def be_busy(handler, method, path):
        if busy.get(method, 0) == 0:
            return False
        busy[method] -= 1
        handler.close_connection = True
        registry.send(handler, 503, b"{}")
        return True

    registry.before_write = be_busy
    pushed(host, "app:1", f"{registry.host}/x/app:1")
    assert "/v2/x/app/manifests/1" in registry.documents


@pytest.mark.parametrize("victim", ["keeper", "server", "launcher"])
def test_kill_9_in_the_middle_then_again(bin_dir, registry, victim, tmp_path):
    stuck = threading.Event()
    arrived = threading.Event()

    def stop_half_way(handler, method, path):
        if method != "PATCH" or stuck.is_set():
            return False
        registry.uploads[path] += handler.rfile.read(1 << 20)
        arrived.set()
        stuck.wait(60)
        handler.close_connection = True
        return True

    registry.before_write = stop_half_way
    service = Service(bin_dir, registry={}).start()
    try:
        api = Api(service)
        big_image(service, "big:1", 40 << 20, tmp_path)
        store = service.state_dir / "images/store"
        before = sorted(str(path) for path in store.glob("*/*"))
        body = {"image": "big:1", "as": f"{registry.host}/x/big:1"}
        caller = threading.Thread(target=lambda: swallow(lambda: api.call("POST", "/images/push", json=body)))
        caller.start()
        assert arrived.wait(30)
        if victim == "server":
            service.kill_server()
        elif victim == "launcher":
            service.kill_both()
            service.start()
        else:
            os.kill(keeper_of(service), signal.SIGKILL)
        caller.join(60)
        wait_for(lambda: not [pid for pid in children_named(b"image-fetcher") if parent_of(pid) == 1], 10, "no fetcher outlives its keeper")
        stuck.set()
        assert registry.documents == {}, "nothing has a name there"
        assert sorted(str(path) for path in store.glob("*/*")) == before, "nothing is left here"
        assert pushed(service, "big:1", body["as"]).startswith("sha256:")
        assert "/v2/x/big/manifests/1" in registry.documents
    finally:
        stuck.set()
        service.destroy()


def test_who_packs_and_who_sends_has_no_right(host, registry, tmp_path):
    """Seen while they work: the sender has an id of nobody, no capability and no file but what it sends; the packer owns nothing here."""
    big_image(host, "slow:1", 60 << 20, tmp_path)
    gate, at_patch = threading.Event(), threading.Event()

    def hold(handler, method, path):
        if method == "PATCH":
            at_patch.set()
            gate.wait(30)
        return False

    registry.before_write = hold
    caller = threading.Thread(target=lambda: push(host, "slow:1", f"{registry.host}/x/slow:1"))
    caller.start()

    def worker():
        keeper = keeper_of(host)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if parent_of(pid) == keeper and os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"):
                    return status_of(pid)
            except OSError:
                continue
        return None

    try:
        seen = wait_for(lambda: swallow_none(worker), 20, "a worker packs", interval=0.005)
        assert set(seen["Uid"].split()) == {str(0x6FFF0000)} and seen["NoNewPrivs"] == "1" and seen["Seccomp"] == "2"
        assert at_patch.wait(60)
        keeper = keeper_of(host)
        fetcher = next(pid for pid in children_named(b"image-fetcher") if parent_of(pid) == keeper)
        seen = status_of(fetcher)
        assert set(seen["Uid"].split()) == set(seen["Gid"].split()) == {str(0x6FFEFFFF)}
        assert {seen[field] for field in ("CapPrm", "CapEff", "CapAmb", "CapInh")} == {"0" * 16} and seen["NoNewPrivs"] == "1"
        opened = {number: os.readlink(f"/proc/{fetcher}/fd/{number}") for number in os.listdir(f"/proc/{fetcher}/fd") if number != "2"}
        assert all(not path.startswith("/var") or "(deleted)" in path for path in opened.values()), opened
        (packed,) = [number for number, path in opened.items() if "(deleted)" in path]
        flags = next(line for line in Path(f"/proc/{fetcher}/fdinfo/{packed}").read_text().splitlines() if line.startswith("flags"))
        assert int(flags.split()[1], 8) & 3 == os.O_RDONLY
    finally:
        gate.set()
        caller.join(120)


def status_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def swallow_none(call):
    try:
        return call()
    except (OSError, AssertionError):
        return None


def test_without_root(new_rootless, debian):
    service = new_rootless()
    found = assert_envelope(Api(service).call("POST", "/images/push", json={"image": "app:1", "as": f"{debian.host}/x:1"}), 400, "SANDBOX::UNSUPPORTED")
    assert "root" in found["message"]


def test_what_was_committed(api, host, elsewhere, debian):
    """Layers of sandboxes over those of an image, what it says of itself, and a snapshot of a sandbox of it."""
    sandbox = api.create(image={"uri": "app:1"}, entrypoint=["sh", "-c", "sleep 600"])["id"]
    config = {"env": {"MADE": "here"}, "cmd": ["-c", "echo committed"], "exposedPorts": ["8080/tcp"]}
    api.run(sandbox, "echo first > /opt/first; rm -r /opt/kept", uid=0)
    assert api.call("POST", "/images/commit", json={"sandboxId": sandbox, "name": "team/made:1", "config": config}).status == 201
    assert api.delete(sandbox).status == 204
    target = f"{debian.host}/team/made:1"
    pushed(host, "team/made:1", target)
    second = api.create(image={"uri": "team/made:1"}, entrypoint=["sh", "-c", "sleep 600"])["id"]
    api.run(second, "echo second > /opt/second", uid=0)
    snapshot = of.make(api, second)["id"]
    of_snapshot = f"{debian.host}/team/made:2"
    pushed(host, f"opensandbox-snapshots:{snapshot}", of_snapshot)
    there = Api(elsewhere)
    for name, files in ((target, "first link"), (of_snapshot, "first link second")):
        copy = there.create(image={"uri": name}, entrypoint=["sh", "-c", "sleep 600"])["id"]
        found = there.run(copy, "cd /opt; for f in first second kept link; do test -e $f -o -L $f && echo $f; done; echo $MADE").stdout.split()
        assert set(found) == {*files.split(), "here"}, (name, found)
        assert there.delete(copy).status == 204
    assert "8080/tcp" in subprocess.run(["skopeo", "inspect", "--config", "--tls-verify=false", f"docker://{target}"], capture_output=True, text=True, check=True).stdout
    api.delete(second)


def test_what_lies_over_the_host_is_not_pushed(api, host, debian):
    sandbox = api.create()["id"]
    api.run(sandbox, "echo x > /srv/x")
    assert api.call("POST", "/images/commit", json={"sandboxId": sandbox, "name": "over-host"}).status == 201
    done = push(host, "over-host", f"{debian.host}/over-host:1")
    assert done.returncode == 1 and "files of this host" in done.stderr, done.stderr
    api.delete(sandbox)
