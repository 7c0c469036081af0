"""A recording proxy in front of the server: what a client asked, in which order, and what it was told.

It forwards bytes as they come, one upstream connection for each client connection, and keeps the Host header, so that the
endpoints that the server hands out point back to the recorder.
"""

import socket
import threading
import time
from dataclasses import dataclass


@dataclass
class Exchange:
    at: float  # seconds since the recorder started
    method: str
    target: str
    headers: dict  # of the request, lower-case names
    status: int = 0

    @property
    def path(self):
        return self.target.split("?")[0]

    def __repr__(self):
        return f"{self.at:.3f} {self.method} {self.target} -> {self.status}"


class Recorder:
    def __init__(self, upstream):
        self.upstream = upstream
        self.exchanges = []
        self.started = time.monotonic()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = self.listener.getsockname()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    @property
    def domain(self):
        return f"{self.address[0]}:{self.address[1]}"

    def seen(self, method=None, ending=""):
        return [e for e in list(self.exchanges) if method in (None, e.method) and e.path.endswith(ending)]

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with client, socket.create_connection(self.upstream) as server:
                for side in (client, server):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                requests, replies = Reader(client), Reader(server)
                while (head := requests.head()) is not None:
                    line, headers = parse(head)
                    exchange = Exchange(time.monotonic() - self.started, line[0], line[1], headers)
                    self.exchanges.append(exchange)
                    server.sendall(head)
                    requests.body(headers, True, server.sendall)
                    if not self.answer(exchange, replies, client):
                        return
        except OSError:
            return  # one side hung up

    def answer(self, exchange, replies, client):
        while (head := replies.head()) is not None:
            line, headers = parse(head)
            status = int(line[1])
            if status != 100:
                exchange.status = status  # before the client can see it
            client.sendall(head)
            if status == 100:
                continue
            no_body = status in (204, 304) or exchange.method == "HEAD"
            if not no_body:
                replies.body(headers, False, client.sendall)
            return headers.get("connection", "").lower() != "close"
        return False


class Reader:
    """HTTP messages from a socket, bytes unchanged."""

    def __init__(self, source):
        self.source = source
        self.buffer = b""

    def fill(self):
        data = self.source.recv(65536)
        self.buffer += data
        return bool(data)

    def head(self):
        while b"\r\n\r\n" not in self.buffer:
            if not self.fill():
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        return head + b"\r\n\r\n"

    def body(self, headers, is_request, write):
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while self.chunk(write):
                pass
        elif "content-length" in headers:
            self.pass_on(int(headers["content-length"]), write)
        elif not is_request:
            while self.buffer or self.fill():
                self.pass_on(len(self.buffer), write)

    def chunk(self, write):
        while b"\r\n" not in self.buffer:
            if not self.fill():
                raise OSError("cut in a chunk")
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        size = int(line.split(b";")[0], 16)
        write(line + b"\r\n")
        self.pass_on(size + 2, write)
        return size > 0

    def pass_on(self, size, write):
        while size > 0:
            if not self.buffer and not self.fill():
                raise OSError("cut in a body")
            piece, self.buffer = self.buffer[:size], self.buffer[size:]
            write(piece)
            size -= len(piece)


def parse(head):
    first, *rest = head.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    return first.split(" ", 2), headers
