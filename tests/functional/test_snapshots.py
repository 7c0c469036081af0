"""Snapshots: made of a running or paused sandbox, restored, kept when their source goes, deleted without a trace."""

import os
import subprocess
import time

import pytest
from lib import leaks
from lib import snapshots as of
from lib.api import Api, assert_envelope
from lib.disks import no_disks
from lib.small_disk import small_disk
from lib.waiting import wait_for


@pytest.fixture
def api(new_service):
    return Api(new_service())


def test_a_snapshot_and_what_is_made_from_it(api):
    baseline = leaks.snapshot(api.service)
    source = api.create()["id"]
    api.run(source, "mkdir -p /root/d /usr/local/lib/x && echo one > /root/d/f && echo u > /usr/local/lib/x/f && rm -rf /usr/games && rm /etc/issue; true")
    reply = api.call("POST", f"/sandboxes/{source}/snapshots", json={"name": "first"})
    assert reply.status == 202
    taken = reply.json
    assert reply.header("location") == f"/v1/snapshots/{taken['id']}"
    assert taken["sandboxId"] == source and taken["name"] == "first"
    assert taken["status"]["state"] == "Creating" and taken["status"]["message"] == "Snapshot creation accepted."
    done = of.settled(api, taken["id"])
    assert done["status"]["state"] == "Ready", done
    assert api.run(source, "echo two > /root/d/f; cat /root/d/f").stdout == "two", "the source goes on"

    restored = of.restore(api, taken["id"])
    shown = api.get(restored)
    assert shown["snapshotId"] == taken["id"] and "image" not in shown
    assert api.run(restored, "cat /root/d/f /usr/local/lib/x/f").stdout.split() == ["one", "u"]
    assert api.run(restored, "ls /usr/games /etc/issue 2>/dev/null; stat -c %u:%g /root/d/f").stdout == "0:0"
    # What is removed and made again hides what lay there.
    api.run(restored, "rm -rf /root/d && mkdir /root/d && echo three > /root/d/g")
    second = of.make(api, restored)
    again = of.restore(api, second["id"])
    assert api.run(again, "ls /root/d; cat /root/d/g").stdout.split() == ["g", "three"]

    # In use: refused, and still there.
    refused = api.call("DELETE", f"/snapshots/{taken['id']}")
    assert_envelope(refused, 409, "SNAPSHOT::DELETE_CONFLICT")
    assert api.call("GET", f"/snapshots/{taken['id']}").json["status"]["state"] == "Ready"
    for sandbox in (source, restored):
        assert api.delete(sandbox).status == 204
    # Its source and its users are gone; what was made of it since lives on.
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
    assert_envelope(api.call("GET", f"/snapshots/{taken['id']}"), 404, "SNAPSHOT::NOT_FOUND")
    assert api.run(again, "cat /root/d/g").stdout == "three"
    third = of.restore(api, second["id"])
    assert api.run(third, "cat /usr/local/lib/x/f").stdout == "u", "of the snapshot below, which is deleted"
    for sandbox in (again, third):
        assert api.delete(sandbox).status == 204
    assert api.call("DELETE", f"/snapshots/{second['id']}").status == 204
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "the layers go with their last user")
    leaks.assert_nothing_leaked(api.service, baseline)


def test_lists(api):
    one, other = api.create()["id"], api.create()["id"]
    made = [of.make(api, one, "a"), of.make(api, one, "b"), of.make(api, other, "a")]

    def ids(query):
        reply = api.call("GET", f"/snapshots{query}")
        assert reply.status == 200
        return [item["id"] for item in reply.json["items"]]

    assert ids("") == [item["id"] for item in reversed(made)], "newest first"
    assert ids(f"?sandboxId={one}") == [made[1]["id"], made[0]["id"]]
    assert ids("?name=a") == [made[2]["id"], made[0]["id"]]
    assert ids("?name=") == []
    assert ids("?state=ready") == [] and len(ids("?state=Ready&state=Failed")) == 3
    page = api.call("GET", "/snapshots?page=2&pageSize=2").json
    assert len(page["items"]) == 1 and page["pagination"] == {"page": 2, "pageSize": 2, "totalItems": 3, "totalPages": 2, "hasNextPage": False}
    assert api.call("GET", "/snapshots?pageSize=0").status == 422


