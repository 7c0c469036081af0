"""Who may talk to the server: API keys, and what a keyless server refuses from web pages. Sandboxes' ports: test_tokens.py."""

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope


@pytest.fixture(scope="module")
def keyed(keyed_service):
    return Api(keyed_service)


class TestKey:
    @pytest.mark.parametrize("path", ["/v1/sandboxes", "/sandboxes", "/v1/sandboxes/x", "/v1/health", "/v1/version", "/nothing", "/v1/metrics/events", "/sandboxes/x/proxy/abc/", "/sandboxes/x/proxy/80/../../y"])
    def test_missing(self, keyed, path):
        assert_envelope(rawhttp.request(keyed.address, "GET", path), 401, "MISSING_API_KEY")

    def test_empty_counts_as_missing(self, keyed):
        assert_envelope(rawhttp.request(keyed.address, "GET", "/v1/sandboxes", headers={"OPEN-SANDBOX-API-KEY": ""}), 401, "MISSING_API_KEY")

    @pytest.mark.parametrize("key", ["wrong", "a-key-for-tests-0123456789x", "a-key-for-tests-012345678", "A-KEY-FOR-TESTS-0123456789"])
    def test_wrong(self, keyed, key):
        reply = rawhttp.request(keyed.address, "GET", "/v1/sandboxes", headers={"OPEN-SANDBOX-API-KEY": key, "X-Request-ID": "q"})
        assert_envelope(reply, 401, "INVALID_API_KEY")
        assert reply.header("x-request-id") == "q"
        assert key.encode() not in reply.body

    def test_right_in_any_case_of_the_name(self, keyed):
        assert rawhttp.request(keyed.address, "GET", "/v1/sandboxes", headers={"open-sandbox-api-key": keyed.key}).status == 200

    @pytest.mark.parametrize("headers", [{"Authorization": "Bearer a-key-for-tests-0123456789"}, {"X-API-Key": "a-key-for-tests-0123456789"}])
    def test_other_schemes_do_not_count(self, keyed, headers):
        assert_envelope(rawhttp.request(keyed.address, "GET", "/v1/sandboxes", headers=headers), 401, "MISSING_API_KEY")
        assert_envelope(rawhttp.request(keyed.address, "GET", "/v1/sandboxes?api_key=a-key-for-tests-0123456789"), 401, "MISSING_API_KEY")

    @pytest.mark.parametrize("path", ["/health", "/version"])
    def test_exempt(self, keyed, path):
        assert rawhttp.request(keyed.address, "GET", path).status == 200

    def test_nothing_is_made_without_a_key(self, keyed):
        before = {item["id"] for item in keyed.list_all()}
        assert keyed.call("POST", "/sandboxes", key="", json={"image": {"uri": "host"}, "entrypoint": ["true"], "resourceLimits": {}}).status == 401
        assert {item["id"] for item in keyed.list_all()} == before

    def test_environment_replaces_the_key(self, new_service):
        service = new_service(start=False, api_key="from-the-file", env={"OPENSANDBOX_SERVER_API_KEY": "from-the-environment"})
        service.start()
        assert Api(service, key="from-the-file").call("GET", "/sandboxes").status == 401
        assert Api(service, key="from-the-environment").call("GET", "/sandboxes").status == 200

    def test_cross_origin_calls_are_allowed_with_a_key(self, keyed):
        reply = rawhttp.request(keyed.address, "GET", "/v1/sandboxes", headers={"OPEN-SANDBOX-API-KEY": keyed.key, "Origin": "https://console.example"})
        assert reply.status == 200
        assert reply.header("access-control-allow-origin") in ("*", "https://console.example")

    def test_preflight_needs_no_key(self, keyed):
        headers = {"Origin": "https://console.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "open-sandbox-api-key"}
        reply = rawhttp.request(keyed.address, "OPTIONS", "/v1/sandboxes", headers=headers)
        assert reply.status in (200, 204), reply
        assert reply.header("access-control-allow-origin") in ("*", "https://console.example")
        assert "POST" in reply.header("access-control-allow-methods")
        assert "open-sandbox-api-key" in reply.header("access-control-allow-headers").lower()


REFUSED = (400, 403, 421)


class TestKeylessServer:
    """Any web page can send requests to 127.0.0.1. Without a key, the server has to tell them from the user's programs."""

    @pytest.mark.parametrize("origin", ["https://evil.example", "http://evil.example:8080", "null", "http://127.0.0.1.evil.example", "http://localhost.evil.example", "file://"])
    @pytest.mark.parametrize("method, path", [("POST", "/v1/sandboxes"), ("GET", "/v1/sandboxes"), ("POST", "/sandboxes"), ("DELETE", "/v1/sandboxes/{id}"), ("GET", "/v1/sandboxes/{id}/proxy/44772/ping"), ("POST", "/sandboxes/{id}/proxy/44772/command")])
    def test_cross_site_origin(self, api, sandbox, origin, method, path):
        before = {item["id"] for item in api.list_all()}
        body = b'{"image":{"uri":"host"},"entrypoint":["true"],"resourceLimits":{}}' if method == "POST" else None
        reply = rawhttp.request(api.address, method, path.format(id=sandbox), headers={"Origin": origin, "Content-Type": "application/json"}, body=body)
        assert reply.status in REFUSED, reply
        assert_envelope(reply, reply.status)
        assert reply.header("access-control-allow-origin") is None
        assert {item["id"] for item in api.list_all()} == before

    def test_preflight_gives_nothing(self, api):
        headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        reply = rawhttp.request(api.address, "OPTIONS", "/v1/sandboxes", headers=headers)
        assert reply.header("access-control-allow-origin") is None
        assert reply.status >= 400

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "192.0.2.7:{port}", "[2001:db8::1]:{port}", "localhost.evil.example"])
    def test_rebound_host(self, api, sandbox, host):
        # A name of the attacker's that resolves to 127.0.0.1 makes the page same-origin; only Host tells.
        host = host.format(port=api.address[1])
        for path in ("/v1/sandboxes", f"/v1/sandboxes/{sandbox}/proxy/44772/ping"):
            reply = rawhttp.request(api.address, "GET", path, headers={"Host": host})
            assert reply.status in REFUSED, (host, reply)
            assert_envelope(reply, reply.status)

    @pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}", "127.0.0.1", "localhost"])
    def test_loopback_names(self, api, host):
        assert rawhttp.request(api.address, "GET", "/v1/sandboxes", headers={"Host": host.format(port=api.address[1])}).status == 200

    @pytest.mark.parametrize("headers", [{"Origin": "http://{host}"}, {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}, {"Referer": "http://{host}/sandboxes/x/proxy/80/"}])
    def test_pages_of_sandboxes_have_the_servers_own_origin(self, api, sandbox, headers):
        host = f"127.0.0.1:{api.address[1]}"
        headers = {"Host": host, **{name: value.format(host=host) for name, value in headers.items()}}
        for path in ("/v1/sandboxes", f"/v1/sandboxes/{sandbox}/proxy/44772/ping"):
            assert rawhttp.request(api.address, "GET", path, headers=headers).status == 403, path
        assert rawhttp.request(api.address, "GET", f"/v1/sandboxes/{sandbox}/proxy/9/", headers=headers).status == 502, "a port of its own"

    def test_header_of_a_fetch_from_another_site(self, api):
        reply = rawhttp.request(api.address, "GET", "/v1/sandboxes", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Origin": "https://evil.example"})
        assert reply.status in REFUSED
