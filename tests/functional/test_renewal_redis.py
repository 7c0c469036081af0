"""Uses that gateways report through a list of Redis, with a real Redis: they renew, and whatever is wrong with it harms nothing."""

import json
import re
import time
from datetime import datetime, timedelta, timezone

import pytest
from lib.api import Api
from lib.redis import Redis
from lib.service import CANNOT_START
from lib.waiting import wait_for

EXTENSION = "access.renew.extend.seconds"
QUEUE = "opensandbox:renew:intent"


@pytest.fixture
def redis():
    with Redis() as made:
        yield made


@pytest.fixture
def start(new_service):
    """A service that reads from Redis. One renewal per sandbox and interval."""

    def make(dsn, interval=1, **more):
        return new_service(renew={"enabled": True, "min_interval_seconds": interval}, sections={"renew_intent.redis": {"enabled": True, "dsn": dsn, **more}})

    return make


def in_seconds(seconds):
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


def expiry(api, sandbox_id):
    return datetime.fromisoformat(api.get(sandbox_id)["expiresAt"].replace("Z", "+00:00"))


def make(api):
    return api.create(timeout=60, extensions={EXTENSION: "600"})["id"]


def intent(sandbox_id, age=0, **more):
    seen = in_seconds(-age).strftime("%Y-%m-%dT%H:%M:%S.%f") + "789Z"
    return json.dumps({"sandbox_id": sandbox_id, "observed_at": seen, "port": 8080, "request_uri": "/x", **more})


def push(redis, *payloads, queue=QUEUE, database=0):
    redis.ask_all([("LPUSH", queue, payload) for payload in payloads], database)


def drained(redis, queue=QUEUE, timeout=20):
    wait_for(lambda: redis.ask("LLEN", queue) == 0, timeout, "the list is read")


def is_renewed(api, sandbox_id):
    return expiry(api, sandbox_id) > in_seconds(590)


def log_of(service):
    return service.log_path.read_text(errors="replace")


def checks(service):
    reply = Api(service, prefix="").call("GET", "/health")
    return reply.status, reply.json["status"], [check["name"] for check in reply.json.get("checks", [])]


def wait_connected(service):
    wait_for(lambda: checks(service)[1] == "healthy", 15, "the service reads from redis")


def test_what_a_gateway_has_seen_renews(redis, start):
    service = start(redis.dsn())
    api = Api(service)
    used, other, plain = make(api), make(api), api.create(timeout=60)["id"]
    push(redis, intent(used, namespace="somewhere"), intent(plain))
    wait_for(lambda: is_renewed(api, used), 10, "the renewal")
    drained(redis)
    assert expiry(api, other) < in_seconds(61)
    assert expiry(api, plain) < in_seconds(61), "it did not ask for it"
    # It is stored like any other renewal.
    service.kill_server()
    assert is_renewed(api, used)
    push(redis, intent(other))
    wait_for(lambda: is_renewed(api, other), 15, "the renewal by the next process")


def test_another_list_and_database(redis, start):
    api = Api(start(redis.dsn(database=3), queue_key="uses", consumer_concurrency=1))
    used = make(api)
    push(redis, intent(used), queue="uses")
    push(redis, intent(used), database=3)
    time.sleep(1.5)
    assert not is_renewed(api, used), "neither is the list of this service"
    push(redis, intent(used), queue="uses", database=3)
    wait_for(lambda: is_renewed(api, used), 10, "the renewal")


def test_a_host_by_its_name(redis, start):
    """Not the spelling that needs no resolver; it may have further addresses, on which nobody listens."""
    api = Api(start(redis.dsn().replace("127.0.0.1", "LocalHost")))
    used = make(api)
    push(redis, intent(used))
    wait_for(lambda: is_renewed(api, used), 10, "the renewal")


def test_a_name_that_nobody_knows(start):
    service = start("redis://nobody.invalid:6379")
    wait_for(lambda: "redis is away" in log_of(service), 30, "the log says it")
    assert b"nobody.invalid" not in Api(service, prefix="").call("GET", "/health").body, "/health is open to everybody"
    assert Api(service).create(timeout=60)["id"]


