"""Every end has its true reason, and what the entry process said last can be read, also after a kill -9 of the service."""

import os
import signal
import sqlite3
import time

import pytest
from lib import leaks
from lib.api import Api
from lib.waiting import wait_for

PYTHON = "/usr/bin/python3"
TALKER = "echo to out; echo to err >&2; printf unfinished"


def logs(api, name, query=""):
    reply = api.call("GET", f"/sandboxes/{name}/diagnostics/logs{query}")
    assert reply.status == 200, reply
    return reply.body.decode() if not query.startswith("?scope") else reply.json


def events(api, name):
    return api.call("GET", f"/sandboxes/{name}/diagnostics/events").body.decode()


def ended(api, name):
    wait_for(lambda: api.status(name)["state"] in ("Terminated", "Failed"), 15, "it ends")
    status = api.status(name)
    return status["state"], status["reason"], status["message"]


CASES = {
    "zero": (["sh", "-c", f"{TALKER}; exit 0"], {}, "Terminated", "ENTRYPOINT_EXITED", "0"),
    "code": (["sh", "-c", f"{TALKER}; sleep 0.3; exit 3"], {}, "Failed", "ENTRYPOINT_FAILED", "3"),
    "signal": (["sh", "-c", f"{TALKER}; sleep 0.3; kill -TERM $$"], {}, "Failed", "KILLED_BY_SIGNAL", "TERM"),
    "memory": (
        ["sh", "-c", f"{TALKER}; sleep 0.3; exec {PYTHON} -c 'b = bytearray(1 << 30)'"],
        {"memory": "64Mi"}, "Failed", "OUT_OF_MEMORY", "memory",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("case", CASES)
def test_reasons_and_last_words(api, make_sandbox, case):
    entrypoint, limits, state, reason, word = CASES[case]
    name = make_sandbox(entrypoint=entrypoint, resourceLimits=limits)["id"]
    found = ended(api, name)
    assert found[:2] == (state, reason) and word in found[2], found
    assert reason in events(api, name)
    text = logs(api, name)
    assert [line.split(" ", 1)[1] for line in text.splitlines()] == ["to out", "to err", "unfinished"]


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("trap, state, word", [("trap 'echo told; exit 0' TERM", "Terminated", "code 0"), ("trap 'exit 3' TERM", "Failed", "code 3"), (":", "Terminated", "code 0")])
def test_stopped_from_outside(api, make_sandbox, trap, state, word):
    """Whoever stops a sandbox by its first process stops the entry process, which may say something yet."""
    name = make_sandbox(entrypoint=["sh", "-c", f"{trap}; echo up; while :; do sleep 0.1; done"])["id"]
    wait_for(lambda: "up" in logs(api, name), 5, "the entry process runs")
    os.kill(api.service.scope.sandbox_pids(name)[0], signal.SIGTERM)
    found = ended(api, name)
    assert found[0] == state and word in found[2] and "stopped from outside" in found[2], found
    assert ("told" in logs(api, name)) == ("told" in trap)


@pytest.mark.usefixtures("no_leaks")
def test_output_while_running(api, make_sandbox):
    name = make_sandbox(entrypoint=["sh", "-c", "echo first; sleep 1000"])["id"]
    wait_for(lambda: "first" in logs(api, name), 5, "its output is there")
    stable = logs(api, name, "?scope=container")
    assert stable["content"].endswith(" first\n") and stable["truncated"] is False
    assert "first" in api.call("GET", f"/sandboxes/{name}/diagnostics/summary").body.decode()
    api.call("POST", f"/sandboxes/{name}/pause")
    paused = logs(api, name, "?scope=container")
    assert paused["content"] == "(no logs)" and "Running again" in paused["warnings"][0]


@pytest.mark.usefixtures("no_leaks")
def test_a_flood_is_bounded_and_harms_nobody(api, service, make_sandbox):
    name = make_sandbox(entrypoint=["sh", "-c", "yes a line of some length that is repeated"])["id"]
    time.sleep(1)
    assert api.run(name, "echo fine").stdout == "fine"
    stable = logs(api, name, "?scope=container")
    assert stable["truncated"] is True and len(stable["content"].splitlines()) == 100
    text = logs(api, name, "?tail=10000")
    assert 1000 < len(text) <= (64 + 8) * 1024, "what is kept, and the line under way"
    assert api.delete(name).status == 204


@pytest.mark.usefixtures("no_leaks")
def test_strange_bytes(api, make_sandbox):
    name = make_sandbox(entrypoint=["sh", "-c", r"printf 'a\000b\377c\033[31m\n\"quoted\"\n'"])["id"]
    ended(api, name)
    assert "quoted" in logs(api, name)
    assert "quoted" in logs(api, name, "?scope=all")["content"]


@pytest.mark.usefixtures("no_leaks")
def test_ends_of_what_is_gone(api):
    deleted, expired = api.create()["id"], api.create()["id"]
    api.renew(expired, 1.2)
    assert api.delete(deleted).status == 204
    wait_for(lambda: api.call("GET", f"/sandboxes/{expired}").status == 404, 6, "it expires")
    assert "DELETED" in events(api, deleted) and "EXPIRED" in events(api, expired)


@pytest.mark.usefixtures("no_leaks")
def test_the_tier_is_in_the_diagnostics(api, make_sandbox):
    name = make_sandbox()["id"]
    text = api.call("GET", f"/sandboxes/{name}/diagnostics/inspect").body.decode()
    assert "isolation     root service" in text and "seccomp" in text


@pytest.mark.parametrize("victim", ["server", "both"])
def test_last_words_survive_kill_9(new_service, victim):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    before = api.create(entrypoint=["sh", "-c", "echo early; sleep 0.3; exit 4"])["id"]
    during = api.create(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; echo late; exit 5"])["id"]
    running = api.create(entrypoint=["sh", "-c", "echo live; sleep 1000"])["id"]
    ended(api, before)
    if victim == "both":
        service.kill_both()
        pid = service.scope.sandbox_pids(during)[0]
        with open(f"/proc/{pid}/root/tmp/go", "w"):
            pass
        time.sleep(0.3)
        service.start()
    else:
        api.run(during, "touch /tmp/go", background=True)
        service.kill_server()
    assert ended(api, before)[1] == "ENTRYPOINT_FAILED" and "early" in logs(api, before)
    assert ended(api, during)[1] == "ENTRYPOINT_FAILED" and "late" in logs(api, during)
    assert "live" in logs(api, running)
    for name in (before, during, running):
        assert api.delete(name).status == 204
    leaks.assert_nothing_leaked(service, baseline)


def test_lost_and_restarted(new_service):
    """The first process killed while nobody watched, and a host that was booted again since."""
    service = new_service()
    api = Api(service)
    lost, rebooted, fine = (api.create()["id"] for _ in range(3))
    first = service.scope.sandbox_pids(lost)[0]
    service.kill_both()
    os.kill(first, signal.SIGKILL)
    database = next(path for path in leaks.databases(str(service.state_dir)))
    with sqlite3.connect(database) as rows:
        rows.execute("update sandboxes set identity = substr(identity, 1, length(identity) - 36) || ? where id = ?",
                     ("00000000-0000-4000-8000-000000000000", rebooted))
    rows.close()
    service.start()
    state, reason, message = ended(api, lost)
    assert (state, reason) in (("Failed", "LOST"), ("Failed", "KILLED_BY_SIGNAL")), message
    assert ended(api, rebooted)[:2] == ("Failed", "HOST_RESTARTED")
    assert api.status(fine)["state"] == "Running"
    for name in (lost, rebooted, fine):
        assert api.delete(name).status == 204
    wait_for(lambda: not service.scope.sandbox_pids(rebooted), 5, "its processes are reaped")
