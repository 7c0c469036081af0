"""Sandboxes that an earlier version started belong to the new one: under their ids, with all that runs in them.

The earlier version is built once, outside the repository (tests/lib/old_build); without that these tests are skipped, and with
--long it is made.
"""

import json
import time

import pytest
from lib import leaks
from lib.api import Api
from lib.service import Service
from lib.waiting import wait_for
from lib.websocket import BINARY, WebSocket

class Terminal:
    def __init__(self, api, sandbox, session, since=None):
        query = "" if since is None else f"?since={since}"
        self.socket = WebSocket(api.address, f"/v1/sandboxes/{sandbox}/proxy/44772/pty/{session}/ws{query}")
        assert self.socket.status == 101
        self.output = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def until(self, text):
        while text not in self.output:
            opcode, data = self.socket.frame()
            if opcode == BINARY and data[0] in (1, 2, 3):
                self.output += data[1:]


def cell(api, sandbox, code, context):
    reply = api.execd(sandbox, "POST", "/code", json={"code": code, "context": context}, timeout=60)
    assert reply.status == 200, reply
    events = [json.loads(frame) for frame in reply.body.split(b"\n\n") if frame]
    assert not [event for event in events if event["type"] == "error"], events
    return "".join(event.get("text", "") for event in events if event["type"] == "stdout")


class Before:
    """What runs while the old version does, and what is to be true of it afterwards."""

    def __init__(self, api):
        self.api = api
        self.busy = api.create(metadata={"team": "blue"})["id"]
        script = "echo before; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo after; exit 7"
        self.command = api.run(self.busy, script, background=True).events[0]["text"]
        self.terminal = api.execd(self.busy, "POST", "/pty").json["session_id"]
        with Terminal(api, self.busy, self.terminal) as terminal:
            terminal.socket.type("export COLOUR=green; echo re''ady\n")
            terminal.until(b"ready")
        self.context = api.execd(self.busy, "POST", "/code/context", json={"language": "python"}, timeout=60).json
        cell(api, self.busy, "answer = 6 * 7", self.context)

        self.paused = api.create()["id"]
        api.run(self.paused, "(while :; do date +%s%N > /tmp/beat; sleep 0.02; done) > /dev/null 2>&1 & true")
        assert api.call("POST", f"/sandboxes/{self.paused}/pause").status == 202
        wait_for(lambda: api.status(self.paused)["state"] == "Paused", 10, "it is paused")

        self.disk = api.create(resourceLimits={"disk": "32Mi"})["id"]
        api.run(self.disk, "echo kept > /var/tmp/file")
        self.limited = api.create(resourceLimits={"memory": "256Mi", "cpu": "500m"})["id"]
        self.short = api.create(timeout=600)["id"]
        self.all = [self.busy, self.paused, self.disk, self.limited, self.short]

    def assert_works(self, api):
        listed = {item["id"]: item["status"]["state"] for item in api.list_all()}
        assert listed == {name: "Paused" if name == self.paused else "Running" for name in self.all}

        assert api.get(self.busy)["metadata"] == {"team": "blue"}
        logs = f"/command/{self.command}/logs"
        assert api.execd(self.busy, "GET", logs).body == b"before\n"
        assert api.run(self.busy, "touch /tmp/go").exit_code == 0
        status = f"/command/status/{self.command}"
        wait_for(lambda: not api.execd(self.busy, "GET", status).json["running"], 10, "the command ends")
        assert api.execd(self.busy, "GET", status).json["exit_code"] == 7
        assert api.execd(self.busy, "GET", logs).body == b"before\nafter\n"
        with Terminal(api, self.busy, self.terminal) as terminal:
            terminal.socket.type("echo it is still $COLOUR\n")
            terminal.until(b"it is still green")
        assert cell(api, self.busy, "print(answer)", self.context).strip() == "42"

        assert api.call("POST", f"/sandboxes/{self.paused}/resume").status == 202
        wait_for(lambda: api.status(self.paused)["state"] == "Running", 10, "it is resumed")
        beat = api.run(self.paused, "cat /tmp/beat").stdout
        wait_for(lambda: api.run(self.paused, "cat /tmp/beat").stdout != beat, 10, "its process goes on")

        assert api.run(self.disk, "cat /var/tmp/file").stdout == "kept"
        assert api.run(self.disk, "head -c 64M /dev/zero > /var/tmp/much").exit_code != 0
        assert api.run(self.limited, "free -b | awk '/^Mem:/ {print $2}'").stdout == str(256 << 20)
        # Without its own shell: that may be what the kernel kills.
        eater = ["/usr/bin/python3", "-c", "x = bytearray(1 << 30)"]
        assert api.run(self.limited, eater).exit_code != 0
        assert api.ping(self.limited)

        api.renew(self.short, 900)
        patch = api.call("PATCH", f"/sandboxes/{self.short}/metadata", json={"new": "value"})
        assert patch.status == 200 and api.get(self.short)["metadata"]["new"] == "value", patch
        due = api.renew(self.short, 2)
        wait_for(lambda: api.call("GET", f"/sandboxes/{self.short}").status == 404, 12, "it expires")
        assert time.monotonic() >= due - 0.1
        self.all.remove(self.short)


@pytest.mark.parametrize("end", ["stop", "kill_both"])
def test_from_the_version_before(old_bin, bin_dir, end):
    service = Service(old_bin)
    try:
        service.start()
        api = Api(service)
        empty = leaks.snapshot(service)
        before = Before(api)
        getattr(service, end)()
        service.bin_dir = bin_dir
        service.start()
        before.assert_works(api)
        made = api.create()["id"]
        assert api.run(made, "echo new").stdout == "new"
        for name in [*before.all, made]:
            assert api.delete(name).status == 204
        wait_for(lambda: not api.list_all(), 10, "all are gone")
        assert_nothing_left(service, empty)
        # And once more: nothing of them comes back.
        service.restart()
        assert api.list_all() == []
    finally:
        service.destroy()


def assert_nothing_left(service, empty):
    """The new version may keep its own things ready, but nothing of a sandbox: no process, group, mount, directory, socket."""

    def nothing():
        now = leaks.snapshot(service)
        assert not set(now.processes) - set(empty.processes), now.processes
        for what in ("cgroups", "mounts", "files"):
            left = [item for item in getattr(now, what) - getattr(empty, what) if any(name in str(item) for name in service.scope.sandbox_ids)]
            assert not left, left
        assert not service.scope.cgroups(), service.scope.cgroups()
        return True

    wait_for(nothing, 15, "nothing is left", interval=0.2)
