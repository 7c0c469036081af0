"""What the egress process adds to a connection, beside nginx's `stream` that relays to the same server.

Two network namespaces of their own, joined by a pair of devices: in the first one the service, nginx and its clients; in the second
one the server, at a public address. The clients of the egress process are in the network of a sandbox, which leads nowhere else; those of
nginx connect to it over the loopback device. Both relays then connect to the server over the same pair of devices.
"""

import ctypes
import json
import os
import shutil
import subprocess
import tempfile

from . import BenchError
from .nginx import program, wait_for
from .processes import Load
from .service import Service

CLONE_NEWNET = 0x40000000
HOST, SERVER = "1.2.3.1", "1.2.3.10"
GREETING, STREAM = 8001, 8002
MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"
CONFIG = """
load_module {module};
user root;
worker_processes 1;
daemon off;
master_process off;
pid {directory}/stream.pid;
error_log {directory}/stream.log crit;
events {{ worker_connections 4096; }}
stream {{
  server {{ listen 127.0.0.1:{greeting}; proxy_pass {server}:{greeting}; }}
  server {{ listen 127.0.0.1:{stream}; proxy_pass {server}:{stream}; }}
}}
"""
_libc = ctypes.CDLL(None, use_errno=True)


def _ip(*words, inside=None):
    enter = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
    done = subprocess.run([*enter, "ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Relay:
    """Until close() the calling thread, and what it starts, is in the namespace of the host."""

    def __init__(self, results, bin_dir, parent, size):
        self._results, self._program, self._size = results, os.path.join(bin_dir, "bench-load"), size
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._directory = tempfile.mkdtemp(prefix="osb-bench-relay-", dir=parent)
        self._processes, self._load, self._service = [], None, None
        if not os.path.exists(MODULE):
            self.close()
            raise BenchError("nginx has no stream module (libnginx-mod-stream)")
        if _libc.unshare(CLONE_NEWNET) < 0:
            raise BenchError(f"unshare: {os.strerror(ctypes.get_errno())}")
        try:
            self._join()
            self._start_nginx()
            self._load = Load(self._program)
            self._service = Service(self._load, bin_dir, parent)
            self._service.start()
            self._service.connect()
            self._sandbox = self._load.ask("create")[1]
            self._inside = self._service.sandbox_pids()[0]
        except BaseException:
            self.close()
            raise

    def _join(self):
        server = subprocess.Popen(["unshare", "--net", self._program, "relay-server", str(GREETING), str(STREAM), str(self._size)],
                                  stdout=subprocess.PIPE, text=True)
        self._processes.append(server)
        if server.stdout.readline() != "ready\n":
            raise BenchError("the server behind the relays did not start")
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "up0", "type", "veth", "peer", "name", "net0", "netns", str(server.pid))
        _ip("addr", "add", f"{HOST}/24", "dev", "up0")
        _ip("link", "set", "up0", "up")
        _ip("addr", "add", f"{SERVER}/24", "dev", "net0", inside=server.pid)
        _ip("link", "set", "net0", "up", inside=server.pid)
        _ip("route", "add", "default", "via", SERVER)

    def _start_nginx(self):
        config = os.path.join(self._directory, "stream.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(module=MODULE, directory=self._directory, greeting=GREETING, stream=STREAM, server=SERVER))
        nginx = subprocess.Popen([program(), "-p", self._directory, "-c", config], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._processes.append(nginx)
        wait_for([nginx], [os.path.join(self._directory, "stream.pid")])

    def _ask(self, inside, verb, address, port, count):
        enter = ["nsenter", f"--net=/proc/{self._inside}/ns/net"] if inside else []
        done = subprocess.run([*enter, self._program, verb, address, str(port), str(count)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"{verb} {'through the egress process' if inside else 'through nginx'}: {done.stderr.strip()}")
        return json.loads(done.stdout)["us"]

    def connections(self, count, turns):
        """In turns, so that whatever else the machine does falls on both."""
        ours, theirs = [], []
        for _ in range(turns):
            theirs += self._ask(False, "relay", "127.0.0.1", GREETING, count // turns)
            ours += self._ask(True, "relay", SERVER, GREETING, count // turns)
        self._results.add_round("relay.first_byte", ours)
        self._results.add_round("nginx.first_byte", theirs)

    def stream(self, turns):
        ours, theirs = [], []
        for _ in range(turns):
            theirs.append(self._size / self._ask(False, "relay-stream", "127.0.0.1", STREAM, self._size) * 1e6)
            ours.append(self._size / self._ask(True, "relay-stream", SERVER, STREAM, self._size) * 1e6)
        self._results.add_round("relay.stream", ours)
        self._results.add_round("nginx.relay", theirs)

    def close(self):
        if self._service is not None and self._service.pid is not None:
            self._service.delete_all()
        if self._service is not None:
            self._service.remove()
        if self._load is not None:
            self._load.close()
        for process in self._processes:
            process.kill()
            process.wait()
        _libc.setns(self._home, CLONE_NEWNET)
        os.close(self._home)
        shutil.rmtree(self._directory, ignore_errors=True)
