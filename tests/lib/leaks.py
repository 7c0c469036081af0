"""What a service holds on its host, before and after: the difference is what it leaked.

Compared are the host's mount table, control groups of all hierarchies, processes (zombies included), namespaces, loop devices
over disks that are gone, what a Docker engine holds, the descriptors of launcher and server, the state directory and the rows of
its databases.
"""

import fcntl
import os
import re
import sqlite3
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .scope import HANDLE
from .waiting import wait_for

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")

# Tables that keep the past on purpose (ends stay readable in the diagnostics for a day), and bookkeeping.
KEPT_TABLES = re.compile(r"event|histor|audit|migration|schema|^sqlite_", re.IGNORECASE)

# What the service keeps for later, by kind, and how much of it at most: user namespaces of id ranges that were in use once,
# network namespaces made ahead of need, idle connections to sandboxes that live. Anything else may differ by a few.
KEPT_DESCRIPTORS = {"user": 256, "net": 8}
IDLE_CONNECTIONS = 16
SPARE_DESCRIPTORS = 8

LOOP_GET_STATUS64 = 0x4C05


@dataclass
class Snapshot:
    mounts: set
    cgroups: set
    processes: dict  # (pid, start time) -> what it is
    namespaces: set
    loops: set
    engine: set
    living: set  # handles of sandboxes with processes
    descriptors: dict  # "launcher"/"server" -> Counter of kinds
    files: set
    rows: dict  # "file:table" -> count


def snapshot(service):
    scope = service.scope
    processes = scope.processes()
    roles = {"launcher": service.launcher_pid, "server": service.server_pid(required=False)} if service.process else {}
    return Snapshot(
        mounts=mount_lines(scope, roles),
        cgroups=scope.cgroups(),
        processes=processes,
        namespaces=namespaces([pid for pid, _ in processes]),
        loops=stray_loops(scope.state_dir),
        engine=scope.engine_holds(),
        living=scope.running_handles(),
        descriptors={role: descriptors(pid, scope.state_dir) for role, pid in roles.items() if pid},
        files=state_files(scope.state_dir),
        rows=row_counts(scope.state_dir),
    )


def difference(before, after):
    """Sentences about everything that is there after and was not before."""
    found = []
    for what in ("mounts", "cgroups", "namespaces", "loops", "engine", "files"):
        found += [f"{what}: {item}" for item in sorted(getattr(after, what) - getattr(before, what))]
    found += [f"processes: {text}" for key, text in after.processes.items() if key not in before.processes]
    for role, now in after.descriptors.items():
        was = before.descriptors.get(role, Counter())
        found += [f"descriptors of the {role}: {now[kind]} {kind} namespaces" for kind, most in KEPT_DESCRIPTORS.items() if now[kind] > most]
        more = {kind: count - was[kind] for kind, count in now.items() if count > was[kind] and kind not in KEPT_DESCRIPTORS}
        if sum(more.values()) > SPARE_DESCRIPTORS + IDLE_CONNECTIONS * len(after.living):
            found.append(f"descriptors of the {role}: {more} more than before")
    for table, count in after.rows.items():
        if count > before.rows.get(table, 0):
            found.append(f"rows: {table} has {count}, had {before.rows.get(table, 0)}")
    return found


def assert_nothing_leaked(service, before, timeout=20):
    """Waits for the service to settle (tear-down is asynchronous, and a disk that others fill makes it slow), then the difference must
    be empty."""
    last = []

    def settled():
        last[:] = difference(before, snapshot(service))
        return not last

    try:
        wait_for(settled, timeout, "everything is given back", interval=0.1)
    except AssertionError:
        raise AssertionError("left behind:\n  " + "\n  ".join(last[:40])) from None


def mount_lines(scope, roles):
    # The host's table is shared with everybody: only lines that name this service's files or sandboxes are its own.
    # Launcher and server may live in mount namespaces of their own: there every line counts.
    wanted = [scope.state_dir, *scope.sandbox_ids, *scope.handles.values()]
    own = read_lines("/proc/self/mountinfo")
    found = {"host: " + line for line in own if any(word in line for word in wanted)}
    for role, pid in roles.items():
        if pid and namespace(pid, "mnt") != namespace("self", "mnt"):
            # The ids at the start of a line differ from start to start.
            found |= {f"{role}: " + line.split(" ", 3)[-1] for line in read_lines(f"/proc/{pid}/mountinfo")}
    return found


def namespaces(pids):
    host = {namespace("self", kind) for kind in NAMESPACES}
    return {name for pid in pids for kind in NAMESPACES if (name := namespace(pid, kind))} - host


def namespace(pid, kind):
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


def stray_loops(state_dir):
    """Loop devices over a disk on the state directory's file system that has no name any more. Whose they are is told by nothing:
    of other services they are gone in a moment."""
    found = set()
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        device = path.parts[3]
        try:
            name, status = path.read_text().strip(), loop_status(device)
            if name.endswith("disk.img (deleted)") and status[0] == os.stat(state_dir).st_dev:
                found.add(f"{device}, inode {status[1]}")
        except OSError:
            continue
    return found


def loop_status(device):
    """(device number, inode) of the file that is under a loop device."""
    info = bytearray(232)
    with open(f"/dev/{device}", "rb") as opened:
        fcntl.ioctl(opened, LOOP_GET_STATUS64, info)
    return struct.unpack_from("<QQ", info)


def descriptors(pid, state_dir):
    kinds = Counter()
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return kinds
    for number in numbers:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{number}")
        except OSError:
            continue
        target = re.sub(r":\[\d+\]", "", target).replace(state_dir, "<state>")
        kinds[HANDLE.sub("<id>", target)] += 1
    return kinds


def state_files(state_dir):
    """Paths below the state directory, without the databases' own files and without looking into sandboxes' trees."""
    found = set()
    for directory, names, files in os.walk(state_dir):
        relative = os.path.relpath(directory, state_dir)
        if relative.startswith("sandboxes/"):
            names[:] = []  # a sandbox's own files come and go
            continue
        if relative == "images":  # one for each state of the host's /etc that a start of this boot has seen
            names[:] = [name for name in names if not re.match(r"host-[0-9a-f]{16}$", name)]
        if relative in ("views", "disks"):
            files = [name for name in files if not re.match(r"(meminfo|cpuinfo|online)-\d+$|\d+\.img$", name)]  # bounded caches
        for name in names + files:
            if not re.search(r"\.(db|sqlite3?)(-wal|-shm|-journal)?$", name):
                found.add(os.path.join(relative, name))
    return found


def databases(state_dir):
    # Near the top only: deeper down are the sandboxes' own files.
    nearby = [*Path(state_dir).glob("*"), *Path(state_dir).glob("*/*")]
    return [path for path in nearby if re.search(r"\.(db|sqlite3?)$", path.name) and path.is_file()]


def row_counts(state_dir):
    counts = {}
    for path in databases(state_dir):
        try:
            with_database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
        except sqlite3.Error:
            continue
        try:
            tables = [name for (name,) in with_database.execute("select name from sqlite_master where type = 'table'")]
            for table in tables:
                if not KEPT_TABLES.search(table):
                    counts[f"{path.name}:{table}"] = with_database.execute(f'select count(*) from "{table}"').fetchone()[0]
        except sqlite3.Error as error:
            counts[f"{path.name}:unreadable {error}"] = 1
        finally:
            with_database.close()
    return counts


def read_lines(path):
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
