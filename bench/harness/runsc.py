"""Sandboxes under runsc, beside `runsc run` of a bundle like theirs by hand: the same runsc, platform, flags and files."""

import json
import os
import shutil
import subprocess
import tempfile

from .service import Service

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHELL = "/bin/bash"  # as execd runs commands where there is one
FLAGS = ["--network=host", "--ignore-cgroups", "--overlay2=none"]


def find():
    """What OSB_RUNSC names, or what scripts/runsc has unpacked; None without either."""
    unpacked = os.path.join(ROOT, "build/environments/runsc/usr/bin/runsc")
    given = os.environ.get("OSB_RUNSC") or unpacked
    return given if os.access(given, os.X_OK) else None


class Bundle:
    """The host's /usr and a program that says something, as an OCI bundle."""

    def __init__(self, runsc, parent):
        self.runsc = runsc
        self.directory = tempfile.mkdtemp(prefix="osb-runsc-", dir=parent)
        root = os.path.join(self.directory, "rootfs")
        for name in ("usr", "etc", "proc", "sys", "dev", "tmp"):
            os.makedirs(os.path.join(root, name))
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(root, name))
        self.runs = 0
        self.platform = "systrap" if self._works("systrap") else "ptrace"

    def _works(self, platform):
        self.platform = platform
        return subprocess.run(self.argv(), capture_output=True, check=False, timeout=60).stdout == b"x\n"

    def argv(self):
        self.runs += 1
        mounts = [("/proc", "proc", "proc", []), ("/sys", "sysfs", "sysfs", ["ro"]), ("/dev", "tmpfs", "tmpfs", []), ("/usr", "bind", "/usr", ["rbind", "ro"])]
        config = {
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs"},
            "process": {"user": {"uid": 0, "gid": 0}, "args": [SHELL, "-c", "echo x"], "env": ["PATH=/usr/bin:/bin"], "cwd": "/"},
            "mounts": [{"destination": to, "type": kind, "source": source, "options": options} for to, kind, source, options in mounts],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
        }
        with open(os.path.join(self.directory, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return ["unshare", "-m", "-p", "-n", "-f", "--mount-proc", self.runsc, f"--root={self.directory}/state", f"--platform={self.platform}", *FLAGS,
                "run", f"--bundle={self.directory}", f"bench-{os.getpid()}-{self.runs}"]  # fmt: skip

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def creates(measurement, bin_dir, parent, rounds, samples):
    runsc = find()
    load, results = measurement.load, measurement.results
    if runsc is None:
        results.left_out["runsc.first_output"] = "no runsc here: scripts/runsc unpacks one"
        return
    bundle = Bundle(runsc, parent)
    service = Service(load, bin_dir, parent, more=f'[secure_runtime]\ntype = "gvisor"\nrunsc = "{runsc}"\nplatform = "{bundle.platform}"\n')
    try:
        service.start()
        service.connect()
        for _ in range(rounds):
            taken = {"runsc.first_output": [], "runsc.run": []}
            for _ in range(max(4, samples // 5)):
                taken["runsc.run"].append(load.program_time("first", bundle.argv()))
                taken["runsc.first_output"].append(load.ask("first")[0])
            for name, values in taken.items():
                results.add_round(name, values)
    finally:
        measurement.service.point()
        service.remove()
        bundle.remove()
