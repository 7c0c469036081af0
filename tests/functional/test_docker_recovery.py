"""The Docker runtime when something goes away: the server, the engine, a container. Nothing is lost that exists, nothing claimed that
does not, and nothing is left."""

import os
import shutil
import signal
import time

import pytest
from lib import dockerd
from lib import pools as of
from lib import snapshots
from lib.api import Api
from lib.dockerd import IMAGE, SLEEPER, create, handles, nothing_left, ours, service_on, state
from lib.waiting import wait_for


@pytest.fixture
def api(docker, engine):
    """Every test leaves nothing behind."""
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


def test_kill_9_of_the_server(api, docker, engine):
    running, paused = create(api), create(api)
    api.run(running, "echo kept > /tmp/file")
    assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
    state(api, paused, "Paused")
    ending = create(api, entrypoint=["sh", "-c", "sleep 2; exit 7"])
    docker.kill_both()
    stranger = "11111111-1111-4111-8111-111111111111"
    engine.docker("run", "-d", "--name", f"sandbox-{stranger}", "--label", "opensandbox.io/owner=somebody",
                  "--label", f"opensandbox.io/handle={stranger}", IMAGE, "sleep", "1000")  # fmt: skip
    try:
        wait_for(lambda: api_is_down(docker), 5, "the service is down")
        docker.start()
        assert api.run(running, "cat /tmp/file").stdout == "kept"
        assert api.status(paused)["state"] == "Paused"
        assert "7" in state(api, ending, "Failed")["message"], "an end that nobody heard is told again"
        assert api.call("POST", f"/sandboxes/{paused}/resume").status == 202
        state(api, paused, "Running")
        assert api.run(paused, "echo on").stdout == "on"
        docker.kill_server()
        assert api.run(running, "cat /tmp/file").stdout == "kept"
        assert engine.inspect(f"sandbox-{stranger}")["State"]["Running"], "what others have made is theirs"
    finally:
        engine.docker("rm", "-f", f"sandbox-{stranger}", check=False)


def test_a_container_that_is_stopped_while_nobody_listens(api, docker, engine):
    """Nobody has heard execd; the engine knows the code, which is the entry process's."""
    wanted = {create(api, entrypoint=["sh", "-c", f"trap 'exit {code}' TERM; while :; do sleep 0.1; done"]): code for code in (0, 3)}
    for sandbox in wanted:
        api.run(sandbox, "echo on")
    docker.kill_both()
    engine.docker("stop", *ours(engine))
    docker.start()
    for sandbox, code in wanted.items():
        assert f"code {code}" in state(api, sandbox, "Failed" if code else "Terminated")["message"]


def api_is_down(service):
    return not service.is_healthy()


def test_a_lost_database(bin_dir, engine):
    service = service_on(bin_dir, engine)
    try:
        api = Api(service.start())
        sandbox = create(api, metadata={"team": "red"})
        service.kill_both()
        for file in (service.state_dir / "db").glob("opensandbox.db*"):
            file.unlink()
        service.start()
        assert api.get(sandbox)["metadata"] == {"team": "red"}
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not handles(service), 20, "it is gone")
    finally:
        service.destroy()


def test_a_pool_and_a_snapshot_after_kill_9(api, docker, engine):
    """What waits is found again and claimed; a snapshot is there, and what was made from one that is gone lives on."""
    of.make(api, shape=of.template(image={"uri": IMAGE}), least=1, most=1)
    of.filled(api)
    source = create(api)
    api.run(source, "echo kept > /tmp/file")
    snapshot = snapshots.make(api, source)["id"]
    restored = snapshots.restore(api, snapshot, entrypoint=SLEEPER)
    before = set(ours(engine))
    docker.kill_both()
    docker.start()
    assert api.run(restored, "cat /tmp/file").stdout == "kept"
    of.filled(api)
    claimed = of.claim(api, entrypoint=SLEEPER)
    assert api.run(claimed, "echo on").stdout == "on"
    assert before <= set(ours(engine)), "no container was made in the place of another"
    another = snapshots.restore(api, snapshot, entrypoint=SLEEPER)
    assert api.run(another, "cat /tmp/file").stdout == "kept"
    of.delete(api)


def test_a_container_that_somebody_else_removes(api, engine):
    lost, kept = create(api), create(api)
    (name,) = [name for name in ours(engine) if engine.inspect(name)["Id"] == container_of(api, engine, lost)]
    engine.docker("rm", "-f", name)
    status = state(api, lost, "Failed")
    assert any(word in status["message"] for word in ("removed", "signal 9")), status
    assert api.run(kept, "echo on").stdout == "on"


def container_of(api, engine, sandbox):
    api.run(sandbox, f"echo {sandbox} > /tmp/mark")
    for name in ours(engine):
        if engine.docker("exec", name, "cat", "/tmp/mark", check=False).stdout.decode().strip() == sandbox:
            return engine.inspect(name)["Id"]
    raise AssertionError("no container has the mark")


