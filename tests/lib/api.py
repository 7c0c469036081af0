"""The lifecycle and execution API as tests use it: thin, exact, nothing retried."""

import json
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from . import errors, rawhttp

EXECD_PORT = 44772
SLEEPER = ["tail", "-f", "/dev/null"]


class Api:
    def __init__(self, service, prefix="/v1", key=None):
        self.service = service
        self.address = service.address
        self.prefix = prefix
        self.key = service.api_key if key is None else key

    def call(self, method, path, *, headers=(), key=..., timeout=30, **more):
        items = list(headers.items()) if isinstance(headers, dict) else list(headers)
        key = self.key if key is ... else key
        if key:
            items.append(("OPEN-SANDBOX-API-KEY", key))
        reply = rawhttp.request(self.address, method, self.prefix + path, headers=items, timeout=timeout, **more)
        errors.check(reply, path)
        return reply

    # Lifecycle

    def post_create(self, timeout_seconds=60, **fields):
        """POST /sandboxes with a valid body, changed by `fields` (a member that is `...` is left out)."""
        reply = self.call("POST", "/sandboxes", json=create_body(**fields), timeout=timeout_seconds)
        if reply.status == 202:
            self.service.scope.remember(reply.json["id"])
        return reply

    def create(self, **fields):
        reply = self.post_create(**fields)
        assert reply.status == 202, f"create: {reply}"
        return reply.json

    def get(self, sandbox_id):
        reply = self.call("GET", f"/sandboxes/{sandbox_id}")
        assert reply.status == 200, f"get {sandbox_id}: {reply}"
        return reply.json

    def status(self, sandbox_id):
        return self.get(sandbox_id)["status"]

    def list_all(self):
        items, page = [], 1
        while True:
            reply = self.call("GET", f"/sandboxes?page={page}&pageSize=200")
            assert reply.status == 200, f"list: {reply}"
            items += reply.json["items"]
            if not reply.json["pagination"]["hasNextPage"]:
                return items
            page += 1

    def delete(self, sandbox_id):
        return self.call("DELETE", f"/sandboxes/{sandbox_id}")

    def renew(self, sandbox_id, seconds):
        """Sets the expiry to so many seconds from now; returns that instant as a monotonic time."""
        at = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        due = time.monotonic() + seconds
        reply = self.call("POST", f"/sandboxes/{sandbox_id}/renew-expiration", json={"expiresAt": at.isoformat()})
        assert reply.status == 200, f"renew: {reply}"
        return due

    def endpoint(self, sandbox_id, port=EXECD_PORT):
        """The path of a port of a sandbox as the server hands it out: with its token, where there is a key."""
        reply = self.call("GET", f"/sandboxes/{sandbox_id}/endpoints/{port}")
        assert reply.status == 200, f"endpoint: {reply}"
        return "/" + reply.json["endpoint"].partition("/")[2]

    # Execution, through the server's proxy; the key opens it without a token

    def execd(self, sandbox_id, method, path, **more):
        return self.call(method, f"/sandboxes/{sandbox_id}/proxy/{EXECD_PORT}{path}", **more)

    def ping(self, sandbox_id):
        return self.execd(sandbox_id, "GET", "/ping").status == 200

    def run(self, sandbox_id, command, client_timeout=60, **members):
        """A command to the end of its stream; `members` are those of the request (cwd, envs, timeout in ms, ...)."""
        body = {"command": command, **members} if isinstance(command, str) else {"argv": command, **members}
        reply = self.execd(sandbox_id, "POST", "/command", json=body, timeout=client_timeout)
        assert reply.status == 200, f"command {command!r}: {reply}"
        return Command(reply)

    def upload(self, sandbox_id, path, data, **metadata):
        body, media_type = multipart([({"path": path, **metadata}, data)])
        reply = self.execd(sandbox_id, "POST", "/files/upload", body=body, headers={"Content-Type": media_type})
        assert reply.status == 200, f"upload {path}: {reply}"

    def download(self, sandbox_id, path):
        reply = self.execd(sandbox_id, "GET", f"/files/download?path={path}")
        assert reply.status == 200, f"download {path}: {reply}"
        return reply.body


def create_body(**fields):
    body = {"image": {"uri": "host"}, "entrypoint": SLEEPER, "timeout": 600, "resourceLimits": {}}
    body.update(fields)
    return {name: value for name, value in body.items() if value is not ...}


@dataclass
class Command:
    """What a command stream said, read as strictly as the newest client reads it."""

    reply: rawhttp.Response

    @property
    def events(self):
        frames = self.reply.body.split(b"\n\n")
        assert frames[-1] == b"", f"the stream must end with two line feeds: {self.reply.body[-200:]!r}"
        return [json.loads(frame) for frame in frames[:-1]]

    def texts(self, kind):
        return [event.get("text", "") for event in self.events if event["type"] == kind]

    @property
    def stdout(self):
        return joined(self.texts("stdout"))

    @property
    def stderr(self):
        return joined(self.texts("stderr"))

    @property
    def error(self):
        return next((event["error"] for event in self.events if event["type"] == "error"), None)

    @property
    def exit_code(self):
        if self.error is not None:
            return int(self.error["evalue"])
        return 0 if any(event["type"] == "execution_complete" for event in self.events) else None


def joined(texts):
    """The client's rule: a line feed between two messages where neither side brings one."""
    out = ""
    for text in texts:
        if out and text and out[-1] != "\n" and text[0] != "\n":
            out += "\n"
        out += text
    return out.rstrip("\n")


def multipart(pairs, boundary="osb-test-boundary-7c1f"):
    """(metadata, data) pairs as the clients encode them."""
    parts = []
    for metadata, data in pairs:
        parts.append(part(boundary, "metadata", "metadata", "application/json", json.dumps(metadata).encode()))
        parts.append(part(boundary, "file", metadata.get("path", "x").rsplit("/", 1)[-1], "application/octet-stream", data))
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def part(boundary, name, filename, media_type, data):
    filename = filename.replace("\\", "\\\\").replace('"', '\\"')
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\nContent-Type: {media_type}\r\n\r\n'
    return head.encode() + data + b"\r\n"


def assert_envelope(reply, status, code=None):
    """An error as people and clients need it: the status, a code, a sentence, the request's id, nothing null."""
    assert reply.status == status, reply
    assert (reply.header("content-type") or "").startswith("application/json"), reply.headers
    body = reply.json
    assert isinstance(body.get("code"), str) and body["code"], body
    assert isinstance(body.get("message"), str) and body["message"], body
    assert None not in body.values(), f"null members: {body}"
    assert reply.header("x-request-id"), reply.headers
    if code is not None:
        assert body["code"] == code, body
    if status == 422:
        assert isinstance(body["detail"], list) and body["detail"], body
        for entry in body["detail"]:
            assert {"type", "loc", "msg"} <= set(entry), entry
            assert "input" not in entry, f"input must never be echoed: {entry}"
    return body
