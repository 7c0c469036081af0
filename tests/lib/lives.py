"""Lives of sandboxes (create, then delete) at a rate that does not wait for the server: what overload really is."""

import asyncio
import json
import time
from collections import Counter

from .api import create_body


class Lives:
    def __init__(self, api):
        self.address = api.address
        self.headers = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nOPEN-SANDBOX-API-KEY: {api.key}\r\n"
        self.body = json.dumps(create_body())
        self.idle = []  # connections
        self.creates, self.deletes = Counter(), Counter()  # statuses
        self.complete = 0

    def closed(self, workers, seconds):
        """Complete lives per second of so many clients that each wait for their answers."""
        return asyncio.run(self.run_closed(workers, seconds))

    def open(self, rate, seconds):
        """The same when so many lives per second begin, whatever has become of the others."""
        return asyncio.run(self.run_open(rate, seconds))

    async def run_closed(self, workers, seconds):
        end = time.monotonic() + seconds

        async def work():
            while time.monotonic() < end:
                await self.live(end)

        await asyncio.gather(*(work() for _ in range(workers)))
        return self.take(seconds)

    async def run_open(self, rate, seconds):
        start = time.monotonic()
        end = start + seconds
        tasks = []
        while (now := time.monotonic()) < end:
            while len(tasks) < (now - start) * rate:
                tasks.append(asyncio.create_task(self.live(end)))
            await asyncio.sleep(0.005)
        await asyncio.gather(*tasks)  # so that nothing is left behind; they count no more
        return self.take(seconds)

    def take(self, seconds):
        for _, writer in self.idle:
            writer.close()
        self.idle.clear()
        done, self.complete = self.complete, 0
        return done / seconds

    async def live(self, end):
        status, answer = await self.exchange("POST", "/v1/sandboxes", self.body)
        self.creates[status] += 1
        if status != 202:
            return
        while True:
            status, _ = await self.exchange("DELETE", f"/v1/sandboxes/{answer['id']}")
            self.deletes[status] += 1
            if status == 204:
                break
            await asyncio.sleep(0.2)  # nothing may be left behind
        if time.monotonic() < end:
            self.complete += 1

    async def exchange(self, method, path, body=""):
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(*self.address)
        writer.write(f"{method} {path} HTTP/1.1\r\n{self.headers}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        answer = await reader.readexactly(length)
        if "connection: close" in head:
            writer.close()
        else:
            self.idle.append((reader, writer))
        status = int(head.split(" ")[1])
        return status, json.loads(answer) if answer and status == 202 else None
