"""Pause and resume: every process stops and goes on, streams survive it, and nothing of it is lost when the service is killed."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lib import leaks, rawhttp
from lib.api import EXECD_PORT, Api, assert_envelope
from lib.waiting import wait_for

COUNTER = "i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.01; done"


def pause(api, name):
    return api.call("POST", f"/sandboxes/{name}/pause")


def resume(api, name):
    return api.call("POST", f"/sandboxes/{name}/resume")


def state(api, name):
    return api.status(name)["state"]


def count(service, name):
    pid = service.scope.sandbox_pids(name)[0]
    try:
        return int(Path(f"/proc/{pid}/root/tmp/count").read_text() or 0)
    except FileNotFoundError:
        return 0  # it has not counted yet


@pytest.mark.usefixtures("no_leaks")
class TestOne:
    def test_states_and_answers(self, api, make_sandbox):
        name = make_sandbox()["id"]
        before = api.status(name)
        assert_envelope(resume(api, name), 409, "SANDBOX::NOT_PAUSED")
        reply = pause(api, name)
        assert (reply.status, reply.body, reply.header("content-length")) == (202, b"", "0")
        status = api.status(name)
        assert (status["state"], status["reason"]) == ("Paused", "PAUSED")
        assert status["lastTransitionAt"] > before["lastTransitionAt"]
        assert_envelope(pause(api, name), 409, "SANDBOX::NOT_RUNNING")
        reply = resume(api, name)
        assert (reply.status, reply.body, reply.header("content-length")) == (202, b"", "0")
        assert state(api, name) == "Running"
        assert api.run(name, "echo back").stdout == "back"
        events = api.call("GET", f"/sandboxes/{name}/diagnostics/events").body.decode()
        assert "Paused" in events and "Resumed" in events

    def test_unknown(self, api):
        for verb in ("pause", "resume"):
            reply = api.call("POST", f"/sandboxes/00000000-0000-4000-8000-000000000000/{verb}")
            assert_envelope(reply, 404, "SANDBOX::NOT_FOUND")

    def test_an_ended_one_cannot_be_paused(self, api, make_sandbox):
        name = make_sandbox(entrypoint=["true"])["id"]
        wait_for(lambda: state(api, name) == "Terminated", 5, "it ends")
        assert_envelope(pause(api, name), 409, "SANDBOX::NOT_RUNNING")
        assert_envelope(resume(api, name), 409, "SANDBOX::NOT_PAUSED")

    def test_every_process_stops(self, api, service, make_sandbox):
        name = make_sandbox(entrypoint=["sh", "-c", COUNTER])["id"]
        wait_for(lambda: count(service, name) > 3, 10, "it counts")
        assert not service.scope.frozen(name)
        assert pause(api, name).status == 202
        assert service.scope.frozen(name)
        stopped = count(service, name)
        time.sleep(0.3)
        assert count(service, name) == stopped
        assert resume(api, name).status == 202
        assert not service.scope.frozen(name)
        wait_for(lambda: count(service, name) > stopped, 5, "it counts again")

    def test_the_proxy_answers_at_once(self, api, make_sandbox):
        name = make_sandbox()["id"]
        pause(api, name)
        for port, path in ((EXECD_PORT, "/ping"), (8000, "/")):
            began = time.monotonic()
            reply = api.call("GET", f"/sandboxes/{name}/proxy/{port}{path}")
            body = assert_envelope(reply, 409, "SANDBOX::PAUSED")
            assert time.monotonic() - began < 1
            assert "resume" in body["remedy"]
        assert api.call("GET", f"/sandboxes/{name}/endpoints/{EXECD_PORT}").status == 200
        assert api.call("PATCH", f"/sandboxes/{name}/metadata", json={"a": "b"}).status == 200

    def test_delete_while_paused(self, api, service, make_sandbox):
        name = make_sandbox(entrypoint=["sh", "-c", COUNTER])["id"]
        pause(api, name)
        assert api.delete(name).status == 204
        assert not service.scope.sandbox_pids(name)
        assert_envelope(resume(api, name), 404, "SANDBOX::NOT_FOUND")

    def test_expiry_goes_on_while_paused(self, api, make_sandbox):
        name = make_sandbox()["id"]
        due = api.renew(name, 1.5)
        pause(api, name)
        wait_for(lambda: api.call("GET", f"/sandboxes/{name}").status == 404, 6, "it expires")
        assert time.monotonic() >= due - 0.1

    def test_renew_while_paused(self, api, make_sandbox):
        name = make_sandbox()["id"]
        pause(api, name)
        api.renew(name, 3600)
        assert resume(api, name).status == 202

    def test_a_stream_open_at_pause_goes_on(self, api, service, make_sandbox):
        name = make_sandbox()["id"]
        with rawhttp.Connection(api.address) as stream:
            body = json.dumps({"command": "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done"}).encode()
            stream.send_request("POST", f"/v1/sandboxes/{name}/proxy/{EXECD_PORT}/command",
                                {"Content-Type": "application/json"}, body)
            head = stream.read_head()
            assert head.status == 200
            received = b""
            while b"line 2" not in received:
                received += stream.read_chunk()
            assert pause(api, name).status == 202
            while stream.is_readable(0.2):
                received += stream.read_chunk()
            assert not stream.is_readable(1.0), "nothing comes from a paused sandbox"
            assert resume(api, name).status == 202
            while chunk := stream.read_chunk():
                received += chunk
        for number in range(1, 7):
            assert received.count(f'"line {number}"'.encode()) == 1, received
        assert b"execution_complete" in received

    def test_the_time_limit_of_a_command_does_not_run(self, api, make_sandbox):
        name = make_sandbox()["id"]
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(api.run, name, "sleep 2; echo made it", timeout=5000)
            time.sleep(0.5)
            assert pause(api, name).status == 202
            time.sleep(6)
            assert not running.done()
            assert resume(api, name).status == 202
            assert running.result().stdout == "made it"
        assert api.run(name, "sleep 30", timeout=1000).exit_code != 0, "limits still work afterwards"

    def test_many_clients_pause_resume_and_delete_at_once(self, api, service, make_sandbox):
        name = make_sandbox(entrypoint=["sh", "-c", COUNTER])["id"]
        allowed = {202, 409}
        with ThreadPoolExecutor(12) as pool:
            calls = [pool.submit((pause, resume)[i % 2], api, name) for i in range(120)]
            statuses = {call.result().status for call in calls}
        assert statuses <= allowed
        is_frozen, told = service.scope.frozen(name), state(api, name)
        assert (told == "Paused") == is_frozen
        with ThreadPoolExecutor(12) as pool:
            calls = [pool.submit((pause, resume)[i % 2], api, name) for i in range(20)]
            assert api.delete(name).status == 204
            assert {call.result().status for call in calls} <= allowed | {404}
        assert not service.scope.sandbox_pids(name)


def kill_server(service):
    service.kill_server()


def kill_both(service):
    service.kill_both()
    service.start()


VICTIMS = {"server": kill_server, "both": kill_both}


@pytest.mark.parametrize("victim", VICTIMS)
def test_paused_survives_kill_9(new_service, victim):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    name, other = api.create(entrypoint=["sh", "-c", COUNTER])["id"], api.create()["id"]
    pause(api, name)
    for _ in range(2):
        VICTIMS[victim](service)
        assert state(api, name) == "Paused" and service.scope.frozen(name)
        assert state(api, other) == "Running"
    assert_envelope(api.execd(name, "GET", "/ping"), 409, "SANDBOX::PAUSED")
    assert resume(api, name).status == 202
    assert api.run(name, "echo back").stdout == "back"
    pause(api, name)
    VICTIMS[victim](service)
    for gone in (name, other):
        assert api.delete(gone).status == 204
    leaks.assert_nothing_leaked(service, baseline)


@pytest.mark.parametrize("victim", VICTIMS)
def test_kill_9_while_pausing_and_resuming(new_service, victim):
    """Whatever instruction it hits: afterwards the record and the kernel agree, and all of them can be used and deleted."""
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    names = [api.create()["id"] for _ in range(6)]
    for _ in range(3):
        stop = threading.Event()

        def toggle(name, stop=stop):
            while not stop.is_set():
                for verb in (pause, resume):
                    try:
                        verb(api, name)
                    except (OSError, rawhttp.Closed):
                        time.sleep(0.01)

        with ThreadPoolExecutor(len(names)) as pool:
            running = [pool.submit(toggle, name) for name in names]
            time.sleep(0.3)
            VICTIMS[victim](service)
            stop.set()
            for task in running:
                task.result()
        for name in names:
            assert state(api, name) in ("Paused", "Running")
            assert (state(api, name) == "Paused") == service.scope.frozen(name)
    for name in names:
        if state(api, name) == "Paused":
            assert resume(api, name).status == 202
        assert api.run(name, "echo back").stdout == "back"
        assert api.delete(name).status == 204
    leaks.assert_nothing_leaked(service, baseline)
