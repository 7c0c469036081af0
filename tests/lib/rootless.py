"""A service under test that an ordinary user started: a user id that nobody else has, a home, no root anywhere.

Everything that runs under that id, or under the ids given to it, is this service's. A sandbox is known by the note of its first
process, as for the service itself.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from .scope import Scope, all_pids, is_role
from .service import Service
from .waiting import process_stat

NAME = "osb-test-user"
SUBORDINATE_IDS = 65536


class RootlessService(Service):
    def __init__(self, bin_dir, *, subordinate_ids=False, wrapper=(), default_state_dir=False, **options):
        super().__init__(bin_dir, **options)
        self.uid = unused_id()
        self.home = self.directory / "home"
        self.runtime_dir = self.directory / "runtime"
        self.wrapper = list(wrapper)
        for directory in (self.home, self.runtime_dir):
            directory.mkdir(mode=0o700)
            os.chown(directory, self.uid, self.uid)
        # The build may lie where only root gets to.
        own = self.directory / "bin"
        own.mkdir()
        for name in ("osb", "osb-fault"):
            if (self.bin_dir / name).exists():
                shutil.copy2(self.bin_dir / name, own / name)
        (own / "opensandbox-server").symlink_to("osb")
        self.bin_dir = own
        self.state_dir = self.home / ".local/state/opensandbox" if default_state_dir else self.home / "state"
        before = self.config_path.read_text()
        line = f'"state_dir" = "{self.directory / "state"}"\n'
        assert line in before
        self.config_path.write_text(before.replace(line, "" if default_state_dir else f'"state_dir" = "{self.state_dir}"\n'))
        self.env = {"HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime_dir), **self.env}
        first = (self.uid << 16) & 0x7FFF0000 if subordinate_ids else None
        self.scope = UserScope(self.state_dir, self.uid, first)
        if subordinate_ids:
            self.wrapper += self.with_accounts(first)

    def command(self):
        as_user = ["setpriv", "--reuid", self.uid, "--regid", self.uid, "--clear-groups", "--inh-caps=-all"]
        return [str(word) for word in (*self.wrapper, *as_user, self.bin_dir / "opensandbox-server", "--config", self.config_path)]

    def with_accounts(self, first):
        """A private view of the host's tables in which the user has a name and ids to give."""
        lines = {
            "passwd": f"{NAME}:x:{self.uid}:{self.uid}::{self.home}:/bin/sh\n",
            "group": f"{NAME}:x:{self.uid}:\n",
            "subuid": f"{NAME}:{first}:{SUBORDINATE_IDS}\n",
            "subgid": f"{NAME}:{first}:{SUBORDINATE_IDS}\n",
        }
        script = ""
        for name, line in lines.items():
            host = Path("/etc", name)
            table = self.directory / name
            table.write_text((host.read_text() if host.exists() else "") + line)
            if not host.exists():
                pytest.skip(f"{host} does not exist, so nothing can cover it")
            script += f"mount --bind {table} {host} && "
        return ["unshare", "--mount", "sh", "-c", script + 'exec "$@"', "sh"]


class UserScope(Scope):
    def __init__(self, state_dir, uid, first_subordinate=None):
        super().__init__(state_dir)
        self.uid = uid
        self.first_subordinate = first_subordinate

    def learn(self, sandbox_id):
        pass  # there are no control groups

    def is_ours(self, pid):
        try:
            uid = os.stat(f"/proc/{pid}").st_uid
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("Uid:"):
                    uid = int(line.split()[1])  # the directory's owner is root's for what is not dumpable
        except OSError:
            return False
        first = self.first_subordinate
        return uid == self.uid or (first is not None and first <= uid < first + SUBORDINATE_IDS)

    def processes(self):
        launcher = self.launcher_pid()
        found = {}
        for pid in all_pids():
            stat = process_stat(pid)
            if stat is None or pid == launcher or not self.is_ours(pid):
                continue
            if stat["parent"] == launcher and stat["state"] not in "ZX" and is_role(pid):
                continue
            zombie = " (zombie)" if stat["state"] == "Z" else ""
            found[pid, stat["start_time"]] = f"pid {pid} {stat['name']}{zombie}"
        return found

    def init_pid(self, sandbox_id):
        try:
            return int(Path(self.state_dir, "sandboxes", self.handle(sandbox_id), "process").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def sandbox_pids(self, sandbox_id):
        init = self.init_pid(sandbox_id)
        namespace = pid_namespace(init) if init else None
        if namespace is None:
            return []
        return [init, *sorted(pid for pid in all_pids() if pid != init and pid_namespace(pid) == namespace)]

    def running_sandboxes(self):
        """Ids of all sandboxes whose first process lives, whoever knows about them."""
        directory = Path(self.state_dir, "sandboxes")
        ids = [self.id_of(path.name) for path in directory.iterdir()] if directory.exists() else []
        return {name for name in ids if self.sandbox_pids(name)}


def pid_namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def unused_id():
    """Of nobody on this host, above what service managers hand out to people and below what they hand out to services."""
    taken = {stat.st_uid for pid in all_pids() if (stat := status_of(pid))}
    while (candidate := random.randrange(50000, 60000)) in taken:
        pass
    return candidate


def status_of(pid):
    try:
        return os.stat(f"/proc/{pid}")
    except OSError:
        return None


def require_user_namespaces():
    tried = subprocess.run(
        ["setpriv", "--reuid", str(unused_id()), "--clear-groups", "unshare", "--user", "true"], capture_output=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"this host gives no user namespaces to ordinary users: {tried.stderr.decode().strip()}")
