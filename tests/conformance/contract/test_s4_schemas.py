"""Section 4: requests and answers, field by field."""

import json
import re

import pytest
from lib.api import SLEEPER, assert_envelope, create_body

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOBODY = "00000000-0000-4000-8000-000000000000"


def shown(row):
    return json.dumps(row, default=str)[:70]


def volume(**change):
    return {"volumes": [{"name": "v", "mountPath": "/v", "host": {"path": "/x"}, **change}]}


class TestCreateRequest:
    # In the order in which the rules between fields are tried: the message is the first one's.
    ACROSS = [
        ({"env": {"OPENSANDBOX_LIFECYCLE": "{}"}, "image": ...}, "OPENSANDBOX_LIFECYCLE"),
        ({"templateId": "tpl-1"}, "image"),
        ({"templateId": "tpl-1", "image": ..., "entrypoint": ...}, "resourceLimits"),
        ({"templateId": "tpl-1", "image": ..., "entrypoint": ..., "resourceLimits": ..., "timeout": ...}, "timeout"),
        ({"templateId": "tpl-1", "image": ..., "entrypoint": ..., "resourceLimits": ..., "env": {}}, "env"),
        ({"extensions": {"poolRef": "p"}, "lifecycle": {}}, "lifecycle"),
        ({"extensions": {"poolRef": "p"}, "snapshotId": "s", "image": ...}, "snapshotId"),
        ({"credentialProxy": {"enabled": True}, "image": ...}, "networkPolicy"),
        ({"snapshotId": "s", "entrypoint": ...}, "image"),
        ({"image": ..., "entrypoint": ...}, "image"),
        ({"image": {"uri": " "}}, "image"),
        ({"image": ..., "snapshotId": "  "}, "image"),
        ({"entrypoint": ..., "resourceLimits": ...}, "entrypoint"),
        ({"resourceLimits": ...}, "resourceLimits"),
        ({"resourceLimits": None}, "resourceLimits"),
    ]  # fmt: skip

    @pytest.mark.parametrize("change, word", ACROSS, ids=[shown(row[0]) for row in ACROSS])
    def test_s4_1_rules_between_fields(self, api, change, word):
        found = assert_envelope(api.post_create(**change), 422, "SANDBOX::INVALID_REQUEST")
        assert [entry["loc"] for entry in found["detail"]] == [["body"]]
        assert word in found["detail"][0]["msg"] and found["detail"][0]["msg"].startswith("Value error, "), found

    ACCEPTED = [
        {"resourceLimits": {}}, {"timeout": 60}, {"timeout": ...}, {"env": {"A": None, "B": ""}}, {"metadata": {}}, {"platform": None}, {"credentialProxy": {"enabled": False}},
        {"credentialProxy": {}}, {"secureAccess": False}, {"volumes": []}, {"extensions": {"other": "dropped"}}, {"extensions": {"poolRef": "  "}}, {"resourceRequests": {"cpu": "1"}},
        {"snapshotId": " "}, {"templateId": " "},
    ]  # fmt: skip

    @pytest.mark.parametrize("change", ACCEPTED, ids=map(shown, ACCEPTED))
    def test_s4_1_accepted(self, make_sandbox, change):
        assert make_sandbox(**change)["status"]["state"] == "Running"

    FIELDS = [
        ({"timeout": 59}, "timeout"), ({"timeout": 0}, "timeout"), ({"timeout": True}, "timeout"), ({"timeout": []}, "timeout"), ({"resourceLimits": []}, "resourceLimits"),
        ({"env": []}, "env"), ({"metadata": "x"}, "metadata"), ({"entrypoint": "sh"}, "entrypoint"), ({"networkPolicy": []}, "networkPolicy"), ({"volumes": {}}, "volumes"),
        ({"extensions": {"a": 1}}, "extensions"), ({"platform": "linux"}, "platform"), ({"image": "host"}, "image"), ({"snapshotId": 5}, "snapshotId"), ({"resourceRequests": {"cpu": 1}}, "resourceRequests"),
        ({"templateId": ""}, "templateId"),
    ]  # fmt: skip

    @pytest.mark.parametrize("change, name", FIELDS, ids=[shown(row[0]) for row in FIELDS])
    def test_s4_1_fields_by_themselves(self, api, change, name):
        found = assert_envelope(api.post_create(**change), 422, "SANDBOX::INVALID_REQUEST")
        assert found["detail"][0]["loc"][:2] == ["body", name], found

    @pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A\0B": "x"}])
    def test_s4_1_names_of_variables(self, api, env):
        assert_envelope(api.post_create(env=env), 400, "SANDBOX::INVALID_PARAMETER")

    LIFECYCLES = [
        {"x": 1}, {"preStart": {}}, {"preStart": {"command": []}}, {"preStart": {"command": [" "]}}, {"preStart": {"command": ["true"], "timeoutSeconds": 0}},
        {"preStart": {"command": ["true"], "timeoutSeconds": 10801}}, {"preStart": {"command": ["true"], "x": 1}}, {"periodic": [{"name": "n", "schedule": "* * * * *"}]},
        {"periodic": [{"name": " ", "schedule": "* * * * *", "command": ["true"]}]}, {"periodic": [{"name": "n", "schedule": " ", "command": ["true"]}]},
        {"periodic": [{"name": "n", "schedule": "* * * * *", "command": ["true"], "timeoutSeconds": 301}]},
        {"periodic": [{"name": "n", "schedule": "* * * * *", "command": ["true"]}, {"name": " n ", "schedule": "* * * * *", "command": ["true"]}]},
    ]  # fmt: skip

    @pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=map(shown, LIFECYCLES))
    def test_s4_1_hooks(self, api, lifecycle):
        assert_envelope(api.post_create(lifecycle=lifecycle), 422, "SANDBOX::INVALID_REQUEST")

    @pytest.mark.parametrize("name, status", [("OPENSANDBOX_EGRESS_LOG_LEVEL", 202), ("OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT", 202), ("OPENSANDBOX_EGRESS_TOKEN", 400), ("OPENSANDBOX_EGRESS_", 400)])
    def test_s4_1_settings_of_the_egress_process(self, api, name, status):
        reply = api.post_create(env={name: "x"})
        if status == 400:
            assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")
            return
        assert reply.status == 202
        seen = api.run(reply.json["id"], f"echo ${{{name}-absent}}").stdout
        assert seen == ("x" if name.endswith("TRANSPARENT") else "absent")
        assert api.delete(reply.json["id"]).status == 204

    def test_s4_1_a_maximum_of_the_server(self, new_service):
        from lib.api import Api

        api = Api(new_service(server={"max_sandbox_timeout_seconds": 120}))
        assert_envelope(api.post_create(timeout=121), 400, "SANDBOX::INVALID_PARAMETER")
        for timeout in (120, ...):
            assert api.delete(api.create(timeout=timeout)["id"]).status == 204


