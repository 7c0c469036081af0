"""Pools that the kernel keeps per user: what one sandbox takes, nobody else misses."""

import ctypes
import os
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("no_leaks")

COMMON = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def inotify():
    return libc.inotify_init1(0o2000000)

def queued_signal():
    return 0 if libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) == 0 else -1

class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("flags", "most", "size", "now", "a", "b", "c", "d")]

def message_queue(number=[0]):
    number[0] += 1
    attributes = Attributes(0, 10, 8192)
    return libc.mq_open(f"/osb-test-{os.getpid()}-{number[0]}".encode(), os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(attributes))

def gone(number):
    libc.mq_unlink(f"/osb-test-{os.getpid()}-{number}".encode())

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
take = {"inotify": inotify, "queued_signal": queued_signal, "message_queue": message_queue}[sys.argv[1]]
"""
# Until there are no more; the note says how many, and they are kept until somebody kills it.
TAKE_ALL = COMMON + """
taken = 0
while taken < 400000 and take() >= 0:
    taken += 1
open("/tmp/taken.new", "w").write(f"{taken} {os.strerror(ctypes.get_errno())}")
os.rename("/tmp/taken.new", "/tmp/taken")
time.sleep(1000)
"""
TAKE_ONE = COMMON + """
got = take()
gone(1)
print("got it" if got >= 0 else os.strerror(ctypes.get_errno()))
"""


@pytest.mark.parametrize("pool", ["inotify", "queued_signal", "message_queue"])
def test_one_sandbox_takes_only_its_own(api, make_sandbox, pool):
    greedy, other = make_sandbox()["id"], make_sandbox()["id"]
    api.upload(greedy, "/tmp/take.py", TAKE_ALL.encode(), mode=755)
    api.run(greedy, f"python3 /tmp/take.py {pool} > /tmp/log 2>&1", background=True)
    waited = api.run(greedy, "until test -e /tmp/taken; do sleep 0.05; done; cat /tmp/taken", timeout=60000)
    assert waited.exit_code == 0, waited
    taken, why = waited.stdout.split(" ", 1)
    assert 0 < int(taken) < 400000, waited.stdout  # there is an end to it, and it was reached
    assert api.run(other, ["python3", "-c", TAKE_ONE, pool]).stdout == "got it", f"{taken} taken by another sandbox, until: {why}"
    assert root_takes_one(pool) == "got it", f"{taken} taken by a sandbox, until: {why}"


def root_takes_one(pool):
    done = subprocess.run(["python3", "-c", TAKE_ONE, pool], capture_output=True, text=True, check=True)
    return done.stdout.strip()


NS_GET_OWNER_UID = 0xB704


def test_the_namespace_belongs_to_an_id_of_the_sandbox(api, make_sandbox, service):
    """As the host sees it: nobody outside has that id, so nobody outside has rights over the namespace but root."""
    made = make_sandbox()["id"]
    init = service.scope.sandbox_pids(made)[0]
    first = int(open(f"/proc/{init}/uid_map").read().split()[1])
    owner = ctypes.c_uint32()
    with open(f"/proc/{init}/ns/user", "rb") as space:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.ioctl(space.fileno(), NS_GET_OWNER_UID, ctypes.byref(owner)) == 0, os.strerror(ctypes.get_errno())
    assert owner.value == first > 0
