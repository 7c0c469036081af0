"""Item 11 of the compatibility checklist: terminals over WebSocket, to the byte. `test_item_11_...`"""

import json
import time

import pytest
from daemon import Terminal
from lib.waiting import wait_for
from lib.websocket import BINARY, TEXT


@pytest.fixture
def pty(execd):
    """Makes terminals that are deleted afterwards."""
    made = []

    def make(**body):
        reply = execd.call("POST", "/pty", json=body)
        assert reply.status == 201 and list(reply.json) == ["session_id"]
        made.append(reply.json["session_id"])
        return made[-1]

    yield make
    for session in made:
        execd.call("DELETE", f"/pty/{session}")


def state(execd, session):
    return execd.call("GET", f"/pty/{session}").json


def test_item_11_rest(execd, pty, place):
    session = pty(cwd=f"{place}/made")
    assert state(execd, session) == {"session_id": session, "running": False, "output_offset": 0}
    assert execd.info(f"{place}/made")["type"] == "directory"
    execd.refused(404, "CONTEXT_NOT_FOUND", "GET", "/pty/nope")
    assert execd.call("GET", f"/pty/{session}/ws").status in (400, 426), "no upgrade"
    execd.empty("DELETE", f"/pty/{session}")
    execd.refused(404, "CONTEXT_NOT_FOUND", "DELETE", f"/pty/{session}")


def test_item_11_frames(execd, pty):
    session = pty()
    with Terminal(execd, session) as client:
        opcode, data = client.next()
        assert (opcode, data) == (TEXT, b'{"type":"connected","session_id":"%s","mode":"pty"}\n' % session.encode())
        client.type("stty size; tty; echo m$((1+1))k\n")
        output = client.until_output(b"m2k")
        assert b"24 80" in output and b"/dev/pts/" in output
        assert all(data[0] == 1 for opcode, data in client.frames if opcode == BINARY)
        client.send(type="stdin", data="echo ü$((2+2))\n")
        client.until_output("ü4".encode())
        client.send(type="ping")
        client.until_text("pong")
        assert client.frames[-1] == (TEXT, b'{"type":"pong"}\n')
        for ignored in (b"", b"\x07what", b"\x01echo no$((1+1))\n"):
            client.socket.send(BINARY, ignored)
        client.socket.send(TEXT, b"no json")
        client.send(type="signal", signal="SIGNOPE")
        client.send(type="resize", cols=0, rows=5)
        client.send(type="nonsense")
        assert client.until_text("error")["code"] == "INVALID_FRAME"
        client.type("stty size; echo st$((1+1))ill\n")
        assert b"24 80" in client.until_output(b"st2ill") and b"no2" not in client.output
        assert state(execd, session)["running"] is True
    assert state(execd, session)["output_offset"] >= len(client.output)


def test_item_11_payloads_are_bounded(execd, pty):
    with Terminal(execd, pty(command="head -c 3000000 /dev/zero | tr '\\0' x")) as client:
        client.until_text("exit")
        assert client.output == b"x" * 3000000
        assert max(len(data) for opcode, data in client.frames if opcode == BINARY) <= 32768 + 1


def test_item_11_resize(execd, pty):
    with Terminal(execd, pty()) as client:
        client.until_text("connected")
        # Without bash's own editing of lines, which answers to another size as well, and may lose what is typed meanwhile.
        client.type("exec bash --noediting\n")
        client.type("trap 'echo win$((1+1))ch' WINCH; echo re$((1+1))ady\n")
        client.until_output(b"re2ady")
        client.send(type="resize", cols=133, rows=44)
        client.type("stty size\n")
        client.until_output(b"44 133")
        client.until_output(b"win2ch")


