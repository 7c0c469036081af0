"""Podman behind the API of Docker: a life on it, and what is left out of that API there."""

import pytest
from lib import dockerd
from lib.api import Api
from lib.dockerd import create, nothing_left, ours, service_on, state


@pytest.fixture(scope="module")
def podman():
    with dockerd.engine(kind="podman") as made:
        yield made


@pytest.fixture
def api(bin_dir, podman):
    service = service_on(bin_dir, podman)
    try:
        api = Api(service.start(timeout=60))
        with nothing_left(api, podman):
            yield api
    finally:
        service.destroy()


@pytest.mark.long
def test_a_life(api, podman):
    sandbox = create(api, env={"GIVEN": "here"}, resourceLimits={"memory": "64Mi", "pids": "100"})
    assert api.run(sandbox, "echo hello $GIVEN").stdout == "hello here"
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    api.service.kill_server(timeout=60)
    assert api.run(sandbox, "echo on").stdout == "on"
    ended = create(api, entrypoint=["sh", "-c", "sleep 1; exit 3"])
    assert "code 3" in state(api, ended, "Failed")["message"]
    assert api.delete(ended).status == 204
    assert "not settled" not in api.service.log_tail(), "a container that has ended is no error"
    podman.docker("kill", *ours(podman))
    assert "signal 9" in state(api, sandbox, "Failed")["message"]


@pytest.mark.long
def test_a_volume_has_its_labels(api, podman):
    """Made with the container it would have none: nobody could use it again, and it would stay."""
    claim = {"name": "v", "pvc": {"claimName": "kept", "deleteOnSandboxTermination": True}, "mountPath": "/data"}
    first = create(api, volumes=[claim])
    api.run(first, "echo yes > /data/file")
    second = create(api, volumes=[claim])
    assert api.run(second, "cat /data/file").stdout == "yes"
    for one in (first, second):
        assert api.delete(one).status == 204
    assert "kept" not in podman.volumes()
