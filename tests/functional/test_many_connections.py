"""Thousands of connections that do nothing cost little and are all still there."""

import resource
import socket
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.waiting import wait_for

pytestmark = pytest.mark.alone

PORT = 8233
KEPT = 8000
WEBSOCKETS = 4000
LOOK = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 2 * KEPT + 1024:
        pytest.skip(f"{before[1]} descriptors per process are too few: the server needs two for each connection")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def answer(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        got = connection.recv(65536)
        assert got, f"closed after {data!r}"
        data += got
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(next((line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0"))
    while len(body) < length:
        body += connection.recv(65536)
    return int(head[9:12])


def ask_all(connections, request, status):
    for connection in connections:
        connection.sendall(request)
        assert answer(connection) == status


def test_8000_kept_connections(new_service, many_descriptors):
    service = new_service()
    rawhttp.request(service.address, "GET", "/version")
    before = service.server_memory_bytes()
    connections = []
    try:
        for _ in range(KEPT):
            connections.append(socket.create_connection(service.address, 10))
        ask_all(connections, LOOK, 200)
        each = (service.server_memory_bytes() - before) / KEPT
        print(f"{each:.0f} bytes of the server's memory for each")
        assert each < 16384
        ask_all(connections, LOOK, 200)
        assert Api(service).create()["id"]
    finally:
        for connection in connections:
            connection.close()


def test_4000_websockets_to_one_sandbox(new_service, many_descriptors):
    service = new_service()
    api = Api(service)
    sandbox, other = api.create()["id"], api.create()["id"]
    api.upload(sandbox, "/tmp/backend.py", Path(__file__).with_name("idle_backend.py").read_bytes())
    assert api.run(sandbox, f"/usr/bin/python3 /tmp/backend.py {PORT} > /tmp/backend.log 2>&1 &").exit_code == 0
    path = f"/v1/sandboxes/{sandbox}/proxy/{PORT}/"
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    wait_for(lambda: rawhttp.request(api.address, "GET", path).status == 502 and b"refused" not in rawhttp.request(api.address, "GET", path).body, 10, "the backend answers")
    before = service.server_memory_bytes()
    sockets = []
    try:
        for _ in range(WEBSOCKETS):
            sockets.append(socket.create_connection(service.address, 10))
            sockets[-1].sendall(request)
            assert answer(sockets[-1]) == 101
        each = (service.server_memory_bytes() - before) / WEBSOCKETS
        print(f"{each:.0f} bytes of the server's memory for each")
        assert each < 65536
        for number, connection in enumerate(sockets):
            connection.sendall(b"%05d" % number)
        for number, connection in enumerate(sockets):
            assert connection.recv(100) == b"%05d" % number
        assert api.run(sandbox, "echo fine").stdout == "fine"
        assert api.run(other, "echo fine").stdout == "fine"
    finally:
        for connection in sockets:
            connection.close()


def test_over_the_limit_of_a_sandbox(new_service):
    service = new_service(proxy={"max_in_flight_per_sandbox": 3})
    api = Api(service)
    sandbox, other = api.create()["id"], api.create()["id"]
    held = [rawhttp.Connection(api.address) for _ in range(3)]
    try:
        for connection in held:
            connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", {"Content-Type": "application/json"}, b'{"command":"echo on; sleep 60"}')
            assert connection.read_head().status == 200
        refused = rawhttp.request(api.address, "GET", f"/v1/sandboxes/{sandbox}/proxy/44772/ping")
        assert_envelope(refused, 503, "SANDBOX::OVERLOADED")
        assert int(refused.header("retry-after")) >= 1
        assert api.run(other, "echo fine").stdout == "fine"
        assert api.status(sandbox)["state"] == "Running"
        held.pop().close()
        wait_for(lambda: rawhttp.request(api.address, "GET", f"/v1/sandboxes/{sandbox}/proxy/44772/ping").status == 200, 10, "a place that was left is free")
        assert api.delete(sandbox).status == 204
    finally:
        for connection in held:
            connection.close()