def test_what_is_refused(api):
    sandbox = api.create(entrypoint=["sh", "-c", "sleep 0.1"])["id"]
    wait_for(lambda: api.status(sandbox)["state"] == "Terminated", 10, "it ends")
    assert_envelope(api.call("POST", f"/sandboxes/{sandbox}/snapshots"), 409, "SNAPSHOT::INVALID_SOURCE_STATE")
    unknown = "00000000-0000-4000-8000-000000000000"
    assert_envelope(api.call("POST", f"/sandboxes/{unknown}/snapshots"), 404, "SANDBOX::NOT_FOUND")
    for method in ("GET", "DELETE"):
        assert_envelope(api.call(method, f"/snapshots/{unknown}"), 404, "SNAPSHOT::NOT_FOUND")
    assert_envelope(api.post_create(image=..., snapshotId=unknown), 404, "SNAPSHOT::NOT_FOUND")
    assert_envelope(api.post_create(image={"uri": f"opensandbox-snapshots:{unknown}"}), 404, "SNAPSHOT::NOT_FOUND")
    living = api.create()["id"]
    assert api.call("POST", f"/sandboxes/{living}/snapshots", json={"name": ""}).status == 422
    assert api.call("POST", f"/sandboxes/{living}/fork", json={"count": 0}).status == 422
    assert api.call("POST", f"/sandboxes/{living}/rollback", json={}).status == 422
    assert api.post_create(extensions={"restore.env": "true"}).status == 400


def test_of_a_paused_sandbox(api):
    source = api.create()["id"]
    api.run(source, "echo x > /root/f")
    assert api.call("POST", f"/sandboxes/{source}/pause").status == 202
    taken = of.make(api, source)
    assert api.status(source)["state"] == "Paused", "it stays so"
    assert api.execd(source, "GET", "/ping").status == 409
    restored = of.restore(api, taken["id"])
    assert api.run(restored, "cat /root/f").stdout == "x"
    assert api.call("POST", f"/sandboxes/{source}/resume").status == 202
    assert api.run(source, "cat /root/f").stdout == "x"


@no_disks
def test_of_one_with_a_disk_limit(api):
    source = api.create(resourceLimits={"disk": "64Mi"})["id"]
    api.run(source, "head -c 20M /dev/urandom > /root/f; cd /root; sha256sum f > sum; truncate -s 1G hole")
    taken = of.make(api, source)
    assert api.delete(source).status == 204
    for limits in ({}, {"disk": "32Mi"}):
        restored = of.restore(api, taken["id"], resourceLimits=limits)
        assert api.run(restored, "cd /root && sha256sum -c sum && stat -c %s hole && du -k hole | cut -f1").stdout.splitlines()[-2:] == ["1073741824", "0"]
        assert api.delete(restored).status == 204


def test_what_is_kept_of_files(api):
    source = api.create()["id"]
    script = """
import os, socket
os.chdir('/root')
open('plain', 'w').write('x'); os.chown('plain', 1000, 1001); os.chmod('plain', 0o6751); os.utime('plain', ns=(1, 123456789_000000001))
os.link('plain', 'same')
os.symlink('/etc/shadow', 'out'); os.symlink('../../../../../../etc', 'up')
os.mkfifo('pipe'); socket.socket(socket.AF_UNIX).bind('socket')
os.mkdir('d', 0o1777); os.utime('d', ns=(1, 5_000000000))
os.setxattr('plain', 'user.note', b'kept')
f = os.open('sparse', os.O_RDWR | os.O_CREAT); os.pwrite(f, b'end', 50 << 20)
name = 'n' * 255
open(name, 'w').write('long')
"""
    assert api.run(source, ["/usr/bin/python3", "-c", script]).exit_code == 0
    look = """
import os, stat
os.chdir('/root')
for name in sorted(os.listdir('.')):
    s = os.lstat(name)
    print(name[:9], len(name), oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, s.st_size if not stat.S_ISDIR(s.st_mode) else '', s.st_mtime_ns if name in ('plain', 'd') else '', s.st_blocks < 100)
print(os.readlink('out'), os.readlink('up'), os.getxattr('plain', 'user.note'), os.lstat('plain').st_ino == os.lstat('same').st_ino, open('sparse', 'rb').read()[-3:])
"""
    before = api.run(source, ["/usr/bin/python3", "-c", look]).stdout
    taken = of.make(api, source)
    restored = of.restore(api, taken["id"])
    assert api.run(restored, ["/usr/bin/python3", "-c", look]).stdout == before
    assert "0o106751 1000 1001 2" in before
    # On the host: canonical ids, no devices but whiteouts.
    (layer,) = of.on_disk(api.service)["layers"]
    assert os.stat(api.service.state_dir / "images/snapshots/layers" / layer / "root/plain").st_uid == 1000


