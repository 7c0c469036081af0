"""Each probe succeeds where nothing protects: a refusal inside a sandbox is then worth something.

What is left out says why: the probe's own reason (`osb-probe list --unsafe`), or a kernel without the thing.
"""

import inspect
import os
import pty
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lib.waiting import wait_for

import host
import probes
import test_core_dump

# What has to be there for the probe to find, made inside the throw-away namespaces.
SETUP = {
    "host_ipc": "ipcmk -M 4096 > /dev/null",
    "net_admin": "ip link set lo up",
    # Over a private /dev: exchanging the null device of the machine's own would hit every process on it.
    "masked_paths": "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3",
    # Deeper than anything else, so that this mask is the first the probe takes.
    "unmask": "mount -t tmpfs none /mnt && mkdir -p /mnt/1/2/3/4/5/6/7/8 && mount -t tmpfs -o ro mask /mnt/1/2/3/4/5/6/7/8",
    # A hierarchy of its own in place of the machine's.
    "cgroup_write": "mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/probe"
    " && mount -t cgroup -o none,name=osbprobe cgroup /sys/fs/cgroup/probe",
}
OWN_TEST = {
    "canary", "leaked_fds", "cwd_escape", "chroot_escape", "host_processes", "host_loopback", "abstract_sockets",
    "control_sockets", "interfaces", "tty", "names", "core_dump", "kernel_pools",
}  # fmt: skip


@pytest.fixture(scope="session")
def unsafe(probe_path):
    return dict(line.split("\t") for line in run(probe_path, "list", "--unsafe"))


