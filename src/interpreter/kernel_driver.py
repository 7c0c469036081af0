"""Runs one kernel as execd does, for tests: descriptors 1 to 4, frames, interrupts. Reads kernels.inc for how to start it."""

import ast
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "kernels"


def table():
    """{language: (interpreters, arguments, source files)}"""
    text = re.sub(r"^//.*$", "", (FOLDER / "kernels.inc").read_text(), flags=re.M)
    rows = {}
    literal = r'"(?:[^"\\]|\\.)*"'

    def words(text):  # neighbouring literals are one, as in C++
        return [ast.literal_eval(" ".join(found.split("\n"))) for found in re.findall(literal + r"(?:\s*" + literal + ")*", text)]

    for row in text.split("KERNEL(")[1:]:
        head, arguments, sources = row.split("(Words{")
        language, _, interpreters, _ = words(head)
        rows[language] = (interpreters.split(), words(arguments), [FOLDER / name for name in words(sources)])
    return rows


class Cell:
    def __init__(self):
        self.stdout = self.stderr = b""
        self.frames = []
        self.done = None

    def of(self, op):
        return [frame for frame in self.frames if frame["op"] == op]

    @property
    def text(self):
        return self.of("result")[0]["data"]["text/plain"] if self.of("result") else None

    @property
    def error(self):
        return self.of("error")[0] if self.of("error") else None


class Kernel:
    def __init__(self, language, cwd=None, env=None):
        interpreters, arguments, sources = table()[language]
        program = next(filter(None, map(shutil.which, interpreters)), None)
        if language == "python" and os.environ.get("KERNEL_PYTHON"):
            program = os.environ["KERNEL_PYTHON"]
        if not program:
            raise FileNotFoundError(f"none of {interpreters} is installed")
        parts = [path.read_bytes() for path in sources]
        whole = parts[0] if len(parts) == 1 else b"".join(b"\n#%% " + path.name.encode() + b"\n" + part for path, part in zip(sources, parts))
        source = os.memfd_create("kernel")
        os.write(source, whole)
        self.socket, theirs = socket.socketpair()
        out, out_w = os.pipe()
        err, err_w = os.pipe()
        given = [os.open("/dev/null", os.O_RDONLY), out_w, err_w, theirs.fileno(), source]
        moved = [os.dup2(fd, 200 + n) for n, fd in enumerate(given)]  # out of each other's way

        def arrange():
            os.setpgid(0, 0)
            for number in range(5):
                os.dup2(200 + number, number)

        self.process = subprocess.Popen([program, *arguments], cwd=cwd, env=env, preexec_fn=arrange, pass_fds=range(3, 5), close_fds=True)
        for fd in [*moved, out_w, err_w, source, given[0]]:
            os.close(fd)
        theirs.close()
        self.pipes = {out: "stdout", err: "stderr"}
        self.buffer = b""
        self.number = 0
        self.modules = []
        self.stray = {"stdout": b"", "stderr": b""}
        self.ready = self.next_frame(time.monotonic() + 30, Cell())

    def send(self, message):
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def start(self, code):
        self.number += 1
        self.send({"op": "run", "id": f"r{self.number}", "code": code})
        return Cell()

    def run(self, code, timeout=30):
        return self.finish(self.start(code), timeout)

    def finish(self, cell, timeout=30):
        deadline = time.monotonic() + timeout
        while cell.done is None:
            frame = self.next_frame(deadline, cell)
            if frame["op"] == "modules":
                self.modules += frame["names"]
                continue
            assert frame.get("id") == f"r{self.number}", frame
            if frame["op"] == "done":
                cell.done = frame
            else:
                frame["written"] = cell.stdout  # before the frame
                cell.frames.append(frame)
        return cell

    def wait_output(self, cell, text, timeout=30):
        deadline = time.monotonic() + timeout
        while text not in cell.stdout:
            self.pump(deadline, cell)

    def next_frame(self, deadline, cell):
        while True:
            if len(self.buffer) >= 4:
                size = struct.unpack(">I", self.buffer[:4])[0]
                if len(self.buffer) >= 4 + size:
                    frame, self.buffer = json.loads(self.buffer[4 : 4 + size]), self.buffer[4 + size :]
                    self.drain(cell)
                    if frame.get("wait"):
                        self.send({"op": "shown"})
                    return frame
            self.pump(deadline, cell)

    def drain(self, cell):
        while readable := select.select(list(self.pipes), [], [], 0)[0]:
            self.read_pipes(readable, cell)

    def read_pipes(self, readable, cell):
        for fd in readable:
            data = os.read(fd, 65536)
            if not data:
                del self.pipes[fd]
                continue
            setattr(cell, self.pipes[fd], getattr(cell, self.pipes[fd]) + data)

    def pump(self, deadline, cell):
        left = deadline - time.monotonic()
        readable = select.select([self.socket, *self.pipes], [], [], max(left, 0))[0]
        if not readable:
            raise TimeoutError(f"the kernel said nothing in time; stdout {cell.stdout[-500:]!r}, stderr {cell.stderr[-500:]!r}")
        self.read_pipes([fd for fd in readable if fd is not self.socket], cell)
        if self.socket in readable:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError(f"the kernel closed its socket; stderr {cell.stderr!r}")
            self.buffer += data

    def interrupt(self):
        self.send({"op": "interrupt", "id": f"r{self.number}"})
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        self.socket.close()
        try:
            self.process.wait(5)
        finally:
            self.process.kill()
            self.process.wait()
            for fd in self.pipes:
                os.close(fd)
