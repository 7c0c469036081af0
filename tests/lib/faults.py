"""Failures of single system calls: osb-fault (tests/faults) lets the Nth call fail that a process or its children make.

A test counts the calls of an operation once, then repeats it with one of them failing. Ordinary runs take a sample, spread over
all calls by a seed that is printed and can be set (OSB_FAULT_SEED); --long takes every call.
"""

import errno
import os
import random
import subprocess

import pytest

from . import leaks
from .plugin import shared_service

SEED = os.environ.get("OSB_FAULT_SEED", "1")
# An operation has some hundred calls; a loop that has not come to an end by then never will.
MOST = 5000
ERRORS = (errno.ENOMEM, errno.EIO)
LEAK_CHECK_EVERY = 8  # tries, with --long; else once, after all tests of a service


class Fault:
    """The Nth call from here on fails; none for N = 0.

    `whose`: "" for the process and its children, "--program" once it has become another program, "--children" for programs that
    are its children.
    """

    def __init__(self, service, number=0, error=errno.ENOMEM, whose=""):
        tool = service.bin_dir / "osb-fault"
        if not tool.exists():
            pytest.skip("osb-fault was not built: it does not know this architecture (tests/faults/CMakeLists.txt)")
        words = [tool, *([whose] if whose else []), service.launcher_pid, number, error]
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number, self.error = number, error
        self.what, self.counted = "", 0
        self.service, self.log_size = service, service.log_path.stat().st_size
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        """What was made to fail, or nothing. From here on calls are left alone."""
        if self.process.stdin.closed:
            return self.what
        self.process.stdin.close()
        for line in self.process.stdout.read().splitlines():
            word, _, rest = line.partition(" ")
            if word == "counted":
                self.counted = int(rest)
            else:
                self.what = line
        self.process.wait(10)
        self.process.stdout.close()
        return self.what

    def was_logged(self):
        """Whether the service has said anything since."""
        return self.service.log_path.stat().st_size > self.log_size

    def __str__(self):
        return f"call {self.number} with {errno.errorcode[self.error]} ({self.what or 'not reached yet'}), seed {SEED}"


def fail_each(request, sample, attempt, errors=ERRORS, most=None):
    """attempt(number, error) -> the Fault, which has ended; number 0 is an undisturbed one, which tells how many calls there are.
    `sample` calls are tried, with --long all, or `most`."""
    count = attempt(0, errors[0]).counted
    assert count > 0, "an operation without a system call"
    print(f"{count} calls, seed {SEED}")
    if request.config.getoption("--long") and most:
        sample = most
    elif request.config.getoption("--long"):
        for error in errors:
            # Further than the undisturbed one, which found things made ahead of need; until the last is not reached.
            for number in range(1, MOST):
                if not attempt(number, error).what and number > count:
                    break
            else:
                pytest.fail(f"{MOST} calls, and each of them was reached")
        return
    chosen = random.Random(f"{SEED} {request.node.name}")
    step = count / sample
    for turn in range(sample):
        attempt(1 + int(step * turn + chosen.random() * step), errors[turn % len(errors)])


def recover(service, fault):
    """No answer at all is right in one case only: the launcher's answer to the server is lost, and it starts the server again."""
    fault.end()
    assert service.process.poll() is None, f"{fault}: the launcher ended: {service.log_tail()}"
    assert "does not take its answers" in service.log_tail(), str(fault)
    service.wait_healthy()


def assert_explained(service, reply, where):
    assert reply.status in (429, 500, 502, 503), where
    assert reply.json["code"] and len(reply.json["message"]) > 10, where
    service.wait_healthy()  # the launcher may have started the server again, for want of a way to talk to it


class LeakChecks:
    """Whether everything is given back takes a while to see, for the service keeps some things for the next sandbox."""

    def __init__(self, service, request):
        self.service, self.often = service, request.config.getoption("--long")
        self.before = leaks.snapshot(service)
        self.tries = 0

    def after_a_try(self):
        self.tries += 1
        if self.often and self.tries % LEAK_CHECK_EVERY == 0:
            self.at_the_end()

    def at_the_end(self):
        leaks.assert_nothing_leaked(self.service, self.before)


@pytest.fixture(scope="module")
def checks(bin_dir, request):
    """One service for all: nothing of any test may be left in the end."""
    checks = LeakChecks(shared_service(request, bin_dir), request)
    yield checks
    checks.at_the_end()
