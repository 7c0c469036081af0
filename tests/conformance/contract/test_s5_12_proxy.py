"""Section 5.12: the server as a proxy to what listens in a sandbox."""

import base64
import os

import pytest
from lib import rawhttp
from lib.api import assert_envelope
from lib.websocket import BINARY, CLOSE, TEXT, WebSocket

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def seen(api, behind):
    """What the program behind the proxy saw of a request."""

    def send(method="GET", path="/x", headers=(), body=None, prefix="/v1"):
        reply = rawhttp.request(api.address, method, prefix + behind + path, headers=headers, body=body)
        assert reply.status == 200, reply
        found = reply.json
        found["fields"] = [(name.lower(), value) for name, value in found["headers"]]
        found["body"] = base64.b64decode(found["body"])
        return found

    return send


def values(found, name):
    return [value for key, value in found["fields"] if key == name]


class TestTarget:
    @pytest.mark.parametrize("prefix", ["", "/v1"])
    @pytest.mark.parametrize("path, target", [("", "/"), ("/", "/"), ("/a/b", "/a/b"), ("/a%2Fb%3F%23", "/a%2Fb%3F%23"), ("/x?a", "/x?a"), ("/x?a=&b=%20+%2B", "/x?a=&b=%20+%2B"), ("/%C3%BC", "/%C3%BC")])
    def test_s5_12_bytes_of_path_and_query(self, seen, prefix, path, target):
        assert seen(path=path, prefix=prefix)["target"] == target

    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
    def test_s5_12_methods_and_bodies(self, seen, method):
        data = os.urandom(70_000) if method != "GET" else b"a body of a get"
        found = seen(method, body=data)
        assert (found["method"], found["body"]) == (method, data)


class TestRequestHeaders:
    @pytest.mark.parametrize("name", ["Authorization", "Cookie", "OPEN-SANDBOX-API-KEY", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "TE", "Trailer", "Forwarded", "X-Forwarded-Port",
                                      "X-Real-IP", "OpenSandbox-Secure-Access", "OpenSandbox-Access-Renew"])  # fmt: skip
    def test_s5_12_never_forwarded(self, seen, name):
        assert values(seen(headers={name: "x"}), name.lower()) == []

    def test_s5_12_what_connection_names_is_not_either(self, seen):
        found = seen(headers=[("Connection", "X-Named, close"), ("X-Named", "1"), ("X-Other", "2")])
        assert values(found, "x-named") == [] and values(found, "x-other") == ["2"]

    @pytest.mark.parametrize("name", ["X-EXECD-ACCESS-TOKEN", "OPENSANDBOX-EGRESS-AUTH", "Accept-Encoding", "User-Agent", "X-Anything", "Accept"])
    def test_s5_12_forwarded(self, seen, name):
        assert values(seen(headers={name: "gzip"}), name.lower()) == ["gzip"]

    def test_s5_12_repeated_stay_repeated_and_nothing_is_added(self, seen):
        found = seen(headers=[("X-Two", "1"), ("X-Two", "2")])
        assert values(found, "x-two") == ["1", "2"] and values(found, "accept-encoding") == [] and values(found, "user-agent") == []

    def test_s5_12_forwarded_fields_are_rebuilt(self, api, seen):
        found = seen(headers={"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"})
        assert [values(found, f"x-forwarded-{part}") for part in ("for", "host", "proto")] == [["127.0.0.1"], [f"127.0.0.1:{api.address[1]}"], ["http"]]

    def test_s5_12_tokens_are_not_lent(self, api, make_sandbox):
        name = make_sandbox()["id"]
        assert api.call("GET", f"/sandboxes/{name}/proxy/18080/policy").status == 401


class TestAnswers:
    def test_s5_12_headers(self, api, behind):
        reply = api.call("GET", behind + "/cookies")
        assert [value.partition(";")[0] for value in reply.all("set-cookie")] == ["a=1", "b=2"], "repeated stay repeated"
        assert reply.header("x-private") is None and "secret/1" not in reply.all("server") and len(reply.all("date")) == 1

    def test_s5_12_no_cookie_is_kept_for_the_next(self, api, behind, seen):
        api.call("GET", behind + "/cookies")
        assert values(seen(), "cookie") == []

    @pytest.mark.parametrize("given, prefixed", [("/login?n=/a", True), ("/", True), ("//other.example/x", False), ("https://other.example/x", False), ("relative/x", False)])
    @pytest.mark.parametrize("prefix", ["", "/v1"])
    def test_s5_12_location(self, api, behind, prefix, given, prefixed):
        reply = rawhttp.request(api.address, "GET", f"{prefix}{behind}/redirect?{given}")
        assert (reply.status, reply.header("location")) == (302, prefix + behind + given if prefixed else given)


class TestRefusals:
    def test_s5_12_no_websocket_after_all(self, api, behind):
        assert_envelope(api.call("GET", behind + "/x", headers={"Upgrade": "websocket"}), 400, "GENERAL::UNKNOWN_ERROR")

    def test_s5_12_nobody_listens(self, api, behind):
        path = behind.rpartition("/")[0] + "/9/"
        assert_envelope(api.call("GET", path), 502, "BACKEND_CONNECTION_FAILED")

    def test_s5_12_it_hangs_up(self, api, behind):
        assert_envelope(api.call("GET", behind + "/drop"), 502, "BACKEND_RESPONSE_FAILED")

    @pytest.mark.parametrize("port, status", [("0", 400), ("65536", 400), ("80", 404)])
    def test_s5_12_ports_and_sandboxes(self, api, port, status):
        assert_envelope(api.call("GET", f"/sandboxes/{NOBODY}/proxy/{port}/"), status, "SANDBOX::INVALID_PORT" if status == 400 else "SANDBOX::NOT_FOUND")

    def test_s5_12_a_paused_sandbox(self, api, make_sandbox):
        name = make_sandbox()["id"]
        assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
        assert_envelope(api.call("GET", f"/sandboxes/{name}/proxy/80/"), 409, "SANDBOX::PAUSED")


class TestWebSocket:
    @pytest.mark.parametrize("prefix", ["", "/v1"])
    def test_s5_12_both_ways(self, api, behind, prefix):
        with WebSocket(api.address, f"{prefix}{behind}/websocket?q=1") as peer:
            assert peer.status == 101
            for opcode, data in ((TEXT, b"hello"), (BINARY, b"\x00\xff"), (TEXT, b"")):
                peer.send(opcode, data)
                assert peer.frame() == (opcode, data)
            peer.send(CLOSE, b"\x03\xe8bye")
            assert peer.frame() == (CLOSE, b"\x03\xe8bye")

    @pytest.mark.parametrize("path", [f"/v1/sandboxes/{NOBODY}/proxy/80/", "/v1{behind}/x", "/v1{other}/9/"])
    def test_s5_12_what_cannot_be_opened(self, api, behind, path):
        """Refused before the upgrade, with the reason: the reference accepts and closes with 1008 or 1011."""
        with WebSocket(api.address, path.format(behind=behind, other=behind.rpartition("/")[0])) as peer:
            assert peer.status != 101
