"""Section 3: shapes of errors, details of 422, codes."""

import json

import pytest
from lib import rawhttp
from lib.api import assert_envelope, create_body
from lib.waiting import wait_for

NOBODY = "00000000-0000-4000-8000-000000000000"
SECRET = "hunter2-not-to-be-echoed"


class TestShapes:
    @pytest.mark.parametrize("method, path, body, status, code", [
        ("GET", f"/sandboxes/{NOBODY}", None, 404, "SANDBOX::NOT_FOUND"),
        ("GET", f"/snapshots/{NOBODY}", None, 404, "SNAPSHOT::NOT_FOUND"),
        ("GET", "/sandboxes?metadata=x", None, 400, "INVALID_METADATA_FORMAT"),
        ("GET", "/nothing", None, 404, None),
        ("PUT", "/sandboxes", {}, 405, None),
        ("POST", "/sandboxes", {}, 422, "SANDBOX::INVALID_REQUEST"),
        ("GET", "/templates", None, 501, None),
    ])  # fmt: skip
    def test_s3_1_always_code_and_message(self, api, method, path, body, status, code):
        assert_envelope(api.call(method, path, json=body), status, code)

    @pytest.mark.parametrize("head", [b"GET / HTTP/9.9\r\n\r\n", b"GET /x y HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nBad Header: x\r\n\r\n"])
    def test_s3_1_malformed_http_too(self, api, head):
        with rawhttp.Connection(api.address) as connection:
            connection.send(head)
            reply = connection.read_response()
        assert reply.status in (400, 505) and reply.json["code"] and reply.json["message"]


class TestDetails:
    CASES = [
        ("missing", {"image": {}}, ["body", "image", "uri"]),
        ("string_type", {"image": {"uri": 5}}, ["body", "image", "uri"]),
        ("string_type", {"resourceLimits": {"cpu": 1}}, ["body", "resourceLimits", "cpu"]),
        ("int_parsing", {"timeout": "soon"}, ["body", "timeout"]),
        ("int_from_float", {"timeout": 60.5}, ["body", "timeout"]),
        ("greater_than_equal", {"timeout": 59}, ["body", "timeout"]),
        ("too_short", {"entrypoint": []}, ["body", "entrypoint"]),
        ("bool_parsing", {"secureAccess": "maybe"}, ["body", "secureAccess"]),
        ("string_too_short", {"templateId": ""}, ["body", "templateId"]),
        ("value_error", {"entrypoint": ...}, ["body"]),
        ("value_error", {"volumes": [{"name": "v", "mountPath": "/v"}]}, ["body", "volumes", 0]),
        ("extra_forbidden", {"lifecycle": {"x": 1}}, ["body", "lifecycle", "x"]),
    ]  # fmt: skip

    @pytest.mark.parametrize("kind, change, where", CASES, ids=[f"{row[0]}-{'.'.join(map(str, row[2]))}" for row in CASES])
    def test_s3_2_types_and_places(self, api, kind, change, where):
        found = assert_envelope(api.post_create(**change), 422, "SANDBOX::INVALID_REQUEST")
        assert (kind, where) in [(entry["type"], entry["loc"]) for entry in found["detail"]], found

    @pytest.mark.parametrize("path, kind, where", [
        ("/sandboxes?page=0", "greater_than_equal", ["query", "page"]), ("/sandboxes?pageSize=201", "less_than_equal", ["query", "pageSize"]),
        ("/sandboxes?page=x", "int_parsing", ["query", "page"]), (f"/sandboxes/{NOBODY}/endpoints/abc", "int_parsing", ["path", "port"]),
        (f"/sandboxes/{NOBODY}/endpoints/80?use_server_proxy=maybe", "bool_parsing", ["query", "use_server_proxy"]),
    ])  # fmt: skip
    def test_s3_2_query_and_path(self, api, path, kind, where):
        found = assert_envelope(api.call("GET", path), 422, "SANDBOX::INVALID_REQUEST")
        assert [(entry["type"], entry["loc"]) for entry in found["detail"]] == [(kind, where)]

    def test_s3_2_malformed_json(self, api):
        found = assert_envelope(api.call("POST", "/sandboxes", body=b'{"a":', headers={"Content-Type": "application/json"}), 422)
        assert found["detail"][0]["type"] == "json_invalid"
        assert found["detail"][0]["loc"][0] == "body" and isinstance(found["detail"][0]["loc"][1], int)

    def test_s3_2_fields_are_collected_before_rules_across_them(self, api):
        body = create_body(timeout=1, entrypoint=[], image=..., resourceLimits=...)
        found = assert_envelope(api.call("POST", "/sandboxes", json=body), 422)
        assert [entry["loc"] for entry in found["detail"]] == [["body", "timeout"], ["body", "entrypoint"]]

    @pytest.mark.parametrize("change", [{"entrypoint": ...}, {"timeout": SECRET}, {"image": {"uri": "host", "auth": {"username": SECRET}}}, {"volumes": [{"name": SECRET, "mountPath": "v"}]}])
    def test_s3_2_nothing_of_the_request_comes_back(self, api, change):
        reply = api.post_create(env={"PASSWORD": SECRET}, **change)
        assert_envelope(reply, 422)
        assert SECRET.encode() not in reply.body


