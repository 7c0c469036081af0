"""Things of the host that a sandbox must not reach, made by the test and taken away again."""

import contextlib
import ctypes
import fcntl
import os
import secrets
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from lib.waiting import wait_for

IPC_CREAT, IPC_EXCL, IPC_RMID = 0o1000, 0o2000, 0


@contextlib.contextmanager
def canaries(directories):
    """Two files in each directory, one for root only and one for everybody."""
    made = []
    try:
        for directory in directories:
            for mode in (0o600, 0o644):
                path = Path(directory) / f"osb-canary-{secrets.token_hex(6)}-{mode:o}"
                path.write_text("a canary of the security tests\n")
                path.chmod(mode)
                made.append(path)
        yield made
    finally:
        for path in made:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def process():
    """PID:NAME of a process that only waits; the name is its own, so that no other can be taken for it."""
    name = f"osbv{secrets.token_hex(4)}"  # the kernel keeps 15 characters
    waiter = subprocess.Popen(["sh", "-c", f"printf {name} > /proc/self/comm; read forever"], stdin=subprocess.PIPE)
    try:
        wait_for(lambda: Path(f"/proc/{waiter.pid}/comm").read_text().strip() == name, 5, "the process has its name")
        yield f"{waiter.pid}:{name}"
    finally:
        waiter.stdin.close()
        waiter.wait()


@contextlib.contextmanager
def shared_memory():
    """The key of a System V segment that everybody on the host may attach."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x05B00000 | secrets.randbits(20)
    segment = libc.shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0o666)
    assert segment >= 0, os.strerror(ctypes.get_errno())
    try:
        yield key
    finally:
        libc.shmctl(segment, IPC_RMID, None)


@contextlib.contextmanager
def tcp_service():
    """PORT/GREETING of a service on the loopback interfaces that greets whoever connects."""
    greeting = f"osb-greeting-{secrets.token_hex(6)}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with answering(listener, greeting.encode()):
            yield f"{listener.getsockname()[1]}/{greeting}"


@contextlib.contextmanager
def abstract_socket():
    name = f"osb-abstract-{secrets.token_hex(6)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        with answering(listener, b"hello"):
            yield name


@contextlib.contextmanager
def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        try:
            with answering(listener, b"hello"):
                yield path
        finally:
            Path(path).unlink(missing_ok=True)


@contextlib.contextmanager
def loop_device(path):
    """The name of a loop device over a file made here."""
    with open(path, "wb") as file:
        file.truncate(1 << 20)
    done = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no loop device to be had: {done.stderr.strip()}")
    device = done.stdout.strip()
    try:
        yield device.removeprefix("/dev/")
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")


@contextlib.contextmanager
def core_handler(directory):
    """A core handler of the host for the time of the test; yields the directory in which it notes each run, by process id.

    A helper puts the setting back, also when this process is killed; a lock keeps other runs of this test away meanwhile.
    """
    if not os.access(CORE_PATTERN, os.W_OK):
        pytest.skip(f"{CORE_PATTERN} cannot be written here")
    notes = Path(directory) / "notes"
    notes.mkdir()
    handler = Path(directory) / "handler"
    handler.write_text(f"#!/bin/sh\n: > {notes}/$1\nexec cat > /dev/null\n")
    handler.chmod(0o755)
    with open("/tmp/osb-test-core-pattern.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = CORE_PATTERN.read_text().rstrip("\n")
        restore = ["sh", "-c", f'cat > /dev/null; printf %s "$1" > {CORE_PATTERN}', "sh", before]
        helper = subprocess.Popen(restore, stdin=subprocess.PIPE, start_new_session=True, pass_fds=(lock.fileno(),))
        try:
            try:
                CORE_PATTERN.write_text(f"|{handler} %P")
            except OSError as error:
                pytest.skip(f"{CORE_PATTERN} cannot be written here: {error}")
            yield notes
        finally:
            helper.stdin.close()
            helper.wait()
            assert CORE_PATTERN.read_text().rstrip("\n") == before


@contextlib.contextmanager
def answering(listener, greeting):
    ended = threading.Event()

    def serve():
        listener.settimeout(0.05)
        while not ended.is_set():
            with contextlib.suppress(TimeoutError, OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(greeting)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