def test_item_11_replay_comes_before_connected(execd, pty):
    session = pty()
    with Terminal(execd, session) as client:
        client.until_text("connected")
        client.type("echo ke$((1+1))pt\n")
        client.until_output(b"ke2pt")
        everything = client.output
    for since, start in ((0, 0), (5, 5), (len(everything), len(everything)), (-3, 0)):
        with Terminal(execd, session, f"?takeover=1&since={since}") as client:
            client.until_text("connected")
            frames = client.frames
            total = state(execd, session)["output_offset"]
            if start == total:
                assert len(frames) == 1
            else:
                assert [opcode for opcode, _ in frames] == [BINARY, TEXT]
                replay = frames[0][1]
                assert replay[0] == 3 and int.from_bytes(replay[1:9], "big", signed=True) == start
                assert replay[9:][: len(everything) - start] == everything[start:]
    with Terminal(execd, session, "?takeover=1&since=999999999") as client:
        client.until_text("connected")
        assert len(client.frames) == 1, "beyond the end: nothing to replay"


def test_item_11_scrollback_is_bounded_and_clamps(execd, pty):
    session = pty(command="seq 1 400000; sleep 4761")
    with Terminal(execd, session) as client:
        client.until_output(b"400000\r\n")
    total = state(execd, session)["output_offset"]
    assert total == len(b"".join(b"%d\r\n" % i for i in range(1, 400001)))
    with Terminal(execd, session, "?takeover=1&since=0") as client:
        client.until_text("connected")
        replay = client.frames[0][1]
        offset = int.from_bytes(replay[1:9], "big")
        assert len(replay) - 9 == 1 << 20 and offset == total - (1 << 20)
        assert replay.endswith(b"\r\n400000\r\n")


def test_item_11_a_second_client_and_takeover(execd, pty):
    session = pty()
    with Terminal(execd, session) as first:
        first.until_text("connected")
        with execd.socket(f"/pty/{session}/ws") as second:
            assert second.status == 409 and second.head.json["code"] == "ALREADY_CONNECTED"
        execd.refused(409, "ALREADY_CONNECTED", "GET", f"/pty/{session}/ws?takeover=1")  # no upgrade: nobody is evicted
        first.type("echo still $((40+2))\n")
        first.until_output(b"still 42")
        with Terminal(execd, session, "?takeover=1&since=999999999") as second:
            assert second.status == 101
            assert first.until_close() == (4001, "TAKEN_OVER")
            second.until_text("connected")
            second.type("echo mine $((40+2))\n")
            second.until_output(b"mine 42")


def test_item_11_leaving_and_coming_back(execd, pty):
    session = pty()
    with Terminal(execd, session) as client:
        client.until_text("connected")
        client.type("(sleep 0.4; echo la$((1+1))te) & x=kept\n")
        client.until_output(b"x=kept")
        offset = state(execd, session)["output_offset"]
    time.sleep(0.6)
    with Terminal(execd, session, f"?takeover=1&since={offset}") as client:
        client.until_text("connected")
        client.type("echo $x\n")
        client.until_output(b"kept")
        seen = b"".join(data for opcode, data in client.frames if opcode == BINARY)
    assert b"la2te" in seen


def test_item_11_exit_and_restart(execd, pty):
    session = pty()
    with Terminal(execd, session) as client:
        client.until_text("connected")
        client.type("seq 1 5000; exit 6\n")
        assert client.until_text("exit") == {"type": "exit", "exit_code": 6}
        assert b"\r\n5000\r\n" in client.output
        assert client.until_close() == (1000, "process exited")
    assert state(execd, session)["running"] is False
    offset = state(execd, session)["output_offset"]
    with Terminal(execd, session, f"?pty=0&since={offset}") as client:
        assert client.until_text("connected")["mode"] == "pipe"
        client.type("tty; echo out; echo err >&2; exit 0\n")
        assert client.until_text("exit") == {"type": "exit", "exit_code": 0}
        streams = {1: b"", 2: b""}
        for opcode, data in client.frames:
            if opcode == BINARY:
                streams[data[0]] += data[1:]
        assert streams == {1: b"not a tty\nout\n", 2: b"err\n"}
    assert state(execd, session)["output_offset"] > offset


