"""A WebSocket client to the byte: frames as they arrive, no protocol help that could hide a mistake."""

import base64
import hashlib
import json
import os

from . import rawhttp

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class WebSocket:
    """Connects and keeps the answer's status; only 101 makes it usable."""

    def __init__(self, address, target, headers=(), timeout=15.0):
        self.connection = rawhttp.Connection(address, timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]
        self.connection.send_request("GET", target, [*fields, *headers])
        self.head = self.connection.read_head()
        self.status = self.head.status
        if self.status == 101:
            wanted = base64.b64encode(hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
            assert self.head.header("sec-websocket-accept") == wanted, self.head.headers
        else:
            self.connection.read_body(self.head)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    def frame(self):
        first, second = self.connection._take(2)
        assert first & 0x70 == 0, "reserved bits must be zero"
        assert second & 0x80 == 0, "a server does not mask"
        assert first & 0x80, "frames of ours are never fragmented"
        size = second & 127
        if size == 126:
            size = int.from_bytes(self.connection._take(2), "big")
            assert size > 125, "a length must have its shortest form"
        elif size == 127:
            size = int.from_bytes(self.connection._take(8), "big")
            assert size > 65535, "a length must have its shortest form"
        return first & 15, bytes(self.connection._take(size))

    def send(self, opcode, data, final=True):
        size = len(data)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65536:
            length = bytes([0x80 | 126]) + size.to_bytes(2, "big")
        else:
            length = bytes([0x80 | 127]) + size.to_bytes(8, "big")
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index & 3] for index, byte in enumerate(data))
        self.connection.send(bytes([(0x80 if final else 0) | opcode]) + length + mask + masked)

    def send_json(self, **value):
        self.send(TEXT, json.dumps(value).encode())

    def type(self, text):
        """Standard input of a terminal."""
        self.send(BINARY, b"\0" + text.encode())