class TestCodes:
    """Those that a request can bring about by itself; the others are in docs/errors.md with their tests."""

    CREATE = [
        ("SANDBOX::INVALID_METADATA_LABEL", {"metadata": {"opensandbox.io/x": "1"}}),
        ("SANDBOX::INVALID_METADATA_LABEL", {"metadata": {"bad key": "1"}}),
        ("SANDBOX::INVALID_PARAMETER", {"platform": {"os": "plan9", "arch": "amd64"}}),
        ("SANDBOX::INVALID_PARAMETER", {"timeout": 1 << 60}),
        ("SANDBOX::INVALID_PARAMETER", {"resourceLimits": {"cpu": "0"}}),
        ("SANDBOX::INVALID_PARAMETER", {"resourceLimits": {"memory": "1.5Gi"}}),
        ("SANDBOX::INVALID_PARAMETER", {"env": {"OPENSANDBOX_EGRESS_NOBODY": "x"}}),
        ("SANDBOX::INVALID_PARAMETER", {"extensions": {"access.renew.extend.seconds": "299"}}),
        ("SANDBOX::UNSUPPORTED", {"networkPolicy": {}, "credentialProxy": {"enabled": True}}),
        ("SANDBOX::UNSUPPORTED", {"templateId": "tpl-x", "image": ..., "entrypoint": ..., "resourceLimits": ...}),
        ("IMAGE::NOT_FOUND", {"image": {"uri": "nobody-has-this:1"}}),
        ("SANDBOX::INVALID_ENTRYPOINT", {"entrypoint": ["/no/such/program"]}),
        ("SNAPSHOT::NOT_FOUND", {"image": ..., "snapshotId": NOBODY}),
    ]  # fmt: skip

    @pytest.mark.parametrize("code, change", CREATE, ids=[f"{code}-{json.dumps(change, default=str)[:40]}" for code, change in CREATE])
    def test_s3_3_of_a_create(self, api, code, change):
        reply = api.post_create(**change)
        assert_envelope(reply, 404 if code == "SNAPSHOT::NOT_FOUND" else 400, code)

    def test_s3_3_an_entry_process_that_ends_at_once(self, api):
        """Whichever is first: the refusal of the create, or an answer after which it is Failed."""
        reply = api.post_create(entrypoint=["sh", "-c", "exit 3"])
        if reply.status != 202:
            assert "3" in assert_envelope(reply, 400, "SANDBOX::ENTRYPOINT_EXITED")["message"]
            return
        wait_for(lambda: api.status(reply.json["id"])["reason"] == "ENTRYPOINT_FAILED", 10, "it ends")
        assert api.delete(reply.json["id"]).status == 204

    @pytest.mark.parametrize("method, path, body, status, code", [
        ("POST", "/renew-expiration", {"expiresAt": "2020-01-01T00:00:00Z"}, 400, "SANDBOX::INVALID_EXPIRATION"),
        ("PATCH", "/metadata", {"opensandbox.io/x": "1"}, 400, "INVALID_METADATA_LABEL"),
        ("PATCH", "/metadata", {"bad key": "1"}, 400, "SANDBOX::INVALID_METADATA_LABEL"),
        ("GET", "/endpoints/0", None, 400, "SANDBOX::INVALID_PORT"),
        ("GET", "/endpoints/80?use_server_proxy=1&expires=4070948645", None, 400, "SANDBOX::INVALID_PARAMETER"),
        ("POST", "/resume", None, 409, "SANDBOX::NOT_PAUSED"),
        ("GET", "/diagnostics/logs?scope=nothing", None, 400, "DIAGNOSTICS_SCOPE_UNSUPPORTED"),
        ("GET", "/proxy/9/", None, 502, "BACKEND_CONNECTION_FAILED"),
    ])  # fmt: skip
    def test_s3_3_of_a_sandbox(self, api, sandbox, method, path, body, status, code):
        assert_envelope(api.call(method, f"/sandboxes/{sandbox}{path}", json=body), status, code)

    def test_s3_4_every_answer_of_the_server_is_in_its_table(self, api):
        """lib/errors.py compares each error that any test sees with docs/errors.md; here it is shown that it can fail."""
        from lib import errors

        reply = rawhttp.Response(500, "", [("content-type", "application/json")], b'{"code":"SANDBOX::MADE_UP","message":"x"}')
        with pytest.raises(AssertionError):
            errors.check(reply, "/sandboxes")
