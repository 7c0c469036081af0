"""Images from registries: pulls by a create, digests, passwords, policies, names, what goes wrong and what is left then, kill -9."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from lib import images as make
from lib.api import Api, assert_envelope
from lib.image_processes import children_named, keeper_of, osb, parent_of, swallow
from lib.images import Images
from lib.plugin import shared_service
from lib.registries import INDEX, MANIFEST, DebianRegistry, Made, authority_for, fake_registry, has_debian_registry, index_of, relay_before
from lib.service import Service
from lib.waiting import wait_for

CONFIG = {"Env": ["GREETING=hello"], "User": "app", "WorkingDir": "/home/app"}
needs_debian_registry = pytest.mark.skipif(not has_debian_registry(), reason="docker-registry is not installed")


def layer_with(name, data="here", size=0):
    """A layer that has one file, and perhaps one that does not compress."""
    return make.tar_bytes(lambda tar: (make.add(tar, name, data), make.add(tar, name + ".big", os.urandom(size)) if size else None))


@pytest.fixture(scope="module")
def root():
    return make.root_tar()


@pytest.fixture(scope="module")
def host(bin_dir, request):
    service = shared_service(request, bin_dir, registry={}, aliases={"aliased:*": "host"})
    service.images = Images(bin_dir, service.config_path, service.state_dir)
    return service


@pytest.fixture(scope="module")
def api(host):
    return Api(host)


@pytest.fixture
def registry():
    with fake_registry() as one:
        yield one


@pytest.fixture
def run(api):
    made = []

    def go(image, command, **fields):
        image = image if isinstance(image, dict) else {"uri": image}
        made.append(api.create(image=image, entrypoint=["sleep", "600"], **fields)["id"])
        return api.run(made[-1], command)

    yield go
    for sandbox_id in made:
        api.delete(sandbox_id)


def blobs(service):
    directory = service.state_dir / "images" / "store" / "blobs"
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []


def left(service):
    return Images(service.bin_dir, service.config_path, service.state_dir).contents(), blobs(service)


# What works


@needs_debian_registry
@pytest.mark.parametrize("compression", ["plain", "gzip", "zstd"])
def test_a_create_pulls(debian, root, run, compression):
    image = Made([root, layer_with("added"), make.tar_bytes(lambda tar: make.add(tar, ".wh.added"))], CONFIG, compression)
    name = debian.push("team/" + compression, image)
    done = run(name, "id -un; echo $GREETING $PWD; ls /added 2>&1 || true")
    assert done.stdout.split("\n")[:2] == ["app", "hello /home/app"]
    assert "No such file" in done.stdout


@needs_debian_registry
def test_one_of_several_machines(debian, root, run):
    other = Made([layer_with("elsewhere")], machine="s390x")
    name = debian.push_index("multi", other, Made([root, layer_with("here")]))
    assert run(name, "cat /here").stdout == "here"


def test_an_index_within_an_index(registry, root, run):
    image = Made([root, layer_with("within")])
    registry.add("nested", image)
    inner = index_of(image)
    outer = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [{"mediaType": INDEX, "digest": "sha256:" + make.sha256(inner), "size": len(inner)}]})
    registry.documents[f"/v2/nested/manifests/sha256:{make.sha256(inner)}"] = (INDEX, inner)
    registry.documents["/v2/nested/manifests/all"] = (INDEX, outer.encode())
    assert run(f"{registry.host}/nested:all", "cat /within").stdout == "here"


@needs_debian_registry
def test_forty_layers(debian, root, run):
    layers = [root] + [layer_with(f"layer{i}", str(i)) for i in range(39)]
    assert run(debian.push("forty", Made(layers)), "cat /layer0 /layer38").stdout == "038"


@needs_debian_registry
def test_pushed_by_another_tool(debian, root, run, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    archive = tmp_path / "app.tar"
    archive.write_bytes(make.docker_archive([root], CONFIG))
    subprocess.run(["skopeo", "copy", "--dest-tls-verify=false", f"docker-archive:{archive}", f"docker://{debian.host}/skopeo:1"], check=True, capture_output=True)  # fmt: skip
    assert run(f"{debian.host}/skopeo:1", "echo $GREETING").stdout == "hello"


@needs_debian_registry
def test_a_password(bin_dir, host, api, root, run, tmp_path):
    registry = DebianRegistry(password="s3cret")
    try:
        name = registry.push("private", Made([root], CONFIG))
        found = assert_envelope(api.post_create(image={"uri": name}), 400, "IMAGE::UNAUTHORIZED")
        assert "image.auth" in found["message"]
        wrong = {"uri": name, "auth": {"username": "me", "password": "wrong"}}
        assert_envelope(api.post_create(image=wrong), 400, "IMAGE::UNAUTHORIZED")
        right = {"uri": name, "auth": {"username": "me", "password": "s3cret"}}
        assert run(right, "echo $GREETING").stdout == "hello"
        assert "s3cret" not in host.log_path.read_text()
    finally:
        registry.close()


@needs_debian_registry
def test_tls_with_an_authority_of_ones_own_and_a_login_file(bin_dir, request, root, tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    place.chmod(0o755)
    authority_for("IP:127.0.0.1", place)
    registry = DebianRegistry(password="s3cret", tls=(place / "cert.pem", place / "key.pem"))
    login = place / "login.json"
    login.write_text(json.dumps({"auths": {"mirror.example": {"auth": "eDp5"}, registry.host: {"auth": "bWU6czNjcmV0"}}}))
    login.chmod(0o600)
    try:
        registry.push("library/secure", Made([root], CONFIG))
        # By TLS although it is on loopback: that is what a mirror's address says.
        mirrors = {"registry.example": f"https://{registry.host}"}
        stranger = shared_service(request, bin_dir, registry={"auth_file": str(login)}, mirrors={**mirrors})
        name = "registry.example/library/secure:1"
        # Not believed, and the registry behind the mirror does not exist.
        assert_envelope(Api(stranger).post_create(image={"uri": name}), 500, "IMAGE::UNREACHABLE")
        believer = shared_service(request, bin_dir, registry={"auth_file": str(login), "ca_files": [str(place / "ca.pem")]}, mirrors=mirrors)
        api = Api(believer)
        sandbox = api.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"]
        assert api.run(sandbox, "echo $GREETING").stdout == "hello"
        api.delete(sandbox)
    finally:
        registry.close()


@needs_debian_registry
@pytest.mark.parametrize("name, owner", [("localhost", "DNS:localhost"), ("127.0.0.1", "IP:127.0.0.1"), ("[::1]", "IP:::1")])
def test_tls_on_loopback(bin_dir, request, root, tmp_path_factory, name, owner):
    """By the registry's own name: TLS comes first, and a certificate that is not believed is the end."""
    if name == "[::1]" and not os.path.exists("/proc/sys/net/ipv6"):
        pytest.skip("this host has no addresses of version 6")
    place = tmp_path_factory.mktemp("tls")
    place.chmod(0o755)
    authority_for(owner, place)
    registry = DebianRegistry(tls=(place / "cert.pem", place / "key.pem"), name=name)
    try:
        image = registry.push("secure", Made([root], CONFIG))
        stranger = Api(shared_service(request, bin_dir, registry={}))
        found = assert_envelope(stranger.post_create(image={"uri": image}), 500, "IMAGE::UNREACHABLE")
        assert "certificate is not accepted" in found["message"] and "registry.ca_files" in found["message"]
        if name == "localhost":
            with relay_before(registry, name) as relay:
                assert_envelope(stranger.post_create(image={"uri": f"{relay.host}/secure:1"}), 500, "IMAGE::UNREACHABLE")
                assert relay.openings and set(relay.openings) == {b"\x16"}, "nothing was said in the clear"
        believer = Api(shared_service(request, bin_dir, registry={"ca_files": [str(place / "ca.pem")]}))
        sandbox = believer.create(image={"uri": image}, entrypoint=["sleep", "600"])["id"]
        assert believer.run(sandbox, "echo $GREETING").stdout == "hello"
        believer.delete(sandbox)
    finally:
        registry.close()


