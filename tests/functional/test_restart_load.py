"""The server is killed again and again under clients that retry: whatever it acknowledged holds."""

import multiprocessing
import random
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from lib import leaks, rawhttp
from lib.api import Api, create_body
from lib.waiting import wait_for

CLIENTS = 50
MINUTES = 2
EVERY = 5
# Answers that say "not now".
NOT_NOW = (429, 500, 502, 503)
MOST_LATE = 2.0


class Client(threading.Thread):
    """Retries each of its requests until it is answered, as a careful client does. Notes what was acknowledged."""

    def __init__(self, api, number, stopping):
        super().__init__(daemon=True)
        self.api, self.number, self.stopping = api, number, stopping
        self.random = random.Random(number)
        self.began = time.monotonic()
        self.sandbox = None
        self.metadata = {}
        self.expires = None
        self.short = []  # ids with their times of expiry and handles
        self.keys = 0
        self.wrong = []
        self.done = {"create": 0, "patch": 0, "renew": 0}

    def run(self):
        try:
            while not self.stopping.is_set():
                self.act()
        except Exception as error:  # noqa: BLE001  a client that dies silently would prove nothing
            self.wrong.append(repr(error))

    def retry(self, what, good, *call, **more):
        """The answer, or nothing when the time is up before there is one."""
        while True:
            try:
                reply = self.api.call(*call, timeout=60, **more)
                if reply.status in good:
                    self.done[what] += 1
                    return reply
                if reply.status not in NOT_NOW:
                    self.wrong.append(f"{what}: {reply}")
                    return None
                time.sleep(0.1)
            except (OSError, rawhttp.Closed):
                time.sleep(0.02)  # the server is down
            if self.stopping.is_set() and what != "create":
                return None

    def create(self, **fields):
        """Tried until it is answered, also after the end: one that was made is known."""
        self.keys += 1
        key = f"client-{self.number}-{self.keys}"
        reply = self.retry("create", (202,), "POST", "/sandboxes", json=create_body(**fields), headers={"Idempotency-Key": key})
        if reply is None:
            return None
        self.api.service.scope.sandbox_ids.add(reply.json["id"])
        return reply.json

    def act(self):
        chance = self.random.random()
        if self.sandbox is None:
            made = self.create(timeout=3600, metadata={"client": str(self.number)})
            if made:
                self.sandbox, self.metadata = made["id"], {"client": str(self.number)}
        elif chance < 0.45:
            key, value = f"k{self.random.randrange(4)}", str(self.random.randrange(10**6))
            if self.retry("patch", (200,), "PATCH", f"/sandboxes/{self.sandbox}/metadata", json={key: value}):
                self.metadata[key] = value
            else:
                self.metadata[key] = None  # sent, perhaps done
        elif chance < 0.9:
            at = datetime.now(timezone.utc) + timedelta(seconds=self.random.randrange(1800, 7200))
            at = at.replace(microsecond=0)
            if self.retry("renew", (200,), "POST", f"/sandboxes/{self.sandbox}/renew-expiration", json={"expiresAt": at.isoformat()}):
                self.expires = at
            else:
                self.expires = None
        elif len(self.short) < 1 + (time.monotonic() - self.began) / 40:  # all the time, and not too many
            self.make_short()
        time.sleep(self.random.random() * 0.2)

    def make_short(self):
        """One that is to expire while the server is being killed."""
        made = self.create(timeout=60, metadata={"short": str(self.number)})
        if not made:
            return
        handle = self.api.service.scope.handle(made["id"])
        assert handle != made["id"], "its row must be there"
        at = datetime.now(timezone.utc) + timedelta(seconds=self.random.randrange(3, 20))
        path = f"/sandboxes/{made['id']}/renew-expiration"
        if self.retry("renew", (200,), "POST", path, json={"expiresAt": at.isoformat()}):
            self.short.append((made["id"], at, handle))


