"""A program that serves pages, in a sandbox or beside it: page_server.py PORT."""

import base64
import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIXED = {
    "/page": ("text/html", b"<!doctype html><title>page</title><body>a page", []),
    "/worker.js": ("text/javascript", b"onfetch = event => event.respondWith(new Response('from the worker'))", [("Service-Worker-Allowed", "/")]),
    "/clear": ("text/plain", b"cleared", [("Clear-Site-Data", '"storage"')]),
    "/cookie": ("text/plain", b"cookie", [("Set-Cookie", "mine=1; Path=/; Domain=127.0.0.1"), ("Set-Cookie", "also=1; Path=/v1")]),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade"):
            return self.websocket()
        if self.path.startswith("/redirect?"):
            return self.answer("text/plain", b"", [("Location", self.path.partition("?")[2]), ("Access-Control-Allow-Origin", "*")], 307)
        media_type, body, headers = FIXED.get(self.path.split("?")[0], ("text/plain", b"got it", []))
        self.answer(media_type, body, headers)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer("text/plain", self.command.encode() + b" " + body, [])

    do_DELETE = do_POST

    def answer(self, media_type, body, headers, status=200):
        self.send_response_only(status)
        for name, value in [("Content-Type", media_type), ("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def websocket(self):
        """Accepts, and waits for the first bytes."""
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response_only(101)
        for name, value in [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())]:
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        self.rfile.read(2)

    def log_message(self, *_):
        pass


def make_server(port):
    ThreadingHTTPServer.daemon_threads = True
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    make_server(int(sys.argv[1])).serve_forever()