@needs_debian_registry
def test_a_plain_registry_on_loopback_is_asked_once_for_tls(bin_dir, request, debian, root):
    debian.push("plain", Made([root, layer_with("plain-on-loopback")], CONFIG))
    with relay_before(debian, "localhost") as relay:
        api = Api(shared_service(request, bin_dir, registry={}))
        api.delete(api.create(image={"uri": f"{relay.host}/plain:1"}, entrypoint=["sleep", "600"])["id"])
        assert relay.openings[0] == b"\x16" and set(relay.openings[1:]) == {b"G"}, relay.openings
        # One that the configuration calls plain is not asked at all.
        relay.openings.clear()
        sure = Api(shared_service(request, bin_dir, registry={"plain_hosts": [relay.host]}))
        sure.delete(sure.create(image={"uri": f"{relay.host}/plain:1"}, entrypoint=["sleep", "600"])["id"])
        assert set(relay.openings) == {b"G"}, relay.openings


def test_a_token(registry, root, run, api):
    registry.login, registry.token = ("me", "s3cret"), "abc.def"
    name = registry.add("x", Made([root], CONFIG))
    assert_envelope(api.post_create(image={"uri": name}), 400, "IMAGE::UNAUTHORIZED")
    assert run({"uri": name, "auth": {"username": "me", "password": "s3cret"}}, "echo $GREETING").stdout == "hello"
    assert len(registry.asked("/token")) >= 2


