"""What forks, rollbacks and commits pass through is seen by nobody, and copies have everything that their sandbox was made with."""

import threading
from contextlib import contextmanager

import pytest
from lib import leaks
from lib import snapshots as of
from lib.api import Api
from lib.rawhttp import Closed
from lib.waiting import wait_for


@pytest.fixture
def api(new_service):
    return Api(new_service())


@contextmanager
def lookers(api, count=3):
    """Lists snapshots again and again, while there is a server, deletes whatever it sees, and returns what that was."""
    over, looked, seen = threading.Event(), [0] * count, []

    def look_once(mine):
        page = api.call("GET", "/snapshots").json
        looked[mine] += 1
        if page["items"] or page["pagination"]["totalItems"]:
            seen.append(page)
        for item in page["items"]:
            seen.append(api.call("DELETE", f"/snapshots/{item['id']}"))

    def look(mine):
        while not over.is_set():
            try:
                look_once(mine)
            except (OSError, Closed):
                over.wait(0.001)  # there is none now

    threads = [threading.Thread(target=look, args=[mine]) for mine in range(count)]
    for one in threads:
        one.start()
    try:
        yield seen
    finally:
        over.set()
        for one in threads:
            one.join()
    assert min(looked) >= 10, looked


def commit(api, sandbox, name):
    assert api.call("POST", "/images/commit", json={"name": name, "sandboxId": sandbox}).status == 201
    assert api.call("DELETE", f"/images?name={name}").status == 204


def test_what_a_copy_passes_through_is_not_seen(api):
    source = api.create()["id"]
    commit(api, source, "first")  # makes the directories of the store
    assert api.delete(source).status == 204
    baseline = leaks.snapshot(api.service)
    source = api.create()["id"]
    api.run(source, "head -c 20M /dev/urandom > /root/f; cd /root; sha256sum f > sum")
    with lookers(api) as seen:
        for turn in range(6):
            for one in of.fork(api, source, 2):
                assert api.run(one, "cd /root && sha256sum -c sum").exit_code == 0
                assert api.delete(one).status == 204
            commit(api, source, f"passing:{turn}")
    assert not seen, seen[:3]
    assert api.delete(source).status == 204
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "nothing is left of what was passed through")
    leaks.assert_nothing_leaked(api.service, baseline)


def captured(service):
    """Whether a copy is made at this moment."""
    there = of.on_disk(service)
    return there["kept"] or there["staging"]


def fork_and_kill(api, source):
    """Asks for forks, and kills everything when they are half made."""

    def fork():
        try:
            api.call("POST", f"/sandboxes/{source}/fork", json={"count": 4}, timeout=60)
        except (OSError, Closed):
            pass  # the answer went with the server

    asker = threading.Thread(target=fork)
    asker.start()
    wait_for(lambda: captured(api.service), 20, "the fork is under way", interval=0.001)
    api.service.kill_both()
    asker.join()


def test_nor_after_kill_9_in_the_middle(api):
    service = api.service
    source = api.create()["id"]
    api.run(source, "head -c 30M /dev/urandom > /root/f; cd /root; sha256sum f > sum")
    with lookers(api) as seen:
        for _ in range(3):
            fork_and_kill(api, source)
            service.start()
            for one in api.list_all():
                service.scope.remember(one["id"])
                if one["id"] != source:
                    assert api.run(one["id"], "cd /root && sha256sum -c sum").exit_code == 0, "a fork that there is is whole"
                    assert api.delete(one["id"]).status == 204
            wait_for(lambda: of.nothing_on_disk(service), 20, "the next start takes it away")
    assert not seen, seen[:3]
    assert api.run(source, "cd /root && sha256sum -c sum").exit_code == 0


def ticks(api, sandbox, kind):
    return api.run(sandbox, f"cat /tmp/{kind} 2>/dev/null").stdout.split()


def test_hooks_are_copied(api):
    """As a create would: the first hook runs before the entry process of the copy, the others on their schedule."""
    hooks = {
        "preStart": {"command": ["sh", "-c", "echo $COLOUR >> /tmp/pre"]},
        "periodic": [{"name": "tick", "schedule": "@every 1s", "command": ["sh", "-c", "echo $OPENSANDBOX_ID >> /tmp/ticks"]}],
    }
    source = api.create(lifecycle=hooks, env={"COLOUR": "blue"}, entrypoint=["sh", "-c", "wc -l < /tmp/pre >> /tmp/entry; exec tail -f /dev/null"])["id"]
    wait_for(lambda: ticks(api, source, "ticks"), 20, "it has hooks")
    taken = of.make(api, source)
    # A change of the row writes its record anew.
    assert api.call("PATCH", f"/sandboxes/{source}/metadata", json={"stage": "two"}).status == 200
    (fork,) = of.fork(api, source)
    wait_for(lambda: fork in ticks(api, fork, "ticks"), 20, "a fork has them, too")
    assert ticks(api, fork, "pre") == ["blue", "blue"] and ticks(api, fork, "entry") == ["1", "2"]
    (deeper,) = of.fork(api, fork)
    wait_for(lambda: deeper in ticks(api, deeper, "ticks"), 20, "and a fork of a fork")

    before = ticks(api, source, "ticks")
    assert of.rollback(api, source, taken["id"]).status == 200
    assert ticks(api, source, "pre") == ["blue", "blue"]
    kept = len(ticks(api, source, "ticks"))
    wait_for(lambda: len(ticks(api, source, "ticks")) > kept + 1, 20, f"they go on after a rollback, {before}")
    # And after one of what a rollback has made, which another service finds.
    api.service.kill_both()
    api.service.start()
    assert of.rollback(api, source, taken["id"]).status == 200
    kept = len(ticks(api, source, "ticks"))
    wait_for(lambda: len(ticks(api, source, "ticks")) > kept + 1, 20, "and after another one")


def test_a_restored_snapshot_has_no_hooks_of_its_sandbox(api):
    """It is another sandbox, with what its request says."""
    source = api.create(lifecycle={"preStart": {"command": ["sh", "-c", "echo x >> /tmp/pre"]}})["id"]
    taken = of.make(api, source)
    restored = of.restore(api, taken["id"])
    assert ticks(api, restored, "pre") == ["x"]
