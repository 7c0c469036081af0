"""An engine on another host: in a network and with files of its own, behind TLS, reached over a pair of devices. The service is in a
network of its own, too, and between the two is a way that can be cut, or closed after so many bytes."""

import select
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from . import dockerd
from .docker_engine import Dockerd
from .engine_network import network_of
from .engine_tls import Certificates
from .service import Service

# The service's address, where the way begins, and the engine's.
HERE, THERE, PORT = "10.213.0.1", "10.213.0.2", 2376


class Way:
    """Carries connections from HERE to the engine; TLS goes through it as it is."""

    def __init__(self):
        self.listener = socket.create_server((HERE, PORT), backlog=256)
        self.pairs = set()
        self.lock = threading.Lock()
        self.open = True
        self.most = None  # bytes of one connection towards the engine, after which nothing moves any more
        self.carried = 0  # of the connection that carried most, towards the engine
        # Sockets belong to the network of the thread that makes them, and threads inherit it.
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                near.close()
                continue
            try:
                far = socket.create_connection((THERE, PORT), 5)
            except OSError:
                near.close()
                continue
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.pairs.add((near, far))
            threading.Thread(target=self.carry, args=(near, far), daemon=True).start()

    def carry(self, near, far):
        moved, ways = 0, {near: far, far: near}
        try:
            while ways:
                for source in select.select(list(ways), [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        ways.pop(source).shutdown(socket.SHUT_WR)
                        continue
                    if source is near:
                        moved += len(data)
                        self.carried = max(self.carried, moved)
                        if self.most is not None and moved > self.most:
                            ways.pop(near)
                            continue
                    ways[source].sendall(data)
        except (OSError, ValueError, KeyError):
            pass
        finally:
            with self.lock:
                self.pairs.discard((near, far))
            near.close()
            far.close()

    def cut(self):
        """Every connection breaks, and no new one comes to be, until mend()."""
        self.open = False
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.open = True

    def close(self):
        self.cut()
        self.listener.close()


class Apart:
    """The engine, its certificates and the way to it; the test is in the service's network meanwhile."""

    def __init__(self, engine, certificates, way):
        self.engine, self.certificates, self.way = engine, certificates, way

    @contextmanager
    def service(self, bin_dir, docker=None, sections=None, **options):
        """One whose files the engine does not see."""
        host = {"host": f"tcp://{HERE}:{PORT}", **self.certificates.keys(), **(docker or {})}
        more = {"runtime": {"type": "docker"}, "docker": host, **(sections or {})}
        made = Service(bin_dir, sections=more, registry={"pull_policy": "never"}, **options)
        try:
            self.engine.run_inside("mount", "-t", "tmpfs", "tmpfs", str(made.directory))
            yield made
        finally:
            made.destroy()

    def boot_volumes(self):
        return {name for name in self.engine.volumes() if name.startswith("opensandbox-execd-")}

    def uploads(self):
        """How often something was put into a container."""
        return sum("Calling PUT" in line and "/archive" in line for line in (self.engine.directory / "log").read_text().splitlines())


@contextmanager
def apart(*options, kind=None):
    kind = kind or dockerd.CHOSEN[0]
    dockerd.require_docker(kind)
    place = Path(tempfile.mkdtemp(prefix="osb-apart-", dir="/var/tmp"))
    holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "ip link set lo up && echo ready && exec sleep infinity"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"ready\n"
    made = None
    try:
        certificates = Certificates(place / "certificates", address=f"{THERE},IP:{HERE}")
        made = Dockerd("--debug", *options, *certificates.engine_options(THERE), kind=kind)
        connect(holder.pid, made.holder.pid)
        with network_of(holder.pid):
            way = Way()
            try:
                yield Apart(made.start().import_images(), certificates, way)
            finally:
                way.close()
    finally:
        if made is not None:
            made.destroy()
        holder.kill()
        holder.wait(10)
        shutil.rmtree(place, ignore_errors=True)


def connect(here, there):
    """Two devices that are one wire, one in each network."""
    subprocess.run(["ip", "link", "add", "osb-here", "netns", str(here), "type", "veth", "peer", "name", "osb-there", "netns", str(there)], check=True)
    for pid, name, address in ((here, "osb-here", HERE), (there, "osb-there", THERE)):
        for words in (["addr", "add", f"{address}/24", "dev", name], ["link", "set", name, "up"]):
            subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", *words], check=True)
