"""A side of the proxy that does not read holds the other side back: nothing piles up in the server."""

import time
from pathlib import Path

import pytest
from lib import rawhttp
from lib.waiting import wait_for

PORT = 8232
PIECE = b"y" * 65536
# What the sockets on the way hold: their buffers grow with the traffic. Without a limit it would be all that is sent.
IN_FLIGHT = 64 << 20
IN_MEMORY = 4 << 20
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}


@pytest.fixture
def base(api, make_sandbox):
    sandbox = make_sandbox()["id"]
    api.upload(sandbox, "/tmp/backend.py", Path(__file__).with_name("slow_backend.py").read_bytes())
    assert api.run(sandbox, f"/usr/bin/python3 /tmp/backend.py {PORT} > /tmp/backend.log 2>&1 &").exit_code == 0
    path = f"/v1/sandboxes/{sandbox}/proxy/{PORT}"
    wait_for(lambda: rawhttp.request(api.address, "GET", path + "/count").status == 200, 10, "the backend answers")
    return path


def counts(api, base):
    return [int(word) for word in rawhttp.request(api.address, "GET", base + "/count").body.split()]


def settled(count):
    """The number, when it has stopped growing."""
    last, since = count(), time.monotonic()
    end = since + 30
    while time.monotonic() - since < 1:
        time.sleep(0.1)
        if (now := count()) != last:
            last, since = now, time.monotonic()
        assert since < end, f"{last} bytes and no end: nobody holds the sender back"
    return last


def send_all_that_goes(connection):
    """Sends until the other side has not taken a byte for a second."""
    connection.socket.settimeout(1)
    sent = 0
    try:
        while sent < 4 * IN_FLIGHT:
            sent += connection.socket.send(PIECE)
    except TimeoutError:
        pass
    return sent


def read(connection, size):
    connection.socket.settimeout(20)
    while size > 0:
        size -= len(connection.socket.recv(min(size, 1 << 20)))


def test_a_client_that_does_not_read(api, service, base):
    memory = service.server_memory_bytes()
    with rawhttp.Connection(api.address) as client:
        client.send_request("GET", base + "/flood")
        assert client.read_head().status == 200
        held = settled(lambda: counts(api, base)[0])
        assert held < IN_FLIGHT, held
        assert service.server_memory_bytes() - memory < IN_MEMORY
        read(client, 2 * IN_FLIGHT)
        assert counts(api, base)[0] >= 2 * IN_FLIGHT, "it goes on when the client does"
    assert service.server_memory_bytes() - memory < IN_MEMORY


def test_a_program_that_does_not_read(api, service, base):
    memory = service.server_memory_bytes()
    with rawhttp.Connection(api.address) as client:
        client.send(f"POST {base}/sink HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {1 << 40}\r\n\r\n".encode())
        sent = send_all_that_goes(client)
        assert sent < IN_FLIGHT, sent
        assert counts(api, base)[1] == 0
        assert service.server_memory_bytes() - memory < IN_MEMORY
        api.run(base.split("/")[3], "touch /tmp/read")
        wait_for(lambda: counts(api, base)[1] >= sent, 20, "what was sent arrives when the program reads")


def test_a_websocket_both_ways(api, service, base):
    memory = service.server_memory_bytes()
    with rawhttp.Connection(api.address) as client:
        client.send_request("GET", base + "/both", UPGRADE)
        assert client.read_head().status == 101
        held = settled(lambda: counts(api, base)[0])
        sent = send_all_that_goes(client)
        assert held < IN_FLIGHT and sent < IN_FLIGHT, (held, sent)
        assert service.server_memory_bytes() - memory < IN_MEMORY
        read(client, 2 * IN_FLIGHT)
        api.run(base.split("/")[3], "touch /tmp/read")
        wait_for(lambda: counts(api, base)[1] >= sent, 20, "the other way goes on, too")
