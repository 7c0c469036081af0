"""A program for inside a sandbox that accepts any number of WebSockets and sends back what it receives."""

import asyncio
import base64
import hashlib
import resource
import sys

limit = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))


async def serve(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(line.split(b":")[1].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n" % accept)
        while data := await reader.read(4096):
            writer.write(data)
    except (StopIteration, asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    await (await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1024)).serve_forever()


asyncio.run(main())