def test_passwords_do_not_follow_redirections(registry, root, run):
    """A registry sends whoever wants a layer to an object store: not with the registry's password."""
    with fake_registry() as store:
        image = Made([root, layer_with("elsewhere")], CONFIG)
        name = registry.add("x", image)
        store.add("x", image)
        registry.login, registry.token = ("me", "s3cret"), "abc.def"
        seen = []

        def elsewhere(handler, path):
            if "/blobs/" not in path or not handler.headers.get("Authorization"):
                return False
            registry.send(handler, 307, b"", Location=f"http://{store.host}{path}")
            return True

        registry.before = elsewhere
        store.before = lambda handler, path: seen.append(handler.headers.get("Authorization")) or False
        assert run({"uri": name, "auth": {"username": "me", "password": "s3cret"}}, "echo $GREETING").stdout == "hello"
        assert seen and set(seen) == {None}


def test_names_are_those_that_people_use(registry, root, bin_dir, request):
    service = shared_service(request, bin_dir, registry={"default": registry.host, "plain_hosts": ["other.example"]}, mirrors={"docker.io": f"http://{registry.host}"})
    api = Api(service)
    image = Made([root], CONFIG)
    registry.add("python", image, tag="3.12")
    registry.add("library/alpine", Made([root, layer_with("alpine")]), tag="latest")
    for asked in ["python:3.12", f"python@sha256:{image.digest}", "docker.io/alpine", "docker.io/library/alpine:latest"]:
        sandbox = api.create(image={"uri": asked}, entrypoint=["sleep", "600"])
        assert sandbox["status"]["state"] == "Running"
        api.delete(sandbox["id"])
    # The same image by another name does not come again.
    assert len(registry.asked("/library/alpine/manifests/latest")) == 1


def test_local_names_ask_nobody(api, host, registry, run):
    before = len(registry.requests)
    assert run("aliased:7", "echo ok").stdout == "ok"
    assert run("host", "echo ok", extensions={"opensandbox.extensions.image-pull-policy": "always"}).stdout == "ok"
    assert len(registry.requests) == before