def test_a_start_that_fails_says_why(bin_dir, engine):
    """The native runtime is there already when the directory of containers turns out to be none."""
    service = service_on(bin_dir, engine)
    try:
        service.start().stop()
        place = service.state_dir / "db/docker"
        shutil.rmtree(place)
        place.touch()
        service.spawn()
        wait_for(lambda: f"{place}: Not a directory" in service.log_tail(), 10, "the log has the reason")
        assert "signal=" not in service.log_tail(), "the server does not abort"
    finally:
        service.destroy()


def test_an_engine_that_hangs(api, docker, engine, pytestconfig):
    """Without an answer for longer than anybody waits for one (with --long 30 seconds): creates wait or are refused with their reason, sandboxes are used as before, none is lost."""
    sandbox = create(api, env={"SECRET": "kept"})
    os.kill(engine.process.pid, signal.SIGSTOP)
    try:
        until = time.monotonic() + (30 if pytestconfig.getoption("--long") else 12)
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.status(sandbox)["state"] == "Running"
        assert api.call("PATCH", f"/sandboxes/{sandbox}/metadata", json={"told": "meanwhile"}).status == 200
        record = docker.state_dir / "db/docker" / docker.scope.handle(sandbox) / "record"
        wait_for(lambda: "meanwhile" in record.read_text(), 5, "what a lost database would need is written without the engine")
        assert "SECRET" in record.read_text()
        refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, timeout_seconds=60)
        assert refused.status in (503, 504), refused
        assert "engine" in refused.json["message"], refused
        while time.monotonic() < until:
            assert api.run(sandbox, "echo on").stdout == "on"
            assert api.status(sandbox)["state"] == "Running"
            time.sleep(1)
    finally:
        os.kill(engine.process.pid, signal.SIGCONT)
    wait_for(docker.is_healthy, 30, "the service is healthy again")
    assert api.run(sandbox, "echo on").stdout == "on"
    again = create(api)
    assert api.run(again, "echo on").stdout == "on"
    wait_for(lambda: len(ours(engine)) == 2, 40, "what a refused create may have begun is gone")


def test_an_engine_that_is_away(bin_dir):
    """Nothing is claimed that is not so: it is unknown, then known again."""
    with dockerd.engine() as engine:
        service = service_on(bin_dir, engine)
        try:
            api = Api(service.start())
            sandbox, ended = create(api), create(api)
            engine.kill()
            refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
            assert refused.status == 503, refused
            wait_for(lambda: not service.is_healthy(), 10, "the health check says so")
            assert api.status(sandbox)["state"] == "Running"
            assert api.run(sandbox, "echo on").stdout == "on", "its container runs on, and needs no engine to be reached"
            # A server that starts meanwhile claims nothing either.
            service.kill_both()
            service.spawn()
            wait_for(lambda: answers(api, sandbox), 30, "the server answers while the engine is away")
            assert api.status(sandbox)["state"] == "Running", "nobody knows otherwise"
            engine.start()  # which ends the containers of the one before
            wait_for(service.is_healthy, 30, "the service is healthy again")
            for one in (sandbox, ended):
                wait_for(lambda: api.status(one)["state"] in ("Terminated", "Failed"), 40, "it has ended")
                assert api.status(one)["reason"] != "LOST", "the engine knows how it ended them: by SIGTERM, or worse"
                assert api.delete(one).status == 204
            again = create(api)
            assert api.run(again, "echo on").stdout == "on"
            assert api.delete(again).status == 204
            wait_for(lambda: not ours(engine), 20, "no container is left")
            wait_for(lambda: not handles(service), 10, "no directory is left")
        finally:
            service.destroy()


def answers(api, sandbox):
    try:
        return api.call("GET", f"/sandboxes/{sandbox}").status == 200
    except OSError:
        return False


def test_an_engine_that_keeps_its_containers(bin_dir):
    """With live-restore a kill -9 of the engine ends nobody, also when the server is killed with it."""
    with dockerd.engine("--live-restore") as engine:
        service = service_on(bin_dir, engine)
        try:
            api = Api(service.start())
            sandbox, paused = create(api), create(api)
            api.run(sandbox, "echo kept > /tmp/file")
            assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
            state(api, paused, "Paused")
            engine.kill()
            engine.start()
            wait_for(service.is_healthy, 30, "the service is healthy again")
            assert api.run(sandbox, "cat /tmp/file").stdout == "kept"
            engine.kill()
            service.kill_both()
            engine.start()
            service.start()
            assert api.run(sandbox, "cat /tmp/file").stdout == "kept"
            assert api.status(paused)["state"] == "Paused"
            assert api.call("POST", f"/sandboxes/{paused}/resume").status == 202
            state(api, paused, "Running")
            assert api.run(paused, "echo on").stdout == "on"
            # Its end is heard by the connections that were made again.
            name = [name for name in ours(engine) if engine.inspect(name)["Id"] == container_of(api, engine, sandbox)][0]
            engine.docker("kill", name)
            assert "signal 9" in state(api, sandbox, "Failed")["message"]
            for one in (sandbox, paused):
                assert api.delete(one).status == 204
            wait_for(lambda: not ours(engine), 20, "no container is left")
        finally:
            service.destroy()
