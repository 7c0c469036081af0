"""Docker's commit and pull, to be looked at beside our snapshots and pulls: peers, nothing is promised against them.

The engine is one of our own, with everything that it keeps below one directory and a mount namespace of its own. It is told to
leave the host's networks and firewall alone, so that it pulls from the same registry on loopback as we do.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import BenchError
from .peers import small_image

PROGRAMS = ("dockerd", "docker", "unshare")
START_SECONDS = 30
FILES = 100


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class DockerStorage:
    def __init__(self, load, parent):
        missing = [name for name in PROGRAMS if not shutil.which(name)]
        if missing:
            raise BenchError(f"not installed: {', '.join(missing)}")
        self._load = load
        self._directory = tempfile.mkdtemp(prefix="osb-bench-docker-", dir=parent)
        self._socket = os.path.join(self._directory, "sock")
        self._process = None
        try:
            self._start()
            self._import()
        except BaseException:
            self.close()
            raise

    def _start(self):
        command = ["unshare", "-m", "--propagation", "private", "dockerd", "--data-root", f"{self._directory}/data",
                   "--exec-root", f"{self._directory}/exec", "--pidfile", f"{self._directory}/pid", "-H", f"unix://{self._socket}",
                   "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
        with open(os.path.join(self._directory, "log"), "wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self._call("GET", "/_ping")
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    with open(os.path.join(self._directory, "log"), encoding="utf-8", errors="replace") as log:
                        raise BenchError(f"dockerd does not answer: {' '.join(log.read().split())[-300:]}") from None
                time.sleep(0.05)

    def _call(self, method, path, body=None):
        connection = _OverSocket(self._socket)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"} if body is not None else {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise BenchError(f"dockerd: {method} {path}: {answer.status} {text[:300].decode(errors='replace')}")
        return json.loads(text) if text.startswith((b"{", b"[")) else None

    def _docker(self, *words, **more):
        done = subprocess.run(["docker", "-H", f"unix://{self._socket}", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, check=False, **more)
        if done.returncode != 0:
            raise BenchError(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode().strip()

    def _import(self):
        self._docker("import", "-", "bench:small", input=small_image())

    def commits(self, results, size, megabytes, samples):
        """Commits of containers that have as many megabytes in as many files as the sandboxes of the snapshots."""
        files = os.path.join(self._directory, "files")
        os.mkdir(files)
        took = []
        try:
            for number in range(FILES):
                with open(os.path.join(files, f"f{number}"), "wb") as file:
                    file.write(os.urandom((megabytes << 20) // FILES))
            for _ in range(samples):
                container = self._docker("run", "-d", "--network", "none", "bench:small", "/usr/bin/sleep", "infinity")
                try:
                    self._docker("cp", files, f"{container}:/d")
                    os.sync()
                    began = time.perf_counter()
                    image = self._call("POST", f"/commit?container={container}", {})["Id"]
                    took.append((time.perf_counter() - began) * 1e6)
                    self._docker("rmi", image)
                finally:
                    self._docker("rm", "-f", container)
        finally:
            shutil.rmtree(files, ignore_errors=True)
        results.add_round(f"docker.commit.{size}", took)

    def pull(self, results, name):
        took = self._load.program_time("exit", ["docker", "-H", f"unix://{self._socket}", "pull", "-q", name])
        self._docker("rmi", name)
        results.add_round("docker.pull.200m", [took])

    def close(self):
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        shutil.rmtree(self._directory, ignore_errors=True)
