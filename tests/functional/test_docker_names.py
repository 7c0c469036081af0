"""What a container is called and says of itself: people find a sandbox by its id, whatever way it came to be."""

from datetime import datetime

import pytest
from lib import pools as of
from lib import snapshots
from lib.api import Api, create_body
from lib.dockerd import IMAGE, SLEEPER, create, nothing_left, ours, service_on, state
from lib.waiting import wait_for

OURS = "opensandbox.io/"


@pytest.fixture
def api(docker, engine):
    """Every test leaves nothing behind."""
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


def labels(engine, sandbox):
    return engine.inspect(f"sandbox-{sandbox}")["Config"]["Labels"]


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_name_and_labels(api, engine):
    timed = create(api, timeout=600, metadata={"team": "red"}, platform={"os": "linux", "arch": "amd64"}, extensions={"opensandbox.extensions.region": "eu"})
    for_ever = create(api, timeout=None)
    assert set(ours(engine)) == {f"sandbox-{timed}", f"sandbox-{for_ever}"}
    found = labels(engine, timed)
    assert found[OURS + "id"] == timed and found["team"] == "red"
    assert found[OURS + "expires-at"].endswith("+00:00") and len(found[OURS + "expires-at"]) == len("2026-01-02T03:04:05.000001+00:00")
    assert moment(found[OURS + "expires-at"]) == moment(api.get(timed)["expiresAt"])
    assert (found[OURS + "platform-os"], found[OURS + "platform-arch"], found[OURS + "extensions.region"]) == ("linux", "amd64", "eu")
    other = labels(engine, for_ever)
    assert other[OURS + "id"] == for_ever and other[OURS + "manual-cleanup"] == "true"
    for absent in ("expires-at", "platform-os", "platform-arch", "snapshot-id", "access-renew-extend-seconds"):
        assert OURS + absent not in other, other
    assert OURS + "manual-cleanup" not in found
    before = found[OURS + "expires-at"]
    api.renew(timed, 1200)
    assert labels(engine, timed)[OURS + "expires-at"] == before, "labels cannot be changed; the row counts"


def test_renewal_by_use_is_a_label(bin_dir, engine):
    service = service_on(bin_dir, engine, sections={"renew_intent": {"enabled": True}})
    try:
        api = Api(service.start())
        sandbox = create(api, extensions={"access.renew.extend.seconds": "600"})
        assert labels(engine, sandbox)[OURS + "access-renew-extend-seconds"] == "600"
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        service.destroy()


def test_what_is_made_of_a_snapshot(api, engine):
    source = create(api, metadata={"team": "red"}, timeout=600)
    made = snapshots.make(api, source)
    restored = snapshots.restore(api, made["id"], entrypoint=SLEEPER)
    (forked,) = snapshots.fork(api, source)
    assert set(ours(engine)) == {f"sandbox-{one}" for one in (source, restored, forked)}
    found = labels(engine, restored)
    assert found[OURS + "snapshot-id"] == made["id"] and found[OURS + "id"] == restored
    assert OURS + "snapshot-id" not in labels(engine, source)


def test_one_that_waited_has_its_id_from_the_start(api, docker, engine):
    """No question to the engine: its name and its label were right before anybody claimed it."""
    of.make(api, shape=of.template(image={"uri": IMAGE}), least=2, most=2)
    of.filled(api, 2)
    waiting = {name: engine.inspect(name) for name in ours(engine)}
    for name, container in waiting.items():
        found = container["Config"]["Labels"]
        assert name == f"sandbox-{found[OURS + 'id']}"
        assert OURS + "expires-at" not in found and OURS + "manual-cleanup" not in found, "nobody knows yet"
    first = of.claim(api, entrypoint=SLEEPER)
    assert f"sandbox-{first}" in waiting
    # Also after a kill.
    of.filled(api, 2)
    docker.kill_both()
    docker.start()
    of.filled(api, 2)
    waiting = set(ours(engine)) - {f"sandbox-{first}"}
    second = of.claim(api, entrypoint=SLEEPER)
    assert f"sandbox-{second}" in waiting
    # One that was promised another id before gets the name of that, off the request's way.
    of.filled(api, 2)
    body = create_body(image=..., entrypoint=SLEEPER, resourceLimits=..., extensions={"poolRef": "p"})
    reply = api.call("POST", "/sandboxes", json=body, headers={"Idempotency-Key": "one-of-a-pool"})
    assert reply.status == 202, reply
    api.service.scope.remember(reply.json["id"])
    wait_for(lambda: f"sandbox-{reply.json['id']}" in ours(engine), 10, "it is renamed")
    again = api.call("POST", "/sandboxes", json=body, headers={"Idempotency-Key": "one-of-a-pool"})
    assert again.json["id"] == reply.json["id"] and again.header("idempotency-replayed") == "true"
    assert api.run(reply.json["id"], "echo $OPENSANDBOX_ID").stdout == reply.json["id"]
    of.delete(api)


def test_a_rollback_keeps_the_name(api, docker, engine):
    sandbox = create(api)
    made = snapshots.make(api, sandbox)
    before = engine.inspect(f"sandbox-{sandbox}")["Id"]
    assert snapshots.rollback(api, sandbox, made["id"]).status == 200
    wait_for(lambda: ours(engine) == [f"sandbox-{sandbox}"], 10, "the new container has the name of the old one")
    assert engine.inspect(f"sandbox-{sandbox}")["Id"] != before
    docker.kill_server()
    assert api.run(sandbox, "echo on").stdout == "on"


def test_whatever_it_is_called(api, docker, engine):
    """A container is found by its labels: one that is named after its handle, as once they were, or by somebody, is served and removed."""
    renamed, ended = create(api), create(api, entrypoint=["sleep", "2"])
    handle = engine.inspect(f"sandbox-{renamed}")["Config"]["Labels"][OURS + "handle"]
    engine.docker("rename", f"sandbox-{renamed}", f"sandbox-{handle}")
    engine.docker("rename", f"sandbox-{ended}", "sandbox-of-somebody")
    docker.kill_both()
    docker.start()
    assert api.run(renamed, "echo on").stdout == "on"
    assert api.call("POST", f"/sandboxes/{renamed}/pause").status == 202
    state(api, renamed, "Paused")
    state(api, ended, "Terminated")
    assert api.delete(ended).status == 204 and api.delete(renamed).status == 204
    wait_for(lambda: not ours(engine), 20, "both are gone")


def test_an_images_labels_say_nothing(api, engine):
    changes = [f"LABEL {OURS}{name}=theirs" for name in ("id", "owner", "handle", "expires-at", "manual-cleanup", "snapshot-id", "extensions.x")]
    engine.docker("create", "--name", "odd", IMAGE, "true")
    engine.docker("commit", *(word for change in changes for word in ("-c", change)), "odd", "boasting:1")
    engine.docker("rm", "odd")
    try:
        sandbox = create(api, image={"uri": "boasting:1"})
        found = labels(engine, sandbox)
        assert found[OURS + "id"] == sandbox and "theirs" not in found.values(), found
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        engine.docker("rmi", "boasting:1")
