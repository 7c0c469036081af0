"""The servers of a lab (netlab.py): an authoritative name server, web servers with and without TLS, an echo. One process, run in
a network namespace that has nothing else."""

import http.server
import json
import socket
import socketserver
import ssl
import struct
import sys
import threading
from pathlib import Path
from urllib.parse import unquote

ZONE, DIRECTORY = json.loads(sys.argv[1]), Path(sys.argv[2])
TYPES = {"A": 1, "CNAME": 5, "AAAA": 28, "HTTPS": 65}
SEEN, LOCK, FAILED = [], threading.Lock(), set()


def note(**what):
    with LOCK:
        SEEN.append(what)


def own_address(connection):
    return connection.getsockname()[0].removeprefix("::ffff:")


def encode_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def record(name, kind, data, ttl):
    return encode_name(name) + struct.pack("!HHIH", TYPES[kind], 1, ttl, len(data)) + data


def https_record():
    """alpn and ech."""
    alpn, ech = b"\x02h2", b"\x00\x08secret!!"
    return struct.pack("!H", 1) + b"\0" + struct.pack("!HH", 1, len(alpn)) + alpn + struct.pack("!HH", 5, len(ech)) + ech


def answers(name, kind):
    entry = ZONE.get(name)
    if entry is None:
        return None
    ttl = entry.get("ttl", 300)
    if "CNAME" in entry:
        return [record(name, "CNAME", encode_name(entry["CNAME"]), ttl), *(answers(entry["CNAME"], kind) or [])]
    found = []
    if kind == 1:
        found = [record(name, "A", socket.inet_aton(a), ttl) for a in entry.get("A", [])]
        if "also" in entry:
            other, address = entry["also"]
            found.append(record(other, "A", socket.inet_aton(address), ttl))
    elif kind == 28:
        found = [record(name, "AAAA", socket.inet_pton(socket.AF_INET6, a), ttl) for a in entry.get("AAAA", [])]
    elif kind == 65 and entry.get("HTTPS"):
        found = [record(name, "HTTPS", https_record(), ttl)]
    return found


def answer(query, most):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    name = ".".join(labels).lower()
    kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
    question = query[12 : at + 5]
    note(what="lookup", name=name, type=kind, over="tcp" if most > 4096 else "udp")
    found = answers(name, kind)
    flags = 0x8580 | (3 if found is None else 0)
    out = query[:2] + struct.pack("!HHHHH", flags, 1, len(found or []), 0, 0) + question + b"".join(found or [])
    if len(out) > most:
        out = query[:2] + struct.pack("!HHHHH", flags | 0x0200, 1, 0, 0, 0) + question
    return out


class LookupsUdp(socketserver.BaseRequestHandler):
    def handle(self):
        query, sock = self.request
        sock.sendto(answer(query, 1232), self.client_address)


# Ports of the name server on which it always answers the same: with a failure, that there is no such name, with no record.
STUBBORN = {5301: 2, 5302: 3, 5303: 0}


class LookupsStubborn(socketserver.BaseRequestHandler):
    def handle(self):
        query, sock = self.request
        port = sock.getsockname()[1]
        note(what="lookup", port=port)
        end = 12
        while query[end]:
            end += 1 + query[end]
        out = query[:2] + struct.pack("!HHHHH", 0x8180 | STUBBORN[port], 1, 0, 0, 0) + query[12 : end + 5]
        sock.sendto(out, self.client_address)


class LookupsTcp(socketserver.BaseRequestHandler):
    def handle(self):
        size = struct.unpack("!H", self.request.recv(2, socket.MSG_WAITALL))[0]
        out = answer(self.request.recv(size, socket.MSG_WAITALL), 65535)
        self.request.sendall(struct.pack("!H", len(out)) + out)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host = self.headers.get("Host", "")
        note(what="request", host=host, path=self.path, to=own_address(self.connection), tls=isinstance(self.connection, ssl.SSLSocket))
        if self.path.startswith("/bytes/"):
            left = int(self.path.split("/")[2])
            self.send_response(200)
            self.send_header("Content-Length", str(left))
            self.end_headers()
            piece = b"x" * 65536
            while left > 0:
                self.wfile.write(piece[: min(left, len(piece))])
                left -= len(piece)
            return
        if self.path.startswith("/files/"):
            return self.send_file(DIRECTORY / "www" / unquote(self.path.removeprefix("/files/").partition("?")[0]).lstrip("/"))
        if self.path == "/socket":
            self.send_response_only(101)
            self.send_header("Connection", "Upgrade")
            self.send_header("Upgrade", "websocket")
            self.end_headers()
            self.close_connection = True
            while line := self.rfile.readline():
                self.wfile.write(b"echo " + line)
            return
        body = f"hello {host}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self):
        """A proxy that is every host itself: whoever is asked for, lines come back."""
        note(what="connect", host=self.headers.get("Host", ""), path=self.path)
        refused = self.path.startswith("shy.")
        self.send_response_only(407 if refused else 200)
        if refused:
            self.send_header("Content-Length", "0")
        self.end_headers()
        while not refused and (line := self.rfile.readline()):
            self.wfile.write(b"echo " + line)

    def send_file(self, path):
        """What a test has put into the directory `www` of the lab."""
        if path.is_dir():
            path /= "index.html"
        found = path.is_file() and path.resolve().is_relative_to(DIRECTORY.resolve())
        body = path.read_bytes() if found else b"not found"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html" if path.suffix == ".html" else "application/json" if not path.suffix else "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        total = 0
        begin = b""
        while total < size:
            piece = self.rfile.read(min(1 << 20, size - total))
            total += len(piece)
            begin += piece[: 4096 - len(begin)]
        note(what="post", host=self.headers.get("Host", ""), path=self.path, type=self.headers.get("Content-Type"), body=begin.decode("latin-1"))
        body = str(total).encode()
        # The first one to a path that is flaky fails; one that leads elsewhere says so.
        flaky = self.path.startswith("/flaky") and self.path not in FAILED
        FAILED.add(self.path)
        self.send_response(503 if flaky else 302 if self.path == "/elsewhere" else 200)
        if self.path == "/elsewhere":
            self.send_header("Location", "http://1.2.3.12/stolen")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Echo(socketserver.BaseRequestHandler):
    """Greets first, as some protocols do; after the client's end it tells how much came."""

    def handle(self):
        note(what="connection", to=own_address(self.request), port=self.request.getsockname()[1])
        self.request.sendall(b"welcome\n")
        total = 0
        while piece := self.request.recv(65536):
            total += len(piece)
        self.request.sendall(f"{total}\n".encode())


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 512
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, *_):
        pass


class ThreadsUdp(socketserver.ThreadingMixIn, socketserver.UDPServer):
    daemon_threads = True


def serve():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DIRECTORY / "server.pem", DIRECTORY / "server.key")
    secure = Threads(("::", 443), Web)
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    servers = [ThreadsUdp(("1.2.3.53", 53), LookupsUdp), Threads(("::", 53), LookupsTcp), Threads(("::", 80), Web), secure, Threads(("::", 7), Echo), Threads(("::", 853), Echo), Threads(("::", 8080), Web)]
    servers += [ThreadsUdp(("1.2.3.53", port), LookupsStubborn) for port in STUBBORN]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()


print("ready for addresses", flush=True)
for line in sys.stdin:
    if line == "go\n":
        serve()
        print("serving", flush=True)
    elif line == "seen\n":
        with LOCK:
            print(json.dumps(SEEN), flush=True)
            SEEN.clear()
