"""A directory of root's that a sandbox writes: what it makes there is root's on the host, so nothing of it may ever act as root. Every way to
give a file a set-user-id bit, a set-group-id bit or capabilities is tried by root of such a sandbox, in all its file systems.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from lib.api import Api, assert_envelope
from lib.plugin import shared_service
from lib.service import STATE_PARENT

USER, GROUP = 12345, 12346

# Runs inside: one attempt, by its name. Prints the errno, or 0.
PROBE = r"""
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
name, place = sys.argv[1], sys.argv[2].encode()
SYS = {"open": 2, "chmod": 90, "fchmod": 91, "creat": 85, "mkdir": 83, "mknod": 133, "openat": 257, "mkdirat": 258, "mknodat": 259, "fchmodat": 268,
       "fchmodat2": 452, "openat2": 437, "setxattrat": 463, "io_uring_setup": 425}
AT, O_CREAT, O_TMPFILE = -100, os.O_CREAT | os.O_RDWR, os.O_TMPFILE | os.O_RDWR
new, old = place + b"/new", place + b"/old"
for path in (new,):
    try:
        os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
    except FileNotFoundError:
        pass
open(old, "w").close()
os.chmod(old, 0o755)
fd = os.open(old, os.O_RDWR)
def call(which, *arguments):
    def argument(a):
        return ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a)
    result = libc.syscall(ctypes.c_long(SYS[which]), *map(argument, arguments))
    return ctypes.get_errno() if result < 0 else 0
def how(mode, flags=O_CREAT):
    return struct.pack("<QQQ", flags, mode, 0)
# Version 2 and 3 of a file's capabilities: everything, permitted and effective.
CAP2 = struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xff, 0)
CAP3 = struct.pack("<IIIIII", 0x03000001, 0xffffffff, 0, 0xff, 0, 0)
def xattr(value):
    try:
        os.setxattr(old, "security.capability", value)
    except OSError as error:
        return error.errno
    return 0
def fxattr(value):
    return ctypes.get_errno() if libc.fsetxattr(fd, b"security.capability", value, len(value), 0) < 0 else 0
ATTEMPTS = {
    "chmod": lambda: call("chmod", old, 0o4755), "chmod g": lambda: call("chmod", old, 0o2755), "fchmod": lambda: call("fchmod", fd, 0o6755),
    "fchmod high": lambda: call("fchmod", fd, 1 << 32 | 0o4755),
    "fchmodat": lambda: call("fchmodat", AT, old, 0o4755), "fchmodat2": lambda: call("fchmodat2", AT, old, 0o4755, 0),
    "fchmodat2 empty": lambda: call("fchmodat2", fd, b"", 0o2755, 0x1000),
    "open": lambda: call("open", new, O_CREAT, 0o4755), "openat": lambda: call("openat", AT, new, O_CREAT, 0o2755),
    "tmpfile": lambda: call("openat", AT, place, O_TMPFILE, 0o4755), "openat2": lambda: call("openat2", AT, new, how(0o4755), 24),
    "openat2 tmpfile": lambda: call("openat2", AT, place, how(0o4755, O_TMPFILE), 24),
    "creat": lambda: call("creat", new, 0o4755), "mkdir": lambda: call("mkdir", new, 0o2755), "mkdirat": lambda: call("mkdirat", AT, new, 0o2755),
    "mknod": lambda: call("mknod", new, 0o104755, 0), "mknodat": lambda: call("mknodat", AT, new, 0o102755, 0),
    "device": lambda: call("mknod", new, 0o20666, 1 << 8 | 5),
    "setxattr": lambda: xattr(CAP3), "setxattr 2": lambda: xattr(CAP2), "fsetxattr": lambda: fxattr(CAP3),
    "setxattrat": lambda: call("setxattrat", AT, old, 0, b"security.capability", CAP3, 24),
    "io_uring": lambda: call("io_uring_setup", 8, bytes(120)),
}
if name == "list":
    print(*ATTEMPTS, sep="\n")
else:
    print(ATTEMPTS[name]())
