"""docker.adopt: containers that the original server has made. They are made here with the engine's own client, with the names, labels
and command line which that server gives them; our execd, by TCP and without a token, stands for its execd."""

import json
import shutil
import subprocess
import tempfile
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from lib import snapshots as of
from lib.api import Api
from lib.dockerd import IMAGE, create, service_on, state
from lib.dockerd import engine as an_engine
from lib.engine_network import inside_network
from lib.waiting import wait_for
from lib.websocket import TEXT, WebSocket

BOOTSTRAP = '#!/bin/sh\n/opt/opensandbox/execd --port 44772 &\n"$@" &\nchild=$!\ntrap "kill $child; exit 0" TERM\nwait $child\nexit $?\n'


@pytest.fixture(scope="module")
def engine():
    with an_engine() as made, inside_network(made):
        yield made


@pytest.fixture
def others(engine, bin_dir, tmp_path):
    """Makes containers as the original server does; whatever is left of them goes in the end."""
    tools = tmp_path / "opt/opensandbox"
    tools.mkdir(parents=True)
    shutil.copy(bin_dir / "execd", tools / "execd")
    (tools / "bootstrap.sh").write_text(BOOTSTRAP)
    (tools / "bootstrap.sh").chmod(0o755)
    made = []

    def make(*command, id=None, expires=None, labels=None, options=()):
        sandbox = id or str(uuid.uuid4())
        moment = expires and (datetime.now(timezone.utc) + timedelta(seconds=expires)).isoformat(timespec="microseconds")
        given = {
            "opensandbox.io/id": sandbox,
            **({"opensandbox.io/expires-at": moment} if moment else {"opensandbox.io/manual-cleanup": "true"}),
            "opensandbox.io/embedding-proxy-port": "40001",
            "opensandbox.io/http-port": "40002",
            **(labels or {}),
        }
        words = [word for name, value in given.items() for word in ("--label", f"{name}={value}")]
        engine.docker("create", "--name", f"sandbox-{sandbox}", "--entrypoint", "/opt/opensandbox/bootstrap.sh", "-e", f"OPENSANDBOX_ID={sandbox}", *words, *options, IMAGE, *(command or ("sleep", "1000")))
        engine.docker("cp", str(tools.parent), f"sandbox-{sandbox}:/")
        engine.docker("start", f"sandbox-{sandbox}")
        made.append(f"sandbox-{sandbox}")
        return sandbox

    yield make
    engine.docker("rm", "-f", *made, check=False)


@pytest.fixture
def service(bin_dir, engine):
    """Not started yet."""
    made = service_on(bin_dir, engine, docker={"adopt": True})
    yield made
    made.destroy()


def is_there(engine, sandbox):
    return f"sandbox-{sandbox}" in engine.containers()


def ids(api):
    return {one["id"] for one in api.list_all()}


def test_taken_over(engine, others, service):
    kept = others("sh", "-c", "echo first words; httpd -p 8000 -h /etc; exec sleep 1000", expires=600, labels={"team": "red", "opensandbox.io/platform-os": "linux", "opensandbox.io/platform-arch": "amd64"})
    for_ever = others()
    api = Api(service.start(timeout=60))
    assert ids(api) == {kept, for_ever}
    seen = api.get(kept)
    assert seen["metadata"] == {"team": "red"} and seen["image"]["uri"] == IMAGE and seen["status"]["state"] == "Running"
    label = engine.inspect(f"sandbox-{kept}")["Config"]["Labels"]["opensandbox.io/expires-at"]
    assert abs((moment(seen["expiresAt"]) - moment(label)).total_seconds()) < 0.001
    assert not api.get(for_ever).get("expiresAt")
    wait_for(lambda: api.execd(kept, "GET", "/ping").status == 200, 10, "its execd answers")
    assert api.run(kept, "echo $OPENSANDBOX_ID").stdout == kept
    api.upload(kept, "/root/data", b"bytes")
    assert api.download(kept, "/root/data") == b"bytes"
    wait_for(lambda: api.call("GET", f"/sandboxes/{kept}/proxy/8000/passwd").status == 200, 10, "its port answers")
    assert b"first words" in api.call("GET", f"/sandboxes/{kept}/diagnostics/logs").body
    assert api.call("POST", f"/sandboxes/{kept}/pause").status == 202
    state(api, kept, "Paused")
    assert engine.inspect(f"sandbox-{kept}")["State"]["Paused"]
    assert api.call("POST", f"/sandboxes/{kept}/resume").status == 202
    state(api, kept, "Running")
    assert api.run(kept, "echo on").stdout == "on"
    for sandbox in (kept, for_ever):
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not is_there(engine, sandbox), 20, "its container is gone")


