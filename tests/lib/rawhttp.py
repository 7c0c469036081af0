"""A small HTTP/1.1 client that hides nothing: raw heads, repeated headers, single chunks with their time of arrival.

Every request opens a connection of its own unless a Connection is kept, so that a test leaves no idle socket in the server.
"""

import json as jsonlib
import select
import socket
import time
from dataclasses import dataclass, field


class Closed(Exception):
    """The peer closed before a complete message had arrived; carries what did arrive."""

    def __init__(self, received=b""):
        super().__init__(f"connection closed after {received[-200:]!r}")
        self.received = received


@dataclass
class Response:
    status: int
    reason: str
    headers: list
    body: bytes = b""
    chunks: list = field(default_factory=list)  # (seconds since the request, bytes) when chunked

    def header(self, name):
        found = self.all(name)
        return found[0] if found else None

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def json(self):
        return jsonlib.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.reason} {self.body[:600]!r}>"


class Connection:
    def __init__(self, address, timeout=30.0, source=None):
        """`source` is the address that the peer sees, as (host, port)."""
        self.timeout = timeout
        self.socket = socket.create_connection(address, timeout, source_address=source)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.started = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_request(self, method, target, headers=(), body=b""):
        self.started = time.monotonic()
        self.send(encode_head(method, target, headers, self.socket.getpeername(), body) + (body or b""))

    def _fill(self):
        self.socket.settimeout(self.timeout)
        try:
            data = self.socket.recv(262144)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(bytes(self.buffer))
        self.buffer += data

    def _take(self, size):
        while len(self.buffer) < size:
            self._fill()
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def _take_until(self, mark):
        while (end := self.buffer.find(mark)) < 0:
            self._fill()
        return self._take(end + len(mark))[:end]

    def read_head(self):
        """The next response's head; informational answers (1xx) are returned as they come."""
        lines = self._take_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, *reason = lines[0].split(" ", 2)
        assert version == "HTTP/1.1", f"odd status line {lines[0]!r}"
        headers = [(name, value.strip(" \t")) for name, _, value in (line.partition(":") for line in lines[1:])]
        return Response(int(status), reason[0] if reason else "", headers)

    def read_chunk(self):
        """One chunk of a chunked body exactly as the peer framed it; b"" at the end of the body."""
        size = int(self._take_until(b"\r\n").split(b";")[0], 16)
        data = self._take(size)
        assert self._take(2) == b"\r\n", "a chunk must end with CRLF"
        return data

    def read_body(self, head, method="GET"):
        if method == "HEAD" or head.status in (204, 304) or head.status < 200:
            return head
        if (head.header("transfer-encoding") or "").lower() == "chunked":
            while data := self.read_chunk():
                head.chunks.append((time.monotonic() - self.started, data))
            head.body = b"".join(data for _, data in head.chunks)
        elif head.header("content-length") is not None:
            head.body = self._take(int(head.header("content-length")))
        else:
            head.body = self.read_to_end()
        return head

    def read_response(self, method="GET"):
        head = self.read_head()
        while head.status == 100:
            head = self.read_head()
        return self.read_body(head, method)

    def read_to_end(self, timeout=None):
        """Everything until the peer closes. A peer that stays silent and open for `timeout` is an error."""
        limit = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                raise AssertionError(f"the connection was still open after {limit} s; received {self.buffer[-300:]!r}")
            try:
                self._fill()
            except Closed:
                return self._take(len(self.buffer))

    def is_readable(self, timeout=0.0):
        return bool(self.buffer) or bool(select.select([self.socket], [], [], timeout)[0])


def encode_head(method, target, headers, address, body):
    items = list(headers.items()) if isinstance(headers, dict) else list(headers)
    names = {name.lower() for name, _ in items}
    if "host" not in names:
        items.insert(0, ("Host", f"{address[0]}:{address[1]}"))
    if "content-length" not in names and "transfer-encoding" not in names and (body or method in ("POST", "PUT", "PATCH")):
        items.append(("Content-Length", str(len(body or b""))))
    lines = [f"{method} {target} HTTP/1.1"] + [f"{name}: {value}" for name, value in items]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def request(address, method, target, *, headers=(), body=None, json=None, timeout=30.0):
    """One request on its own connection; returns the complete response."""
    items = list(headers.items()) if isinstance(headers, dict) else list(headers)
    if json is not None:
        body = jsonlib.dumps(json).encode()
        if not any(name.lower() == "content-type" for name, _ in items):
            items.append(("Content-Type", "application/json"))
    items.append(("Connection", "close"))
    with Connection(address, timeout) as connection:
        connection.send_request(method, target, items, body or b"")
        return connection.read_response(method)
