"""Sandboxes as containers of a Docker engine. Skipped where none is installed."""

from datetime import timedelta

import pytest
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, PLAIN_USER, Dockerd, require_docker
from lib.service import Service
from lib.waiting import wait_for

SLEEPER = ["sleep", "1000"]


@pytest.fixture(scope="module")
def engine():
    require_docker()
    made = Dockerd()
    try:
        made.start().import_images()
        yield made
    finally:
        made.destroy()


def docker_service(bin_dir, engine, **sections):
    return Service(
        bin_dir, sections={"runtime": {"type": "docker"}, "docker": {"socket": str(engine.socket)}, **sections}, registry={"pull_policy": "never"}
    )


@pytest.fixture(scope="module")
def docker(bin_dir, engine):
    made = docker_service(bin_dir, engine)
    try:
        yield made.start()
    finally:
        made.destroy()


@pytest.fixture
def api(docker, engine):
    """Every test leaves no container and no file behind."""
    api = Api(docker)
    yield api
    for sandbox in api.list_all():
        assert api.delete(sandbox["id"]).status == 204
    wait_for(lambda: not ours(engine), 20, "no container is left")
    wait_for(lambda: not handles(docker), 10, "no directory is left")


def ours(engine):
    return [name for name in engine.containers() if name.startswith("sandbox-")]


def handles(service):
    return [path for path in (service.state_dir / "db/docker").iterdir() if path.is_dir()]


def create(api, **fields):
    return api.create(**{"image": {"uri": IMAGE}, "entrypoint": SLEEPER, **fields})["id"]


def state(api, sandbox, wanted, timeout=20):
    def reached():
        status = api.status(sandbox)
        assert status["state"] == wanted, status
        return status

    return wait_for(reached, timeout, f"{sandbox} is {wanted}")


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
    assert (host["Memory"], host["NanoCpus"], host["PidsLimit"]) == (64 << 20, 500_000_000, 100)
    assert host["SecurityOpt"] == ["no-new-privileges:true"] and "NET_RAW" in host["CapDrop"] and not host["PortBindings"]
    said = str(container)
    assert sandbox not in said and "s3cr3t" not in said, "whoever sees the engine learns neither the id nor the variables"
    assert api.run(sandbox, "echo $SECRET").stdout == "s3cr3t"
    assert api.run(sandbox, "ls /opt/opensandbox/boot").stdout == "execd", "nothing inside leads to execd's sockets"
    assert "Read-only" in api.run(sandbox, "touch /opt/opensandbox/boot/x").stderr


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


def test_out_of_memory(api):
    sandbox = create(api, entrypoint=["sh", "-c", "sleep 1; tail /dev/zero"], resourceLimits={"memory": "64Mi"})
    assert "memory" in state(api, sandbox, "Failed")["message"]


def test_refusals(api):
    missing = api.post_create(image={"uri": "nobody/has-this:1"}, entrypoint=SLEEPER)
    assert missing.status in (400, 404) and "IMAGE" in missing.json["code"], missing
    wrong = api.post_create(image={"uri": IMAGE}, entrypoint=["/bin/no-such-program"])
    assert wrong.status == 400 and "no-such-program" in wrong.json["message"], wrong
    policy = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, networkPolicy={"defaultAction": "deny", "egress": []})
    assert policy.status == 400 and "egress process" in policy.json["message"], policy
    disk = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, resourceLimits={"disk": "1Gi"})
    assert disk.status == 400 and "storage drivers" in disk.json["message"], disk
    assert not api.list_all()


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


def api_is_down(service):
    return not service.is_healthy()


def test_a_lost_database(bin_dir, engine):
    service = docker_service(bin_dir, engine)
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


def test_an_engine_that_is_away(bin_dir):
    """Nothing is claimed that is not so: it is unknown, then known again."""
    require_docker()
    engine = Dockerd()
    service = None
    try:
        engine.start().import_images()
        service = docker_service(bin_dir, engine)
        api = Api(service.start())
        sandbox = create(api)
        engine.kill()
        refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
        assert refused.status == 503, refused
        wait_for(lambda: not service.is_healthy(), 10, "the health check says so")
        assert api.status(sandbox)["state"] == "Running"
        assert api.run(sandbox, "echo on").stdout == "on", "its container runs on, and needs no engine to be reached"
        engine.start()  # which ends the containers of the one before
        wait_for(service.is_healthy, 30, "the service is healthy again")
        state(api, sandbox, "Failed", timeout=40)
        assert api.delete(sandbox).status == 204
        again = create(api)
        assert api.run(again, "echo on").stdout == "on"
        assert api.delete(again).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        if service:
            service.destroy()
        engine.destroy()
