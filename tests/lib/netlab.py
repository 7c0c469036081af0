"""A small internet for tests: two network namespaces of their own, joined by a pair of devices.

In the first one the test itself, and with it every service it starts, takes the place of a host; in the second one
`internet.py` answers for name servers and web servers with public addresses. Nothing of the machine's own network is touched.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from .waiting import wait_for

CLONE_NEWNET = 0x40000000
HOST, HOST6 = "1.2.3.1", "2600:1::1"
DNS = "1.2.3.53"
libc = ctypes.CDLL(None, use_errno=True)

ZONE = {
    "allowed.test": {"A": ["1.2.3.10"], "AAAA": ["2600:1::10"]},
    "other.test": {"A": ["1.2.3.11"], "AAAA": ["2600:1::11"]},
    "shared-a.test": {"A": ["1.2.3.12"]},
    "shared-b.test": {"A": ["1.2.3.12"]},
    "alias.test": {"CNAME": "allowed.test"},
    "four.test": {"A": ["1.2.3.10"]},
    "six.test": {"AAAA": ["2600:1::10"]},
    "private.test": {"A": ["10.9.8.7"]},
    "metadata.test": {"A": ["169.254.169.254"]},
    "host.test": {"A": [HOST]},
    "loop.test": {"A": ["127.0.0.1"]},
    "nobody.test": {"A": ["1.2.3.99"]},
    "big.test": {"A": [f"1.2.4.{n}" for n in range(1, 200)]},
    "brief.test": {"A": ["1.2.3.13"], "ttl": 1},
    "a.wild.test": {"A": ["1.2.3.14"]},
    "wild.test": {"A": ["1.2.3.14"]},
    "poison.test": {"A": ["1.2.3.10"], "also": ["victim.test", "1.2.3.11"]},
    "https.test": {"A": ["1.2.3.10"], "HTTPS": True},
}
ADDRESSES = ["1.2.3.10", "1.2.3.11", "1.2.3.12", "1.2.3.13", "1.2.3.14", DNS]
PRIVATE = ["10.9.8.7", "169.254.169.254"]


def check(status, what):
    if status < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def ip(*words, inside=None):
    enter = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
    subprocess.run([*enter, "ip", *words], check=True, capture_output=True)


class Lab:
    """Between enter() and leave() the calling thread, and what it starts, is in the namespace of the host."""

    def __init__(self, zone=None):
        self.zone = zone or ZONE
        self.directory = Path(tempfile.mkdtemp(prefix="osb-lab-", dir="/var/tmp"))
        self.directory.chmod(0o755)  # servers that are not root believe its authority
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.internet = None

    def enter(self):
        check(libc.unshare(CLONE_NEWNET), "unshare")
        try:
            ip("link", "set", "lo", "up")
            make_certificates(self.directory)
            self.internet = subprocess.Popen(
                ["unshare", "--net", sys.executable, Path(__file__).with_name("internet.py"), json.dumps(self.zone), self.directory],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert self.internet.stdout.readline() == "ready for addresses\n"
            self.join()
            self.internet.stdin.write("go\n")
            self.internet.stdin.flush()
            assert self.internet.stdout.readline() == "serving\n"
        except BaseException:
            self.leave()
            raise
        return self

    def join(self):
        pid = self.internet.pid
        ip("link", "add", "up0", "type", "veth", "peer", "name", "net0", "netns", str(pid))
        ip("addr", "add", f"{HOST}/24", "dev", "up0")
        ip("-6", "addr", "add", f"{HOST6}/64", "dev", "up0", "nodad")
        ip("link", "set", "up0", "up")
        for address in ADDRESSES + PRIVATE:
            ip("addr", "add", f"{address}/{'24' if address.startswith('1.') else '32'}", "dev", "net0", inside=pid)
        for address in ("2600:1::10", "2600:1::11"):
            ip("-6", "addr", "add", f"{address}/64", "dev", "net0", "nodad", inside=pid)
        ip("link", "set", "lo", "up", inside=pid)
        ip("link", "set", "net0", "up", inside=pid)
        ip("route", "add", "default", "via", "1.2.3.10")
        ip("-6", "route", "add", "default", "via", "2600:1::10")

    def seen(self):
        """What arrived in the internet since the last call: a dict per lookup and per request."""
        self.internet.stdin.write("seen\n")
        self.internet.stdin.flush()
        return json.loads(self.internet.stdout.readline())

    def start_outside(self, program):
        """A program in the internet."""
        enter = ["nsenter", f"--net=/proc/{self.internet.pid}/ns/net", sys.executable, "-c", textwrap.dedent(program)]
        return subprocess.Popen(enter, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def outside(self, program, while_=None):
        """What a program in the internet prints; `while_` is done here meanwhile."""
        running = self.start_outside(program)
        if while_:
            while_()
        return running.communicate(timeout=10)[0].strip()

    def start_http2(self, port=8443):
        """nginx in the internet, which speaks HTTP/2 over TLS at every address, and passes WebSockets on. Until it is killed."""
        (self.directory / "nginx.conf").write_text(f"""
            daemon off; pid {self.directory}/nginx.pid; error_log {self.directory}/nginx.error; worker_processes 1;
            events {{ worker_connections 256; }}
            http {{
              log_format what "$host $server_protocol"; access_log {self.directory}/nginx.seen what;
              client_body_temp_path {self.directory}/nginx.body; proxy_temp_path {self.directory}/nginx.proxy;
              fastcgi_temp_path {self.directory}/nginx.f; uwsgi_temp_path {self.directory}/nginx.u; scgi_temp_path {self.directory}/nginx.s;
              server {{
                listen {port} ssl http2; listen [::]:{port} ssl http2;
                ssl_certificate {self.directory}/server.pem; ssl_certificate_key {self.directory}/server.key;
                location / {{ return 200 "hello $host by $server_protocol"; }}
                location /ready {{ access_log off; return 204; }}
                location /bytes/ {{ proxy_pass http://127.0.0.1; }}
                location /socket {{
                  proxy_pass http://127.0.0.1; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                }}
              }}
            }}
        """)
        enter = ["nsenter", f"--net=/proc/{self.internet.pid}/ns/net"]
        running = subprocess.Popen([*enter, "nginx", "-c", self.directory / "nginx.conf"], stderr=subprocess.DEVNULL)
        asks = lambda: subprocess.run([*enter, "curl", "-sk", f"https://1.2.3.10:{port}/ready"], capture_output=True).returncode == 0  # noqa: E731
        wait_for(lambda: running.poll() is not None or asks(), 10, "nginx answers")
        assert running.poll() is None, (self.directory / "nginx.error").read_text()
        return running

    def seen_by_http2(self):
        """Host and protocol of each request since the last call."""
        log = self.directory / "nginx.seen"
        seen = log.read_text().splitlines()
        os.truncate(log, 0)
        return seen

    def listen_in(self):
        """Notes every frame that reaches the internet's device from now on; the call that is returned ends that and gives them."""
        running = self.start_outside("""
            import socket, sys, threading
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); s.bind(("net0", 0)); s.settimeout(0.2)
            print("listening", flush=True)
            threading.Thread(target=lambda: sys.stdin.read() or done.set(), daemon=True).start()
            done = threading.Event(); frames = []
            while not done.is_set():
                try: frames.append(s.recvfrom(65536))
                except TimeoutError: pass
            for frame, address in frames:
                if address[2] != socket.PACKET_OUTGOING: print(frame.hex())
        """)
        assert running.stdout.readline() == "listening\n"
        return lambda: [bytes.fromhex(line) for line in running.communicate("", timeout=10)[0].split()]

    def leave(self):
        check(libc.setns(self.home, CLONE_NEWNET), "setns")
        os.close(self.home)
        if self.internet:
            self.internet.kill()
            self.internet.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


def make_certificates(directory):
    """An authority of its own, and one certificate for all names below .test."""
    run = lambda *words: subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)  # noqa: E731
    run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=lab", "-keyout", "ca.key", "-out", "ca.pem")
    run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    names = ",".join(f"DNS:{name}" for name in ZONE)
    (directory / "names").write_text(f"subjectAltName={names}\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem")


@pytest.fixture(scope="module")
def lab():
    for tool in ("ip", "openssl", "unshare", "nsenter"):
        if not shutil.which(tool):
            pytest.skip(f"the lab needs {tool}")
    made = Lab().enter()
    yield made
    made.leave()


def egress_pid(service):
    from .scope import command_line
    from .service import child_pids

    for pid in child_pids(service.process.pid):
        if command_line(pid)[:1] == [b"osb-egress"]:
            return pid
    return None


def wait_egress(service, other_than=None):
    return wait_for(lambda: (pid := egress_pid(service)) and pid != other_than and pid, 10, "the egress process runs")
