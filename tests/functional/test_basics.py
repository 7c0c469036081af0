"""Health, version, unknown paths, request ids, the routes that exist only in one place."""

import re

import pytest
from lib import rawhttp
from lib.api import assert_envelope


def test_health(api):
    reply = rawhttp.request(api.address, "GET", "/health")
    assert reply.status == 200
    assert reply.json["status"] == "healthy"
    assert reply.header("content-type").startswith("application/json")


def test_version(api):
    reply = rawhttp.request(api.address, "GET", "/version")
    assert reply.status == 200
    assert re.match(r"\d+\.\d+", reply.json["version"])


@pytest.mark.parametrize("path", ["/v1/health", "/v1/version", "/metrics/events", "/nothing", "/v1/nothing", "/v1"])
def test_unknown_paths_explain_themselves(api, path):
    assert_envelope(rawhttp.request(api.address, "GET", path), 404)


@pytest.mark.parametrize("method, path", [("PUT", "/v1/sandboxes"), ("POST", "/v1/sandboxes/x"), ("DELETE", "/health")])
def test_wrong_method(api, method, path):
    reply = rawhttp.request(api.address, method, path)
    assert_envelope(reply, 405)
    assert reply.header("allow")


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_both_mounts(api, sandbox, prefix):
    assert rawhttp.request(api.address, "GET", f"{prefix}/sandboxes/{sandbox}").json["id"] == sandbox
    listed = rawhttp.request(api.address, "GET", f"{prefix}/sandboxes").json
    assert sandbox in [item["id"] for item in listed["items"]]


def test_leading_slashes_collapse(api, sandbox):
    # A client whose domain ends with a slash asks for //v1/...
    assert rawhttp.request(api.address, "GET", f"//v1/sandboxes/{sandbox}").status == 200


class TestRequestId:
    @pytest.mark.parametrize("path, status", [("/health", 200), ("/v1/sandboxes/none", 404), ("/nothing", 404), ("/v1/sandboxes?page=0", 422)])
    def test_is_echoed(self, api, path, status):
        reply = rawhttp.request(api.address, "GET", path, headers={"X-Request-ID": "  my-id-1 "})
        assert reply.status == status
        assert reply.all("x-request-id") == ["my-id-1"]

    @pytest.mark.parametrize("headers", [{}, {"X-Request-ID": "   "}])
    def test_is_made_when_absent(self, api, headers):
        seen = {rawhttp.request(api.address, "GET", "/health", headers=headers).header("x-request-id") for _ in range(2)}
        assert len(seen) == 2
        assert all(re.fullmatch(r"[0-9a-f]{32}", value) for value in seen)


class TestMetricsEvents:
    EVENT = {"eventType": "sandbox.create", "createDurationMs": 12, "success": True, "image": "host"}

    def test_accepted(self, api):
        reply = api.call("POST", "/metrics/events", json=self.EVENT)
        assert reply.status == 204
        assert reply.body == b""
        assert reply.header("content-length") is None or reply.header("content-length") == "0"

    @pytest.mark.parametrize(
        "change",
        [{"eventType": "other"}, {"createDurationMs": -1}, {"createDurationMs": "x"}, {"success": None}],
    )
    def test_wrong_shape(self, api, change):
        assert_envelope(api.call("POST", "/metrics/events", json={**self.EVENT, **change}), 422)


@pytest.mark.parametrize("method, path", [("POST", "/templates"), ("GET", "/templates"), ("GET", "/templates/x"), ("DELETE", "/templates/x")])
def test_templates_are_declined(api, method, path):
    body = {"image": "registry.example/app:1", "publish": "s3://bucket/key"} if method == "POST" else None
    assert_envelope(api.call(method, path, json=body), 501)


def test_exactly_one_date_header(api):
    for path in ("/health", "/v1/sandboxes/none"):
        assert len(rawhttp.request(api.address, "GET", path).all("date")) == 1


def test_connection_is_kept_and_get_with_empty_body_is_fine(api):
    with rawhttp.Connection(api.address) as connection:
        for _ in range(3):
            connection.send_request("GET", "/version", {"Content-Length": "0"})
            assert connection.read_response().status == 200


def test_pipelined_requests_are_answered_in_order(api):
    with rawhttp.Connection(api.address) as connection:
        connection.send_request("GET", "/version", {"X-Request-ID": "first"})
        connection.send_request("GET", "/v1/sandboxes/none", {"X-Request-ID": "second"})
        connection.send_request("GET", "/health", {"X-Request-ID": "third"})
        replies = [connection.read_response() for _ in range(3)]
    assert [reply.header("x-request-id") for reply in replies] == ["first", "second", "third"]
    assert [reply.status for reply in replies] == [200, 404, 200]