def test_policies(registry, root, run, api):
    name = registry.add("x", Made([root, layer_with("one")]))
    never = {"opensandbox.extensions.image-pull-policy": "never"}
    always = {"opensandbox.extensions.image-pull-policy": "always"}
    assert_envelope(api.post_create(image={"uri": name}, extensions=never), 400, "IMAGE::NOT_FOUND")
    assert registry.requests == []
    assert run(name, "cat /one").stdout == "here"
    asked = len(registry.requests)
    assert run(name, "cat /one", extensions=never).stdout == "here"
    assert run(name, "cat /one").stdout == "here"
    assert len(registry.requests) == asked, "what is here is not asked for"
    # Always, and nothing is new: the manifest only.
    assert run(name, "cat /one", extensions=always).stdout == "here"
    assert not [path for path in registry.requests[asked:] if "/blobs/" in path and path.split(":")[-1] not in config_digests(registry)]
    registry.add("x", Made([root, layer_with("two")]))
    assert run(name, "cat /one").stdout == "here", "the old one, as nobody asks"
    assert run(name, "cat /two", extensions=always).stdout == "here"
    assert_envelope(api.post_create(image={"uri": name}, extensions={"opensandbox.extensions.image-pull-policy": "sometimes"}), 400, "SANDBOX::INVALID_PARAMETER")


def config_digests(registry):
    return {json.loads(text)["config"]["digest"].split(":")[1] for kind, text in registry.documents.values() if b'"config"' in text}


def test_an_operator_who_says_never_means_it(bin_dir, request, registry, root):
    api = Api(shared_service(request, bin_dir, registry={"pull_policy": "never"}))
    name = registry.add("x", Made([root]))
    always = {"opensandbox.extensions.image-pull-policy": "always"}
    assert_envelope(api.post_create(image={"uri": name}, extensions=always), 400, "IMAGE::NOT_FOUND")
    assert registry.requests == []


def test_concurrent_creates_share_one_download(registry, root, api):
    image = Made([root, layer_with("shared", size=3_000_000)])
    name = registry.add("x", image)
    gate = threading.Event()
    registry.before = lambda handler, path: gate.wait(20) and False
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(api.create(image={"uri": name}, entrypoint=["sleep", "600"]))) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_for(lambda: registry.requests, 10, "the first request is there")
    gate.set()
    for thread in threads:
        thread.join(60)
    assert [answer["status"]["state"] for answer in answers] == ["Running"] * 6
    for answer in answers:
        api.delete(answer["id"])
    digest = image.layers[1]  # the other may be here already
    assert registry.served[f"/v2/x/blobs/sha256:{digest}"] == len(image.blobs[digest])


# What does not


def test_an_unknown_image(registry, api):
    began = time.monotonic()
    found = assert_envelope(api.post_create(image={"uri": f"{registry.host}/none:1"}), 400, "IMAGE::NOT_FOUND")
    assert "never heard of it" in found["message"] and registry.host in found["message"]
    assert time.monotonic() - began < 5


def test_a_registry_that_is_away(api):
    found = assert_envelope(api.post_create(image={"uri": "127.0.0.1:1/none:1"}), 500, "IMAGE::UNREACHABLE")
    assert "127.0.0.1:1" in found["message"]


def test_a_registry_without_tls(api):
    """Plain HTTP is for loopback: everything else is spoken to by TLS."""
    with fake_registry() as registry:
        name = f"localtest.invalid:{registry.host.split(':')[1]}/x:1"
        assert_envelope(api.post_create(image={"uri": name}), 500, "IMAGE::UNREACHABLE")
        assert registry.requests == []


def spoilt(kind, data):
    if kind == "tampered":
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    return {"truncated": data[:-100], "longer": data + b"x", "empty": b""}[kind]


