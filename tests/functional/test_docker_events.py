"""What others do to containers with the engine's own client: states say so, and nothing hangs. Skipped where no engine can be had."""

import time

import pytest
from lib import dockerd
from lib import pools as of
from lib import snapshots
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, SLEEPER, create, nothing_left, ours, service_on, state
from lib.waiting import wait_for


@pytest.fixture
def api(docker, engine):
    """Every test leaves nothing behind."""
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


def kinds(api, sandbox):
    reply = api.call("GET", f"/sandboxes/{sandbox}/diagnostics/events")
    assert reply.status == 200, reply
    words = [line.split()[1] for line in reply.body.decode().splitlines()]
    return [word for word in words if word in ("Paused", "Resumed", "Trouble")]


def test_paused_and_resumed_by_somebody_else(api, engine):
    sandbox, other = create(api), create(api)
    name = f"sandbox-{sandbox}"
    engine.docker("pause", name)
    state(api, sandbox, "Paused")
    assert [one["status"]["state"] for one in api.list_all() if one["id"] == sandbox] == ["Paused"]
    began = time.monotonic()
    assert_envelope(api.execd(sandbox, "POST", "/command", json={"command": "echo on"}), 409, "SANDBOX::PAUSED")
    assert time.monotonic() - began < 5, "nobody waits for what stands still"
    assert_envelope(api.call("POST", f"/sandboxes/{sandbox}/pause"), 409, "SANDBOX::NOT_RUNNING")
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    assert not engine.inspect(name)["State"]["Paused"]
    assert api.run(sandbox, "echo on").stdout == "on"
    # The other way round.
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    engine.docker("unpause", name)
    state(api, sandbox, "Running")
    assert api.run(sandbox, "echo on").stdout == "on"
    assert kinds(api, sandbox) == ["Paused", "Resumed"] * 2
    assert api.status(other)["state"] == "Running" and not kinds(api, other)


def test_one_that_was_taken_over_paused(api, docker, engine):
    sandbox = create(api, entrypoint=["sh", "-c", "while [ ! -e /tmp/end ]; do sleep 0.1; done; exit 7"])
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    docker.kill_both()
    docker.start()
    assert api.status(sandbox)["state"] == "Paused"
    engine.docker("unpause", f"sandbox-{sandbox}")
    state(api, sandbox, "Running")
    api.run(sandbox, "touch /tmp/end")
    assert "code 7" in state(api, sandbox, "Failed")["message"], "execd is heard again"


def test_one_that_waits_and_was_paused_is_nobodys(api, engine):
    """A claim gets another: nothing in that one would answer."""
    of.make(api, shape=of.template(image={"uri": IMAGE}), least=2, most=2)
    of.filled(api, 2)
    witness = create(api)
    name = next(name for name in ours(engine) if name != f"sandbox-{witness}")
    for one in (name, f"sandbox-{witness}"):
        engine.docker("pause", one)
    state(api, witness, "Paused")  # the other was told before it
    began = time.monotonic()
    for _ in range(2):
        claimed = of.claim(api, entrypoint=SLEEPER)
        assert f"sandbox-{claimed}" != name
        assert api.run(claimed, "echo on").stdout == "on"
    assert time.monotonic() - began < 15, "nobody waits for what stands still"
    wait_for(lambda: name not in ours(engine), 20, "it is removed")
    of.delete(api)


def test_what_the_server_does_itself_is_no_news(api, engine):
    """An engine pauses what it commits."""
    sandbox = create(api)
    snapshots.make(api, sandbox)
    for verb, reached in (("pause", "Paused"), ("resume", "Running")):
        assert api.call("POST", f"/sandboxes/{sandbox}/{verb}").status == 202
        state(api, sandbox, reached)
    assert api.run(sandbox, "echo on").stdout == "on"
    assert kinds(api, sandbox) == ["Paused", "Resumed"]


def test_after_the_engine_was_away(bin_dir):
    """What happened while nobody listened is seen by one look at all."""
    with dockerd.engine("--live-restore") as engine:
        service = service_on(bin_dir, engine)
        try:
            api = Api(service.start())
            sandboxes = [create(api) for _ in range(3)]
            wait_for(lambda: ours(engine), 10, "they are there")
            engine.kill()
            wait_for(lambda: not service.is_healthy(), 10, "the service has seen it")
            time.sleep(2)  # the next attempt is a while away then
            engine.start()
            for sandbox in sandboxes[:2]:
                engine.docker("pause", f"sandbox-{sandbox}")
            for sandbox in sandboxes[:2]:
                state(api, sandbox, "Paused")
            assert api.status(sandboxes[2])["state"] == "Running"
            for sandbox in sandboxes[:2]:
                assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
                assert api.run(sandbox, "echo on").stdout == "on"
            for sandbox in sandboxes:
                assert api.delete(sandbox).status == 204
        finally:
            service.destroy()
