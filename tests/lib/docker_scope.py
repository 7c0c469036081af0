"""Which things on this host belong to one service whose sandboxes are containers.

The engine says which containers have the fingerprint of the service's identity in their labels. The control groups of a container have its id in their
names, and lie side by side with those of other services.
"""

import hashlib
import json
import os
from pathlib import Path
from urllib.parse import quote

from .scope import Scope, cgroup_mounts

# Where engines put the groups of containers: themselves, or by systemd.
PARENTS = ("docker", "system.slice")


class DockerScope(Scope):
    def __init__(self, state_dir, engine):
        super().__init__(state_dir)
        self.engine = engine
        self.ids = {}  # handle -> id of the container, also of those that are gone

    def containers(self):
        """handle -> id of those that the engine has now; none while it is away."""
        try:
            owner = fingerprint(Path(self.state_dir, "identity").read_text().split()[0])
            found = self.engine.get("/containers/json?all=1&filters=" + quote(json.dumps({"label": [f"opensandbox.io/owner={owner}"]})))
        except (OSError, IndexError):
            return {}
        now = {one["Labels"]["opensandbox.io/handle"]: one["Id"] for one in found}
        self.ids |= now
        return now

    def learn(self, sandbox_id):
        self.mark(sandbox_id)

    def knows_groups(self):
        return bool(self.ids)

    def mark(self, sandbox_id):
        handle = self.handle(sandbox_id)
        if handle not in self.ids:
            self.containers()
        return self.ids.get(handle, handle)

    def cgroups(self):
        self.containers()
        ours = set(self.ids.values())
        parents = [Path(mount, parent) for mount in cgroup_mounts().values() for parent in PARENTS]
        return {str(parent / name) for parent in parents if parent.is_dir() for name in os.listdir(parent) if container_of(name) in ours}

    def is_own_group(self, path):
        ours = set(self.ids.values())
        return any(container_of(part) in ours for part in path.split("/"))

    def processes(self):
        self.containers()
        return super().processes()

    def running_handles(self):
        living = {container_of(Path(path).name) for path in self.cgroups() if has_processes(path)}
        return {handle for handle, container in self.ids.items() if container in living}

    def first_pid(self, identity):
        return self.engine.get(f"/containers/{identity}/json")["State"]["Pid"]

    def frozen(self, sandbox_id):
        container = self.mark(sandbox_id)
        groups = [Path(path) for path in self.cgroups() if container in path]
        assert groups, f"no control group of container {container}"
        # Version 1 has a controller for it; what version 2 says beside that is never true.
        states = [group / "freezer.state" for group in groups if (group / "freezer.state").exists()]
        if not states:
            return "frozen 1" in (groups[0] / "cgroup.events").read_text()
        return states[0].read_text().strip() == "FROZEN"

    def socket(self, sandbox_id, kind):
        return str(Path(self.state_dir, "db/docker", self.handle(sandbox_id), kind))

    def engine_holds(self):
        return {f"container of {handle}" for handle in self.containers()}

    def reap(self):
        """Containers are the engine's to end."""
        if left := self.containers():
            self.engine.docker("rm", "-f", *left.values(), check=False)
        super().reap()


def fingerprint(identity):
    """What others may know of it: labels are readable for everybody who may ask the engine."""
    return hashlib.sha256(f"identity {identity}".encode()).hexdigest()[:32]


def container_of(group):
    return group.removeprefix("docker-").removesuffix(".scope")


def has_processes(path):
    try:
        return bool(Path(path, "cgroup.procs").read_text().strip())
    except OSError:
        return False
