"""The daemon inside answers whatever its sandbox's processes do, and nobody but the daemon runs where it runs."""

import os
import pathlib
import time

import pytest
from lib.scope import all_pids, cgroups_of, command_line, namespace_pid
from lib.waiting import wait_for
from lib.websocket import WebSocket

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.alone]

PYTHON = "/usr/bin/python3"
PROCESSES = 700

# Each process forks for ever and never sleeps.
BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
# The same out of the reach of every process group, with orphans that PID 1 has to reap all the time.
ORPHANS = """
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() > 0: os._exit(0)
    except OSError:
        pass
"""
# Stops new processes the moment they exist, before they have become a program.
STOPPER = """
import os, signal
print("at it", flush=True)
while True:
    last = int(open("/proc/loadavg").read().split()[4])
    for pid in range(last - 1, last + 4):
        if pid > 1 and pid != os.getpid():
            try: os.kill(pid, signal.SIGSTOP)
            except OSError: pass
"""


def start(api, sandbox, program):
    ran = api.run(sandbox, f"exec {PYTHON} - <<'END'\n{program}\nEND", background=True)
    return ran.events[0]["text"]


def ping_all_along(api, sandbox, seconds):
    """The longest time that an answer took."""
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        asked = time.monotonic()
        assert api.ping(sandbox)
        longest = max(longest, time.monotonic() - asked)
        time.sleep(0.02)
    return longest


def is_full(service, sandbox):
    return len(service.scope.sandbox_pids(sandbox)) > PROCESSES * 0.8


@pytest.mark.parametrize("program", [BOMB, ORPHANS], ids=["bomb", "orphans"])
@pytest.mark.parametrize("cpu", ["200m", None])
def test_the_daemon_answers_beside_a_fork_bomb(service, api, cpu, program):
    limits = {"pids": str(PROCESSES), **({"cpu": cpu} if cpu else {})}
    sandbox = api.create(resourceLimits=limits)["id"]
    try:
        bomb = start(api, sandbox, program)
        wait_for(lambda: is_full(service, sandbox), 60, "the bomb has filled the sandbox", interval=0.2)
        assert ping_all_along(api, sandbox, 6) < 1
        if program is BOMB:
            # Its whole group can be ended, and then there is room again.
            assert api.execd(sandbox, "DELETE", f"/command?id={bomb}", timeout=30).status == 200
            wait_for(lambda: api.run(sandbox, "echo room").stdout == "room", 30, "commands run again")
    finally:
        asked = time.monotonic()
        assert api.delete(sandbox).status == 204
        assert time.monotonic() - asked < 10


def test_a_process_that_is_stopped_before_its_program_stops_nobody(api):
    sandbox = api.create()["id"]
    try:
        stopper = start(api, sandbox, STOPPER)
        wait_for(lambda: b"at it" in api.execd(sandbox, "GET", f"/command/{stopper}/logs").body, 20, "the stopper runs")
        for _ in range(60):
            asked = time.monotonic()
            api.run(sandbox, "true", background=True, client_timeout=10)
            assert api.ping(sandbox)
            assert time.monotonic() - asked < 2
        assert api.execd(sandbox, "DELETE", f"/command?id={stopper}", timeout=30).status == 200
        assert api.run(sandbox, "echo fine").stdout == "fine"
    finally:
        assert api.delete(sandbox).status == 204


def cpu_group(pid, thread=None):
    """The last names of its group where cpu is limited."""
    found = {name: path for names, path in cgroups_of(f"{pid}/task/{thread}" if thread else pid) for name in names.split(",")}
    return found.get("cpu", found.get(""))


