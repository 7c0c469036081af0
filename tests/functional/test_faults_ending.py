"""Every system call of a delete, a pause and a resume may fail: always a clear error or success, nothing lives half, the next try
works, and a living sandbox stays one."""

from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api
from lib.disks import no_disks
from lib.faults import Fault, LeakChecks, assert_explained, checks, fail_each, recover  # noqa: F401
from lib.waiting import process_gone, wait_for
from test_pause import pause, resume

LIMITS = {"cpu": "500m", "memory": "128Mi", "pids": "100"}


def runs_nothing(pid):
    """With some faults nobody knows the first process, and the end is told by its group: the kernel takes a process from that when it
    has no memory any more, and a little before it is a zombie, which may then wait to be reaped."""
    try:
        return process_gone(pid) or Path(f"/proc/{pid}/statm").read_text().split()[0] == "0"
    except OSError:
        return True


def ask_with_fault(service, number, error, ask):
    """The fault, and the answer: None where there was none, for one of the two good reasons."""
    fault = Fault(service, number, error)
    try:
        reply = ask()
    except (OSError, rawhttp.Closed):
        recover(service, fault)
        return fault, None
    fault.end()
    where = f"{fault}: {reply.status} {reply.body[:500]}"
    if reply.status >= 300:
        assert fault.what, where
        assert_explained(service, reply, where)
    return fault, reply


def fail_deletes(request, checks, sample, limits):
    service = checks.service
    api = Api(service)

    def attempt(number, error):
        name = api.create(resourceLimits=limits)["id"]
        pids = service.scope.sandbox_pids(name)
        fault, reply = ask_with_fault(service, number, error, lambda: api.delete(name))
        if reply is not None and reply.status == 204:
            left = [pid for pid in service.scope.sandbox_pids(name) if not runs_nothing(pid)]
            assert left == [], f"{fault}: answered, but of {pids} these live"
        # The next try works; it may find that the server has tried again by itself.
        again = api.delete(name)
        assert again.status in (204, 404), f"{fault}, then {again}"
        assert api.call("GET", f"/sandboxes/{name}").status == 404, str(fault)
        checks.after_a_try()
        return fault

    fail_each(request, sample, attempt)


@pytest.mark.parametrize("limits", [{}, LIMITS, pytest.param({"disk": "32Mi"}, marks=no_disks)], ids=["plain", "limits", "disk"])
def test_every_call_of_a_delete(checks, request, limits):
    fail_deletes(request, checks, 7, limits)


def test_every_call_of_a_delete_without_root(new_rootless, request):
    checks = LeakChecks(new_rootless(), request)
    fail_deletes(request, checks, 6, {})
    checks.at_the_end()


class Sleeper:
    """One sandbox that is paused and resumed again and again."""

    def __init__(self, service):
        self.service, self.api = service, Api(service)
        self.name = self.api.create()["id"]
        self.pids = service.scope.sandbox_pids(self.name)

    def state(self):
        """When what the server says and what the kernel does are the same."""
        def settled():
            state = self.api.status(self.name)["state"]
            assert state in ("Running", "Paused"), state
            return state if self.service.scope.frozen(self.name) == (state == "Paused") else None

        return wait_for(settled, 15, "the state is that of the kernel")

    def works(self):
        return self.api.run(self.name, "echo alive").stdout == "alive" and self.service.scope.sandbox_pids(self.name) == self.pids


@pytest.fixture
def sleeper(checks):
    made = Sleeper(checks.service)
    yield made
    made.api.delete(made.name)


def test_every_call_of_a_pause(sleeper, request):
    service = sleeper.service
    api, name = sleeper.api, sleeper.name

    def attempt(number, error):
        fault, reply = ask_with_fault(service, number, error, lambda: pause(api, name))
        state = sleeper.state()
        if reply is not None:
            assert (reply.status == 202) == (state == "Paused"), f"{fault}: {reply.status}, {state}"
        if state == "Running":
            assert sleeper.works(), str(fault)
            assert pause(api, name).status == 202, f"the next try after {fault}"
        assert resume(api, name).status == 202 and sleeper.works(), str(fault)
        return fault

    fail_each(request, 6, attempt)


def test_every_call_of_a_resume(sleeper, request):
    service = sleeper.service
    api, name = sleeper.api, sleeper.name

    def attempt(number, error):
        assert pause(api, name).status == 202
        fault, reply = ask_with_fault(service, number, error, lambda: resume(api, name))
        state = sleeper.state()
        if reply is not None:
            assert (reply.status == 202) == (state == "Running"), f"{fault}: {reply.status}, {state}"
        if state == "Paused":
            assert resume(api, name).status == 202, f"the next try after {fault}"
        assert sleeper.works(), str(fault)
        return fault

    fail_each(request, 6, attempt)
