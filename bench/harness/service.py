"""A service of our own for the measurement: fresh state directory, ephemeral port, nothing shared with a running one."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile

from . import BenchError

SAMPLE_ID = "00000000-0000-7000-8000-000000000000"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def kibibytes(path, name):
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    raise BenchError(f"{path} has no {name}")


class Service:
    def __init__(self, load, bin_dir, parent, more="", runtime="native"):
        self._load = load
        self._program = os.path.join(bin_dir, "opensandbox-server")
        self._parent = parent
        self._more = more  # of the configuration
        self._runtime = runtime
        self.pid = None
        self.directory = None

    def start(self):
        """Returns microseconds until GET /health answered 200. The state directory is empty the first time."""
        if self.directory is None:
            # Not 0700: the server that works in it is not root.
            self.directory = tempfile.mkdtemp(prefix="osb-bench-", dir=self._parent)
            os.chmod(self.directory, 0o755)
        self.port = free_port()
        config = os.path.join(self.directory, "config.toml")
        log = os.path.join(self.directory, "log")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[server]\nhost = "127.0.0.1"\nport = {self.port}\n'
                       f'[runtime]\ntype = "{self._runtime}"\n'
                       f'[native]\nstate_dir = "{self.directory}/state"\n{self._more}')
        try:
            took, pid = self._load.ask("start", self.port, "/health", log, self._program, "--config", config)
        except BenchError as error:
            with open(log, encoding="utf-8", errors="replace") as file:
                raise BenchError(f"{error}\n{''.join(file.readlines()[-20:])}") from error
        self.pid = int(pid)
        return took

    def stop(self):
        if self.pid is not None:
            pid, self.pid = self.pid, None
            self._load.ask("stop", pid)

    def remove(self):
        """Stops it and removes what it left."""
        try:
            self.stop()
        finally:
            if self.directory is not None:
                shutil.rmtree(self.directory, ignore_errors=True)

    def call(self, method, path, body=None):
        text = self.text(method, path, body)
        return json.loads(text) if text else None

    def text(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": "application/json"} if body is not None else {})
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise BenchError(f"{method} {path}: {response.status} {text[:300].decode(errors='replace')}")
        return text.decode(errors="replace")

    def stream(self, path, body):
        """The whole text of an event stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def connect(self):
        """Points the client at the service; learns from a real sandbox how its endpoints look."""
        self.prefix, self.suffix = "/v1/sandboxes/", "/proxy/44772"
        self._load.ask("service", self.port, self.prefix, self.suffix)
        sandbox = self._load.ask("create")[1]
        endpoint = self.call("GET", f"/v1/sandboxes/{sandbox}/endpoints/44772")["endpoint"]
        path = "/" + endpoint.partition("/")[2]
        self.prefix, found, self.suffix = path.partition(sandbox)
        if not found:
            raise BenchError(f"the endpoint {endpoint} does not contain the sandbox's id")
        self.point()
        self._load.ask("ping", sandbox)
        self._load.ask("delete", sandbox)

    def point(self):
        """The client speaks to this service from now on."""
        self._load.ask("service", self.port, self.prefix, self.suffix)

    def programs(self):
        """Names of its processes on the host."""
        names = []
        for pid in self.family():
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                    names.append(file.read().strip())
            except OSError:
                continue
        return names

    def sustained(self, clients, seconds):
        done = subprocess.run([self._load.program, "sustained", str(self.port), self.prefix, self.suffix,
                               "--clients", str(clients), "--seconds", str(seconds)],
                              stdout=subprocess.PIPE, text=True, check=False)
        result = json.loads(done.stdout) if done.stdout else {}
        if done.returncode != 0 or result.get("failed", 1):
            raise BenchError(f"{result.get('failed', 'all')} of the requests of {clients} clients failed: "
                             f"{result.get('first_failure', 'see above')}")
        return result

    def delete_all(self):
        for _ in range(100):
            items = self.call("GET", "/v1/sandboxes?pageSize=200")["items"]
            if not items:
                return
            for item in items:
                self._load.ask("delete", item["id"])

    def family(self):
        """Process ids of the service on the host, sandboxes excluded."""
        return self._processes()[0]

    def sandbox_pids(self):
        """Process ids of what runs in sandboxes, the first process of each before others of it."""
        return sorted(self._processes()[1])

    def _processes(self):
        own = os.readlink("/proc/self/ns/pid")
        parents = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                        parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
                except OSError:
                    continue
        family = {self.pid}
        while True:
            more = {pid for pid, parent in parents.items() if parent in family} - family
            if not more:
                break
            family |= more
        found, inside = [], []
        for pid in family:
            try:
                (found if os.readlink(f"/proc/{pid}/ns/pid") == own else inside).append(pid)
            except OSError:
                continue
        return found, inside

    def memory(self):
        """(resident, proportional) bytes of all host processes of the service, sandboxes excluded."""
        resident = proportional = 0
        for pid in self.family():
            try:
                resident += kibibytes(f"/proc/{pid}/smaps_rollup", "Rss") * 1024
                proportional += kibibytes(f"/proc/{pid}/smaps_rollup", "Pss") * 1024
            except OSError:
                continue
        return resident, proportional