class TestAnswers:
    def test_s4_2_create(self, make_sandbox):
        made = make_sandbox(metadata={"team": "t1"}, platform=None)
        assert set(made) == {"id", "status", "metadata", "expiresAt", "createdAt", "entrypoint"}
        assert UUID.fullmatch(made["id"]) and made["entrypoint"] == SLEEPER and made["metadata"] == {"team": "t1"}
        assert make_sandbox(metadata={})["metadata"] == {}

    def test_s4_2_sandbox(self, api, make_sandbox):
        made = make_sandbox(metadata={"team": "t1"})
        found = api.get(made["id"])
        assert set(found) == {"id", "image", "status", "metadata", "entrypoint", "expiresAt", "createdAt"}
        assert found["image"] == {"uri": "host"} and set(found["status"]) == {"state", "reason", "message", "lastTransitionAt"}
        assert "metadata" not in api.get(make_sandbox(metadata={})["id"]), "left out when empty"

    def test_s4_2_credentials_never_come_back(self, api, make_sandbox):
        made = make_sandbox(image={"uri": "host", "auth": {"username": "user-x", "password": "pass-x"}})
        for path in ("", "/diagnostics/inspect", "/diagnostics/events", "/diagnostics/summary"):
            said = api.call("GET", f"/sandboxes/{made['id']}{path}").body
            assert b"pass-x" not in said and b"user-x" not in said, path

    @pytest.mark.parametrize("page, size, items, more", [(1, 2, 2, True), (2, 2, 1, False), (3, 2, 0, False)])
    def test_s4_2_pages(self, api, make_sandbox, page, size, items, more):
        mark = f"p{page}"
        for _ in range(3):
            make_sandbox(metadata={"page-row": mark})
        found = api.call("GET", f"/sandboxes?metadata=page-row%3D{mark}&page={page}&pageSize={size}").json
        assert len(found["items"]) == items
        assert found["pagination"] == {"page": page, "pageSize": size, "totalItems": 3, "totalPages": 2, "hasNextPage": more}

    def test_s4_2_extensions_come_back(self, api, make_sandbox):
        made = make_sandbox(extensions={"opensandbox.extensions.colour": "blue", "other": "x"})
        assert made["extensions"] == api.get(made["id"])["extensions"] == {"opensandbox.extensions.colour": "blue"}

    @pytest.mark.parametrize("auth", [{}, {"username": "u"}, {"password": "p"}, {"username": None, "password": "p"}, "u:p"])
    def test_s4_3_half_a_credential(self, api, auth):
        found = assert_envelope(api.post_create(image={"uri": "host", "auth": auth}), 422)
        assert found["detail"][0]["loc"][:3] == ["body", "image", "auth"]

    @pytest.mark.parametrize("platform, status", [({"os": " Linux ", "arch": "{arch}"}, 202), ({"os": "windows", "arch": "amd64"}, 400), ({"os": "linux", "arch": "riscv64"}, 400), ({"os": "linux", "arch": "{other}"}, 400)])
    def test_s4_4_platform(self, api, platform, status):
        import platform as host

        own = "arm64" if host.machine() == "aarch64" else "amd64"
        other = "amd64" if own == "arm64" else "arm64"
        wanted = {name: value.format(arch=own.upper(), other=other) for name, value in platform.items()}
        reply = api.post_create(platform=wanted)
        assert reply.status == status, reply
        if status == 202:
            assert reply.json["platform"] == api.get(reply.json["id"])["platform"] == {"os": "linux", "arch": own}
            assert api.delete(reply.json["id"]).status == 204


