"""Every system call of a start may fail, of the server alone or of the whole service: what ran runs, what was paused is paused, what
ended meanwhile has its true end, and none of it is ever called lost. A first start makes all of the image `host`, or fails."""

import errno
import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest
from lib.api import Api, Command
from lib.faults import Fault, LeakChecks, fail_each
from lib.plugin import shared_service
from lib.scope import all_pids, command_line
from lib.service import CANNOT_START
from lib.waiting import wait_for
from test_pause import pause, resume

# Ends when it is told to by a file, which can be made from outside while nobody serves the sandbox.
ENDER = ["sh", "-c", "until [ -e /tmp/end ]; do sleep 0.05; done; exit 7"]
# A server that dies young is started again later and later.
STARTS_IN_A_ROW = 2


def patiently(ask):
    """The answer, when it is no longer that nobody knows yet."""
    def answer():
        reply = ask()
        return reply if reply.status != 503 else None

    return wait_for(answer, 10, "another answer than 503")


class Household:
    """A sandbox that runs, one that is paused, one that ended long ago, and one that ends while the service is away."""

    def __init__(self, service):
        self.service, self.api = service, Api(service)
        # Thousands of starts take longer than an ordinary sandbox lives.
        self.running, self.paused = (self.api.create(timeout=...)["id"] for _ in range(2))
        self.ended = self.api.create(timeout=..., entrypoint=["sh", "-c", "sleep 0.1; exit 3"])["id"]
        wait_for(lambda: self.status(self.ended)["state"] == "Failed", 10, "an end to keep")
        # With its row all that is known of an ended one is lost; and a pause, which no row speaks of, is taken back.
        self.is_remembered = True
        assert pause(self.api, self.paused).status == 202
        self.pids = {name: service.scope.sandbox_pids(name) for name in (self.running, self.paused)}
        self.leaving = None

    def status(self, name):
        status = self.api.status(name)
        if status["reason"] == "LOST":
            pytest.fail(f"{name} is called lost: {status}")  # nothing that a moment's patience could excuse
        return status

    def let_one_end(self):
        self.leaving = self.api.create(entrypoint=ENDER)["id"]
        entry = self.entry_of(self.leaving)
        owners = Counter(os.stat(f"/proc/{pid}").st_uid for pid in (entry, *(pids[-1] for pids in self.pids.values())))
        assert max(owners.values()) == 1 or not self.service.maps_users, f"sandboxes with the same ids: {owners}"
        return lambda: Path(f"/proc/{entry}/root/tmp/end").touch()

    def entry_of(self, name):
        """Not by its handle: a server whose first attempt at its database failed keeps others from reading it."""
        def found():
            for pid in all_pids():
                try:
                    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if f"OPENSANDBOX_ID={name}".encode() in environment and command_line(pid)[:3] == [word.encode() for word in ENDER]:
                    return pid
            return None

        return wait_for(found, 5, f"the entry process of {name}")

    def is_whole(self):
        """Waits for everything to be as it was. Whoever asks too early gets 503, and never anything that is not true."""
        wait_for(self.all_right, 20, "everything is as it was")
        if self.is_remembered:
            assert patiently(lambda: resume(self.api, self.paused)).status == 202
        for name, pids in self.pids.items():
            reply = patiently(lambda: self.api.execd(name, "POST", "/command", json={"command": "echo alive"}))
            assert Command(reply).stdout == "alive", reply
            assert self.service.scope.sandbox_pids(name) == pids, "not the same processes"
        if self.is_remembered:
            assert pause(self.api, self.paused).status == 202
        assert self.api.delete(self.leaving).status == 204

    def all_right(self):
        wanted = {self.running: ("Running", ""), self.paused: ("Running", ""), self.leaving: ("Failed", "code 7")}
        if self.is_remembered:
            wanted |= {self.paused: ("Paused", ""), self.ended: ("Failed", "code 3")}
        for name, (state, end) in wanted.items():
            status = self.status(name)
            assert status["state"] == state and end in status["message"], f"{name} should be {state} {end}: {status}"
        assert self.service.scope.frozen(self.paused) == self.is_remembered and not self.service.scope.frozen(self.running)
        return self.api.execd(self.running, "GET", "/ping").status == 200


def stand_up(service, fault):
    """Within a moment it serves again; or it has ended and said why (127: the loader did; 78: it took damage of a file for
    something that somebody has to put right), and the next start works."""
    def decided():
        return service.process.poll() is not None or service.is_healthy()

    wait_for(decided, 20, f"{fault}: it serves or has ended")
    fault.end()
    if service.process.poll() is not None:
        expected = (1, 127, CANNOT_START) if fault.error == errno.EIO else (1, 127)
        if not fault.was_logged():
            expected = (-signal.SIGSEGV,)  # so does the loader where it has no memory
        assert fault.what and service.process.returncode in expected, f"{fault}: {service.process.returncode}: {service.log_tail()}"
        service.start()
    service.wait_healthy()


def fail_starts(request, household, sample, start):
    service = household.service

    def attempt(number, error):
        end_one = household.let_one_end()
        fault = start(number, error, end_one)
        stand_up(service, fault)
        try:
            household.is_whole()
        except AssertionError as wrong:
            raise AssertionError(f"{fault}: {wrong}") from wrong
        return fault

    fail_each(request, sample, attempt)


@pytest.fixture(scope="module")
def household(bin_dir, request):
    """For all of these: what survives one start has to survive the next."""
    service = shared_service(request, bin_dir)
    checks = LeakChecks(service, request)
    household = Household(service)
    yield household
    service.restart()
    for made in household.api.list_all():
        assert household.api.delete(made["id"]).status == 204
    checks.at_the_end()


def restarter(service, whose):
    starts = 0

    def start(number, error, end_one):
        nonlocal starts
        if starts % STARTS_IN_A_ROW == 0:
            service.restart()
        starts += 1
        old = service.server_pid()
        fault = Fault(service, number, error, whose)
        end_one()
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: service.process.poll() is not None or (service.server_pid(required=False) or old) != old, 15, "another server")
        return fault

    return start


@pytest.mark.parametrize("whose", ["", "--children"], ids=["launcher", "server"])
def test_every_call_of_a_start_of_the_server(household, request, whose):
    fail_starts(request, household, 4, restarter(household.service, whose))


@pytest.mark.parametrize("rows", ["kept", "lost"])
def test_every_call_of_a_start_of_the_service(household, request, rows):
    service = household.service

    def start(number, error, end_one):
        service.stop()
        end_one()
        if rows == "lost":
            household.is_remembered = False
            for file in (path for path in (service.state_dir / "db").iterdir() if path.is_file()):
                file.unlink()
        service.spawn(held=True)
        fault = Fault(service, number, error, "--program")
        service.let_go()
        return fault

    fail_starts(request, household, 4, start)


def test_every_call_of_a_first_start(new_service, request):
    service = new_service()
    api = Api(service)
    images = service.state_dir / "images"
    whole = image_files(images)

    def attempt(number, error):
        service.stop()
        shutil.rmtree(images)
        service.spawn(held=True)
        fault = Fault(service, number, error, "--program")
        service.let_go()
        stand_up(service, fault)
        assert image_files(images) == whole, str(fault)
        made = api.create()["id"]
        assert api.run(made, "echo alive").stdout == "alive" and api.delete(made).status == 204, str(fault)
        return fault

    # Most of some thousand calls are those for files of /etc, one like the other. A file with a damage is left out.
    fail_each(request, 4, attempt, errors=[errno.ENOMEM], most=300)


def image_files(images):
    return sorted(path.relative_to(images) for path in images.rglob("*"))