def test_equal_content_is_shared(api):
    source = api.create()["id"]
    api.run(source, "echo x > /root/f")
    taken = [of.make(api, source) for _ in range(3)]
    assert len(of.on_disk(api.service)["layers"]) == 1 and len(of.on_disk(api.service)["kept"]) == 3
    # The same names, sizes and times with other bytes are another layer.
    other_bytes = "import os; s = os.stat('/root/f'); f = os.open('/root/f', os.O_WRONLY); os.pwrite(f, b'y', 0); os.utime('/root/f', ns=(s.st_atime_ns, s.st_mtime_ns))"
    assert api.run(source, ["/usr/bin/python3", "-c", other_bytes]).exit_code == 0
    changed = of.make(api, source)
    assert len(of.on_disk(api.service)["layers"]) == 2, "a layer is what its bytes are"
    for snapshot, wanted in ((taken[0], "x"), (changed, "y")):
        restored = of.restore(api, snapshot["id"])
        assert api.run(restored, "cat /root/f").stdout == wanted
        assert api.delete(restored).status == 204
    assert api.call("DELETE", f"/snapshots/{changed['id']}").status == 204
    wait_for(lambda: len(of.on_disk(api.service)["layers"]) == 1, 10, "its layer goes with it")
    untouched = api.create()["id"]
    empty = of.make(api, untouched)
    assert len(of.on_disk(api.service)["layers"]) == 1, "what changed nothing adds nothing"
    for one in (*taken, empty):
        assert api.call("DELETE", f"/snapshots/{one['id']}").status == 204
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "the layer goes with its last snapshot")


def test_the_environment_is_restored_when_asked(api):
    source = api.create(env={"SECRET": "s3cret", "PLAIN": "p"})["id"]
    taken = of.make(api, source)
    plain = of.restore(api, taken["id"])
    assert api.run(plain, "echo [$SECRET][$PLAIN]").stdout == "[][]"
    with_env = of.restore(api, taken["id"], env={"PLAIN": "other"}, extensions={"restore.env": "true"})
    assert api.run(with_env, "echo [$SECRET][$PLAIN]").stdout == "[s3cret][other]"


def test_it_is_an_image(api):
    source = api.create()["id"]
    api.run(source, "echo x > /root/f")
    taken = of.make(api, source)
    made = api.create(image={"uri": f"opensandbox-snapshots:{taken['id']}"})["id"]
    assert api.run(made, "cat /root/f").stdout == "x"


def test_deleting_the_source_at_once_waits_for_the_capture(api):
    source = api.create()["id"]
    api.run(source, "head -c 30M /dev/urandom > /root/f; cd /root; sha256sum f > sum")
    reply = api.call("POST", f"/sandboxes/{source}/snapshots")
    assert reply.status == 202
    assert api.delete(source).status == 204
    assert of.settled(api, reply.json["id"])["status"]["state"] == "Ready"
    restored = of.restore(api, reply.json["id"])
    assert api.run(restored, "cd /root && sha256sum -c sum").exit_code == 0


WRITES_IN_TURNS = """
import os
files = [os.open('/root/turn%02d' % n, os.O_RDWR | os.O_CREAT) for n in range(40)]
turn = 0
while True:
    turn += 1
    for one in files:
        os.pwrite(one, b'%08d' % turn, 0)
"""


def test_it_stands_still_while_it_is_captured(api):
    """A process writes the same number into forty files in strict turns, a million times a second or so. At any one moment those that
    come first have it and the others the number before; files that were copied at different moments do not."""
    source = api.create(entrypoint=["sh", "-c", f'head -c 10M /dev/urandom > /root/bulk; exec python3 -c "{WRITES_IN_TURNS}"'])["id"]
    wait_for(lambda: api.run(source, "test -s /root/turn39").exit_code == 0, 20, "it writes")
    before = 0
    for _ in range(5):
        taken = of.make(api, source)
        restored = of.restore(api, taken["id"])
        turns = [int(word) for word in api.run(restored, "for n in /root/turn*; do cat $n; echo; done").stdout.split()]
        assert len(turns) == 40 and turns[0] > before, f"it went on since the last one: {before}, {turns}"
        assert turns == sorted(turns, reverse=True) and turns[0] - turns[-1] <= 1, f"of several moments: {turns}"
        before = turns[0]
        assert api.delete(restored).status == 204
    assert api.status(source)["state"] == "Running"
    assert api.run(source, "true").exit_code == 0


