"""A port of this host's loopback on the loopback of a Docker engine's network, for registries that tests have here and engines pull from.

A socket belongs to the network in which it was made, so one process has both ends.
"""

import socket
import threading
from contextlib import suppress

# Makes one for a port, where the sandboxes of this run are containers.
OPENERS = []


def open_doorways(port):
    return [opener(port) for opener in OPENERS]


def close_doorways(doorways):
    for doorway in doorways:
        doorway.close()


class Doorway:
    def __init__(self, engine, port):
        self.port = port
        with engine.network():
            self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with suppress(OSError):  # closed
            while True:
                inside, _ = self.listener.accept()
                threading.Thread(target=self.join, args=(inside,), daemon=True).start()

    def join(self, inside):
        with inside, suppress(OSError):  # nobody listens here any more: that is what the engine sees, too
            with socket.create_connection(("127.0.0.1", self.port)) as here:
                back = threading.Thread(target=copy, args=(here, inside), daemon=True)
                back.start()
                copy(inside, here)
                back.join()

    def close(self):
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self.listener.close()


def copy(source, target):
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
