"""Bounded waits. A test never sleeps and hopes: it waits for something, for at most so long, and says what was missing."""

import os
import time


def wait_for(probe, timeout, what, interval=0.02):
    """Calls probe() until it gives something true, which is returned.

    An AssertionError from probe counts as "not yet" and is quoted when time runs out.
    """
    deadline = time.monotonic() + timeout
    last = None
    while True:
        try:
            value = probe()
            if value:
                return value
            last = value
        except AssertionError as error:
            last = error
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not within {timeout} s; last seen: {last!r}")
        time.sleep(interval)


def process_gone(pid, start_time=None):
    """True when pid no longer names a running process. A zombie counts as gone once its last thread is: before, it may
    still hold descriptors."""
    stat = process_stat(pid)
    if stat is None:
        return True
    if stat["state"] in "ZX":
        try:
            return len(os.listdir(f"/proc/{pid}/task")) <= 1
        except OSError:
            return True
    return start_time is not None and stat["start_time"] != start_time


def process_stat(pid):
    """The fields of /proc/<pid>/stat that tests need, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return {"name": name, "state": rest[0], "parent": int(rest[1]), "start_time": int(rest[19])}
