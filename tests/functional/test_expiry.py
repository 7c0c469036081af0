"""Expiry: on time, not early, whatever the sandbox is doing. Sixty seconds is the least a create may ask for, so tests renew."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib.api import assert_envelope
from lib.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.alone]

EARLY, LATE = 0.05, 1.5  # seconds around the due instant in which the sandbox has to go


def gone_at(api, sandbox_id, patience):
    wait_for(lambda: api.call("GET", f"/sandboxes/{sandbox_id}").status == 404, patience, f"{sandbox_id} expires", interval=0.02)
    return time.monotonic()


def test_on_time(service, api):
    made = api.create()
    due = api.renew(made["id"], 2)
    gone = gone_at(api, made["id"], 10)
    assert -EARLY < gone - due < LATE
    assert not service.scope.sandbox_pids(made["id"])
    assert_envelope(api.delete(made["id"]), 404, "SANDBOX::NOT_FOUND")


def test_renewal_moves_it(api):
    made = api.create()
    first = api.renew(made["id"], 1.5)
    due = api.renew(made["id"], 4)
    wait_for(lambda: time.monotonic() > first + 0.5, 5, "the first instant passes")
    assert api.ping(made["id"]), "the earlier expiry must not fire"
    assert -EARLY < gone_at(api, made["id"], 10) - due < LATE


def test_busy_ended_and_many(api):
    busy, over = api.create(), api.create(entrypoint=["sh", "-c", "sleep 0.3; false"])
    others = [api.create() for _ in range(10)]
    with ThreadPoolExecutor(1) as pool:
        command = pool.submit(lambda: api.execd(busy["id"], "POST", "/command", json={"command": "trap '' TERM INT; while :; do sleep 1; done"}, timeout=30))
        ids = [made["id"] for made in [busy, over, *others]]
        dues = {name: api.renew(name, 3) for name in ids}
        for name in ids:
            gone = gone_at(api, name, 10)
            assert gone - dues[name] < LATE + max(1, 5 * api.service.create_seconds)
        command.exception(timeout=15)  # the stream was cut; how is not the point here


def test_expired_sandboxes_are_not_listed(api):
    made = api.create(metadata={"expiry": "listed"})
    api.renew(made["id"], 1)
    wait_for(lambda: api.call("GET", "/sandboxes?metadata=expiry%3Dlisted").json["items"] == [], 5, "the list forgets it")
