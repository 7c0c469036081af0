"""Wrong input: the right status, an envelope that names what is wrong, nothing made, bounded memory."""

import json

import pytest
from lib import rawhttp
from lib.api import assert_envelope, create_body

pytestmark = pytest.mark.usefixtures("no_leaks")

INVALID_REQUEST = "SANDBOX::INVALID_REQUEST"
INVALID_PARAMETER = "SANDBOX::INVALID_PARAMETER"
INVALID_LABEL = "SANDBOX::INVALID_METADATA_LABEL"


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b'{"image":', b"\xff\xfe", b"[" * 5000, b'{"a":1}trailing', b'{"timeout":1e999999}'])
def test_not_json(api, body):
    reply = api.call("POST", "/sandboxes", body=body, headers={"Content-Type": "application/json"})
    found = assert_envelope(reply, 422, INVALID_REQUEST)
    assert found["detail"][0]["loc"][0] == "body"


@pytest.mark.parametrize("value", [None, [], "text", 7, True])
def test_json_of_the_wrong_kind(api, value):
    assert_envelope(api.call("POST", "/sandboxes", body=json.dumps(value).encode(), headers={"Content-Type": "application/json"}), 422, INVALID_REQUEST)


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", None])
def test_wrong_media_type(api, media_type):
    # A form or plain text is what a web page can send without asking; it must not be read as JSON.
    headers = {"Content-Type": media_type} if media_type else {}
    assert_envelope(api.call("POST", "/sandboxes", body=json.dumps(create_body()).encode(), headers=headers), 422, INVALID_REQUEST)


SCHEMA = [
    ("no entrypoint", {"entrypoint": ...}, ["body"]),
    ("null entrypoint", {"entrypoint": None}, ["body"]),
    ("empty entrypoint", {"entrypoint": []}, ["body", "entrypoint"]),
    ("entrypoint of numbers", {"entrypoint": [1]}, ["body", "entrypoint", 0]),
    ("entrypoint as text", {"entrypoint": "sleep 1"}, ["body", "entrypoint"]),
    ("neither image nor snapshot", {"image": ...}, ["body"]),
    ("blank image", {"image": {"uri": "  "}}, ["body"]),
    ("image and snapshot", {"snapshotId": "s"}, ["body"]),
    ("image without uri", {"image": {}}, ["body", "image", "uri"]),
    ("image as text", {"image": "host"}, ["body", "image"]),
    ("half a credential", {"image": {"uri": "host", "auth": {"username": "u"}}}, ["body", "image", "auth", "password"]),
    ("no limits", {"resourceLimits": ...}, ["body"]),
    ("null limits", {"resourceLimits": None}, ["body"]),
    ("limit as number", {"resourceLimits": {"cpu": 1}}, ["body", "resourceLimits", "cpu"]),
    ("null limit", {"resourceLimits": {"cpu": None}}, ["body", "resourceLimits", "cpu"]),
    ("short timeout", {"timeout": 59}, ["body", "timeout"]),
    ("negative timeout", {"timeout": -1}, ["body", "timeout"]),
    ("fractional timeout", {"timeout": 60.5}, ["body", "timeout"]),
    ("timeout as word", {"timeout": "soon"}, ["body", "timeout"]),
    ("environment as list", {"env": ["A=b"]}, ["body", "env"]),
    ("environment of numbers", {"env": {"A": 1}}, ["body", "env", "A"]),
    ("reserved environment", {"env": {"OPENSANDBOX_LIFECYCLE": "{}"}}, ["body"]),
    ("metadata of numbers", {"metadata": {"a": 1}}, ["body", "metadata", "a"]),
    ("null in metadata", {"metadata": {"a": None}}, ["body", "metadata", "a"]),
    ("null in extensions", {"extensions": {"a": None}}, ["body", "extensions", "a"]),
    ("secureAccess null", {"secureAccess": None}, ["body", "secureAccess"]),
    ("platform without arch", {"platform": {"os": "linux"}}, ["body", "platform", "arch"]),
    ("volume without a backend", {"volumes": [{"name": "v", "mountPath": "/v"}]}, ["body", "volumes", 0]),
    ("volume at a relative path", {"volumes": [{"name": "v", "mountPath": "v", "host": {"path": "/x"}}]}, ["body", "volumes", 0, "mountPath"]),
    ("unknown hook member", {"lifecycle": {"unknown": 1}}, ["body", "lifecycle", "unknown"]),
    ("template with limits", {"templateId": "tpl-1", "image": ..., "entrypoint": ...}, ["body"]),
    ("credential proxy without policy", {"credentialProxy": {"enabled": True}}, ["body"]),
]


