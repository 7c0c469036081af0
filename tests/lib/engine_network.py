"""The network of an engine in namespaces of its own, for tests that have to reach its containers by their addresses."""

import ctypes
import os
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000


def inside_network(engine):
    """This thread is there meanwhile, and what it starts: a service in here reaches the engine's bridge, and only who is here, too,
    reaches that service."""
    return network_of(engine.holder.pid)


@contextmanager
def network_of(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        enter(libc, there)
        yield
    finally:
        enter(libc, back)
        os.close(there)
        os.close(back)


def enter(libc, namespace):
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