def test_a_full_disk(new_service):
    service = new_service(start=False)
    with small_disk(service, 96):
        service.start()
        api = Api(service)
        source = api.create()["id"]
        api.run(source, "head -c 50M /dev/urandom > /root/f; echo ok > /root/g")
        reply = api.call("POST", f"/sandboxes/{source}/snapshots")
        failed = of.settled(api, reply.json["id"])
        assert failed["status"]["state"] == "Failed" and "full" in failed["status"]["message"], failed
        wait_for(lambda: of.nothing_on_disk(service), 10, "nothing half-made stays")
        assert api.run(source, "cat /root/g").stdout == "ok", "it goes on"
        api.run(source, "rm /root/f")
        assert of.make(api, source)
        assert api.delete(source).status == 204


def test_diff(api, bin_dir):
    source = api.create()["id"]
    api.run(source, "echo a > /root/new; echo m >> /etc/group; rm /usr/bin/python3; mkdir -p /usr/local/d; printf x > \"/root/$(printf 'odd\\nname')\"")
    reply = api.call("GET", f"/sandboxes/{source}/diff")
    assert reply.status == 200, reply
    changes = {(one["kind"], one["path"]) for one in reply.json["changes"]}
    assert {("Added", "/root/new"), ("Modified", "/etc/group"), ("Deleted", "/usr/bin/python3"), ("Added", "/usr/local/d"), ("Added", "/root/odd\nname")} <= changes
    assert [one["path"] for one in reply.json["changes"]] == sorted(one["path"] for one in reply.json["changes"])
    told = subprocess.run([bin_dir / "osb", "diff", source, "--server", "%s:%d" % api.address], check=True, capture_output=True, text=True).stdout
    assert "A /root/new\n" in told and "D /usr/bin/python3\n" in told
    assert api.call("GET", f"/sandboxes/{api.create()['id']}/diff").json == {"changes": []}


@pytest.mark.parametrize("code, state", [(0, "Terminated"), (3, "Failed")])
def test_diff_of_one_that_has_ended(api, bin_dir, code, state):
    """Its files are kept until it is deleted, and so is what it has changed."""
    sandbox = api.create(entrypoint=["sh", "-c", f"echo a > /root/new; rm /usr/bin/base64; until test -e /root/end; do sleep 0.1; done; exit {code}"])["id"]
    api.run(sandbox, "touch /root/end")
    wait_for(lambda: api.status(sandbox)["state"] == state, 10, "it ends")
    reply = api.call("GET", f"/sandboxes/{sandbox}/diff")
    assert reply.status == 200, reply
    assert {("Added", "/root/new"), ("Deleted", "/usr/bin/base64")} <= {(one["kind"], one["path"]) for one in reply.json["changes"]}
    told = subprocess.run([bin_dir / "osb", "diff", sandbox, "--server", "%s:%d" % api.address], check=True, capture_output=True, text=True).stdout
    assert "A /root/new\n" in told
    # Also by the service after this one.
    api.service.kill_both()
    api.service.start()
    assert api.call("GET", f"/sandboxes/{sandbox}/diff").json == reply.json
    assert api.delete(sandbox).status == 204
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox}/diff"), 404, "SANDBOX::NOT_FOUND")


@no_disks
def test_diff_of_one_whose_disk_was_put_away(api):
    """It is not said that nothing was changed."""
    sandbox = api.create(entrypoint=["sh", "-c", "echo a > /root/new; until test -e /root/end; do sleep 0.1; done"], resourceLimits={"disk": "32Mi"})["id"]
    api.run(sandbox, "until test -s /root/new; do sleep 0.1; done")
    assert "/root/new" in [one["path"] for one in api.call("GET", f"/sandboxes/{sandbox}/diff").json["changes"]]
    api.run(sandbox, "touch /root/end")
    wait_for(lambda: api.status(sandbox)["state"] == "Terminated", 10, "it ends")
    # Its disk goes a moment later.
    reply = wait_for(lambda: refused(api.call("GET", f"/sandboxes/{sandbox}/diff")), 20, "its disk is put away")
    assert "its disk was put away" in assert_envelope(reply, 409, "SNAPSHOT::INVALID_SOURCE_STATE")["message"]
    assert api.delete(sandbox).status == 204


