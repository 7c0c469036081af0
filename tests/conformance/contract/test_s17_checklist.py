"""Section 17: lines of the acceptance checklist that are no row of another section; sections.py has the whole list."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from lib import rawhttp
from lib.api import assert_envelope
from lib.waiting import wait_for
from lib.websocket import TEXT, WebSocket


def test_s17_2_the_everyday_sequence(api):
    made = api.create(timeout=60, metadata={"suite": "s17"})
    name = made["id"]
    assert api.status(name)["state"] == "Running"
    assert [item["id"] for item in api.call("GET", "/sandboxes?metadata=suite%3Ds17").json["items"]] == [name]
    at = (datetime.now(timezone.utc) + timedelta(seconds=300)).isoformat()
    assert api.call("POST", f"/sandboxes/{name}/renew-expiration", json={"expiresAt": at}).status == 200
    patches = [({"a": "1"}, {"suite": "s17", "a": "1"}), ({"a": None}, {"suite": "s17"}), ({"b": "2", "suite": None}, {"b": "2"}), ({}, {"b": "2"})]
    for patch, left in patches:
        assert api.call("PATCH", f"/sandboxes/{name}/metadata", json=patch).json["metadata"] == left
    assert api.call("GET", f"/sandboxes/{name}/endpoints/8080").json["endpoint"].endswith(f"/sandboxes/{name}/proxy/8080")
    assert api.delete(name).status == 204
    assert_envelope(api.call("GET", f"/sandboxes/{name}"), 404)


def test_s17_3_without_a_timeout(api, make_sandbox):
    made = make_sandbox(timeout=...)
    assert "expiresAt" not in made and "expiresAt" not in api.get(made["id"])
    assert_envelope(api.call("POST", f"/sandboxes/{made['id']}/renew-expiration", json={"expiresAt": "2099-01-01T00:00:00Z"}), 409)


@pytest.mark.parametrize("which", ["api", "keyed"])
def test_s17_5_the_string_is_followed(request, which):
    """HTTP, events and WebSocket through it, without a key."""
    from conftest import listen_inside

    api = request.getfixturevalue(which)
    name = api.create()["id"]
    try:
        listen_inside(api, name, 8233)
        path = "/" + api.call("GET", f"/sandboxes/{name}/endpoints/8233?use_server_proxy=true").json["endpoint"].partition("/")[2]
        assert path.startswith("/v1/") and f"/sandboxes/{name}/proxy/8233" in path
        assert rawhttp.request(api.address, "GET", path + "/x").json["target"] == "/x"
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("GET", path + "/events")
            assert connection.read_head().header("content-type") == "text/event-stream"
            assert b"first" in connection.read_chunk()
        with WebSocket(api.address, path + "/websocket") as peer:
            peer.send(TEXT, b"hello")
            assert peer.frame() == (TEXT, b"hello")
    finally:
        api.delete(name)


CREATES = [
    (422, {"entrypoint": ...}), (422, {"snapshotId": "s"}), (422, {"image": ...}), (422, {"timeout": 59}), (422, {"resourceLimits": {"cpu": 1}}), (422, {"lifecycle": {"x": 1}}),
    (422, {"templateId": "t", "image": ..., "entrypoint": ...}), (400, {"metadata": {"bad label": "x"}}), (400, {"volumes": [{"name": "v", "mountPath": "/v", "host": {"path": "/etc"}}]}),
    (400, {"resourceLimits": {"cpu": "0"}}), (400, {"resourceLimits": {"memory": "1.5Gi"}}), (400, {"env": {"OPENSANDBOX_EGRESS_X": "1"}}), (400, {"networkPolicy": {}, "credentialProxy": {"enabled": True}}),
]  # fmt: skip


def test_s17_7_refusals(api, sandbox):
    for status, change in CREATES:
        assert_envelope(api.post_create(**change), status)
    assert_envelope(api.call("GET", "/sandboxes?pageSize=201"), 422)
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/endpoints/abc"), 422)
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/endpoints/0"), 400)


def test_s17_18_metrics_events_never_hang(api):
    event = {"eventType": "sandbox.create", "createDurationMs": 1, "success": True}

    def timed(_):
        started = time.monotonic()
        return api.call("POST", "/metrics/events", json=event).status, time.monotonic() - started

    with ThreadPoolExecutor(20) as pool:
        creates = pool.map(lambda _: api.delete(api.create()["id"]).status, range(10))
        answers = list(pool.map(timed, range(200)))
        assert set(creates) == {204}
    assert {status for status, _ in answers} == {204} and max(seconds for _, seconds in answers) < 5


def test_s17_2_it_expires_by_itself(api):
    name = api.create(timeout=60)["id"]
    api.renew(name, 1)
    wait_for(lambda: api.call("GET", f"/sandboxes/{name}").status == 404, 10, "it expires")
