"""Drives one kernel alone, as execd does: started as kernels.inc says, frames over a socketpair on descriptor 3, its source in a
memory file on descriptor 4, output through two pipes."""

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEADLINE = 90.0  # a kernel that compiles, on a machine that does other things as well


class Run:
    def __init__(self):
        self.out, self.err, self.result, self.error, self.displays, self.count = b"", b"", None, None, [], None

    @property
    def stdout(self):
        return self.out.decode()

    @property
    def stderr(self):
        return self.err.decode()

    @property
    def text(self):
        return self.result and self.result["text/plain"]

    def __repr__(self):
        return f"<run out={self.out[:500]!r} err={self.err[:500]!r} result={self.result} error={self.error}>"


def row(language):
    """Program, arguments and source file of a language, from the table that execd uses."""
    table = "\n".join(line for line in (HERE / "kernels" / "kernels.inc").read_text().split("\n") if not line.startswith("//"))
    match = re.search(rf'KERNEL\("{language}", "[^"]*", "([^"]*)", "[^"]*",\s*\(Words\{{(.*?)\}}\),\s*\(Words\{{"([^"]*)"\}}\)\)', table, re.S)
    arguments = re.sub(r'"\s*\n\s*"', "", match[2])  # neighbours are one string, as in C
    return match[1].split()[0], re.findall(r'"([^"]*)"', arguments), match[3]


class Kernel:
    def __init__(self, language, cwd=None, env=None):
        program, arguments, file = row(language)
        argv = [program, *arguments]
        source = os.memfd_create("kernel")
        os.write(source, (HERE / "kernels" / file).read_bytes())
        ours, theirs = socket.socketpair()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()

        def keep_three():
            os.setpgid(0, 0)
            # Above both first: either may be the number that the other needs.
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (theirs.fileno(), source)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            os.closerange(5, 200)

        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out_write, stderr=err_write, cwd=cwd, close_fds=False,
            preexec_fn=keep_three, env=env or os.environ,
        )  # fmt: skip
        theirs.close()
        os.close(source)
        os.close(out_write)
        os.close(err_write)
        self.socket, self.out, self.err = ours, out_read, err_read
        self.buffer, self.runs = b"", 0
        self.current = Run()
        self.ready = self.wait_for("ready")

    def pump(self, deadline):
        """One round of reading; output first, so that it belongs to the run whose frames follow it."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"nothing more from the kernel; so far {self.current}")
        readable, _, _ = select.select([self.out, self.err, self.socket], [], [], left)
        for fd, name in ((self.out, "out"), (self.err, "err")):
            while select.select([fd], [], [], 0)[0]:
                data = os.read(fd, 1 << 16)
                if not data:
                    break
                setattr(self.current, name, getattr(self.current, name) + data)
        if self.socket in readable:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError(f"the kernel ended with {self.process.wait(10)}; {self.current}")
            self.buffer += data

    def frame(self, deadline):
        while True:
            if len(self.buffer) >= 4:
                (length,) = struct.unpack(">I", self.buffer[:4])
                if len(self.buffer) >= 4 + length:
                    body, self.buffer = self.buffer[4 : 4 + length], self.buffer[4 + length :]
                    return json.loads(body)
            self.pump(deadline)

    def wait_for(self, op):
        frame = self.frame(time.monotonic() + DEADLINE)
        assert frame["op"] == op, frame
        return frame

    def start(self, code):
        self.runs += 1
        self.current = Run()
        self.id = f"run-{self.runs}"
        body = json.dumps({"op": "run", "id": self.id, "code": code}).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def finish(self, deadline=DEADLINE):
        until = time.monotonic() + deadline
        run = self.current
        while True:
            frame = self.frame(until)
            assert frame["id"] == self.id, frame
            if frame["op"] == "result":
                run.result, run.count = frame["data"], frame["count"]
            elif frame["op"] == "display":
                run.displays.append(frame["data"])
            elif frame["op"] == "error":
                assert run.error is None, "two errors in one run"
                run.error = frame
            elif frame["op"] == "done":
                run.count = frame["count"]
                return run
            else:
                raise AssertionError(frame)

    def run(self, code):
        self.start(code)
        return self.finish()

    def wait_output(self, text, deadline=DEADLINE):
        until = time.monotonic() + deadline
        while text not in self.current.out:
            self.pump(until)

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        """Ends it as execd does, by closing the socket; the status with which it left."""
        self.socket.close()
        try:
            return self.process.wait(20)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            os.close(self.out)
            os.close(self.err)


class KernelTest(unittest.TestCase):
    """One kernel for all tests of a class; they know that state is shared."""

    language = None

    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel(cls.language)

    @classmethod
    def tearDownClass(cls):
        status = cls.kernel.close()
        assert status == 0, f"the kernel left with {status}"

    def value(self, code):
        run = self.kernel.run(code)
        self.assertIsNone(run.error, run)
        return run.text

    def fails(self, code, ename, evalue=""):
        run = self.kernel.run(code)
        self.assertIsNotNone(run.error, run)
        self.assertEqual(run.error["ename"], ename, run)
        self.assertIn(evalue, run.error["evalue"])
        return run

    def interrupted(self, code):
        self.kernel.start(code)
        self.kernel.wait_output(b"begun")
        self.kernel.interrupt()
        run = self.kernel.finish(20)
        self.assertIsNotNone(run.error, run)
        self.assertEqual(run.error["ename"], "KeyboardInterrupt", run)


def main(program):
    """Runs the tests of the calling file; 77, which ctest knows as skipped, when the interpreter is missing."""
    if not shutil.which(program):
        print(f"skipped: {program} is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
