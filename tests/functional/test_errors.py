"""Codes that no other test produces. (docs/errors.md has all of them; lib/errors.py compares every answer of every test with it.)"""

import pytest
from lib import rawhttp
from lib.api import assert_envelope
from lib.waiting import wait_for


def test_what_is_not_there(api):
    assert_envelope(api.call("GET", "/nothing"), 404, "GENERAL::NOT_FOUND")
    reply = api.call("PUT", "/sandboxes")
    assert_envelope(reply, 405, "GENERAL::METHOD_NOT_ALLOWED")
    assert reply.header("allow") == "GET, HEAD, POST"


def test_a_body_of_broken_chunks(service):
    with rawhttp.Connection(service.address) as connection:
        connection.send(b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n")
        assert_envelope(connection.read_response(), 400, "GENERAL::BAD_REQUEST")


@pytest.mark.long
def test_a_program_that_never_answers(api, make_sandbox):
    """Three minutes are what a program in a sandbox has for its answer."""
    sandbox_id = make_sandbox()["id"]
    api.run(sandbox_id, "python3 -c 'import socket, time; s = socket.create_server((\"127.0.0.1\", 8000)); c = s.accept(); time.sleep(600)'",
            background=True)
    wait_for(lambda: ":1F40 " in api.run(sandbox_id, "cat /proc/net/tcp").stdout, 30, "it listens")
    reply = api.call("GET", f"/sandboxes/{sandbox_id}/proxy/8000/", timeout=240)
    assert_envelope(reply, 504, "BACKEND_TIMEOUT")
