"""Which things on this host belong to one service under test.

Other services, other people's too, run on the same machine, so nothing is found by a global name. A sandbox is known by its
handle, which the service's database tells: the control group path of its processes contains it, and what is above the handle in
that path is the service's own subtree.
"""

import os
import re
import signal
import sqlite3
from pathlib import Path

from .waiting import process_gone, process_stat, wait_for

HANDLE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Scope:
    def __init__(self, state_dir):
        self.state_dir = str(state_dir)
        self.launcher = None  # the process that we started, as long as we have not waited for it its pid is its own
        self.sandbox_ids = set()
        self.handles = {}  # id -> what the sandbox is called on the host
        self.cgroup_roots = set()  # (mount point, path of the service's subtree)

    def remember(self, sandbox_id):
        """A sandbox that this service made; its running processes teach us the service's control groups."""
        self.sandbox_ids.add(sandbox_id)
        self.handle(sandbox_id)
        if not self.cgroup_roots:
            self.learn(sandbox_id)

    def handle(self, sandbox_id):
        """What names of the host have in them for this sandbox; known as long as its row was seen once. A service of the time
        before handles uses the id."""
        if sandbox_id not in self.handles:
            self.read_handles("where id = ?", sandbox_id)
        return self.handles.get(sandbox_id, sandbox_id)

    def id_of(self, handle):
        if handle not in self.handles.values():
            self.read_handles("where handle = ?", handle)
        return next((sandbox_id for sandbox_id, name in self.handles.items() if name == handle), handle)

    def read_handles(self, condition, value):
        for path in [*Path(self.state_dir).glob("*.db"), *Path(self.state_dir).glob("*/*.db")]:
            try:
                database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0.5)
                self.handles |= dict(database.execute(f"select id, handle from sandboxes {condition}", [value]))
                database.close()
            except sqlite3.Error:
                continue

    def learn(self, sandbox_id):
        mounts = cgroup_mounts()
        handle = self.handle(sandbox_id)
        for pid in all_pids():
            for controllers, path in cgroups_of(pid):
                parts = path.strip("/").split("/")
                index = next((i for i, part in enumerate(parts) if handle in part), None)
                if index is None or controllers not in mounts:
                    continue
                # A subtree at the very top would make the whole host ours.
                assert index > 0, f"sandbox {sandbox_id} lives in the host's root control group: {path}"
                self.cgroup_roots.add((mounts[controllers], "/" + "/".join(parts[:index])))

    def learn_by_name(self):
        """The same without a sandbox that we know: others' clients make them, too. The service's identity has the name of its subtree."""
        try:
            group = Path(self.state_dir, "identity").read_text().split()[1]
        except (OSError, IndexError):
            return
        for mount in cgroup_mounts().values():
            found = [directory for directory, names, _ in os.walk(mount) if group in names]
            self.cgroup_roots |= {(mount, f"{directory.removeprefix(mount)}/{group}") for directory in found}

    def knows_groups(self):
        return bool(self.cgroup_roots)

    def cgroups(self):
        """Every control group below the service's subtrees, as host paths."""
        found = set()
        for mount, path in self.cgroup_roots:
            root = mount + path
            for directory, names, _ in os.walk(root):
                found.update(os.path.join(directory, name) for name in names)
        return found

    def running_handles(self):
        """Handles of all sandboxes that have a control group with processes, whoever knows about them."""
        found = set()
        for path in self.cgroups():
            match = HANDLE.search(path)
            try:
                if match and Path(path, "cgroup.procs").read_text().strip():
                    found.add(match.group())
            except OSError:
                continue  # it has just gone
        return found

    def running_sandboxes(self):
        return {self.id_of(handle) for handle in self.running_handles()}

    def mark(self, sandbox_id):
        """What the names of its control groups have in them."""
        return self.handle(sandbox_id)

    def frozen(self, sandbox_id):
        """What the kernel says."""
        groups = [Path(path) for path in self.cgroups() if path.endswith(self.mark(sandbox_id))]
        texts = [(group / "cgroup.events").read_text() for group in groups if (group / "cgroup.events").exists()]
        assert len(texts) == 1, groups
        return "frozen 1" in texts[0]

    def socket(self, sandbox_id, kind):
        """The path of a socket of execd: api, control."""
        return str(Path(self.state_dir, "run", f"{self.handle(sandbox_id)}.{kind}"))

    def engine_holds(self):
        """What somebody else's engine keeps for the service's sandboxes."""
        return set()

    def launcher_pid(self):
        """None when the launcher has ended: its number may be somebody else's by now."""
        return self.launcher.pid if self.launcher is not None and self.launcher.poll() is None else None

    def processes(self):
        """(pid, start time) -> what it is, for everything of this service except launcher and server themselves.

        Only control group, descent, and the state directory in a command line count. The executable does not: others run
        the same one.
        """
        launcher = self.launcher_pid()
        family = descendants(launcher) if launcher else set()
        found = {}
        for pid in all_pids():
            stat = process_stat(pid)
            if stat is None:
                continue
            in_tree = any(self.is_own_group(path) for _, path in cgroups_of(pid))
            is_child = stat["parent"] == launcher and not in_tree
            if is_child and stat["state"] not in "ZX" and is_role(pid):
                continue
            if in_tree or pid in family or (pid != launcher and self.was_launched(pid)):
                zombie = " (zombie)" if stat["state"] == "Z" else ""
                found[pid, stat["start_time"]] = f"pid {pid} {stat['name']}{zombie}"
        return found

    def is_own_group(self, path):
        return any(path.startswith(root + "/") for _, root in self.cgroup_roots)

    def was_launched(self, pid):
        """A copy of a launcher of ours, whoever its parent is now: what it forked and did not live to end."""
        return f"--state-dir={self.state_dir}".encode() in command_line(pid)

    def first_pid(self, identity):
        """Of what a row says of the sandbox's first process."""
        return int(identity.split()[0])

    def sandbox_pids(self, sandbox_id):
        """Host pids of one sandbox's processes, the init first."""
        mark = self.mark(sandbox_id)
        pids = [
            pid for pid in all_pids()
            if any(mark in part for _, path in cgroups_of(pid) for part in path.split("/"))
        ]  # fmt: skip
        return sorted(pids, key=lambda pid: (namespace_pid(pid), pid))

    def reap(self):
        """Ends what is left of the service's sandboxes after the service itself has ended, by pid."""
        self.learn_by_name()

        def kill_all():
            left = self.processes()
            for pid, start_time in left:
                kill_exactly(pid, start_time)
            return all(process_gone(pid, start_time) for pid, start_time in left)

        try:
            wait_for(kill_all, 5, "leftover processes end")
        except AssertionError:
            pass
        roots = [mount + path for mount, path in self.cgroup_roots]
        for path in sorted([*self.cgroups(), *roots], key=len, reverse=True):
            try:
                os.rmdir(path)
            except OSError:
                pass