def refused(reply):
    return reply if reply.status != 200 else None


def test_forks(api):
    baseline = leaks.snapshot(api.service)
    source = api.create(env={"COLOUR": "blue"}, metadata={"team": "a", "name": "the-one"})["id"]
    api.run(source, "echo x > /root/f")
    forks = of.fork(api, source, 3)
    assert len(set(forks)) == 3
    for one in forks:
        assert api.run(one, "cat /root/f; echo $COLOUR").stdout.split() == ["x", "blue"]
        assert api.get(one)["metadata"] == {"team": "a"} and api.status(one)["state"] == "Running"
    api.run(forks[0], "echo other > /root/f")
    assert api.run(source, "cat /root/f").stdout == "x" and api.run(forks[1], "cat /root/f").stdout == "x"
    assert api.get(source)["metadata"] == {"team": "a", "name": "the-one"}, "a name is one sandbox's"
    (deeper,) = of.fork(api, forks[0])
    assert api.delete(source).status == 204
    assert api.run(deeper, "cat /root/f").stdout == "other"
    assert api.call("GET", "/snapshots").json["items"] == []
    for one in (*forks, deeper):
        assert api.delete(one).status == 204
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "the layers go with the last fork")
    leaks.assert_nothing_leaked(api.service, baseline)


def test_rollback(api):
    baseline = leaks.snapshot(api.service)
    sandbox = api.create(env={"COLOUR": "blue"}, resourceLimits={"memory": "256Mi"})["id"]
    api.run(sandbox, "echo good > /root/f")
    taken = of.make(api, sandbox)
    api.run(sandbox, "rm -rf /root/f /usr/bin/python3; echo bad > /root/g; (sleep 1000 &)")
    reply = of.rollback(api, sandbox, taken["id"])
    assert reply.status == 200, reply
    assert reply.json["id"] == sandbox and reply.json["status"]["state"] == "Running"
    assert api.run(sandbox, "cat /root/f; ls /root/g 2>/dev/null; echo $COLOUR; pgrep -c sleep; test -x /usr/bin/python3 && echo there").stdout.split() == ["good", "blue", "0", "there"]
    assert api.status(sandbox)["state"] == "Running"
    # Again, now from a sandbox that lies on the snapshot.
    api.run(sandbox, "echo worse > /root/f")
    assert of.rollback(api, sandbox, taken["id"]).status == 200
    assert api.run(sandbox, "cat /root/f").stdout == "good"
    assert_envelope(of.rollback(api, sandbox, "00000000-0000-4000-8000-000000000000"), 404, "SNAPSHOT::NOT_FOUND")
    # A rolled-back sandbox is found again by the next service.
    api.service.kill_both()
    api.service.start()
    assert api.run(sandbox, "cat /root/f").stdout == "good"
    assert api.delete(sandbox).status == 204
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
    wait_for(lambda: of.nothing_on_disk(api.service), 10, "nothing is left")
    leaks.assert_nothing_leaked(api.service, baseline)


@pytest.mark.parametrize("victim, moment", [("server", 0.0), ("server", 0.05), ("launcher", 0.02), ("both", 0.0), ("both", 0.1)])
def test_kill_9(api, victim, moment):
    """Whatever is killed when: a snapshot is Ready and whole, or Failed and nothing; its source runs."""
    service = api.service
    source = api.create()["id"]
    api.run(source, "head -c 40M /dev/urandom > /root/f; cd /root; sha256sum f > sum; for i in $(seq 500); do echo $i > $i; done")
    reply = api.call("POST", f"/sandboxes/{source}/snapshots")
    assert reply.status == 202
    time.sleep(moment)  # a moment of it, not something to wait for
    if victim == "server":
        service.kill_server()
    elif victim == "launcher":
        service.kill_launcher()
    else:
        service.kill_both()
    if victim != "server":
        service.start()
    taken = of.settled(api, reply.json["id"])
    assert api.run(source, "cd /root && sha256sum -c sum").exit_code == 0, "the source goes on"
    assert api.status(source)["state"] == "Running"
    if taken["status"]["state"] == "Ready":
        restored = of.restore(api, taken["id"])
        assert api.run(restored, "cd /root && sha256sum -c sum && ls | wc -l").stdout.splitlines()[-1] == "502"
        assert api.delete(restored).status == 204
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
    wait_for(lambda: of.nothing_on_disk(service), 15, "nothing is left of it")
