"""What `osb run` costs beside the program it runs: with a server there, and on a machine that has none."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from . import BenchError
from .measure import settle_disk

PROGRAM = ["python3", "-c", "print(2+2)"]


class Client:
    """Without a server is in mounts and a network of its own: what is started for the occasion keeps its files in /var/lib, and must
    find nobody at the usual port."""

    def __init__(self, service, bin_dir, directory):
        self._osb = os.path.join(bin_dir, "osb")
        self._port = service.port
        self._directory = tempfile.mkdtemp(prefix="osb-bench-client-", dir=directory)
        os.chmod(self._directory, 0o755)
        script = f"mount --make-rprivate / && mount --bind {self._directory} /var/lib && ip link set lo up && echo && exec sleep infinity"
        self._holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", script], stdout=subprocess.PIPE)
        self._holder.stdout.readline()
        self._environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self._directory}

    def _inside(self, *words):
        """What enters is a part of what is measured: about a millisecond to our disadvantage."""
        return ["nsenter", "-t", str(self._holder.pid), "-m", "-n", self._osb, *words]

    def _time(self, words, env=None):
        began = time.monotonic()
        done = subprocess.run(words, env={**self._environment, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        took = (time.monotonic() - began) * 1e6
        if done.returncode != 0 or done.stdout != b"4\n":
            raise BenchError(f"{' '.join(words)}: {done.returncode} {done.stdout!r} {done.stderr.decode(errors='replace')[:600]}")
        return took

    def _stop(self):
        done = subprocess.run(self._inside("server", "stop"), env=self._environment, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise BenchError(f"osb server stop: {done.stderr.decode(errors='replace')[:300]}")

    def measure(self, results, samples):
        """One sample of each per turn."""
        if not os.path.exists(os.path.join(self._directory, "osb-occasion")):
            # The first time ever makes the state directory, which service.ready is about.
            self._time(self._inside("run", "host", "--", *PROGRAM))
            self._stop()
            settle_disk()
        there = {"OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{self._port}"}
        taken = {"run.python": [], "run.alone": [], "python.print": []}
        for turn in range(samples):
            taken["python.print"].append(self._time(PROGRAM))
            taken["run.python"].append(self._time([self._osb, "run", "host", "--", *PROGRAM], there))
            if turn % 4:
                continue
            taken["run.alone"].append(self._time(self._inside("run", "host", "--", *PROGRAM)))
            self._stop()
        for name, values in taken.items():
            results.add_round(name, values)

    def close(self):
        # After a failure the server for the occasion may still run; in what is left of its namespaces nobody would find it.
        with contextlib.suppress(BenchError, OSError, subprocess.SubprocessError):
            self._stop()
        self._holder.kill()
        self._holder.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