"""


def attempts():
    names = subprocess.run(["python3", "-c", PROBE, "list", tempfile.gettempdir()], capture_output=True, text=True, check=True).stdout
    return names.splitlines()


@pytest.fixture(scope="module")
def ground():
    path = Path(tempfile.mkdtemp(prefix="osb-roots-", dir=STATE_PARENT))
    path.chmod(0o755)
    for name in ("roots", "users", "marked"):
        (path / name).mkdir()
    os.chown(path / "users", USER, GROUP)
    (path / "roots" / "marker").write_text("from the host\n")
    (path / "roots" / "nobodys").write_text("another user's\n")
    os.chown(path / "roots" / "nobodys", USER, GROUP)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def api(bin_dir, ground, request):
    return Api(shared_service(request, bin_dir, sections={"storage": {"allowed_host_paths": [str(ground)]}}))


def host(path, at="/data", **more):
    return {"name": at.strip("/"), "mountPath": at, "host": {"path": str(path)}, **more}


@pytest.fixture
def make(api):
    made = []

    def create(*volumes, **fields):
        made.append(api.create(volumes=list(volumes), **fields)["id"])
        return made[-1]

    yield create
    for name in made:
        api.delete(name)


def privileged(top):
    """What below a directory acts as somebody else."""
    found = []
    for path in top.rglob("*"):
        info = path.lstat()
        if not stat.S_ISLNK(info.st_mode) and (info.st_mode & 0o6000 or "security.capability" in os.listxattr(path, follow_symlinks=False)):
            found.append(path)
    return found


def fine(ran):
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def test_it_is_written_as_root(api, make, ground):
    roots = ground / "roots"
    name = make(host(roots))
    assert fine(api.run(name, "id -u; cat /data/marker; stat -c %u:%g /data /data/marker")) == "0\nfrom the host\n0:0\n0:0"
    fine(api.run(name, "echo inside > /data/made; mkdir -p /data/dir/deep; echo over > /data/marker; chmod 600 /data/made; chown 7:8 /data/dir/deep"))
    made = (roots / "made").stat()
    assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (0, 0, 0o600)
    assert (roots / "marker").read_text() == "over\n" and (roots / "dir").stat().st_uid == 0
    assert (roots / "dir" / "deep").stat().st_uid > 0x7FC00000, "others of the sandbox are nobody"
    # What is another user's stays that user's.
    assert fine(api.run(name, "stat -c %U /data/nobodys")) == "nobody"
    assert api.run(name, "echo x > /data/nobodys").exit_code != 0 and api.run(name, "chown 0:0 /data/nobodys").exit_code != 0
    api.upload(name, "/data/uploaded", b"by execd")
    assert (roots / "uploaded").read_bytes() == b"by execd" and (roots / "uploaded").stat().st_uid == 0
    options = next(line for line in fine(api.run(name, "cat /proc/self/mountinfo")).splitlines() if line.split()[4] == "/data").split()[5]
    assert {"rw", "nosuid", "nodev"} <= set(options.split(","))


@pytest.mark.parametrize("owner", [(0, GROUP), (USER, 0)], ids=["root's user", "root's group"])
def test_half_of_root_is_root(api, make, ground, owner):
    (ground / "half").mkdir(exist_ok=True)
    os.chown(ground / "half", *owner)
    name = make(host(ground / "half"))
    fine(api.run(name, "echo x > /data/f; stat -c %u:%g /data/f"))
    assert ((ground / "half" / "f").stat().st_uid, (ground / "half" / "f").stat().st_gid) == owner
    for mode in ("4755", "2755"):
        assert api.run(name, f"chmod {mode} /data/f").exit_code != 0
    (ground / "half" / "f").unlink()


def test_nothing_in_it_gets_a_privilege(api, make, ground):
    name = make(host(ground / "roots"), host(ground / "users", "/users"))
    fine(api.run(name, ["sh", "-c", 'printf %s "$0" > /tmp/probe.py', PROBE]))
    passed = []
    for place in ("/data", "/users", "/tmp"):
        for attempt in attempts():
            number = fine(api.run(name, ["python3", "/tmp/probe.py", attempt, place])).strip()
            expected = ("38",) if attempt.startswith(("openat2", "setxattrat")) else ("1",)
            if number not in expected:
                passed.append((place, attempt, number))
    assert passed == []
    assert privileged(ground / "roots") == [] and privileged(ground / "users") == []


def test_an_ordinary_sandbox_is_as_it_was(api, make, ground):
    name = make(host(ground / "users", "/users"))
    fine(api.run(name, ["sh", "-c", 'printf %s "$0" > /tmp/probe.py', PROBE]))
    for attempt in attempts():
        number = fine(api.run(name, ["python3", "/tmp/probe.py", attempt, "/tmp"])).strip()
        refused = attempt in ("device", "io_uring") or attempt == "setxattrat"
        # The last of them may be newer than the kernel.
        assert (number != "0") if refused else number == "0" or (attempt.startswith("fchmodat2") and number == "38"), (attempt, number)
    fine(api.run(name, "echo x > /users/f && chmod 6755 /users/f"))
    assert stat.S_IMODE((ground / "users" / "f").stat().st_mode) == 0o6755


def test_archives_and_copies_bring_none(api, make, ground):
    name = make(host(ground / "roots"))
    with tempfile.TemporaryDirectory() as made:
        program = Path(made) / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o6755)
        packed = subprocess.run(["tar", "-C", made, "-c", "program"], capture_output=True, check=True).stdout
    api.upload(name, "/tmp/packed.tar", packed)
    assert api.run(name, "tar -C /data -xpf /tmp/packed.tar").exit_code != 0
    for command in ("install -m 4755 /bin/true /data/installed", "cp /bin/true /data/copied && chmod u+s /data/copied", "setcap cap_setuid+ep /data/copied",
                    "python3 -c 'import os; os.umask(0); os.open(\"/data/opened\", os.O_CREAT, 0o4755)'"):  # fmt: skip
        assert api.run(name, command).exit_code != 0, command
    # execd is in there, too, whatever it makes of such a mode.
    api.execd(name, "POST", "/files/permissions", json={"/data/copied": {"mode": 4755}})
    api.execd(name, "POST", "/directories", json={"/data/directory": {"mode": 2755}})
    assert privileged(ground / "roots") == []


def test_what_is_changed_loses_its_privilege(api, make, ground):
    """Of a file that root has put there afterwards; none is there when the sandbox starts."""
    name = make(host(ground / "roots"))
    for number, change in enumerate(("printf x >> {0}", "printf x > {0}", "truncate -s 3 {0}", "dd if=/dev/zero of={0} bs=1 count=1 conv=notrunc",
                                     "chown 0:0 {0}", "cp /bin/true {0}", "fallocate -p -o 0 -l 4096 {0}")):  # fmt: skip
        program = ground / "roots" / f"program{number}"
        shutil.copy("/bin/true", program)
        program.chmod(0o6755)
        api.run(name, change.format(f"/data/{program.name}"))
        assert privileged(ground / "roots") == [], change
        program.unlink()


def test_programs_that_act_as_root_are_not_given_away(api, ground):
    """A write takes the bit from a program, but one through shared memory does not: so none may be there."""
    program = ground / "marked" / "deep" / "program"
    program.parent.mkdir()
    shutil.copy("/bin/true", program)
    for mode in (0o4755, 0o2755):
        program.chmod(mode)
        found = assert_envelope(api.post_create(volumes=[host(ground / "marked")]), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
        assert "act as root" in found["message"] and "/data" in found["message"] and "read-only" in found["message"], found
    program.chmod(0o755)
    os.setxattr(program, "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    assert_envelope(api.post_create(volumes=[host(ground / "marked")]), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
    # To be read it is given away as ever, and so it is without them.
    for volume in (host(ground / "marked", readOnly=True), host(ground / "marked")):
        sandbox = api.create(volumes=[volume])["id"]
        assert fine(api.run(sandbox, "test -x /data/deep/program && echo there")) == "there"
        assert api.run(sandbox, "touch /data/new").exit_code == (0 if "readOnly" not in volume else 1)
        api.delete(sandbox)
        os.removexattr(program, "security.capability") if "readOnly" in volume else None


def test_capabilities_are_gone_for_good(api, make, ground):
    """Neither CAP_SETFCAP nor CAP_FSETID, also after a change of identity."""
    ordinary, name = make(), make(host(ground / "roots"))
    for sandbox, has in ((ordinary, True), (name, False)):
        for line in fine(api.run(sandbox, "grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status")).splitlines():
            assert [bool(int(line.split()[1], 16) >> bit & 1) for bit in (31, 4)] == [has, has], (has, line)