def test_what_the_original_server_has_changed_since(engine, others, bin_dir, tmp_path):
    """Metadata and renewals are in files of its own, which root reads: the service's user could not."""
    changed, renewed, plain = others(expires=600, labels={"team": "red"}), others(expires=-5), others(labels={"team": "red"})
    kept = Path(tempfile.mkdtemp(prefix="osb-original-", dir="/var/tmp"))
    files = kept / "metadata"
    (files / "_expiration").mkdir(parents=True)
    (files / f"{changed}.json").write_text(json.dumps({"team": "blue", "stage": "two"}))
    (files / f"{plain}.json").write_text("no JSON")
    later = (datetime.now(timezone.utc) + timedelta(seconds=900)).isoformat(timespec="microseconds")
    (files / f"_expiration/{renewed}.json").write_text(json.dumps({"expires_at": later}))
    (files / "link.json").symlink_to("/etc/shadow")
    service = service_on(bin_dir, engine, docker={"adopt": True, "adopt_metadata": str(files)})
    try:
        api = Api(service.start(timeout=60))
        assert ids(api) == {changed, renewed, plain}, "a renewal counts more than the label"
        assert api.get(changed)["metadata"] == {"team": "blue", "stage": "two"}
        assert api.get(plain)["metadata"] == {"team": "red"} and "makes no sense" in service.log_tail()
        assert moment(api.get(renewed)["expiresAt"]) == moment(later)
        shutil.rmtree(kept)
        service.kill_server()
        assert api.get(changed)["metadata"] == {"team": "blue", "stage": "two"}, "from now on its row counts"
        for sandbox in (changed, renewed, plain):
            assert api.delete(sandbox).status == 204
    finally:
        service.destroy()
        shutil.rmtree(kept, ignore_errors=True)


def test_a_directory_behind_a_link_is_refused(engine, bin_dir):
    kept = Path(tempfile.mkdtemp(prefix="osb-original-", dir="/var/tmp"))
    (kept / "real").mkdir()
    (kept / "link").symlink_to(kept / "real")
    service = service_on(bin_dir, engine, docker={"adopt": True, "adopt_metadata": str(kept / "link")})
    try:
        service.spawn()
        wait_for(lambda: "docker.adopt_metadata" in service.log_tail(), 10, "the log has the reason")
    finally:
        service.destroy()
        shutil.rmtree(kept)


def test_an_id_that_is_no_uuid(engine, others, service):
    sandbox = others(id="my-sandbox.1", labels={"team": "red"})
    others(labels={"opensandbox.io/id": "a/b"})
    api = Api(service.start(timeout=60))
    assert ids(api) == {sandbox}
    wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 10, "its execd answers")
    assert api.run(sandbox, "echo $OPENSANDBOX_ID").stdout == sandbox
    service.kill_both()
    for file in (service.state_dir / "db").glob("opensandbox.db*"):
        file.unlink()
    service.start(timeout=60)
    wait_for(lambda: ids(api) == {sandbox}, 20, "it is known again, without its row")
    assert api.get(sandbox)["metadata"] == {"team": "red"} and api.run(sandbox, "echo on").stdout == "on"
    engine.docker("kill", f"sandbox-{sandbox}")
    state(api, sandbox, "Failed")
    assert api.delete(sandbox).status == 204
    wait_for(lambda: not is_there(engine, sandbox), 20, "its container is gone")


