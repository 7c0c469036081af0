"""A service under test: its own configuration, port, state directory and log, started as root in the foreground.

The process we start becomes the launcher; the server is its child. Sandboxes outlive both, so destroy() ends what is left.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from . import rawhttp
from .images import Images
from .scope import Scope, cgroup_mounts, command_line, kill_exactly
from .waiting import process_gone, process_stat, wait_for

# On a real disk: overlay uppers and fsync behave differently on tmpfs.
STATE_PARENT = Path("/var/tmp")

# The exit status of a service that cannot start before somebody changes something.
CANNOT_START = 78

# Every service that is not destroyed yet; the failure report quotes their logs.
ALIVE = []


class Service:
    # What tests have to know of the runtime: how long a create may take when eight are made at once, how many a test makes in a row,
    # whether disks have limits, what shows the limit of memory inside, and how an image comes here.
    create_seconds = 0.04
    most_in_a_row = 1000
    limits_disks = True
    bring_image = "osb images import"
    maps_users = True  # no two sandboxes have ids in common
    follows_links_within = False  # links to directories of the host that may be named themselves
    open_network = {}  # of a create: what it takes to reach the internet through the egress process
    memory_limit_command = "awk '/MemTotal/ { print $2 * 1024 }' /proc/meminfo"

    def __init__(self, bin_dir, *, api_key="", server=None, native=None, images=None, aliases=None, proxy=None, renew=None, registry=None, mirrors=None, env=None, directory=None, sections=None):
        self.bin_dir = Path(bin_dir).resolve()
        # One that exists already has the state of an earlier service, perhaps from before the host was booted.
        self.directory = Path(directory or tempfile.mkdtemp(prefix="osb-test-", dir=STATE_PARENT))
        self.directory.chmod(0o755)  # the server is not root and has to reach its state below
        self.state_dir = self.directory / "state"
        self.config_path = self.directory / "config.toml"
        self.log_path = self.directory / "service.log"
        self.address = ("127.0.0.1", free_port())
        self.api_key = api_key
        self.env = dict(env or {})
        self.process = None
        self.scope = Scope(self.state_dir)
        sections = {
            "server": {"host": self.address[0], "port": self.address[1], **({"api_key": api_key} if api_key else {}), **(server or {})},
            "runtime": {"type": "native"},
            "native": {"state_dir": str(self.state_dir), **(native or {})},
            "native.images": images or {},
            "native.image_aliases": aliases or {},
            "proxy": proxy or {},
            **({"renew_intent": renew} if renew else {}),
            **(sections or {}),
        }
        # No test asks a registry of the internet by accident.
        if knows_registries(self.bin_dir):
            sections |= {"registry": {"pull_policy": "never"} if registry is None else registry, "registry.mirrors": mirrors or {}}
        self.config_path.write_text(to_toml(sections), encoding="utf-8")
        ALIVE.append(self)

    # Start and stop

    def spawn(self, held=False):
        """Starts the service without waiting for it. One that is held becomes the service when let_go() says so."""
        assert self.process is None or self.process.poll() is not None, "the service runs already"
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.directory),
            **self.env,
        }
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", 'read -r go; exec "$@" </dev/null', "sh", *self.command()] if held else self.command(),
                stdin=subprocess.PIPE if held else subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.directory,
            )  # fmt: skip
        self.scope.launcher = self.process

    def let_go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()

    def command(self):
        """What starts the service; the process keeps its pid through every exec on the way."""
        return [self.bin_dir / "opensandbox-server", "--config", self.config_path]

    def start(self, timeout=15):
        self.spawn()
        self.wait_healthy(timeout)
        return self

    def wait_healthy(self, timeout=15):
        def answers():
            code = self.process.poll()
            if code is not None:
                raise RuntimeError(f"the service ended with {code} instead of answering:\n{self.log_tail()}")
            return self.is_healthy()

        wait_for(answers, timeout, "GET /health answers 200", interval=0.005)

    def is_healthy(self):
        try:
            return rawhttp.request(self.address, "GET", "/health", timeout=5).status == 200
        except (OSError, rawhttp.Closed):
            return False

    def stop(self, timeout=15):
        """SIGTERM: launcher and server end, sandboxes live on. Returns the exit status."""
        server = self.server_pid(required=False)
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout)
        if server:
            wait_for(lambda: process_gone(server), timeout, "the server ends together with the launcher")
        return status

    def ends(self, timeout=15):
        """Starts one that has to end by itself; the exit status."""
        self.spawn()
        try:
            return self.process.wait(timeout)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def restart(self):
        self.stop()
        return self.start()

    # Processes

    @property
    def launcher_pid(self):
        return self.process.pid

    def server_pid(self, required=True):
        """The process that answers HTTP: the launcher's child with `server` in its command line."""
        for pid in child_pids(self.process.pid):
            stat = process_stat(pid)
            if b"server" in command_line(pid)[1:3] and stat and stat["state"] not in "ZX":
                return pid
        assert not required, f"no server process below launcher {self.process.pid}; log:\n{self.log_tail()}"
        return None

    def kill_server(self, timeout=15):
        """kill -9 of the server only, and waits until the launcher has started another one that answers."""
        old = self.server_pid()
        os.kill(old, signal.SIGKILL)
        wait_for(lambda: (self.server_pid(required=False) or old) != old, timeout, "the launcher starts a new server")
        self.wait_healthy(timeout)

    def kill_launcher(self, timeout=15):
        """kill -9 of the launcher; the server has to notice and end by itself."""
        server = self.server_pid()
        self.process.kill()
        self.process.wait(timeout)
        wait_for(lambda: process_gone(server), timeout, "the server ends when its launcher is gone")

    def kill_both(self, timeout=15):
        """kill -9 of both, in the same instant as far as a test can."""
        server = self.server_pid()
        os.kill(server, signal.SIGKILL)
        self.process.kill()
        self.process.wait(timeout)
        wait_for(lambda: process_gone(server), timeout, "the killed server is gone")

    def server_memory_bytes(self):
        for line in Path(f"/proc/{self.server_pid()}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS for the server")

    def show_mount(self, path):
        """What was mounted there is seen by everybody who makes sandboxes."""

    def hide_mount(self, path):
        pass

    def images(self):
        """`osb images` for its store."""
        return Images(self.bin_dir, self.config_path, self.state_dir)

    # The end

    def log_size(self):
        return self.log_path.stat().st_size if self.log_path.exists() else 0

    def log_tail(self, lines=60, since=0):
        try:
            return "\n".join(self.log_path.read_bytes()[since:].decode(errors="replace").splitlines()[-lines:])
        except OSError:
            return "(no log)"

    def destroy(self):
        """Ends the service and everything of it, gently where possible. For tear-down: it never fails a test."""
        if self in ALIVE:
            ALIVE.remove(self)
        if self.process is not None and self.process.poll() is None:
            server = self.server_pid(required=False)
            stat = process_stat(server) if server else None
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
            if stat:
                kill_exactly(server, stat["start_time"])  # it ends with its launcher; this is for a broken one
        self.scope.reap()
        remove_claims(self.state_dir)
        shutil.rmtree(self.directory, ignore_errors=True)


