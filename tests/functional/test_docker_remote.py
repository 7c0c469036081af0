"""An engine on another host: it sees none of the service's files, and only its API is reached, by TLS. Skipped where no engine can be had.

What is imported is the same life that containers of an engine on this host have."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from lib import pools as of
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, PLAIN_USER, SLEEPER, create, handles, nothing_left, ours, state
from lib.engine_remote import HERE, PORT, apart
from lib.impostor import IMPOSTOR, import_impostor
from lib.runsc import require_runsc
from lib.waiting import wait_for
from lib.websocket import WebSocket
from test_docker import (  # noqa: F401
    test_a_port_on_loopback,
    test_docker_stop,
    test_ends_say_why,
    test_out_of_memory,
    test_pause_and_resume,
    test_refusals,
    test_the_published_client,
    test_the_user_of_the_image,
    test_what_a_container_is,
)
from test_docker_events import test_one_that_was_taken_over_paused, test_paused_and_resumed_by_somebody_else  # noqa: F401
from test_docker_recovery import (  # noqa: F401
    test_a_container_that_somebody_else_removes,
    test_a_pool_and_a_snapshot_after_kill_9,
    test_kill_9_of_the_server,
)
from test_docker_storage import (  # noqa: F401
    test_a_pool,
    test_a_snapshot_and_what_is_made_of_it,
    test_a_snapshot_of_one_that_is_paused,
    test_forks_changes_and_back_again,
    test_named_volumes,
    test_volumes_that_go_with_the_last_sandbox,
)


@pytest.fixture(scope="module")
def there():
    with apart("--live-restore") as made:
        yield made


@pytest.fixture(scope="module")
def engine(there):
    return there.engine


@pytest.fixture(scope="module")
def docker(bin_dir, there):
    """The service. The first create makes what stays: one volume with execd."""
    with there.service(bin_dir, sections={"storage": {"allowed_host_paths": ["/srv"]}}) as made:
        api = Api(made.start())
        assert api.delete(create(api)).status == 204
        yield made


@pytest.fixture
def api(docker, there):
    """Every test leaves nothing behind, and makes nothing that stays."""
    api = Api(docker)
    uploads = there.uploads()
    with nothing_left(api, there.engine):
        yield api
    assert there.uploads() == uploads, "execd is there already"


def inside(engine, *words):
    (name,) = ours(engine)
    return engine.docker("exec", name, *words).stdout.decode()


def test_a_directory_of_a_volume(api, request):
    """Before Docker 26 the directory would be named to the engine, and nothing here can tell what it has mounted."""
    wanted = {"name": "v", "mountPath": "/data", "pvc": {"claimName": "parts"}, "subPath": "a"}
    refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[wanted])
    why = ["no such directory"] if request.config.getoption("--engine") == "newer" else ["engine on another host", "Docker 26"]
    assert refused.status == 400 and all(part in refused.json["message"] for part in why), refused


def test_files_that_are_large(api):
    sandbox = create(api)
    data = bytes(range(256)) * 40000
    api.upload(sandbox, "/tmp/data", data)
    assert api.download(sandbox, "/tmp/data") == data
    assert len(api.run(sandbox, "yes | head -c 3000000").stdout) > 2_900_000


def test_a_read_only_root_and_no_network(bin_dir, there):
    with there.service(bin_dir, docker={"network_mode": "none"}) as service:
        api = Api(service.start())
        sandbox = create(api, image={"uri": PLAIN_USER}, extensions={"opensandbox.extensions.read-only-root": "true"})
        assert api.run(sandbox, "touch /home/plain/x || ip -4 addr | grep -c inet").stdout == "1"
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(there.engine), 20, "no container is left")


def test_a_terminal(api):
    sandbox = create(api)
    terminal = api.execd(sandbox, "POST", "/pty", json={"command": "sh"}).json["session_id"]
    with WebSocket(api.address, f"/v1/sandboxes/{sandbox}/proxy/44772/pty/{terminal}/ws") as stream:
        assert stream.status == 101
        stream.type("echo $((40 + 2))\n")
        seen = b""
        while b"42" not in seen:
            seen += stream.frame()[1]


def raw(api, sandbox, port):
    connection = rawhttp.Connection(api.address)
    connection.send_request("GET", f"/sandboxes/{sandbox}/proxy/{port}", [("Connection", "Upgrade"), ("Upgrade", "opensandbox-tcp")])
    assert connection.read_head().status == 101
    return connection


def test_whoever_has_said_all_still_hears(api):
    sandbox = create(api, entrypoint=["sh", "-c", "nc -l -p 9001 -e sh -c 'cat; echo all'; sleep 1000"])
    wait_for(lambda: api.run(sandbox, "netstat -ltn | grep -c :9001").stdout == "1", 10, "it listens")
    with raw(api, sandbox, 9001) as connection:
        connection.send(b"said\n")
        connection.socket.shutdown(socket.SHUT_WR)
        assert connection.read_to_end() == b"said\nall\n"


def test_a_hundred_at_once(api):
    sandbox = create(api)
    said, failed = [], []

    def one(number):
        try:
            said.append(api.run(sandbox, f"echo {number}").stdout)
        except Exception as error:  # noqa: BLE001  (shown below)
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and sorted(said, key=int) == [str(number) for number in range(100)], failed[:1]


def test_the_secret_is_nowhere_but_with_both(api, docker, engine):
    """Neither in what the engine tells nor inside; and whoever connects inside without it gets nothing."""
    sandbox = create(api)
    (directory,) = handles(docker)
    secret = (directory / "secret").read_text()
    assert (directory / "secret").stat().st_mode & 0o777 == 0o600
    (name,) = ours(engine)
    told = json.dumps(engine.inspect(name)) + str(engine.docker("logs", name))
    for exec_id in engine.inspect(name)["ExecIDs"] or []:
        told += json.dumps(engine.get(f"/exec/{exec_id}/json"))
    told += inside(engine, "sh", "-c", "cat /proc/*/cmdline /proc/*/environ /proc/mounts 2>/dev/null; ls -l /proc/1/fd/ /opt/opensandbox/boot; find / -xdev -type f | grep secret; true")
    assert len(secret) == 64 and secret not in told
    assert not any(engine.inspect(name)["NetworkSettings"]["Ports"].values()), "nothing is published"
    stranger = inside(engine, "sh", "-c", "(echo; printf 'GET /ping HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n%0100d' 0) | nc 127.0.0.1 44772")
    assert len(stranger) == 32 and "HTTP" not in stranger, stranger
    assert inside(engine, "netstat", "-ltn").split().count("127.0.0.1:44772") == 1, "and only on loopback"
    assert api.run(sandbox, "echo on").stdout == "on"


def test_a_secret_that_is_lost(api, docker):
    """As a power cut may leave it: it runs on, and whoever uses it is told why nobody reaches it."""
    sandbox = create(api)
    (directory,) = handles(docker)
    docker.kill_both()
    (directory / "secret").unlink()
    docker.start()
    wait_for(lambda: "no secret of it; delete the sandbox" in (reply := api.execd(sandbox, "GET", "/ping")).json["message"] and reply.status == 503, 20, "it says so")
    assert api.status(sandbox)["state"] == "Running"


def test_programs_that_end_its_connections(api, engine):
    """The same user may kill what the engine has started in there. That is no end of the sandbox."""
    sandbox = create(api)
    assert api.run(sandbox, "echo on").stdout == "on"
    joins = "grep -al -e '[-]-join' /proc/[0-9]*/cmdline | cut -d/ -f3"
    assert len(inside(engine, "sh", "-c", joins).split()) >= 2, "control and the one that is kept"
    inside(engine, "sh", "-c", f"kill -9 $({joins})")
    assert wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 10, "it is reached again")
    assert api.status(sandbox)["state"] == "Running"
    wait_for(lambda: len(inside(engine, "sh", "-c", joins).split()) >= 2, 10, "control is there again")


def test_programs_that_remove_what_is_around_them(api, engine):
    """Its work directory, and the names of its users: what the engine starts in there needs neither."""
    engine.docker("create", "--name", "of-another", IMAGE, "true")
    engine.docker("commit", "-c", "WORKDIR /work", "-c", "USER root", "of-another", "bare:1")
    engine.docker("rm", "of-another")
    sandbox = create(api, image={"uri": "bare:1"}, entrypoint=["sh", "-c", "cd /tmp; echo page > page; rm -rf /work /etc; httpd -f -p 127.0.0.1:8000"])
    for _ in range(2):  # each on a connection of its own
        assert wait_for(lambda: api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/page").body == b"page\n", 10, "the port answers")
    assert api.run(sandbox, "pwd; ls /", cwd="/tmp").stdout.split()[0] == "/tmp"
    assert api.delete(sandbox).status == 204
    wait_for(lambda: not ours(engine), 20, "no container is left")
    engine.docker("rmi", "bare:1")


def test_a_way_that_is_cut(api, docker, there):
    """The engine is away for this server, and its containers run on. Nothing is taken for an end, and ends are heard later."""
    way = there.way
    sandbox, ending = create(api), create(api, entrypoint=["sh", "-c", "while ! test -e /tmp/go; do sleep 0.1; done; exit 5"])
    api.run(sandbox, "echo kept > /tmp/file")
    api.run(ending, "(sleep 3; touch /tmp/go) &")
    way.cut()
    try:
        wait_for(lambda: not docker.is_healthy(), 10, "the health check says so")
        assert api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER).status == 503
        reply = api.execd(sandbox, "GET", "/ping")
        assert reply.status == 503 and "the Docker engine does not answer" in reply.json["message"], reply
        time.sleep(4)  # the entry process of one ends meanwhile
        for one in (sandbox, ending):
            assert api.status(one)["state"] == "Running", "nobody knows otherwise"
    finally:
        way.mend()
    wait_for(docker.is_healthy, 20, "the service is healthy again")
    assert api.run(sandbox, "cat /tmp/file").stdout == "kept"
    assert "code 5" in state(api, ending, "Failed")["message"]
    # A server that starts while the engine is away finds both afterwards.
    way.cut()
    try:
        docker.kill_both()
        docker.spawn()
        wait_for(lambda: answers(api, sandbox), 30, "the server answers")
        assert api.status(sandbox)["state"] == "Running"
    finally:
        way.mend()
    wait_for(docker.is_healthy, 30, "the service is healthy again")
    wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 20, "it is reached again")
    assert api.run(sandbox, "cat /tmp/file").stdout == "kept"


def test_those_that_wait_when_the_way_was_cut(api, docker, there, engine):
    """Nobody speaks to them until they are claimed, and then on another connection."""
    of.make(api, shape=of.template(image={"uri": IMAGE}), least=2, most=2, pool_max=4)
    of.filled(api, 2)
    waiting = set(ours(engine))
    there.way.cut()
    try:
        wait_for(lambda: not docker.is_healthy(), 10, "the health check says so")
    finally:
        there.way.mend()
    wait_for(docker.is_healthy, 20, "the service is healthy again")
    for _ in range(2):
        claimed = of.claim(api, entrypoint=SLEEPER)
        assert f"sandbox-{claimed}" in waiting
        assert api.run(claimed, "echo on").stdout == "on"
    of.filled(api, 2)
    # While it is away a claim says so, and those that wait go on waiting.
    there.way.cut()
    try:
        reply = of.post_claim(api, entrypoint=SLEEPER)
        assert reply.status == 503 and "the Docker engine" in reply.json["message"], reply
    finally:
        there.way.mend()
    wait_for(docker.is_healthy, 20, "the service is healthy again")
    of.filled(api, 2)
    of.delete(api)


def test_an_answer_in_the_middle_of_which_the_way_is_cut(api, docker, there):
    """One without a length ends with its connection: half of it is not the whole."""
    program = "printf 'HTTP/1.0 200 OK\\r\\n\\r\\nhalf'; sleep 1000"
    sandbox = create(api, entrypoint=["sh", "-c", f'nc -l -p 9001 -e sh -c "{program}"; sleep 1000'])
    wait_for(lambda: api.run(sandbox, "netstat -ltn | grep -c :9001").stdout == "1", 10, "it listens")
    with rawhttp.Connection(api.address) as connection:
        connection.send_request("GET", f"/sandboxes/{sandbox}/proxy/9001/")
        assert connection.read_head().status == 200
        seen = bytes(connection.buffer)
        while b"half" not in seen:
            seen += connection.socket.recv(4096)
        there.way.cut()
        try:
            with suppress(ConnectionResetError):
                while not seen.endswith(b"0\r\n\r\n") and (more := connection.socket.recv(4096)):
                    seen += more
        finally:
            there.way.mend()
    assert not seen.endswith(b"0\r\n\r\n"), seen
    wait_for(docker.is_healthy, 20, "the service is healthy again")


def test_a_way_on_which_nothing_moves(api, docker, there):
    """An engine that is late is no port on which nobody listens."""
    sandbox = create(api)
    # So that there are connections to the engine which are open and idle: on a new one nobody would get as far.
    with ThreadPoolExecutor(6) as several:
        assert {reply.status for reply in several.map(lambda _: api.call("GET", "/volumes"), range(6))} == {200}
    there.way.most = 0
    try:
        reply = api.call("GET", f"/sandboxes/{sandbox}/proxy/9/")
        assert reply.status == 503 and "the Docker engine" in reply.json["message"], reply
    finally:
        there.way.most = None
        there.way.cut()
        there.way.mend()
    wait_for(docker.is_healthy, 30, "the service is healthy again")


def answers(api, sandbox):
    try:
        return api.call("GET", f"/sandboxes/{sandbox}").status == 200
    except OSError:
        return False


def test_kill_9_of_the_engine(api, docker, engine):
    """With live-restore nobody ends."""
    sandbox = create(api)
    api.run(sandbox, "echo kept > /tmp/file")
    engine.kill()
    wait_for(lambda: not docker.is_healthy(), 10, "the health check says so")
    assert api.status(sandbox)["state"] == "Running"
    engine.start()
    wait_for(docker.is_healthy, 30, "the service is healthy again")
    assert api.run(sandbox, "cat /tmp/file").stdout == "kept"
    (name,) = ours(engine)
    engine.docker("kill", name)
    assert "signal 9" in state(api, sandbox, "Failed")["message"], "its end is heard by connections that were made again"


def test_execd_is_brought_once(bin_dir, there):
    """However many creates come at once, and by however many servers one after the other."""
    with there.service(bin_dir) as service:
        before, uploads = there.boot_volumes(), there.uploads()
        api = Api(service.start())
        made = []
        threads = [threading.Thread(target=lambda: made.append(create(api))) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 5
        service.kill_both()
        service.start()
        made.append(create(api))
        assert there.uploads() == uploads + 1
        (volume,) = there.boot_volumes() - before
        for sandbox in made:
            assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(there.engine), 20, "no container is left")
        # Somebody cleans up. Whatever an engine makes in its place is not believed.
        there.engine.docker("volume", "rm", volume)
        there.engine.docker("volume", "create", volume)
        sandbox = create(api)
        assert api.run(sandbox, "echo on").stdout == "on" and there.uploads() == uploads + 2
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(there.engine), 20, "no container is left")
        there.engine.docker("volume", "rm", volume)
        forget(there, before)


def forget(there, before):
    """What a service that is gone for good leaves behind."""
    wait_for(lambda: not ours(there.engine), 20, "no container is left")
    for volume in there.boot_volumes() - before:
        there.engine.docker("volume", "rm", volume)


def test_an_image_that_hides_where_execd_is_brought(bin_dir, there):
    """The first create of a service: execd comes into the volume all the same, and the others have it."""
    import_impostor(there.engine)
    with there.service(bin_dir) as service:
        before = there.boot_volumes()
        api = Api(service.start())
        reply = api.post_create(image={"uri": IMPOSTOR}, entrypoint=SLEEPER)
        assert reply.status == 500 and "execd" in reply.json["message"], reply
        sandbox = create(api)
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.delete(sandbox).status == 204
        forget(there, before)
    there.engine.docker("rmi", IMPOSTOR)


def test_a_volume_that_has_lost_execd(bin_dir, there):
    """It is believed until a create finds nothing in it."""
    with there.service(bin_dir) as service:
        before = there.boot_volumes()
        api = Api(service.start())
        assert api.delete(create(api)).status == 204
        (spoilt,) = there.boot_volumes() - before
        there.engine.run_inside("rm", json.loads(there.engine.docker("volume", "inspect", spoilt).stdout)[0]["Mountpoint"] + "/execd")
        reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
        assert reply.status == 500 and "execd" in reply.json["message"], reply
        sandbox = create(api)
        assert api.run(sandbox, "echo on").stdout == "on"
        assert spoilt not in there.boot_volumes()
        assert api.delete(sandbox).status == 204
        forget(there, before)


def test_kill_9_while_execd_is_brought(bin_dir, there):
    """What is half there is not believed, and goes."""
    with there.service(bin_dir) as service:
        before = there.boot_volumes()
        api = Api(service.start())
        there.way.most, there.way.carried = 1 << 20, 0
        try:
            creating = threading.Thread(target=lambda: attempt(api))
            creating.start()
            wait_for(lambda: there.way.carried > 1 << 20, 20, "a part of it is on its way")
            (half,) = there.boot_volumes() - before
            assert any(name.startswith("opensandbox-filler-") for name in there.engine.containers())
            service.kill_both()
            creating.join()
        finally:
            there.way.most = None
            there.way.cut()
            there.way.mend()
        service.start()
        sandbox = create(api)
        assert api.run(sandbox, "echo on").stdout == "on"
        wait_for(lambda: len(there.boot_volumes() - before) == 1, 20, "there is one")
        assert half not in there.boot_volumes()
        assert not any(name.startswith("opensandbox-filler-") for name in there.engine.containers())
        assert api.delete(sandbox).status == 204
        forget(there, before)


def attempt(api):
    try:
        api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
    except (OSError, rawhttp.Closed):
        pass


def test_another_version_of_execd(bin_dir, there):
    """The volume of the one before goes with its last container."""
    with there.service(bin_dir) as service:
        before = there.boot_volumes()
        api = Api(service.start())
        sandbox = create(api)
        (old,) = there.boot_volumes() - before
        service.kill_both()
        note = service.state_dir / "db/docker/boot-volume"
        assert note.read_text() == old
        note.write_text("opensandbox-execd-0123456789abcdef-01234567")  # as if it were of another one
        service.start()
        assert api.run(sandbox, "echo on").stdout == "on"
        again = create(api)
        (new,) = there.boot_volumes() - before - {old}
        assert api.delete(sandbox).status == 204
        wait_for(lambda: old not in there.boot_volumes(), 20, "it has gone with its container")
        assert api.run(again, "echo on").stdout == "on"
        assert api.delete(again).status == 204
        assert new in there.boot_volumes()
        forget(there, before)


def test_what_is_refused(api, there):
    host = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[{"name": "v", "host": {"path": "/srv"}, "mountPath": "/v"}])
    assert host.status == 400 and "another host" in host.json["message"], host
    policy = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, networkPolicy={"defaultAction": "deny"})
    assert policy.status == 400 and "egress.image" in policy.json["message"], policy
    assert not ours(there.engine)
    for near in ("/opt/opensandbox/boot", "/opt/opensandbox/boot/execd", "/opt"):
        over = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[{"name": "v", "pvc": {"claimName": "v"}, "mountPath": near}])
        assert over.status == 400 and "volumes[0].mountPath" in over.json["message"] and "execd" in over.json["message"], over
    sandbox = create(api)
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/proxy/9/"), 502, "BACKEND_CONNECTION_FAILED")


@pytest.mark.parametrize("wrong", [{"network_mode": "host"}, {"direct": True}, {"adopt": True}])
def test_configurations_that_are_refused(bin_dir, there, wrong):
    with there.service(bin_dir, docker=wrong) as service:
        assert service.ends() == 78
        assert f"docker.{next(iter(wrong))}" in service.log_tail() and "another host" in service.log_tail()


def test_one_that_is_said_to_be_here(bin_dir, there):
    """Without docker.remote its files are looked for, and the create says what to do."""
    with there.service(bin_dir, docker={"remote": False}) as service:
        api = Api(service.start())
        reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
        assert reply.status == 500 and "docker.remote = true" in reply.json["message"], reply
        assert not ours(there.engine)


def test_in_the_clear(bin_dir, there):
    with there.service(bin_dir, docker={"host": f"tcp://{HERE}:{PORT}", "tls_ca": "", "tls_cert": "", "tls_key": ""}) as service:
        assert service.ends() == 78
        assert "without TLS everybody on the way could use the engine" in service.log_tail()


def test_a_kernel_of_its_own(bin_dir, tmp_path):
    """gVisor on that host: the same way leads to it, and it needs no network."""
    runsc = require_runsc()
    settings = tmp_path / "daemon.json"
    settings.write_text(json.dumps({"runtimes": {"runsc": {"path": str(runsc), "runtimeArgs": ["--network=host"]}}}))
    secure = {"secure_runtime": {"type": "gvisor", "docker_runtime": "runsc"}}
    # The newer engine has a root of its own, without these files.
    with apart("--config-file", str(settings), kind="own") as there, there.service(bin_dir, docker={"network_mode": "none"}, sections=secure) as service:
        api = Api(service.start(timeout=60))
        sandbox = create(api, entrypoint=["httpd", "-f", "-p", "127.0.0.1:8000", "-h", "/etc"])
        assert "gVisor" in api.run(sandbox, "dmesg").stdout
        assert wait_for(lambda: api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/passwd").body.startswith(b"root:"), 10, "the port answers")
        service.kill_both()
        service.start()
        assert api.run(sandbox, "echo on").stdout == "on"
        ended = create(api, entrypoint=["sh", "-c", "sleep 1; exit 3"])
        assert "code 3" in state(api, ended, "Failed", timeout=40)["message"]
        for one in (sandbox, ended):
            assert api.delete(one).status == 204
        wait_for(lambda: not ours(there.engine), 20, "no container is left")
