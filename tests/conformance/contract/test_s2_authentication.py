"""Section 2: keys, what needs none, and the guard at the start."""

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.service import CANNOT_START

NOBODY = "00000000-0000-4000-8000-000000000000"


def bare(api, path, headers=(), method="GET"):
    return rawhttp.request(api.address, method, path, headers=headers)


class TestKey:
    @pytest.mark.parametrize("headers, code", [
        ({}, "MISSING_API_KEY"), ({"OPEN-SANDBOX-API-KEY": ""}, "MISSING_API_KEY"), ({"OPEN-SANDBOX-API-KEY": "wrong"}, "INVALID_API_KEY"),
        ({"OPEN-SANDBOX-API-KEY": "A-KEY-FOR-TESTS-0123456789"}, "INVALID_API_KEY"), ({"Authorization": "Bearer a-key-for-tests-0123456789"}, "MISSING_API_KEY"),
    ])  # fmt: skip
    def test_s2_1_codes(self, keyed, headers, code):
        reply = bare(keyed, "/v1/sandboxes", headers)
        assert_envelope(reply, 401, code)
        assert reply.header("www-authenticate") is None

    @pytest.mark.parametrize("name", ["OPEN-SANDBOX-API-KEY", "open-sandbox-api-key", "Open-Sandbox-Api-Key"])
    def test_s2_1_name_in_any_case(self, keyed, name):
        assert bare(keyed, "/v1/sandboxes", {name: keyed.key}).status == 200

    def test_s2_1_no_query_parameter(self, keyed):
        assert_envelope(bare(keyed, f"/v1/sandboxes?api_key={keyed.key}&OPEN-SANDBOX-API-KEY={keyed.key}"), 401, "MISSING_API_KEY")

    def test_s2_1_the_environment_replaces_the_file(self, new_service):
        service = new_service(start=False, api_key="of-the-file", env={"OPENSANDBOX_SERVER_API_KEY": "of-the-environment"}).start()
        assert Api(service, key="of-the-file").call("GET", "/sandboxes").status == 401
        assert Api(service, key="of-the-environment").call("GET", "/sandboxes").status == 200

    @pytest.mark.parametrize("key, env", [("of-the-file", {"OPENSANDBOX_SERVER_API_KEY": ""}), ("   ", {})])
    def test_s2_1_blank_is_none(self, new_service, key, env):
        service = new_service(start=False, api_key=key, env=env).start()
        assert bare(Api(service), "/v1/sandboxes").status == 200

    ROUTES = [
        ("POST", "/sandboxes"), ("GET", "/sandboxes"), ("GET", f"/sandboxes/{NOBODY}"), ("DELETE", f"/sandboxes/{NOBODY}"), ("PATCH", f"/sandboxes/{NOBODY}/metadata"),
        ("POST", f"/sandboxes/{NOBODY}/pause"), ("POST", f"/sandboxes/{NOBODY}/resume"), ("POST", f"/sandboxes/{NOBODY}/renew-expiration"),
        ("POST", f"/sandboxes/{NOBODY}/snapshots"), ("GET", "/snapshots"), ("GET", f"/snapshots/{NOBODY}"), ("DELETE", f"/snapshots/{NOBODY}"),
        ("GET", f"/sandboxes/{NOBODY}/endpoints/80"), ("GET", f"/sandboxes/{NOBODY}/diagnostics/logs"), ("GET", f"/sandboxes/{NOBODY}/diagnostics/events"),
        ("GET", f"/sandboxes/{NOBODY}/diagnostics/inspect"), ("GET", f"/sandboxes/{NOBODY}/diagnostics/summary"), ("GET", f"/sandboxes/{NOBODY}/networkpolicy"),
        ("GET", "/pools"), ("GET", "/templates"), ("POST", "/metrics/events"),
    ]  # fmt: skip

    @pytest.mark.parametrize("method, path", ROUTES)
    def test_s2_1_every_route_wants_it(self, keyed, method, path):
        for prefix in ("/v1", ""):
            assert_envelope(bare(keyed, prefix + path, method=method), 401, "MISSING_API_KEY")


class TestExemptions:
    @pytest.mark.parametrize("path", ["/health", "/version", "/docs", "/redoc", "/openapi.json"])
    def test_s2_2_need_no_key(self, keyed, path):
        assert bare(keyed, path).status == 200
        assert bare(keyed, path, {"OPEN-SANDBOX-API-KEY": "wrong"}).status == 200

    @pytest.mark.parametrize("path", ["/healthz", "/health/x", "/docs/oauth2-redirect", "/versions", "/openapi.json.bak"])
    def test_s2_2_exactly_these(self, keyed, path):
        assert_envelope(bare(keyed, path), 401, "MISSING_API_KEY")

    @pytest.mark.parametrize("path", ["/sandboxes/{id}/proxy/abc/", "/sandboxes/{id}/proxy/80x/", "/sandboxes/{id}/proxy/44772/../../../sandboxes", "/v1/sandboxes/{id}/proxy"])
    def test_s2_2_what_only_looks_like_the_proxy_needs_it(self, keyed, path):
        assert bare(keyed, path.format(id=NOBODY)).status in (400, 401)

    def test_s2_2_an_endpoint_works_without_the_key(self, keyed):
        made = keyed.create()
        try:
            assert bare(keyed, keyed.endpoint(made["id"]) + "/ping").status == 200
            # Stricter than the reference: the id alone opens nothing.
            assert_envelope(bare(keyed, f"/v1/sandboxes/{made['id']}/proxy/44772/ping"), 401, "MISSING_API_KEY")
        finally:
            keyed.delete(made["id"])


class TestGuard:
    @pytest.mark.parametrize("env", [{}, {"OPENSANDBOX_INSECURE_SERVER": "yes"}, {"OPENSANDBOX_INSECURE_SERVER": "1"}, {"OPENSANDBOX_SERVER_API_KEY": " "}])
    def test_s2_3_no_key_and_every_address_is_refused_first(self, new_service, env):
        service = new_service(start=False, server={"host": "0.0.0.0"}, env=env)
        assert service.ends() == CANNOT_START
        assert "API key" in service.log_tail() and not service.state_dir.exists(), "nothing was begun"

    def test_s2_3_acknowledged(self, new_service):
        assert new_service(start=False, server={"host": "0.0.0.0"}, env={"OPENSANDBOX_INSECURE_SERVER": "YES"}).start().is_healthy()