@pytest.mark.parametrize("kind", ["tampered", "truncated", "longer", "empty"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_spoilt_layer_is_refused_and_leaves_nothing(host, registry, api, root, kind, which):
    image = Made([make.tar_bytes(lambda tar: (make.fill_root(tar), make.add(tar, "nonce", os.urandom(20)))), layer_with("last", size=100_000)])
    name = registry.add("x", image)
    path = f"/v2/x/blobs/sha256:{image.layers[which]}"
    registry.spoil[path] = spoilt(kind, registry.blobs[path])
    before = left(host)
    assert_envelope(api.post_create(image={"uri": name}), 500, "IMAGE::INVALID")
    assert left(host) == before


def mislabelled(image):
    """The configuration promises other contents than the layers have."""
    manifest = json.loads(image.manifest)
    config = json.loads(image.blobs.pop(manifest["config"]["digest"].split(":")[1]))
    config["rootfs"]["diff_ids"][-1] = "sha256:" + "0" * 64
    return manifest, config


def put_config(registry, name, manifest, config):
    text = json.dumps(config).encode()
    manifest["config"] |= {"digest": "sha256:" + make.sha256(text), "size": len(text)}
    registry.documents[f"/v2/{name}/manifests/1"] = (MANIFEST, json.dumps(manifest).encode())
    registry.blobs[f"/v2/{name}/blobs/sha256:{make.sha256(text)}"] = text


@pytest.mark.parametrize("kind", ["diff_id", "count", "not-tar", "machine", "no-json", "manifest-digest", "config-digest", "huge"])
def test_documents_that_lie_are_refused(host, registry, api, root, kind):
    image = Made([root, layer_with(kind)])
    name = registry.add("x", image)
    manifest, config = mislabelled(image)
    if kind == "count":
        config["rootfs"]["diff_ids"].append("sha256:" + "1" * 64)
    elif kind == "not-tar":
        manifest["layers"][0]["mediaType"] = "application/vnd.example.wasm"
    elif kind == "machine":
        config["architecture"] = "s390x"
    put_config(registry, "x", manifest, config)
    if kind == "no-json":
        registry.documents["/v2/x/manifests/1"] = (MANIFEST, b"<html>")
    elif kind == "manifest-digest":
        registry.documents[f"/v2/x/manifests/sha256:{'a' * 64}"] = (MANIFEST, image.manifest)
        name = f"{registry.host}/x@sha256:{'a' * 64}"
    elif kind == "config-digest":
        path = f"/v2/x/blobs/{manifest['config']['digest']}"
        registry.spoil[path] = registry.blobs[path] + b" "
    elif kind == "huge":
        registry.documents["/v2/x/manifests/1"] = (MANIFEST, b" " * (5 << 20))
    before = left(host)
    assert_envelope(api.post_create(image={"uri": name}), 500, "IMAGE::INVALID")
    assert left(host) == before


def test_what_is_no_name_is_not_asked_for(api, registry):
    for name in ["../../etc", "UPPER/case", "a b"]:
        assert_envelope(api.post_create(image={"uri": name}), 400, "IMAGE::NOT_FOUND")


# The network, and processes that are killed


def test_a_connection_that_breaks_is_gone_on_with(registry, root, run):
    image = Made([root, layer_with("much", size=4_000_000)])
    name = registry.add("x", image)
    path = f"/v2/x/blobs/sha256:{image.layers[1]}"
    data, cuts = registry.blobs[path], [1_000_000, 2_000_000]
    ranges = []

    def cut(handler, asked):
        if asked != path:
            return False
        ranges.append(handler.headers.get("Range"))
        if not cuts:
            return False
        start = int((ranges[-1] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(data) - start))
        handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        handler.end_headers()
        handler.wfile.write(data[start : cuts.pop(0)])
        handler.close_connection = True
        return True

    registry.before = cut
    assert run(name, "test -s /much.big && echo whole").stdout == "whole"
    assert ranges == [None, "bytes=1000000-", "bytes=2000000-"]


def test_a_busy_registry_is_asked_again(registry, root, run):
    name = registry.add("x", Made([root]))
    busy = [503, 429]
    registry.before = lambda handler, path: bool(busy) and (registry.send(handler, busy.pop(), b"") or True)
    assert run(name, "echo ok").stdout == "ok"


@pytest.mark.parametrize("victim", ["server", "launcher", "keeper"])
def test_kill_9_in_the_middle_then_less_is_asked_for(bin_dir, registry, root, victim):
    image = Made([root, layer_with("much", size=6_000_000)])
    name = registry.add("x", image)
    path = f"/v2/x/blobs/sha256:{image.layers[1]}"
    data, stuck, half = registry.blobs[path], threading.Event(), 3_000_000

    def stop_half_way(handler, asked):
        if asked != path or stuck.is_set():
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:half])
        handler.wfile.flush()
        stuck.wait(60)
        handler.close_connection = True
        return True

    registry.before = stop_half_way
    service = Service(bin_dir, registry={}).start()
    try:
        api = Api(service)
        blob = service.state_dir / "images" / "store" / "blobs" / image.layers[1]
        caller = threading.Thread(target=lambda: swallow(lambda: api.post_create(image={"uri": name})))
        caller.start()
        wait_for(lambda: blob.exists() and blob.stat().st_size == half, 20, "half of the layer is on disk")
        if victim == "server":
            service.kill_server()
        elif victim == "launcher":
            service.kill_both()
            service.start()
        else:
            os.kill(keeper_of(service), signal.SIGKILL)
        stuck.set()
        caller.join(60)
        wait_for(lambda: not children_named(b"image-fetcher"), 10, "no fetcher outlives its keeper") if victim != "keeper" else None
        assert blob.stat().st_size == half
        assert Images(bin_dir, service.config_path, service.state_dir).names() == []
        sandbox = api.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"]
        assert api.run(sandbox, "test -s /much.big && echo whole").stdout == "whole"
        assert registry.served[path] == len(data) - half
        assert blobs(service) == []
        api.delete(sandbox)
    finally:
        stuck.set()
        service.destroy()


