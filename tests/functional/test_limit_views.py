"""Programs inside size themselves by the sandbox, not by the host; nothing of it can be written from inside."""

import os
import re
import shutil

import pytest

pytestmark = pytest.mark.usefixtures("no_leaks")

MIB = 1 << 20
PAGE = 4096  # more than the limit: see src/execd/sysinfo_answers.h


@pytest.fixture(scope="module")
def small(api):
    """Half a GiB and one core: less than any host these tests run on."""
    made = api.create(resourceLimits={"memory": "512Mi", "cpu": "1"})
    yield made["id"]
    api.delete(made["id"])


def out(api, name, command):
    ran = api.run(name, command)
    assert ran.exit_code == 0, (ran.stdout, ran.stderr)
    return ran.stdout


def test_free(api, small):
    line = next(line for line in out(api, small, "free -b").splitlines() if line.startswith("Mem:"))
    assert int(line.split()[1]) == 512 * MIB


def test_meminfo_and_cpuinfo(api, small):
    assert "MemTotal:         524288 kB" in out(api, small, "cat /proc/meminfo")
    assert len(re.findall(r"^processor\s*:", out(api, small, "cat /proc/cpuinfo"), re.M)) == 1
    assert out(api, small, "cat /sys/devices/system/cpu/online") == "0"


SYSINFO = """
import ctypes, os
class Info(ctypes.Structure):
    _fields_ = [("uptime", ctypes.c_long), ("loads", ctypes.c_ulong * 3), ("total", ctypes.c_ulong), ("free", ctypes.c_ulong), ("shared", ctypes.c_ulong),
                ("buffer", ctypes.c_ulong), ("total_swap", ctypes.c_ulong), ("free_swap", ctypes.c_ulong), ("procs", ctypes.c_ushort), ("pad", ctypes.c_ushort),
                ("total_high", ctypes.c_ulong), ("free_high", ctypes.c_ulong), ("unit", ctypes.c_uint)]
info, libc = Info(), ctypes.CDLL(None, use_errno=True)
assert libc.sysinfo(ctypes.byref(info)) == 0
print(info.total * info.unit, info.free * info.unit, info.total_swap, info.uptime, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
"""


@pytest.mark.parametrize("user", [None, 1000, 65534])
def test_sysinfo(api, small, user):
    """What the C library and busybox ask the kernel for, as root and as others."""
    ran = api.run(small, ["/usr/bin/python3", "-c", SYSINFO], **({} if user is None else {"uid": user, "gid": user}))
    total, free, swap, uptime, pages = map(int, ran.stdout.split())
    assert (total, swap, pages) == (512 * MIB + PAGE, 0, 512 * MIB + PAGE)
    assert 0 < free < total
    assert abs(uptime - float(open("/proc/uptime").read().split()[0])) < 60


def test_sysinfo_by_many_at_once(api, small):
    ask = f"import concurrent.futures as f, os, signal\nwith f.ThreadPoolExecutor(16) as p: print(set(p.map(lambda _: os.sysconf('SC_PHYS_PAGES'), range(2000))))"
    assert out(api, small, ["/usr/bin/python3", "-c", ask]) == "{%d}" % (512 * MIB // PAGE + 1)
    crowd = "for i in $(seq 40); do (timeout -s KILL 0.0$i python3 -c 'import os\nwhile True: os.sysconf(\"SC_PHYS_PAGES\")' &) ; done; sleep 1; echo alive"
    assert "alive" in out(api, small, crowd)
    assert api.ping(small)


def test_sysinfo_with_a_wrong_address(api, small):
    assert out(api, small, ["/usr/bin/python3", "-c", "import ctypes; print(ctypes.CDLL(None).sysinfo(8))"]) == "-1"


def test_without_a_limit_the_kernel_answers(api):
    made = api.create()["id"]
    pages = out(api, made, ["/usr/bin/python3", "-c", "import os; print(os.sysconf('SC_PHYS_PAGES'))"])
    assert int(pages) == os.sysconf("SC_PHYS_PAGES")
    assert api.delete(made).status == 204


@pytest.mark.skipif(os.cpu_count() < 2, reason="this host has one processor")
def test_nproc(api, small):
    assert out(api, small, "nproc") == "1"
    python = "import os; print(len(os.sched_getaffinity(0)), os.cpu_count())"
    assert out(api, small, ["/usr/bin/python3", "-c", python]) == "1 1"


@pytest.mark.skipif(not shutil.which("java"), reason="this host has no java")
def test_java(api, small):
    """A quarter of 512 MiB, as the runtime does it; never a quarter of the host's memory."""
    flags = out(api, small, "java -XX:+PrintFlagsFinal -version 2>/dev/null | grep -E ' MaxHeapSize | ActiveProcessorCount '")
    heap = int(re.search(r"MaxHeapSize\s*=\s*(\d+)", flags).group(1))
    assert 64 * MIB <= heap <= 256 * MIB, flags
    found = out(api, small, "java -XshowSettings:system -version 2>&1 | head -30")
    assert re.search(r"Memory Limit: 512\.00M", found), found


@pytest.mark.skipif(not shutil.which("node"), reason="this host has no node")
def test_node(api, small):
    script = "const os=require('os'),v8=require('v8');console.log(os.totalmem(),os.cpus().length,v8.getHeapStatistics().heap_size_limit)"
    total, cpus, heap = map(int, out(api, small, ["node", "-e", script]).split())
    assert total == 512 * MIB
    assert cpus >= 1
    assert heap <= 512 * MIB, heap


def test_the_cgroup_is_its_own(api, small):
    listing = out(api, small, "find /sys/fs/cgroup -maxdepth 2 | sort")
    assert not re.search(r"docker|[0-9a-f]{8}-[0-9a-f]{4}-", listing), "no other group is visible"
    limits = out(api, small, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null || true")
    assert limits == str(512 * MIB)
    quota = out(api, small, "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null || true")
    assert quota.startswith("100000")


def test_nothing_of_it_can_be_written(api, small):
    script = """
    failed=0
    for f in /proc/meminfo /proc/cpuinfo /sys/devices/system/cpu/online $(find /sys/fs/cgroup -type f); do
      if ( : >> "$f" ) 2>/dev/null; then echo "writable: $f"; failed=1; fi
    done
    for d in $(find /sys/fs/cgroup -type d); do
      if mkdir "$d/x" 2>/dev/null; then echo "group made: $d/x"; failed=1; fi
    done
    find /sys/fs/cgroup -name release_agent
    mount -o remount,rw /sys/fs/cgroup 2>/dev/null && echo remounted
    umount /proc/meminfo 2>/dev/null && echo uncovered
    exit $failed
    """
    ran = api.run(small, script)
    assert (ran.exit_code, ran.stdout) == (0, ""), ran.stdout


def test_without_limits_the_host_is_seen(api, make_sandbox):
    name = make_sandbox(resourceLimits={})["id"]
    assert out(api, name, "nproc") == str(len(os.sched_getaffinity(0)))


def test_metrics_know_the_limits(api, small):
    reply = api.execd(small, "GET", "/metrics")
    assert reply.status == 200
    assert abs(float(reply.json["mem_total_mib"]) - 512) < 1, reply.json


def test_a_share_of_two_cores(api, make_sandbox):
    name = make_sandbox(resourceLimits={"cpu": "1500m"})["id"]
    assert out(api, name, "nproc") == str(min(2, len(os.sched_getaffinity(0))))
