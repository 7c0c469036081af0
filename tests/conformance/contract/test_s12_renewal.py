"""Section 12: a use of a port renews, where server and sandbox say so."""

from datetime import datetime, timedelta, timezone

import pytest
from lib.waiting import wait_for
from lib.websocket import WebSocket

EXTEND = {"access.renew.extend.seconds": "600"}


def left(api, name):
    return (datetime.fromisoformat(api.get(name)["expiresAt"].replace("Z", "+00:00")) - datetime.now(timezone.utc)).total_seconds()


@pytest.fixture
def make(renewing):
    made = []

    def create(**fields):
        made.append(renewing.create(**fields)["id"])
        return made[-1]

    yield create
    for name in made:
        renewing.delete(name)


def settle(api, make):
    """One that was used last has been renewed: those before it would have been."""
    last = make(timeout=60, extensions=EXTEND)
    assert api.ping(last)
    wait_for(lambda: left(api, last) > 590, 10, "the renewal")


class TestActivation:
    def test_s12_1_http_and_websocket(self, renewing, make):
        by_request, by_socket = make(timeout=60, extensions=EXTEND), make(timeout=60, extensions=EXTEND)
        assert renewing.ping(by_request)
        WebSocket(renewing.address, f"/v1/sandboxes/{by_socket}/proxy/44772/ping").close()
        for name in (by_request, by_socket):
            wait_for(lambda name=name: left(renewing, name) > 590, 10, "the renewal")

    @pytest.mark.parametrize("fields, headers", [({"timeout": 60}, {}), ({"timeout": 60, "extensions": EXTEND}, {"OpenSandbox-Access-Renew": "skip"})])
    def test_s12_1_not_asked_for_or_skipped(self, renewing, make, fields, headers):
        name = make(**fields)
        assert renewing.execd(name, "GET", "/ping", headers=headers).status == 200
        settle(renewing, make)
        assert left(renewing, name) < 61

    def test_s12_1_another_value_is_no_skip(self, renewing, make):
        name = make(timeout=60, extensions=EXTEND)
        assert renewing.execd(name, "GET", "/ping", headers={"OpenSandbox-Access-Renew": "Skip"}).status == 200
        wait_for(lambda: left(renewing, name) > 590, 10, "the renewal")

    def test_s12_1_looks_at_it_are_no_use(self, renewing, make):
        name = make(timeout=60, extensions=EXTEND)
        renewing.get(name)
        renewing.endpoint(name)
        settle(renewing, make)
        assert left(renewing, name) < 61

    def test_s12_1_without_a_timeout(self, renewing, make):
        name = make(timeout=..., extensions=EXTEND)
        assert renewing.ping(name)
        settle(renewing, make)
        assert "expiresAt" not in renewing.get(name)


def test_s12_2_never_shorter(renewing, make):
    name = make(timeout=3600, extensions=EXTEND)
    before = renewing.get(name)["expiresAt"]
    assert renewing.ping(name)
    settle(renewing, make)
    assert renewing.get(name)["expiresAt"] == before


def test_s12_2_at_most_one_per_interval(bin_dir, new_service):
    from lib.api import Api

    api = Api(new_service(renew={"enabled": True, "min_interval_seconds": 3600}))
    name = api.create(timeout=60, extensions=EXTEND)["id"]
    assert api.ping(name)
    wait_for(lambda: left(api, name) > 590, 10, "the renewal")
    at = (datetime.now(timezone.utc) + timedelta(seconds=100)).isoformat()
    assert api.call("POST", f"/sandboxes/{name}/renew-expiration", json={"expiresAt": at}).status == 200
    for _ in range(20):
        assert api.ping(name)
    # A second sandbox shows that renewals happen meanwhile.
    other = api.create(timeout=60, extensions=EXTEND)["id"]
    assert api.ping(other)
    wait_for(lambda: left(api, other) > 590, 10, "the renewal of another")
    assert left(api, name) < 101
    for sandbox in (name, other):
        assert api.delete(sandbox).status == 204
