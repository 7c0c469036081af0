"""Images made of sandboxes and snapshots: what they are made of, whose they are, what is left of them."""

import os
import threading
import time

import pytest
from lib import images as make
from lib import leaks, rawhttp
from lib import snapshots as of
from lib.api import Api, assert_envelope
from lib.images import Images
from lib.waiting import wait_for


@pytest.fixture
def api(new_service):
    return Api(new_service())


def commit(api, name, config=None, **source):
    body = {**source, "name": name, **({"config": config} if config else {})}
    return api.call("POST", "/images/commit", json=body)


def made(api, name, config=None, **source):
    reply = commit(api, name, config, **source)
    assert reply.status == 201, reply.body
    assert reply.json["name"] == name
    return reply.json["id"]


def listed(api):
    return {name: item for item in api.call("GET", "/images").json["items"] for name in item["names"]}


def run(api, image, command):
    sandbox = api.create(image={"uri": image}, entrypoint=["sleep", "600"])["id"]
    try:
        return api.run(sandbox, command).stdout
    finally:
        assert api.delete(sandbox).status == 204


def test_a_sandbox_becomes_an_image(api):
    source = api.create()["id"]
    made(api, "first", sandboxId=source)  # makes the directories of the store
    assert api.call("DELETE", "/images?name=first").status == 204
    assert api.delete(source).status == 204
    baseline = leaks.snapshot(api.service)
    source = api.create()["id"]
    api.run(source, "mkdir -p /srv/app /usr/local/lib/x; echo one > /srv/app/f; echo u > /usr/local/lib/x/f; rm -rf /usr/games; mkdir -m 777 /srv/open")
    image = made(
        api,
        "team/app:1",
        {"env": {"MODE": "built"}, "user": "user", "workingDir": "/srv/app", "entrypoint": ["/bin/echo"], "cmd": ["hi"], "labels": {"a": "b"}, "exposedPorts": ["8080"]},
        sandboxId=source,
    )
    assert api.run(source, "echo two > /srv/app/f; cat /srv/app/f").stdout == "two", "the sandbox goes on"
    assert api.delete(source).status == 204
    wait_for(lambda: api.call("GET", "/snapshots").json["items"] == [], 10, "what it needed is gone")
    record = listed(api)["team/app:1"]
    assert record["id"] == image and record["user"] == "user" and record["workdir"] == "/srv/app"
    assert record["entrypoint"] == ["/bin/echo"] and record["cmd"] == ["hi"]
    assert record["labels"] == {"a": "b"} and record["exposedPorts"] == ["8080/tcp"] and "MODE=built" in record["env"]
    out = run(api, "team/app:1", "cat f /usr/local/lib/x/f; id -u; echo $MODE; ls -d /usr/games 2>&1 | wc -l; touch /srv/open/mine && pwd").split()
    assert out == ["one", "u", "1000", "built", "1", "/srv/app"]
    # Restarts change nothing, and the layers are still somebody's.
    api.service.kill_both()
    api.service.start()
    assert run(api, "team/app:1", "cat /srv/app/f") == "one"
    assert api.call("DELETE", "/images?name=team/app:1").status == 204
    assert_envelope(api.post_create(image={"uri": "team/app:1"}), 400, "IMAGE::NOT_FOUND")
    assert api.delete(api.create()["id"]).status == 204  # its remains go with somebody else's
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "the layers go with the image")
    leaks.assert_nothing_leaked(api.service, baseline)


def test_of_a_snapshot_and_images_upon_images(api):
    source = api.create()["id"]
    api.run(source, "echo one > /srv/1")
    taken = of.make(api, source)["id"]
    made(api, "first", snapshotId=taken)
    for gone in (f"/sandboxes/{source}", f"/snapshots/{taken}"):
        assert api.call("DELETE", gone).status == 204
    second = api.create(image={"uri": "first"}, entrypoint=["sleep", "600"])["id"]
    api.run(second, "echo two > /srv/2; rm /srv/1")
    snapshot = of.make(api, second)["id"]
    made(api, "second", {"workingDir": "/srv"}, snapshotId=snapshot)
    assert_envelope(api.call("DELETE", "/images?name=first"), 409, "IMAGE::IN_USE")
    assert api.delete(second).status == 204
    restored = of.restore(api, snapshot)
    assert api.run(restored, "ls /srv").stdout == "2"
    assert api.delete(restored).status == 204
    assert api.call("DELETE", f"/snapshots/{snapshot}").status == 204
    assert api.call("DELETE", "/images?name=first").status == 204
    assert run(api, "second", "ls; cat 2").split() == ["2", "two"]
    # A name that moves leaves nothing of the image that had it.
    third = api.create()["id"]
    api.run(third, "echo three > /srv/3")
    made(api, "second", sandboxId=third)
    assert run(api, "second", "ls /srv") == "3"
    assert api.delete(third).status == 204
    assert api.call("DELETE", "/images?name=second").status == 204
    assert api.delete(api.create()["id"]).status == 204
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "nothing is left")