@pytest.mark.parametrize("change, location", [row[1:] for row in SCHEMA], ids=[row[0] for row in SCHEMA])
def test_schema(api, change, location):
    found = assert_envelope(api.post_create(**change), 422, INVALID_REQUEST)
    assert location in [entry["loc"] for entry in found["detail"]], found


def test_all_field_errors_are_collected_and_no_input_is_echoed(api):
    secret = "s3cret-value-of-a-user"
    reply = api.post_create(timeout=1, entrypoint=[], env={"TOKEN": 1, "OTHER": secret}, image={"uri": "host", "auth": {"username": secret}})
    found = assert_envelope(reply, 422, INVALID_REQUEST)
    locations = [entry["loc"] for entry in found["detail"]]
    for expected in (["body", "timeout"], ["body", "entrypoint"], ["body", "env", "TOKEN"], ["body", "image", "auth", "password"]):
        assert expected in locations
    assert secret.encode() not in reply.body


@pytest.mark.parametrize("method, path, headers, body, status", [
    ("GET", "/s3cret", {}, None, 404),
    ("S3CRET", "/sandboxes", {}, None, 501),
    ("GET", "/sandboxes", {"Host": "s3cret.example"}, None, 403),
    ("GET", "/sandboxes", {"Origin": "http://s3cret.example"}, None, 403),
    ("GET", "/sandboxes?page=s3cret", {}, None, 422),
    ("GET", "/sandboxes?metadata=s3cret", {}, None, 400),
    ("POST", "/sandboxes", {}, create_body(resourceLimits={"cpu": "s3cret"}), 400),
    ("POST", "/sandboxes", {}, create_body(metadata={"a": "s3cret/"}), 400),
    ("POST", "/sandboxes", {}, create_body(extensions={"opensandbox.extensions.runtime": "s3cret"}), 400),
    ("POST", "/sandboxes", {}, create_body(platform={"os": "linux", "arch": "s3cret"}), 400),
])  # fmt: skip
def test_what_was_sent_is_not_repeated(api, method, path, headers, body, status):
    reply = api.call(method, path, json=body, headers=headers)
    assert reply.status == status
    assert b"s3cret" not in reply.body.lower()


def test_nor_a_scope_or_a_port(api, make_sandbox):
    sandbox = make_sandbox()["id"]
    for path in ("diagnostics/logs?scope=s3cret", "endpoints/s3cret", "endpoints/0?x=s3cret"):
        reply = api.call("GET", f"/sandboxes/{sandbox}/{path}")
        assert 400 <= reply.status < 500 and b"s3cret" not in reply.body


LIMITS = [
    ("cpu", value) for value in ("0", "-1", "", "many", "nan", "inf", "1e400", "0m", "-500m", "1.5.2", "1 2", "0x10", "9223372036854775807")
] + [
    ("memory", value) for value in ("0", "-1", "", "1.5Gi", "lots", "1Pi", "1 Gi", "64KiB", "nan", "99999999999999999999Gi", "9223372036854775807Ti")
]  # fmt: skip


@pytest.mark.parametrize("key, value", LIMITS, ids=[f"{key}={value}" for key, value in LIMITS])
def test_impossible_limits(api, key, value):
    found = assert_envelope(api.post_create(resourceLimits={key: value}), 400, INVALID_PARAMETER)
    assert f"resourceLimits.{key}" in found["message"]


@pytest.mark.parametrize("key, value", [("memory", "4k"), ("memory", "1"), ("cpu", "0.0001"), ("cpu", "0.1m")])
def test_limits_below_what_a_sandbox_needs(api, key, value):
    found = assert_envelope(api.post_create(resourceLimits={key: value}), 400, INVALID_PARAMETER)
    assert f"resourceLimits.{key}" in found["message"]


