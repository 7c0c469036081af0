"""Registries as tests need them: Debian's, and one of our own that counts what it serves and misbehaves on request."""

import base64
import hashlib
import http.client
import json
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import images as make
from .doorway import close_doorways, open_doorways
from .service import free_port
from .waiting import wait_for

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def authority_for(name, place):
    """ca.pem of an authority that nobody knows, and cert.pem and key.pem of its only customer ("IP:127.0.0.1", "DNS:...")."""

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=place)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=registry")
    (place / "ext").write_text(f"subjectAltName={name}")
    openssl("x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "cert.pem", "-days", "2", "-extfile", "ext")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Made:
    """The documents and blobs of an image, ready to be pushed or served."""

    def __init__(self, layers, config=None, compression="gzip", machine=make.MACHINE):
        suffix = {"plain": "", "gzip": "+gzip", "zstd": "+zstd"}[compression]
        self.blobs, self.layers = {}, []
        for layer in layers:
            data = make.COMPRESSIONS[compression](layer)
            self.layers.append(sha256(data))
            self.blobs[sha256(data)] = data
        text = make.config_bytes(layers, config or {}, machine)
        self.blobs[sha256(text)] = text
        self.machine = machine
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:" + sha256(text), "size": len(text)},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar" + suffix, "digest": "sha256:" + digest, "size": len(self.blobs[digest])}
                       for digest in self.layers],
        }).encode()  # fmt: skip
        self.digest = sha256(self.manifest)


def index_of(*images):
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {"mediaType": MANIFEST, "digest": "sha256:" + one.digest, "size": len(one.manifest),
         "platform": {"os": "linux", "architecture": one.machine}} for one in images]}).encode()  # fmt: skip


class FakeRegistry:
    """Serves images from memory. `spoil` may change any blob, `before` may do anything to a request."""

    def __init__(self):
        self.documents, self.blobs = {}, {}
        self.requests, self.served = [], {}
        self.spoil, self.before = {}, lambda handler, path: False
        self.login = self.token = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                registry.answer(self)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.doorways = open_doorways(self.server.server_port)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        close_doorways(self.doorways)

    def add(self, name, made, tag="1"):
        self.documents[f"/v2/{name}/manifests/{tag}"] = (MANIFEST, made.manifest)
        self.documents[f"/v2/{name}/manifests/sha256:{made.digest}"] = (MANIFEST, made.manifest)
        for digest, data in made.blobs.items():
            self.blobs[f"/v2/{name}/blobs/sha256:{digest}"] = data
        return f"{self.host}/{name}:{tag}"

    def add_index(self, name, *made, tag="1"):
        for one in made:
            self.add(name, one, tag="of-" + one.machine)
        self.documents[f"/v2/{name}/manifests/{tag}"] = (INDEX, index_of(*made))
        return f"{self.host}/{name}:{tag}"

    def asked(self, part):
        return [path for path in self.requests if part in path]

    def send(self, handler, status, body, **fields):
        handler.send_response(status)
        for name, value in {"Content-Length": len(body), **{name.replace("_", "-"): value for name, value in fields.items()}}.items():
            handler.send_header(name, str(value))
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, handler):
        path = handler.path
        self.requests.append(path)
        if self.before(handler, path):
            return
        given = handler.headers.get("Authorization", "")
        if path.startswith("/token"):
            wanted = "Basic " + base64.b64encode(":".join(self.login).encode()).decode() if self.login else ""
            if self.login and given != wanted:
                return self.send(handler, 401, b"{}")
            return self.send(handler, 200, json.dumps({"token": self.token}).encode())
        if self.token and given != "Bearer " + self.token:
            challenge = f'Bearer realm="http://{self.host}/token",service="fake",scope="repository:x:pull"'
            return self.send(handler, 401, b"{}", WWW_Authenticate=challenge)
        if path in self.documents:
            kind, text = self.documents[path]
            return self.send(handler, 200, text, Content_Type=kind)
        if path not in self.blobs:
            return self.send(handler, 404, json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "never heard of it"}]}).encode())
        data = self.spoil.get(path, self.blobs[path])
        first = handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")
        start = int(first)
        body = data[start:]
        self.served[path] = self.served.get(path, 0) + len(body)
        if start:
            return self.send(handler, 206, body, Content_Range=f"bytes {start}-{len(data) - 1}/{len(data)}", Content_Type="application/octet-stream")
        return self.send(handler, 200, body, Content_Type="application/octet-stream")