@needs_debian_registry
@pytest.mark.parametrize("victim", ["server", "launcher", "keeper"])
def test_kill_9_in_the_middle_then_debians_registry_serves_less(bin_dir, debian, root, victim):
    """Bytes are counted between us and Debian's registry: after the restart less of them come than the layer has."""
    image = Made([root, layer_with("much", size=16_000_000)])
    small, large = (len(image.blobs[digest]) for digest in image.layers)
    half = large // 2
    assert small < half, "the other layer comes whole"
    debian.push("cut/" + victim, image)
    service = Service(bin_dir, registry={}).start()
    with relay_before(debian) as relay:
        try:
            api = Api(service)
            relay.most = half
            name = f"{relay.host}/cut/{victim}:1"
            here = [service.state_dir / "images" / "store" / "blobs" / digest for digest in image.layers]
            caller = threading.Thread(target=lambda: swallow(lambda: api.post_create(image={"uri": name})))
            caller.start()
            head = 8192  # of the answer, at most
            wait_for(lambda: all(blob.exists() and blob.stat().st_size >= size for blob, size in zip(here, (small, half - head))), 30, "half of the layer is on disk")
            if victim == "server":
                service.kill_server()
            elif victim == "launcher":
                service.kill_both()
                service.start()
            else:
                os.kill(keeper_of(service), signal.SIGKILL)
            caller.join(60)
            wait_for(lambda: not [pid for pid in children_named(b"image-fetcher") if parent_of(pid) == 1], 10, "no fetcher outlives its keeper")
            had = here[1].stat().st_size
            assert half - head <= had < large
            relay.let_go()
            sandbox = api.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"]
            assert api.run(sandbox, "test -s /much.big && echo whole").stdout == "whole"
            documents = 64 * 1024
            assert large - had <= relay.served < large - had + documents, (relay.served, large, had)
            api.delete(sandbox)
        finally:
            relay.let_go()
            service.destroy()


