"""A client that reads a byte per second: the command does not wait for it, execd stays small, and not a byte is lost.

Short: some seconds and 64 MB. With --long: 60 s and 1 GB, as the contract's users may do it.
"""

import json
import socket
import time

import pytest

LINE = 1024


def drip(execd, size, seconds, place):
    lines = size // LINE
    command = f"yes $(printf %0{LINE - 1}d 7) | head -n {lines}"
    started = time.monotonic()
    execd.out(command + " | cat > /dev/null", client_timeout=300)
    normal = time.monotonic() - started

    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.settimeout(120)
    slow.connect(execd.address)
    body = json.dumps({"command": f"{command}; echo $(($(date +%s%N) / 1000000)) > {place}/ended"}).encode()
    head = [f"POST {execd.prefix}/command HTTP/1.1", f"Host: {execd.address[0]}:{execd.address[1]}", f"Content-Length: {len(body)}", "Connection: close"]
    head += [f"{name}: {value}" for name, value in execd.headers]
    began = time.time()
    slow.sendall(("\r\n".join(head) + "\r\n\r\n").encode() + body)

    def small(when):
        memory = execd.own_status("VmRSS")
        assert memory < 16 * 1024, f"KiB of execd while {when}"
        return memory

    most = 0
    received = bytearray()
    until = time.monotonic() + seconds
    ended = None
    while time.monotonic() < until or ended is None:
        received += slow.recv(1)
        time.sleep(1 if seconds > 20 else 0.25)
        seen = execd.run(f"cat {place}/ended").out
        if seen and ended is None:
            ended = int(seen[0]) / 1000 - began
        assert ended is not None or time.monotonic() < until + 60, "the command does not end while nobody reads"
        most = max(most, small("the output waits"))
    # Its normal time: that of writing its output somewhere, with room for a disk and for a shared machine.
    assert ended < 10 * normal + 20, f"{ended:.1f} s, and {normal:.1f} s into cat"
    # Looked at on the way, not as the peak of its life: the daemon has served other tests.
    look_at = len(received)
    while piece := slow.recv(1 << 20):
        received += piece
        if len(received) >= look_at:
            most = max(most, small("the client catches up"))
            look_at = len(received) + size // 16
    slow.close()
    print(f"\n{execd.kind}: {size >> 20} MiB ended after {ended:.1f} s ({normal:.1f} s into cat), execd at most {most} KiB")
    return lines, bytes(received)


def check(lines, raw):
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    seen = 0
    wanted = b'{"type":"stdout","text":"' + b"0" * (LINE - 2) + b'7","timestamp":'
    held = b""
    last = b""
    at = 0
    while True:
        end = rest.index(b"\r\n", at)
        size = int(rest[at:end], 16)
        if size == 0:
            break
        held += rest[end + 2 : end + 2 + size]
        at = end + 4 + size
        events = held.split(b"\n\n")
        held = events.pop()
        for event in events:
            last = event
            if b'"stdout"' in event:
                assert event.startswith(wanted), event[:200]
                seen += 1
    assert held == b""
    assert seen == lines
    assert b'"execution_complete"' in last


def test_slow_client(execd, place):
    check(*drip(execd, 64 << 20, 4, place))


@pytest.mark.long
def test_slow_client_for_a_minute(execd, place):
    lines, raw = drip(execd, 1 << 30, 60, place)
    check(lines, raw)
