"""An engine whose own disk is full: what cannot be made says so and leaves nothing, what is there goes on, and room is all it takes."""

import os
import subprocess

import pytest
from lib import images as make
from lib import snapshots
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, SLEEPER, EngineRegistry, create, new_engine, nothing_left, ours, service_on

BIG = "big:1"


@pytest.fixture(scope="module")
def engine():
    """What it keeps is on a small disk, in its own mounts."""
    made = new_engine()
    try:
        made.run_inside("mkdir", "-p", made.directory / "data")
        made.run_inside("mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", made.directory / "data")
        yield made.start().import_images()
    finally:
        made.destroy()


@pytest.fixture
def api(bin_dir, engine):
    service = service_on(bin_dir, engine, registry={"pull_policy": "if-not-present"})
    try:
        api = Api(service.start())
        # What the engine is given once, for all sandboxes, is there.
        assert api.delete(create(api)).status == 204
        with nothing_left(api, engine):
            yield api
    finally:
        service.destroy()


@pytest.fixture
def registry(engine):
    with EngineRegistry(engine) as made:
        yield made


def fill(engine):
    """To its last byte; the way back."""
    filler = engine.directory / "data/filler"
    done = subprocess.run([*engine.inside(), "dd", "if=/dev/zero", f"of={filler}", "bs=4k"], capture_output=True, text=True, check=False)
    assert "No space left on device" in done.stderr, done
    return lambda: engine.run_inside("rm", filler)


def test_it_is_full(api, engine, registry):
    root = make.tar_bytes(lambda tar: (make.fill_root(tar), make.add(tar, "big", os.urandom(8 << 20))))
    engine.docker("load", input=make.docker_archive([root], tags=[BIG]))
    pulled = {"image": {"uri": registry.push("private/big", BIG), "auth": registry.auth}, "entrypoint": SLEEPER}
    engine.docker("rmi", BIG)
    sandbox = create(api)
    api.run(sandbox, "echo kept > /tmp/file")
    images, containers = engine.images(), ours(engine)

    make_room = fill(engine)
    try:
        said = assert_envelope(api.post_create(**pulled), 500, "IMAGE::NO_ROOM")
        assert "the Docker engine's own disk is full" in said["message"] and "no space left on device" in said["message"], said
        assert "docker system prune" in said["remedy"], said
        said = assert_envelope(api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER), 500, "SANDBOX::START_FAILED")
        assert "the Docker engine's own disk is full" in said["message"], said
        reply = api.call("POST", f"/sandboxes/{sandbox}/snapshots", json={})
        assert reply.status == 202, reply
        failed = snapshots.settled(api, reply.json["id"])["status"]
        assert failed["state"] == "Failed" and "the Docker engine's own disk is full" in failed["message"], failed
        assert api.call("DELETE", f"/snapshots/{reply.json['id']}").status == 204
        assert api.run(sandbox, "cat /tmp/file").stdout == "kept"
        assert (engine.images(), ours(engine)) == (images, containers), "nothing is left of what could not be made"
    finally:
        make_room()

    one = api.create(**pulled)["id"]
    copy = snapshots.restore(api, snapshots.make(api, sandbox)["id"], entrypoint=SLEEPER)
    assert api.run(copy, "cat /tmp/file").stdout == "kept" and api.run(one, "echo on").stdout == "on"
    for each in (one, copy, sandbox):
        assert api.delete(each).status == 204
    engine.docker("rmi", pulled["image"]["uri"])
