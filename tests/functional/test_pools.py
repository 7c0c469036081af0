"""Pools: sandboxes that run and wait, claims of them, and what is left after kills."""

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib import leaks, rawhttp
from lib import pools as of
from lib import snapshots
from lib.api import Api, assert_envelope
from lib.waiting import wait_for


@pytest.fixture
def api(new_service):
    return Api(new_service())


def events(api, sandbox):
    return api.call("GET", f"/sandboxes/{sandbox}/diagnostics/events").body.decode()


def test_a_pool_and_a_claim(api):
    baseline = leaks.snapshot(api.service)
    template = of.template(env={"A": "pool", "B": "pool"}, metadata={"m": "pool"})
    made = api.call("POST", "/pools", json={"name": "p", "template": template, "capacitySpec": of.capacity()})
    assert made.status == 201 and made.header("location") == "/v1/pools/p"
    assert made.json["name"] == "p" and made.json["capacitySpec"] == of.capacity() and made.json["createdAt"]
    assert set(made.json["status"]) >= {"total", "allocated", "available", "revision"}
    assert "template" not in made.json
    of.filled(api)
    assert api.list_all() == [], "what waits is nobody's sandbox"

    entrypoint = ["sh", "-c", "echo entry $A $B $OPENSANDBOX_ID > /e; exec sleep 1000"]
    reply = of.post_claim(api, env={"A": "mine", "C": "c"}, metadata={"n": "mine"}, entrypoint=entrypoint)
    assert reply.status == 202, reply
    answer = reply.json
    assert reply.header("location") == f"/v1/sandboxes/{answer['id']}"
    assert answer["status"]["state"] == "Running" and answer["metadata"] == {"m": "pool", "n": "mine"}
    assert answer["entrypoint"] == entrypoint
    sandbox = answer["id"]
    assert api.run(sandbox, "echo $A $B $C $OPENSANDBOX_ID").stdout == f"mine pool c {sandbox}"
    wait_for(lambda: api.run(sandbox, "cat /e").stdout == f"entry mine pool {sandbox}", 5, "the entry process has the claim's environment")
    shown = api.get(sandbox)
    assert shown["allocation"] == {"mode": "pool", "poolRef": "p", "state": "allocated"}
    assert shown["image"] == {"uri": "host"} and shown["expiresAt"] and "extensions" not in shown
    assert [one["id"] for one in api.list_all()] == [sandbox]
    of.filled(api)
    status = of.status(api)
    assert (status["total"], status["allocated"], status["available"], status["pending"]) == (2, 1, 1, 0)

    # The pool goes, what was claimed stays.
    of.delete(api)
    assert_envelope(api.call("GET", "/pools/p"), 404, "POOL::NOT_FOUND")
    assert api.run(sandbox, "echo here").stdout == "here"
    assert api.delete(sandbox).status == 204
    leaks.assert_nothing_leaked(api.service, baseline)


def test_an_idle_entry_process_that_cannot_start_is_none(api):
    """Nobody waits for one that only waits, and nobody misses it."""
    source = api.create()["id"]
    api.run(source, "mkdir /bad && touch /bad/tail")
    of.make(api, shape={"snapshotId": snapshots.make(api, source)["id"], "resourceLimits": {}, "env": {"PATH": "/bad"}})
    of.filled(api)
    sandbox = of.claim(api)
    wait_for(lambda: "/bad/tail" in api.call("GET", f"/sandboxes/{sandbox}/diagnostics/logs").body.decode(), 5, "its output says why")
    assert api.get(sandbox)["status"]["state"] == "Running"
    of.filled(api)
    fine = of.claim(api, env={"PATH": "/usr/bin:/bin"})
    wait_for(lambda: api.run(fine, "pgrep -c tail || true").stdout == "1", 5, "the entry process runs")
    assert api.get(fine)["status"]["state"] == "Running"


def test_an_idle_entry_process_that_is_killed_at_once_was_killed(api):
    of.make(api, least=1, most=1)
    of.filled(api)
    sandbox = of.claim(api)
    api.run(sandbox, "until pkill -9 -x tail; do :; done", background=True)  # which ends with it
    wait_for(lambda: api.get(sandbox)["status"]["state"] == "Failed", 5, "the sandbox has failed")
    assert api.get(sandbox)["status"]["reason"] == "KILLED_BY_SIGNAL", api.get(sandbox)


