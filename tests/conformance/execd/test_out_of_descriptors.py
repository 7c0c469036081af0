"""A daemon that is out of descriptors: it says so, lives on, and keeps none of those that it could not use."""

import os
import resource

import pytest
from daemon import Standalone
from lib import rawhttp
from lib.waiting import wait_for

FEW = 48


class WithFew(Standalone):
    def __init__(self, binary):
        super().__init__(binary)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (FEW, FEW))

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


@pytest.fixture
def few(standalone):
    return standalone(WithFew)


def until_it_fails(few, once):
    """Every answer has a status; the last one is the first that is no success."""
    for _ in range(FEW):
        status = once()
        assert few.process.poll() is None, few.log()
        if status not in (200, 201, 101):
            return status
    raise AssertionError("it never ran out")


def assert_usable(few):
    """Connections that had to wait may take a moment to come and go."""
    wait_for(lambda: few.process.poll() is None and few.run("echo fine").out == ["fine"], 10, f"it runs commands again: {few.log()}")


def test_sessions(few):
    made = []

    def once():
        reply = few.call("POST", "/session", json={})
        if reply.status == 200:
            made.append(reply.json["session_id"])
        return reply.status

    assert until_it_fails(few, once) == 500
    before = few.open_files()
    for _ in range(20):
        assert few.call("POST", "/session", json={}).status == 500
    assert few.open_files() <= before + 1, "what could not be used was closed"
    for session in made:
        few.call("DELETE", f"/session/{session}")
    wait_for(lambda: few.open_files() < FEW - 20, 10, "descriptors are given back")
    assert_usable(few)


@pytest.mark.parametrize("mode", ["1", "0"])
def test_terminals(few, mode):
    open_ones = []

    def once():
        made = few.call("POST", "/pty", json={"command": "sleep 1000"})
        if made.status != 201:
            return made.status
        try:
            socket = few.socket(f"/pty/{made.json['session_id']}/ws?pty={mode}")
        except AssertionError:
            return "refused"
        if b'"connected"' in socket.frame()[1]:
            open_ones.append(socket)
            return 101
        socket.close()
        return "refused"

    until_it_fails(few, once)
    wait_for(lambda: few.open_files() < FEW, 10, "connections are closed")
    before = few.open_files()
    for _ in range(10):
        assert once() == "refused"
        assert few.process.poll() is None, few.log()
    wait_for(lambda: few.open_files() <= before, 10, "what could not be used was closed")
    for socket in open_ones:
        socket.close()
    wait_for(lambda: few.call("GET", "/ping").status == 200, 10, "it answers")


def test_watches(few, tmp_path):
    readers = []
    try:
        for _ in range(FEW):
            connection = rawhttp.Connection(few.address, 5)
            readers.append(connection)
            try:
                connection.send_request("GET", f"/files/watch?path={tmp_path}", [], b"")
            except OSError:
                break
        assert few.process.poll() is None, few.log()
    finally:
        for connection in readers:
            connection.close()
    # A watch that has nothing to tell notices that its client is gone at its next ping, after 15 s.
    wait_for(lambda: few.open_files() < FEW - 20, 30, "descriptors are given back")
    assert_usable(few)