def test_who_speaks_to_the_registry_has_no_right(host, registry, root, api):
    """Seen while it works: an id of nobody, no capability, no way to get any, nothing of the configuration."""
    name = registry.add("x", Made([root]))
    gate = threading.Event()
    registry.before = lambda handler, path: gate.wait(20) and False
    caller = threading.Thread(target=lambda: api.delete(api.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"]))
    caller.start()
    try:
        wait_for(lambda: registry.requests, 10, "the registry was asked")
        keeper = keeper_of(host)
        (fetcher,) = [pid for pid in children_named(b"image-fetcher") if parent_of(pid) == keeper]
        with open(f"/proc/{fetcher}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(0x6FFEFFFF)}
        assert status["Groups"].split() == []
        assert {status[field] for field in ("CapPrm", "CapEff", "CapAmb", "CapInh")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        with open(f"/proc/{fetcher}/environ", "rb") as file:
            assert file.read() == b"PATH=/usr/bin:/bin\0"
    finally:
        gate.set()
        caller.join(60)


# Looking after them


def test_osb_images(host, registry, root, api, run):
    registry.login, registry.token = ("me", "s3cret"), "abc.def"
    image = Made([root, layer_with("osb")], CONFIG)
    name = registry.add("x", image)
    refused = osb(host, "images", "pull", name)
    assert refused.returncode == 1 and "IMAGE::UNAUTHORIZED" in refused.stderr
    pulled = osb(host, "images", "pull", "--username", "me", name, input="s3cret\n")
    assert pulled.returncode == 0 and pulled.stdout.startswith(f"pulled {name} "), pulled
    known = json.loads(osb(host, "images", "inspect", name).stdout)
    assert known["names"] == [name] and known["manifest"] == "sha256:" + image.digest and "GREETING=hello" in known["env"]
    assert name in host.images.names() and name in osb(host, "images", "ls").stdout
    # One in use stays, whatever is pruned.
    sandbox = api.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"]
    assert name not in osb(host, "images", "prune").stdout
    in_use = api.call("DELETE", "/images?name=" + name)
    assert_envelope(in_use, 409, "IMAGE::IN_USE")
    api.delete(sandbox)
    wait_for(lambda: name in osb(host, "images", "prune").stdout, 10, "what nobody uses is pruned")
    assert name not in host.images.names()
    assert osb(host, "images", "inspect", name).returncode == 1
    assert_envelope(api.call("DELETE", "/images?name=" + name), 404, "IMAGE::NOT_FOUND")


def test_osb_run_pulls(host, registry, root):
    name = registry.add("x", Made([root], CONFIG))
    done = subprocess.run(
        [host.bin_dir / "osb", "run", "--server", f"127.0.0.1:{host.address[1]}", name, "--", "sh", "-c", "echo $GREETING"], capture_output=True, text=True, timeout=60)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


@pytest.mark.long
def test_the_oldest_goes_when_there_is_no_room(bin_dir, request, registry, root):
    service = shared_service(request, bin_dir, registry={"disk_budget_gb": 1})
    api = Api(service)
    images = Images(bin_dir, service.config_path, service.state_dir)
    # Holes count as what they show: three images of half a budget each.
    for number in range(3):
        big = make.tar_bytes(lambda tar, number=number: make.add(tar, f"big{number}", bytes(450_000_000)))
        name = registry.add(f"big{number}", Made([big, root], compression="zstd"))
        api.delete(api.create(image={"uri": name}, entrypoint=["sleep", "600"])["id"])
    names = [name.split("/")[1] for name in images.names()]
    assert names == ["big1:1", "big2:1"], names


def test_a_budget_is_looked_at_before_layers_come(bin_dir, request, registry, root):
    """What may go counts as gone, what may not does not. A size that is not true is found out as ever: IMAGE::INVALID."""
    service = shared_service(request, bin_dir, registry={"disk_budget_gb": 1})
    api = Api(service)
    image = Made([root, layer_with("claimed")])
    name = registry.add("claiming", image)
    layer = f"/v2/claiming/blobs/sha256:{image.layers[1]}"

    def claim(size):
        manifest = json.loads(image.manifest)
        manifest["layers"][1]["size"] = size
        registry.documents["/v2/claiming/manifests/1"] = (MANIFEST, json.dumps(manifest).encode())
        registry.requests.clear()
        return api.post_create(image={"uri": name})

    found = assert_envelope(claim(1_100_000_000), 500, "IMAGE::NO_ROOM")
    assert "registry.disk_budget_gb" in found["cause"] and not registry.asked(layer), found
    assert_envelope(claim(950_000_000), 500, "IMAGE::INVALID")
    assert registry.asked(layer)
    pulled = registry.add("pulled", Made([root, make.tar_bytes(lambda tar: make.add(tar, "big", bytes(60_000_000)))]))
    assert osb(service, "images", "pull", pulled).returncode == 0
    assert_envelope(claim(950_000_000), 500, "IMAGE::INVALID")
    sandbox = api.create(image={"uri": pulled}, entrypoint=["sleep", "600"])["id"]
    found = assert_envelope(claim(950_000_000), 500, "IMAGE::NO_ROOM")
    assert "registry.disk_budget_gb" in found["cause"] and not registry.asked(layer), found
    api.delete(sandbox)


def test_what_was_committed_takes_room(bin_dir, request, registry, root):
    """A committed image is most of the budget: a pulled one that nobody uses goes for the next."""
    service = shared_service(request, bin_dir, registry={"disk_budget_gb": 1})
    api = Api(service)
    images = Images(bin_dir, service.config_path, service.state_dir)
    sandbox = api.create()["id"]
    api.run(sandbox, "truncate -s 950000000 /srv/big", uid=0)  # holes count as what they show
    assert api.call("POST", "/images/commit", json={"sandboxId": sandbox, "name": "kept"}).status == 201
    api.delete(sandbox)
    first = registry.add("first", Made([root, make.tar_bytes(lambda tar: make.add(tar, "big", bytes(60_000_000)))]))
    second = registry.add("second", Made([root, layer_with("second")]))
    for name in (first, second):
        assert osb(service, "images", "pull", name).returncode == 0
    assert sorted(images.names()) == sorted(["kept", second])


# A pull that takes long


@pytest.mark.long
def test_a_create_is_held_and_then_pending(host, registry, root, api):
    image = Made([root, layer_with("slow", size=2_000_000)])
    name = registry.add("slow", image)
    path = f"/v2/slow/blobs/sha256:{image.layers[1]}"
    gate = threading.Event()
    registry.before = lambda handler, asked: asked == path and gate.wait(100) and False
    began = time.monotonic()
    sandbox = api.create(image={"uri": name}, entrypoint=["sleep", "600"])
    assert 24 < time.monotonic() - began < 29
    assert sandbox["status"]["state"] == "Pending" and sandbox["status"]["reason"] == "STARTING"
    assert name in sandbox["status"]["message"] and "MB" in sandbox["status"]["message"]
    # One that is deleted does not come to life later.
    other = api.create(image={"uri": name}, entrypoint=["sleep", "600"])
    assert other["status"]["state"] == "Pending"
    api.delete(other["id"])
    held = []
    asker = threading.Thread(target=lambda: held.append((api.call("GET", f"/sandboxes/{sandbox['id']}/endpoints/44772"), time.monotonic())))
    asker.start()
    time.sleep(1)  # long enough for an answer that is not held
    assert not held
    released = time.monotonic()
    gate.set()
    asker.join(30)
    assert held[0][0].status == 200 and held[0][1] >= released
    assert api.get(sandbox["id"])["status"]["state"] == "Running"
    assert api.run(sandbox["id"], "cat /slow").stdout == "here"
    api.delete(sandbox["id"])
    assert api.call("GET", "/sandboxes/" + other["id"]).status == 404
