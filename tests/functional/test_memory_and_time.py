"""Ends that were imposed: for lack of memory or of time, each says so, and no other end does."""

import pytest
from lib.api import Command
from lib.waiting import wait_for

pytestmark = pytest.mark.usefixtures("no_leaks")

GREEDY = "python3 -c 'b = bytearray(1 << 30)'"
NO_MEMORY = "out of memory (limit 64 MiB)"


@pytest.fixture
def small(make_sandbox):
    return make_sandbox(resourceLimits={"memory": "64Mi"})["id"]


def in_session(api, sandbox, session, **body):
    return Command(api.execd(sandbox, "POST", f"/session/{session}/run", json=body))


def status_of(api, sandbox, ran):
    return api.execd(sandbox, "GET", f"/command/status/{ran.events[0]['text']}").json


def test_commands(api, small):
    ran = api.run(small, f"exec {GREEDY}")
    assert ran.error == {"ename": "CommandExecError", "evalue": "-1", "traceback": [f"signal: killed: {NO_MEMORY}"]}
    assert status_of(api, small, ran)["error"] == f"signal: killed: {NO_MEMORY}"
    # A shell that goes on until it says what became of its program.
    ran = api.run(small, f"{GREEDY}; exit $?")
    assert (ran.error["evalue"], ran.error["traceback"]) == ("137", [f"exit status 137: {NO_MEMORY}"])
    ran = api.run(small, "sleep 60", timeout=2000)
    assert ran.error["traceback"] == ["signal: killed: time limit of 2 s"]
    assert status_of(api, small, ran)["error"] == "signal: killed: time limit of 2 s"


def test_the_log_of_a_background_command(api, small):
    ran = api.run(small, f"echo first; exec {GREEDY}", background=True)
    wait_for(lambda: not status_of(api, small, ran)["running"], 20, "it ends")
    log = api.execd(small, "GET", f"/command/{ran.events[0]['text']}/logs").body.decode()
    assert log == f"first\n\nexecd: the command was ended: {NO_MEMORY}\n"


def test_sessions(api, small):
    session = api.execd(small, "POST", "/session", json={}).json["session_id"]
    assert in_session(api, small, session, command=GREEDY).error["traceback"] == [f"exit status 137: {NO_MEMORY}"]
    assert in_session(api, small, session, command=f"exec {GREEDY}").error["traceback"] == [f"signal: killed: {NO_MEMORY}"]
    assert in_session(api, small, session, command="sleep 60", timeout=1500).error["traceback"] == ["signal: killed: time limit of 1500 ms"]
    assert in_session(api, small, session, command="kill -9 $$").error["traceback"] == ["signal: killed"]


def test_cells(api, small):
    body = {"code": "b = bytearray(1 << 30)", "context": {"language": "python"}}
    error = Command(api.execd(small, "POST", "/code", json=body)).error
    assert error["evalue"] == f"the kernel process has ended: signal: killed: {NO_MEMORY}", error


def test_an_earlier_one_explains_no_later_end(api, small):
    assert api.run(small, f"{GREEDY}; exit 1").error["traceback"] == ["exit status 1"], "it goes on without that program"
    assert api.run(small, "kill -9 $$").error["traceback"] == ["signal: killed"]
    assert api.run(small, "sh -c 'kill -9 $$'; exit $?").error["traceback"] == ["exit status 137"]


def test_nor_the_end_of_the_sandbox(api, make_sandbox):
    name = make_sandbox(resourceLimits={"memory": "64Mi"}, entrypoint=["sh", "-c", "echo $$ > /tmp/pid; exec tail -f /dev/null"])["id"]
    wait_for(lambda: api.run(name, "test -s /tmp/pid").exit_code == 0, 5, "the entry process says who it is")
    assert NO_MEMORY in api.run(name, f"exec {GREEDY}").error["traceback"][0]
    # What was a moment ago counts as the same moment.
    wait_for(lambda: api.run(name, "sleep 1.1").exit_code == 0, 10, "time passes")
    api.run(name, "kill -9 $(cat /tmp/pid)", background=True)
    wait_for(lambda: api.status(name)["state"] == "Failed", 15, "it ends")
    assert api.status(name)["reason"] == "KILLED_BY_SIGNAL", api.status(name)