class TestLabels:
    GOOD = ["a", "A", "0", "a-b_c.d", "x" * 63, "example.com/name", "a.b-c.d/Name", "a" * 63 + "/n"]
    BAD = ["", "-a", "a-", "a b", "x" * 64, "opensandbox.io/x", "opensandbox.io/", "/name", "prefix/", "Upper.example/name", "a_b/name", "a..b/name", "-a.b/name", "a/b/c", "n\n", "ä", "a." * 127 + "a/n"]

    @pytest.mark.parametrize("key", GOOD)
    def test_s4_5_keys(self, api, make_sandbox, key):
        made = make_sandbox(metadata={key: "v"})
        assert api.get(made["id"])["metadata"] == {key: "v"}

    @pytest.mark.parametrize("key", BAD)
    def test_s4_5_no_keys(self, api, sandbox, key):
        assert_envelope(api.post_create(metadata={key: "v"}), 400, "SANDBOX::INVALID_METADATA_LABEL")
        code = "INVALID_METADATA_LABEL" if key.startswith("opensandbox.io/") else "SANDBOX::INVALID_METADATA_LABEL"
        assert_envelope(api.call("PATCH", f"/sandboxes/{sandbox}/metadata", json={key: "v"}), 400, code)

    @pytest.mark.parametrize("value, good", [("", True), ("a", True), ("A.b-c_d", True), ("x" * 63, True), ("x" * 64, False), ("-a", False), ("a b", False), ("a\n", False), ("ä", False), ("a/b", False)])
    def test_s4_5_values(self, api, value, good):
        reply = api.post_create(metadata={"k": value})
        assert reply.status == (202 if good else 400), reply
        if good:
            assert api.delete(reply.json["id"]).status == 204

    def test_s4_5_their_number_is_bounded(self, api):
        assert_envelope(api.post_create(metadata={f"k{n}": "v" for n in range(10000)}), 400, "SANDBOX::INVALID_METADATA_LABEL")