def test_over_an_imported_image(api, bin_dir, tmp_path):
    images = Images(bin_dir, api.service.config_path, api.service.state_dir)
    archive = tmp_path / "root.tar"
    archive.write_bytes(make.root_tar())
    images.import_(archive, "--name", "base", "--env", "A=1", "--user", "app")
    source = api.create(image={"uri": "base"}, entrypoint=["sleep", "600"])["id"]
    api.run(source, "echo mine > /home/app/f")
    image = made(api, "derived", {"env": {"B": "2"}}, sandboxId=source)
    assert_envelope(commit(api, "base", sandboxId=source), 409, "IMAGE::NAME_TAKEN")
    assert api.delete(source).status == 204
    # The base may go: its layers are the derived image's, too.
    assert images.run("rm", "base").returncode == 0
    assert run(api, "derived", "cat /home/app/f; echo $A$B; id -u").split() == ["mine", "12", "1000"]
    assert image in images.run("ls", "--json").stdout
    assert images.run("rm", "derived").returncode == 0
    assert os.listdir(api.service.state_dir / "images/store/layers") == []


def test_what_is_refused(api):
    source = api.create()["id"]
    unknown = "00000000-0000-4000-8000-000000000000"
    assert_envelope(commit(api, "x", sandboxId=unknown), 404, "SANDBOX::NOT_FOUND")
    assert_envelope(commit(api, "x", snapshotId=unknown), 404, "SNAPSHOT::NOT_FOUND")
    for body in ({}, {"name": "x"}, {"name": "x", "sandboxId": source, "snapshotId": unknown}, {"sandboxId": source}):
        assert_envelope(api.call("POST", "/images/commit", json=body), 422, "SANDBOX::INVALID_REQUEST")
    for config in ({"workingDir": "srv"}, {"exposedPorts": ["0"]}, {"exposedPorts": ["80/http"]}, {"env": {"": "x"}}, {"cmd": "words"}):
        assert_envelope(commit(api, "x", config, sandboxId=source), 422, "SANDBOX::INVALID_REQUEST")
    for name in ("host", "-x", "a b", "opensandbox-snapshots:x", "app@sha256:" + "0" * 64, "x" * 256):
        reply = commit(api, name, sandboxId=source)
        assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")
    assert_envelope(commit(api, "x", {"user": "nobody-knows"}, sandboxId=source), 400, "SANDBOX::INVALID_PARAMETER")
    assert listed(api) == {}
    wait_for(lambda: api.call("GET", "/snapshots").json["items"] == [], 10, "what they needed is gone")


@pytest.mark.parametrize("victim", ["server", "both"])
@pytest.mark.parametrize("moment", [0.0, 0.01, 0.03, 0.1])
def test_kill_9(api, victim, moment):
    """Whatever is killed when: there is a whole image or none, and nothing is left of a snapshot."""
    source = api.create()["id"]
    api.run(source, "for i in $(seq 200); do echo $i > /srv/$i; done")

    def ask():
        try:
            commit(api, "cut", sandboxId=source)
        except (OSError, rawhttp.Closed):
            pass  # cut off with the server

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(moment)  # a moment of it, not something to wait for
    if victim == "server":
        api.service.kill_server()
    else:
        api.service.kill_both()
        api.service.start()
    asking.join()
    if "cut" in listed(api):
        assert run(api, "cut", "ls /srv | wc -l; cat /srv/200").split() == ["200", "200"]
        assert api.call("DELETE", "/images?name=cut").status == 204
    else:
        # Nothing stands in the way of another attempt.
        made(api, "cut", sandboxId=source)
        assert run(api, "cut", "cat /srv/200") == "200"
        assert api.call("DELETE", "/images?name=cut").status == 204
    api.delete(source)
    assert api.delete(api.create()["id"]).status == 204
    assert api.call("GET", "/snapshots").json["items"] == [], "its snapshot is nobody's"
    wait_for(lambda: of.nothing_on_disk(api.service), 20, "the layers are gone")
    assert not os.listdir(os.path.join(api.service.state_dir, "images/snapshots/images"))
