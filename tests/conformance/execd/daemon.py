"""One execd as a test sees it, whichever way leads to it.

`direct` is a standalone daemon of its own on a TCP port, started from a scratch directory; `token` is another one that wants an
access token and is only spoken to through its own /proxy/PORT; `server` is PID 1 of a sandbox of the image `host`, behind the
server's proxy. A test uses what all three share: requests, and commands to look at the inside.
"""

import json
import os
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from urllib.parse import quote

from lib import rawhttp
from lib.api import EXECD_PORT, Api
from lib.service import free_port
from lib.waiting import wait_for
from lib.websocket import BINARY, CLOSE, TEXT, WebSocket

TERMINAL = ("error", "execution_complete")
TOKEN = "a-token-for-tests-0123456789"


class Stream:
    """A complete event stream, checked for what holds for every one of them (section 2)."""

    def __init__(self, reply):
        assert reply.status == 200, reply
        assert reply.header("content-type") == "text/event-stream", reply.headers
        assert reply.header("cache-control") == "no-cache", reply.headers
        assert reply.header("x-accel-buffering") == "no", reply.headers
        assert reply.header("transfer-encoding") == "chunked", reply.headers
        self.reply = reply
        self.raw = reply.body
        self.events = parse(reply.body)
        kinds = [event["type"] for event in self.events]
        assert kinds[0] == "init" and kinds.count("init") == 1, kinds[:5]
        assert sum(kind in TERMINAL for kind in kinds) == 1 and kinds[-1] in TERMINAL, kinds[-5:]
        self.id = self.events[0]["text"]

    def texts(self, kind="stdout"):
        return [event["text"] for event in self.events if event["type"] == kind]

    @property
    def out(self):
        return self.texts("stdout")

    @property
    def err(self):
        return self.texts("stderr")

    @property
    def kinds(self):
        return [event["type"] for event in self.events]

    @property
    def error(self):
        return self.events[-1].get("error")

    @property
    def code(self):
        """As every client infers it: 0 after completion, else evalue."""
        return "0" if self.error is None else self.error["evalue"]


def parse(body):
    frames = body.split(b"\n\n")
    assert frames[-1] == b"", f"the last event must end with two line feeds: {body[-80:]!r}"
    events = []
    for frame in frames[:-1]:
        assert not any(byte in frame for byte in b"\r\n\x0b\x0c\x1c\x1d\x1e"), frame
        text = frame.decode("utf-8")
        assert not any(sign in text for sign in "\x85\u2028\u2029"), frame
        event = json.loads(text)
        assert type(event["timestamp"]) is int, event
        events.append(event)
    return events


