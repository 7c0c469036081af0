"""Section 5, but for the proxy: routes, statuses, bodies."""

import json
from urllib.parse import quote

import pytest
from lib import rawhttp
from lib import snapshots as of
from lib.api import Api, assert_envelope
from lib.waiting import wait_for

NOBODY = "00000000-0000-4000-8000-000000000000"


class TestService:
    def test_s5_1_health(self, api):
        reply = rawhttp.request(api.address, "GET", "/health")
        assert reply.status == 200 and reply.json["status"] == "healthy"

    def test_s5_1_version(self, api):
        found = rawhttp.request(api.address, "GET", "/version").json
        assert set(found) == {"version"} and found["version"]

    def test_s5_1_documents(self, api):
        spec = rawhttp.request(api.address, "GET", "/openapi.json")
        assert spec.json["info"]["version"] == "0.1.0" and spec.header("content-type") == "application/json"
        for path in ("/docs", "/redoc"):
            assert rawhttp.request(api.address, "GET", path).header("content-type") == "text/html; charset=utf-8"


class TestCreate:
    @pytest.mark.parametrize("prefix", ["", "/v1"])
    def test_s5_2_202_and_everything_works_at_once(self, api, prefix):
        made = Api(api.service, prefix=prefix).create()
        assert made["status"]["state"] == "Running"
        for port in (44772, 18080):
            assert api.call("GET", f"/sandboxes/{made['id']}/endpoints/{port}").status == 200
        assert api.ping(made["id"]) and api.get(made["id"])["status"]["state"] == "Running"
        assert api.delete(made["id"]).status == 204

    def test_s5_2_location(self, api):
        reply = api.post_create()
        assert reply.status == 202 and reply.header("location") == f"/v1/sandboxes/{reply.json['id']}"
        assert api.delete(reply.json["id"]).status == 204


class TestList:
    @pytest.fixture(scope="class")
    def three(self, api):
        made = [api.create(metadata={"row": "s5-3", "n": str(n), "blank": ""})["id"] for n in range(3)]
        assert api.call("POST", f"/sandboxes/{made[0]}/pause").status == 202
        yield made
        for name in made:
            api.delete(name)

    def ids(self, api, **query):
        text = "&".join(f"{name}={quote(value, safe='')}" for name, values in query.items() for value in (values if isinstance(values, list) else [values]))
        reply = api.call("GET", "/sandboxes?" + text)
        assert reply.status == 200, reply
        return [item["id"] for item in reply.json["items"]]

    def test_s5_3_newest_first(self, api, three):
        assert self.ids(api, metadata="row=s5-3") == three[::-1]

    @pytest.mark.parametrize("states, picked", [(["paused"], [0]), (["RUNNING"], [1, 2]), (["Paused", "running"], [0, 1, 2]), (["Failed"], []), (["nothing"], []), (["nothing", "Paused"], [0])])
    def test_s5_3_states(self, api, three, states, picked):
        assert set(self.ids(api, state=states, metadata="row=s5-3")) == {three[n] for n in picked}

    @pytest.mark.parametrize("text, picked", [("row=s5-3&n=1", [1]), ("row=s5-3&n=1&n=2", [2]), ("row=s5-3&blank=", [0, 1, 2]), ("row=s5%2D3&n=0", [0]), ("row=s5-3&n=9", []), ("row=s5+3", [])])
    def test_s5_3_metadata(self, api, three, text, picked):
        assert set(self.ids(api, metadata=text)) == {three[n] for n in picked}

    def test_s5_3_no_filter(self, api, three):
        assert set(three) <= set(self.ids(api, metadata="", pageSize="200", unknown="x"))

    @pytest.mark.parametrize("query", ["metadata=a", "metadata=a%3Db%26c"])
    def test_s5_3_no_query_string(self, api, query):
        assert_envelope(api.call("GET", f"/sandboxes?{query}"), 400, "INVALID_METADATA_FORMAT")

    @pytest.mark.parametrize("query", ["page=0", "page=-1", "page=x", "page=", "pageSize=0", "pageSize=201", "pageSize=1.5"])
    def test_s5_3_pages(self, api, query):
        found = assert_envelope(api.call("GET", f"/sandboxes?{query}"), 422, "SANDBOX::INVALID_REQUEST")
        assert found["detail"][0]["loc"] == ["query", query.partition("=")[0]]