def test_malformed_and_old_ones_are_dropped_and_told_once(redis, start):
    service = start(redis.dsn())
    api = Api(service)
    old, used = make(api), make(api)
    nonsense = ["", "{", "[]", "null", '{"sandbox_id": 7}', '{"observed_at": "2026-01-02T03:04:05Z"}', intent("../../etc"), intent(old).replace('"20', '"x'),
                "\xff" * 50, "{" * 5000, intent(old, junk="x" * 20000), intent(old, junk="x" * 100000)]  # fmt: skip
    push(redis, *nonsense, intent(old, age=301), intent(old, age=86400), intent("00000000-0000-4000-8000-000000000000"), intent(used))
    wait_for(lambda: is_renewed(api, used), 15, "the renewal behind all of them")
    drained(redis)
    assert expiry(api, old) < in_seconds(61)
    push(redis, *nonsense * 20)
    drained(redis, timeout=60)
    told = [line for line in log_of(service).splitlines() if "renewals from redis were dropped" in line]
    assert len(told) == 1, "at most one line a minute"
    assert "malformed=" in told[0] and "etc" not in told[0]
    push(redis, intent(old))
    wait_for(lambda: is_renewed(api, old), 15, "the service still reads")


def test_redis_that_dies_and_comes_back(redis, start):
    service = start(redis.dsn())
    api = Api(service)
    first, second, third = make(api), make(api), make(api)
    push(redis, intent(first))
    wait_for(lambda: is_renewed(api, first), 10, "the renewal")
    redis.kill()
    wait_for(lambda: checks(service) == (200, "degraded", ["redis"]), 10, "/health says it")
    assert api.ping(second)
    wait_for(lambda: is_renewed(api, second), 10, "uses of the proxy renew all the same")
    time.sleep(2)
    redis.start()
    push(redis, intent(third))
    wait_for(lambda: is_renewed(api, third), 20, "the renewal after the return")
    wait_connected(service)
    log = log_of(service)
    causes = re.findall('redis is away.* error="([^"]*)"', log)
    assert 1 <= len(causes) == len(set(causes)), "once for each cause, whatever the number of connections and attempts"
    assert log.count("renewals are taken from redis") == 2


def test_without_redis_at_the_start(start):
    redis = Redis()
    service = start(redis.dsn())
    api = Api(service)
    assert checks(service)[:2] == (200, "degraded")
    used, other = make(api), make(api)
    assert api.ping(used)
    wait_for(lambda: is_renewed(api, used), 10, "uses of the proxy renew")
    with redis:
        push(redis, intent(other))
        wait_for(lambda: is_renewed(api, other), 20, "the renewal, once there is one")


def test_a_wrong_password(start):
    with Redis(password="right-one") as redis:
        service = start(redis.dsn(password="a-wrong-one"))
        wait_for(lambda: "redis is away" in log_of(service), 10, "the log says it")
        time.sleep(2)
        log = log_of(service)
        assert log.count("redis is away") == 1
        assert "WRONGPASS" in log and "a-wrong-one" not in log and "right-one" not in log
        body = Api(service, prefix="").call("GET", "/health").body
        assert b"WRONGPASS" in body and b"a-wrong-one" not in body
        service.stop()
        api = Api(start(redis.dsn()))
        used = make(api)
        push(redis, intent(used))
        wait_for(lambda: is_renewed(api, used), 10, "the renewal with the right one")
        anonymous = start(redis.dsn(password=""))
        wait_for(lambda: "NOAUTH" in log_of(anonymous), 10, "one without a password is told, too")


def test_a_key_that_is_no_list(redis, start):
    redis.ask("SET", QUEUE, "x")
    service = start(redis.dsn())
    wait_for(lambda: "WRONGTYPE" in log_of(service), 10, "the log says it")
    time.sleep(3)
    log = log_of(service)
    assert log.count("redis is away") == 1 and "renewals are taken" not in log
    redis.ask("DEL", QUEUE)
    api = Api(service)
    used = make(api)
    push(redis, intent(used))
    wait_for(lambda: is_renewed(api, used), 20, "the renewal, once it is one")


def test_ten_thousand_for_one_sandbox_are_few_renewals(redis, start):
    service = start(redis.dsn(), interval=1)
    api = Api(service)
    wait_connected(service)
    used = make(api)
    seen = {api.get(used)["expiresAt"]}
    began = time.monotonic()
    push(redis, *[intent(used)] * 10000)
    while redis.ask("LLEN", QUEUE) > 0:
        seen.add(api.get(used)["expiresAt"])
        assert time.monotonic() - began < 60
    took = time.monotonic() - began
    wait_for(lambda: is_renewed(api, used), 10, "the renewal")
    seen.add(api.get(used)["expiresAt"])
    assert len(seen) <= took + 3, "the expiry moved at most once a second"
    print(f"10,000 payloads read in {took:.2f} s, {len(seen) - 1} renewals seen")


