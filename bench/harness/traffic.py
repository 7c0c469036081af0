"""What requests cost the server, in its own processor time, beside nginx with one worker that answers or relays the same."""

import glob
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
import uuid

from . import BenchError
from .nginx import OneNginx
from .service import Service

CLIENTS = 16
LARGE = "/openapi.json"  # about as long as a page of 200
STATES = ["Running", "Paused", "Failed", "Pending", "Stopping", "Pausing"]
ROWS = 1000
GROUPS = 5  # of the rows: a filter finds a fifth, a full page


def processor_seconds(pids):
    """What these processes have used so far, all their threads."""
    total = 0
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            try:
                with open(path, encoding="ascii") as file:
                    total += int(file.read().split()[0])
            except OSError:
                continue
    return total / 1e9


class Traffic:
    def __init__(self, results, load, bin_dir, directory, seconds=1.0):
        self.results = results
        self.load = load
        self.bin_dir = bin_dir
        self.parent = directory
        self.seconds = seconds
        self.directory = tempfile.mkdtemp(prefix="osb-bench-traffic-", dir=directory)
        os.chmod(self.directory, 0o755)
        self._servers = {}

    def close(self):
        for server in self._servers.values():
            server.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _nginx(self, name, locations, before=""):
        if name not in self._servers:
            self._servers[name] = OneNginx(self.directory, name, locations, before)
        return self._servers[name]

    def _cost(self, port, pids, paths, length):
        """Microseconds of processor time per request."""
        before = processor_seconds(pids)
        done = subprocess.run([self.load.program, "requests", str(port), *paths, "--clients", str(CLIENTS), "--seconds", str(self.seconds)],
                              stdout=subprocess.PIPE, text=True, check=False)
        used = processor_seconds(pids) - before
        result = json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}
        if not result.get("requests"):
            raise BenchError(f"requests of {paths[0]} failed")
        if length is not None and result["body_bytes"] != length:
            raise BenchError(f"{result['body_bytes']} bytes of {paths[0]} and not {length}")
        return used / result["requests"] * 1e6

    # Looks

    def rows(self):
        """A service with 1,000 sandboxes that have ended: one real one, and 999 more rows like its own in the service's database."""
        service = Service(self.load, self.bin_dir, self.parent)
        self._servers["rows"] = Closing(service.remove)
        service.start()
        made = service.call("POST", "/v1/sandboxes", {"image": {"uri": "host"}, "entrypoint": ["true"], "resourceLimits": {}, "timeout": 3600,
                                                      "metadata": {"a": "0", "b": "0"}})["id"]
        end = time.monotonic() + 10
        while service.call("GET", f"/v1/sandboxes/{made}")["status"]["state"] != "Terminated":
            if time.monotonic() > end:
                raise BenchError("a sandbox whose program ends does not end")
            time.sleep(0.02)
        service.stop()
        with sqlite3.connect(f"{service.directory}/state/db/opensandbox.db") as database:
            database.row_factory = sqlite3.Row
            row = dict(database.execute("SELECT * FROM sandboxes WHERE id = ?", (made,)).fetchone())
            for number in range(1, ROWS):
                more = {**row, "id": f"{made[:-12]}{number:012x}", "handle": str(uuid.uuid4()),
                        "metadata": json.dumps({"a": str(number % GROUPS), "b": str(number // GROUPS % GROUPS)})}
                database.execute(f"INSERT INTO sandboxes ({','.join(more)}) VALUES ({','.join('?' * len(more))})", list(more.values()))
        database.close()
        service.start()
        self.service = service
        self.one = f"/v1/sandboxes/{made}"
        self.other = f"/v1/sandboxes/{made[:-12]}{GROUPS:012x}"  # of the first page, too
        # More pages than the server keeps ready: asked for in turn, each is looked up and printed anew.
        self.pages = [f"/v1/sandboxes?pageSize=200&metadata={key}%3D{value}" for key in "ab" for value in range(GROUPS)]

    def looks(self, rounds):
        self.rows()
        for _ in range(rounds):
            self.looked()

    def looked(self):
        one, page = self.service.text("GET", self.one), self.service.text("GET", self.pages[0])
        if len(json.loads(page)["items"]) != ROWS // GROUPS:
            raise BenchError("a filter does not find what it should")
        with open(os.path.join(self.directory, "page"), "w", encoding="utf-8") as file:
            file.write(page)
        quoted = one.replace("\\", "\\\\").replace("'", "\\'")
        peer = self._nginx("looks", f"default_type application/json; root {self.directory}; sendfile on; open_file_cache max=8; "
                                    f"location = /one {{ return 200 '{quoted}'; }}")
        own = self.service.family()
        self._pair("get.1000", self._cost(self.service.port, own, [self.one], len(one)),
                   "nginx.get", self._cost(peer.port, [peer.pid], ["/one"], len(one)), rate=True)
        theirs = self._cost(peer.port, [peer.pid], ["/page"], len(page))
        self._pair("list.200", self._cost(self.service.port, own, self.pages[:1], len(page)), "nginx.list", theirs)
        self.results.add_round("list.200_anew", [self._cost(self.service.port, own, self.pages, None)])
        self.results.add_round("list.200.changed", [self._page_after_change(own) for _ in range(3)])

    def _page_after_change(self, own):
        """The same page when a sandbox in it has changed since the last one. A change costs more than a page, and differs by as much
        from one second to the next: so six pages share one, all with those rows and each by a name of its own, because a page
        that is not asked for again is not kept. Less the same with an answer of that size which no change touches."""
        change = f"PATCH:{self.other}/metadata"
        pages = [f"{self.pages[0]}&state=Terminated&state={other}" for other in STATES]
        ready = self._cost(self.service.port, own, [LARGE], None)
        beside = self._cost(self.service.port, own, [change, *[LARGE] * len(pages)], None)
        both = self._cost(self.service.port, own, [change, *pages], None)
        self.service.text("PATCH", f"{self.other}/metadata", {"turn": None})  # as it was
        return (both - beside) * (len(pages) + 1) / len(pages) + ready

    # The proxy

    def proxied(self, service, sandbox, socket, size):
        """Small requests to a sandbox's execd, and a download from it, through the server and through nginx."""
        peer = self._nginx("proxy", "location / { proxy_pass http://execd; proxy_http_version 1.1; proxy_set_header Connection ''; "
                                    "proxy_max_temp_file_size 0; }", f"upstream execd {{ server unix:{socket}; keepalive 32; }}")
        base = f"{service.prefix}{sandbox}{service.suffix}"
        own = service.family()
        ours, theirs = [], []
        for _ in range(3):
            theirs.append(self._cost(peer.port, [peer.pid], ["/ping"], 0))
            ours.append(self._cost(service.port, own, [base + "/ping"], 0))
        self.results.add_round("proxy.request", ours)
        self.results.add_round("nginx.proxy", theirs)
        path = "/files/download?path=/tmp/bench-stream"
        ours, theirs = [], []
        for _ in range(3):
            theirs.append(size / self.load.ask("download", peer.port, path, size)[0] * 1e6)
            ours.append(size / self.load.ask("download", service.port, base + path, size)[0] * 1e6)
        self.results.add_round("proxy.stream", ours)
        self.results.add_round("nginx.stream", theirs)

    def proxy(self, service, size, rounds):
        """One sandbox of its own, whose execd nginx reaches by the socket that the server uses."""
        sockets = set(glob.glob(f"{service.directory}/state/run/*.api"))
        sandbox = self.load.ask("create")[1]
        try:
            made = set(glob.glob(f"{service.directory}/state/run/*.api")) - sockets
            if len(made) != 1:
                raise BenchError(f"{len(made)} sockets came with a sandbox")
            self.load.ask("upload", sandbox, "/tmp/bench-stream", size)
            for _ in range(rounds):
                self.proxied(service, sandbox, next(iter(made)), size)
        finally:
            self.load.ask("delete", sandbox)

    def _pair(self, name, ours, reference, theirs, rate=False):
        for key, value in ((name, ours), (reference, theirs)):
            self.results.add_round(key, [1e6 / value if rate else value])


class Closing:
    def __init__(self, close):
        self.close = close
