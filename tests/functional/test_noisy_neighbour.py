"""A sandbox without limits that takes all it can get: the service answers, and others' commands run."""

import os
import signal
import subprocess
import time

import pytest
from lib.api import Api
from lib.waiting import wait_for

pytestmark = pytest.mark.alone

BURNERS = 200
BURN = f"for i in $(seq {BURNERS}); do (while :; do :; done) & done; wait"


def slowest_tenth(action, count):
    """Milliseconds that nine of ten calls stay below."""
    taken = []
    for _ in range(count):
        started = time.monotonic()
        action()
        taken.append((time.monotonic() - started) * 1000)
        time.sleep(0.005)  # whoever sleeps has to be let in again
    return sorted(taken)[count * 9 // 10]


@pytest.fixture
def burners():
    """The same processes outside of every sandbox: what a neighbour would be without a group of its own."""
    # All at once: beside those that burn already, each further start would take a while. In no session of their own, which the
    # scheduler would take for a group.
    start = f"exec 3<&0; for i in $(seq {BURNERS}); do (read end <&3; while :; do :; done) & done; echo ready; wait"
    with subprocess.Popen(["/bin/sh", "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0) as group:
        assert group.stdout.readline() == b"ready\n"
        group.stdin.close()
        yield
        os.killpg(group.pid, signal.SIGKILL)


def measure(api, quiet, lists=60, commands=30):
    return {"list": slowest_tenth(api.list_all, lists), "command": slowest_tenth(lambda: api.run(quiet, "true"), commands)}


@pytest.fixture
def api(new_service):
    return Api(new_service())


def test_all_cores(api, request):
    quiet, noisy = api.create()["id"], api.create()["id"]
    api.run(noisy, BURN, background=True)
    wait_for(lambda: int(api.run(noisy, "ls -d /proc/[0-9]* | wc -l").stdout) > BURNERS, 20, "all of them burn")
    beside = measure(api, quiet)
    assert api.delete(noisy).status == 204
    request.getfixturevalue("burners")
    without = measure(api, quiet, lists=40, commands=10)  # they take so long that fewer will do
    print("milliseconds, beside a sandbox:", beside, "beside ungrouped processes:", without)
    assert beside["list"] < without["list"] / 2
    assert beside["command"] < without["command"] / 2
    assert beside["list"] < 100
    assert beside["command"] < 1000


def test_a_fork_bomb(api):
    quiet, noisy = api.create()["id"], api.create()["id"]
    api.run(noisy, "f() { f | f & }; f", background=True)
    time.sleep(2)
    beside = measure(api, quiet)
    print("milliseconds:", beside)
    assert api.delete(noisy).status == 204
    assert beside["list"] < 200
    assert beside["command"] < 2000


def test_a_disk_that_is_never_idle(api):
    """Four writers that wait for the disk after every few megabytes, and remove what they have written."""
    quiet, noisy = api.create()["id"], api.create()["id"]
    write = "while :; do dd if=/dev/zero of=/tmp/$i bs=1M count=32 conv=fsync 2>/dev/null; echo >>/tmp/rounds; rm /tmp/$i; done"
    api.run(noisy, f"for i in 1 2 3 4; do ({write}) & done; wait", background=True)
    rounds = lambda: int(api.run(noisy, "wc -l < /tmp/rounds").stdout or 0)  # noqa: E731
    wait_for(lambda: rounds() > 4, 60, "all of them write")
    before = rounds()
    beside = {**measure(api, quiet), "create and delete": slowest_tenth(lambda: api.delete(api.create()["id"]), 20)}
    print("milliseconds:", beside, "rounds meanwhile:", rounds() - before)
    assert rounds() > before, "they have not written meanwhile"
    assert api.delete(noisy).status == 204
    assert beside["list"] < 200
    assert beside["command"] < 2000
    assert beside["create and delete"] < 5000