@contextmanager
def fake_registry():
    registry = FakeRegistry()
    try:
        yield registry
    finally:
        registry.close()


class FakeRegistryForPushes(FakeRegistry):
    """Takes images, too. `before_write` may do anything to a request that writes; True: it has answered."""

    def __init__(self):
        super().__init__()
        self.uploads, self.writes, self.authorizations = {}, [], []
        self.before_write = lambda handler, method, path: False
        registry = self
        handler = self.server.RequestHandlerClass
        for method in ("HEAD", "POST", "PATCH", "PUT", "DELETE"):
            setattr(handler, "do_" + method, lambda one, method=method: registry.write(one, method))
        answer_get = handler.do_GET
        handler.do_GET = lambda one: registry.status(one) if "/uploads/" in one.path else answer_get(one)

    def send(self, handler, status, body, **fields):
        super().send(handler, status, b"" if handler.command == "HEAD" else body, **fields)

    def status(self, handler):
        done = len(self.uploads.get(handler.path, b""))
        self.send(handler, 204 if handler.path in self.uploads else 404, b"", Range=f"0-{max(0, done - 1)}", Location=handler.path)

    def write(self, handler, method):
        path = handler.path
        self.writes.append((method, path))
        self.authorizations.append((handler.headers.get("Host"), handler.headers.get("Authorization")))
        if self.before_write(handler, method, path):
            return None
        body = b"" if method == "PATCH" else handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if self.token and handler.headers.get("Authorization") != "Bearer " + self.token:
            name = path.removeprefix("/v2/").split("/blobs/")[0].split("/manifests/")[0]
            action = "pull" if method == "HEAD" else "pull,push"
            challenge = f'Bearer realm="http://{self.host}/token",service="fake",scope="repository:{name}:{action}"'
            handler.close_connection = True
            return self.send(handler, 401, b"{}", WWW_Authenticate=challenge)
        place, _, query = path.partition("?")
        if method == "HEAD":
            found = self.blobs.get(path)
            return self.send(handler, 404 if found is None else 200, b"")
        if method == "POST":
            place = f"{place}{len(self.uploads)}"
            self.uploads[place] = bytearray()
            return self.send(handler, 202, b"", Location=place)
        if method == "DELETE":
            self.uploads.pop(place, None)
            return self.send(handler, 204, b"")
        if "/manifests/" in path:
            self.documents[path] = (handler.headers.get("Content-Type"), body)
            self.documents[path.rsplit("/", 1)[0] + "/sha256:" + sha256(body)] = self.documents[path]
            return self.send(handler, 201, b"")
        if place not in self.uploads:
            return self.send(handler, 404, b"{}")
        if method == "PATCH":
            left = int(handler.headers["Content-Length"])
            while left > 0 and (piece := handler.rfile.read(min(left, 1 << 16))):
                self.uploads[place] += piece
                left -= len(piece)
            return self.send(handler, 202, b"", Location=place)
        data = bytes(self.uploads.pop(place)) + body
        wanted = query.removeprefix("digest=").replace("%3A", ":").removeprefix("sha256:")
        if sha256(data) != wanted:
            return self.send(handler, 400, json.dumps({"errors": [{"code": "DIGEST_INVALID", "message": "another digest"}]}).encode())
        self.blobs[place.split("/blobs/")[0] + "/blobs/sha256:" + wanted] = data
        return self.send(handler, 201, b"")


@contextmanager
def fake_registry_for_pushes():
    registry = FakeRegistryForPushes()
    try:
        yield registry
    finally:
        registry.close()


