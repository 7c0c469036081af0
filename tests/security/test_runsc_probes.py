"""The probes in a sandbox under runsc. What they try is answered by a kernel of the sandbox's own: a probe may get something of that one,
and must get nothing of the host."""

import pytest

import probes
from lib.api import Api
from lib.runsc import runsc_service
from test_probes import targets

# What gVisor lets the root of a sandbox do to gVisor's own objects, which are this sandbox's alone. Anything else must be refused.
OF_ITS_OWN_KERNEL = {
    "capabilities": "it has no line CapAmb; the sets that it shows are those that we gave",
    "chroot_escape": "climbs to the root of this sandbox",
    "clone": "namespaces of its own",
    "clone3": "namespaces of its own",
    "kernel_log": "a log that it makes up",
    "keyrings": "a keyring of its own",
    "line_disciplines": "it knows none, and looks at the descriptor first",
    "masked_paths": "its own command line and memory",
    "mknod": "device files without a device of the host behind them; raw_devices opens what there is",
    "net_admin": "options that it answers itself",
    "pid1_proc": "execd of this sandbox, which gVisor does not hide from its root",
    "priority": "a number that it keeps",
    "proc_files": "its own switch, which does nothing",
    "proc_sys": "its own settings",
    "raw_devices": "its own /dev/fuse",
    "rlimit_core": "it writes no core files",
    "seccomp": "no filter of ours inside: its calls do not reach the host",
    "socket_ioctls": "it knows none of them, and looks at the descriptor first",
    "uid_map": "ids of its own; on the host they are those of this sandbox",
    "unshare": "namespaces of its own",
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
        return
    verdict.assert_refused()
