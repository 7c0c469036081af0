"""Containers of a Docker engine under gVisor: execd is reached by the container's network. Skipped where either cannot be had."""

import json
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, PLAIN_USER, create, handles, nothing_left, ours, service_on, state
from lib.dockerd import engine as an_engine
from lib.engine_network import inside_network
from lib.interpreter import NAME, image_root
from lib.runsc import require_runsc
from lib.waiting import wait_for

SECURE = {"secure_runtime": {"type": "gvisor", "docker_runtime": "runsc"}}


@pytest.fixture(scope="module")
def engine():
    runsc = require_runsc()
    # Where an engine with a root of its own sees both.
    with tempfile.TemporaryDirectory(prefix="osb-runsc-", dir="/var/tmp") as place:
        program, settings = shutil.copy(runsc, place), Path(place, "daemon.json")
        # gVisor's own network does not start in an engine that has namespaces of its own.
        settings.write_text(json.dumps({"runtimes": {"runsc": {"path": str(program), "runtimeArgs": ["--network=host"]}}}))
        with an_engine("--config-file", str(settings)) as made, inside_network(made):
            yield made


@pytest.fixture(scope="module")
def service(bin_dir, engine):
    made = service_on(bin_dir, engine, sections=SECURE)
    try:
        yield made.start(timeout=60)
    finally:
        made.destroy()


@pytest.fixture
def api(service, engine):
    """Every test leaves nothing behind."""
    api = Api(service)
    with nothing_left(api, engine):
        yield api