def test_what_a_claim_was_given_is_kept_before_it_is_answered(new_service):
    """The server is killed as soon as the client has its answer: copies still have the environment."""
    service = new_service()
    api = Api(service)
    of.make(api, least=3, most=3)
    for turn in range(3):
        of.filled(api, 3)
        sandbox = of.claim(api, env={"KEPT": f"turn {turn}"})
        service.kill_server()
        snapshot = snapshots.make(api, sandbox)["id"]
        copy = snapshots.restore(api, snapshot, extensions={"restore.env": "true"})
        assert api.run(copy, "echo $KEPT").stdout == f"turn {turn}"


def test_names_and_numbers(api):
    assert api.call("GET", "/pools").json == {"items": []}
    of.make(api, "b", least=0, most=0)
    of.make(api, "a", least=0, most=0)
    again = api.call("POST", "/pools", json={"name": "a", "template": of.template(), "capacitySpec": of.capacity()})
    assert_envelope(again, 409, "POOL::ALREADY_EXISTS")
    assert [one["name"] for one in api.call("GET", "/pools").json["items"]] == ["a", "b"]
    changed = api.call("PUT", "/pools/a", json={"capacitySpec": of.capacity(2, 2, 2)})
    assert changed.status == 200 and changed.json["capacitySpec"]["poolMax"] == 2
    of.filled(api, 2, "a")
    assert api.call("PUT", "/pools/a", json={"capacitySpec": of.capacity(0, 0, 2)}).status == 200
    of.filled(api, 0, "a")
    for method, path in (("GET", "/pools/none"), ("PUT", "/pools/none"), ("DELETE", "/pools/none")):
        assert_envelope(api.call(method, path, json={"capacitySpec": of.capacity()}), 404, "POOL::NOT_FOUND")
    assert_envelope(of.post_claim(api, "none"), 400, "POOL::NOT_FOUND")
    assert_envelope(api.call("PUT", "/pools/a", json={"capacitySpec": of.capacity(3, 1, 5)}), 400, "SANDBOX::INVALID_PARAMETER")
    assert api.call("PUT", "/pools/a", json={"capacitySpec": {"poolMax": 1}}).status == 422
    assert Api(api.service, prefix="").call("GET", "/pools/a").status == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"networkPolicy": {"defaultAction": "deny"}},
        {"volumes": [{"name": "v", "mountPath": "/v", "pvc": {"claimName": "v"}}]},
        {"platform": {"os": "linux", "arch": "amd64"}},
        {"extensions": {"poolRef": "p", "opensandbox.extensions.read-only-root": "true"}},
    ],
    ids=["network", "volumes", "platform", "read-only"],
)
def test_what_shapes_a_sandbox_is_the_pools(api, fields):
    of.make(api, least=1, most=1)
    assert_envelope(of.post_claim(api, **fields), 400, "SANDBOX::INVALID_PARAMETER")
    assert api.list_all() == []


def test_what_is_ignored_is_told(api):
    of.make(api, shape=of.template(resourceLimits={"memory": "256Mi"}))
    sandbox = of.claim(api, image={"uri": "no-such-image"}, resourceLimits={"cpu": "1", "memory": "2Gi"}, entrypoint=["sleep", "99"])
    assert "image and resourceLimits of the request: ignored" in events(api, sandbox)
    assert api.get(sandbox)["image"] == {"uri": "host"}
    assert api.run(sandbox, api.service.memory_limit_command).stdout == str(256 << 20)


def test_a_bad_entrypoint_costs_one_of_them(api):
    baseline = leaks.snapshot(api.service)
    of.make(api)
    of.filled(api)
    assert_envelope(of.post_claim(api, entrypoint=["/no/such/program"]), 400, "SANDBOX::INVALID_ENTRYPOINT")
    assert api.list_all() == []
    of.filled(api)
    assert of.status(api)["allocated"] == 0
    of.delete(api)
    leaks.assert_nothing_leaked(api.service, baseline)