class Daemon:
    kind = ""
    address = None
    prefix = ""  # before every path of the API
    headers = ()
    pid = 0  # of execd, as a command inside sees it
    port = EXECD_PORT  # under which it knows itself

    # Requests

    def call(self, method, path, *, headers=(), timeout=60, check=True, **more):
        items = [*self.headers, *(headers.items() if isinstance(headers, dict) else headers)]
        reply = rawhttp.request(self.address, method, self.prefix + path, headers=items, timeout=timeout, **more)
        if check and reply.status >= 400:  # item 7 of section 12, for every answer of every test
            assert (reply.header("content-type") or "").startswith("application/json"), reply
            assert reply.json["code"] and reply.json["message"], reply
        return reply

    def refused(self, status, code, method, path, **more):
        reply = self.call(method, path, **more)
        assert (reply.status, reply.json["code"]) == (status, code), reply
        return reply.json["message"]

    def empty(self, method, path, **more):
        """A success without a body says so in Content-Length: one client decides by that header alone."""
        reply = self.call(method, path, **more)
        assert (reply.status, reply.body, reply.header("content-length")) == (200, b"", "0"), reply
        assert reply.header("content-type") is None and reply.header("transfer-encoding") is None, reply.headers

    def run(self, command, path="/command", client_timeout=60, **members):
        body = {"command": command} if isinstance(command, str) else {"argv": command}
        return Stream(self.call("POST", path, json={**body, **members}, timeout=client_timeout))

    def out(self, command, **members):
        """The lines of a command that succeeds."""
        ran = self.run(command, **members)
        assert ran.code == "0", ran.events[-10:]
        return ran.out

    def background(self, command, **members):
        ran = self.run(command, background=True, **members)
        assert ran.kinds == ["init", "execution_complete"], ran.events
        return ran.id

    def status(self, command_id):
        reply = self.call("GET", f"/command/status/{command_id}")
        assert reply.status == 200, reply
        return reply.json

    def ended(self, command_id, timeout=15):
        return wait_for(lambda: (s := self.status(command_id)) and not s["running"] and s, timeout, f"{command_id} ends")

    @contextmanager
    def streaming(self, command, path="/command", **members):
        """A stream that is still being read; yields its Reader."""
        with rawhttp.Connection(self.address, 30) as connection:
            body = json.dumps({"command": command, **members}).encode()
            connection.send_request("POST", self.prefix + path, [*self.headers, ("Content-Type", "application/json")], body)
            yield Reader(connection)

    def in_background(self, command, **more):
        """Runs a command to its end in a thread; join() gives its Stream."""
        return Thread(lambda: self.run(command, **more))

    def socket(self, path, **more):
        return WebSocket(self.address, self.prefix + path, headers=self.headers, **more)

    # Sessions

    def session(self, **body):
        reply = self.call("POST", "/session", json=body)
        assert reply.status == 200, reply
        return Session(self, reply.json["session_id"])

    # Files

    def upload(self, pairs, **options):
        body, media_type = form(pairs, **options)
        return self.call("POST", "/files/upload", body=body, headers={"Content-Type": media_type})

    def put(self, path, data=b"", **metadata):
        reply = self.upload([("metadata", {"path": path, **metadata}), ("file", data)])
        assert reply.status == 200, reply

    def get(self, path, **more):
        return self.call("GET", f"/files/download?path={quote(path)}", **more)

    def info(self, path):
        reply = self.call("GET", f"/files/info?path={quote(path)}")
        assert reply.status == 200, reply
        return reply.json[path]

    # Its own process

    def own_status(self, name):
        """A number of /proc/PID/status of execd, looked at from the inside."""
        (line,) = self.out(f"grep '^{name}:' /proc/{self.pid}/status")
        return int(line.split()[1])

    def log(self):
        raise NotImplementedError


