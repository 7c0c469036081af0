"""cgroup version 2 with all controllers and nothing else: limits bind, and the service finds its place wherever it is started."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from lib.api import Api
from lib.plugin import warm_up
from lib.waiting import process_gone, wait_for

TOP = Path("/sys/fs/cgroup")
PYTHON = "/usr/bin/python3"
LIMITS = {"cpu": "500m", "memory": "96Mi", "pids": "50"}
BURN = "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint(time.process_time() / 2)"
FORKS = """
import os, signal
pids = []
try:
    while len(pids) < 80:
        if (pid := os.fork()) == 0:
            signal.pause()
        pids.append(pid)
except OSError as error:
    print(len(pids), error.errno, flush=True)
for pid in pids:
    os.kill(pid, 9)
"""


def group_of(service, sandbox_id):
    found = [path for path in TOP.rglob(service.scope.handle(sandbox_id)) if path.is_dir()]
    assert len(found) == 1, found
    return found[0]


def settings(group):
    names = ("memory.max", "memory.swap.max", "cpu.max", "pids.max")
    return {name: (group / name).read_text().strip() for name in names if (group / name).exists()}


def controllers(group):
    return set((group / "cgroup.subtree_control").read_text().split())


def assert_limits_bind(service, api, sandbox_id):
    group = group_of(service, sandbox_id)
    # The daemon has a tenth of a core more than all that it starts.
    assert settings(group) | {"memory.swap.max": "0"} == {
        "memory.max": str(96 << 20), "memory.swap.max": "0", "cpu.max": "60000 100000", "pids.max": "50",
    }  # fmt: skip
    assert (group / "work" / "cpu.max").read_text() == "50000 100000\n"
    assert api.run(sandbox_id, "cat /proc/self/cgroup").stdout == "0::/"
    # Where the group is shown, the work's share of it is.
    assert api.run(sandbox_id, "cat /sys/fs/cgroup/cpu.max 2> /dev/null || true").stdout in ("50000 100000", "")
    for _ in range(3):  # the emulated processor may stand still for a while, and that counts as used
        share = float(api.run(sandbox_id, [PYTHON, "-c", BURN]).stdout)
        if share < 0.65:
            break
    assert 0.1 < share < 0.65, f"used {share:.2f} of a core with a quota of 0.5"
    assert re.search(r"^nr_throttled [1-9]", (group / "work" / "cpu.stat").read_text(), re.M)
    assert api.run(sandbox_id, [PYTHON, "-c", "print(len(bytearray(300 << 20)))"]).stdout == ""
    made, errno = map(int, api.run(sandbox_id, [PYTHON, "-c", FORKS]).stdout.split())
    assert errno == 11 and 30 < made < 50, (made, errno)


def assert_reason_of_memory(api):
    made = api.create(entrypoint=[PYTHON, "-c", "b = bytearray(1 << 30)"], resourceLimits={"memory": "64Mi"})["id"]
    wait_for(lambda: api.status(made)["state"] == "Failed", 15, "it ends")
    assert api.status(made)["reason"] == "OUT_OF_MEMORY"
    assert api.delete(made).status == 204


def start_in(group, *more):
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *more]


def wrap(service, words):
    """Lets the service be started by another command."""
    command = service.command
    service.command = lambda: [*words, *command()]


def test_this_is_the_host_we_want():
    mounts = [line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()]
    assert "cgroup" not in mounts and mounts.count("cgroup2") == 1
    assert {"cpu", "memory", "pids", "io"} <= set((TOP / "cgroup.controllers").read_text().split())


def test_limits_are_what_was_asked_and_go_with_the_sandbox(new_service):
    service = new_service()
    api = Api(service)
    assert {"cpu", "memory", "pids", "io"} <= controllers(TOP)
    made = api.create(resourceLimits=LIMITS)["id"]
    assert_limits_bind(service, api, made)
    assert_reason_of_memory(api)
    assert api.delete(made).status == 204
    parents = {mount + path for mount, path in service.scope.cgroup_roots}
    assert parents and not [path for parent in parents for path in Path(parent).iterdir() if path.is_dir()]
    service.stop()
    wait_for(lambda: not any(Path(parent).exists() for parent in parents), 5, "the service takes its own group away")


DIRECT = "dd if=/dev/zero of=/root/data bs=64k count=96 oflag=direct"
BUFFERED = "head -c 6M /dev/zero > /root/data"


@pytest.mark.parametrize("command", [DIRECT, BUFFERED])
def test_speed_of_writing(new_service, command):
    """2 MiB per second: 6 MiB take about three seconds on their way to the disk, also when they are in memory first."""
    api = Api(new_service())

    def seconds(limits):
        name = api.create(resourceLimits=limits)["id"]
        os.sync()
        began = time.monotonic()
        assert api.run(name, command).exit_code == 0
        os.sync()
        took = time.monotonic() - began
        assert api.delete(name).status == 204
        return took

    assert seconds({}) < 2
    assert 2 < seconds({"io-write": "2Mi"}) < 15


@pytest.fixture
def unit():
    """Groups as a service manager makes them: a slice, a unit in it, nothing shared out yet."""
    slice_, group = TOP / "test.slice", TOP / "test.slice" / "opensandbox.service"
    group.mkdir(parents=True)
    yield group
    for path in [*sorted((path for path in group.rglob("*") if path.is_dir()), key=lambda p: -len(p.parts)), group, slice_]:
        wait_for(lambda path=path: remove(path), 10, f"{path} is empty")


def remove(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


def test_a_unit_of_a_service_manager(unit, new_service):
    """Its sandboxes are outside the unit: ending that group ends the service and no sandbox."""
    service = new_service(start=False)
    wrap(service, start_in(unit))
    service.start()
    warm_up(service)
    api = Api(service)
    made = api.create(resourceLimits=LIMITS)["id"]
    assert unit not in group_of(service, made).parents
    assert_limits_bind(service, api, made)
    launcher, server = service.launcher_pid, service.server_pid()
    (unit / "cgroup.kill").write_text("1")
    service.process.wait(10)
    wait_for(lambda: process_gone(launcher) and process_gone(server), 5, "both are gone")
    service.start()
    assert api.status(made)["state"] == "Running"
    assert api.run(made, "echo on").stdout == "on"
    assert api.delete(made).status == 204


IN_A_CONTAINER = "mount --make-rprivate / && umount /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && "


def test_the_first_process_of_a_container(unit, new_service):
    """A cgroup namespace: its top has a process, the service itself, and so cannot share out controllers before that moves."""
    for parent in (TOP, unit.parent):
        (parent / "cgroup.subtree_control").write_text("+cpu +memory +pids +io")
    service = new_service(start=False)
    wrap(service, start_in(unit, "unshare", "--cgroup", "--mount", "sh", "-c", IN_A_CONTAINER + 'exec "$@"', "sh"))
    for _ in range(2):
        service.start()
        api = Api(service)
        made = api.create(resourceLimits=LIMITS)["id"]
        assert unit in group_of(service, made).parents
        (own,) = unit.glob("*-service")
        assert (own / "cpu.weight").read_text().strip() == "300", "it goes before the group of all sandboxes"
        assert_limits_bind(service, api, made)
        assert_reason_of_memory(api)
        assert api.call("POST", f"/sandboxes/{made}/pause").status == 202
        assert api.call("POST", f"/sandboxes/{made}/resume").status == 202
        assert api.delete(made).status == 204
        service.stop()
        # A container that is started again has fresh groups.
        for path in sorted((path for path in unit.rglob("*") if path.is_dir()), key=lambda p: -len(p.parts)):
            wait_for(lambda path=path: remove(path), 10, f"{path} is empty")
        (unit / "cgroup.subtree_control").write_text("-cpu -memory -pids -io")


def test_a_container_with_other_processes_is_refused_with_the_remedy(unit, new_service):
    for parent in (TOP, unit.parent):
        (parent / "cgroup.subtree_control").write_text("+cpu +memory +pids +io")
    service = new_service(start=False)
    other = subprocess.Popen(start_in(unit, "sleep", "60"))
    wait_for(lambda: (unit / "cgroup.procs").read_text(), 5, "it is there")
    wrap(service, start_in(unit, "unshare", "--cgroup", "--mount", "sh", "-c", IN_A_CONTAINER + 'exec "$@"', "sh"))
    try:
        service.spawn()
        assert service.process.wait(20) == 1
        assert "other processes are in the cgroup" in service.log_tail() and "move them first" in service.log_tail()
    finally:
        other.kill()
        other.wait()


@pytest.fixture
def delegated(unit, new_rootless):
    """A service of an ordinary user in a group that was given to it, with controllers (systemd: Delegate=yes)."""
    for parent in (TOP, unit.parent):
        (parent / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    service = new_rootless(start=False)
    for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
        os.chown(unit / name, service.uid, service.uid)
    service.wrapper = start_in(unit)
    service.start()
    yield service
    service.destroy()


def test_limits_without_root(unit, delegated):
    api = Api(delegated)
    made = api.create(resourceLimits=LIMITS)["id"]
    assert unit in group_of(delegated, made).parents
    assert_limits_bind(delegated, api, made)
    assert_reason_of_memory(api)
    text = api.call("GET", f"/sandboxes/{made}/diagnostics/inspect").body.decode()
    lacking = [line for line in text.splitlines() if line.startswith("  lacking")]
    assert lacking and not [line for line in lacking if "not limited" in line or "RLIMIT_NPROC" in line or "pause" in line], lacking
    assert api.call("POST", f"/sandboxes/{made}/pause").status == 202
    assert api.call("POST", f"/sandboxes/{made}/resume").status == 202
    assert api.delete(made).status == 204


def test_without_root_beside_others_there_are_no_limits_but_sandboxes(unit, delegated):
    """Started from a shell that stays in the group: controllers cannot be shared out there, and that is said."""
    delegated.stop()
    for path in [path for path in unit.iterdir() if path.is_dir()]:
        wait_for(lambda path=path: remove(path), 10, f"{path} is empty")
    (unit / "cgroup.subtree_control").write_text("-cpu -memory -pids")
    other = subprocess.Popen(start_in(unit, "sleep", "100"))
    try:
        delegated.start()
        api = Api(delegated)
        made = api.create(resourceLimits=LIMITS)["id"]
        assert controllers(unit) == set()
        text = api.call("GET", f"/sandboxes/{made}/diagnostics/inspect").body.decode()
        assert "cpu and memory not limited" in text
        assert api.run(made, "echo fine").stdout == "fine"
        assert api.call("POST", f"/sandboxes/{made}/pause").status == 202
        assert api.call("POST", f"/sandboxes/{made}/resume").status == 202
        assert api.delete(made).status == 204
    finally:
        other.kill()
        other.wait()


def test_the_doctor_finds_everything(bin_dir):
    done = subprocess.run([bin_dir / "osb", "doctor"], capture_output=True, text=True, timeout=120, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line[9:37].strip(): line for line in done.stdout.splitlines()}
    for name in ("memory limit", "cpu limit", "process limit"):
        assert lines[name].startswith("ok ") and "version 2" in lines[name], lines[name]
    for name in ("cgroup placement", "cgroup kill and freeze", "overlayfs", "disk limit", "disk speed limit"):
        assert lines[name].startswith("ok "), lines.get(name)
    assert "MISSING" not in done.stdout
