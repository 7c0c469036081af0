"""Debian 13's engine (API 1.45): the heart of a life on it, and what only newer engines do. All of test_docker*.py on it: --engine newer."""

import pytest
from lib import dockerd, snapshots
from lib.api import Api
from lib.dockerd import SLEEPER, create, nothing_left, ours, service_on, state


@pytest.fixture(scope="module")
def newer():
    with dockerd.engine(kind="newer") as made:
        yield made


@pytest.fixture(scope="module")
def on_newer(bin_dir, newer):
    made = service_on(bin_dir, newer)
    try:
        yield made.start()
    finally:
        made.destroy()


@pytest.fixture
def api(on_newer, newer):
    api = Api(on_newer)
    with nothing_left(api, newer):
        yield api


def test_a_life(api, on_newer, newer):
    assert newer.docker("version", "--format", "{{.Server.APIVersion}}").stdout.decode().strip() == "1.45"
    sandbox = create(api, env={"GIVEN": "here"})
    assert api.run(sandbox, "echo hello $GIVEN").stdout == "hello here"
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    on_newer.kill_server()
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    api.run(sandbox, "echo kept > /tmp/file")
    restored = snapshots.restore(api, snapshots.make(api, sandbox)["id"], entrypoint=SLEEPER)
    assert api.run(restored, "cat /tmp/file").stdout == "kept"
    newer.docker("kill", *ours(newer))
    for one in (sandbox, restored):
        assert "signal 9" in state(api, one, "Failed")["message"]


def volume(name, path, **fields):
    return {"name": "v", "pvc": {"claimName": name, "deleteOnSandboxTermination": True}, "mountPath": path, **fields}


def test_a_directory_of_a_volume(api):
    whole = create(api, volumes=[volume("shared", "/data")])
    api.run(whole, "mkdir -p /data/inner/deep && echo yes > /data/inner/deep/file && ln -s /etc /data/out")
    part = create(api, volumes=[volume("shared", "/part", subPath="inner/deep")])
    assert api.run(part, "cat /part/file; ls /part").stdout.split() == ["yes", "file"]
    api.run(part, "echo more > /part/written")
    assert api.run(whole, "cat /data/inner/deep/written").stdout == "more"
    # A link in the volume leads nowhere, and nobody is told where the engine keeps it.
    for wrong in ("out", "missing"):
        reply = api.post_create(image={"uri": dockerd.IMAGE}, entrypoint=SLEEPER, volumes=[volume("shared", "/part", subPath=wrong)])
        assert reply.status == 400 and "no such directory" in reply.json["message"] and "/_data" not in reply.json["message"], reply
    assert len(api.list_all()) == 2
