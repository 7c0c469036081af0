"""Sandboxes as containers of a Docker engine. Skipped where none can be had or started."""

import os
import time
from datetime import timedelta

import pytest
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, PLAIN_USER, SLEEPER, create, nothing_left, ours, service_on, state
from lib.engine_between import Between
from lib.waiting import wait_for


@pytest.fixture
def api(docker, engine):
    """Every test leaves nothing behind."""
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


def test_the_published_client(api, docker):
    opensandbox = pytest.importorskip("opensandbox")
    from opensandbox.config import ConnectionConfigSync

    config = ConnectionConfigSync(domain=f"{docker.address[0]}:{docker.address[1]}")
    options = {"connection_config": config, "timeout": timedelta(minutes=5), "entrypoint": SLEEPER, "env": {"GIVEN": "here"}}
    with opensandbox.SandboxSync.create(IMAGE, **options) as sandbox:
        assert sandbox.commands.run("echo hello $GIVEN").logs.stdout[0].text == "hello here"
        sandbox.files.write_file("/tmp/a.txt", "text")
        assert sandbox.files.read_file("/tmp/a.txt") == "text"
        sandbox.kill()


def test_what_a_container_is(api, engine):
    sandbox = create(api, env={"SECRET": "s3cr3t"}, metadata={"team": "red"}, resourceLimits={"memory": "64Mi", "cpu": "500m", "pids": "100"})
    (name,) = ours(engine)
    container = engine.inspect(name)
    host = container["HostConfig"]
    assert (host["Memory"], host["NanoCpus"] / 1e9, host["PidsLimit"]) == (64 << 20, 0.5, 100)
    assert not engine.tells_image_ids or container["Config"]["Image"] == IMAGE, "docker ps shows what the client asked for"
    assert [option.removesuffix("=true").removesuffix(":true") for option in host["SecurityOpt"]] == ["no-new-privileges"] and "NET_RAW" in host["CapDrop"] and not host["PortBindings"]
    assert container["Config"]["Labels"]["team"] == "red"
    said = str(container)
    assert "s3cr3t" not in said, "whoever sees the engine does not learn the variables"
    assert api.run(sandbox, "echo $SECRET").stdout == "s3cr3t"
    assert api.run(sandbox, "ls /opt/opensandbox/boot").stdout == "execd", "nothing inside leads to execd's sockets"
    assert "Read-only" in api.run(sandbox, "touch /opt/opensandbox/boot/x").stderr


def test_a_name_that_means_another_image_by_then(bin_dir, engine):
    """Nobody gets another image than the one that was looked at."""
    engine.docker("tag", IMAGE, "moving:1")
    wanted = engine.inspect(IMAGE)["Id"]
    with Between(engine, "/containers/create", lambda: engine.docker("tag", PLAIN_USER, "moving:1")) as between:
        service = service_on(bin_dir, engine, docker={"socket": str(between.socket)})
        try:
            api = Api(service.start())
            sandbox = create(api, image={"uri": "moving:1"})
            assert between.then is None and engine.inspect("moving:1")["Id"] != wanted, "it has moved meanwhile"
            assert api.run(sandbox, "id -u; echo $OF_IMAGE").stdout.split() == ["0"]
            (name,) = ours(engine)
            assert name == f"sandbox-{sandbox}" and (not engine.tells_image_ids or engine.inspect(name)["Image"] == wanted)
            assert api.delete(sandbox).status == 204
            wait_for(lambda: not ours(engine), 20, "no container is left")
        finally:
            service.destroy()
            engine.docker("rmi", "moving:1", check=False)


def test_the_user_of_the_image(api):
    sandbox = create(api, image={"uri": PLAIN_USER})
    assert api.run(sandbox, "id -u; pwd; echo $OF_IMAGE $HOME").stdout.split() == ["1000", "/home/plain", "yes", "/home/plain"]


def test_a_port_on_loopback(api):
    sandbox = create(api, entrypoint=["httpd", "-f", "-p", "127.0.0.1:8000", "-h", "/etc"])
    for _ in range(20):  # more than are handed over at once
        reply = wait_for(lambda: answer(api, sandbox), 10, "the port answers")
        assert reply.body.startswith(b"root:x:0")
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/proxy/8001/"), 502, "BACKEND_CONNECTION_FAILED")


