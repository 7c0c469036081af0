"""The long variants: many lifecycles under random kill -9, and a thousand sandboxes at once. Run with --long."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib import leaks
from lib.api import Api
from lib.lives import Lives
from lib.load import Creators
from lib.waiting import wait_for
from test_kill9 import VICTIMS, assert_all_work, delete_many

pytestmark = pytest.mark.long


def test_500_lifecycles_under_random_kills(new_service):
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    print(f"seed {seed}")
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    keepers = [api.create()["id"] for _ in range(5)]
    kills = 0
    with Creators(api, threads=4, also_delete=True) as creators:
        while len(creators.answered) < 500:
            before = creators.started
            VICTIMS[chance.choice(list(VICTIMS))](service)
            kills += 1
            goal = before + chance.randrange(3, 25)
            wait_for(lambda goal=goal: creators.started >= goal, 60, f"creates go on after kill {kills} (seed {seed})", interval=0.002)
            time.sleep(chance.random() * 0.1)  # a random phase, so that kills hit every step of a create
    print(f"{len(creators.answered)} lifecycles, {kills} kills")
    assert not creators.wrong, creators.wrong[:3]
    assert_all_work(api, keepers)
    listed = {item["id"] for item in api.list_all()}
    assert set(keepers) | creators.alive <= listed
    assert_all_work(api, sorted(listed))
    wait_for(lambda: service.scope.running_sandboxes() == listed, 10, "what runs is what is listed")
    service.scope.sandbox_ids |= listed
    delete_many(api, listed)
    leaks.assert_nothing_leaked(service, baseline)


def test_a_thousand_at_once(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    memory = available_memory()
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: api.create(timeout=3600)["id"], range(1000)))
        per_sandbox = (memory - available_memory()) / 1000
        print(f"{per_sandbox / 1024:.0f} KiB of memory for each; the server holds {service.server_memory_bytes() >> 20} MiB")
        assert all(pool.map(api.ping, ids))
        assert len(api.list_all()) == 1000
        assert list(pool.map(lambda name: api.run(name, "echo $OPENSANDBOX_ID").stdout, ids[::10])) == ids[::10]
        service.kill_both()
        service.start(timeout=60)
        assert all(pool.map(api.ping, ids))
    delete_many(api, ids)
    leaks.assert_nothing_leaked(service, baseline, timeout=30)


def available_memory():
    for line in open("/proc/meminfo", encoding="ascii"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no MemAvailable")


def test_memory_is_flat_at_full_load(new_service):
    """Ten minutes of lives, looks and proxied requests: what the service holds after the first does not grow."""
    service = new_service()
    api = Api(service)
    keeper = api.create(timeout=3600)["id"]
    lives, sizes = Lives(api), []
    end = time.monotonic() + 600
    with ThreadPoolExecutor(2) as pool:

        def look(until):
            while time.monotonic() < until:
                assert api.ping(keeper)
                assert any(item["id"] == keeper for item in api.list_all())
                assert api.run(keeper, "echo x").stdout == "x"

        while time.monotonic() < end:
            beside = [pool.submit(look, time.monotonic() + 15) for _ in range(2)]
            lives.closed(16, 15)
            for task in beside:
                task.result()
            sizes.append(service.server_memory_bytes())
    print("MiB:", [size >> 20 for size in sizes], dict(lives.creates), dict(lives.deletes))
    assert set(lives.creates) == {202} and set(lives.deletes) == {204}
    assert max(sizes[-8:]) <= max(sizes[4:12]) + (2 << 20), sizes