@lru_cache
def knows_registries(bin_dir):
    """Executables of an earlier version refuse what they do not know in a configuration."""
    return b"registry.mirrors" in (bin_dir / "opensandbox-server").read_bytes()


def remove_claims(state_dir):
    """The blocks of user ids that a service keeps for sandboxes which outlive it."""
    try:
        owner = Path(state_dir, "identity").read_text().split()[0]
    except (OSError, IndexError):
        return
    for group in Path(cgroup_mounts().get("", "/nowhere")).glob("opensandbox-ids-*"):
        try:
            if os.getxattr(group, "trusted.opensandbox.owner").decode().startswith(owner):
                group.rmdir()
        except OSError:
            continue


def toml_value(value):
    # A JSON text of a string, number, boolean or list of these is also a TOML value; tables are written otherwise.
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def to_toml(sections):
    lines = []
    for name, values in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{json.dumps(key)} = {toml_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def free_port():
    # Below the ephemeral range, so that no outgoing connection takes it while the service is down.
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def child_pids(parent):
    try:
        tasks = os.listdir(f"/proc/{parent}/task")
    except OSError:
        return []
    pids = []
    for task in tasks:
        try:
            pids += [int(pid) for pid in Path(f"/proc/{parent}/task/{task}/children").read_text().split()]
        except OSError:
            continue
    return pids
