"""A disk that is full or cannot be written: the service starts, answers, deletes, expires, and says what is wrong.

Each test has a state directory on a small file system of its own.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from lib import images as make
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.image_processes import osb
from lib.registries import MANIFEST, Made, fake_registry
from lib.small_disk import fill, free, small_disk
from lib.waiting import wait_for


class Marked:
    """A sandbox whose processes can be found whatever the host calls it."""

    def __init__(self, api, **fields):
        self.marker = f"marker-{uuid.uuid4().hex}"
        self.id = api.create(entrypoint=["sh", "-c", f"while sleep 1000; do :; done # {self.marker}"], **fields)["id"]
        wait_for(self.pids, 5, "the entry process is what it is to be")  # running is told before its exec has ended

    def pids(self):
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and self.marker.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                continue
        return found

    def ends(self, timeout=10):
        wait_for(lambda: not self.pids(), timeout, f"the processes of {self.id} end")


def answers(service):
    try:
        return rawhttp.request(service.address, "GET", "/version", timeout=5).status == 200
    except (OSError, rawhttp.Closed):
        return False


def wait_until_it_answers(service, timeout=15):
    wait_for(lambda: answers(service), timeout, "the service answers")


def health(service):
    return rawhttp.request(service.address, "GET", "/health", timeout=10)


def status_of(api, name):
    return api.call("GET", f"/sandboxes/{name}").status


def restart(service, how):
    """Ends a part of the service and waits for an answer, which /health would not be on a bad disk."""
    if how == "kill the server":
        old = service.server_pid()
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: service.server_pid(required=False) not in (None, old), 15, "another server")
    elif how == "kill the launcher":
        service.kill_launcher()
        service.spawn()
    else:
        service.stop()
        service.spawn()
    wait_until_it_answers(service)


@pytest.fixture
def on_small_disk(new_service):
    service = new_service(start=False)
    with small_disk(service, 64):
        service.start()
        api = Api(service)
        api.delete(api.create()["id"])
        yield service, api


class TestFull:
    @pytest.mark.parametrize("how", ["kill the server", "kill the launcher", "stop and start"])
    def test_a_restart_finds_everything_and_deletes_work(self, on_small_disk, how):
        service, api = on_small_disk
        sandboxes = [Marked(api) for _ in range(3)]
        fill(service.state_dir)
        for _ in range(2):
            restart(service, how)
            fill(service.state_dir)  # whatever the end of the last one gave back
        assert {item["id"]: item["status"]["state"] for item in api.list_all()} == {s.id: "Running" for s in sandboxes}
        assert api.run(sandboxes[0].id, "echo works").stdout == "works"
        for sandbox in sandboxes[:2]:
            assert api.delete(sandbox.id).status == 204
            sandbox.ends(1)
            assert status_of(api, sandbox.id) == 404
        fill(service.state_dir)
        restart(service, how)
        assert [item["id"] for item in api.list_all()] == [sandboxes[2].id]
        free(service.state_dir)
        assert api.delete(sandboxes[2].id).status == 204
        wait_for(service.is_healthy, 5, "it is healthy again")
        assert api.delete(api.create()["id"]).status == 204

    def test_expiry_ends_sandboxes(self, on_small_disk):
        service, api = on_small_disk
        sandboxes = [Marked(api) for _ in range(3)]
        due = max(api.renew(sandbox.id, 3) for sandbox in sandboxes)
        fill(service.state_dir)
        restart(service, "kill the server")
        for sandbox in sandboxes:
            sandbox.ends(max(0, due - time.monotonic()) + 5)
            wait_for(lambda name=sandbox.id: status_of(api, name) == 404, 5, "its row is gone")

    @pytest.mark.parametrize("how", ["kill the launcher", "stop and start"])
    def test_what_ended_while_nobody_watched(self, on_small_disk, how):
        service, api = on_small_disk
        ended, deleted, living = (Marked(api) for _ in range(3))
        service.stop() if how == "stop and start" else service.kill_both()
        for pid in ended.pids():
            os.kill(pid, signal.SIGKILL)
        fill(service.state_dir)
        service.spawn()
        wait_until_it_answers(service)
        wait_for(lambda: api.status(ended.id)["state"] == "Failed", 10, "its end is told")
        assert api.status(living.id)["state"] == "Running"
        for sandbox in (deleted, ended):
            assert api.delete(sandbox.id).status == 204
        deleted.ends(1)
        restart(service, "kill the server")
        assert [item["id"] for item in api.list_all()] == [living.id]

    def test_an_end_is_told(self, on_small_disk):
        service, api = on_small_disk
        name = api.create(entrypoint=["sh", "-c", "while ! test -e /tmp/go; do sleep 0.05; done; echo last; exit 7"])["id"]
        api.upload(name, "/tmp/going", b"")
        fill(service.state_dir)
        assert api.run(name, "mv /tmp/going /tmp/go").exit_code == 0
        wait_for(lambda: api.status(name)["state"] == "Failed", 10, "the end is seen")
        restart(service, "kill the server")
        assert api.status(name)["reason"] == "ENTRYPOINT_FAILED"
        assert api.delete(name).status == 204

    def test_health_and_creates_say_what_is_wrong(self, on_small_disk):
        service, api = on_small_disk
        fill(service.state_dir)
        body = assert_envelope(api.post_create(), 500, "SANDBOX::START_FAILED")
        assert "the disk of the service is full" in body["cause"] and "the disk of the service is full" in body["message"]
        assert "room" in body["remedy"]
        wait_for(lambda: health(service).status == 503, 3, "it says that it is not healthy")
        reply = health(service)
        assert reply.json["status"] == "unhealthy" and "no space" in reply.body.decode().lower(), reply
        free(service.state_dir)
        wait_for(service.is_healthy, 3, "it is healthy again")
        assert api.delete(api.create()["id"]).status == 204

    def test_the_log_of_a_command_does_not_fill_it(self, new_service):
        service = new_service(start=False)
        with small_disk(service, 192):
            api = Api(service.start())
            name = api.create()["id"]
            started = api.run(name, "head -c 300M /dev/zero | tr '\\0' x; echo the-end", background=True)
            command = next(event["text"] for event in started.events if event["type"] == "init")
            wait_for(lambda: not api.execd(name, "GET", f"/command/status/{command}").json["running"], 60, "it ends", interval=0.2)
            room = os.statvfs(service.state_dir)
            assert room.f_bavail * room.f_frsize > 64 << 20
            reply = api.execd(name, "GET", f"/command/{command}/logs?cursor=0")
            total = 300 * (1 << 20) + len("the-end\n")
            assert int(reply.header("EXECD-COMMANDS-TAIL-CURSOR")) == total, "offsets are those of the whole output"
            first = int(reply.header("EXECD-COMMANDS-HEAD-CURSOR"))
            assert first == total - (64 << 20) and len(reply.body) == total - first
            assert reply.body.endswith(b"xthe-end\n") and reply.body.startswith(b"xxx")
            tail = api.execd(name, "GET", f"/command/{command}/logs?cursor={total - 8}")
            assert tail.body == b"the-end\n" and tail.header("EXECD-COMMANDS-HEAD-CURSOR") is None
            assert api.delete(name).status == 204


class TestPulls:
    """Images that do not fit, on a disk that is small."""

    @pytest.fixture
    def host(self, new_service):
        service = new_service(start=False, registry={})
        with small_disk(service, 96):
            service.start()
            api = Api(service)
            api.delete(api.create()["id"])
            yield service, api

    @pytest.fixture
    def registry(self):
        with fake_registry() as one:
            yield one

    def test_one_that_says_so_is_refused_before_it_comes(self, host, registry):
        service, api = host
        image = Made([make.root_tar(), make.tar_bytes(lambda tar: make.add(tar, "file", "x"))])
        name = registry.add("large", image)
        manifest = json.loads(image.manifest)
        # The last two are more than a number can be when they are added up.
        for sizes in ([1 << 30], [1 << 62], [(1 << 63) - 1, (1 << 63) - 1]):
            for layer, size in zip(manifest["layers"], sizes):
                layer["size"] = size
            registry.documents["/v2/large/manifests/1"] = (MANIFEST, json.dumps(manifest).encode())
            found = assert_envelope(api.post_create(image={"uri": name}), 500, "IMAGE::NO_ROOM")
            assert "MB left" in found["cause"] and "osb images prune" in found["remedy"], found
        assert not [digest for digest in image.layers if registry.asked(digest)]
        assert api.delete(api.create()["id"]).status == 204

    def test_what_came_goes_when_the_disk_is_full(self, host, registry):
        """Somebody else takes the room meanwhile. Afterwards there is as much as before, and a sandbox can be made."""
        service, api = host
        image = Made([make.tar_bytes(lambda tar: make.add(tar, "file", os.urandom(20_000_000)))], compression="plain")
        name = registry.add("unlucky", image)
        path = f"/v2/unlucky/blobs/sha256:{image.layers[0]}"
        data, full = registry.blobs[path], threading.Event()
        half = len(data) // 2

        def wait_in_the_middle(handler, asked):
            if asked != path:
                return False
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            with suppress(OSError):
                handler.wfile.write(data[:half])
                full.wait(30)
                handler.wfile.write(data[half:])
            handler.close_connection = True
            return True

        registry.before = wait_in_the_middle
        directory = service.state_dir / "images/store/blobs"
        done = []
        caller = threading.Thread(target=lambda: done.append(osb(service, "images", "pull", name)))
        caller.start()
        try:
            blob = directory / image.layers[0]
            wait_for(lambda: blob.exists() and blob.stat().st_size == half, 20, "half of the layer is on disk")
            fill(service.state_dir)
        finally:
            full.set()
            caller.join(60)
        assert done[0].returncode == 1 and "IMAGE::NO_ROOM" in done[0].stderr, done[0]
        assert list(directory.iterdir()) == []
        wait_for(service.is_healthy, 10, "it is healthy again")
        assert api.delete(api.create()["id"]).status == 204


class TestReadOnly:
    """As a disk error leaves an ext4: every write is refused, and only a new mount can change that."""

    @pytest.fixture
    def broken(self, on_small_disk):
        service, api = on_small_disk
        sandboxes = [Marked(api) for _ in range(3)]
        due = api.renew(sandboxes[1].id, 5)
        subprocess.run(["sync", "-f", service.state_dir], check=True)  # an abort takes what is not on the disk along
        subprocess.run(["mount", "-o", "remount,abort", service.state_dir], check=True)
        return service, api, sandboxes, due

    def test_it_says_so_and_ends_what_has_to_end(self, broken):
        service, api, sandboxes, due = broken
        deleted, expiring, living = sandboxes
        wait_for(lambda: health(service).status == 503, 3, "it says that it is not healthy")
        assert health(service).json["status"] == "unhealthy"
        reply = api.delete(deleted.id)
        deleted.ends(2)
        # Its files are still there, and nobody says that they were not.
        assert reply.status == 500 and reply.json["code"] == "SANDBOX::DELETE_FAILED", reply
        assert api.status(deleted.id)["state"] == "Stopping"
        expiring.ends(max(0, due - time.monotonic()) + 5)
        body = assert_envelope(api.post_create(), 500, "SANDBOX::START_FAILED")
        assert "the disk of the service cannot be written" in body["cause"] and body["remedy"], body
        restart(service, "kill the server")
        assert living.pids() and api.status(living.id)["state"] == "Running"
        assert health(service).status == 503
        assert api.delete(living.id).status == 500
        living.ends(2)  # its mounts with it
        service.stop()
        # What is on the disk, on another one: the broken one stays so as long as any process of this machine sees it.
        shutil.copy(service.directory / "disk.img", service.directory / "repaired.img")
        subprocess.run(["umount", "-l", service.state_dir], check=True)
        subprocess.run(["mount", "-o", "loop", service.directory / "repaired.img", service.state_dir], check=True)
        service.start()
        wait_for(lambda: status_of(api, expiring.id) == 404, 10, "what had expired goes")
        for sandbox in (deleted, living):
            assert api.delete(sandbox.id).status in (204, 404)
        assert api.list_all() == []
