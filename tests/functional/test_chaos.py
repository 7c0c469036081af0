"""Kills, stops and a disk that fills up, beside mixed load: what was promised to a client holds afterwards.

Every client notes what it was answered. At the end the service is left alone for a moment and compared with those notes: a
sandbox that was promised is there and works, one whose delete was answered is gone, metadata, expiry and ends are what was
said last, and when all is deleted nothing is left.
"""

import os
import random
import signal
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from lib import leaks, rawhttp
from lib.api import Api
from lib.small_disk import fill, free, small_disk
from lib.waiting import wait_for

EXIT = "sleep 0.{delay:02d}; echo word-{code}; exit {code}"
# Answers that say "not now": the client may try again.
NOT_NOW = (429, 500, 503)


class Client(threading.Thread):
    """One user of the service. What it was answered is in its attributes; it never asks about another one's sandboxes."""

    def __init__(self, api, seed, stopping):
        super().__init__(daemon=True)
        self.api, self.random, self.stopping = api, random.Random(seed), stopping
        self.alive = {}  # id -> what must be true of it: metadata, expiry, paused
        self.ending = {}  # id -> exit code
        self.unsure = set()  # a delete was sent and not answered
        self.wrong = []
        self.done = 0

    def run(self):
        while not self.stopping.is_set():
            try:
                self.act()
                self.done += 1
            except (OSError, rawhttp.Closed):
                time.sleep(0.01)  # the service is down
            except Exception as error:  # noqa: BLE001  a client that dies silently would prove nothing
                self.wrong.append(repr(error))
                return

    def act(self):
        chance = self.random.random()
        known = [name for name in self.alive if name not in self.unsure]
        if len(known) < 2 or (chance < 0.3 and len(known) < 6):
            self.create()
        elif chance < 0.45:
            self.create_that_ends()
        elif chance < 0.6:
            self.delete(self.random.choice(known))
        elif chance < 0.7:
            self.patch(self.random.choice(known))
        elif chance < 0.8:
            self.renew(self.random.choice(known))
        elif chance < 0.9:
            self.pause_or_resume(self.random.choice(known))
        else:
            self.work_in(self.random.choice(known))

    def expect(self, reply, *fine):
        if reply.status in fine:
            return reply.status == fine[0]
        if reply.status not in NOT_NOW:
            self.wrong.append(str(reply))
        return False

    def create(self):
        reply = self.api.post_create(timeout=3600)
        if self.expect(reply, 202):
            self.alive[reply.json["id"]] = {}

    def create_that_ends(self):
        code = self.random.randrange(1, 100)
        script = EXIT.format(delay=self.random.randrange(0, 60), code=code)
        reply = self.api.post_create(timeout=3600, entrypoint=["sh", "-c", script])
        # One that ends before its create is answered may fail it.
        if self.expect(reply, 202, 400):
            self.ending[reply.json["id"]] = code

    def delete(self, name):
        self.unsure.add(name)
        if self.expect(self.api.delete(name), 204):
            del self.alive[name]
            self.unsure.discard(name)

    def patch(self, name):
        value = str(self.random.randrange(1 << 30))
        self.alive[name]["metadata"] = None  # while it is not answered either may be true
        if self.expect(self.api.call("PATCH", f"/sandboxes/{name}/metadata", json={"n": value}), 200):
            self.alive[name]["metadata"] = value

    def renew(self, name):
        at = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=self.random.randrange(3600, 7200))
        self.alive[name]["expires"] = None
        if self.expect(self.api.call("POST", f"/sandboxes/{name}/renew-expiration", json={"expiresAt": at.isoformat()}), 200):
            self.alive[name]["expires"] = at

    def pause_or_resume(self, name):
        was = self.alive[name].get("paused", False)
        self.alive[name]["paused"] = None
        verb = "resume" if was else "pause"
        # 409: an unanswered one before this one was carried out.
        if self.expect(self.api.call("POST", f"/sandboxes/{name}/{verb}"), 202, 409):
            self.alive[name]["paused"] = not was

    def work_in(self, name):
        if self.alive[name].get("paused", False) is not False:
            return
        word = str(self.random.randrange(1 << 30))
        reply = self.api.execd(name, "POST", "/command", json={"command": f"echo {word}"})
        if reply.status == 200 and b"execution_complete" in reply.body and word.encode() not in reply.body:
            self.wrong.append(f"another word than {word}: {reply}")


