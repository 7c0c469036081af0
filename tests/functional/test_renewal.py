"""Renewal by use: a sandbox that asked for it lives on while its ports are used."""

from datetime import datetime, timedelta, timezone

import pytest
from lib import rawhttp
from lib.api import EXECD_PORT, Api, assert_envelope
from lib.waiting import wait_for

EXTENSION = "access.renew.extend.seconds"


@pytest.fixture(scope="module")
def renewing(bin_dir):
    from lib.plugin import services
    from lib.service import Service

    with services(Service, bin_dir) as make:
        yield make(renew={"enabled": True, "min_interval_seconds": 1})


@pytest.fixture
def api(renewing):
    return Api(renewing)


def expiry(api, sandbox_id):
    return datetime.fromisoformat(api.get(sandbox_id)["expiresAt"].replace("Z", "+00:00"))


def in_seconds(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


def test_a_use_renews(api):
    made = api.create(timeout=60, extensions={EXTENSION: " 600 ", "opensandbox.extensions.x": "y"})
    assert made["extensions"] == {"opensandbox.extensions.x": "y"}, "it is for the server, and not given back"
    assert expiry(api, made["id"]) < in_seconds(61), "a look is no use"
    assert api.ping(made["id"])
    wait_for(lambda: expiry(api, made["id"]) > in_seconds(590), 10, "the renewal")
    assert api.get(made["id"])["extensions"] == {"opensandbox.extensions.x": "y"}
    assert api.delete(made["id"]).status == 204


def test_a_websocket_is_a_use(api):
    made = api.create(timeout=60, extensions={EXTENSION: "600"})
    with rawhttp.Connection(api.address) as connection:
        connection.send_request("GET", f"/v1/sandboxes/{made['id']}/proxy/{EXECD_PORT}/ping", [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])
        connection.read_head()
    wait_for(lambda: expiry(api, made["id"]) > in_seconds(590), 10, "the renewal")
    assert api.delete(made["id"]).status == 204


def test_a_use_never_shortens_and_skip_is_none(api):
    made = api.create(timeout=3600, extensions={EXTENSION: "300"})
    before = expiry(api, made["id"])
    assert api.ping(made["id"])
    plain = api.create(timeout=60)
    skipped = api.create(timeout=60, extensions={EXTENSION: "300"})
    assert api.ping(plain["id"])
    assert api.execd(skipped["id"], "GET", "/ping", headers={"OpenSandbox-Access-Renew": "skip"}).status == 200
    used = api.create(timeout=60, extensions={EXTENSION: "300"})
    assert api.ping(used["id"])
    wait_for(lambda: expiry(api, used["id"]) > in_seconds(290), 10, "the renewal of the one that was used last")
    assert expiry(api, made["id"]) == before
    assert expiry(api, plain["id"]) < in_seconds(61)
    assert expiry(api, skipped["id"]) < in_seconds(61)
    for sandbox in (made, plain, skipped, used):
        assert api.delete(sandbox["id"]).status == 204


def test_it_survives_a_restart(api, renewing):
    made = api.create(timeout=60, extensions={EXTENSION: "600"})
    renewing.restart()
    assert api.ping(made["id"])
    wait_for(lambda: expiry(api, made["id"]) > in_seconds(590), 10, "the renewal")
    renewing.restart()
    assert expiry(api, made["id"]) > in_seconds(500)
    assert api.delete(made["id"]).status == 204


def test_where_uses_renew_nothing_it_is_refused(new_service):
    reply = Api(new_service()).post_create(extensions={EXTENSION: "600"})
    assert "renew_intent.enabled" in assert_envelope(reply, 400, "SANDBOX::UNSUPPORTED")["message"]