class DebianRegistry:
    """The package docker-registry on loopback, with whatever its configuration has to say."""

    def __init__(self, password=None, tls=None, name="127.0.0.1", port=None):
        self.directory = Path(tempfile.mkdtemp(prefix="osb-registry-", dir="/var/tmp"))
        self.port = port or free_port()
        self.host = f"{name}:{self.port}"
        self.password, self.tls = password, tls
        self.log = self.directory / "access.log"
        lines = ["version: 0.1", "log: {level: error}", "storage: {filesystem: {rootdirectory: %s}}" % (self.directory / "data"),
                 "http:", f"  addr: '{name if name.startswith('[') else '127.0.0.1'}:{self.port}'"]  # fmt: skip
        if tls:
            lines += ["  tls:", f"    certificate: {tls[0]}", f"    key: {tls[1]}"]
        if password:
            import crypt  # noqa: PLC0415  (gone in later versions of Python; tests with a password are skipped there)

            (self.directory / "htpasswd").write_text(f"me:{crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))}\n")
            lines += ["auth:", "  htpasswd:", "    realm: test", f"    path: {self.directory / 'htpasswd'}"]
        (self.directory / "config.yml").write_text("\n".join(lines) + "\n")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", self.directory / "config.yml"], stdout=log, stderr=subprocess.DEVNULL)
        wait_for(self.answers, 15, "docker-registry answers", interval=0.02)
        self.doorways = open_doorways(self.port)

    def connection(self):
        if self.tls:
            import ssl  # noqa: PLC0415

            return http.client.HTTPSConnection(self.host, context=ssl._create_unverified_context(), timeout=30)
        return http.client.HTTPConnection(self.host, timeout=30)

    def call(self, method, target, body=None, **fields):
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        if self.password:
            headers["Authorization"] = "Basic " + base64.b64encode(f"me:{self.password}".encode()).decode()
        connection = self.connection()
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer
        finally:
            connection.close()

    def answers(self):
        assert self.process.poll() is None, "docker-registry has ended"
        try:
            return self.call("GET", "/v2/").status == 200
        except OSError:
            return False

    def asked(self, method):
        """Requests so far that had this method, as lines of its log."""
        return [line for line in self.log.read_text().splitlines() if f'"{method} ' in line]

    def tags(self, name):
        connection = self.connection()
        try:
            connection.request("GET", f"/v2/{name}/tags/list")
            answer = connection.getresponse()
            return json.loads(answer.read()).get("tags") or [] if answer.status == 200 else []
        finally:
            connection.close()

    def push(self, name, made, tag="1"):
        for digest, data in made.blobs.items():
            place = self.call("POST", f"/v2/{name}/blobs/uploads/").headers["Location"]
            target = place.split(self.host, 1)[-1] + ("&" if "?" in place else "?") + "digest=sha256:" + digest
            assert self.call("PUT", target, data, Content_Type="application/octet-stream").status == 201
        assert self.call("PUT", f"/v2/{name}/manifests/{tag}", made.manifest, Content_Type=MANIFEST).status == 201
        return f"{self.host}/{name}:{tag}"

    def push_index(self, name, *made, tag="1"):
        for one in made:
            self.push(name, one, tag="of-" + one.machine)
        assert self.call("PUT", f"/v2/{name}/manifests/{tag}", index_of(*made), Content_Type=INDEX).status == 201
        return f"{self.host}/{name}:{tag}"

    def close(self):
        close_doorways(self.doorways)
        self.process.kill()
        self.process.wait(10)
        shutil.rmtree(self.directory, ignore_errors=True)


class Relay:
    """A port before a registry on loopback: keeps the first byte of each connection, counts what the registry sends, holds it back on request."""

    def __init__(self, registry, name="127.0.0.1"):
        self.behind = registry.host.rsplit(":", 1)[0].strip("[]"), registry.port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"{name}:{self.listener.getsockname()[1]}"
        self.openings, self.served = [], 0
        self.most = None  # bytes for one connection, until let_go() is called
        self.going, self.lock = threading.Event(), threading.Lock()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with suppress(OSError):  # closed
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.join, args=(client,), daemon=True).start()

    def join(self, client):
        with client, socket.create_connection(self.behind) as registry, suppress(OSError):
            threading.Thread(target=self.send_on, args=(client, registry), daemon=True).start()
            sent = 0
            while data := registry.recv(1 << 16 if self.most is None else min(1 << 16, max(1, self.most - sent))):
                if self.most is not None and sent >= self.most:
                    self.going.wait(60)
                client.sendall(data)
                sent += len(data)
                with self.lock:
                    self.served += len(data)

    def send_on(self, client, registry):
        with suppress(OSError):
            first = client.recv(1 << 16)
            self.openings.append(first[:1])
            while first:
                registry.sendall(first)
                first = client.recv(1 << 16)
            registry.shutdown(socket.SHUT_WR)

    def let_go(self):
        """From here on nothing is held back, and counting begins anew."""
        self.most, self.served = None, 0
        self.going.set()

    def close(self):
        self.going.set()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@contextmanager
def relay_before(registry, name="127.0.0.1"):
    relay = Relay(registry, name)
    try:
        yield relay
    finally:
        relay.close()


def has_debian_registry():
    return shutil.which("docker-registry") is not None
