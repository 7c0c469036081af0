"""A sandbox shapes its files against whoever makes a snapshot of them: links out of the tree, set-id programs, depth, names, numbers."""

import os
import stat

import pytest
from lib import snapshots as of
from lib.api import Api
from lib.waiting import wait_for

LINKS = """
import os
os.chdir('/root')
for name, target in {'shadow': '/etc/shadow', 'up': '../' * 40 + 'etc/shadow', 'self': '/proc/self/root/etc/shadow', 'loop': 'loop', 'state': '/var/tmp'}.items():
    os.symlink(target, name)
os.makedirs('d/e')
os.symlink('../../../../../../../../etc', 'd/e/etc')
# A name where the copy of another would have to go.
os.rename('d', 'dir'); os.symlink('/etc', 'd')
open('suid', 'wb').write(open('/bin/true', 'rb').read()); os.chmod('suid', 0o6755)
os.mkfifo('pipe')
open('a\\nb', 'w').close(); open('\\xff'.encode('latin1') + b'\\x01', 'w').close(); open('n' * 255, 'w').write('x')
"""

DEEP = """
import os
os.chdir('/root')
for i in range({depth}):
    os.mkdir('d'); os.chdir('d')
open('bottom', 'w').write('x')
"""


@pytest.fixture
def api(new_service):
    return Api(new_service())


def layers(service):
    return [service.state_dir / "images/snapshots/layers" / name for name in of.on_disk(service)["layers"]]


def test_links_lead_nowhere_and_programs_give_no_rights(api):
    source = api.create()["id"]
    ran = api.run(source, ["/usr/bin/python3", "-c", LINKS])
    assert ran.exit_code == 0, ran.stderr
    taken = of.make(api, source)
    (layer,) = layers(api.service)
    shadow = open("/etc/shadow", "rb").read()
    for directory, _, names in os.walk(layer):
        for name in names:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            assert not stat.S_ISBLK(info.st_mode)
            assert not stat.S_ISCHR(info.st_mode) or info.st_rdev == 0, "no device but whiteouts"
            if stat.S_ISREG(info.st_mode):
                assert open(path, "rb").read() != shadow
    # Nobody but root comes near the set-id program.
    top = os.stat(api.service.state_dir / "images")
    assert top.st_uid == 0 and top.st_mode & 0o077 == 0
    restored = of.restore(api, taken["id"])
    assert api.run(restored, "cd /root && readlink shadow up d dir/e/etc | head -c 300; cat nnnn* ; stat -c %a suid").stdout.split()[-1].endswith("6755")
    assert "nosuid" in api.run(restored, "grep ' / / ' /proc/self/mountinfo").stdout


def test_deep_trees(api):
    source = api.create()["id"]
    assert api.run(source, ["/usr/bin/python3", "-c", DEEP.format(depth=1500)]).exit_code == 0
    taken = of.make(api, source)
    restored = of.restore(api, taken["id"])
    assert api.run(restored, ["/usr/bin/python3", "-c", "import os\nos.chdir('/root')\nn = 0\nwhile os.path.isdir('d'):\n    os.chdir('d'); n += 1\nprint(n, open('bottom').read())"]).stdout == "1500 x"
    too_deep = api.create()["id"]
    assert api.run(too_deep, ["/usr/bin/python3", "-c", DEEP.format(depth=3000)]).exit_code == 0
    reply = api.call("POST", f"/sandboxes/{too_deep}/snapshots")
    failed = of.settled(api, reply.json["id"])
    assert failed["status"]["state"] == "Failed" and "nested" in failed["status"]["message"], failed
    assert api.run(too_deep, "true").exit_code == 0, "it goes on"
    wait_for(lambda: len(of.on_disk(api.service)["staging"]) == 0, 10, "nothing half-made stays")
    # What removes the rest of this service's files after the test cannot go so deep.
    for sandbox in (source, restored, too_deep):
        assert api.delete(sandbox).status == 204
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
    wait_for(lambda: of.nothing_on_disk(api.service) and not os.listdir(api.service.state_dir / "trash"), 60, "the trash is emptied")


@pytest.mark.parametrize("files", [3000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_files(api, files):
    source = api.create()["id"]
    script = f"import os\nos.mkdir('/root/m')\nfor i in range({files}): open(f'/root/m/{{i}}', 'w').write(str(i))"
    assert api.run(source, ["/usr/bin/python3", "-c", script], client_timeout=300).exit_code == 0
    taken = of.make(api, source, timeout=300)
    restored = of.restore(api, taken["id"])
    count = api.run(restored, ["/usr/bin/python3", "-c", "import os\nprint(sum(1 for n in os.listdir('/root/m') if open('/root/m/' + n).read() == n))"], client_timeout=300)
    assert count.stdout == str(files)


def test_the_copying_process_has_no_rights(api):
    """While a large upper is copied: who reads it is nobody on the host, in namespaces of its own, without a way out."""
    source = api.create()["id"]
    api.run(source, "cd /root && for i in 1 2 3; do head -c 100M /dev/zero > f$i; done", client_timeout=120)
    reply = api.call("POST", f"/sandboxes/{source}/snapshots")
    assert reply.status == 202
    found = wait_for(lambda: confined(api.service), 10, "the copying process is seen", interval=0.0005)
    pid, status, root = found
    uids = status["Uid"].split()
    assert all(int(uid) >= 0x70000000 for uid in uids), status["Uid"]
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapEff"], 16) == sum(1 << bit for bit in (0, 1, 2, 3, 4, 31)), "in its own user namespace, for files"
    assert root == [], "its root is empty"
    assert of.settled(api, reply.json["id"], timeout=60)["status"]["state"] == "Ready"


def confined(service):
    """The grandchild of the launcher that is under seccomp: pid, status, what its root has."""
    for child in children(service.launcher_pid):
        for pid in children(child):
            try:
                lines = open(f"/proc/{pid}/status", encoding="ascii").read().splitlines()
                status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
                if status.get("Seccomp") == "2" and status["Name"] == "osb-launcher":
                    return pid, status, os.listdir(f"/proc/{pid}/root")
            except (OSError, ValueError):
                continue
    return None


def children(pid):
    try:
        return [int(word) for word in open(f"/proc/{pid}/task/{pid}/children", encoding="ascii").read().split()]
    except OSError:
        return []