def test_a_program_on_the_loopback_inside(engine, others, service):
    """The original's execd relays to it; the container's address refuses."""
    sandbox = others("httpd", "-f", "-p", "127.0.0.1:8000", "-h", "/etc")
    api = Api(service.start(timeout=60))
    reply = wait_for(lambda: ok(api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/passwd?a=b")), 10, "its port answers")
    assert reply.body.startswith(b"root:x:0")
    assert api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/none").status == 404, "that program's own word"
    assert api.call("GET", f"/sandboxes/{sandbox}/proxy/8001/").status == 502
    assert api.delete(sandbox).status == 204


SPEAKS_WEBSOCKET = r"""
cat > /tmp/speak <<'END'
while read -r line; do
  line=$(printf %s "$line" | tr -d '\r')
  case "$line" in [Ss]ec-[Ww]eb[Ss]ocket-[Kk]ey:*) key=${line#*: } ;; '') break ;; esac
done
accept=$(printf '%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11' "$key" | sha1sum | cut -c1-40 | xxd -r -p | base64)
printf 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n\201\005hello' "$accept"
cat > /dev/null
END
exec nc -ll -p 8000 -e sh /tmp/speak
"""


def test_a_websocket_that_the_containers_address_refuses(engine, others, service):
    """Busybox has no server for WebSockets that listens on the loopback only, so its address is made to refuse."""
    sandbox = others("sh", "-c", SPEAKS_WEBSOCKET)
    refuse = ["OUTPUT", "-p", "tcp", "--dport", "8000", "-j", "REJECT", "--reject-with", "tcp-reset"]
    subprocess.run([*engine.inside(), "iptables", "-I", *refuse], check=True, env=engine.environment())
    api = Api(service.start(timeout=60))

    def said():
        with WebSocket(api.address, f"/v1/sandboxes/{sandbox}/proxy/8000/any") as socket:
            assert socket.status == 101, socket.status
            return socket.frame()

    try:
        assert wait_for(said, 10, "it speaks") == (TEXT, b"hello")
    finally:
        subprocess.run([*engine.inside(), "iptables", "-D", *refuse], check=True, env=engine.environment())
    assert api.delete(sandbox).status == 204


def ok(reply):
    return reply if reply.status == 200 else None


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_what_is_not_to_be_taken(engine, others, bin_dir):
    """Without docker.adopt, and whatever another service of ours has made, with it."""
    theirs = service_on(bin_dir, engine)
    others_sandbox = others()
    try:
        their_api = Api(theirs.start(timeout=60))
        assert others_sandbox not in ids(their_api)
        their_own = create(their_api)
        labelled = others(labels={"opensandbox.io/owner": "somebody"})
        mine = service_on(bin_dir, engine, docker={"adopt": True})
        try:
            api = Api(mine.start(timeout=60))
            assert ids(api) == {others_sandbox}
        finally:
            mine.destroy()
        assert is_there(engine, labelled) and is_there(engine, their_own) and is_there(engine, others_sandbox)
        assert their_api.run(their_own, "echo still").stdout == "still"
        assert their_api.delete(their_own).status == 204
    finally:
        theirs.destroy()


def test_states_and_ends(engine, others, service):
    paused, failed, done = others(), others("sh", "-c", "echo last words; exit 3"), others("true")
    engine.docker("pause", f"sandbox-{paused}")
    for one in (failed, done):
        engine.docker("wait", f"sandbox-{one}")
    api = Api(service.start(timeout=60))
    assert state(api, paused, "Paused") and state(api, done, "Terminated")
    assert "code 3" in state(api, failed, "Failed")["message"]
    assert b"last words" in api.call("GET", f"/sandboxes/{failed}/diagnostics/logs").body
    assert api.call("POST", f"/sandboxes/{paused}/resume").status == 202
    state(api, paused, "Running")
    wait_for(lambda: api.execd(paused, "GET", "/ping").status == 200, 10, "its execd answers")
    engine.docker("kill", f"sandbox-{paused}")
    state(api, paused, "Failed")
    for sandbox in (paused, failed, done):
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not is_there(engine, sandbox), 20, "its container is gone")


def test_expiry_and_renewal(engine, others, service):
    over, renewed = others(expires=-5), others(expires=30)
    api = Api(service.start(timeout=60))
    wait_for(lambda: not is_there(engine, over), 20, "what has expired is ended")
    # Its row goes when the engine has answered that the container is gone, so a moment later.
    wait_for(lambda: over not in ids(api), 5, "its record goes")
    api.renew(renewed, 600)
    later = api.get(renewed)["expiresAt"]
    service.kill_both()
    service.start(timeout=60)
    assert api.get(renewed)["expiresAt"] == later, "the label says otherwise"
    api.renew(renewed, 2)
    wait_for(lambda: not is_there(engine, renewed), 20, "it expires")


def test_kill_9(engine, others, service):
    sandbox = others(labels={"team": "red"})
    api = Api(service.start(timeout=60))
    wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 10, "its execd answers")
    service.kill_both()
    # Once taken over it stays, whatever the file says by then, and also when the database is lost.
    before = service.config_path.read_text()
    service.config_path.write_text(before.replace('"adopt" = true', '"adopt" = false'))
    assert service.config_path.read_text() != before
    service.start(timeout=60)
    assert api.run(sandbox, "echo on").stdout == "on" and api.get(sandbox)["metadata"] == {"team": "red"}
    service.kill_both()
    for file in (service.state_dir / "db").glob("opensandbox.db*"):
        file.unlink()
    service.start(timeout=60)
    wait_for(lambda: sandbox in ids(api), 20, "it is known again")
    assert api.run(sandbox, "echo on").stdout == "on" and api.get(sandbox)["metadata"] == {"team": "red"}
    assert api.delete(sandbox).status == 204
    wait_for(lambda: not is_there(engine, sandbox), 20, "its container is gone")


