"""What runs is never taken for dead: not because it cannot be reached, not because its row is gone."""

import os
import shutil
import socket
from pathlib import Path

import pytest
from lib import leaks
from lib.api import Api, assert_envelope
from lib.waiting import wait_for


def test_a_paused_sandbox_with_a_full_queue_is_adopted(new_service):
    """As after hundreds of restarts that each left a connection to a frozen execd."""
    service = new_service()
    api = Api(service)
    name = api.create()["id"]
    assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
    waiting = []
    with pytest.raises(BlockingIOError):
        for _ in range(2000):
            one = socket.socket(socket.AF_UNIX)
            one.setblocking(False)
            waiting.append(one)
            one.connect(service.scope.socket(name, "control"))
    service.restart()
    assert api.status(name)["state"] == "Paused"
    for one in waiting:
        one.close()
    assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    assert api.run(name, "echo it lives").stdout == "it lives"
    assert api.delete(name).status == 204


def test_restarts_leave_nothing_in_the_queue_of_a_paused_sandbox(new_service):
    service = new_service()
    api = Api(service)
    name = api.create(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; exit 9"])["id"]
    assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
    for _ in range(3):
        service.kill_server()
    # Of the server that runs and of the dead ones: a connection that nobody accepted keeps both ends in the table.
    path = service.scope.socket(name, "control")
    lines = [line for line in Path("/proc/net/unix").read_text().splitlines() if line.endswith(os.path.realpath(path)) or line.endswith(path)]
    # One is the listener, one the accepted connection of the first server, which its frozen end still holds.
    assert len(lines) <= 2, lines
    assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    api.run(name, "touch /tmp/go", background=True)
    wait_for(lambda: api.status(name)["state"] == "Failed", 10, "its end is heard of")
    assert api.status(name)["message"].endswith("code 9")
    assert api.delete(name).status == 204


def test_without_the_run_directory_a_sandbox_is_unreachable_not_gone(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    names = [api.create()["id"] for _ in range(2)]
    assert api.ping(names[0])
    shutil.rmtree(os.path.realpath(service.state_dir / "run"))
    service.kill_server()  # and with it the connections that were open
    for name in names:
        assert api.status(name)["state"] == "Running"
        reply = api.execd(name, "GET", "/ping")
        assert_envelope(reply, 503, "SANDBOX::OVERLOADED")
        assert reply.all("Retry-After") == ["1"]
    pid = service.scope.sandbox_pids(names[1])[0]
    os.kill(pid, 9)
    wait_for(lambda: api.status(names[1])["state"] == "Failed", 10, "an end is still noticed")
    for name in names:
        assert api.delete(name).status == 204
    service.restart()
    assert api.run(api.create()["id"], "echo new ones work").stdout == "new ones work"
    for item in api.list_all():
        api.delete(item["id"])
    leaks.assert_nothing_leaked(service, baseline)


def database_files(directory):
    return [path for path in directory.iterdir() if path.is_file()]


def remove_database(service, copy):
    for path in database_files(service.state_dir / "db"):
        path.unlink()


def roll_back_database(service, copy):
    remove_database(service, copy)
    owner = (service.state_dir / "db").stat()
    for path in database_files(copy):
        shutil.copy2(path, service.state_dir / "db")
        os.chown(service.state_dir / "db" / path.name, owner.st_uid, owner.st_gid)


@pytest.mark.parametrize("damage", [remove_database, roll_back_database])
def test_a_lost_database_ends_nothing(new_service, tmp_path, damage):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    service.stop()
    shutil.copytree(service.state_dir / "db", tmp_path / "copy")
    service.start()
    first = api.create(metadata={"who": "first"}, timeout=600, env={"SECRET": "s"})["id"]
    second = api.create(timeout=...)["id"]
    ending = api.create(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; echo bye; exit 9"])["id"]
    spare = api.create()["id"]
    assert api.delete(spare).status == 204
    for name in (first, second, ending):
        api.run(name, "echo kept > /tmp/note")
    api.renew(first, 5000)
    assert api.call("PATCH", f"/sandboxes/{first}/metadata", json={"more": "m"}).status == 200
    before = {name: api.get(name) for name in (first, second, ending)}
    pids = {name: service.scope.sandbox_pids(name)[0] for name in before}
    service.stop()
    damage(service, tmp_path / "copy")
    service.start()
    assert {item["id"] for item in api.list_all()} == set(before)
    for name, was in before.items():
        now = api.get(name)
        for member in ("id", "metadata", "createdAt", "expiresAt", "entrypoint", "image"):
            assert now.get(member) == was.get(member), member
        assert now["status"]["state"] == "Running"
        assert service.scope.sandbox_pids(name)[0] == pids[name]
        assert api.run(name, "cat /tmp/note").stdout == "kept"
    assert "made it again from its record" in service.log_path.read_text()
    api.run(ending, "touch /tmp/go", background=True)
    wait_for(lambda: api.status(ending)["state"] == "Failed", 10, "its end is heard of")
    assert api.status(ending)["message"].endswith("code 9")
    for name in before:
        assert api.delete(name).status == 204
    leaks.assert_nothing_leaked(service, baseline)


def test_a_reused_directory_keeps_no_record_of_its_first_sandbox(new_service):
    service = new_service()
    api = Api(service)
    first = api.create()["id"]
    assert api.delete(first).status == 204
    second = api.create()["id"]
    records = list((service.state_dir / "sandboxes").glob("*/record")) + list((service.state_dir / "spares").glob("*/record"))
    assert [first in path.read_text() for path in records] == [False] * len(records)
    assert any(second in path.read_text() for path in records)
    assert api.delete(second).status == 204
    assert not list((service.state_dir / "spares").glob("*/record"))


def test_names_on_the_host_say_nothing_about_ids(new_service):
    service = new_service()
    api = Api(service)
    disk = {"disk": "64Mi"} if service.limits_disks else {}
    name = api.create(resourceLimits={**disk, "memory": "256Mi", "cpu": "500m"})["id"]
    plain = api.create()["id"]
    pid = service.scope.sandbox_pids(plain)[0]
    seen = [Path("/proc/net/unix").read_text(), Path("/proc/self/mountinfo").read_text(), Path(f"/proc/{pid}/cgroup").read_text()]
    seen += [path.read_text() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    seen += service.scope.cgroups()
    seen += [str(path) for path in service.state_dir.glob("*/*")]
    seen += [Path(f"/proc/{one}/cmdline").read_text() for one in (service.launcher_pid, service.server_pid(), pid)]
    for text in seen:
        assert name not in text and plain not in text
    assert api.run(plain, "echo $OPENSANDBOX_ID").stdout == plain
    for one in (name, plain):
        assert api.delete(one).status == 204
