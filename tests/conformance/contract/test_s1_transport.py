"""Section 1: mounting, request ids, CORS, JSON, limits."""

import json
import re
from urllib.parse import quote

import pytest
from lib import rawhttp
from lib.api import assert_envelope, create_body

NOBODY = "00000000-0000-4000-8000-000000000000"
ORIGIN = {"Origin": "https://console.example"}


def root(api, method, path, **more):
    return rawhttp.request(api.address, method, path, **more)


class TestMounting:
    @pytest.mark.parametrize("path", ["/sandboxes", "/snapshots", f"/sandboxes/{NOBODY}", f"/sandboxes/{NOBODY}/endpoints/80", f"/sandboxes/{NOBODY}/diagnostics/inspect"])
    def test_s1_1_every_route_is_mounted_twice(self, api, path):
        bare, prefixed = root(api, "GET", path), root(api, "GET", "/v1" + path)
        assert bare.status == prefixed.status and bare.json.keys() == prefixed.json.keys()
        assert bare.json.get("code") == prefixed.json.get("code")

    @pytest.mark.parametrize("path", ["/health", "/docs", "/redoc", "/openapi.json", "/version"])
    def test_s1_1_root_only(self, api, keyed, path):
        assert root(api, "GET", path).status == 200
        assert_envelope(root(api, "GET", "/v1" + path), 404)
        assert_envelope(root(keyed, "GET", "/v1" + path), 401, "MISSING_API_KEY")

    def test_s1_1_metrics_only_below_v1(self, api):
        event = {"eventType": "sandbox.create", "createDurationMs": 1, "success": True}
        assert root(api, "POST", "/v1/metrics/events", json=event).status == 204
        assert_envelope(root(api, "POST", "/metrics/events", json=event), 404)

    def test_s1_1_a_trailing_slash_is_the_same_route(self, api):
        assert root(api, "GET", "/v1/sandboxes/?pageSize=1").json["pagination"]["pageSize"] == 1

    @pytest.mark.parametrize("path", ["/health", "/v1/sandboxes", "/sandboxes"])
    def test_s1_1_head_is_get_without_a_body(self, api, path):
        reply = root(api, "HEAD", path)
        assert reply.status == 200 and reply.body == b""

    def test_s1_1_options_that_is_no_preflight(self, api, keyed):
        assert_envelope(root(api, "OPTIONS", "/v1/sandboxes"), 405)
        assert_envelope(root(keyed, "OPTIONS", "/v1/sandboxes"), 401, "MISSING_API_KEY")

    @pytest.mark.parametrize("path", ["/", "/nothing", "/v1", "/v1/", "/v2/sandboxes", "/v1/v1/sandboxes", "/V1/sandboxes", "/sandbox", f"/v1/sandboxes/{NOBODY}/nothing"])
    def test_s1_1_unknown_path(self, api, path):
        body = assert_envelope(root(api, "GET", path), 404)
        assert body["detail"] == "Not Found"

    @pytest.mark.parametrize("method, path, allowed", [
        ("PUT", "/v1/sandboxes", {"GET", "HEAD", "POST"}),
        ("POST", f"/v1/sandboxes/{NOBODY}", {"GET", "HEAD", "DELETE"}),
        ("GET", f"/v1/sandboxes/{NOBODY}/pause", {"POST"}),
        ("GET", f"/sandboxes/{NOBODY}/metadata", {"PATCH"}),
        ("DELETE", "/health", {"GET", "HEAD"}),
        ("POST", "/v1/snapshots", {"GET", "HEAD"}),
    ])  # fmt: skip
    def test_s1_1_wrong_method(self, api, method, path, allowed):
        reply = root(api, method, path)
        assert assert_envelope(reply, 405)["detail"] == "Method Not Allowed"
        assert set(reply.header("allow").split(", ")) == allowed

    @pytest.mark.parametrize("path, status", [("/health", 200), ("/nothing", 404), ("/v1/sandboxes?page=0", 422)])
    def test_s1_1_exactly_one_date(self, api, path, status):
        reply = root(api, "GET", path)
        assert reply.status == status and len(reply.all("date")) == 1
        assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", reply.header("date"))


