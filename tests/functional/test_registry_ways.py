"""The ways to a registry: mirrors before it, names that need none, layers side by side, pauses between attempts, pulls that go on alone."""

import json
import os
import socket
import threading
import time

import pytest
from lib import images as make
from lib.api import Api, assert_envelope, create_body
from lib.image_processes import osb
from lib.images import Images
from lib.plugin import shared_service
from lib.registries import Made, fake_registry
from lib.waiting import wait_for

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def root():
    return make.root_tar()


@pytest.fixture
def registry():
    with fake_registry() as one:
        yield one


@pytest.fixture
def mirror():
    with fake_registry() as one:
        yield one


@pytest.fixture(scope="module")
def host(bin_dir, request):
    return shared_service(request, bin_dir, registry={})


@pytest.fixture(scope="module")
def api(host):
    return Api(host)


def own_layer(size=0):
    """One that no other test has."""
    return make.tar_bytes(lambda tar: (make.add(tar, "own", os.urandom(20)), make.add(tar, "big", os.urandom(size)) if size else None))


def made_of(api, image, **fields):
    sandbox = api.create(image={"uri": image}, entrypoint=["sleep", "600"], **fields)
    assert sandbox["status"]["state"] == "Running"
    assert api.delete(sandbox["id"]).status == 204


# Mirrors


def test_a_mirror_is_asked_first_and_alone(bin_dir, request, registry, mirror, root):
    api = Api(shared_service(request, bin_dir, registry={}, mirrors={registry.host: f"http://{mirror.host}"}))
    image = Made([root, own_layer()])
    name = registry.add("team/app", image)
    mirror.add("team/app", image)
    made_of(api, name)
    assert mirror.asked("/team/app/manifests/1") and mirror.asked("/blobs/") and registry.requests == []


def test_a_mirror_without_it_stands_back(bin_dir, request, registry, mirror, root):
    api = Api(shared_service(request, bin_dir, registry={}, mirrors={registry.host: f"http://{mirror.host}"}))
    made_of(api, registry.add("team/app", Made([root, own_layer()])))
    assert mirror.asked("/team/app/manifests/1") and registry.asked("/blobs/")
    # What it has to say about an image that nobody has is what the registry says.
    assert_envelope(api.post_create(image={"uri": f"{registry.host}/team/none:1"}), 400, "IMAGE::NOT_FOUND")


def test_a_mirror_that_is_away_stands_back(bin_dir, request, registry, root):
    api = Api(shared_service(request, bin_dir, registry={}, mirrors={registry.host: f"http://{NOBODY}"}))
    made_of(api, registry.add("team/app", Made([root, own_layer()])))


@pytest.mark.parametrize("how", ["missing", "busy", "another size", "cut off"])
def test_a_layer_that_a_mirror_does_not_give_comes_from_the_registry(bin_dir, request, registry, mirror, root, how):
    """The mirror knows the image, and has all of it but one layer."""
    api = Api(shared_service(request, bin_dir, registry={}, mirrors={registry.host: f"http://{mirror.host}"}))
    image = Made([root, own_layer(), own_layer(size=300_000)])
    name = registry.add("team/app", image)
    mirror.add("team/app", image)
    paths = [f"/v2/team/app/blobs/sha256:{digest}" for digest in image.layers]
    data = mirror.blobs[paths[2]]
    if how == "missing":
        del mirror.blobs[paths[2]]
    elif how == "another size":
        mirror.spoil[paths[2]] = os.urandom(1000)

    def cut(handler, path):
        if path != paths[2] or how not in ("busy", "cut off"):
            return False
        if how == "busy":
            mirror.send(handler, 503, b"")
            return True
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:100_000])
        mirror.before = lambda handler, path: path == paths[2] and (mirror.send(handler, 503, b"") or True)
        handler.close_connection = True
        return True

    mirror.before = cut
    made_of(api, name)
    assert mirror.asked(paths[1]) and mirror.asked(paths[2])
    assert set(registry.requests) == {paths[2]}, "only what the mirror does not give"
    assert registry.served[paths[2]] == len(data) - (100_000 if how == "cut off" else 0)


def test_a_mirror_is_believed_no_more_than_the_registry(bin_dir, request, registry, mirror, root):
    """Another image under the same digest is refused, whoever gives it."""
    service = shared_service(request, bin_dir, registry={}, mirrors={registry.host: f"http://{mirror.host}"})
    image, other = Made([root, own_layer()]), Made([root, own_layer()])
    registry.add("team/app", image)
    mirror.add("team/app", other)
    mirror.documents[f"/v2/team/app/manifests/sha256:{image.digest}"] = mirror.documents["/v2/team/app/manifests/1"]
    made_of(Api(service), f"{registry.host}/team/app@sha256:{image.digest}")
    stored = json.loads(osb(service, "images", "ls", "--json").stdout)
    assert [one["manifest"] for one in stored] == ["sha256:" + image.digest], "what the registry gave, not the mirror"


