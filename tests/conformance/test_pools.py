"""The client's own pool of warm sandboxes with its state in a real Redis, as several processes share it: unmodified, against our service."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

import pytest
import redis as redis_client
import redis.asyncio as redis_async_client
from lib.api import Api
from lib.redis import Redis
from lib.waiting import wait_for
from opensandbox import AcquirePolicy, PoolCreationSpec, SandboxPoolAsync, SandboxPoolSync
from opensandbox.exceptions import PoolEmptyException, PoolStateStoreUnavailableException
from opensandbox.pool_redis import AsyncRedisPoolStateStore, RedisPoolStateStore

OLDEST = version("opensandbox") == "0.1.10"
# The oldest client looks at its pool every half a minute unless it is told otherwise; the newest has no such option.
PACE = {"reconcile_interval": timedelta(milliseconds=200)} if OLDEST else {}
SLEEPER = ["tail", "-f", "/dev/null"]
LIVES = timedelta(minutes=10)


@pytest.fixture
def redis():
    with Redis() as made:
        yield made


@pytest.fixture
def api(service):
    return Api(service)


class Pools:
    """Pools of one test: what belongs to them is known by its metadata."""

    def __init__(self, sdk, redis, name):
        self.sdk, self.redis, self.name = sdk, redis, name
        self.made = []

    def store(self):
        client = redis_client if self.sdk.flavour == "sync" else redis_async_client
        kind = RedisPoolStateStore if self.sdk.flavour == "sync" else AsyncRedisPoolStateStore
        return kind(client.Redis.from_url(self.redis.dsn(), decode_responses=True))

    def make(self, owner, max_idle=3, **options):
        kind = SandboxPoolSync if self.sdk.flavour == "sync" else SandboxPoolAsync
        spec = PoolCreationSpec(image="host", entrypoint=SLEEPER, metadata={"pool": self.name})
        made = kind(pool_name=self.name, owner_id=owner, max_idle=max_idle, state_store=self.store(), connection_config=self.sdk.config(),
                    creation_spec=spec, idle_timeout=timedelta(hours=1), **PACE, **options)  # fmt: skip
        self.sdk.go(made.start())
        self.made.append(made)
        return made

    def idle(self, pool):
        self.breathe()
        return self.sdk.go(pool.snapshot()).idle_count

    def breathe(self):
        """An asynchronous pool works while its loop runs."""
        if self.sdk.flavour == "async":
            import asyncio

            self.sdk.go(asyncio.sleep(0.05))

    def close(self):
        for pool in self.made:
            self.sdk.go(pool.shutdown(graceful=False))


@pytest.fixture
def pools(sdk, redis, api):
    made = Pools(sdk, redis, f"pool-{time.monotonic_ns()}")
    yield made
    made.close()
    for item in mine(api, made):
        api.delete(item)


def mine(api, pools, *states):
    reply = api.call("GET", f"/sandboxes?metadata=pool%3D{pools.name}&pageSize=200")
    assert reply.status == 200, reply
    return [item["id"] for item in reply.json["items"] if not states or item["status"]["state"] in states]


def test_warm_acquire_use_and_refill(sdk, pools, api):
    pool = pools.make("worker-1")
    wait_for(lambda: pools.idle(pool) == 3, 30, "three are warm")
    warm = set(mine(api, pools, "Running"))
    assert len(warm) == 3
    sandbox = sdk.go(pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.FAIL_FAST))
    assert sandbox.id in warm, "one that was warm"
    assert sdk.run(sandbox, "echo pool-ok").logs.stdout[0].text == "pool-ok"
    expires = datetime.fromisoformat(api.get(sandbox.id)["expiresAt"].replace("Z", "+00:00"))
    left = (expires - datetime.now(timezone.utc)).total_seconds()
    assert 500 < left <= 601, "it lives for as long as was asked for, not as the warm ones"
    wait_for(lambda: pools.idle(pool) == 3, 30, "its place is filled again")
    sdk.go(sandbox.kill())
    assert sandbox.id not in mine(api, pools)


def test_two_processes_share_one_pool(sdk, pools, api):
    first, second = pools.make("worker-1", max_idle=4), pools.make("worker-2", max_idle=4)
    wait_for(lambda: pools.idle(first) == 4 and pools.idle(second) == 4, 30, "both see the same four")
    taken = [sdk.go(pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.FAIL_FAST)) for pool in (first, second, first, second)]
    assert len({sandbox.id for sandbox in taken}) == 4, "nobody gets another's"
    for sandbox in taken:
        assert sdk.run(sandbox, "echo $OPENSANDBOX_ID").logs.stdout[0].text == sandbox.id
        sdk.go(sandbox.kill())


def test_a_warm_one_that_is_gone_is_not_handed_out(sdk, pools, api):
    pool = pools.make("worker-1", max_idle=1)
    wait_for(lambda: pools.idle(pool) == 1, 30, "one is warm")
    (gone,) = mine(api, pools, "Running")
    assert api.delete(gone).status == 204
    sandbox = sdk.go(pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.DIRECT_CREATE))
    assert sandbox.id != gone
    assert sdk.run(sandbox, "echo fresh").logs.stdout[0].text == "fresh"
    sdk.go(sandbox.kill())


def test_resize_and_drain(sdk, pools, api):
    pool = pools.make("worker-1", max_idle=5)
    wait_for(lambda: pools.idle(pool) == 5, 30, "five are warm")
    sdk.go(pool.resize(2))
    wait_for(lambda: pools.idle(pool) == 2 and len(mine(api, pools)) == 2, 30, "three are gone")
    sdk.go(pool.resize(0))
    wait_for(lambda: pools.idle(pool) == 0 and not mine(api, pools), 30, "all are gone")
    with pytest.raises(PoolEmptyException):
        sdk.go(pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.FAIL_FAST))


def test_a_restart_of_the_service_keeps_the_pool(sdk, redis, bin_dir):
    from lib.service import Service

    service = Service(bin_dir, api_key="a-key-for-tests-0123456789").start()
    try:
        sdk.domain = f"{service.address[0]}:{service.address[1]}"
        pools = Pools(sdk, redis, "restarted")
        api = Api(service)
        pool = pools.make("worker-1", max_idle=2)
        wait_for(lambda: pools.idle(pool) == 2, 30, "two are warm")
        before = set(mine(api, pools, "Running"))
        service.kill_server()
        sandbox = sdk.go(pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.FAIL_FAST))
        assert sandbox.id in before
        assert sdk.run(sandbox, "echo still").logs.stdout[0].text == "still"
        pools.close()
    finally:
        service.destroy()


def test_redis_that_is_away_is_an_error_of_the_pool_not_of_ours(sdk, pools, redis, api):
    pool = pools.make("worker-1", max_idle=1)
    wait_for(lambda: pools.idle(pool) == 1, 30, "one is warm")
    redis.kill()
    with pytest.raises(PoolStateStoreUnavailableException):
        sdk.go(pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.FAIL_FAST))
    assert len(mine(api, pools, "Running")) == 1
    redis.start()


class TestMany:
    """What the pool does to a server: bursts of creates, fifty deletes at once."""

    @pytest.fixture
    def sdk(self, service):
        from conftest import Sdk

        made = Sdk("sync", service)
        yield made
        made.finish()

    def test_twenty_five_warm_and_all_released_at_once(self, sdk, pools, api):
        pool = pools.make("worker-1", max_idle=25)
        began = time.monotonic()
        wait_for(lambda: pools.idle(pool) == 25, 60, "twenty-five are warm")
        print(f"25 warm after {time.monotonic() - began:.1f} s")
        pool.resize(0)
        released = pool.release_all_idle() if OLDEST else pool.release_all_idle_parallel(50)
        wait_for(lambda: not mine(api, pools), 30, "all are gone")
        assert 0 <= released <= 25

    def test_threads_take_different_ones(self, sdk, pools, api):
        pool = pools.make("worker-1", max_idle=8)
        wait_for(lambda: pools.idle(pool) == 8, 30, "eight are warm")
        start = threading.Barrier(8)

        def take(_):
            start.wait()
            return pool.acquire(sandbox_timeout=LIVES, policy=AcquirePolicy.DIRECT_CREATE)

        with ThreadPoolExecutor(8) as threads:
            taken = list(threads.map(take, range(8)))
        assert len({sandbox.id for sandbox in taken}) == 8
        for sandbox in taken:
            sandbox.kill()

    @pytest.mark.skipif(OLDEST, reason="the oldest client has no manager of pools")
    def test_a_destroyed_pool_leaves_nothing(self, sdk, pools, api):
        pool = pools.make("worker-1", max_idle=3)
        wait_for(lambda: pools.idle(pool) == 3, 30, "three are warm")
        pool.shutdown(graceful=True)
        from opensandbox import SandboxPoolManagerSync

        manager = SandboxPoolManagerSync(state_store=pools.store(), connection_config=sdk.config())
        manager.destroy(pools.name)
        assert not mine(api, pools)