@pytest.mark.parametrize(
    "key, value",
    [("cpu", "1025"), ("cpu", "1e9"), ("pids", "4000001"), ("pids", "9223372036854775807"), ("disk", "17Ti"), ("storage", "17592186044417"),
     ("ephemeral-storage", "8388607Ti"), ("nofile", "1073741825")],
)  # fmt: skip
def test_limits_above_what_can_be_enforced(api, key, value):
    found = assert_envelope(api.post_create(resourceLimits={key: value}), 400, INVALID_PARAMETER)
    assert f"resourceLimits.{key}: must be at most" in found["message"], found


@pytest.mark.parametrize("key, value", [("memory", "8388607Ti"), ("cpu", "1024"), ("pids", "4000000")])
def test_the_largest_limits_are_taken(api, make_sandbox, key, value):
    made = make_sandbox(resourceLimits={key: value})
    assert api.run(made["id"], "echo fine").stdout == "fine"


@pytest.mark.parametrize("key, value", [("gpu", "1"), ("gpu", "all"), ("gpu", "-1"), ("mem", "1Gi"), ("io", "1Gi"), ("nofile", "999999999")])
def test_a_limit_that_nobody_enforces_is_not_no_limit(api, key, value):
    reply = api.post_create(resourceLimits={key: value})
    if reply.status == 202:
        api.delete(reply.json["id"])
    found = assert_envelope(reply, 400)
    assert found["code"] in (INVALID_PARAMETER, "SANDBOX::UNSUPPORTED"), found
    assert f"resourceLimits.{key}" in found["message"]


@pytest.mark.parametrize("limits", [{"cpu": "500m"}, {"cpu": "0.5"}, {"cpu": "1", "memory": "64Mi"}, {"memory": " 128mb "}, {"memory": "134217728"}, {"memory": "128M"}])
def test_possible_limits(make_sandbox, limits):
    assert make_sandbox(resourceLimits=limits)["status"]["state"] == "Running"


LABELS = [
    ({"opensandbox.io/x": "1"}, "reserved prefix"),
    ({"": "1"}, "empty key"),
    ({"/x": "1"}, "empty prefix"),
    ({"a/": "1"}, "empty name"),
    ({"UPPER.example/x": "1"}, "prefix is no subdomain"),
    ({"a" * 64: "1"}, "long name"),
    ({"-a": "1"}, "name starts with a hyphen"),
    ({"a": "b" * 64}, "long value"),
    ({"a": "has space"}, "space in value"),
    ({"a": "end-"}, "value ends with a hyphen"),
    ({"a": "x\n"}, "trailing newline"),
    ({"a\n": "x"}, "newline in key"),
]


@pytest.mark.parametrize("metadata", [row[0] for row in LABELS], ids=[row[1] for row in LABELS])
def test_labels(api, metadata):
    assert_envelope(api.post_create(metadata=metadata), 400, INVALID_LABEL)


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A\0B": "x"}, {"A": "x\0y"}])
def test_environment_that_no_process_can_have(api, env):
    reply = api.post_create(env=env)
    assert reply.status in (400, 422), reply
    assert_envelope(reply, reply.status)


UNSUPPORTED_PARTS = [
    ("ossfs", {"volumes": [{"name": "v", "mountPath": "/v", "ossfs": {"bucket": "abc", "endpoint": "e", "accessKeyId": "i", "accessKeySecret": "s"}}]}),
    ("volumes[0].pvc", {"volumes": [{"name": "v", "mountPath": "/v", "pvc": {"claimName": "v", "storage": "1Ki"}}]}),
    ("credentialProxy", {"credentialProxy": {"enabled": True}, "networkPolicy": {}}),
    ("image.auth", {"image": {"uri": "host", "auth": {"username": "u", "password": "p"}}}),
]