class TestLimits:
    GOOD = [{"cpu": "1"}, {"cpu": "0.5"}, {"cpu": "500m"}, {"cpu": "500M"}, {"memory": "134217728"}, {"memory": "256mi"}, {"memory": "256MB"}, {"memory": " 1g "}, {"memory": "1Gi"}, {"memory": "262144K"}]
    BAD = [{"cpu": value} for value in ("0", "-1", "", "x", "1x", "inf", "nan", "1e400", "0m")] + \
          [{"memory": value} for value in ("0", "-1", "", "1.5Gi", "1Pi", "1KiB", "1 Gi", "x")] + [{"nobody": "1"}]  # fmt: skip

    @pytest.mark.parametrize("limits", GOOD, ids=map(shown, GOOD))
    def test_s4_6_grammar(self, make_sandbox, limits):
        assert make_sandbox(resourceLimits=limits)["status"]["state"] == "Running"

    @pytest.mark.parametrize("limits", BAD, ids=map(shown, BAD))
    def test_s4_6_a_limit_that_cannot_hold_is_never_no_limit(self, api, limits):
        found = assert_envelope(api.post_create(resourceLimits=limits), 400, "SANDBOX::INVALID_PARAMETER")
        assert f"resourceLimits.{next(iter(limits))}" in found["message"]

    @pytest.mark.parametrize("value", ["1", "all"])
    def test_s4_6_gpus_are_not_here(self, api, value, request):
        """Natively there are none; of an engine without them it is the wish that is wrong."""
        code = "SANDBOX::UNSUPPORTED" if request.config.getoption("--runtime") == "native" else "SANDBOX::INVALID_PARAMETER"
        assert "resourceLimits.gpu" in assert_envelope(api.post_create(resourceLimits={"gpu": value}), 400, code)["message"]


class TestPolicies:
    @pytest.mark.parametrize("policy", [{}, {"egress": []}, {"defaultAction": "allow"}, {"egress": [{"action": "allow", "target": "example.com"}]},
                                        {"defaultAction": None, "egress": [{"action": "deny", "target": "10.0.0.0/8"}]}])  # fmt: skip
    def test_s4_7_accepted(self, make_sandbox, policy):
        assert make_sandbox(networkPolicy=policy)["status"]["state"] == "Running"

    @pytest.mark.parametrize("policy, status", [({"egress": {}}, 422), ({"egress": [{"action": "allow"}]}, 422), ({"egress": [{"action": "allow", "target": ""}]}, 422), ({"egress": [{"target": "x"}]}, 422),
                                                ({"egress": ["x"]}, 422), ({"egress": [{"action": "perhaps", "target": "example.com"}]}, 400), ({"egress": [{"action": "allow", "target": "no target"}]}, 400)])  # fmt: skip
    def test_s4_7_refused(self, api, policy, status):
        assert_envelope(api.post_create(networkPolicy=policy), status)


