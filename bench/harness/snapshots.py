"""Snapshots beside `cp -a` and `sync -f` of the same files, and what is made from them beside sandboxes made from an image.

All of it over HTTP, each call with the time of a plain client; what is compared takes turns.
"""

import os
import shutil
import subprocess
import time

from . import BenchError

BODY = {"image": {"uri": "host"}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": {}, "timeout": 600}
# Writes the longest time in which it did not run since the file was removed.
CLOCK = """
import os, time
last, longest = time.monotonic(), 0
while True:
    time.sleep(0.0005)
    now = time.monotonic()
    if now - last > longest or not os.path.exists('/dev/shm/longest'):
        longest = now - last
        open('/dev/shm/longest', 'w').write(str(int(longest * 1e6)))
    last = now
"""


def microseconds(action):
    began = time.perf_counter()
    value = action()
    return (time.perf_counter() - began) * 1e6, value


class Snapshots:
    def __init__(self, service, parent):
        self._service = service
        self._parent = parent

    def _run(self, sandbox, command):
        return self._service.text("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", {"command": command})

    def _create(self, **changes):
        body = {name: value for name, value in {**BODY, **changes}.items() if value is not None}
        return self._service.call("POST", "/v1/sandboxes", body)["id"]

    def _delete(self, sandbox):
        self._service.text("DELETE", f"/v1/sandboxes/{sandbox}")

    def _source(self, megabytes, entrypoint=None):
        sandbox = self._create(entrypoint=entrypoint or BODY["entrypoint"])
        files = 100
        self._run(sandbox, f"mkdir /root/d && cd /root/d && for i in $(seq {files}); do head -c {(megabytes << 20) // files} /dev/urandom > f$i; done")
        return sandbox

    def _upper(self, sandbox):
        """The one that has the files: names on the host say nothing about ids."""
        top = os.path.join(self._service.directory, "state/sandboxes")
        found = [os.path.join(top, name, "root.upper") for name in os.listdir(top)]
        found = [path for path in found if os.path.exists(os.path.join(path, "root/d/f1"))]
        if len(found) != 1:
            raise BenchError(f"{len(found)} sandboxes have the files of {sandbox}")
        return found[0]

    def _snapshot(self, sandbox):
        taken = self._service.call("POST", f"/v1/sandboxes/{sandbox}/snapshots")
        while taken["status"]["state"] == "Creating":
            time.sleep(0.0005)
            taken = self._service.call("GET", f"/v1/snapshots/{taken['id']}")
        if taken["status"]["state"] != "Ready":
            raise BenchError(taken["status"]["message"])
        return taken["id"]

    def _copy(self, upper, samples_of_copy, samples_of_all):
        target = os.path.join(self._parent, f"osb-bench-copy-{os.getpid()}")
        try:
            os.sync()
            copied, _ = microseconds(lambda: subprocess.run(["cp", "-a", upper, target], check=True))
            synced, _ = microseconds(lambda: subprocess.run(["sync", "-f", target], check=True))
        finally:
            shutil.rmtree(target, ignore_errors=True)
        samples_of_copy.append(copied)
        samples_of_all.append(copied + synced)

    def copies(self, results, size, megabytes, samples):
        """Snapshots of so many megabytes, and for how long the sandbox stood still."""
        copied, all_of_it, taken, frozen = [], [], [], []
        for _ in range(samples):
            sandbox = self._source(megabytes, ["python3", "-c", CLOCK])
            try:
                self._copy(self._upper(sandbox), copied, all_of_it)
                os.sync()
                self._run(sandbox, "rm -f /dev/shm/longest")
                took, snapshot = microseconds(lambda sandbox=sandbox: self._snapshot(sandbox))
                taken.append(took)
                frozen.append(float(self._service.text("GET", f"/v1/sandboxes/{sandbox}/proxy/44772/files/download?path=/dev/shm/longest")))
            finally:
                self._delete(sandbox)
            self._service.text("DELETE", f"/v1/snapshots/{snapshot}")
        results.add_round(f"cp.{size}", all_of_it)
        results.add_round(f"cp.{size}.copy", copied)
        results.add_round(f"snapshot.{size}", taken)
        results.add_round(f"snapshot.{size}.frozen", frozen)

    def sandboxes(self, results, samples):
        """Restores and forks of 10 MB beside creates."""
        source = self._source(10)
        snapshot = self._snapshot(source)
        cold, restored, sums, forked = [], [], [], []
        # By themselves: right after snapshots were made and removed the next restore takes half a millisecond more.
        for _ in range(2 * samples):
            took, made = microseconds(self._create)
            cold.append(took)
            self._delete(made)
            took, made = microseconds(lambda: self._create(image=None, snapshotId=snapshot))
            restored.append(took)
            self._delete(made)
        for _ in range(samples):
            took, made = microseconds(lambda: self._create(image=None, snapshotId=snapshot))
            self._delete(made)
            again, taken = microseconds(lambda: self._snapshot(source))
            sums.append(again + took)
            self._service.text("DELETE", f"/v1/snapshots/{taken}")
            took, answer = microseconds(lambda: self._service.call("POST", f"/v1/sandboxes/{source}/fork", {"count": 1}))
            forked.append(took)
            self._delete(answer["items"][0]["id"])
        results.add_round("create.cold", cold)
        results.add_round("restore", restored)
        results.add_round("snapshot.and_restore", sums)
        results.add_round("fork", forked)
        self._delete(source)
        self._service.text("DELETE", f"/v1/snapshots/{snapshot}")

    def many(self, results):
        """A hundred at once from one call, beside a hundred creates one after the other."""
        source = self._source(10)
        took, answer = microseconds(lambda: self._service.call("POST", f"/v1/sandboxes/{source}/fork", {"count": 100}))
        for one in answer["items"]:
            self._delete(one["id"])
        creates, made = microseconds(lambda: [self._create() for _ in range(100)])
        for one in [*made, source]:
            self._delete(one)
        results.add_round("fork.100", [took])
        results.add_round("create.100", [creates])