class TestMiddlewareOrder:
    def test_s1_2_a_401_has_its_id_and_cors_headers(self, keyed):
        reply = root(keyed, "GET", "/v1/sandboxes", headers={**ORIGIN, "X-Request-ID": "mine"})
        assert_envelope(reply, 401, "MISSING_API_KEY")
        assert reply.header("x-request-id") == "mine" and reply.header("access-control-allow-origin")

    def test_s1_2_a_preflight_needs_no_key(self, keyed):
        assert root(keyed, "OPTIONS", "/v1/sandboxes", headers={**ORIGIN, "Access-Control-Request-Method": "POST"}).status == 200


class TestRequestId:
    @pytest.mark.parametrize("method, path, status", [
        ("GET", "/health", 200), ("GET", "/v1/sandboxes", 200), ("GET", f"/v1/sandboxes/{NOBODY}", 404), ("GET", f"/v1/sandboxes/{NOBODY}/endpoints/44772", 404),
        ("GET", "/nothing", 404), ("PUT", "/v1/sandboxes", 405), ("POST", "/v1/sandboxes", 422), ("GET", f"/sandboxes/{NOBODY}/proxy/80/", 404)])  # fmt: skip
    def test_s1_3_is_echoed(self, api, method, path, status):
        reply = root(api, method, path, headers={"X-Request-ID": "  from-the-client "})
        assert (reply.status, reply.header("x-request-id")) == (status, "from-the-client")

    @pytest.mark.parametrize("headers", [{}, {"X-Request-ID": ""}, {"X-Request-ID": "   "}])
    def test_s1_3_is_made_when_absent_or_blank(self, api, headers):
        seen = {root(api, "GET", "/health", headers=headers).header("x-request-id") for _ in range(3)}
        assert len(seen) == 3 and all(re.fullmatch(r"[0-9a-f]{32}", value) for value in seen)

    def test_s1_3_through_the_proxy(self, api, behind):
        sent = dict(map(lambda pair: (pair[0].lower(), pair[1]), api.call("GET", behind + "/x", headers={"X-Request-ID": "mine"}).json["headers"]))
        assert sent["x-request-id"] == "mine", "a client's id goes on"
        unsent = [name.lower() for name, _ in api.call("GET", behind + "/x").json["headers"]]
        assert "x-request-id" not in unsent, "a made one does not"
        reply = api.call("GET", behind + "/cookies", headers={"X-Request-ID": "mine"})
        assert reply.all("x-request-id") == ["mine"], "the backend's is replaced"