def test_only_the_daemon_is_outside_the_group_of_the_work(service, api):
    """Whatever execd starts, and what that starts, shares the limit; execd, with all its threads, stays out of it."""
    sandbox = api.create(resourceLimits={"cpu": "500m", "memory": "256Mi"})["id"]
    try:
        api.run(sandbox, "sleep 4791 & setsid sleep 4792 & (setsid sleep 4793 &) ; sleep 4794", background=True)
        api.run(sandbox, "sleep 4795 &", timeout=20000)
        session = api.execd(sandbox, "POST", "/session").json["session_id"]
        api.execd(sandbox, "POST", f"/session/{session}/run", json={"command": "sleep 4796 &"})
        terminal = api.execd(sandbox, "POST", "/pty", json={"command": "sleep 4797"}).json["session_id"]
        cell = {"code": "import subprocess; subprocess.Popen(['sleep', '4798'])", "context": {"language": "python"}}
        assert api.execd(sandbox, "POST", "/code", json=cell, timeout=60).status == 200
        with WebSocket(api.address, f"/v1/sandboxes/{sandbox}/proxy/44772/pty/{terminal}/ws") as socket:
            assert socket.status == 101
            wanted = {str(seconds).encode() for seconds in range(4791, 4799)}

            def all_there():
                lines = [command_line(pid) for pid in service.scope.sandbox_pids(sandbox)]
                return wanted <= {line[1] for line in lines if line and line[0].endswith(b"sleep")}

            wait_for(all_there, 20, "everything runs")
            pids = service.scope.sandbox_pids(sandbox)
            assert namespace_pid(pids[0]) == 1 and namespace_pid(pids[1]) != 1
            daemon = cpu_group(pids[0])
            assert {cpu_group(pids[0], thread) for thread in os.listdir(f"/proc/{pids[0]}/task")} == {daemon}
            assert {cpu_group(pid) for pid in pids[1:]} == {daemon + "/work"}
        assert set(api.run(sandbox, "cut -d: -f3 /proc/self/cgroup | sort -u").stdout.split()) == {"/"}
    finally:
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not any(sandbox in path for pid in all_pids() for _, path in cgroups_of(pid)), 10, "all have ended")


def test_what_is_started_is_no_nicer_than_the_service(api):
    sandbox = api.create()["id"]
    try:
        assert api.run(sandbox, "nice").stdout == str(os.nice(0))
    finally:
        api.delete(sandbox)


def nice_values(pid):
    """Of all its threads."""
    stats = [pathlib.Path(f"/proc/{pid}/task/{thread}/stat").read_text() for thread in os.listdir(f"/proc/{pid}/task")]
    return {int(stat.rpartition(")")[2].split()[16]) for stat in stats}


def test_all_threads_of_the_daemons_go_before_the_work(service, api):
    """Files are read and written by other threads than the one that answers."""
    sandbox = api.create()["id"]
    try:
        api.upload(sandbox, "/tmp/made", b"x")
        daemon = service.scope.sandbox_pids(sandbox)[0]
        assert len(os.listdir(f"/proc/{daemon}/task")) > 1
        for pid in (daemon, service.server_pid()):
            assert len(nice_values(pid)) == 1 and max(nice_values(pid)) < os.nice(0), nice_values(pid)
    finally:
        api.delete(sandbox)


LEAVERS = """
(setsid sleep 4781 &)
setsid bash -c 'sleep 4782 & (setsid sleep 4783 &) ; wait' &
(setsid setsid bash -c 'exec -a hidden sleep 4784' &) ; disown -a
python3 -c 'import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp("sleep", ["sleep", "4785"])
    os._exit(0)
time.sleep(0.1)'
echo started
sleep 4786
"""


@pytest.mark.parametrize("background", [False, True])
def test_a_command_that_timed_out_takes_its_descendants_along(service, api, background):
    sandbox = api.create()["id"]
    try:
        # Of another command: none of its business.
        api.run(sandbox, "setsid sleep 4789 & true")

        def sleepers():
            # A process that is gone by the time it is looked at has no command line.
            lines = [command_line(pid) for pid in service.scope.sandbox_pids(sandbox)]
            return {line[1] for line in lines if line[:1] in ([b"sleep"], [b"hidden"])}

        ran = api.run(sandbox, LEAVERS, timeout=2500, background=background)
        if background:
            wait_for(lambda: len(sleepers()) == 7, 10, "all have been started")
            name = ran.events[0]["text"]
            wait_for(lambda: not api.execd(sandbox, "GET", f"/command/status/{name}").json["running"], 20, "the time is over")
        else:
            assert ran.stdout == "started"
            assert ran.error["evalue"] == "-1"
        assert sleepers() == {b"4789"}
    finally:
        assert api.delete(sandbox).status == 204


def test_a_command_that_ended_in_time_leaves_what_it_started(service, api):
    sandbox = api.create()["id"]
    try:
        assert api.run(sandbox, "setsid sleep 4788 & true", timeout=60000).exit_code == 0
        wait_for(lambda: api.run(sandbox, "pgrep -c -x sleep").stdout.strip() == "1", 5, "setsid has become sleep")
        assert api.run(sandbox, "ps -o ppid= -C sleep | sort -u | tr -d ' '").stdout == "1"
    finally:
        assert api.delete(sandbox).status == 204
