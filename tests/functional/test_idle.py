"""Sandboxes that asked to be paused when nobody uses them: they sleep, the next use wakes them, and nothing that comes meanwhile is lost."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import EXECD_PORT, Api, assert_envelope
from lib.waiting import process_gone, wait_for

EXTENSION = "access.pause.idle.seconds"
COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/new; mv /tmp/new /tmp/count; sleep 0.01; done"
SERVER = 'cd /tmp && echo hello > page && exec python3 -m http.server 8123 --bind 127.0.0.1'


@pytest.fixture
def make(api):
    made = []

    def create(seconds=1, **fields):
        made.append(api.create(extensions={EXTENSION: str(seconds)}, **fields)["id"])
        return made[-1]

    yield create
    for name in made:
        api.delete(name)


def status(api, name):
    found = api.status(name)
    return found["state"], found["reason"]


def wait_asleep(api, name, timeout=10):
    wait_for(lambda: status(api, name) == ("Paused", "IDLE"), timeout, "it falls asleep")


def cpu_ticks(service, name):
    total = 0
    for pid in service.scope.sandbox_pids(name):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total


def events(api, name):
    return [line for line in api.call("GET", f"/sandboxes/{name}/diagnostics/events").body.decode().splitlines() if line]


def test_it_sleeps_costs_nothing_and_a_use_wakes_it(api, service, make):
    name = make(entrypoint=["sh", "-c", COUNTER])
    assert "extensions" not in api.get(name), "it is for the server, and not given back"
    wait_asleep(api, name)
    assert service.scope.frozen(name)
    assert "wakes it" in api.status(name)["message"]
    before = cpu_ticks(service, name)
    time.sleep(1)
    assert cpu_ticks(service, name) == before
    began = time.monotonic()
    assert api.run(name, "echo back").stdout == "back"
    print(f"woken and a command run in {(time.monotonic() - began) * 1000:.0f} ms")
    assert status(api, name) == ("Running", "RUNNING")
    assert not service.scope.frozen(name)
    wait_asleep(api, name)
    kinds = "\n".join(events(api, name))
    assert kinds.count("Paused") == 2 and kinds.count("Resumed") == 1


def test_every_kind_of_use_wakes_it(api, make):
    name = make(entrypoint=["sh", "-c", SERVER])
    page = f"/sandboxes/{name}/proxy/8123/page"
    wait_for(lambda: api.call("GET", page).status == 200, 20, "its own server answers")
    wait_asleep(api, name)
    assert api.call("GET", page).body == b"hello\n"
    wait_asleep(api, name)
    assert api.ping(name)
    wait_asleep(api, name)
    api.upload(name, "/tmp/x", b"data")
    wait_asleep(api, name)
    assert api.download(name, "/tmp/x") == b"data"
    wait_asleep(api, name)
    with rawhttp.Connection(api.address) as connection:
        connection.send_request("GET", f"/v1/sandboxes/{name}/proxy/{EXECD_PORT}/ping", [
            ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")])
        connection.read_head()
    wait_for(lambda: "Running" in status(api, name) or "IDLE" in status(api, name), 5, "it was woken")
    # Looking at it, changing its row and asking where it is are no uses.
    wait_asleep(api, name)
    assert api.call("GET", f"/sandboxes/{name}/endpoints/{EXECD_PORT}").status == 200
    assert api.call("PATCH", f"/sandboxes/{name}/metadata", json={"a": "b"}).status == 200
    api.renew(name, 600)
    assert status(api, name) == ("Paused", "IDLE")


def test_what_is_in_flight_keeps_it_awake(api, make):
    name = make()
    began = time.monotonic()
    assert api.run(name, "sleep 3; echo made it").stdout == "made it"
    assert time.monotonic() - began < 6
    assert "Paused" not in "\n".join(events(api, name))
    # A stream that is silent is a use, too: an upgraded connection to a terminal, a long poll.
    with rawhttp.Connection(api.address) as stream:
        body = json.dumps({"command": "echo first; sleep 3; echo last"}).encode()
        stream.send_request("POST", f"/v1/sandboxes/{name}/proxy/{EXECD_PORT}/command", {"Content-Type": "application/json"}, body)
        assert stream.read_head().status == 200
        received = b""
        while chunk := stream.read_chunk():
            received += chunk
    assert b"last" in received
    wait_asleep(api, name)


def test_work_in_the_background_sleeps_with_it_and_goes_on(api, service, make):
    name = make(entrypoint=["sh", "-c", COUNTER])
    wait_asleep(api, name)
    first = int(api.run(name, "cat /tmp/count").stdout)
    wait_asleep(api, name)
    time.sleep(1)
    second = int(api.run(name, "cat /tmp/count").stdout)
    assert first < second < first + 400, "it went on where it was"


def test_many_uses_at_once_share_one_resume(api, make):
    name = make(seconds=2)
    wait_asleep(api, name)
    with ThreadPoolExecutor(32) as pool:
        assert list(pool.map(lambda _: api.ping(name), range(64))) == [True] * 64
    assert "\n".join(events(api, name)).count("Resumed") == 1


def test_uses_that_come_while_it_falls_asleep(api, make):
    """Requests at every moment around the pause: each is answered, soon."""
    name = make()
    slowest = 0
    for step in range(24):
        assert api.ping(name)
        time.sleep(1 - 0.012 + step * 0.002)
        began = time.monotonic()
        assert api.ping(name)
        slowest = max(slowest, time.monotonic() - began)
    print(f"the slowest of 24 took {slowest * 1000:.0f} ms")
    assert slowest < 5


def test_what_a_person_paused_stays_paused(api, make):
    name = make()
    assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
    assert_envelope(api.execd(name, "GET", "/ping"), 409, "SANDBOX::PAUSED")
    time.sleep(1.5)
    assert status(api, name) == ("Paused", "PAUSED")
    assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    wait_asleep(api, name)
    # A person may also pause what sleeps already, and resume it.
    assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
    assert status(api, name) == ("Paused", "PAUSED")
    assert_envelope(api.execd(name, "GET", "/ping"), 409, "SANDBOX::PAUSED")
    assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    assert api.ping(name)
    wait_asleep(api, name)
    assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    assert status(api, name) == ("Running", "RUNNING")


def test_expiry_goes_on(api, make):
    name = make()
    wait_asleep(api, name)
    due = api.renew(name, 2)
    wait_for(lambda: api.call("GET", f"/sandboxes/{name}").status == 404, 8, "it expires")
    assert time.monotonic() >= due - 0.1


def test_a_kill_of_the_server_forgets_nothing(new_service):
    service = new_service()
    api = Api(service)
    asleep = api.create(extensions={EXTENSION: "1"})["id"]
    person = api.create(extensions={EXTENSION: "1"})["id"]
    assert api.call("POST", f"/sandboxes/{person}/pause").status == 202
    wait_asleep(api, asleep)
    for kill in (service.kill_server, lambda: (service.kill_both(), service.start())):
        kill()
        assert status(api, asleep) == ("Paused", "IDLE")
        assert status(api, person) == ("Paused", "PAUSED")
        assert service.scope.frozen(asleep) and service.scope.frozen(person)
        assert_envelope(api.execd(person, "GET", "/ping"), 409, "SANDBOX::PAUSED")
        assert api.ping(asleep)
        wait_asleep(api, asleep)
    for name in (asleep, person):
        assert api.delete(name).status == 204


def test_kills_at_any_moment_of_falling_asleep(new_service):
    """Whatever the moment, afterwards a use is answered."""
    service = new_service()
    api = Api(service)
    names = [api.create(extensions={EXTENSION: "1"})["id"] for _ in range(4)]
    for step in range(8):
        for name in names:
            assert api.ping(name)
        time.sleep(1 - 0.01 + step * 0.003)
        service.kill_server()
        assert all(api.ping(name) for name in names)
    for name in names:
        assert api.delete(name).status == 204


def test_delete_while_asleep(api, service, make):
    name = make()
    wait_asleep(api, name)
    assert api.delete(name).status == 204
    assert all(map(process_gone, service.scope.sandbox_pids(name)))


def test_traffic_that_never_stops_for_long_is_never_lost(api, make):
    """Callers whose pauses are about as long as the limit, for a while."""
    name = make()
    stopping, wrong, done = threading.Event(), [], [0]

    def call(seed):
        while not stopping.is_set():
            reply = api.execd(name, "GET", "/ping")
            if reply.status != 200:
                wrong.append(reply)
            done[0] += 1
            time.sleep(0.9 + (seed * 37 + done[0] * 13) % 300 / 1000)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(12)
    stopping.set()
    for thread in threads:
        thread.join(10)
    assert not wrong, wrong[:2]
    assert done[0] >= 10


@pytest.mark.parametrize("value", ["0", "-1", "86401", "", "soon", "1.5", "1e2"])
def test_a_wrong_value_is_refused(api, value):
    reply = api.post_create(extensions={EXTENSION: value})
    assert EXTENSION in assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")["message"]


def test_a_sleeping_sandbox_costs_the_server_nothing(new_service):
    service = new_service()
    api = Api(service)
    names = [api.create(extensions={EXTENSION: "1"})["id"] for _ in range(10)]
    for name in names:
        wait_asleep(api, name)

    def ticks():
        fields = Path(f"/proc/{service.server_pid()}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(3)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    print(f"{used * 1000:.0f} ms of CPU in 3 s")
    assert used < 0.15
    for name in names:
        assert api.delete(name).status == 204