def test_exhausted_and_free_again(api):
    of.make(api, least=1, most=2, pool_max=2)
    first, second = of.claim(api), of.claim(api)
    refused = of.post_claim(api)
    assert_envelope(refused, 429, "POOL::EXHAUSTED")
    assert int(refused.header("retry-after")) >= 1
    assert of.status(api)["total"] == 2
    assert api.delete(first).status == 204
    third = of.claim(api)
    assert third not in (first, second)
    # And by itself, when nobody asks.
    assert api.delete(second).status == 204
    of.filled(api)


def test_an_image_that_is_not_there(api):
    of.make(api, shape=of.template(image={"uri": "no-such-image"}), least=1, most=1)
    wait_for(lambda: of.status(api).get("message"), 5, "the pool says why it is empty")
    status = of.status(api)
    assert "IMAGE::NOT_FOUND" in status["message"] and status["total"] == 0 and status["retryAt"]
    refused = of.post_claim(api)
    assert_envelope(refused, 429, "POOL::EXHAUSTED")
    time.sleep(3.5)
    tries = api.service.log_tail(500).count("a pool cannot be filled")
    assert 2 <= tries <= 4, "it is tried again, less and less often"
    of.delete(api)


def test_many_claims_at_once_get_one_each(api):
    baseline = leaks.snapshot(api.service)
    of.make(api, least=4, most=4, pool_max=30)

    def claim(number):
        # Where sandboxes take long to make, a claim may wait in vain and is to be tried again.
        return wait_for(lambda: of.claim(api, env={"N": str(number)}), 120 * api.service.create_seconds, "one for each")

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(claim, range(24)))
        said = list(pool.map(lambda one: api.run(one, "echo $N $OPENSANDBOX_ID; touch /mine; ls / | grep -c mine").stdout.split(), ids))
    assert len(set(ids)) == 24
    assert said == [[str(number), one, "1"] for number, one in enumerate(ids)]
    with ThreadPoolExecutor(8) as pool:
        assert {reply.status for reply in pool.map(api.delete, ids)} == {204}
    of.delete(api)
    leaks.assert_nothing_leaked(api.service, baseline)


def test_one_that_dies_while_it_waits(api):
    of.make(api)
    of.filled(api)
    execds = waiting_pids(api.service)
    assert len(execds) == 1
    os.kill(execds[0], signal.SIGKILL)
    wait_for(lambda: waiting_pids(api.service) not in ([], execds), 10, "another one waits")
    sandbox = of.claim(api)
    assert api.run(sandbox, "echo alive").stdout == "alive"


def waiting_pids(service):
    """Host pids of the first processes of sandboxes that nobody has claimed."""
    import sqlite3

    with sqlite3.connect(f"file:{leaks.databases(service.state_dir)[0]}?mode=ro", uri=True, timeout=5) as database:
        return [service.scope.first_pid(identity) for (identity,) in database.execute("select identity from pool_members where identity != '' order by created_us")]


@pytest.mark.parametrize("way", ["restart", "kill_server", "kill_launcher", "kill_both"])
def test_what_waits_outlives_the_service(api, way):
    baseline = leaks.snapshot(api.service)
    of.make(api, least=2, most=2)
    of.filled(api, 2)
    mine = of.claim(api, env={"A": "1"})
    of.filled(api, 2)
    before = waiting_pids(api.service)
    getattr(api.service, way)()
    if way in ("kill_launcher", "kill_both"):
        api.service.start()
    of.filled(api, 2)
    assert waiting_pids(api.service) == before, "the same ones"
    assert of.status(api)["allocated"] == 1 and [one["id"] for one in api.list_all()] == [mine]
    assert api.run(mine, "echo $A").stdout == "1"
    other = of.claim(api, env={"A": "2"})
    assert api.run(other, "echo $A $OPENSANDBOX_ID").stdout == f"2 {other}"
    for sandbox in (mine, other):
        assert api.delete(sandbox).status == 204
    of.delete(api)
    leaks.assert_nothing_leaked(api.service, baseline)


def test_half_a_minute_is_not_too_long(api):
    """An execd that nobody gives a process ends after 30 seconds; one that is held does not."""
    of.make(api)
    of.filled(api)
    before = waiting_pids(api.service)
    time.sleep(33)
    assert waiting_pids(api.service) == before
    sandbox = of.claim(api)
    assert api.run(sandbox, "echo alive").stdout == "alive"


