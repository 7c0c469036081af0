"""What a sandbox under runsc gets is its own kernel's, and what the host sees of it stays as it was: the other half of
test_runsc_probes.py, where probes succeed against that kernel."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from lib.api import Api
from lib.runsc import runsc_service
from lib.waiting import wait_for

# Takes whatever it is given, as root, and keeps it.
HOLDER = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
for number, (kind, major, minor) in enumerate([tuple(map(int, word.split(":"))) for word in sys.argv[1:]]):
    os.mknod(f"/tmp/node-{number}", kind | 0o600, os.makedev(major, minor))
    try:
        os.open(f"/tmp/node-{number}", os.O_RDONLY | os.O_NONBLOCK)
        print("opened", major, minor)
    except OSError:
        pass
for name in os.listdir("/dev"):
    try:
        os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        pass
for flag in (0x10000000, 0x02000000, 0x00020000, 0x40000000):
    libc.unshare(flag)
os.setpriority(os.PRIO_PROCESS, 0, -20)
open("/proc/self/oom_score_adj", "w").write("-1000")
print("holds", flush=True)
time.sleep(1000)
"""
CHARACTER, BLOCK = 0o020000, 0o060000
FUSE = "10 229"  # gVisor has one of its own
BOOT = "sys/kernel/random/boot_id"


@pytest.fixture(scope="module")
def service(bin_dir):
    made = runsc_service(bin_dir)
    try:
        yield made.start(timeout=60)
    finally:
        made.destroy()


@pytest.fixture(scope="module")
def api(service):
    return Api(service)


@pytest.fixture(scope="module")
def sandbox(api):
    volume = {"name": "data", "pvc": {"claimName": "data"}, "mountPath": "/data"}
    return api.create(extensions={"opensandbox.extensions.runtime": "runsc"}, volumes=[volume])["id"]


def inside(api, sandbox, command):
    ran = api.run(sandbox, command)
    assert ran.exit_code == 0, ran
    return ran.stdout


def mounts(api, sandbox):
    """(mount point, type) of all that the sandbox has."""
    lines = inside(api, sandbox, "cat /proc/self/mountinfo").splitlines()
    return [(line.split()[4], line.split(" - ")[1].split()[0]) for line in lines]


def test_no_proc_of_the_host(api, sandbox):
    for name in ("version", "cmdline", BOOT):
        own, hosts = inside(api, sandbox, f"cat /proc/{name}"), Path("/proc", name).read_text().strip()
        assert own and own != hosts, name
    points = mounts(api, sandbox)
    assert ("/data", "9p") in points and ("/proc", "proc") in points
    assert not [point for point, _ in points if re.match("/(proc|sys)/", point)], "a part of it is not what the whole is"
    places = [f"{point}/{top}{BOOT}" for point, _ in points for top in ("", "proc/")]
    found = api.run(sandbox, f"cat {' '.join(places)}").stdout.split()
    assert found and Path("/proc", BOOT).read_text().strip() not in found


def test_no_log_of_the_host(api, sandbox):
    def messages(text):
        return {line.partition("] ")[2] for line in text.splitlines() if "] " in line}

    hosts = subprocess.run(["dmesg"], capture_output=True, text=True)
    own = messages(inside(api, sandbox, "dmesg"))
    assert any("gVisor" in line for line in own) and not own & messages(hosts.stdout)


def test_climbing_leads_to_nothing(api, sandbox):
    """Below the root of a sandbox gVisor has a directory of its own. Another gVisor may end in the root itself."""
    climb = (
        "import os; before = os.listdir('/'); top = os.open('/', os.O_RDONLY); os.makedirs('/tmp/jail', exist_ok=True); os.chroot('/tmp/jail'); os.fchdir(top); "
        "[os.chdir('..') for _ in range(64)]; os.chroot('.'); after = os.listdir('/'); print('of-this-sandbox' in before, *(set(after) - set(before)))"
    )
    assert inside(api, sandbox, f'touch /of-this-sandbox; python3 -c "{climb}"') == "True"


def device_numbers():
    """Of the devices that this host has: disks, memory, and what it has drivers for."""
    for line in Path("/proc/partitions").read_text().splitlines()[2:]:
        major, minor = line.split()[:2]
        yield f"{BLOCK}:{major}:{minor}"
    for line in Path("/proc/misc").read_text().splitlines():
        yield f"{CHARACTER}:10:{line.split()[0]}"
    yield from (f"{CHARACTER}:{one}" for one in ("1:1", "1:4", "1:11", "5:1"))


def test_what_it_takes_changes_nothing_outside(api, service, sandbox):
    before = {name: namespaces(pids) for name, pids in processes(service, sandbox).items()}
    api.upload(sandbox, "/tmp/holder.py", HOLDER.encode())
    api.run(sandbox, f"python3 /tmp/holder.py {' '.join(device_numbers())} > /tmp/holder.out 2>&1", background=True)
    said = wait_for(lambda: (text := api.run(sandbox, "cat /tmp/holder.out").stdout).endswith("holds") and text, 20, "it has what it can get")
    assert [line for line in said.splitlines() if line not in ("holds", f"opened {FUSE}")] == [], "a device of the host"
    after = processes(service, sandbox)
    assert {name: namespaces(pids) for name, pids in after.items()} == before
    everybody = [pid for pids in after.values() for pid in pids]
    [guard] = after["guard"]
    for pid in everybody:
        assert devices(pid) <= {(1, 3)}, "only the null device"
        assert nice(pid) >= nice(guard) and int(Path(f"/proc/{pid}/oom_score_adj").read_text()) >= 0
        assert re.search(r"^Max core file size +1 +1 ", Path(f"/proc/{pid}/limits").read_text(), re.M), "neither a core file nor a core handler"


def test_who_answers_is_nobody(service, sandbox):
    """The kernel in front: ids of this sandbox alone, behind a filter. What started it is beside it, where nothing from inside comes."""
    found = processes(service, sandbox)
    assert len(found["guard"]) == len(found["starter"]) == 1 and len(found["kernel"]) >= 2
    for pid in found["kernel"]:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        first, outside, count = map(int, Path(f"/proc/{pid}/uid_map").read_text().split())
        assert (first, count) == (0, 65536) and outside >= 65536
        assert all(outside <= int(one) < outside + count for one in status["Uid"].split() + status["Gid"].split())
        assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
        assert os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"), "what it is capable of is of its own namespace"
    [guard] = found["guard"]
    status = Path(f"/proc/{guard}/status").read_text()
    assert "\nCapEff:\t0000000000000000\n" in status and "\nNoNewPrivs:\t1\n" in status


def processes(service, sandbox):
    """Those of the host, by what they are."""
    found = {"guard": [], "starter": [], "kernel": []}
    for pid in service.scope.sandbox_pids(sandbox):
        first = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
        found[{b"osb-launcher": "guard", b"runsc": "starter"}.get(first, "kernel")].append(pid)
    return found


def namespaces(pids):
    return {os.readlink(f"/proc/{pid}/ns/{name}") for pid in pids for name in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup")}


def devices(pid):
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            about = path.stat()
        except OSError:
            continue
        if about.st_rdev:
            found.add((os.major(about.st_rdev), os.minor(about.st_rdev)))
    return found


def nice(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])