def run(probe_path, *arguments):
    return subprocess.run([probe_path, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


def test_every_file_is_in_the_list(probe_path):
    listed = [line.split("\t") for line in run(probe_path, "list")]
    assert sorted(name for name, _ in listed) == probes.names()
    assert all(what for _, what in listed)


def test_unknown_probe(probe_path):
    assert probes.unprotected_on_host(probe_path, "no_such_probe").status == 2


def test_every_probe_has_a_control(unsafe):
    """A probe that nobody has seen succeed says "refused" for all we know because it cannot do anything else."""
    own = {name.removeprefix("test_") for name, _ in inspect.getmembers(sys.modules[__name__], inspect.isfunction)}
    elsewhere = {"core_dump": test_core_dump.test_control}
    for name in OWN_TEST:
        assert name in own or name in elsewhere, f"{name} is left out of test_succeeds and has no test_{name}"
    assert OWN_TEST <= set(probes.names()), "a control of no probe"
    # To change the kernel or to end it is not for a test; that these are refused at all is what the filter's own test shows.
    assert set(unsafe) == {"kexec", "modules", "reboot"}, "a probe that is never seen to succeed needs a very good reason"


def test_doctor_aims_every_probe_that_needs_a_target(probe_path, bin_dir):
    """What takes arguments must get some in `osb doctor --attack`: src/cli/decoys.cc has them."""
    listed = dict(line.split("\t") for line in run(probe_path, "list"))
    need = {name for name, what in listed.items() if "argument" in what}
    assert need == WITH_ARGUMENTS
    source = (probes.SOURCES.parents[2] / "src/cli/decoys.cc").read_text()
    assert set(re.findall(r'attempt [!=]= "(\w+)"', source)) == need


WITH_ARGUMENTS = {"canary", "host_processes", "host_ipc", "host_loopback", "abstract_sockets", "control_sockets", "names"}


@pytest.mark.parametrize("name", [name for name in probes.names() if name not in OWN_TEST])
def test_succeeds(name, probe_path, unsafe):
    if name in unsafe:
        pytest.skip(f"not run without protection: {unsafe[name]}")
    verdict = probes.unprotected(probe_path, name, setup=SETUP.get(name, ""))
    if verdict.only_unimplemented:
        pytest.skip(f"this kernel does not have it: {verdict.line}")
    verdict.assert_succeeded()


def test_canary(probe_path, tmp_path):
    with host.canaries([tmp_path]) as files:
        verdict = probes.unprotected(probe_path, "canary", *files)
    verdict.assert_succeeded()
    assert "by its path" in verdict.line and "by /proc/1/root" in verdict.line, verdict.line


def test_canary_through_a_leaked_directory(probe_path, tmp_path):
    """From inside a chroot only the inherited descriptor leads to the file."""
    with host.canaries([tmp_path]) as files:
        jail = tmp_path / "jail"
        jail.mkdir()
        (jail / "osb-probe").write_bytes(probe_path.read_bytes())
        (jail / "osb-probe").chmod(0o755)
        leak = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        try:
            command = ["chroot", jail, "/osb-probe", "run", "canary", files[0]]
            assert probes.execute("canary", command).status == probes.REFUSED
            verdict = probes.execute("canary", command, pass_fds=(leak,))
        finally:
            os.close(leak)
    verdict.assert_succeeded()
    assert "inherited directory" in verdict.line


def test_leaked_fds(probe_path):
    reader, writer = os.pipe()
    try:
        probes.execute("leaked_fds", [probe_path, "run", "leaked_fds"]).assert_refused()
        probes.execute("leaked_fds", [probe_path, "run", "leaked_fds"], pass_fds=(reader,)).assert_succeeded()
    finally:
        os.close(reader)
        os.close(writer)


def test_cwd_escape(probe_path, tmp_path):
    leak = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        probes.unprotected_in_jail(probe_path, tmp_path, "cwd_escape").assert_refused()
        probes.unprotected_in_jail(probe_path, tmp_path, "cwd_escape", pass_fds=(leak,)).assert_succeeded()
    finally:
        os.close(leak)


def test_chroot_escape(probe_path, tmp_path):
    probes.unprotected_in_jail(probe_path, tmp_path, "chroot_escape").assert_succeeded()


def test_host_processes(probe_path):
    with host.process() as victim:
        verdict = probes.unprotected_on_host(probe_path, "host_processes", victim)
    verdict.assert_succeeded()
    assert "kill(2)" in verdict.line and "sees osbv" in verdict.line, verdict.line


def test_host_loopback(probe_path):
    with host.tcp_service() as target:
        probes.unprotected_on_host(probe_path, "host_loopback", target).assert_succeeded()
        # Somebody who answers, but not with the greeting, is not the service.
        probes.unprotected_on_host(probe_path, "host_loopback", target + "x").assert_refused()


def test_abstract_sockets(probe_path):
    with host.abstract_socket() as name:
        probes.unprotected_on_host(probe_path, "abstract_sockets", name).assert_succeeded()


def test_control_sockets(probe_path, tmp_path):
    with host.unix_socket(tmp_path / "control") as path:
        verdict = probes.unprotected_on_host(probe_path, "control_sockets", path)
    verdict.assert_succeeded()
    assert f"connect(2) {path} worked" in verdict.line, verdict.line


def test_interfaces(probe_path):
    if set(os.listdir("/sys/class/net")) <= {"lo"}:
        pytest.skip("this machine has no network interface but lo")
    probes.unprotected_on_host(probe_path, "interfaces").assert_succeeded()


def test_tty(probe_path):
    ours, theirs = pty.openpty()
    try:
        verdict = probes.unprotected(probe_path, "tty", stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    verdict.assert_succeeded()
    assert "TIOCSTI on descriptor 0" in verdict.line, verdict.line


def test_tty_without_one(probe_path):
    """As doctor runs it: no terminal anywhere, and the attempt is made all the same."""
    verdict = probes.unprotected(probe_path, "tty")
    verdict.assert_succeeded()
    assert "TIOCSTI on a terminal of its own worked" in verdict.line, verdict.line


def test_host_ipc_by_key(probe_path):
    with host.shared_memory() as key:
        verdict = probes.unprotected_on_host(probe_path, "host_ipc", key)
    verdict.assert_succeeded()
    assert f"segment {key} worked" in verdict.line or "System V objects are visible" in verdict.line


# Most of a machine's /sys is large, and none of what is looked for here lies in it.
SMALL_SYS = 'for d in /sys/module /sys/kernel /sys/fs /sys/bus /sys/class $(ls -d /sys/devices/* | grep -v virtual); do mount -t tmpfs none "$d"; done'


def test_names(probe_path, tmp_path):
    """Where another sandbox's name has been, or could be: a loop device's file, a command line."""
    name = f"osb-secret-{secrets.token_hex(6)}"
    digits = name.encode().hex()
    probes.unprotected(probe_path, "names", digits, setup=SMALL_SYS).assert_refused()
    verdict = probes.unprotected(probe_path, "names", digits, setup=f"{SMALL_SYS}; sh -c 'sleep 50; true' {name} > /dev/null &")
    verdict.assert_succeeded()
    assert "/cmdline" in verdict.line, verdict.line
    with host.loop_device(tmp_path / name) as device:
        verdict = probes.unprotected(probe_path, "names", digits, setup=SMALL_SYS)
    verdict.assert_succeeded()
    assert f"{device}/loop/backing_file" in verdict.line, verdict.line


def test_sysfs_by_reading(probe_path, tmp_path):
    """As a user who can write nothing there: what is read is what counts."""
    with host.loop_device(tmp_path / "image") as device, tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        copy = shutil.copy(probe_path, place)
        nobody = "exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs"
        script = ["sh", "-c", f'{SMALL_SYS}; {nobody} "$@"', "sh"]
        verdict = probes.execute("sysfs", [*probes.NAMESPACES, *script, copy, "run", "sysfs"])
    verdict.assert_succeeded()
    assert f"reads /sys/devices/virtual/block/{device}/loop/backing_file" in verdict.line, verdict.line


def test_kernel_pools(probe_path):
    probes.unprotected(probe_path, "kernel_pools").assert_succeeded()
    # Ids of its own are not enough where the namespace belongs to the host's root.
    waiter = subprocess.Popen(
        ["unshare", "--user", "sh", "-c", 'read go; exec "$@"', "sh", probe_path, "run", "kernel_pools"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip
    own = os.readlink("/proc/self/ns/user")
    wait_for(lambda: os.readlink(f"/proc/{waiter.pid}/ns/user") != own, 5, "a user namespace")
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{waiter.pid}/{kind}").write_text("0 100000 65536")
    line, _ = waiter.communicate("go\n", timeout=30)
    probes.Verdict("kernel_pools", waiter.returncode, line.strip()).assert_succeeded()
    assert "a user outside, who owns" in line, line