def test_a_mirror_with_wrong_bytes_of_the_right_size(bin_dir, request, registry, mirror, root):
    """They are noticed by who unpacks them; the registry itself has the right ones."""
    service = shared_service(request, bin_dir, registry={}, mirrors={registry.host: f"http://{mirror.host}"})
    image = Made([root, own_layer(size=50_000)])
    name = registry.add("team/app", image)
    mirror.add("team/app", image)
    path = f"/v2/team/app/blobs/sha256:{image.layers[1]}"
    mirror.spoil[path] = os.urandom(len(mirror.blobs[path]))
    made_of(Api(service), name)
    assert mirror.asked(path) and registry.asked(path)
    # What is wrong everywhere stays wrong.
    other = Made([root, own_layer(size=50_000)])
    name = registry.add("team/other", other)
    mirror.add("team/other", other)
    path = f"/v2/team/other/blobs/sha256:{other.layers[1]}"
    for one in (mirror, registry):
        one.spoil[path] = os.urandom(len(one.blobs[path]))
    assert_envelope(Api(service).post_create(image={"uri": name}), 500, "IMAGE::INVALID")
    assert sum(one == path for one in registry.requests) == 1, "asked once more, and not for ever"


# Names that need no registry


@pytest.mark.alone
def test_names_of_this_host_work_while_the_registry_is_away(bin_dir, request, root, tmp_path):
    """The default registry does not answer: aliases and imported images are used all the same, and nobody waits for it."""
    service = shared_service(request, bin_dir, registry={"default": NOBODY}, aliases={"python:*": "host", "mine:*": "imported:1"})
    api = Api(service)
    archive = tmp_path / "imported.tar"
    archive.write_bytes(make.docker_archive([root], tags=("imported:1",)))
    assert Images(bin_dir, service.config_path, service.state_dir).run("import", archive).returncode == 0
    began = time.monotonic()
    for name in ("python:3.12", "imported:1", "mine:7"):
        made_of(api, name)
    always = {"opensandbox.extensions.image-pull-policy": "always"}
    made_of(api, "python:3.12", extensions=always)
    assert time.monotonic() - began < 5, "nobody was waited for"
    assert_envelope(api.post_create(image={"uri": "other:1"}), 500, "IMAGE::UNREACHABLE")


# Layers, attempts, and who waits


def test_layers_come_side_by_side(registry, api, root):
    image = Made([root] + [own_layer() for _ in range(4)])
    name = registry.add("x", image)
    own = [f"/v2/x/blobs/sha256:{digest}" for digest in image.layers[1:]]
    together = threading.Barrier(3, timeout=20)
    registry.before = lambda handler, path: path in own[:3] and together.wait() < 0
    made_of(api, name)
    assert not together.broken, "three were asked for before one of them was answered"


def test_pauses_grow_and_end(registry, api):
    """One that is busy for ever is asked three times, each time after a longer pause."""
    seen = []
    registry.before = lambda handler, path: seen.append(time.monotonic()) or registry.send(handler, 503, b"") or True
    assert_envelope(api.post_create(image={"uri": f"{registry.host}/x:1"}), 500, "IMAGE::UNREACHABLE")
    assert len(seen) == 3
    first, second = seen[1] - seen[0], seen[2] - seen[1]
    assert first >= 0.25 and second >= 0.8, (first, second)


def test_a_layer_that_never_comes_ends_the_pull(registry, host, api, root):
    image = Made([root, own_layer()])
    name = registry.add("x", image)
    path = f"/v2/x/blobs/sha256:{image.layers[1]}"
    seen = []
    registry.before = lambda handler, asked: asked == path and (seen.append(time.monotonic()) or registry.send(handler, 503, b"") or True)
    assert_envelope(api.post_create(image={"uri": name}), 500, "IMAGE::UNREACHABLE")
    gaps = [after - before for before, after in zip(seen, seen[1:])]
    assert 3 <= len(seen) <= 10 and all(gap >= 0.2 * 2**n for n, gap in enumerate(gaps)), gaps
    registry.before = lambda handler, asked: False
    made_of(api, name)


@pytest.mark.alone
def test_a_pull_outlives_its_create_and_the_next_one_joins_it(registry, host, api, root):
    """The client of the create that began it hangs up in the middle."""
    image = Made([root, own_layer(size=3_000_000)])
    name = registry.add("x", image)
    path = f"/v2/x/blobs/sha256:{image.layers[1]}"
    gate = threading.Event()
    registry.before = lambda handler, asked: asked == path and not gate.wait(30)
    body = json.dumps(create_body(image={"uri": name}, entrypoint=["sleep", "600"])).encode()
    first = socket.create_connection(host.address)
    first.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    wait_for(lambda: registry.asked(path), 20, "the layer is asked for")
    first.close()
    done = []
    second = threading.Thread(target=lambda: done.append(api.create(image={"uri": name}, entrypoint=["sleep", "600"])))
    second.start()
    time.sleep(0.5)  # the second one is there, and nothing is asked for again
    assert len(registry.asked(path)) == 1 and not done
    gate.set()
    second.join(60)
    assert done[0]["status"]["state"] == "Running"
    assert registry.served[path] == len(image.blobs[image.layers[1]]), "it came once"
    for one in api.list_all():
        api.delete(one["id"])


def test_a_pull_goes_on_when_nobody_waits(registry, host, api, root):
    image = Made([root, own_layer(size=3_000_000)])
    name = registry.add("x", image)
    path = f"/v2/x/blobs/sha256:{image.layers[1]}"
    gate = threading.Event()
    registry.before = lambda handler, asked: asked == path and not gate.wait(30)
    asking = threading.Thread(target=lambda: api.call("POST", "/images/pull", json={"image": name}))
    asking.start()
    asking.join(30)  # it is told how far it is, and leaves
    gate.set()
    images = Images(host.bin_dir, host.config_path, host.state_dir)
    wait_for(lambda: name in images.names(), 20, "the image is there")
