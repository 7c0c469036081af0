"""Lives of sandboxes (create, then delete) at a rate that does not wait for the server: what overload really is.

Plain sockets and one epoll: the clients run on the cores of the service that they try, so what they use is taken from it, and four
times as many requests must not look as if the service did less.
"""

import json
import selectors
import socket
import time
from collections import Counter

from .api import create_body


class Lives:
    def __init__(self, api):
        self.address = api.address
        headers = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nOPEN-SANDBOX-API-KEY: {api.key}\r\n"
        body = json.dumps(create_body())
        self.create = f"POST /v1/sandboxes HTTP/1.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        self.delete = "DELETE /v1/sandboxes/{} HTTP/1.1\r\n" + headers + "Content-Length: 0\r\n\r\n"
        self.creates, self.deletes = Counter(), Counter()  # statuses

    def closed(self, workers, seconds):
        """Complete lives per second of so many clients that each wait for their answers."""
        return self.run(seconds, lambda begun, ended, now: workers - (begun - ended))

    def open(self, rate, seconds):
        """The same when so many lives per second begin, whatever has become of the others."""
        return self.run(seconds, lambda begun, ended, now: now * rate - begun)

    def run(self, seconds, wanted):
        """How many more shall begin is asked with how many have begun, have ended, and for how long this runs."""
        self.begun = self.ended = self.complete = 0
        self.idle, self.later = [], []
        start = time.monotonic()
        self.end = start + seconds
        with selectors.EpollSelector() as self.selector:
            # Also after the end, so that nothing is left behind; what ends then counts no more.
            while (now := time.monotonic()) < self.end or self.ended < self.begun:
                assert now < self.end + 60, f"{self.begun - self.ended} lives do not end"
                if now < self.end:
                    for _ in range(int(wanted(self.begun, self.ended, now - start))):
                        self.begun += 1
                        self.connection().ask(self.create)
                while self.later and self.later[0][0] <= now:
                    self.connection().ask(*self.later.pop(0)[1:])
                for key, _ in self.selector.select(0.005):
                    if answer := key.data.take():
                        self.go_on(key.data, *answer)
            for connection in self.idle:
                connection.close()
        return self.complete / seconds

    def connection(self):
        return self.idle.pop() if self.idle else Connection(self)

    def go_on(self, connection, status, body):
        if deleting := connection.deleting:
            self.deletes[status] += 1
        else:
            self.creates[status] += 1
        if connection.closes:
            connection.close()
        else:
            self.idle.append(connection)
        if not deleting and status == 202:
            request = self.delete.format(json.loads(body)["id"]).encode()
            self.connection().ask(request, True)
        elif deleting and status != 204:
            self.later.append((time.monotonic() + 0.2, connection.request, True))  # nothing may be left behind
        else:
            self.ended += 1
            self.complete += deleting and time.monotonic() < self.end


class Connection:
    def __init__(self, lives):
        self.lives = lives
        self.socket = socket.create_connection(lives.address, timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lives.selector.register(self.socket, selectors.EVENT_READ, self)
        self.request, self.received, self.deleting, self.closes = None, b"", False, False

    def ask(self, request, deleting=False):
        self.request, self.deleting = request, deleting
        self.socket.sendall(request)

    def take(self):
        """Status and body, when the whole answer is there. An idle connection that the server ends is forgotten."""
        data = self.socket.recv(65536)
        self.received += data
        head, blank, body = self.received.partition(b"\r\n\r\n")
        if not data:
            assert self in self.lives.idle, "the server has ended a connection with a request on it"
            self.lives.idle.remove(self)
            self.close()
            return None
        lines = head.lower()
        if not blank or len(body) < int(lines.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0):
            return None
        self.received = b""
        self.closes = b"connection: close" in lines
        return int(head[9:12]), body

    def close(self):
        self.lives.selector.unregister(self.socket)
        self.socket.close()
