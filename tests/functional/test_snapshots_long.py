"""Snapshots, forks and rollbacks under kill -9 at random moments. Run with --long."""

import random
import time

import pytest
from lib import leaks
from lib import snapshots as of
from lib.api import Api
from lib.rawhttp import Closed
from lib.waiting import wait_for
from test_kill9 import VICTIMS

pytestmark = pytest.mark.long

ROUNDS = 40


def test_random_kills(new_service):
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    print(f"seed {seed}")
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    source = api.create()["id"]
    api.run(source, "head -c 20M /dev/urandom > /root/f; cd /root; sha256sum f > sum")
    good = of.make(api, source)
    for turn in range(ROUNDS):
        what = chance.choice(["snapshots", "fork", "rollback"])
        body = {"fork": {"count": 3}, "rollback": {"snapshotId": good["id"]}}.get(what)
        before = {one["id"] for one in api.list_all()}
        try:
            # The answer may be lost with the server; what it did is looked at afterwards.
            if what == "snapshots":
                api.call("POST", f"/sandboxes/{source}/snapshots")
                time.sleep(chance.random() * 0.2)  # a random phase
                VICTIMS[chance.choice(list(VICTIMS))](service)
            else:
                killer = __import__("threading").Timer(chance.random() * 0.25, VICTIMS[chance.choice(list(VICTIMS))], [service])
                killer.start()
                try:
                    api.call("POST", f"/sandboxes/{source}/{what}", json=body, timeout=60)
                finally:
                    killer.join()
        except (OSError, Closed, AssertionError, ValueError):
            pass
        service.wait_healthy()
        assert api.run(source, "cd /root && sha256sum -c sum").exit_code == 0, f"turn {turn}, {what}, seed {seed}"
        for one in api.call("GET", "/snapshots?pageSize=200").json["items"]:
            if one["status"]["state"] == "Deleting":
                continue
            done = of.settled(api, one["id"])
            if one["id"] == good["id"]:
                assert done["status"]["state"] == "Ready"
                continue
            if done["status"]["state"] == "Ready":
                restored = of.restore(api, one["id"])
                assert api.run(restored, "cd /root && sha256sum -c sum").exit_code == 0, f"turn {turn}, seed {seed}"
                assert api.delete(restored).status == 204
            assert api.call("DELETE", f"/snapshots/{one['id']}").status == 204
        for one in api.list_all():
            service.scope.remember(one["id"])
            if one["id"] in before:
                continue
            assert api.run(one["id"], "cd /root && sha256sum -c sum").exit_code == 0, "a fork that there is is whole"
            assert api.delete(one["id"]).status == 204
    assert api.delete(source).status == 204
    wait_for(lambda: api.call("DELETE", f"/snapshots/{good['id']}").status in (204, 404), 10, "the last one goes")
    wait_for(lambda: of.nothing_on_disk(service), 20, f"nothing is left (seed {seed})")
    leaks.assert_nothing_leaked(service, baseline)