def kill_exactly(pid, start_time):
    """SIGKILL to the process that had this pid and start time, never to a later one with the same number."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        stat = process_stat(pid)
        if stat is not None and stat["start_time"] == start_time:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def is_role(pid):
    """Server, egress: the launcher's long-lived children, as opposed to a worker or a half-made sandbox."""
    words = command_line(pid)
    # Versions before `osb-egress` had a role of osb for it.
    return words[:1] == [b"osb-egress"] or any(word in (b"server", b"egress-process") for word in words[1:3])


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def cgroups_of(pid):
    """(controllers, path) for every hierarchy; v2 has the controllers ''."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return []
    return [tuple(line.split(":", 2)[1:]) for line in text.splitlines()]


def cgroup_mounts():
    """controllers as /proc/<pid>/cgroup names them -> mount point."""
    mounts = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        point = left.split(" ")[4]
        if kind == "cgroup2":
            mounts.setdefault("", point)
        elif kind == "cgroup":
            wanted = [o for o in options.split(",") if o not in ("rw", "ro", "xattr", "clone_children")]
            mounts.setdefault(",".join(wanted), point)
    return mounts


def descendants(root):
    parents = {pid: stat["parent"] for pid in all_pids() if (stat := process_stat(pid))}
    family, grew = {root}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        grew = bool(more)
    return family - {root}


def namespace_pid(pid):
    """The pid as the process itself sees it: 1 for a sandbox's init."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    except OSError:
        pass
    return 1 << 30