def test_s5_4_get(api, sandbox):
    assert api.get(sandbox)["id"] == sandbox
    assert_envelope(api.call("GET", f"/sandboxes/{NOBODY}"), 404, "SANDBOX::NOT_FOUND")


class TestMetadata:
    def test_s5_5_merge(self, api, make_sandbox):
        made = make_sandbox(metadata={"keep": "1", "drop": "2"})
        path = f"/sandboxes/{made['id']}/metadata"
        assert api.call("PATCH", path, json={"drop": None, "new": "3", "missing": None}).json["metadata"] == {"keep": "1", "new": "3"}
        assert api.call("PATCH", path, json={}).json["metadata"] == {"keep": "1", "new": "3"}
        assert api.call("PATCH", path, json={"drop": None}).json["metadata"] == {"keep": "1", "new": "3"}, "deleted stays deleted"

    def test_s5_5_while_paused_and_after_the_end(self, api, make_sandbox):
        paused, ended = make_sandbox()["id"], make_sandbox(entrypoint=["sh", "-c", "sleep 0.2"])["id"]
        assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
        wait_for(lambda: api.status(ended)["state"] == "Terminated", 10, "it ends")
        for name in (paused, ended):
            assert api.call("PATCH", f"/sandboxes/{name}/metadata", json={"k": "v"}).json["metadata"] == {"k": "v"}
        assert [api.status(name)["state"] for name in (paused, ended)] == ["Paused", "Terminated"]

    def test_s5_5_many_at_once_all_count(self, api, make_sandbox):
        from concurrent.futures import ThreadPoolExecutor

        name = make_sandbox()["id"]
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: api.call("PATCH", f"/sandboxes/{name}/metadata", json={f"k{n}": "v"}), range(16)))
        assert {reply.status for reply in replies} == {200}
        assert api.get(name)["metadata"] == {f"k{n}": "v" for n in range(16)}


def test_s5_6_delete(api):
    name = api.create()["id"]
    reply = api.delete(name)
    assert (reply.status, reply.body) == (204, b"")
    for method in ("GET", "DELETE"):
        assert_envelope(api.call(method, f"/sandboxes/{name}"), 404, "SANDBOX::NOT_FOUND")
    assert name not in [item["id"] for item in api.list_all()]


def test_s5_7_pause_and_resume(api, make_sandbox):
    name = make_sandbox()["id"]
    for verb, state, again in (("pause", "Paused", "SANDBOX::NOT_RUNNING"), ("resume", "Running", "SANDBOX::NOT_PAUSED")):
        reply = api.call("POST", f"/sandboxes/{name}/{verb}", body=b"ignored", headers={"Content-Type": "text/plain"})
        assert (reply.status, reply.body) == (202, b"")
        assert api.status(name)["state"] == state, "done when answered"
        assert_envelope(api.call("POST", f"/sandboxes/{name}/{verb}"), 409, again)
        assert_envelope(api.call("POST", f"/sandboxes/{NOBODY}/{verb}"), 404, "SANDBOX::NOT_FOUND")


