"""A Redis server of a test's own: on loopback, on a free port, without a file, and killed at the end."""

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from .service import free_port
from .waiting import wait_for


class Redis:
    def __init__(self, password="", tls_name=""):
        """With a name it also listens with TLS, on another port, with a certificate for that name or address."""
        if not shutil.which("redis-server"):
            pytest.skip("redis-server is not installed: scripts/install-deps --test")
        self.password = password
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="osb-redis-"))
        self.process = None
        self.tls_port = free_port() if tls_name else 0
        if tls_name:
            make_certificates(self.directory, tls_name)

    def start(self):
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.directory]
        if self.password:
            command += ["--requirepass", self.password]
        if self.tls_port:
            command += ["--tls-port", str(self.tls_port), "--tls-auth-clients", "no", "--tls-cert-file", self.directory / "server.pem",
                        "--tls-key-file", self.directory / "server.key", "--tls-ca-cert-file", self.authority]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_for(self.answers, 10, "redis-server answers")
        return self

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def destroy(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.destroy()

    def dsn(self, password=None, database=0):
        password = self.password if password is None else password
        return f"redis://{f':{password}@' if password else ''}127.0.0.1:{self.port}/{database}"

    @property
    def authority(self):
        return self.directory / "authority.pem"

    def tls_dsn(self, authority=None, host="127.0.0.1"):
        return f"rediss://{f':{self.password}@' if self.password else ''}{host}:{self.tls_port}/0" + (f"?ssl_ca_certs={authority}" if authority else "")

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except OSError:
            return False

    def ask(self, *words, database=0):
        """One command on a connection of its own."""
        return self.ask_all([words], database)[0]

    def ask_all(self, commands, database=0):
        """Many at once, on one connection."""
        before = [("AUTH", self.password)] if self.password else []
        before.append(("SELECT", str(database)))
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            sent = b"".join(encode(words) for words in [*before, *commands])
            file = connection.makefile("rb")
            # In pieces, so that neither side waits for the other to read.
            for at in range(0, len(sent), 65536):
                connection.sendall(sent[at : at + 65536])
            replies = [read(file) for _ in range(len(before) + len(commands))]
        return replies[len(before) :]


def make_certificates(directory, name):
    """An authority of its own, and a certificate that it has signed."""
    kind = "IP" if name[0].isdigit() else "DNS"
    (directory / "names").write_text(f"subjectAltName={kind}:{name}\n")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    for arguments in (
        ["req", "-x509", *new, "-keyout", "authority.key", "-out", "authority.pem", "-days", "2", "-subj", "/CN=authority of a test"],
        ["req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=redis of a test"],
        ["x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-out", "server.pem", "-days", "2",
         "-extfile", "names"],
    ):  # fmt: skip
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)
    # The server reads the authority's, and is not root.
    directory.chmod(0o755)
    (directory / "authority.pem").chmod(0o644)


def encode(words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def read(file):
    line = file.readline().rstrip(b"\r\n")
    if not line:
        raise ConnectionError("redis closed the connection")
    kind, rest = line[:1], line[1:].decode()
    if kind == b"-":
        raise RuntimeError(rest)
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == "-1" else file.read(int(rest) + 2)[:-2].decode()
    if kind == b"*":
        return None if rest == "-1" else [read(file) for _ in range(int(rest))]
    return rest