def answer(api, sandbox):
    reply = api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/passwd")
    return reply if reply.status == 200 else None


def test_a_network_that_is_not_there(bin_dir, engine):
    """It is the operator's to make, and the create says which; no image is said to be missing."""
    service = service_on(bin_dir, engine, docker={"network_mode": "Apart-later"})
    try:
        api = Api(service.start())
        refused = assert_envelope(api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER), 500, "SANDBOX::START_FAILED")
        assert "docker.network_mode" in refused["message"] and "docker network create Apart-later" in refused["message"], refused
        assert ours(engine) == []
        engine.docker("network", "create", "Apart-later")
        sandbox = create(api)
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.delete(sandbox).status == 204
    finally:
        service.destroy()
        engine.docker("network", "rm", "Apart-later", check=False)


def test_networks(bin_dir, engine):
    """One that somebody has made, and none at all: both are served alike, by the server's own endpoints."""
    engine.docker("network", "create", "--subnet", "10.77.0.0/24", "apart")
    services = [service_on(bin_dir, engine, docker={"network_mode": mode}) for mode in ("apart", "none")]
    try:
        for service, address in zip(services, (True, False)):
            api = Api(service.start())
            sandbox = create(api, entrypoint=["httpd", "-f", "-p", "8000", "-h", "/etc"])
            assert ("10.77.0." in api.run(sandbox, "ip -4 addr").stdout) is address
            endpoint = api.call("GET", f"/sandboxes/{sandbox}/endpoints/8000").json["endpoint"]
            assert endpoint == f"{service.address[0]}:{service.address[1]}/v1/sandboxes/{sandbox}/proxy/8000", endpoint
            wait_for(lambda: answer(api, sandbox), 10, "the port answers")
            assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        for service in services:
            service.destroy()
        if left := ours(engine):
            engine.docker("rm", "-f", *left)
        engine.docker("network", "rm", "apart", check=False)


def test_pause_and_resume(api, engine):
    sandbox = create(api)
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    (name,) = ours(engine)
    assert engine.inspect(name)["State"]["Paused"]
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    assert api.run(sandbox, "echo on").stdout == "on"


def test_ends_say_why(api, engine):
    ended = create(api, entrypoint=["sh", "-c", "sleep 1; echo last words; exit 3"])
    status = state(api, ended, "Failed")
    assert "code 3" in status["message"], status
    assert b"last words" in api.call("GET", f"/sandboxes/{ended}/diagnostics/logs").body
    done = create(api, entrypoint=["sleep", "1"])
    state(api, done, "Terminated")
    for sandbox in (ended, done):
        api.delete(sandbox)
    killed = create(api)
    (name,) = [one for one in ours(engine) if engine.inspect(one)["State"]["Running"]]
    engine.docker("kill", name)
    assert "signal 9" in state(api, killed, "Failed")["message"]
    api.delete(killed)
    removed = create(api)
    (name,) = ours(engine)
    engine.docker("rm", "-f", name)
    assert any(word in state(api, removed, "Failed")["message"] for word in ("removed", "signal 9")), "whichever is seen first"


TRAPS = "trap 'echo told; exit {}' {}; while :; do sleep 0.1; done"