class TestVolumes:
    SCHEMA = [
        (volume(name="UPPER"), "name"), (volume(name=""), "name"), (volume(name="x" * 64), "name"), (volume(name="-a"), "name"), (volume(mountPath="v"), "mountPath"), (volume(mountPath=...), "mountPath"),
        (volume(readOnly="maybe"), "readOnly"), (volume(host={"path": "x"}), "host"), (volume(host={}), "host"), (volume(host=None), None), (volume(pvc={"claimName": "c"}), None),
        (volume(host=None, pvc={}), "pvc"), (volume(host=None, pvc={"claimName": "UPPER"}), "pvc"), (volume(host=None, pvc={"claimName": "x" * 254}), "pvc"),
        (volume(host=None, pvc={"claimName": "c", "storage": "much"}), "pvc"),
        (volume(host=None, ossfs={"bucket": "b", "endpoint": "e", "accessKeyId": "i", "accessKeySecret": "s"}), "ossfs"),
        (volume(host=None, ossfs={"bucket": "bbb", "endpoint": "", "accessKeyId": "i", "accessKeySecret": "s"}), "ossfs"),
        (volume(host=None, ossfs={"bucket": "bbb", "endpoint": "e", "accessKeyId": "i"}), "ossfs"),
        (volume(host=None, ossfs={"bucket": "bbb", "endpoint": "e", "accessKeyId": "i", "accessKeySecret": "s", "version": "3.0"}), "ossfs"),
    ]  # fmt: skip

    @pytest.mark.parametrize("change, name", SCHEMA, ids=[shown(row[0]["volumes"][0]) for row in SCHEMA])
    def test_s4_8_schema(self, api, change, name):
        body = create_body(**change)
        body["volumes"] = [{key: value for key, value in item.items() if value is not ...} for item in body["volumes"]]
        found = assert_envelope(api.call("POST", "/sandboxes", json=body), 422, "SANDBOX::INVALID_REQUEST")
        places = [entry["loc"] for entry in found["detail"]]
        assert ["body", "volumes", 0, *([name] if name else [])] in [place[: 4 if name else 3] for place in places], found

    def test_s4_8_a_host_path_that_nobody_allowed_is_refused(self, api):
        reply = api.post_create(**volume())
        assert reply.status == 400 and reply.json["code"] in ("SANDBOX::UNSUPPORTED", "VOLUME::HOST_PATH_NOT_ALLOWED"), reply


class TestExtensions:
    @pytest.mark.parametrize("value, status", [("299", 400), ("86401", 400), ("", 400), (" ", 400), ("x", 400), ("300.5", 400), ("300", 202), (" 86400 ", 202)])
    def test_s4_9_seconds_of_renewal(self, renewing, value, status):
        reply = renewing.post_create(extensions={"access.renew.extend.seconds": value})
        assert reply.status == status, reply
        if status == 202:
            assert renewing.delete(reply.json["id"]).status == 204
        else:
            assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")

    @pytest.mark.parametrize("value", ["enable", "other"])
    def test_s4_9_isolation_for_sessions_is_accepted(self, make_sandbox, value):
        assert "extensions" not in make_sandbox(extensions={"bootstrap.execd.isolation": value})


class TestOtherRequests:
    @pytest.mark.parametrize("patch, status", [({}, 200), ({"k": "v"}, 200), ({"nobody-has": None}, 200), ([], 422), (None, 422), ({"k": 1}, 422), ({"k": {}}, 422)])
    def test_s4_10_metadata_patch(self, api, sandbox, patch, status):
        reply = api.call("PATCH", f"/sandboxes/{sandbox}/metadata", body=json.dumps(patch).encode(), headers={"Content-Type": "application/json"})
        assert reply.status == status and (status != 200 or reply.json["id"] == sandbox)

    @pytest.mark.parametrize("body", [{}, {"expiresAt": None}, {"expiresAt": ""}, {"expiresAt": "soon"}, {"expiresAt": True}, {"expiresAt": []}, []])
    def test_s4_10_renewal(self, api, sandbox, body):
        assert_envelope(api.call("POST", f"/sandboxes/{sandbox}/renew-expiration", json=body), 422, "SANDBOX::INVALID_REQUEST")

    @pytest.mark.parametrize("body", [{"name": ""}, {"name": 1}, []])
    def test_s4_10_snapshot(self, api, sandbox, body):
        assert_envelope(api.call("POST", f"/sandboxes/{sandbox}/snapshots", json=body), 422, "SANDBOX::INVALID_REQUEST")
