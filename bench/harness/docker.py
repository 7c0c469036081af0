"""Sandboxes as containers, beside the same container made with the engine's own API, and beside a native sandbox.

The engine is that of the tests (tests/lib/docker_engine.py), in namespaces of its own.
"""

import http.client
import json
import os
import socket
import sys
import time

from . import BenchError
from .service import Service

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests"))

from lib.docker_engine import IMAGE, Dockerd, make_programs  # noqa: E402

IDLE = 20


class EngineConnection(http.client.HTTPConnection):
    """The engine's API over its socket, one connection for all calls."""

    def __init__(self, path):
        super().__init__("docker", timeout=60)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)

    def ask(self, method, path, body=None):
        self.request(method, "/v1.41" + path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"} if body is not None else {})
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise BenchError(f"{method} {path}: {answer.status} {text[:200].decode(errors='replace')}")
        return json.loads(text) if text else None

    def first_byte(self, path, body):
        """Until something came on the stream of an exec. The connection is spent."""
        self.request("POST", "/v1.41" + path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.getresponse()
        if answer.status != 200 or not answer.read(1):
            raise BenchError(f"POST {path}: {answer.status}")
        self.close()


class Docker:
    def __init__(self, results, load, floor, native, bin_dir, directory):
        self._results, self._load, self._floor, self._native = results, load, floor, native
        if why := make_programs():
            raise BenchError(f"no Docker engine: {why}")
        self._engine = Dockerd()
        try:
            self._engine.start().import_images()
            self._engine.docker("tag", IMAGE, "host")
            more = f'[docker]\nsocket = "{self._engine.socket}"\n[registry]\npull_policy = "never"\n'
            self._service = Service(load, bin_dir, directory, more, runtime="docker")
        except BaseException as error:
            self._engine.destroy()
            if isinstance(error, AssertionError):
                raise BenchError(f"the Docker engine does not start: {error}") from error
            raise

    def start(self):
        self._service.start()
        self._service.connect()

    def _bare(self):
        """Create, start, and the first output of an exec, with nothing of ours; and again without it."""
        connection = EngineConnection(str(self._engine.socket))
        connection.ask("GET", "/version")  # connects
        began = time.perf_counter()
        made = connection.ask("POST", "/containers/create", {"Image": "host", "Cmd": ["tail", "-f", "/dev/null"]})["Id"]
        connection.ask("POST", f"/containers/{made}/start")
        command = {"Cmd": ["sh", "-c", "echo x"], "AttachStdout": True}
        run = connection.ask("POST", f"/containers/{made}/exec", command)["Id"]
        connection.first_byte(f"/exec/{run}/start", {"Detach": False, "Tty": False})
        took = (time.perf_counter() - began) * 1e6
        connection.ask("DELETE", f"/containers/{made}?force=1")
        connection.close()
        return took

    def latency(self, samples):
        s = {name: [] for name in ("engine.first_output", "container.first_output", "container.command", "container.f2")}
        self._service.point()
        sandbox = self._load.ask("create")[1]
        for _ in range(samples):
            s["engine.first_output"].append(self._bare())
            self._service.point()
            s["container.first_output"].append(self._load.ask("first")[0])
            for _ in range(5):
                s["container.f2"].append(self._floor.sample("f2"))
                s["container.command"].append(self._load.ask("run", sandbox, "true")[0])
        self._load.ask("delete", sandbox)
        for name, values in s.items():
            self._results.add_round(name, values)

    def claims(self, samples):
        """Claims of containers that wait, to their first output, beside a command in a native sandbox."""
        claimed, beside = [], []
        capacity = {"bufferMin": 2, "bufferMax": 2, "poolMin": 0, "poolMax": 100}
        self._service.call("POST", "/v1/pools", {"name": "bench", "template": {"image": {"uri": "host"}}, "capacitySpec": capacity})
        try:
            self._native.point()
            other = self._load.ask("create")[1]
            for _ in range(samples):
                end = time.monotonic() + 30
                while self._service.call("GET", "/v1/pools/bench")["status"]["available"] < 2:
                    if time.monotonic() > end:
                        raise BenchError("the pool is not filled")
                    time.sleep(0.01)
                time.sleep(0.2)  # the engine is still busy with what it has made
                self._native.point()
                beside.append(self._load.ask("run", other, "true")[0])
                self._service.point()
                claimed.append(self._load.ask("claim", "bench")[0])
            self._native.point()
            self._load.ask("delete", other)
        finally:
            self._service.call("DELETE", "/v1/pools/bench")
        self._results.add_round("container.claim", claimed)
        self._results.add_round("container.native_command", beside)

    def idle(self):
        """What the service has in memory while it looks after so many containers."""
        self._service.point()
        made = [self._load.ask("create")[1] for _ in range(IDLE)]
        time.sleep(1)
        self._results.add_round("container.memory", [self._service.memory()[1]])
        for sandbox in made:
            self._load.ask("delete", sandbox)

    def close(self):
        try:
            if self._service.pid is not None:
                self._service.delete_all()
        finally:
            self._service.remove()
            self._engine.destroy()
            self._native.point()
