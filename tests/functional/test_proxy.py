"""The server as a proxy to a program that listens inside a sandbox."""

import base64
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import assert_envelope
from lib.waiting import wait_for

PORT = 8231


@pytest.fixture(scope="module")
def base(api, sandbox):
    """Path of the proxy to a backend that runs inside the sandbox."""
    api.upload(sandbox, "/tmp/backend.py", Path(__file__).with_name("backend.py").read_bytes())
    ran = api.run(sandbox, f"/usr/bin/python3 /tmp/backend.py {PORT} > /tmp/backend.log 2>&1 &")
    assert ran.exit_code == 0
    path = f"/v1/sandboxes/{sandbox}/proxy/{PORT}"
    wait_for(lambda: rawhttp.request(api.address, "GET", path + "/up").status == 200, 10, f"the backend answers; {api.run(sandbox, 'cat /tmp/backend.log').stdout}")
    return path


@pytest.fixture
def seen(api, base):
    """Sends a request through the proxy and gives what the backend saw of it."""

    def send(method="GET", path="/x", headers=(), body=None):
        reply = rawhttp.request(api.address, method, base + path, headers=headers, body=body)
        assert reply.status == 200, reply
        found = reply.json
        found["headers"] = [(name.lower(), value) for name, value in found["headers"]]
        found["body"] = base64.b64decode(found["body"])
        return found

    return send


def values(found, name):
    return [value for key, value in found["headers"] if key == name]


class TestTarget:
    @pytest.mark.parametrize("path", ["/", "/a/b", "/a%2Fb", "/%3F%23%25", "/a//b", "/a/../b", "/%C3%BC", "/x?a=1&b=2", "/x?a", "/x?", "/x?q=%26%3D+%20", "/;p=1", "/~u/*"])
    def test_reaches_the_backend_byte_for_byte(self, seen, path):
        assert seen(path=path)["target"] == path

    def test_no_rest_is_the_root(self, seen):
        assert seen(path="")["target"] == "/"
        assert seen(path="?a=1")["target"] == "/?a=1"

    def test_without_the_mount_prefix(self, api, base):
        assert rawhttp.request(api.address, "GET", base.removeprefix("/v1") + "/x").json["target"] == "/x"


