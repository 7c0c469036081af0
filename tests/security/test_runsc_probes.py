"""The probes in a sandbox under runsc. What they try is answered by a kernel of the sandbox's own: a probe may get something of that one,
and must get nothing of the host."""

import re

import pytest

import probes
from lib.api import Api
from lib.runsc import runsc_service
from test_probes import targets

# What gVisor lets a sandbox do to gVisor's own objects, which are this sandbox's alone: what a probe may say that it got, and why that is
# nothing of the host. Anything else must be refused. That the objects are not the host's is in test_runsc_and_the_host.py.
OF_ITS_OWN_KERNEL = {
    "capabilities": (r"CAP_\w+ is held", "it has no line CapAmb; the sets that it shows are those that we gave"),
    "chroot_escape": (r"chroot\(2\) and climb worked", "climbs to an empty directory that is gVisor's own, below the root of this sandbox"),
    "clone": (r"clone\(2\) CLONE_NEW[\w|]+( with high bits)? worked", "namespaces of its own"),
    "clone3": (r"clone3\(2\) CLONE_NEW[\w|]+ worked", "namespaces of its own"),
    "kernel_log": (r"syslog\(2\) (read|size) worked", "a log that it makes up"),
    "keyrings": (r"keyctl\(2\) session keyring worked", "a keyring of its own"),
    "line_disciplines": (r"ioctl\(2\) TIOCSETD .+ \(ENOTTY from the arguments\)", "it knows none, and looks at the descriptor first"),
    "masked_paths": (r"/proc/(cmdline|sentry-meminfo) can be read", "its own command line and memory"),
    "mknod": (r"mknod\(2\) \w+ worked", "device files without a device of the host behind them; raw_devices opens what there is"),
    "net_admin": (r"setsockopt\(2\) (SO_MARK|IP_TRANSPARENT) worked", "options that it answers itself"),
    "pid1_proc": (r"(read\(2\)|readlink\(2\) in|open( in)?) /proc/1/\w+ worked", "execd of this sandbox, which gVisor does not hide from its root"),
    "priority": (r"(setpriority\(2\) -20|write\(2\) oom_score_adj -1000) worked", "a number that it keeps"),
    "proc_files": (r"open /proc/sysrq-trigger for writing worked", "its own switch, which does nothing"),
    "proc_sys": (r"open /proc/sys/(kernel/hostname|vm/overcommit_memory|vm/mmap_min_addr|net/ipv4/ip_forward) for writing worked", "its own settings"),
    "raw_devices": (r"open /dev/fuse worked|device /dev/fuse may be read", "its own /dev/fuse"),
    "rlimit_core": (r"the limit on core files is not one byte: .+", "it writes no core files"),
    "seccomp": (r"no system call filter: mode 0", "no filter of ours inside: its calls do not reach the host"),
    "socket_ioctls": (r"ioctl\(2\) SIOCGIF\w+ .+ \(ENOTTY from the arguments\)", "it knows none of them, and looks at the descriptor first"),
    "uid_map": (r"/proc/self/[ug]id_map maps id 0 to the host's id 0|(setresuid|chown)\(2\) id outside the map worked", "ids of its own; on the host they are those of this sandbox"),
    "unshare": (r"unshare\(2\) CLONE_NEW[\w|]+( with high bits)? worked", "namespaces of its own"),
}


@pytest.fixture(scope="module")
def guarded(bin_dir, probe_path):
    made = runsc_service(bin_dir)
    try:
        api = Api(made.start(timeout=60))
        sandbox = api.create(extensions={"opensandbox.extensions.runtime": "runsc"})["id"]
        yield made, probes.Armed(api, sandbox, probe_path)
    finally:
        made.destroy()


@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize("name", probes.names())
def test_nothing_of_the_host(name, who, guarded):
    service, armed = guarded
    members = {} if who == "root" else {"uid": 1000, "gid": 1000}
    with targets(name, service, armed) as arguments:
        verdict = armed.run(name, *arguments, **members)
    if verdict.status == probes.NOT_APPLICABLE:
        pytest.skip(verdict.line)
    if name in OF_ITS_OWN_KERNEL and verdict.status == probes.SUCCEEDED:
        own, why = OF_ITS_OWN_KERNEL[name]
        # A probe names five things and counts the rest.
        more = [got for got in verdict.line.split("; ") if not re.fullmatch(own + r"|and \d+ more", got)]
        assert not more, f"{name} got more than {why}: {more}"
        return
    verdict.assert_refused()