def test_one_that_shares_the_network_of_its_sidecar(engine, others, service):
    """As with a networkPolicy there: the sidecar goes with it, and so does a volume that was made for it."""
    sandbox = str(uuid.uuid4())
    engine.docker("volume", "create", "--label", "opensandbox.io/volume-managed-by=server", "made-for-it")
    engine.docker("run", "-d", "--name", f"sandbox-egress-{sandbox}", "--label", f"opensandbox.io/egress-sidecar-for={sandbox}", IMAGE, "sleep", "1000")
    lost, others_sidecar = str(uuid.uuid4()), "sandbox-egress-of-another-service"
    engine.docker("run", "-d", "--name", f"sandbox-egress-{lost}", "--label", f"opensandbox.io/egress-sidecar-for={lost}", IMAGE, "sleep", "1000")
    engine.docker("run", "-d", "--name", others_sidecar, "--label", f"opensandbox.io/egress-sidecar-for={lost}", "--label", "opensandbox.io/owner=x", IMAGE, "sleep", "1000")
    options = ("--network", f"container:sandbox-egress-{sandbox}", "-v", "made-for-it:/data")
    others(id=sandbox, labels={"opensandbox.io/volume-managed-by": '["made-for-it"]'}, options=options)
    api = Api(service.start(timeout=60))
    assert ids(api) == {sandbox}, "a sidecar is no sandbox"
    wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 10, "its execd answers")
    wait_for(lambda: f"sandbox-egress-{lost}" not in engine.containers(), 20, "that of a sandbox which is no more goes")
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    state(api, sandbox, "Paused")
    assert engine.inspect(f"sandbox-egress-{sandbox}")["State"]["Paused"]
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    state(api, sandbox, "Running")
    assert not engine.inspect(f"sandbox-egress-{sandbox}")["State"]["Paused"]
    assert api.run(sandbox, "echo on").stdout == "on"
    assert api.delete(sandbox).status == 204
    wait_for(lambda: f"sandbox-egress-{sandbox}" not in engine.containers(), 20, "its sidecar is gone")
    assert others_sidecar in engine.containers(), "what another service has made is not touched"
    engine.docker("rm", "-f", others_sidecar)
    assert "made-for-it" not in engine.volumes()


POLICY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "allowed.test"}]}
ANSWERS_POLICY = r"""
cat > /tmp/speak <<'END'
while read -r line; do
  line=$(printf %s "$line" | tr -d '\r')
  case "$line" in [Oo][Pp][Ee][Nn][Ss]*[Aa][Uu][Tt][Hh]:*) token=${line#*: } ;; '') break ;; esac
done
body='POLICY'
[ "$token" = its-token ] || { printf 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'; exit; }
printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' "${#body}" "$body"
END
exec nc -ll -p 18080 -e sh /tmp/speak
"""


@pytest.fixture
def policed(engine, others):
    """As with a networkPolicy there; the command stands for the sidecar's own program."""
    made = []

    def make(*command):
        sandbox = str(uuid.uuid4())
        engine.docker("run", "-d", "--name", f"sandbox-egress-{sandbox}", "--label", f"opensandbox.io/egress-sidecar-for={sandbox}", IMAGE, *command)
        made.append(f"sandbox-egress-{sandbox}")
        return others(id=sandbox, labels={"opensandbox.io/egress-auth-token": "its-token"}, options=("--network", f"container:sandbox-egress-{sandbox}"))

    yield make
    engine.docker("rm", "-f", *made, check=False)


