"""What a sandbox can read of the kernel names neither the host's paths nor another sandbox.

A neighbour with limits of every kind runs beside it, so that there is a disk, groups and files to be found. Everything below /proc
and /sys is read from inside, as root: names, links and contents.
"""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from lib.api import Api
from lib.plugin import shared_service

# Reads what it looks for from a file, written in another way: its own memory, arguments and files would be found.
SEARCH = """
import json, os, sys

MOST = 1 << 20
needles = {bytes.fromhex(text) for text in open('/root/needles').read().split()}
found, count = [], 0

def look(path, data):
    for needle in needles:
        if needle in data:
            line = next(l for l in data.split(b'\\n') if needle in l)
            found.append([path, needle.decode(), line[:300].decode(errors='replace')])

def read(path):
    global count
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        data = b''
        while len(data) < MOST:
            part = os.read(file, 65536)
            if not part:
                break
            data += part
    except OSError:
        pass
    finally:
        os.close(file)
    count += 1
    look(path, data)

def walk(path, depth=0):
    try:
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        below = path + '/' + name
        look(path, os.fsencode(name))
        if os.path.islink(below):
            try:
                look(below, os.fsencode(os.readlink(below)))
            except OSError:
                pass
        elif os.path.isdir(below):
            if depth < 12:
                walk(below, depth + 1)
        else:
            read(below)

for top in ('/proc', '/sys'):
    walk(top)
print(json.dumps({'files': count, 'found': found[:40]}))
"""

EVERYTHING = {"cpu": "500m", "memory": "256Mi", "disk": "64Mi"}


def limits():
    has_disks = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin") and Path("/dev/loop-control").exists()
    return EVERYTHING if has_disks else {key: value for key, value in EVERYTHING.items() if key != "disk"}


def search(api, sandbox_id, needles):
    api.upload(sandbox_id, "/root/needles", " ".join(needle.encode().hex() for needle in needles).encode())
    api.upload(sandbox_id, "/root/search.py", SEARCH.encode())
    done = api.run(sandbox_id, "python3 /root/search.py")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def names_of_host(service):
    names = {str(service.state_dir), service.directory.name, *os.listdir(service.state_dir / "sandboxes"), "disk.img"}
    names |= {path.rsplit("/", 1)[1].rsplit(".", 1)[0] for path in map(str, (service.state_dir / "run").iterdir())}
    # A name that is a common word is found where it means something else.
    return names | {name for name in {socket.gethostname(), os.uname().nodename} if len(name) > 5 and name != "localhost"}


@pytest.fixture(scope="module")
def neighbours(bin_dir, request):
    service = shared_service(request, bin_dir)
    api = Api(service)
    ids = {"limited": api.create(resourceLimits=limits())["id"], "plain": api.create()["id"]}
    yield service, api, ids
    for sandbox_id in ids.values():
        api.delete(sandbox_id)


@pytest.mark.parametrize("inside", ["plain", "limited"])
def test_nothing_names_the_host_or_a_neighbour(inside, neighbours):
    service, api, ids = neighbours
    kernel = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if inside == "limited" and kernel < (6, 15):
        pytest.skip("before Linux 6.15 the files that show limits lie in the state directory (decision 19)")
    other = ids["limited" if inside == "plain" else "plain"]
    needles = (names_of_host(service) | {other}) - {ids[inside]}
    result = search(api, ids[inside], needles)
    assert result["files"] > 300, "the search saw hardly anything"
    assert not result["found"], json.dumps(result["found"], indent=1)


def test_the_search_finds_what_is_there(neighbours):
    """Its control: a name that is there (the sandbox's own id, in the environment of its processes)."""
    _, api, ids = neighbours
    result = search(api, ids["plain"], {ids["plain"]})
    assert any(path.endswith("/environ") for path, _, _ in result["found"]), result


def test_what_is_behind_the_masks_is_empty(neighbours):
    _, api, ids = neighbours
    for path in ("/proc/cmdline", "/proc/partitions", "/proc/diskstats", "/proc/swaps", "/proc/mdstat"):
        assert api.run(ids["plain"], f"cat {path} 2>/dev/null | wc -c").stdout.strip() == "0", path
    for path in ("/proc/fs", "/proc/bus", "/sys/block", "/sys/dev", "/sys/kernel", "/sys/bus"):
        assert api.run(ids["plain"], f"ls -A {path} 2>/dev/null | wc -l").stdout.strip() == "0", path
    assert api.run(ids["plain"], "ls /sys/devices").stdout.split() == ["system", "virtual"]


def test_what_programs_need_is_there(neighbours):
    _, api, ids = neighbours
    for sandbox_id in ids.values():
        for path in ("/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible", "/sys/class/net/lo/mtu"):
            if Path(path).exists():
                assert api.run(sandbox_id, f"cat {path}").stdout.strip(), path
        assert api.run(sandbox_id, "ls /sys/class/net").stdout.split() == ["lo"]
        refused = api.run(sandbox_id, "mkdir /sys/made; touch /sys/fs/made; echo x > /sys/devices/virtual/net/lo/mtu")
        assert refused.exit_code != 0 and "ade" not in api.run(sandbox_id, "ls /sys /sys/fs").stdout
    groups = api.run(ids["limited"], "ls -R /sys/fs/cgroup | wc -l").stdout
    assert int(groups) > 3
