"""Many at once, and things that cross each other."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib import rawhttp
from lib.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.alone]

COUNT = 50


def delete_all(api, ids):
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda name: api.delete(name).status, ids))


def test_fifty_creates_and_deletes_at_once(api):
    with ThreadPoolExecutor(COUNT) as pool:
        replies = list(pool.map(lambda n: api.post_create(metadata={"n": str(n)}), range(COUNT)))
    try:
        assert [reply.status for reply in replies] == [202] * COUNT, [reply for reply in replies if reply.status != 202][:3]
        ids = [reply.json["id"] for reply in replies]
        assert len(set(ids)) == COUNT
        with ThreadPoolExecutor(16) as pool:
            assert all(pool.map(api.ping, ids))
            assert list(pool.map(lambda name: api.run(name, "echo $OPENSANDBOX_ID").stdout, ids)) == ids
    finally:
        with ThreadPoolExecutor(COUNT) as pool:
            deleted = list(pool.map(lambda reply: api.delete(reply.json["id"]).status, [reply for reply in replies if reply.status == 202]))
    assert deleted == [204] * COUNT


def test_health_answers_while_creates_run(api):
    slowest, stop = [0.0], threading.Event()

    def watch():
        while not stop.is_set():
            started = time.monotonic()
            assert rawhttp.request(api.address, "GET", "/health", timeout=10).status == 200
            slowest[0] = max(slowest[0], time.monotonic() - started)

    with ThreadPoolExecutor(17) as pool:
        watcher = pool.submit(watch)
        made = list(pool.map(lambda _: api.create()["id"], range(40)))
        stop.set()
        watcher.result()
    delete_all(api, made)
    assert slowest[0] < 2, f"/health took {slowest[0]:.2f} s while sandboxes were created"


def test_one_delete_wins(api):
    made = api.create()
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(lambda _: api.delete(made["id"]).status, range(8)))
    assert statuses[0] == 204
    assert set(statuses) <= {204, 404}, statuses
    assert api.delete(made["id"]).status == 404


def test_delete_while_commands_run(api):
    made = api.create()

    def endless():
        try:
            return api.execd(made["id"], "POST", "/command", json={"command": "sleep 4713"}, timeout=20).status
        except (OSError, rawhttp.Closed):
            return "cut"

    with ThreadPoolExecutor(8) as pool:
        running = [pool.submit(endless) for _ in range(8)]
        wait_for(lambda: api.run(made["id"], "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep [4]713' | wc -l").stdout >= "8", 10, "all commands run")
        started = time.monotonic()
        assert api.delete(made["id"]).status == 204
        assert time.monotonic() - started < 5
        for future in running:
            assert future.result(timeout=10) in (200, 404, 409, 502, "cut")


def test_client_gone_during_create(api):
    """A client that hangs up before the answer: the sandbox is either listed and works, or was never there."""
    before = {item["id"] for item in api.list_all()}
    body = b'{"image":{"uri":"host"},"entrypoint":["tail","-f","/dev/null"],"timeout":600,"resourceLimits":{}}'
    for _ in range(10):
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", "/v1/sandboxes", {"Content-Type": "application/json"}, body)
    settled = []

    def quiet():
        now = {item["id"] for item in api.list_all()} - before
        settled.append(now)
        return len(settled) > 25 and all(other == now for other in settled[-25:])

    wait_for(quiet, 15, "the abandoned creates settle")
    for name in settled[-1]:
        api.service.scope.remember(name)
        assert api.status(name)["state"] == "Running"
        assert api.ping(name)
    delete_all(api, settled[-1])


def test_delete_as_soon_as_it_is_listed(api):
    """Deletes cross creates that have not been answered yet."""
    before = {item["id"] for item in api.list_all()}
    stop, deleted = threading.Event(), set()

    def reaper():
        while not stop.is_set():
            for item in api.list_all():
                if item["id"] not in before:
                    api.service.scope.sandbox_ids.add(item["id"])
                    assert api.delete(item["id"]).status in (204, 404, 409)
                    deleted.add(item["id"])

    with ThreadPoolExecutor(9) as pool:
        watcher = pool.submit(reaper)
        replies = list(pool.map(lambda _: api.post_create().status, range(40)))
        stop.set()
        watcher.result()
    assert set(replies) <= {202, 404, 409, 500}, replies
    delete_all(api, {item["id"] for item in api.list_all()} - before)


def test_metadata_patches_are_not_lost(api, make_sandbox):
    made = make_sandbox()
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: api.call("PATCH", f"/sandboxes/{made['id']}/metadata", json={f"k{n}": str(n)}), range(40)))
    assert api.get(made["id"])["metadata"] == {f"k{n}": str(n) for n in range(40)}


def test_metrics_events_under_load(api):
    event = {"eventType": "sandbox.create", "createDurationMs": 1, "success": True}
    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(lambda _: api.call("POST", "/metrics/events", json=event).status, range(200))) == {204}