def test_a_stop_does_not_wait_for_redis(redis, start):
    service = start(redis.dsn())
    wait_connected(service)
    began = time.monotonic()
    service.stop()
    assert time.monotonic() - began < 4


@pytest.mark.parametrize("section, words", [
    ({"enabled": True}, ["renew_intent.redis.dsn", "is missing"]),
    ({"enabled": True, "dsn": "  "}, ["renew_intent.redis.dsn", "is missing"]),
    ({"enabled": True, "dsn": "rediss://:hidden-word@redis.example:6380/0?ssl_cert_reqs=none"}, ["renew_intent.redis.dsn", "ssl_cert_reqs"]),
    ({"enabled": True, "dsn": "rediss://:hidden-word@redis.example:6380/0?ssl_ca_certs=here.pem"}, ["renew_intent.redis.dsn", "absolute path"]),
    ({"enabled": True, "dsn": "unix:///run/redis.sock"}, ["unix:// is not supported"]),
    ({"enabled": True, "dsn": "redis://:hidden-word@"}, ["renew_intent.redis.dsn", "has no host"]),
    ({"dsn": "redis://h", "consumer_concurrency": 0}, ["renew_intent.redis.consumer_concurrency", "from 1 to 64"]),
    ({"dsn": "redis://h", "queue_key": ""}, ["renew_intent.redis.queue_key"]),
    ({"dsn": "redis://h", "queue": "x"}, ["unknown key `queue`", "queue_key"]),
])  # fmt: skip
def test_a_wrong_configuration_is_refused_by_name(bin_dir, section, words):
    from lib.service import Service

    service = Service(bin_dir, renew={"enabled": True}, sections={"renew_intent.redis": section})
    try:
        assert service.ends() == CANNOT_START
        log = log_of(service)
        assert all(word in log for word in words), log
        assert "hidden-word" not in log
    finally:
        service.destroy()


def test_without_renewal_it_has_no_effect_and_says_so(redis, new_service):
    service = new_service(sections={"renew_intent.redis": {"enabled": True, "dsn": redis.dsn()}})
    assert "renew_intent.redis.enabled: has no effect" in log_of(service)
    push(redis, intent("00000000-0000-4000-8000-000000000000"))
    time.sleep(1)
    assert redis.ask("LLEN", QUEUE) == 1


class TestTls:
    """rediss://, with certificates of the test's own."""

    def test_a_report_renews(self, start):
        with Redis(password="p-word", tls_name="127.0.0.1") as redis:
            service = start(redis.tls_dsn(redis.authority))
            wait_connected(service)
            api = Api(service)
            sandbox = make(api)
            push(redis, intent(sandbox))
            wait_for(lambda: is_renewed(api, sandbox), 20, "the sandbox is renewed")
            drained(redis)
            # It is found again when it comes back.
            redis.kill()
            wait_for(lambda: checks(service)[1] == "degraded", 30, "its loss is told")
            redis.start()
            other = make(api)
            push(redis, intent(other))
            wait_for(lambda: is_renewed(api, other), 40, "the next report counts, too")
            api.delete(sandbox)
            api.delete(other)

    @pytest.mark.parametrize("case", ["unknown authority", "another name", "no TLS", "no file"])
    def test_whoever_cannot_prove_it_is_not_told_the_password(self, start, tmp_path, case):
        with Redis(password="p-word", tls_name="redis.example" if case == "another name" else "127.0.0.1") as redis:
            dsn = redis.tls_dsn(None if case == "unknown authority" else redis.authority)
            if case == "no TLS":
                dsn = dsn.replace(str(redis.tls_port), str(redis.port))
            if case == "no file":
                dsn = redis.tls_dsn(tmp_path / "missing.pem")
            service = start(dsn, consumer_concurrency=1)
            said = {
                "unknown authority": "certificate is not accepted",
                "another name": "certificate is not accepted",
                "no TLS": "no answer within",  # Redis waits for the end of a line
                "no file": "ssl_ca_certs cannot be read",
            }[case]
            wait_for(lambda: "redis is away" in log_of(service), 20, "the log tells why")
            assert said in log_of(service), log_of(service)
            assert checks(service)[1] == "degraded"
            push(redis, intent("00000000-0000-4000-8000-000000000000"))
            time.sleep(1)
            assert redis.ask("LLEN", QUEUE) == 1
            assert "p-word" not in log_of(service)
