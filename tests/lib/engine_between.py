"""Something between a service and its engine's socket, which lets a test do something at the moment when a certain call is made."""

import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from .docker_engine import GROUP


class Between:
    """`then` is called once, before the first call that has `part` in its first line reaches the engine."""

    def __init__(self, engine, part, then):
        self.engine, self.part, self.then = engine, part.encode(), then
        self.directory = tempfile.TemporaryDirectory(prefix="osb-between-", dir="/var/tmp")
        Path(self.directory.name).chmod(0o755)
        self.socket = Path(self.directory.name) / "docker.sock"
        self.lock = threading.Lock()

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket))
        shutil.chown(self.socket, 0, GROUP)
        self.socket.chmod(0o660)
        self.listener.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.directory.cleanup()

    def serve(self):
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(str(self.engine.socket))
                threading.Thread(target=self.copy, args=(client, there, True), daemon=True).start()
                threading.Thread(target=self.copy, args=(there, client, False), daemon=True).start()

    def copy(self, source, to, is_asking):
        with suppress(OSError):
            while data := source.recv(65536):
                if is_asking and self.part in data.split(b"\r\n", 1)[0]:
                    with self.lock:
                        then, self.then = self.then, None
                        if then:
                            then()
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