def test_item_11_an_end_that_nobody_saw_is_told_once(execd, pty, place):
    session = pty(command=f"echo started >> {place}/starts; until [ -e {place}/go ]; do sleep 0.05; done; echo late; exit 7")
    with Terminal(execd, session) as client:
        client.until_text("connected")
    execd.put(f"{place}/go")
    wait_for(lambda: state(execd, session)["running"] is False, 10, "the program ends while nobody is attached")
    with Terminal(execd, session, "?takeover=1") as client:
        assert client.until_text("exit") == {"type": "exit", "exit_code": 7}
        assert client.frames[0][1].endswith(b"late\r\n"), "its last words come before its end"
        assert client.until_close() == (1000, "process exited")
    assert execd.get(f"{place}/starts").body == b"started\n", "it was not run again for that"
    with Terminal(execd, session, "?takeover=1") as client:
        client.until_text("exit")
    assert execd.get(f"{place}/starts").body == b"started\n" * 2, "the next client starts it anew"


def test_item_11_a_slow_client_gets_the_last_output(execd, pty):
    size = 12 << 20  # more than sockets and buffers on the way hold
    with Terminal(execd, pty(command=f"head -c {size} /dev/zero | tr '\\0' x")) as client:
        client.until_text("connected")
        time.sleep(1)  # the slowness is the test: the program may end long before its client has read
        client.until_text("exit")
        assert len(client.output) == size


def test_item_11_killed_by_a_signal(execd, pty):
    with Terminal(execd, pty()) as client:
        client.until_text("connected")
        client.type("kill -9 $$\n")
        assert client.until_text("exit")["exit_code"] == -1


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGKILL", "SIGQUIT", "SIGHUP"])
def test_item_11_signals_reach_the_foreground_job(execd, pty, signal):
    with Terminal(execd, pty()) as client:
        client.until_text("connected")
        client.type("echo a$((1+1)); sleep 4762; echo s=$?\n")
        client.until_output(b"a2\r\n")
        wait_for(lambda: execd.out("pgrep -f '^sleep 476[2]$' || true"), 5, "the job runs")
        client.send(type="signal", signal=signal)
        wait_for(lambda: execd.out("pgrep -f '^sleep 476[2]$' || true") == [], 5, "the job is gone")
        client.type("echo sh$((1+1))ell\n")
        client.until_output(b"sh2ell")


def test_item_11_delete_tells_the_client(execd, pty):
    session = pty()
    with Terminal(execd, session) as client:
        client.until_text("connected")
        client.type("echo $$-$((1+1)); sleep 4763\n")
        client.until_output(b"-2\r\n")
        execd.empty("DELETE", f"/pty/{session}")
        assert client.until_text("exit") == {"type": "exit", "exit_code": -1}
        assert client.until_close()[0] == 1000


def test_item_11_text_frames_have_their_member_order(execd, pty):
    session = pty(command="exit 0")
    with Terminal(execd, session) as client:
        client.until_text("exit")
        texts = [data for opcode, data in client.frames if opcode == TEXT]
    assert texts == [b'{"type":"connected","session_id":"%s","mode":"pty"}\n' % session.encode(), b'{"type":"exit","exit_code":0}\n']
    assert all(json.loads(text) for text in texts)


def test_item_11_large_input_arrives_whole(execd, pty, place):
    with Terminal(execd, pty(), "?pty=0") as client:
        client.until_text("connected")
        client.type(f"cat > {place}/in; exit\n")
        data = bytes(range(256)) * 2000
        for at in range(0, len(data), 50000):
            client.socket.send(BINARY, b"\0" + data[at : at + 50000])
        wait_for(lambda: execd.info(f"{place}/in")["size"] == len(data), 20, "all of it arrived")
    assert execd.get(f"{place}/in").body == data