class TestCors:
    def test_s1_4_simple(self, keyed):
        reply = keyed.call("GET", "/sandboxes", headers=ORIGIN)
        assert reply.header("access-control-allow-origin") == "*" and reply.header("access-control-allow-credentials") == "true"
        assert {"OPEN-SANDBOX-ORIGIN", "X-Request-ID"} <= set(reply.header("access-control-expose-headers").split(", "))

    def test_s1_4_with_a_cookie_the_origin_is_mirrored(self, keyed):
        reply = keyed.call("GET", "/sandboxes", headers={**ORIGIN, "Cookie": "a=b"})
        assert reply.header("access-control-allow-origin") == ORIGIN["Origin"] and "Origin" in reply.header("vary")

    def test_s1_4_preflight(self, keyed):
        wanted = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "open-sandbox-api-key, content-type"}
        reply = root(keyed, "OPTIONS", "/v1/sandboxes/x/metadata", headers={**ORIGIN, **wanted})
        assert reply.status == 200 and reply.body == b"OK" and reply.header("content-type").startswith("text/plain")
        assert reply.header("access-control-allow-origin") == ORIGIN["Origin"] and reply.header("vary") == "Origin"
        assert reply.header("access-control-max-age") == "600"
        assert {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"} <= set(reply.header("access-control-allow-methods").split(", "))
        assert reply.header("access-control-allow-headers") == wanted["Access-Control-Request-Headers"]

    def test_s1_4_nothing_without_an_origin(self, keyed):
        assert keyed.call("GET", "/sandboxes").header("access-control-allow-origin") is None


def no_nulls(value):
    if isinstance(value, dict):
        return all(item is not None and no_nulls(item) for item in value.values())
    return all(map(no_nulls, value)) if isinstance(value, list) else True


class TestJson:
    def test_s1_5_answers_are_compact_and_unescaped(self, api, make_sandbox):
        word = "gr\u00fc\u00dfe"
        made = make_sandbox(entrypoint=["sh", "-c", f": {word}; exec tail -f /dev/null"])
        reply = api.call("GET", f"/sandboxes/{made['id']}")
        assert reply.header("content-type") == "application/json"
        assert word.encode() in reply.body and reply.body == json.dumps(reply.json, separators=(",", ":"), ensure_ascii=False).encode()

    def test_s1_5_no_member_is_null(self, api, make_sandbox):
        made = make_sandbox(timeout=...)
        shown = [made, api.get(made["id"]), api.call("GET", "/sandboxes").json, api.call("GET", f"/sandboxes/{made['id']}/endpoints/80").json]
        assert all(map(no_nulls, shown)) and "expiresAt" not in made and "platform" not in made and "metadata" not in made

    NAMES = [
        ({"resourceLimits": ..., "resource_limits": {}}, 202),
        ({"resource_limits": {"cpu": 1}, "resourceLimits": ...}, 422),
        ({"image": ..., "snapshot_id": NOBODY}, 404),
        ({"network_policy": {"egress": [{"action": 1, "target": "x"}]}}, 422),
        ({"network_policy": {"default_action": 1}}, 422),
        ({"credential_proxy": {"enabled": True}}, 422),
        ({"secure_access": "maybe"}, 422),
        ({"volumes": [{"name": "v", "mount_path": "relative", "host": {"path": "/x"}}]}, 422),
        ({"volumes": [{"name": "v", "mountPath": "/v", "read_only": "maybe", "host": {"path": "/x"}}]}, 422),
        ({"volumes": [{"name": "v", "mountPath": "/v", "pvc": {"claim_name": "UPPER"}}]}, 422),
        ({"resource_requests": {"cpu": 1}}, 422),
        ({"template_id": ""}, 422),
        ({"lifecycle": {"pre_start": {"command": []}}}, 422),
        ({"lifecycle": {"preStart": {"command": ["true"], "timeout_seconds": 0}}}, 422),
    ]  # fmt: skip

    @pytest.mark.parametrize("change, status", NAMES, ids=[json.dumps(change, default=str)[:60] for change, _ in NAMES])
    def test_s1_5_snake_case_is_read_as_well(self, api, make_sandbox, change, status):
        if status == 202:
            assert make_sandbox(**change)["status"]["state"] == "Running"
        else:
            assert_envelope(api.post_create(**change), status)

    OPTIONAL = ("snapshotId", "platform", "timeout", "env", "metadata", "networkPolicy", "credentialProxy", "volumes", "extensions", "resourceRequests", "lifecycle", "templateId")

    @pytest.mark.parametrize("name", OPTIONAL)
    def test_s1_5_null_is_absent(self, make_sandbox, name):
        made = make_sandbox(**{name: None})
        assert no_nulls(made) and ("expiresAt" in made) == (name != "timeout")

    @pytest.mark.parametrize("change, where", [
        ({"secureAccess": None}, ["body", "secureAccess"]),
        ({"networkPolicy": {"egress": None}}, ["body", "networkPolicy", "egress"]),
        ({"credentialProxy": {"enabled": None}, "networkPolicy": {}}, ["body", "credentialProxy", "enabled"]),
        ({"metadata": {"a": None}}, ["body", "metadata", "a"]),
        ({"extensions": {"a": None}}, ["body", "extensions", "a"]),
        ({"resourceLimits": {"cpu": None}}, ["body", "resourceLimits", "cpu"]),
        ({"volumes": [{"name": "v", "mountPath": "/v", "host": {"path": "/x"}, "readOnly": None}]}, ["body", "volumes", 0, "readOnly"]),
        ({"volumes": [{"name": "v", "mountPath": "/v", "pvc": {"claimName": "c", "createIfNotExists": None}}]}, ["body", "volumes", 0, "pvc", "createIfNotExists"]),
        ({"volumes": [{"name": "v", "mountPath": "/v", "pvc": {"claimName": "c", "deleteOnSandboxTermination": None}}]}, ["body", "volumes", 0, "pvc", "deleteOnSandboxTermination"]),
    ])  # fmt: skip
    def test_s1_5_where_null_is_refused(self, api, change, where):
        found = assert_envelope(api.post_create(**change), 422, "SANDBOX::INVALID_REQUEST")
        assert where in [entry["loc"] for entry in found["detail"]], found

    def test_s1_5_unknown_members_are_ignored(self, make_sandbox):
        assert make_sandbox(nobody={"x": 1}, image={"uri": "host", "more": []})["status"]["state"] == "Running"

    @pytest.mark.parametrize("timeout, seconds", [("300", 300), (300.0, 300), (" 300 ", 300), ("300.0", 300)])
    def test_s1_5_integers_are_read_laxly(self, make_sandbox, timeout, seconds):
        made = make_sandbox(timeout=timeout)
        assert lasts(made) == pytest.approx(seconds, abs=5)

    @pytest.mark.parametrize("word, means", [(word, False) for word in (False, 0, "false", "0", "no", "No", "off", "F", "n")]
                             + [(word, True) for word in (True, 1, "true", "YES", "on", "t", "y", "1")]
                             + [(word, None) for word in (2, "maybe", "", [], 0.5)])  # fmt: skip
    def test_s1_5_booleans_are_read_laxly(self, api, word, means):
        reply = api.post_create(secureAccess=word)
        if means is None:
            return assert_envelope(reply, 422, "SANDBOX::INVALID_REQUEST")
        headers = api.call("GET", f"/sandboxes/{reply.json['id']}/endpoints/44772").json.get("headers", {})
        assert ("OpenSandbox-Secure-Access" in headers) == means
        assert api.delete(reply.json["id"]).status == 204

    @pytest.mark.parametrize("change", [{"resourceLimits": {"cpu": 1}}, {"metadata": {"a": 1}}, {"env": {"A": True}}, {"entrypoint": [1]}, {"image": {"uri": 1}}])
    def test_s1_5_strings_are_not(self, api, change):
        found = assert_envelope(api.post_create(**change), 422, "SANDBOX::INVALID_REQUEST")
        assert found["detail"][0]["type"] == "string_type"

    @pytest.mark.parametrize("given, seen", [
        ("2099-01-02T03:04:05Z", "2099-01-02T03:04:05Z"), ("2099-01-02T03:04:05.123456789Z", "2099-01-02T03:04:05.123456Z"),
        ("2099-01-02T03:04:05.1+05:30", "2099-01-01T21:34:05.100000Z"), ("2099-01-02 03:04:05+00:00", "2099-01-02T03:04:05Z"),
        ("2099-01-02T03:04:05", "2099-01-02T03:04:05Z"), (4070999045, "2099-01-02T01:04:05Z"), (4070999045000, "2099-01-02T01:04:05Z"),
    ])  # fmt: skip
    def test_s1_5_timestamps(self, api, sandbox, given, seen):
        reply = api.call("POST", f"/sandboxes/{sandbox}/renew-expiration", json={"expiresAt": given})
        assert (reply.status, reply.json) == (200, {"expiresAt": seen})

    @pytest.mark.parametrize("media_type, status", [("application/json", 202), ("application/json; charset=utf-8", 202), ("APPLICATION/JSON", 202), ("application/merge-patch+json", 202),
                                                    ("text/plain", 422), ("application/x-www-form-urlencoded", 422), ("", 422)])  # fmt: skip
    def test_s1_5_media_type_of_bodies(self, api, media_type, status):
        reply = api.call("POST", "/sandboxes", body=json.dumps(create_body()).encode(), headers={"Content-Type": media_type})
        assert reply.status == status, reply
        if status == 202:
            assert api.delete(reply.json["id"]).status == 204

    def test_s1_5_an_empty_body_where_it_is_optional(self, api):
        assert_envelope(api.call("POST", f"/sandboxes/{NOBODY}/snapshots"), 404, "SANDBOX::NOT_FOUND")


def lasts(made):
    from datetime import datetime

    when = [datetime.fromisoformat(made[name].replace("Z", "+00:00")) for name in ("createdAt", "expiresAt")]
    return (when[1] - when[0]).total_seconds()


class TestLimits:
    @pytest.mark.parametrize("seconds, stays", [(1, False), (None, True)])
    def test_s1_6_an_idle_connection_is_kept_for_as_long_as_configured(self, api, new_service, seconds, stays):
        """The default, 150 s, is above what clients keep theirs for (30 s); server_test has that number."""
        service = new_service(start=False, server={"timeout_keep_alive": seconds}).start() if seconds else api.service
        with rawhttp.Connection(service.address) as connection:
            for _ in range(2):
                connection.send_request("GET", "/health")
                assert connection.read_response().status == 200
            assert connection.is_readable(0.2) is False, "not at once"
            if not stays:
                assert connection.is_readable(5) and connection.read_to_end() == b"", "closed, without a word"

    def test_s1_6_bodies_are_bounded(self, api):
        reply = api.call("POST", "/sandboxes", body=b'{"env":{"A":"' + b"x" * (2 << 20) + b'"}}', headers={"Content-Type": "application/json"})
        assert_envelope(reply, 413, "SANDBOX::REQUEST_TOO_LARGE")

    def test_s1_6_too_many_at_once_is_an_envelope_with_retry_after(self, new_service):
        """Idle connections do not count, and looks are never refused."""
        from concurrent.futures import ThreadPoolExecutor

        from lib.api import Api

        api = Api(new_service(server={"limit_concurrency": 1}))
        idle = [rawhttp.Connection(api.address) for _ in range(20)]
        with ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(lambda _: api.post_create(), range(24)))
        assert {reply.status for reply in replies} <= {202, 429} and 202 in {reply.status for reply in replies}
        assert api.call("GET", "/sandboxes").status == 200
        for reply in replies:
            if reply.status == 429:
                assert_envelope(reply, 429, "SANDBOX::TOO_MANY_REQUESTS")
                assert int(reply.header("retry-after")) >= 1
            else:
                assert api.delete(reply.json["id"]).status == 204
        for connection in idle:
            connection.close()

    def test_s1_6_a_stop_cuts_what_is_left_after_its_grace(self, new_service):
        import time

        from lib.api import Api

        service = new_service(server={"timeout_graceful_shutdown": 1})
        api = Api(service)
        name = api.create()["id"]
        with rawhttp.Connection(api.address) as connection:
            body = json.dumps({"command": "sleep 60"}).encode()
            connection.send_request("POST", f"/v1/sandboxes/{name}/proxy/44772/command", {"Content-Type": "application/json"}, body)
            assert connection.read_head().status == 200
            started = time.monotonic()
            assert service.stop() == 0
            assert time.monotonic() - started < 10


def test_s1_5_query_parameters_are_decoded_once_or_twice(api, make_sandbox):
    made = make_sandbox(metadata={"row": "a.b-c_d"})
    for text in ("row=a.b-c_d", "row=a%2Eb-c_d"):
        found = api.call("GET", f"/sandboxes?metadata={quote(text, safe='')}")
        assert [item["id"] for item in found.json["items"]] == [made["id"]], text