def test_a_copy_has_the_policy_of_the_sidecar(engine, policed, service):
    script = ANSWERS_POLICY.replace("POLICY", json.dumps({"status": "ok", "mode": "enforcing", "policy": POLICY}))
    sandbox = policed("sh", "-c", script)
    api = Api(service.start(timeout=60))
    wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 10, "its execd answers")
    reply = api.call("GET", f"/sandboxes/{sandbox}/networkpolicy")
    assert reply.status == 200 and reply.json["policy"] == POLICY, reply
    taken = of.make(api, sandbox)
    copies = [*of.fork(api, sandbox), api.create(image=..., snapshotId=taken["id"], entrypoint=["sleep", "1000"])["id"]]
    assert of.rollback(api, sandbox, taken["id"]).status == 200
    for one in (*copies, sandbox):
        name = next(name for name in engine.containers() if one in name and "egress" not in name)
        assert engine.inspect(name)["HostConfig"]["NetworkMode"] == "none", "its way out is held by this service"
        reply = api.call("GET", f"/sandboxes/{one}/networkpolicy")
        assert reply.status == 200 and reply.json["policy"] == POLICY, reply
    for one in (*copies, sandbox):
        assert api.delete(one).status == 204
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204


@pytest.mark.parametrize("command", [("sleep", "1000"), ("sh", "-c", ANSWERS_POLICY.replace("POLICY", "{}").replace("its-token", "another")), ("sh", "-c", ANSWERS_POLICY.replace("POLICY", '{"status":"ok"}')), ("true",)], ids=["silent", "refuses", "says nothing", "ended"])
def test_one_whose_policy_is_not_known_is_not_copied(engine, others, service, policed, command):
    """A copy would have the whole of the engine's network."""
    plain = others()
    sandbox = policed("sleep", "1000") if command == ("true",) else policed(*command)
    if command == ("true",):
        engine.docker("kill", f"sandbox-egress-{sandbox}")
    api = Api(service.start(timeout=60))
    before = of.make(api, plain)
    containers = sorted(engine.containers())
    for verb, body in (("snapshots", {}), ("fork", {}), ("rollback", {"snapshotId": before["id"]})):
        reply = api.call("POST", f"/sandboxes/{sandbox}/{verb}", json=body)
        assert reply.status == 503 and "network policy" in reply.json["message"] and "sidecar" in reply.json["message"], (verb, reply)
    assert sorted(engine.containers()) == containers and len(api.call("GET", "/snapshots").json["items"]) == 1
    assert api.call("GET", f"/sandboxes/{sandbox}/networkpolicy").status != 200 or command[0] == "sh"
    (fork,) = of.fork(api, plain)
    for one in (fork, plain, sandbox):
        assert api.delete(one).status == 204
    assert api.call("DELETE", f"/snapshots/{before['id']}").status == 204


def test_variables_are_copied_and_not_in_the_image(engine, others, service):
    sandbox = others(options=("-e", "TOKEN=s3cret", "-e", "PATH=/own:/bin"))
    api = Api(service.start(timeout=60))
    wait_for(lambda: api.execd(sandbox, "GET", "/ping").status == 200, 10, "its execd answers")
    taken = of.make(api, sandbox)
    # Engines before Docker 26 also note what the container was made with, which is given to nothing that is made of the image.
    config = json.loads(engine.docker("image", "inspect", f"opensandbox-snapshots:{taken['id']}").stdout)[0]["Config"]
    assert "s3cret" not in json.dumps(config) and "/own" not in json.dumps(config), config
    (fork,) = of.fork(api, sandbox)
    assert api.run(fork, "echo $TOKEN $PATH").stdout == "s3cret /own:/bin"
    made = api.create(image=..., snapshotId=taken["id"], entrypoint=["sleep", "1000"])["id"]
    seen = api.run(made, "env").stdout.splitlines()
    assert "s3cret" not in "".join(seen)
    assert [line for line in seen if line.startswith("TOKEN")] == ([] if engine.takes_variables_away else ["TOKEN="])
    assert api.run(made, "ls /").exit_code == 0
    restored = api.create(image=..., snapshotId=taken["id"], entrypoint=["sleep", "1000"], extensions={"restore.env": "true"})["id"]
    assert api.run(restored, "echo $TOKEN").stdout == "s3cret"
    for one in (sandbox, fork, made, restored):
        assert api.delete(one).status == 204
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