@pytest.mark.parametrize(
    "entry, wanted, words",
    [
        (["sh", "-c", TRAPS.format(0, "TERM")], "Terminated", "code 0"),
        (["sh", "-c", TRAPS.format(3, "TERM")], "Failed", "code 3"),
        (["tail", "-f", "/dev/null"], "Terminated", "code 0"),
        (["sh", "-c", "sleep 1000; true"], "Terminated", "code 0"),
        (["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], "Failed", "SIGKILL"),
    ],
    ids=["traps it", "fails by it", "idle", "ends by it", "ignores it"],
)
def test_docker_stop(api, engine, entry, wanted, words):
    """The entry process gets the signal, and a while; what it says then is heard. Without a word it would be killed after 30 s."""
    sandbox = create(api, entrypoint=entry)
    (name,) = ours(engine)
    api.run(sandbox, "echo on")  # the entry process runs by now
    began = time.monotonic()
    engine.docker("stop", "-t", "30", name)
    assert time.monotonic() - began < 20
    status = state(api, sandbox, wanted)
    assert words in status["message"] and "stopped from outside" in status["message"], status
    assert engine.inspect(name)["State"]["ExitCode"] == {"code 0": 0, "code 3": 3, "SIGKILL": 137}[words]
    if "told" in entry[-1]:
        assert b"told" in api.call("GET", f"/sandboxes/{sandbox}/diagnostics/logs").body


@pytest.mark.parametrize("signal", ["SIGUSR1", "SIGWINCH", "SIGRTMIN+3"])
def test_an_image_that_is_stopped_by_another_signal(api, engine, signal):
    """Web servers and service managers have such. It reaches the entry process as SIGTERM does."""
    number = {"SIGUSR1": 10, "SIGWINCH": 28, "SIGRTMIN+3": 37}[signal]
    changes = () if engine.commits_stop_signals else ("--change", f"STOPSIGNAL {signal}")
    engine.docker("create", "--name", "odd", "--stop-signal", signal, IMAGE, "true")
    engine.docker("commit", *changes, "odd", "stopped:1")
    engine.docker("rm", "odd")
    try:
        # Others do nothing, whoever sends them.
        sandbox = create(api, image={"uri": "stopped:1"}, entrypoint=["sh", "-c", f"trap 'echo told; exit 0' {number}; while :; do sleep 0.1; done"])
        (name,) = ours(engine)
        assert api.run(sandbox, f"kill -{number} 1; kill -USR2 1; echo on").stdout == "on"
        engine.docker("kill", "-s", "USR2", name)
        assert api.run(sandbox, "echo on").stdout == "on"
        began = time.monotonic()
        engine.docker("stop", "-t", "30", name)
        assert time.monotonic() - began < 20
        assert "stopped from outside" in state(api, sandbox, "Terminated")["message"]
        assert b"told" in api.call("GET", f"/sandboxes/{sandbox}/diagnostics/logs").body
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        engine.docker("rmi", "stopped:1")


def test_out_of_memory(api):
    sandbox = create(api, entrypoint=["sh", "-c", "sleep 1; tail /dev/zero"], resourceLimits={"memory": "64Mi"})
    assert "memory" in state(api, sandbox, "Failed")["message"]


def test_refusals(api):
    missing = api.post_create(image={"uri": "nobody/has-this:1"}, entrypoint=SLEEPER)
    assert missing.status in (400, 404) and "IMAGE" in missing.json["code"], missing
    wrong = api.post_create(image={"uri": IMAGE}, entrypoint=["/bin/no-such-program"])
    assert wrong.status == 400 and "no-such-program" in wrong.json["message"], wrong
    io = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, resourceLimits={"io-read": "1Gi"})
    assert io.status == 400 and "by the device" in io.json["message"], io
    assert not api.list_all()


def test_the_hosts_network(bin_dir, engine):
    """What the operator asks for, and warned of: the engine's own network, no policies. execd takes no port of it."""
    service = service_on(bin_dir, engine, docker={"network_mode": "host"})
    try:
        api = Api(service.start())
        assert "sandboxes get the host's own network" in service.log_tail()
        first, second = create(api, entrypoint=["httpd", "-f", "-p", "127.0.0.1:8000", "-h", "/etc"]), create(api)
        assert api.run(second, "readlink /proc/self/ns/net").stdout == os.readlink(f"/proc/{engine.holder.pid}/ns/net")
        wait_for(lambda: answer(api, first), 10, "the port answers")
        assert api.run(second, "wget -q -O - http://127.0.0.1:8000/passwd").stdout.startswith("root:x:0"), "loopback is shared"
        assert "44772" not in api.run(second, "netstat -ltn").stdout
        policy = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, networkPolicy={"defaultAction": "deny"})
        assert policy.status == 400 and "host's own network" in policy.json["message"], policy
        for sandbox in (first, second):
            assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        service.destroy()