@pytest.mark.parametrize("field, change", UNSUPPORTED_PARTS, ids=[f"{row[0]}-{n}" for n, row in enumerate(UNSUPPORTED_PARTS)])
def test_what_is_not_there_is_refused_not_ignored(api, field, change):
    reply = api.post_create(**change)
    if reply.status == 202:
        api.delete(reply.json["id"])
        if field == "image.auth":
            pytest.skip("credentials for the built-in image are harmless")
        pytest.fail(f"{field} was accepted: either it works (then test it) or it must be refused")
    assert reply.status in (400, 404, 409), reply
    found = assert_envelope(reply, reply.status)
    assert field.split(".")[0] in found["message"], found


@pytest.mark.parametrize("change", [{"snapshotId": "none"}, {"extensions": {"poolRef": "none"}, "resourceLimits": ...}], ids=["snapshot", "pool"])
def test_unknown_source(api, change):
    reply = api.post_create(image=..., entrypoint=..., **change)
    assert_envelope(reply, *((400, "POOL::NOT_FOUND") if "extensions" in change else (404, "SNAPSHOT::NOT_FOUND")))


@pytest.mark.parametrize("uri", ["registry.example/none:1", "nope", "../../etc", "/etc", "host/../../etc", "HOST"])
def test_unknown_image(api, uri):
    found = assert_envelope(api.post_create(image={"uri": uri}), 400, "IMAGE::NOT_FOUND")
    assert uri in found["message"]


@pytest.mark.parametrize("platform", [{"os": "plan9", "arch": "amd64"}, {"os": "linux", "arch": "sparc"}, {"os": "windows", "arch": "amd64"}, {"os": "linux", "arch": "arm64"}])
def test_wrong_platform(api, platform):
    assert_envelope(api.post_create(platform=platform), 400)


def test_timeout_that_no_calendar_holds(api):
    assert_envelope(api.post_create(timeout=10**15), 400, INVALID_PARAMETER)


def test_access_renewal_seconds(api):
    for value in ("", "abc", "299", "86401", "1e3"):
        assert_envelope(api.post_create(extensions={"access.renew.extend.seconds": value}), 400, INVALID_PARAMETER)


class TestHugeBodies:
    SIZE = 100 * 1024 * 1024

    def send(self, api, head, piece=b" " * 65536):
        """Sends until all is out or the server answers; returns the answer."""
        with rawhttp.Connection(api.address, timeout=60) as connection:
            connection.send(head)
            sent = 0
            try:
                while sent < self.SIZE and not connection.is_readable():
                    connection.send(piece)
                    sent += len(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return connection.read_response()

    @pytest.mark.parametrize("framing", ["sized", "chunked"])
    def test_refused_within_bounded_memory(self, service, api, framing):
        before = service.server_memory_bytes()
        piece = b" " * 65536
        length = f"Content-Length: {self.SIZE}" if framing == "sized" else "Transfer-Encoding: chunked"
        if framing == "chunked":
            piece = b"10000\r\n" + piece + b"\r\n"
        head = f"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n".encode()
        assert_envelope(self.send(api, head, piece), 413)
        assert service.server_memory_bytes() - before < 32 * 1024 * 1024
        assert service.is_healthy()

    def test_not_even_invited(self, api):
        head = f"POST /v1/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {self.SIZE}\r\n\r\n".encode()
        with rawhttp.Connection(api.address) as connection:
            connection.send(head)
            reply = connection.read_head()
            assert reply.status == 413, reply
            assert_envelope(connection.read_body(reply), 413)

    def test_deep_json(self, api):
        body = b'{"image":' * 20000
        assert_envelope(api.call("POST", "/sandboxes", body=body, headers={"Content-Type": "application/json"}), 422)

    def test_many_members(self, api):
        reply = api.post_create(metadata={f"k{n}": "v" for n in range(20000)})
        assert reply.status in (400, 413, 422), reply
        assert_envelope(reply, reply.status)


def test_an_expected_body_is_invited(api):
    body = json.dumps(create_body()).encode()
    with rawhttp.Connection(api.address) as connection:
        connection.send_request("POST", "/v1/sandboxes", {"Content-Type": "application/json", "Expect": "100-continue", "Content-Length": str(len(body))})
        assert connection.read_head().status == 100
        connection.send(body)
        reply = connection.read_response()
    assert reply.status == 202, reply
    assert api.delete(reply.json["id"]).status == 204