class Ends:
    """When the processes of sandboxes are really gone, whoever serves: looks at the kernel, not at the server. A process of its own:
    beside fifty busy clients in one interpreter a look would come seconds late."""

    def __init__(self, service):
        assert service.scope.knows_groups(), "which groups are the service's is not known before its first sandbox"
        context = multiprocessing.get_context("fork")
        self.stopping = context.Event()
        self.results, told = context.Pipe(duplex=False)
        self.process = context.Process(target=self.watch, args=(service, told), daemon=True)
        self.process.start()

    def watch(self, service, told):
        gone, living, slowest = {}, set(), 0.0
        while not self.stopping.is_set():
            began = time.monotonic()
            alive = service.scope.running_handles()
            now = datetime.now(timezone.utc)
            slowest = max(slowest, time.monotonic() - began)
            for handle in living - alive:
                gone[handle] = now
            living = alive
            time.sleep(0.05)
        told.send((gone, slowest))

    def finish(self):
        """Handles with the moments when they were first seen without processes, and how long the slowest look took."""
        self.stopping.set()
        assert self.results.poll(30), "the watcher does not answer"
        found = self.results.recv()
        self.process.join(30)
        return found


@pytest.mark.long
def test_killed_every_five_seconds_under_fifty_clients(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    stopping = threading.Event()
    clients = [Client(api, number, stopping) for number in range(CLIENTS)]
    ends = Ends(service)  # before there are threads
    for client in clients:
        client.start()
    kills = 0
    until = time.monotonic() + MINUTES * 60
    next_kill = time.monotonic() + EVERY
    while time.monotonic() < until:
        time.sleep(max(0, next_kill - time.monotonic()))
        next_kill += EVERY
        service.kill_server(timeout=30)
        kills += 1
    stopping.set()
    for client in clients:
        client.join(90)
        assert not client.is_alive(), "a client hangs: a request was never answered nor cut"
    # Those that are still to expire get their time, with somebody watching.
    last = max((at for client in clients for _, at, _ in client.short), default=datetime.now(timezone.utc))
    time.sleep(max(0, (last - datetime.now(timezone.utc)).total_seconds()) + MOST_LATE + 1)
    gone, slowest = ends.finish()
    wrong = [problem for client in clients for problem in client.wrong]
    assert not wrong, wrong[:5]
    done = {verb: sum(client.done[verb] for client in clients) for verb in ("create", "patch", "renew")}
    print(f"{kills} kills; acknowledged: {done}")
    assert kills >= MINUTES * 60 / EVERY - 6

    listed = {item["id"]: item for item in api.list_all()}
    for client in clients:
        assert client.sandbox in listed, "an acknowledged sandbox is lost"
        found = listed[client.sandbox]
        assert found["status"]["state"] == "Running"
        for key, value in client.metadata.items():
            assert value is None or found["metadata"][key] == value, f"a change of {key} is lost"
        if client.expires:
            assert datetime.fromisoformat(found["expiresAt"].replace("Z", "+00:00")) == client.expires, "a renewal is lost"
        assert api.ping(client.sandbox)
    # One create, one sandbox: what was retried is not there twice.
    longs = [item for item in listed.values() if "client" in item["metadata"]]
    assert len(longs) == CLIENTS, "a retried create made two"

    late, early = [], []
    for client in clients:
        for name, at, handle in client.short:
            assert name not in listed, "an expired sandbox is still there"
            if handle in gone:
                (late if gone[handle] >= at else early).append((gone[handle] - at).total_seconds())
    assert not [seconds for seconds in early if seconds < -0.2], f"ended before its time: {min(early)}"
    worst = max(late, default=0)
    print(f"{len(late) + len(early)} expiries seen in the kernel, the latest {worst:.2f} s late; the slowest look took {slowest:.2f} s")
    assert len(late) + len(early) >= 20
    assert worst <= MOST_LATE

    for client in clients:
        assert api.delete(client.sandbox).status == 204
    wait_for(lambda: not api.list_all(), 30, "everything is gone")
    baseline.rows["opensandbox.db:create_keys"] = done["create"]  # kept for a day: one for each, however often it was sent
    leaks.assert_nothing_leaked(service, baseline)