def strike(service, chance):
    """One blow. Afterwards the service runs again."""
    blow = chance.choice(["server", "launcher", "both", "term", "term server", "stop"])
    old = service.server_pid()
    if blow == "server":
        os.kill(old, signal.SIGKILL)
    elif blow == "launcher":
        service.kill_launcher()
    elif blow == "both":
        service.kill_both()
    elif blow == "term":
        service.stop()
    elif blow == "term server":
        os.kill(old, signal.SIGTERM)
    else:
        os.kill(old, signal.SIGSTOP)
        time.sleep(chance.random() * 0.2)
        os.kill(old, signal.SIGCONT)
    if service.process.poll() is not None:
        service.spawn()
    # One that was told to end answers until it does: that is not yet the next one.
    stays = blow == "stop"
    wait_for(lambda: answers(service) and (service.server_pid(required=False) != old or stays), 20, f"the service answers again after: {blow}")
    return blow


def answers(service):
    assert service.process.poll() is None, f"the service ended:\n{service.log_tail()}"
    try:
        # A service with a full disk may say that it is not well; it answers all the same.
        return service.server_pid(required=False) and rawhttp.request(service.address, "GET", "/health", timeout=5).status in (200, 503)
    except (OSError, rawhttp.Closed):
        return False


@pytest.mark.parametrize("blows", [12, pytest.param(1000, marks=pytest.mark.long)])
def test_promises_hold(new_service, blows):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    service = new_service(start=False)
    with small_disk(service, 256) as disk:
        service.start()
        api = Api(service)
        api.delete(api.create()["id"])  # what every service keeps is there
        before = leaks.snapshot(service)
        stopping = threading.Event()
        clients = [Client(api, chance.random(), stopping) for _ in range(6)]
        for client in clients:
            client.start()
        full = False
        try:
            for number in range(blows):
                if chance.random() < 0.25:
                    (free if full else fill)(disk)
                    full = not full
                goal = sum(client.done for client in clients) + chance.randrange(2, 20)
                deadline = time.monotonic() + 1  # a full disk may leave little to do
                while sum(client.done for client in clients) < goal and time.monotonic() < deadline:
                    time.sleep(0.002)
                blow = strike(service, chance)
                wrong = [text for client in clients for text in client.wrong]
                assert not wrong, f"after blow {number} ({blow}), seed {seed}: {wrong[:3]}"
        finally:
            stopping.set()
            for client in clients:
                client.join(60)
            free(disk)
        assert not any(client.is_alive() for client in clients), "a request was neither answered nor cut"
        wait_for(service.is_healthy, 20, "with room on its disk the service is well again")
        # One that was started while the disk was full keeps its database to itself: nobody else could count the rows.
        if any("database is locked" in name for name in leaks.row_counts(service.state_dir)):
            service.stop()
            service.start()
        settle(api, clients, seed)
        for item in api.list_all():
            assert api.delete(item["id"]).status == 204
        leaks.assert_nothing_leaked(service, before, timeout=30)


def settle(api, clients, seed):
    listed = {item["id"]: item for item in api.list_all()}
    promised = {name: facts for client in clients for name, facts in client.alive.items() if name not in client.unsure}
    lost = set(promised) - set(listed)
    assert not lost, f"promised and gone (seed {seed}): {sorted(lost)[:3]}"
    for name, facts in promised.items():
        check_living(api, name, facts, seed)
    for client in clients:
        for name, code in client.ending.items():
            check_end(api, name, code, seed)
    print(f"{len(promised)} live, {sum(len(client.ending) for client in clients)} ended, {sum(client.done for client in clients)} requests")


def check_living(api, name, facts, seed):
    item = api.get(name)
    state = item["status"]["state"]
    assert state in ("Running", "Paused"), f"{name} (seed {seed}): {item['status']}"
    if facts.get("paused") is not None:
        assert (state == "Paused") == facts["paused"], f"{name} (seed {seed}): {facts} but {item['status']}"
    if facts.get("metadata") is not None:
        assert item["metadata"].get("n") == facts["metadata"], f"{name} (seed {seed}): {facts} but {item['metadata']}"
    if facts.get("expires") is not None:
        assert datetime.fromisoformat(item["expiresAt"].replace("Z", "+00:00")) == facts["expires"], f"{name} (seed {seed})"
    if state == "Paused":
        assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    assert api.run(name, "echo $OPENSANDBOX_ID").stdout == name


def check_end(api, name, code, seed):
    def ended():
        status = api.status(name)
        return status["state"] in ("Failed", "Terminated") and status

    status = wait_for(ended, 10, f"the end of {name} (seed {seed})")
    assert status["reason"] == "ENTRYPOINT_FAILED" and str(code) in status["message"], f"{name} ended with {code} (seed {seed}): {status}"
