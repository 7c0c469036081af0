"""A small server that tests start inside a sandbox: it tells what arrived and answers in awkward ways."""

import base64
import hashlib
import json
import os
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.split("?")[0]
        if name == "/events":
            return self.events()
        if name == "/redirect":
            return self.answer(302, b"", [("Location", self.path.partition("?")[2])])
        if name == "/cookies":
            return self.answer(200, b"", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Server", "secret/1"), ("X-Request-ID", "theirs"), ("Connection", "X-Private"), ("X-Private", "1")])
        if name == "/drop":
            return self.connection.shutdown(socket.SHUT_RDWR)
        if name == "/websocket":
            return self.websocket()
        return self.echo()

    def echo(self):
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length)) if length else self.read_chunked()
        seen = {"method": self.command, "target": self.path, "headers": self.headers.items(), "body": base64.b64encode(body).decode()}
        self.answer(200, json.dumps(seen).encode(), [("Content-Type", "application/json")])

    do_POST = do_PUT = do_PATCH = do_DELETE = echo

    def read_chunked(self):
        body = b""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    def answer(self, status, body, headers=()):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self):
        """One event at once, the second only when the file /tmp/second-event appears."""
        self.send_response_only(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b"data: first\n\n")
        while not os.path.exists("/tmp/second-event"):
            time.sleep(0.02)
        self.chunk(b"data: second\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def websocket(self):
        """Accepts, then sends every frame back as it came (unmasked)."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response_only(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while len(head := self.rfile.read(2)) == 2:
            size = head[1] & 127
            mask = self.rfile.read(4) if head[1] & 128 else b"\0\0\0\0"
            data = bytes(byte ^ mask[n % 4] for n, byte in enumerate(self.rfile.read(size)))
            self.wfile.write(bytes([head[0], len(data)]) + data)
            self.wfile.flush()
            if head[0] & 15 == 8:
                return

    def log_message(self, *_):
        pass


ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
