"""A program for inside a sandbox that sends and receives as much as it can, and tells how much that was.

GET /count gives both numbers. GET /flood is an answer without an end. POST /sink reads its body only while the file /tmp/read
exists. A WebSocket does both: it floods from the start, and reads under the same condition.
"""

import os
import socket
import sys
import threading

PIECE = b"x" * 65536
counts = {"sent": 0, "received": 0}


def flood(connection):
    try:
        while True:
            counts["sent"] += connection.send(PIECE)
    except OSError:
        pass


def sink(connection):
    try:
        while True:
            if not os.path.exists("/tmp/read"):
                threading.Event().wait(0.05)
                continue
            got = len(connection.recv(65536))
            if got == 0:
                return
            counts["received"] += got
    except OSError:
        pass


def serve(connection):
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        if b"/count" in head:
            body = b"%d %d" % (counts["sent"], counts["received"])
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        elif b"Upgrade" in head:
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            threading.Thread(target=flood, args=(connection,), daemon=True).start()
            sink(connection)
        elif head.startswith(b"GET"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            flood(connection)
        else:
            sink(connection)


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
