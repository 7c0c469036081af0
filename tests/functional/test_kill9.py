"""kill -9 of the service's parts at bad moments: no sandbox lost, none leaked, no expiry wrong, no end misreported."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lib import leaks
from lib.api import Api
from lib.load import Creators
from lib.waiting import process_gone, wait_for

COUNT = 50


def kill_server(service):
    service.kill_server()


def kill_launcher(service):
    service.kill_launcher()
    service.start()


def kill_both(service):
    service.kill_both()
    service.start()


VICTIMS = {"server": kill_server, "launcher": kill_launcher, "both": kill_both}


def create_many(api, count):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda n: api.create(metadata={"n": str(n)})["id"], range(count)))


def delete_many(api, ids):
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda name: api.delete(name).status, ids))
    assert statuses == [204] * len(statuses)


def assert_all_work(api, ids):
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda name: api.status(name)["state"], ids)) == ["Running"] * len(ids)
        assert all(pool.map(api.ping, ids))
        assert list(pool.map(lambda name: api.run(name, "echo $OPENSANDBOX_ID").stdout, ids)) == list(ids)


@pytest.mark.parametrize("victim", VICTIMS)
def test_fifty_live_and_creates_in_flight(new_service, victim):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    old = create_many(api, COUNT)
    inits = {name: service.scope.sandbox_pids(name)[0] for name in old[:5]}

    with Creators(api) as creators:
        creators.wait_until_busy(5)
        VICTIMS[victim](service)
        creators.wait_until_busy(creators.started + 8)
    assert not creators.wrong, creators.wrong[:3]

    assert_all_work(api, old)
    assert {name: service.scope.sandbox_pids(name)[0] for name in old[:5]} == inits, "they are the same processes, not new ones"
    listed = {item["id"] for item in api.list_all()}
    assert set(old) | creators.answered <= listed, "a promised sandbox is lost"
    assert_all_work(api, sorted(listed))  # one that is listed works, answered or not
    wait_for(lambda: service.scope.running_sandboxes() == listed, 5, "what runs is what is listed")

    service.scope.sandbox_ids |= listed
    delete_many(api, listed)
    leaks.assert_nothing_leaked(service, baseline)


def test_deletes_in_flight(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    for round_number in range(3):
        ids = create_many(api, 12)
        with ThreadPoolExecutor(12) as pool:
            running = [pool.submit(api.delete, name) for name in ids]
            wait_for(lambda: any(future.done() for future in running), 10, "the first delete is answered", interval=0.0005)
            (service.kill_server, service.kill_both, service.kill_server)[round_number]()
        if service.process.poll() is not None:
            service.start()
        for name, future in zip(ids, running, strict=True):
            if future.exception() is None and future.result().status == 204:
                assert api.call("GET", f"/sandboxes/{name}").status == 404, "a delete that was answered is undone"
            else:
                assert api.delete(name).status in (204, 404)
    leaks.assert_nothing_leaked(service, baseline)


def test_expiry_still_fires_on_time(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    missed, due_later, kept = (api.create()["id"] for _ in range(3))
    missed_due = api.renew(missed, 1.5)
    later_due = api.renew(due_later, 6)
    service.kill_both()
    wait_for(lambda: time.monotonic() > missed_due + 0.3, 5, "one expiry passes while the service is down")
    service.start()
    assert time.monotonic() < later_due - 1, "this machine is too slow for the test's margins"
    wait_for(lambda: api.call("GET", f"/sandboxes/{missed}").status == 404, 2, "the missed expiry is made up for at start")
    assert api.ping(due_later), "an expiry that is not due must not fire"
    wait_for(lambda: api.call("GET", f"/sandboxes/{due_later}").status == 404, 10, "the other one expires")
    assert abs(time.monotonic() - later_due) < 1.5
    assert api.ping(kept)
    delete_many(api, [kept])
    leaks.assert_nothing_leaked(service, baseline)


WAITER = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done; exit $(cat /tmp/go)"]


@pytest.mark.parametrize("victim", ["launcher", "both"])
def test_ends_while_the_service_is_down_are_reported_truthfully(new_service, victim):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    zero, three, killed, lives = (api.create(entrypoint=WAITER)["id"] for _ in range(4))
    pids = {name: service.scope.sandbox_pids(name) for name in (zero, three, killed, lives)}
    (service.kill_both if victim == "both" else service.kill_launcher)()

    # The host's root reaches into the sandboxes' file systems through their processes.
    for name, code in ((zero, 0), (three, 3)):
        Path(f"/proc/{pids[name][0]}/root/tmp/go").write_text(str(code))
    entry = pids[killed][1]
    os.kill(entry, signal.SIGKILL)
    for name in (zero, three, killed):
        wait_for(lambda name=name: process_gone(pids[name][1]), 5, "the entry process ends")

    service.start()

    def ended(name):
        return wait_for(lambda: (s := api.status(name))["state"] in ("Terminated", "Failed") and s, 5, f"the end of {name} is reported")

    assert ended(zero)["reason"] == "ENTRYPOINT_EXITED"
    status = ended(three)
    assert (status["state"], status["reason"]) == ("Failed", "ENTRYPOINT_FAILED")
    assert "3" in status["message"]
    assert ended(killed)["reason"] == "KILLED_BY_SIGNAL"
    assert api.status(lives)["state"] == "Running"
    assert api.run(lives, "echo alive").stdout == "alive"
    delete_many(api, [zero, three, killed, lives])
    leaks.assert_nothing_leaked(service, baseline)


def test_init_killed_while_the_service_is_down(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    made = api.create()["id"]
    pid = service.scope.sandbox_pids(made)[0]
    service.kill_both()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not service.scope.sandbox_pids(made), 5, "the sandbox's processes end")
    service.start()
    status = wait_for(lambda: (s := api.status(made))["state"] == "Failed" and s, 5, "the loss is reported")
    assert status["reason"] in ("LOST", "KILLED_BY_SIGNAL")
    delete_many(api, [made])
    leaks.assert_nothing_leaked(service, baseline)


def test_a_renewal_survives(new_service):
    service = new_service()
    api = Api(service)
    made = api.create(timeout=600)["id"]
    api.renew(made, 5000)
    before = api.get(made)
    service.kill_both()
    service.start()
    assert api.get(made) == before
    delete_many(api, [made])


def test_restart_storm(new_service):
    """The server dies again and again, also while it recovers; nothing piles up."""
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    old = create_many(api, 10)
    for _ in range(5):
        service.kill_server()
    for _ in range(5):
        service.kill_both()
        service.spawn()
        wait_for(lambda: service.process.poll() is not None or service.server_pid(required=False), 10, "a server process appears", interval=0.001)
        assert service.process.poll() is None, f"the service did not start:\n{service.log_tail(8)}"
    service.wait_healthy()
    assert_all_work(api, old)
    assert {item["id"] for item in api.list_all()} == set(old)
    delete_many(api, old)
    leaks.assert_nothing_leaked(service, baseline)


def test_the_launcher_reaps_what_it_restarts(new_service):
    service = new_service()
    for _ in range(3):
        service.kill_server()
    children = Path(f"/proc/{service.launcher_pid}/task/{service.launcher_pid}/children").read_text().split()
    states = [Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] for pid in children]
    assert "Z" not in states