@pytest.mark.parametrize("way", ["kill_server", "kill_launcher", "kill_both"])
def test_kills_in_the_middle_of_claims(api, way):
    """Each sandbox is one caller's or still the pool's, whatever was killed when; nothing is lost, nothing is left."""
    baseline = leaks.snapshot(api.service)
    of.make(api, least=6, most=6, pool_max=5000)
    of.filled(api, 6)
    stop = threading.Event()
    claimed, refused, words = {}, Counter(), {}

    def claim_on(worker):
        number = 0
        while not stop.is_set():
            name = f"{worker}-{number}"
            try:
                reply = of.post_claim(api, env={"MINE": name}, metadata={"mine": name}, headers={"Idempotency-Key": name})
            except (OSError, rawhttp.Closed):
                time.sleep(0.05)  # its answer was lost: the same again
                continue
            if reply.status == 202:
                claimed[name] = reply.json["id"]
                number += 1
                time.sleep(0.05)
            else:
                refused[reply.status] += 1
                words[reply.status] = reply.body
                time.sleep(0.05)

    workers = [threading.Thread(target=claim_on, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for _ in range(3):
        time.sleep(0.4)
        getattr(api.service, way)()
        if way != "kill_server":
            api.service.start()
    time.sleep(0.3)
    wait_for(lambda: len(claimed) > 10, 30 * api.service.create_seconds, "claims go on")
    stop.set()
    for worker in workers:
        worker.join()
    assert len(set(claimed.values())) == len(claimed), "no sandbox is two callers'"
    # A claim that had the launcher's ear when it was killed fails, and says so.
    assert b"the launcher is gone" in words.pop(500, b"the launcher is gone") and set(words) <= {429, 503}, words
    of.filled(api, 6)
    living = {one["id"]: one for one in api.list_all()}
    for name, sandbox in claimed.items():
        assert living[sandbox]["metadata"] == {"mine": name}
        assert api.run(sandbox, "echo $MINE $OPENSANDBOX_ID").stdout == f"{name} {sandbox}"
    # Those beyond are of the last claims of all, whose answers were lost.
    assert len(living) - len(claimed) <= len(workers)
    assert set(waiting_pids(api.service)).isdisjoint(pid for one in living for pid in api.service.scope.sandbox_pids(one)[:1])
    assert of.status(api)["allocated"] == len(living)
    with ThreadPoolExecutor(8) as pool:
        assert {reply.status for reply in pool.map(api.delete, living)} == {204}
    of.delete(api)
    keys = {table: count for table, count in leaks.row_counts(api.service.state_dir).items() if table.endswith(":create_keys")}
    baseline.rows.update(keys)  # they are kept for a day
    leaks.assert_nothing_leaked(api.service, baseline, timeout=30)


def test_a_key_makes_one_claim(api):
    of.make(api)
    first = of.post_claim(api, headers={"Idempotency-Key": "k"})
    again = of.post_claim(api, headers={"Idempotency-Key": "k"})
    assert first.json["id"] == again.json["id"] and again.header("idempotency-replayed") == "true"
    assert of.status(api)["allocated"] == 1


def test_a_claim_is_a_sandbox_like_any_other(api):
    of.make(api, least=1, most=1)
    sandbox = of.claim(api, env={"A": "1"}, timeout=60)
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    forked = api.call("POST", f"/sandboxes/{sandbox}/fork", json={"count": 1})
    assert forked.status == 202, forked
    assert api.run(forked.json["items"][0]["id"], "echo $A").stdout == "1", "a fork has the claim's environment"
    ends = of.claim(api, entrypoint=["sh", "-c", "sleep 0.5; echo bye; exit 3"])
    wait_for(lambda: api.status(ends)["state"] == "Failed", 10, "its end is seen")
    assert api.status(ends)["reason"] == "ENTRYPOINT_FAILED"


def test_a_snapshot_as_template(api):
    source = api.create()["id"]
    api.run(source, "echo kept > /root/f")
    taken = api.call("POST", f"/sandboxes/{source}/snapshots", json={}).json["id"]
    wait_for(lambda: api.call("GET", f"/snapshots/{taken}").json["status"]["state"] == "Ready", 20, "the snapshot")
    of.make(api, shape={"snapshotId": taken})
    sandbox = of.claim(api)
    assert api.run(sandbox, "cat /root/f").stdout == "kept"


def test_the_servers_own(new_service):
    api = Api(new_service(sections={"sandbox": {"pool_size": 2}}))
    wait_for(lambda: len(waiting_pids(api.service)) == 2, 10, "two wait")
    before = waiting_pids(api.service)
    fits = api.create(env={"A": "1"})["id"]
    assert api.service.scope.sandbox_pids(fits)[0] in before, "one of those that waited"
    assert api.run(fits, "echo $A $OPENSANDBOX_ID").stdout == f"1 {fits}"
    assert "allocation" not in api.get(fits)
    other = api.create(resourceLimits={"memory": "256Mi"})["id"]
    assert "taken ready" in events(api, fits) and "taken ready" not in events(api, other)
    wait_for(lambda: len(waiting_pids(api.service)) == 2, 10, "two wait again")
    assert api.call("GET", "/pools").json == {"items": []}
    for sandbox in (fits, other):
        assert api.delete(sandbox).status == 204


def test_secure_access_of_the_template_or_the_claim_holds(api):
    of.make(api, "secured", of.template(secureAccess=True))
    of.make(api, "plain")
    for pool, fields, wanted in (("secured", {}, 401), ("plain", {"secureAccess": True}, 401), ("plain", {}, 200)):
        of.filled(api, name=pool)
        sandbox = of.claim(api, pool, **fields)
        assert api.execd(sandbox, "GET", "/ping").status == wanted, (pool, fields)
        given = api.call("GET", f"/sandboxes/{sandbox}/endpoints/44772").json.get("headers", {})
        assert api.execd(sandbox, "GET", "/ping", headers=given).status == 200
        assert api.delete(sandbox).status == 204


def test_osb_pools(service, bin_dir):
    api = Api(service)

    def osb(*words, status=0, given=""):
        done = subprocess.run([bin_dir / "osb", "pools", *map(str, words)], env={"OPEN_SANDBOX_DOMAIN": "%s:%d" % service.address, "PATH": os.environ["PATH"]},
                              input=given, capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr

    assert osb("create", "cli", "--image", "host", "--memory", "512Mi", "--buffer-min", 1, "--buffer-max", 1, "--pool-max", 5) == "cli\n"
    of.filled(api, 1, "cli")
    shown = json.loads(osb("inspect", "cli"))
    assert shown["capacitySpec"] == {"bufferMin": 1, "bufferMax": 1, "poolMin": 0, "poolMax": 5} and shown["status"]["available"] == 1
    sandbox = of.post_claim(api, "cli").json["id"]
    of.filled(api, 1, "cli")
    head, line = osb("ls").splitlines()
    assert head.split()[:3] == ["NAME", "WAIT", "TAKEN"] and line.split()[:3] == ["cli", "1", "1"]

    # A template is what somebody has written; with one number the others follow.
    template = json.dumps({"image": {"uri": "host"}, "env": {"FROM": "file"}})
    assert osb("create", "file", "-", "--buffer-min", 3, given=template) == "file\n"
    named = {one["name"]: one for one in json.loads(osb("ls", "--json"))}
    assert named["file"]["capacitySpec"] == {"bufferMin": 3, "bufferMax": 3, "poolMin": 0, "poolMax": 50}
    of.filled(api, 3, "file")
    other = of.post_claim(api, "file").json["id"]
    assert api.run(other, "echo $FROM").stdout == "file"

    assert "POOL::ALREADY_EXISTS" in osb("create", "cli", "--image", "host", status=1)
    assert "POOL::NOT_FOUND" in osb("inspect", "none", status=1)
    assert "no JSON" in osb("create", "x", "-", given="{", status=1)
    assert "no such file" in osb("create", "x", "/nowhere/t.json", status=1).lower()
    for wrong in (["x"], ["x", "-", "--image", "host"], ["x", "--cpu", "1"]):
        assert "--image" in osb("create", *wrong, status=2)
    assert osb("rm", "cli", "file") == "cli\nfile\n"
    assert "POOL::NOT_FOUND" in osb("rm", "cli", status=1)
    for one in (sandbox, other):
        assert api.delete(one).status == 204
