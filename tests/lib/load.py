"""Callers that keep creating sandboxes while a test pulls the service away under them."""

import threading
import time

from . import rawhttp
from .api import create_body


class Creators:
    """Threads that create without pause. `answered` holds what the server has promised: ids from 202 answers."""

    def __init__(self, api, threads=4, also_delete=False):
        self.api = api
        self.also_delete = also_delete
        self.answered = set()
        self.deleted = set()
        self.wrong = []  # answers that make no sense, as opposed to a connection that broke
        self.started = 0
        self.mutex = threading.Lock()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(90)
            assert not thread.is_alive(), "a creator hangs: some request was never answered nor cut"

    def wait_until_busy(self, count, timeout=30):
        deadline = time.monotonic() + timeout
        while self.started < count:
            assert time.monotonic() < deadline, f"only {self.started} creates were started in {timeout} s"
            time.sleep(0.002)

    def work(self):
        while not self.stopping.is_set():
            self.started += 1
            try:
                reply = self.api.call("POST", "/sandboxes", json=create_body(), timeout=60)
                if reply.status == 202:
                    self.remember(reply.json["id"])
                elif reply.status not in (429, 500, 502, 503):
                    self.wrong.append(reply)
            except (OSError, rawhttp.Closed):
                time.sleep(0.01)  # the service is down

    def remember(self, sandbox_id):
        with self.mutex:
            self.answered.add(sandbox_id)
            self.api.service.scope.sandbox_ids.add(sandbox_id)
        if self.also_delete:
            # Counted as deleted when the request was sent: a cut connection leaves open whether it was done.
            with self.mutex:
                self.deleted.add(sandbox_id)
            status = self.api.delete(sandbox_id).status
            if status not in (204, 404, 500, 503):
                self.wrong.append(status)

    @property
    def alive(self):
        return self.answered - self.deleted
