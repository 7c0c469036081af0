"""A program that crashes in a sandbox starts nothing on the host, also where the host has a core handler."""

import tempfile

import pytest
from lib.waiting import wait_for

import host
import probes


@pytest.fixture
def notes():
    # A short path: the kernel keeps 127 characters of the setting.
    with tempfile.TemporaryDirectory(prefix="osb-core-", dir="/tmp") as directory:
        with host.core_handler(directory) as noted:
            yield noted


def test_control(notes, probe_path):
    """Without protection the handler runs, and the probe knows it."""
    verdict = probes.unprotected(probe_path, "core_dump")
    verdict.assert_succeeded()
    assert "after setrlimit to 0" in verdict.line, verdict.line
    wait_for(lambda: list(notes.iterdir()), 10, "a note of the handler")


@pytest.mark.parametrize("who", ["root", "user"])
def test_no_handler_runs(notes, armed, probe_path, who):
    members = {} if who == "root" else {"uid": 1000, "gid": 1000}
    armed.run("core_dump", **members).assert_refused()
    armed.run("rlimit_core", **members).assert_refused()
    noted = list(notes.iterdir())
    # A crash after those, whose note would come after theirs.
    probes.unprotected(probe_path, "core_dump").assert_succeeded()
    wait_for(lambda: list(notes.iterdir()), 10, "a note of the handler")
    assert noted == []


LOWER_AND_CRASH = {
    "a shell": "ulimit -c 0; sh -c 'kill -SEGV $$'; true",
    "another program": "exec env sh -c 'ulimit -c 0; exec python3 -c \"import os; os.abort()\"'; true",
    "a thread": "python3 -c 'import resource, threading, os; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); t = threading.Thread(target=os.abort); t.start(); t.join()'; true",
    "another user": "setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'ulimit -c 0; kill -SEGV $$'; true",
}


@pytest.mark.parametrize("how", LOWER_AND_CRASH)
def test_no_handler_runs_for(notes, api, armed, probe_path, how):
    """ssh-agent, gpg and sudo lower the limit so that nothing of theirs is ever dumped: for them it looks as if it worked."""
    ran = api.run(armed.sandbox_id, LOWER_AND_CRASH[how])
    assert "cannot modify" not in ran.stderr and "not permitted" not in ran.stderr and "Error" not in ran.stderr, ran.stderr
    noted = list(notes.iterdir())
    probes.unprotected(probe_path, "core_dump").assert_succeeded()
    wait_for(lambda: list(notes.iterdir()), 10, "a note of the handler")
    assert noted == []


def test_reading_the_limit_works(api, armed):
    script = (
        "import resource as r; print(r.getrlimit(r.RLIMIT_CORE)); r.setrlimit(r.RLIMIT_CORE, (0, 0)); "
        "print(r.prlimit(0, r.RLIMIT_CORE)); r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); print(r.getrlimit(r.RLIMIT_NOFILE))"
    )
    assert api.run(armed.sandbox_id, ["python3", "-c", script]).stdout.split("\n") == ["(1, 1)", "(1, 1)", "(64, 64)"]
