"""Bash sessions and metrics of execd: what a run leaves to the next, and what may not end a session."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib.api import Command, assert_envelope

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.fixture
def session(api, sandbox):
    reply = api.execd(sandbox, "POST", "/session", json={"cwd": "/tmp"})
    if reply.status == 404 and "no route" in reply.json["message"]:
        pytest.skip("the daemon has no sessions yet")
    assert reply.status == 200, reply
    name = reply.json["session_id"]
    yield lambda command, **members: run(api, sandbox, name, command, **members)
    api.execd(sandbox, "DELETE", f"/session/{name}")


def run(api, sandbox, name, command, **members):
    reply = api.execd(sandbox, "POST", f"/session/{name}/run", json={"command": command, **members})
    assert reply.status == 200, reply
    return Command(reply)


def test_state_is_carried_over(session):
    assert session("pwd").stdout == "/tmp"
    assert session("export A='x $y `z` \"q\"\nsecond line'; cd /usr").exit_code == 0
    assert session('printf "%s|" "$A" "$PWD"').stdout == "x $y `z` \"q\"\nsecond line|/usr|"


@pytest.mark.parametrize("command, code", [("exit 7", 7), ("sh -c 'exit 7'", 7), ("exec sh -c 'exit 3'", 3), ("set -e; false", 1)])
def test_no_command_ends_the_session(session, command, code):
    ran = session(command)
    assert ran.exit_code == code
    assert [event["type"] for event in ran.events].count("error") == 1
    assert "execution_complete" not in [event["type"] for event in ran.events]
    assert session("echo still here").stdout == "still here"


def test_output(session):
    assert session("echo out; echo err >&2").texts("stdout") == ["out", "err"]
    assert session("printf 'no newline'").texts("stdout") == ["no newline"]
    assert session("true").texts("stdout") == []
    assert session("cat <<X\nhere\nX").stdout == "here"


def test_directory_override_sticks(session):
    assert session("pwd", cwd="/usr/lib").stdout == "/usr/lib"
    assert session("pwd").stdout == "/usr/lib"


def test_timeout_kills_children_too(session):
    started = time.monotonic()
    ran = session("sleep 4731; echo never", timeout=200)
    assert time.monotonic() - started < 3
    assert ran.error is not None
    assert session("echo alive").stdout == "alive"


def test_runs_of_one_session_wait_for_each_other(session):
    session("export N=0")
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda _: session("export N=$((N + 1))"), range(10)))
    assert session("echo $N").stdout == "10"


def test_empty_bodies_and_unknown_sessions(api, sandbox, session):
    for body in (b"", b"null", b"{}"):
        reply = api.execd(sandbox, "POST", "/session", body=body)
        assert reply.status == 200, (body, reply)
        assert api.execd(sandbox, "DELETE", f"/session/{reply.json['session_id']}").status == 200
    assert_envelope(api.execd(sandbox, "DELETE", "/session/none"), 404, "CONTEXT_NOT_FOUND")
    assert api.execd(sandbox, "POST", "/session/none/run", json={"command": "true"}).status in (404, 500)
    assert session("true").exit_code == 0


def test_metrics(api, make_sandbox):
    made = make_sandbox(resourceLimits={"memory": "256Mi", "cpu": "1"})
    reply = api.execd(made["id"], "GET", "/metrics")
    if reply.status == 404 and "no route" in reply.json["message"]:
        pytest.skip("the daemon has no metrics yet")
    assert reply.status == 200, reply
    found = reply.json
    assert set(found) >= {"cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib", "timestamp"}
    assert found["cpu_count"] > 0
    assert 0 <= found["cpu_used_pct"] <= 100
    assert 0 <= found["mem_used_mib"] <= found["mem_total_mib"]
    assert isinstance(found["timestamp"], int) and abs(found["timestamp"] / 1000 - time.time()) < 10
