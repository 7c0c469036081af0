"""Policies of containers on another host: a container beside each keeps them. Skipped where no engine can be had."""

import hmac
import json
import re
import shutil
import subprocess
import threading

import pytest
from lib import pools as of
from lib import rawhttp, snapshots
from lib.api import Api, assert_envelope, create_body
from lib.dockerd import IMAGE, SLEEPER, create, handles, nothing_left, ours, state
from lib.engine_remote import apart
from lib.impostor import IMPOSTOR, import_impostor
from lib.waiting import wait_for

ALLOWED, DENIED, NEVER = "203.0.113.1", "203.0.113.2", "203.0.113.3"
POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": ALLOWED}, {"action": "allow", "target": NEVER}]}
EGRESS = {"image": "egress:1", "deny_always": [NEVER], "name_servers": [ALLOWED]}


def with_libraries(program, root):
    """An image with nothing but a program of this machine in it."""
    shutil.copy(program, root / program.name)
    for line in subprocess.run(["ldd", program], capture_output=True, check=True, text=True).stdout.splitlines():
        for word in line.split():
            if word.startswith("/"):
                (root / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, root / word[1:])
    return subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def there(bin_dir, tmp_path_factory):
    """With three places in the world, and the image."""
    pages = tmp_path_factory.mktemp("pages")
    (pages / "index.html").write_text("a page\n")
    with apart() as made:
        tar = with_libraries(bin_dir / "osb", tmp_path_factory.mktemp("egress"))
        made.engine.docker("import", "-c", 'ENTRYPOINT ["/osb", "egress", "serve"]', "-", "egress:1", input=tar)
        made.engine.docker("import", "-c", 'ENTRYPOINT ["/osb", "version"]', "-", "broken:1", input=tar)
        import_impostor(made.engine)
        servers = []
        for address in (ALLOWED, DENIED, NEVER):
            subprocess.run([*made.engine.beside(), "ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
            servers.append(subprocess.Popen([*made.engine.beside(), "busybox", "httpd", "-f", "-p", f"{address}:80", "-h", str(pages)]))
        try:
            yield made
        finally:
            for server in servers:
                server.kill()
                server.wait(10)


@pytest.fixture(scope="module")
def engine(there):
    return there.engine


@pytest.fixture(scope="module")
def service(bin_dir, there):
    with there.service(bin_dir, sections={"egress": EGRESS}) as made:
        api = Api(made.start())
        assert api.delete(create(api)).status == 204
        yield made


@pytest.fixture
def api(service, engine):
    """Every test leaves nothing behind."""
    api = Api(service)
    with nothing_left(api, engine):
        yield api


def reaches(api, sandbox, address):
    return "a page" in api.run(sandbox, asking(address)).stdout


def asking(address):
    return f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} 80 2>/dev/null"


def policed(api, **fields):
    return create(api, networkPolicy=POLICY, **fields)


def test_what_is_allowed_and_nothing_else(api, engine):
    sandbox = policed(api, entrypoint=["sh", "-c", f"{asking(DENIED)} > /tmp/first; sleep 1000"])
    assert reaches(api, sandbox, ALLOWED) and not reaches(api, sandbox, DENIED)
    assert not reaches(api, sandbox, NEVER), "the operator's lists come first"
    assert "denied" in wait_for(lambda: api.run(sandbox, "cat /tmp/first").stdout, 10, "the entry process was answered")
    sidecar, name = f"sandbox-egress-{sandbox}", f"sandbox-{sandbox}"
    assert set(ours(engine)) == {sidecar, name}
    host = engine.inspect(name)["HostConfig"]
    assert host["NetworkMode"] == f"container:{engine.inspect(sidecar)['Id']}"
    assert {"NET_ADMIN", "NET_RAW"} <= set(host["CapDrop"]) and not host["CapAdd"]
    assert engine.inspect(sidecar)["HostConfig"]["CapAdd"] == ["NET_ADMIN"]
    assert engine.inspect(sidecar)["Config"]["Labels"]["opensandbox.io/egress-sidecar-for"] == sandbox, "people find it by the id"
    assert f"OPENSANDBOX_EGRESS_SANDBOX_ID={sandbox}" in engine.inspect(sidecar)["Config"]["Env"], "and its webhook and log name it"


def test_without_one(api, engine):
    sandbox = create(api)
    assert reaches(api, sandbox, ALLOWED) and reaches(api, sandbox, DENIED)
    assert len(ours(engine)) == 1
    assert api.call("GET", f"/sandboxes/{sandbox}/networkpolicy").status == 502


def test_changes(api):
    sandbox = policed(api)
    shown = api.call("GET", f"/sandboxes/{sandbox}/networkpolicy")
    assert shown.status == 200 and shown.json["policy"] == POLICY, shown
    more = api.call("PATCH", f"/sandboxes/{sandbox}/networkpolicy", json=[{"action": "allow", "target": DENIED}])
    assert more.status == 200, more
    assert reaches(api, sandbox, DENIED)
    endpoint = api.call("GET", f"/sandboxes/{sandbox}/endpoints/18080").json
    path = "/" + endpoint["endpoint"].partition("/")[2] + "/policy"
    seen = rawhttp.request(api.address, "GET", path, headers=list((endpoint.get("headers") or {}).items()))
    assert seen.status == 200 and DENIED in str(seen.json), seen


def stands_still(engine):
    return {"egress" in name: engine.inspect(name)["State"]["Paused"] for name in ours(engine)}


def test_both_are_paused(api, service, engine):
    """What polices a sandbox is one with it. A copy of one that is paused has its policy all the same."""
    sandbox = policed(api)
    assert stands_still(engine) == {False: False, True: False}
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    assert stands_still(engine) == {False: True, True: True}
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/networkpolicy"), 409, "SANDBOX::PAUSED")
    service.kill_both()
    service.start()
    snapshot = snapshots.make(api, sandbox)["id"]
    assert stands_still(engine) == {False: True, True: True}, "it was awake for a moment only"
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    assert stands_still(engine) == {False: False, True: False}
    assert reaches(api, sandbox, ALLOWED) and not reaches(api, sandbox, DENIED)
    assert api.call("GET", f"/sandboxes/{sandbox}/networkpolicy").json["policy"] == POLICY
    copy = snapshots.restore(api, snapshot, entrypoint=SLEEPER)
    assert reaches(api, copy, ALLOWED) and not reaches(api, copy, DENIED)


def test_whoever_is_policed_does_not_change_it(api):
    sandbox = policed(api)
    body = json.dumps({"defaultAction": "allow"})
    request = f"POST /policy HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}"
    said = api.run(sandbox, f"printf '{request}' | nc -w 3 127.0.0.1 18080").stdout
    assert said.startswith("HTTP/1.1 401 "), said
    assert api.run(sandbox, f"ip route del default; ip addr; {asking('172.17.0.1')}").stdout.count("a page") == 0
    assert reaches(api, sandbox, ALLOWED) and not reaches(api, sandbox, DENIED)
    # Through execd's proxy neither.
    assert api.execd(sandbox, "GET", "/proxy/18080/policy").status >= 400


def test_an_image_that_takes_the_place_of_execd(api, engine):
    """It is the first process and is given the secret of its execd, and has nothing that opens its egress."""
    replies = []
    creating = threading.Thread(target=lambda: replies.append(api.post_create(image={"uri": IMPOSTOR}, entrypoint=SLEEPER, networkPolicy=POLICY)))
    creating.start()
    (name,) = wait_for(lambda: [name for name in ours(engine) if "egress" not in name], 20, "its container is made")
    given = wait_for(lambda: re.search(r"given: ([0-9a-f]{64})", engine.docker("logs", name).stdout.decode()), 10, "it has the secret")
    secret = given[1]
    body = json.dumps({"defaultAction": "allow"})
    for token in (secret, hmac.digest(secret.encode(), b"egress", "sha256").hex()):
        request = f"POST /policy HTTP/1.1\\r\\nHost: x\\r\\nOPENSANDBOX-EGRESS-AUTH: {token}\\r\\nConnection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}"
        said = engine.docker("exec", name, "sh", "-c", f"printf '{request}' | nc -w 3 127.0.0.1 18080").stdout.decode()
        assert said.startswith("HTTP/1.1 401 "), said
    creating.join()
    assert replies[0].status == 500 and "execd" in replies[0].json["message"], replies


def test_after_a_kill_of_the_server(api, service):
    sandbox = policed(api)
    service.kill_both()
    service.start()
    assert reaches(api, sandbox, ALLOWED) and not reaches(api, sandbox, DENIED)
    assert api.call("GET", f"/sandboxes/{sandbox}/networkpolicy").json["policy"] == POLICY
    copy = snapshots.fork(api, sandbox)[0]
    assert reaches(api, copy, ALLOWED) and not reaches(api, copy, DENIED), "a copy has the policy, too"


def test_a_pool(api, engine):
    of.make(api, shape=of.template(image={"uri": IMAGE}, networkPolicy={"defaultAction": "deny"}), least=1, most=1)
    of.filled(api)
    waiting = set(ours(engine))
    assert len(waiting) == 2
    claimed = of.claim(api, entrypoint=SLEEPER)
    assert waiting == both_of(claimed), "both were named before anybody claimed them"
    assert not reaches(api, claimed, ALLOWED)
    # One that was promised another id before: both get its name.
    of.filled(api)
    body = create_body(image=..., entrypoint=SLEEPER, resourceLimits=..., extensions={"poolRef": "p"})
    reply = api.call("POST", "/sandboxes", json=body, headers={"Idempotency-Key": "one-of-a-pool"})
    assert reply.status == 202, reply
    wait_for(lambda: both_of(reply.json["id"]) <= set(ours(engine)), 10, "both are renamed")
    of.delete(api)
    wait_for(lambda: set(ours(engine)) == both_of(claimed) | both_of(reply.json["id"]), 20, "those that wait are gone")


def test_a_rollback_keeps_both_names(api, service, engine):
    """There are two of each for a moment. Whatever they are called then, they are found after a kill and go with their sandbox."""
    sandbox = policed(api)
    made = snapshots.make(api, sandbox)
    before = engine.inspect(f"sandbox-egress-{sandbox}")["Id"]
    assert snapshots.rollback(api, sandbox, made["id"]).status == 200
    wait_for(lambda: set(ours(engine)) == both_of(sandbox), 10, "the new ones have the names of the old ones")
    assert engine.inspect(f"sandbox-egress-{sandbox}")["Id"] != before
    # As the build before has named it.
    engine.docker("rename", f"sandbox-egress-{sandbox}", "sandbox-egress-of-somebody")
    service.kill_both()
    service.start()
    assert reaches(api, sandbox, ALLOWED) and not reaches(api, sandbox, DENIED)
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    assert stands_still(engine) == {False: True, True: True}


def both_of(sandbox):
    return {f"sandbox-{sandbox}", f"sandbox-egress-{sandbox}"}


def test_when_it_has_ended_nothing_leaves(api, engine):
    sandbox = policed(api)
    assert reaches(api, sandbox, ALLOWED)
    (sidecar,) = [name for name in ours(engine) if "egress" in name]
    engine.docker("kill", sidecar)
    wait_for(lambda: "polices its network has ended" in events_of(api, sandbox), 10, "its events say so")
    assert not reaches(api, sandbox, ALLOWED) and not reaches(api, sandbox, DENIED)
    # Somebody inside answers in its place.
    api.run(sandbox, """mkdir /tmp/w; echo '{"policy":{"defaultAction":"allow","egress":[]}}' > /tmp/w/policy; httpd -p 18080 -h /tmp/w""")
    refused = api.call("GET", f"/sandboxes/{sandbox}/networkpolicy")
    assert refused.status == 502 and "has ended" in refused.json["message"], refused
    assert events_of(api, sandbox).count("the container that polices its network has ended") == 1
    # It can be paused and resumed as before: what it has is not lost with its network.
    for verb, reached in (("pause", "Paused"), ("resume", "Running")):
        assert api.call("POST", f"/sandboxes/{sandbox}/{verb}").status == 202
        state(api, sandbox, reached)
    fork = api.call("POST", f"/sandboxes/{sandbox}/fork", json={"count": 1}, timeout=60)
    assert fork.status == 503, fork


def test_while_the_engine_is_away(api, service, there):
    """That is no word about the sandbox's egress."""
    sandbox = policed(api)
    there.way.cut()
    try:
        for path in ("networkpolicy", "egress/log"):
            reply = api.call("GET", f"/sandboxes/{sandbox}/{path}")
            assert reply.status == 503 and "the Docker engine does not answer" in reply.json["message"], reply
    finally:
        there.way.mend()
    wait_for(service.is_healthy, 20, "the service is healthy again")
    assert api.call("GET", f"/sandboxes/{sandbox}/networkpolicy").status == 200


def test_one_that_ends_while_nobody_listens(api, service, engine):
    sandbox = policed(api)
    (sidecar,) = [name for name in ours(engine) if "egress" in name]
    for round in range(2):
        service.kill_both()
        if round == 0:
            engine.docker("rm", "-f", sidecar)
        service.start()
        wait_for(lambda: "polices its network has ended" in events_of(api, sandbox), 10, "its events say so")
    assert events_of(api, sandbox).count("polices its network has ended") == 1, "once is enough"


def events_of(api, sandbox):
    return api.call("GET", f"/sandboxes/{sandbox}/diagnostics/events").body.decode()


def test_kill_9_in_the_middle(api, service, engine):
    """Whatever there is of a sandbox goes, also when only the container beside it was made."""
    creating = threading.Thread(target=lambda: attempt(api))
    creating.start()
    wait_for(lambda: ours(engine), 20, "something is made", interval=0.005)
    service.kill_both()
    creating.join()
    service.start()
    wait_for(lambda: not ours(engine), 20, "no container is left")
    wait_for(lambda: not handles(service), 10, "no directory is left")


def attempt(api):
    try:
        api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, networkPolicy=POLICY)
    except (OSError, rawhttp.Closed):
        pass


def test_an_image_that_is_none(bin_dir, there):
    """One that is missing, and one that does not do what it should: the create says so, and nothing is left."""
    for image, words in (("nobody/has-this:1", ("egress.image",)), ("broken:1", ("egress", "ended"))):
        with there.service(bin_dir, sections={"egress": {"image": image}}) as service:
            api = Api(service.start())
            volumes, uploads = there.boot_volumes(), there.uploads()
            reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, networkPolicy=POLICY)
            assert reply.status >= 400 and all(word in reply.json["message"] for word in words), reply
            wait_for(lambda: not ours(there.engine), 20, "no container is left")
            # An image is looked for first, where there is time to pull it.
            assert there.uploads() == uploads or image == "broken:1"
            for volume in there.boot_volumes() - volumes:
                there.engine.docker("volume", "rm", volume)