def address_of(engine):
    (name,) = ours(engine)
    return engine.inspect(name)["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]


def test_its_kernel_is_another_one(api):
    sandbox = create(api)
    assert "gVisor" in api.run(sandbox, "dmesg").stdout
    text = api.call("GET", f"/sandboxes/{sandbox}/diagnostics/inspect").body.decode()
    assert "kernel of its own" in text and "  refused     snapshots: " in text


def test_commands_and_files(api):
    sandbox = create(api, env={"GIVEN": "here"})
    done = api.run(sandbox, "echo $GIVEN; id -u; echo bad >&2; exit 3")
    assert done.stdout.split() == ["here", "0"] and done.stderr == "bad" and done.exit_code == 3
    data = bytes(range(256)) * 5000
    api.upload(sandbox, "/root/data.bin", data)
    assert api.download(sandbox, "/root/data.bin") == data
    assert api.run(sandbox, "wc -c < /root/data.bin").stdout.strip() == str(len(data))


def test_the_user_of_the_image(api):
    sandbox = create(api, image={"uri": PLAIN_USER})
    assert api.run(sandbox, "id -u; pwd; echo $OF_IMAGE").stdout.split() == ["1000", "/home/plain", "yes"]


def test_a_port_on_loopback(api):
    sandbox = create(api, entrypoint=["httpd", "-f", "-p", "127.0.0.1:8000", "-h", "/etc"])
    reply = wait_for(lambda: answer(api, sandbox), 10, "the port answers")
    assert reply.body.startswith(b"root:x:0")
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/proxy/8001/"), 502, "BACKEND_CONNECTION_FAILED")


def answer(api, sandbox):
    reply = api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/passwd")
    assert reply.status == 200, reply
    return reply


def test_only_who_has_the_secret_is_let_in(api, service, engine):
    """Everybody on the engine's network reaches the port, and nobody learns how to use it."""
    sandbox = create(api, env={"SECRET": "s3cr3t"})
    (directory,) = handles(service)
    secret = (directory / "secret").read_text()
    assert (directory / "secret").stat().st_mode & 0o777 == 0o600 and not (directory / "boot/secret").exists()
    (name,) = ours(engine)
    said = json.dumps(engine.inspect(name))
    assert secret not in said and "s3cr3t" not in said
    assert api.run(sandbox, "ls /opt/opensandbox/boot").stdout == "execd"
    for words in (b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 200, f"a00000{'0' * 32}{secret}".encode()):
        with socket.create_connection((address_of(engine), 44772), 5) as stranger:
            stranger.settimeout(10)
            assert len(stranger.recv(32)) == 32, "a challenge"
            stranger.sendall(words)
            try:
                assert stranger.recv(100) == b"", "nobody is there"
            except ConnectionResetError:
                pass
    # Many who say nothing do not keep the server out.
    crowd = [socket.create_connection((address_of(engine), 44772), 5) for _ in range(200)]
    try:
        assert api.run(sandbox, "echo through").stdout == "through"
    finally:
        for one in crowd:
            one.close()


def test_pause_and_resume(api, service, engine):
    sandbox = create(api)
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    (name,) = ours(engine)
    assert engine.inspect(name)["State"]["Paused"]
    service.kill_server()
    state(api, sandbox, "Paused")
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    assert api.run(sandbox, "echo on").stdout == "on"


@pytest.mark.parametrize("killed", ["server", "both"])
def test_kill_9(api, service, killed):
    sandbox = create(api)
    api.upload(sandbox, "/root/kept", b"before")
    if killed == "server":
        service.kill_server()
    else:
        service.kill_both()
        service.start(timeout=60)
    assert api.status(sandbox)["state"] == "Running"
    assert api.run(sandbox, "cat /root/kept").stdout == "before"


def test_ends_say_why(api, service, engine):
    ended = create(api, entrypoint=["sh", "-c", "sleep 1; echo last words; exit 3"])
    assert "code 3" in state(api, ended, "Failed")["message"]
    assert b"last words" in api.call("GET", f"/sandboxes/{ended}/diagnostics/logs").body
    done = create(api, entrypoint=["sleep", "1"])
    state(api, done, "Terminated")
    for sandbox in (ended, done):
        api.delete(sandbox)
    # One that ends while nobody hears it.
    unheard = create(api, entrypoint=["sh", "-c", "sleep 2; exit 4"])
    service.kill_both()
    service.start(timeout=60)
    assert "code 4" in state(api, unheard, "Failed")["message"]
    api.delete(unheard)
    killed = create(api)
    (name,) = ours(engine)
    engine.docker("kill", name)
    assert "signal 9" in state(api, killed, "Failed")["message"]
    assert api.post_create(image={"uri": IMAGE}, entrypoint=["/no/such/program"]).status == 400


def test_expiry(api, engine):
    sandbox = create(api, timeout=60)
    api.renew(sandbox, 2)
    wait_for(lambda: not ours(engine), 20, "it expires")


def test_out_of_memory(api):
    """Counted with gVisor's own. The kernel that runs out of it is the container's, so the sandbox ends."""
    sandbox = create(api, entrypoint=["sh", "-c", "sleep 1; tail /dev/zero"], resourceLimits={"memory": "256Mi"})
    status = state(api, sandbox, "Failed", timeout=60)
    assert "memory" in status["message"] or "signal 9" in status["message"], status


def test_volumes(api):
    volume = {"volumes": [{"name": "data", "pvc": {"claimName": "shared", "deleteOnSandboxTermination": True}, "mountPath": "/data"}]}
    writer, reader = create(api, **volume), create(api, **volume)
    assert api.run(writer, "echo from-here > /data/a").exit_code == 0
    assert api.run(reader, "cat /data/a").stdout == "from-here"


def test_refusals(api, tmp_path):
    sandbox = create(api)
    reply = api.call("POST", f"/sandboxes/{sandbox}/snapshots", json={})
    assert reply.status in (400, 409, 501) and "kernel of its own" in reply.body.decode(), reply
    for fields, why in (
        ({"resourceLimits": {"pids": "100"}}, "no processes of this host"),
        ({"networkPolicy": {"defaultAction": "deny", "egress": []}}, "no policy holds"),
    ):
        reply = api.post_create(image={"uri": IMAGE}, **fields)
        assert reply.status in (400, 501) and why in reply.body.decode(), reply


def test_directories_of_the_host_are_refused(bin_dir, engine, tmp_path):
    tmp_path.chmod(0o755)
    made = service_on(bin_dir, engine, sections={**SECURE, "storage": {"allowed_host_paths": [str(tmp_path)]}})
    try:
        api = Api(made.start(timeout=60))
        volume = {"volumes": [{"name": "d", "host": {"path": str(tmp_path)}, "mountPath": "/d"}]}
        reply = api.post_create(image={"uri": IMAGE}, **volume)
        assert reply.status in (400, 501) and "use a named volume" in reply.body.decode(), reply
    finally:
        made.destroy()


def test_a_named_network(bin_dir, engine):
    engine.docker("network", "create", "--subnet", "10.78.0.0/24", "secured")
    made = service_on(bin_dir, engine, docker={"network_mode": "secured"}, sections=SECURE)
    try:
        api = Api(made.start(timeout=60))
        sandbox = create(api)
        assert "10.78.0." in api.run(sandbox, "ip -4 addr").stdout
        assert api.delete(sandbox).status == 204
    finally:
        made.destroy()
        engine.docker("network", "rm", "secured", check=False)


def test_pools(bin_dir, engine):
    made = service_on(bin_dir, engine, sections={**SECURE, "sandbox": {"pool_size": 1, "pool_image": IMAGE}})
    try:
        api = Api(made.start(timeout=60))

        def is_taken():
            """Nothing says when one is ready but that it is given away."""
            sandbox = create(api, env={"GIVEN": "here"})
            taken = "taken ready" in api.call("GET", f"/sandboxes/{sandbox}/diagnostics/events").body.decode()
            assert api.run(sandbox, "echo $GIVEN").stdout == "here"
            assert api.delete(sandbox).status == 204
            return taken

        wait_for(is_taken, 60, "one waits", interval=2)
        made.kill_server()
        wait_for(is_taken, 60, "one waits again", interval=2)
    finally:
        made.stop()
        if left := ours(engine):
            engine.docker("rm", "-f", *left)
        made.destroy()


def test_code_and_sessions_with_a_state(bin_dir, engine):
    engine.import_root(NAME, image_root())
    made = service_on(bin_dir, engine, sections=SECURE)
    try:
        api = Api(made.start(timeout=60))
        sandbox = create(api, image={"uri": NAME})
        context = api.execd(sandbox, "POST", "/code/context", json={"language": "python"}, timeout=60)
        assert context.status == 200, context
        for code, shown in (("kept = 6", ""), ("print(kept * 7)", "42")):
            body = {"code": code, "context": {"id": context.json["id"], "language": "python"}}
            reply = api.execd(sandbox, "POST", "/code", json=body, timeout=60)
            assert reply.status == 200 and shown in reply.body.decode(), reply
        session = api.execd(sandbox, "POST", "/session", json={}).json["session_id"]
        for command, shown in (("kept=6", ""), ("echo $((kept * 7))", "42")):
            reply = api.execd(sandbox, "POST", f"/session/{session}/run", json={"command": command})
            assert reply.status == 200 and shown in reply.body.decode(), reply
        assert api.delete(sandbox).status == 204
    finally:
        made.destroy()
        engine.docker("rmi", NAME, check=False)


def test_a_container_without_a_network_cannot_be_reached(bin_dir, engine):
    made = service_on(bin_dir, engine, docker={"network_mode": "none"}, sections=SECURE)
    try:
        assert made.ends() == 78
        assert "docker.network_mode" in made.log_tail() and Path(made.state_dir).parent.exists()
    finally:
        made.destroy()