class TestRenew:
    def test_s5_8_longer_equal_and_shorter(self, api, make_sandbox):
        name = make_sandbox(timeout=600)["id"]
        for instant in ("2099-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "2098-01-01T00:00:00Z"):
            reply = api.call("POST", f"/sandboxes/{name}/renew-expiration", json={"expiresAt": instant})
            assert (reply.status, reply.json) == (200, {"expiresAt": instant})

    def test_s5_8_refusals(self, api, make_sandbox):
        forever = make_sandbox(timeout=...)["id"]
        future, past = {"expiresAt": "2099-01-01T00:00:00Z"}, {"expiresAt": "2020-01-01T00:00:00Z"}
        assert_envelope(api.call("POST", f"/sandboxes/{forever}/renew-expiration", json=future), 409, "SANDBOX::INVALID_EXPIRATION")
        assert_envelope(api.call("POST", f"/sandboxes/{NOBODY}/renew-expiration", json=past), 404, "SANDBOX::NOT_FOUND")
        assert_envelope(api.call("POST", f"/sandboxes/{make_sandbox()['id']}/renew-expiration", json=past), 400, "SANDBOX::INVALID_EXPIRATION")

    def test_s5_8_the_maximum_of_creates_does_not_hold(self, new_service):
        api = Api(new_service(server={"max_sandbox_timeout_seconds": 60}))
        name = api.create(timeout=60)["id"]
        api.renew(name, 6000)
        assert api.delete(name).status == 204


class TestSnapshots:
    @pytest.fixture(scope="class")
    def taken(self, api):
        source = api.create()["id"]
        replies = [api.call("POST", f"/sandboxes/{source}/snapshots", **body) for body in ({}, {"json": {"name": "s5-9"}}, {"json": {}})]
        for reply in replies:
            of.settled(api, reply.json["id"])
        yield source, replies
        for reply in replies:
            api.call("DELETE", f"/snapshots/{reply.json['id']}")
        api.delete(source)

    def test_s5_9_create(self, taken):
        source, replies = taken
        for reply in replies:
            assert reply.status == 202 and reply.json["status"]["state"] == "Creating" and reply.json["sandboxId"] == source
            assert set(reply.json) <= {"id", "sandboxId", "name", "status", "createdAt"}

    def test_s5_10_location(self, taken):
        for reply in taken[1]:
            assert reply.header("location") == f"/v1/snapshots/{reply.json['id']}"

    @pytest.mark.parametrize("query, count", [("", 3), ("&state=Ready", 3), ("&state=ready", 0), ("&state=Failed&state=Ready", 3), ("&name=s5-9", 1), ("&name=S5-9", 0), ("&name=", 0), ("&pageSize=2", 2), ("&page=2&pageSize=2", 1)])
    def test_s5_9_list(self, api, taken, query, count):
        source, replies = taken
        found = api.call("GET", f"/snapshots?sandboxId={source}{query}").json
        ids = [item["id"] for item in found["items"]]
        newest = [reply.json["id"] for reply in replies][::-1]
        assert len(ids) == count and (query != "" or ids == newest)

    def test_s5_9_get_and_delete(self, api, taken):
        source, _ = taken
        made = of.make(api, source)
        assert api.call("GET", f"/snapshots/{made['id']}").json["status"]["state"] == "Ready"
        assert api.call("DELETE", f"/snapshots/{made['id']}").status == 204
        for method in ("GET", "DELETE"):
            assert_envelope(api.call(method, f"/snapshots/{made['id']}"), 404, "SNAPSHOT::NOT_FOUND")


class TestEndpoint:
    @pytest.mark.parametrize("prefix", ["", "/v1"])
    @pytest.mark.parametrize("query", ["", "?use_server_proxy=true", "?use_server_proxy=0"])
    @pytest.mark.parametrize("port", [1, 18080, 44772, 65535])
    def test_s5_11_string(self, api, sandbox, prefix, query, port):
        host = f"localhost:{api.address[1]}"
        found = rawhttp.request(api.address, "GET", f"{prefix}/sandboxes/{sandbox}/endpoints/{port}{query}", headers={"Host": host}).json
        assert found["endpoint"] == f"{host}{prefix}/sandboxes/{sandbox}/proxy/{port}"
        assert ("OPENSANDBOX-EGRESS-AUTH" in found.get("headers", {})) == (port == 18080)
        assert "OpenSandbox-Ingress-To" not in found.get("headers", {})

    @pytest.mark.parametrize("port, status", [("0", 400), ("65536", 400), ("99999999999999999999", 400), ("abc", 422), ("8o", 422), ("1.5", 422)])
    def test_s5_11_ports(self, api, sandbox, port, status):
        assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/endpoints/{port}"), status, "SANDBOX::INVALID_PORT" if status == 400 else "SANDBOX::INVALID_REQUEST")

    @pytest.mark.parametrize("query, status, code", [
        ("use_server_proxy=true&expires=4070908800", 400, "SANDBOX::INVALID_PARAMETER"), ("expires=1", 400, "SANDBOX::INVALID_PARAMETER"), ("expires=-1", 400, "SANDBOX::INVALID_PARAMETER"),
        ("expires=x", 422, "SANDBOX::INVALID_REQUEST"), ("expires=", 422, "SANDBOX::INVALID_REQUEST"), ("use_server_proxy=maybe", 422, "SANDBOX::INVALID_REQUEST"),
    ])  # fmt: skip
    def test_s5_11_expires(self, api, sandbox, query, status, code):
        assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/endpoints/80?{query}"), status, code)

    def test_s5_11_signed(self, api, sandbox):
        signed = api.call("GET", f"/sandboxes/{sandbox}/endpoints/44772?use_server_proxy=false&expires=4070908800").json
        assert f"/sandboxes/{sandbox}/proxy/44772" in signed["endpoint"] and "OpenSandbox-Secure-Access" not in signed.get("headers", {})
        assert rawhttp.request(api.address, "GET", signed["endpoint"][signed["endpoint"].index("/"):] + "/ping").status == 200

    @pytest.mark.parametrize("query", ["", "?use_server_proxy=true"])
    def test_s5_11_of_nobody(self, api, query):
        reply = api.call("GET", f"/sandboxes/{NOBODY}/endpoints/44772{query}", headers={"X-Request-ID": "asked"})
        assert_envelope(reply, 404, "SANDBOX::NOT_FOUND")
        assert reply.header("x-request-id") == "asked"

    def test_s5_11_whatever_its_state_and_whatever_listens(self, api, make_sandbox):
        name = make_sandbox()["id"]
        assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
        assert api.call("GET", f"/sandboxes/{name}/endpoints/9").status == 200

    @pytest.mark.parametrize("eip, base", [("gw.example", "gw.example"), ("https://gw.example/base/", "gw.example/base")])
    def test_s5_11_a_public_name(self, new_service, eip, base):
        api = Api(new_service(server={"eip": eip}))
        name = api.create()["id"]
        for prefix in ("", "/v1"):
            assert rawhttp.request(api.address, "GET", f"{prefix}/sandboxes/{name}/endpoints/80").json["endpoint"] == f"{base}/sandboxes/{name}/proxy/80"
        assert api.delete(name).status == 204

    def test_s5_11_no_origin_of_a_template(self, api, sandbox):
        assert api.call("GET", f"/sandboxes/{sandbox}/endpoints/80").header("open-sandbox-origin") is None


class TestDiagnostics:
    @pytest.fixture(scope="class")
    def talker(self, api):
        name = api.create(entrypoint=["sh", "-c", "for n in $(seq 150); do echo line $n; done; exec tail -f /dev/null"], env={"API_TOKEN": "hidden-value"})["id"]
        wait_for(lambda: "line 150" in self.text(api, name, "logs"), 10, "its output")
        yield name
        api.delete(name)

    def text(self, api, name, what):
        reply = api.call("GET", f"/sandboxes/{name}/diagnostics/{what}")
        assert reply.status == 200 and reply.header("content-type") == "text/plain; charset=utf-8", reply
        return reply.body.decode()

    @pytest.mark.parametrize("what, deprecated", [("logs", True), ("events", True), ("inspect", False), ("summary", False)])
    def test_s5_14_plain_forms(self, api, talker, what, deprecated):
        reply = api.call("GET", f"/sandboxes/{talker}/diagnostics/{what}")
        assert reply.header("deprecation") == ("true" if deprecated else None) and reply.body
        assert b"hidden-value" not in reply.body

    @pytest.mark.parametrize("query, lines", [("", 100), ("?tail=1", 1), ("?tail=10000", 150), ("?tail=5&since=1h", 5), ("?since=nonsense", 100), ("?container=any", 100)])
    def test_s5_14_lines(self, api, talker, query, lines):
        assert len(self.text(api, talker, f"logs{query}").splitlines()) == lines

    @pytest.mark.parametrize("what", ["logs?tail=0", "logs?tail=10001", "logs?tail=x", "events?limit=0", "events?limit=501", "summary?tail=0", "summary?event_limit=501"])
    def test_s5_14_bounds(self, api, talker, what):
        assert_envelope(api.call("GET", f"/sandboxes/{talker}/diagnostics/{what}"), 422, "SANDBOX::INVALID_REQUEST")

    def test_s5_14_summary_has_all_sections(self, api, talker):
        text = self.text(api, talker, "summary")
        assert talker in text and all(word in text.upper() for word in ("INSPECT", "EVENTS", "LOGS"))

    def test_s5_14_nothing_yet(self, api, make_sandbox):
        assert self.text(api, make_sandbox()["id"], "logs") == "(no logs)"

    @pytest.mark.parametrize("kind, scope, seen", [("logs", "container", "container"), ("logs", " ALL ", "all"), ("events", "runtime", "runtime"), ("events", "all", "all")])
    def test_s5_14_stable_form(self, api, talker, kind, scope, seen):
        reply = api.call("GET", f"/sandboxes/{talker}/diagnostics/{kind}?scope={quote(scope)}&tail=1&limit=1")
        found = reply.json
        assert reply.header("deprecation") is None
        assert (found["sandboxId"], found["kind"], found["scope"], found["delivery"]) == (talker, kind, seen, "inline")
        assert found["contentType"] == "text/plain; charset=utf-8" and found["contentLength"] == len(found["content"].encode())
        assert ("warnings" in found) == (seen == "all") and "contentUrl" not in found and "expiresAt" not in found
        if kind == "logs":
            assert found["truncated"] is True and len(found["content"].splitlines()) == 100

    @pytest.mark.parametrize("kind, scope", [("logs", ""), ("logs", "runtime"), ("logs", "network"), ("events", "container"), ("events", "")])
    def test_s5_14_unknown_scopes_before_the_sandbox(self, api, kind, scope):
        assert_envelope(api.call("GET", f"/sandboxes/{NOBODY}/diagnostics/{kind}?scope={scope}"), 400, "DIAGNOSTICS_SCOPE_UNSUPPORTED")

    @pytest.mark.parametrize("what", ["logs", "events", "inspect", "summary", "logs?scope=all", "events?scope=all"])
    def test_s5_14_of_nobody(self, api, what):
        assert_envelope(api.call("GET", f"/sandboxes/{NOBODY}/diagnostics/{what}"), 404, "SANDBOX::NOT_FOUND")


class TestWhatIsNotHere:
    @pytest.mark.parametrize("method, path", [("GET", "/tenants"), ("GET", "/users"), ("GET", "/quotas"), ("GET", "/metrics"), ("POST", f"/sandboxes/{NOBODY}/exec"), ("GET", f"/sandboxes/{NOBODY}/files"), ("POST", f"/sandboxes/{NOBODY}/clone")])
    def test_s5_15_other_routes(self, api, method, path):
        assert_envelope(api.call(method, path), 404)

    @pytest.mark.parametrize("method, path", [("POST", "/templates"), ("GET", "/templates"), ("GET", "/templates/x"), ("DELETE", "/templates/x")])
    def test_s5_16_templates_are_501(self, api, method, path):
        assert_envelope(api.call(method, path, json={"image": "x", "publish": "s3://b/x"} if method == "POST" else None), 501)

    def test_s5_16_ids_of_another_backend(self, api):
        assert_envelope(api.call("GET", "/sandboxes/fsb-00000000"), 404, "SANDBOX::NOT_FOUND")


class TestNetworkPolicy:
    def test_s5_17_the_server_lends_its_token(self, api, make_sandbox):
        name = make_sandbox(networkPolicy={"egress": [{"action": "allow", "target": "example.com"}]})["id"]
        path = f"/sandboxes/{name}/networkpolicy"
        assert api.call("GET", path, headers={"OPENSANDBOX-EGRESS-AUTH": "of-the-caller"}).json["policy"]["egress"][0]["target"] == "example.com"
        assert api.call("PATCH", path, json=[{"action": "allow", "target": "example.org"}]).status == 200
        targets = [rule["target"] for rule in api.call("GET", path).json["policy"]["egress"]]
        assert set(targets) == {"example.com", "example.org"}
        assert api.call("DELETE", path, json=["example.com"]).status == 200
        assert [rule["target"] for rule in api.call("GET", path).json["policy"]["egress"]] == ["example.org"]
        assert api.call("PUT", path, json={"defaultAction": "deny", "egress": []}).status == 200
        assert_envelope(api.call("GET", f"/sandboxes/{NOBODY}/networkpolicy"), 404, "SANDBOX::NOT_FOUND")

    @pytest.mark.parametrize("method, body", [("PUT", []), ("PATCH", {}), ("DELETE", {}), ("PATCH", [1]), ("DELETE", [1])])
    def test_s5_17_shapes(self, api, sandbox, method, body):
        reply = api.call(method, f"/sandboxes/{sandbox}/networkpolicy", json=body)
        assert reply.status in (400, 422), reply


class TestMetrics:
    @pytest.mark.parametrize("change, status", [({}, 204), ({"sandboxId": "x", "image": "y"}, 204), ({"eventType": "other"}, 422), ({"createDurationMs": -1}, 422), ({"createDurationMs": "x"}, 422),
                                                ({"success": None}, 422), ({"success": "maybe"}, 422), ({"image": 5}, 422)])  # fmt: skip
    def test_s5_18_events(self, api, change, status):
        body = {"eventType": "sandbox.create", "createDurationMs": 5, "success": True, **change}
        reply = api.call("POST", "/metrics/events", json=body)
        assert reply.status == status and (status == 422 or reply.body == b""), json.dumps(body)
