"""Clients that never finish what they send: they wait for nothing, and nobody waits because of them."""

import resource
import socket
import time

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope, create_body
from lib.waiting import wait_for

CREATE = b"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(16384, before[1])), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def answer_times(address, path, count, until):
    """How long single requests on new connections take, one after the other."""
    times = []
    while len(times) < count and time.monotonic() < until:
        started = time.monotonic()
        assert rawhttp.request(address, "GET", path, timeout=40).status == 200
        times.append(time.monotonic() - started)
    return times


@pytest.mark.parametrize("first_bytes", [CREATE + b"Content-Length: 100000\r\n\r\n{", CREATE + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"POST /v1/sandb"], ids=["length", "chunked", "half a head"])
def test_strangers_do_not_silence_a_server_with_a_key(new_service, many_descriptors, first_bytes):
    """More connections than the server keeps, each with a request that is refused and never ends."""
    service = new_service(api_key="a-key-for-tests-0123456789", server={"max_connections": 4096})
    strangers = []
    try:
        for _ in range(4110):
            stranger = socket.create_connection(service.address, 10)
            strangers.append(stranger)
            try:
                stranger.sendall(first_bytes)
            except ConnectionError:
                pass  # it made room already
        started = time.monotonic()
        times = answer_times(service.address, "/health", 20, started + 60)
        assert max(times) < 1, f"{max(times):.1f} s for an answer beside {len(strangers)} strangers"
        assert Api(service).create()["id"]
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_refused_body_ends_the_connection(keyed_service):
    for rest in (b"Content-Length: 100000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"):
        with rawhttp.Connection(keyed_service.address) as connection:
            connection.send(CREATE + rest)
            reply = connection.read_response()
            assert reply.status == 401 and reply.header("connection") == "close", reply
            started = time.monotonic()
            assert connection.read_to_end(timeout=10) == b""
            assert time.monotonic() - started < 5


def test_a_refused_body_that_is_there_costs_no_connection(keyed_service):
    with rawhttp.Connection(keyed_service.address) as connection:
        for _ in range(3):
            connection.send_request("POST", "/v1/sandboxes", {"Content-Type": "application/json"}, b"x" * 2000)
            reply = connection.read_response()
            assert reply.status == 401 and reply.header("connection") is None, reply


def test_a_large_refused_body_still_gets_its_answer(keyed_service):
    """The client sends all of it before it reads; a reset would destroy the answer."""
    with rawhttp.Connection(keyed_service.address) as connection:
        connection.send_request("POST", "/v1/sandboxes", {"Content-Type": "application/json"}, b"x" * 3_000_000)
        assert connection.read_response().status == 401


@pytest.mark.long
@pytest.mark.parametrize("target", ["create", "proxied upload"])
def test_a_slow_body_is_ended(api, sandbox, target):
    """A byte every second, which is no silence: 408 when 20 seconds of waiting are used up."""
    path, kind = ("/v1/sandboxes", "application/json") if target == "create" else (f"/v1/sandboxes/{sandbox}/proxy/44772/files/upload", "multipart/form-data; boundary=b")
    with rawhttp.Connection(api.address) as connection:
        connection.send(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: 100000\r\n\r\n".encode())
        started = time.monotonic()
        while not connection.is_readable(1.0) and time.monotonic() - started < 45:
            connection.send(b" ")
        took = time.monotonic() - started
        assert connection.is_readable(), f"a byte per second was waited for during {took:.0f} s"
        reply = connection.read_response()
        assert_envelope(reply, 408, "GENERAL::REQUEST_TIMEOUT")
        assert took > 15, f"ended after {took:.1f} s already"


def test_a_paused_client_may_go_on(api):
    """A few seconds of silence in the middle of a body are nothing."""
    body = rawhttp.jsonlib.dumps(create_body()).encode()
    with rawhttp.Connection(api.address) as connection:
        connection.send(CREATE + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        time.sleep(3)  # what is tested
        connection.send(body[10:])
        reply = connection.read_response()
    assert reply.status == 202, reply
    api.service.scope.remember(reply.json["id"])
    assert api.delete(reply.json["id"]).status == 204
    wait_for(lambda: api.call("GET", f"/sandboxes/{reply.json['id']}").status == 404, 5, "it is gone")
