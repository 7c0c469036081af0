"""Another engine that answers at the same address. What it does not have is not lost. Skipped where no engine can be had."""

from contextlib import contextmanager

import pytest
from lib import dockerd, snapshots
from lib.api import Api
from lib.docker_engine import Dockerd
from lib.dockerd import IMAGE, SLEEPER, create, ours, service_on, state
from lib.waiting import wait_for

WORDS = "another Docker engine answers"


@contextmanager
def service_with_two(bin_dir):
    """An engine with the service's sandboxes, and one that can be started in its place."""
    if dockerd.CHOSEN[0] != "own":
        pytest.skip("its engines have ids of their own kind")
    with dockerd.engine("--live-restore", kind="own") as first:
        second = Dockerd("--live-restore")
        # Debian 12's engines have one id for the whole host: it is kept there.
        second.run_inside("mount", "-t", "tmpfs", "tmpfs", "/etc/docker")
        second.start().import_images()
        assert second.get("/info")["ID"] != first.get("/info")["ID"]
        second.kill()
        second.socket = first.socket
        service = service_on(bin_dir, first)
        try:
            yield service, first, second
        finally:
            service.destroy()
            if second.process.poll() is None:
                second.kill()
            if first.process.poll() is not None:  # to remove what it has; a second one of it would be nobody's
                first.start()
            second.destroy()


def test_it_says_nothing_of_our_sandboxes(bin_dir):
    with service_with_two(bin_dir) as (service, first, second):
        api = Api(service.start())
        sandbox, paused = create(api), create(api)
        api.run(sandbox, "echo kept > /tmp/file")
        assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
        state(api, paused, "Paused")
        first.kill()
        second.start()
        wait_for(lambda: WORDS in refusal(api), 20, "creates say so")
        assert "db/docker/engine" in refusal(api), "and what to do"
        assert [api.status(one)["state"] for one in (sandbox, paused)] == ["Running", "Paused"]
        assert api.run(sandbox, "cat /tmp/file").stdout == "kept", "what this server holds can be used"
        # Nor does a server believe it that has just been started.
        service.kill_both()
        service.spawn()
        wait_for(lambda: WORDS in refusal(api), 20, "creates say so")
        reply = api.call("POST", f"/sandboxes/{paused}/resume")
        assert reply.status == 503 and WORDS in reply.json["message"], reply
        assert [api.status(one)["state"] for one in (sandbox, paused)] == ["Running", "Paused"]
        assert not ours(second)
        second.kill()
        first.start()
        wait_for(service.is_healthy, 30, "the service is healthy again")
        assert wait_for(lambda: api.run(sandbox, "cat /tmp/file").stdout == "kept", 20, "it can be used")
        assert api.call("POST", f"/sandboxes/{paused}/resume").status == 202
        state(api, paused, "Running")
        for one in (sandbox, paused):
            assert api.delete(one).status == 204
        wait_for(lambda: not ours(first), 20, "no container is left")


def test_the_operator_gives_them_up(bin_dir):
    with service_with_two(bin_dir) as (service, first, second):
        api = Api(service.start())
        sandbox = create(api, entrypoint=["sleep", "100000"])
        first.docker("kill", f"sandbox-{sandbox}")
        state(api, sandbox, "Failed")
        assert api.delete(sandbox).status == 204
        sandbox = create(api)
        first.kill()
        service.kill_both()
        second.start()
        service.spawn()
        wait_for(lambda: WORDS in refusal(api), 20, "creates say so")
        (service.state_dir / "db/docker/engine").unlink()
        wait_for(service.is_healthy, 20, "it is believed")
        assert "not there" in state(api, sandbox, "Failed")["message"]
        assert api.delete(sandbox).status == 204
        other = create(api)
        assert ours(second) == [f"sandbox-{other}"]
        assert api.delete(other).status == 204


def test_without_anything_to_lose(bin_dir):
    """Then it is the service's engine from now on; a snapshot is something to lose."""
    with service_with_two(bin_dir) as (service, first, second):
        api = Api(service.start())
        sandbox = create(api)
        made = snapshots.make(api, sandbox)
        assert api.delete(sandbox).status == 204
        first.kill()
        second.start()
        wait_for(lambda: WORDS in refusal(api), 20, "creates say so")
        second.kill()
        first.start()
        wait_for(service.is_healthy, 30, "the service is healthy again")
        assert api.call("DELETE", f"/snapshots/{made['id']}").status == 204
        first.kill()
        second.start()
        wait_for(service.is_healthy, 30, "the service is healthy again")
        assert api.delete(create(api)).status == 204


def refusal(api):
    try:
        reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
    except OSError:
        return ""  # the server is not there yet
    assert reply.status == 503, reply
    return reply.json["message"]
