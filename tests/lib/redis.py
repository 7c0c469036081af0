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
    def __init__(self, password=""):
        if not shutil.which("redis-server"):
            pytest.skip("redis-server is not installed: scripts/install-deps --test")
        self.password = password
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="osb-redis-"))
        self.process = None

    def start(self):
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.directory]
        if self.password:
            command += ["--requirepass", self.password]
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