class Standalone(Daemon):
    kind = "direct"
    with_token = False

    def __init__(self, binary):
        self.directory = tempfile.mkdtemp(prefix="osb-execd-", dir="/var/tmp")
        os.chmod(self.directory, 0o755)
        self.tmp = self.directory + "/tmp"
        os.mkdir(self.tmp)
        self.port = free_port()
        self.address = ("127.0.0.1", self.port)
        self.env_file = self.directory + "/env"
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": self.directory,
            "TMPDIR": self.tmp,
            "EXECD_ENVS": self.env_file,
            "JUPYTER_TOKEN": "secret-jupyter",
            "KEPT": "from outside",
        }
        if self.with_token:
            environment["EXECD_ACCESS_TOKEN"] = TOKEN
            self.headers = (("X-EXECD-ACCESS-TOKEN", TOKEN),)
            self.prefix = f"/proxy/{self.port}"
        self.log_path = self.directory + "/log"
        with open(self.log_path, "wb") as log:
            # The words after the flags are what the published image is started with.
            self.process = subprocess.Popen([binary, "--port", str(self.port), "tail", "-f", "/dev/null"],
                                            env=environment, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # fmt: skip
        self.pid = self.process.pid
        wait_for(self.answers, 10, "execd answers /ping", interval=0.002)

    def answers(self):
        assert self.process.poll() is None, f"execd ended with {self.process.returncode}: {self.log()}"
        try:
            return rawhttp.request(self.address, "GET", "/ping", headers=self.headers).status == 200
        except OSError:
            return False

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class WithToken(Standalone):
    kind = "token"
    with_token = True


class InSandbox(Daemon):
    kind = "server"
    pid = 1
    env_file = "/opt/opensandbox/.env"
    tmp = "/tmp"

    def __init__(self, service):
        self.api = Api(service)
        self.service = service
        self.address = service.address
        self.sandbox_id = self.api.create(env={"KEPT": "from outside", "JUPYTER_TOKEN": "secret-jupyter"}, timeout=3600)["id"]
        self.prefix = self.api.endpoint(self.sandbox_id)

    def log(self):
        return self.service.log_path.read_text(errors="replace")

    def stop(self):
        self.api.delete(self.sandbox_id)


class Session:
    def __init__(self, daemon, session_id):
        self.daemon, self.id = daemon, session_id

    def run(self, command, **members):
        ran = self.daemon.run(command, path=f"/session/{self.id}/run", **members)
        assert ran.id == self.id, ran.events[0]
        assert ran.err == [], "a session has one output"
        return ran

    def out(self, command, **members):
        ran = self.run(command, **members)
        assert ran.code == "0", ran.events
        return ran.out

    def delete(self):
        self.daemon.empty("DELETE", f"/session/{self.id}")


class Reader:
    """The events of an open stream, one after the other."""

    def __init__(self, connection):
        self.connection = connection
        self.head = None
        self.bytes = b""
        self.events = []

    def next(self):
        if self.head is None:
            self.head = self.connection.read_head()
            assert self.head.status == 200, self.connection.read_body(self.head)
        while b"\n\n" not in self.bytes:
            chunk = self.connection.read_chunk()
            if not chunk:
                return None
            self.bytes += chunk
        frame, _, self.bytes = self.bytes.partition(b"\n\n")
        self.events += parse(frame + b"\n\n")
        return self.events[-1]

    def until(self, kind, text=None):
        while event := self.next():
            if event["type"] == kind and text in (None, event.get("text")):
                return event
        raise AssertionError(f"no event {kind} {text!r} in {self.events}")

    def rest(self):
        while self.next():
            pass
        return self.events


class Thread(threading.Thread):
    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.result, self.failure = work, None, None
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - raised again where somebody waits for the result
            self.failure = error

    def join(self, timeout=60):
        super().join(timeout)
        assert not self.is_alive(), "the request was not answered"
        if self.failure:
            raise self.failure
        return self.result


def form(pairs, boundary="osb_test_8f2e", quoted=True, filenames=True):
    """multipart/form-data from (name, content) or (name, content, filename); dictionaries become JSON."""
    out = b""
    mark = '"' if quoted else ""
    for name, content, *more in pairs:
        content = json.dumps(content).encode() if isinstance(content, dict) else content
        filename = more[0] if more else "x"
        disposition = f"form-data; name={mark}{name}{mark}"
        if filenames:
            disposition += f"; filename={mark}{filename}{mark}"
        out += f"--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
        out += content + b"\r\n"
    out += f"--{boundary}--\r\n".encode()
    return out, f"multipart/form-data; boundary={mark}{boundary}{mark}"


class Terminal:
    """A connected PTY client that collects output."""

    def __init__(self, daemon, session_id, query=""):
        self.socket = daemon.socket(f"/pty/{session_id}/ws{query}")
        self.output = b""
        self.frames = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    @property
    def status(self):
        return self.socket.status

    def next(self):
        opcode, data = self.socket.frame()
        self.frames.append((opcode, data))
        if opcode == BINARY and data[0] in (1, 2):
            self.output += data[1:]
        if opcode == TEXT:
            assert data.endswith(b"}\n") and data.count(b"\n") == 1, data
        return opcode, data

    def until_text(self, kind):
        while True:
            opcode, data = self.next()
            assert opcode != CLOSE, (kind, self.frames[-3:])
            if opcode == TEXT and json.loads(data)["type"] == kind:
                return json.loads(data)

    def until_output(self, wanted):
        while wanted not in self.output:
            try:
                opcode, _ = self.next()
            except TimeoutError:
                raise AssertionError(f"{wanted} did not come; what did: {self.output[-300:]}") from None
            assert opcode != CLOSE, (wanted, self.output[-300:])
        return self.output

    def until_close(self):
        while True:
            opcode, data = self.next()
            if opcode == CLOSE:
                return int.from_bytes(data[:2], "big"), data[2:].decode()

    def type(self, text):
        self.socket.type(text)

    def send(self, **value):
        self.socket.send_json(**value)