class TestRequestHeaders:
    def test_secrets_of_the_server_are_stripped(self, seen):
        found = seen(headers={"OPEN-SANDBOX-API-KEY": "k", "Authorization": "Bearer t", "Cookie": "c=1", "Proxy-Authorization": "p", "OpenSandbox-Secure-Access": "s", "OpenSandbox-Access-Renew": "skip"})
        names = {name for name, _ in found["headers"]}
        assert not names & {"open-sandbox-api-key", "authorization", "cookie", "proxy-authorization", "opensandbox-secure-access", "opensandbox-access-renew"}

    def test_hop_by_hop_headers_are_stripped(self, seen):
        found = seen(headers=[("Keep-Alive", "x"), ("TE", "trailers"), ("X-Mine", "1"), ("X-Kept", "2"), ("Connection", "X-Mine, keep-alive")])
        names = {name for name, _ in found["headers"]}
        assert not names & {"keep-alive", "te", "trailer", "upgrade", "x-mine"}
        assert "x-kept" in names

    def test_forwarded_headers_are_rebuilt(self, api, seen):
        found = seen(headers={"Forwarded": "for=6.6.6.6", "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "1", "X-Real-IP": "6.6.6.6"})
        assert values(found, "x-forwarded-for") == ["127.0.0.1"]
        assert values(found, "x-forwarded-proto") == ["http"]
        assert values(found, "x-forwarded-host") == [f"127.0.0.1:{api.address[1]}"]
        for name in ("forwarded", "x-forwarded-port", "x-real-ip", "x-forwarded-prefix"):
            assert values(found, name) == []

    def test_the_rest_passes_repeated_ones_too(self, seen):
        found = seen(headers=[("X-Two", "1"), ("X-Two", "2"), ("Accept-Encoding", "gzip"), ("X-EXECD-ACCESS-TOKEN", "t"), ("X-Request-ID", "mine"), ("User-Agent", "ua/1")])
        assert values(found, "x-two") == ["1", "2"]
        assert values(found, "accept-encoding") == ["gzip"]
        assert values(found, "x-execd-access-token") == ["t"]
        assert values(found, "x-request-id") == ["mine"]
        assert values(found, "user-agent") == ["ua/1"]
        assert len(values(found, "host")) == 1


class TestBodies:
    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    def test_sized(self, seen, method):
        data = os.urandom(100_000)
        found = seen(method, body=data)
        assert (found["method"], found["body"]) == (method, data)

    def test_chunked(self, api, base):
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", base + "/x", {"Transfer-Encoding": "chunked"})
            for piece in (b"one", b"two" * 1000):
                connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            connection.send(b"0\r\n\r\n")
            found = connection.read_response("POST").json
        assert base64.b64decode(found["body"]) == b"one" + b"two" * 1000

    def test_empty(self, seen):
        assert seen("POST", body=b"")["body"] == b""


class TestResponse:
    def test_repeated_and_private_headers(self, api, base):
        reply = rawhttp.request(api.address, "GET", base + "/cookies", headers={"X-Request-ID": "mine"})
        assert reply.all("set-cookie") == [f"a=1; Path={base}/", f"b=2; Path={base}/"]
        assert reply.header("x-private") is None
        assert "secret/1" not in reply.all("server")
        assert reply.all("x-request-id") == ["mine"]
        assert len(reply.all("date")) == 1

    @pytest.mark.parametrize("given", ["/login?next=/a", "/"])
    def test_location_from_the_root_gets_the_prefix(self, api, base, given):
        reply = rawhttp.request(api.address, "GET", f"{base}/redirect?{given}")
        assert (reply.status, reply.header("location")) == (302, base + given)

    @pytest.mark.parametrize("given", ["//other.example/x", "https://other.example/x", "relative"])
    def test_other_locations_pass(self, api, base, given):
        assert rawhttp.request(api.address, "GET", f"{base}/redirect?{given}").header("location") == given

    def test_events_are_not_delayed(self, api, sandbox, base):
        api.run(sandbox, "rm -f /tmp/second-event")
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("GET", base + "/events", {"Accept": "text/event-stream"})
            head = connection.read_head()
            assert head.header("content-type") == "text/event-stream"
            data = b""
            while b"first" not in data:
                data += connection.read_chunk()
            assert b"second" not in data
            api.run(sandbox, "touch /tmp/second-event")
            while piece := connection.read_chunk():
                data += piece
        assert data == b"data: first\n\ndata: second\n\n"

    def test_backend_that_hangs_up(self, api, base):
        assert_envelope(rawhttp.request(api.address, "GET", base + "/drop"), 502, "BACKEND_RESPONSE_FAILED")

    def test_connection_of_the_client_is_kept(self, api, base):
        with rawhttp.Connection(api.address) as connection:
            for n in range(5):
                connection.send_request("GET", f"{base}/{n}")
                assert connection.read_response().json["target"] == f"/{n}"


class TestRefusals:
    @pytest.mark.parametrize("port", [1, 9, 18080, 65535])
    def test_nobody_listens(self, api, sandbox, port):
        reply = api.call("GET", f"/sandboxes/{sandbox}/proxy/{port}/")
        if port == 18080 and reply.status != 502:
            pytest.skip("an egress process answers here")
        assert_envelope(reply, 502, "BACKEND_CONNECTION_FAILED")

    @pytest.mark.parametrize("port", ["0", "65536", "99999999999"])
    def test_wrong_port(self, api, sandbox, port):
        assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/proxy/{port}/x"), 400, "SANDBOX::INVALID_PORT")

    def test_ports_of_the_host_are_not_reachable(self, api, sandbox):
        """A listener on the host's loopback is not a listener inside the sandbox."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/proxy/{port}/"), 502, "BACKEND_CONNECTION_FAILED")
            assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/proxy/{api.address[1]}/health"), 502, "BACKEND_CONNECTION_FAILED")

    def test_upgrade_that_is_none(self, api, base):
        reply = rawhttp.request(api.address, "GET", base + "/x", headers={"Upgrade": "websocket"})
        assert_envelope(reply, 400, "GENERAL::UNKNOWN_ERROR")


class TestWebSocket:
    HANDSHAKE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}

    def frame(self, opcode, data):
        mask = b"\x01\x02\x03\x04"
        return bytes([0x80 | opcode, 0x80 | len(data)]) + mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(data))

    def test_echo_both_ways(self, api, base):
        with rawhttp.Connection(api.address, timeout=10) as connection:
            connection.send_request("GET", base + "/websocket", self.HANDSHAKE)
            head = connection.read_head()
            if head.status in (400, 501):
                code = connection.read_body(head).json["code"]
                if code in ("SANDBOX::UNSUPPORTED", "GENERAL::UNKNOWN_ERROR"):
                    pytest.skip(f"the server does not proxy WebSockets yet: {code}")
            assert head.status == 101, head
            assert head.header("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
            for opcode, data in ((1, b"hello"), (2, b"\x00\xff"), (1, b"")):
                connection.send(self.frame(opcode, data))
                assert connection._take(2 + len(data)) == bytes([0x80 | opcode, len(data)]) + data
            connection.send(self.frame(8, b"\x03\xe8bye"))
            assert connection._take(7) == b"\x88\x05\x03\xe8bye"


def test_a_hundred_requests_at_once(api, base):
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda n: rawhttp.request(api.address, "GET", f"{base}/{n}").json["target"], range(100)))
    assert found == [f"/{n}" for n in range(100)]
