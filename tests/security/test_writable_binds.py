"""Volumes as the launcher makes them, whatever a server says: with ids that are nobody's on the host, no further than their own tree, and
nothing that root did not allow. A launcher is started with a rogue in the server's place (rogue.py).
"""

import ctypes
import errno
import os
import shutil
import stat
import struct
import tempfile
import threading
import uuid
from pathlib import Path

import pytest
import rogue
from lib import images
from lib.service import STATE_PARENT

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
FIRST = 0x7FC00000
USER = 12345


@pytest.fixture(scope="module")
def ground():
    path = Path(tempfile.mkdtemp(prefix="osb-volumes-", dir=STATE_PARENT))
    path.chmod(0o755)
    images.write_root(path / "image")
    shared = path / "shared"
    (shared / "a").mkdir(parents=True)
    (shared / "a" / "before").write_text("by a user")
    (shared / "link").symlink_to("a")
    (shared / "out").symlink_to("../hidden")
    (path / "hidden").mkdir()
    (path / "hidden" / "file").write_text("untouched")
    for name in (shared, shared / "a", shared / "a" / "before"):
        os.chown(name, USER, USER)
    (path / "roots").mkdir(mode=0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def server(bin_dir, ground):
    made = rogue.Rogue(bin_dir, ground, [ground / "image"], [ground / "shared", ground / "roots"])
    yield made
    made.close()


def shared(path, access=rogue.WRITABLE):
    return rogue.step("bind", "/data", source=str(path), access=access, ids=rogue.OWNER)


def named(path, access=rogue.WRITABLE):
    return rogue.step("volume", "/data", source=path, access=access)


def ensure(server, step, create=True, ephemeral=False, size=-1):
    return server.ask(rogue.VOLUME, step + struct.pack("<BBq", create, ephemeral, size))


def drop(server, name, owner="default"):
    return server.ask(rogue.DROP_VOLUME, rogue.text(owner) + rogue.text(name))


def start(server, ground, step):
    sandbox_id = str(uuid.uuid4())
    answer, pid = server.start(sandbox_id, rogue.ordinary_steps(str(ground / "image"), before=[step]))
    return sandbox_id, answer, pid


def inside(pid, action):
    """The errno of what root of the sandbox gets for `action`, 0 for success."""
    child = os.fork()
    if child == 0:
        status = 255
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            root = os.open(f"/proc/{pid}/root", os.O_PATH)
            user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
            mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
            assert libc.setns(mounts, CLONE_NEWNS) == 0
            os.fchdir(root)
            os.chroot(".")
            assert libc.setns(user, CLONE_NEWUSER) == 0
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)
            action()
            status = 0
        except OSError as error:
            status = error.errno or 254
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def options_of(pid):
    return next(line for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines() if line.split()[4] == "/data").split()[5].split(",")


def test_what_is_written_belongs_to_nobody_of_the_host(server, ground):
    """Not even a set-user-id program that the sandbox's root leaves there is anything to anybody."""
    assert not ensure(server, named("default/a")).error
    sandbox_id, answer, pid = start(server, ground, named("default/a"))
    assert pid, answer

    def write():
        Path("/data/own").write_text("from inside")
        Path("/data/other").write_text("from inside")
        os.chown("/data/other", 7, 8)
        os.chmod("/data/own", 0o6755)

    assert inside(pid, write) == 0
    files = server.state_dir / "volumes" / "default" / "a" / "files"
    own, other = (files / "own").stat(), (files / "other").stat()
    assert (own.st_uid, own.st_gid, stat.S_IMODE(own.st_mode)) == (FIRST, FIRST, 0o6755)
    assert (other.st_uid, other.st_gid) == (FIRST + 7, FIRST + 8)
    assert stat.S_IMODE((server.state_dir / "volumes").stat().st_mode) == 0o700
    # The host's root is nobody in there.
    with pytest.raises(OSError) as refused:
        Path(f"/proc/{pid}/root/data/host").write_text("x")
    assert refused.value.errno == errno.EOVERFLOW
    assert {"rw", "nosuid", "nodev"} <= set(options_of(pid))
    assert drop(server, "a").error, "it is in use"
    assert not server.ask(rogue.DESTROY, sandbox_id).error
    assert (files / "own").read_text() == "from inside", "it went with the sandbox"

    # Another sandbox, another range: the same ids.
    sandbox_id, answer, pid = start(server, ground, named("default/a"))
    assert pid, answer

    def look():
        assert (os.stat("/data/own").st_uid, os.stat("/data/other").st_gid) == (0, 8)
        Path("/data/own").unlink()

    assert inside(pid, look) == 0
    server.ask(rogue.DESTROY, sandbox_id)
    assert not drop(server, "a").error
    assert not files.exists()


def test_a_directory_of_the_host_is_written_as_its_owner(server, ground):
    sandbox_id, answer, pid = start(server, ground, shared(ground / "shared" / "a"))
    assert pid, answer

    def write():
        assert Path("/data/before").read_text() == "by a user"
        Path("/data/own").write_text("from inside")
        os.chmod("/data/own", 0o4755)
        os.chown("/data/own", 0, 0)

    assert inside(pid, write) == 0
    assert (ground / "shared" / "a" / "own").stat().st_uid == USER
    assert {"rw", "nosuid", "nodev"} <= set(options_of(pid))
    # No id inside is root's outside.
    for number in (1, 7, 65534, 65535):
        assert inside(pid, lambda number=number: os.chown("/data/own", number, number)) == 0
        assert (ground / "shared" / "a" / "own").stat().st_uid == FIRST + number
    server.ask(rogue.DESTROY, sandbox_id)


@pytest.mark.parametrize("kind", ["shared", "named"])
def test_read_only_is_read_only(server, ground, kind):
    if kind == "named":
        assert not ensure(server, named("default/b")).error
    step = named("default/b", 0) if kind == "named" else shared(ground / "shared" / "a", 0)
    sandbox_id, answer, pid = start(server, ground, step)
    assert pid, answer
    assert inside(pid, lambda: os.listdir("/data")) == 0
    assert inside(pid, lambda: Path("/data/more").write_text("x")) == errno.EROFS
    assert {"ro", "nosuid", "nodev"} <= set(options_of(pid))
    server.ask(rogue.DESTROY, sandbox_id)


def test_nothing_else_can_be_had(server, ground):
    top = ground / "shared"
    for source in (ground / "image", ground, ground / "hidden", top / "out", top / "none", top / "a" / "before", top / "out" / "file",
                   server.state_dir, server.state_dir / "images", server.state_dir / "db", server.state_dir / "volumes", "/etc", "/"):  # fmt: skip
        for step in (shared(source), rogue.step("bind", "/data", source=str(source), access=rogue.WRITABLE)):
            _, answer, pid = start(server, ground, step)
            assert not pid and answer.message, f"{source} could be written: {answer}"
        assert ensure(server, shared(source), create=False).error, source
    for source in (ground / "hidden", top / "out", server.state_dir, server.state_dir / "volumes", "/etc"):
        _, answer, pid = start(server, ground, shared(source, 0))
        assert not pid and answer.message, f"{source} could be read: {answer}"
    # Root's own directory can be read, and written with the ids of its owner only.
    _, answer, pid = start(server, ground, rogue.step("bind", "/data", source=str(ground / "roots"), access=rogue.WRITABLE))
    assert not pid and answer.message
    for access in (0, rogue.WRITABLE):
        sandbox_id, answer, pid = start(server, ground, shared(ground / "roots", access))
        assert pid, answer
        caps = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("CapBnd"))
        assert bool(int(caps.split()[1], 16) >> 31 & 1) == (access == 0), "what writes as root has no CAP_SETFCAP, whatever the server says"
        server.ask(rogue.DESTROY, sandbox_id)
    assert not server.ids()
    assert (ground / "hidden" / "file").read_text() == "untouched"


def test_nothing_is_made_where_nothing_may_be(server, ground):
    top = ground / "shared"
    for source in (ground / "hidden" / "new", top / "out" / "new", server.state_dir / "new", "/new", top / "a" / "before" / "new"):
        assert ensure(server, shared(source)).error, source
    assert not (ground / "hidden" / "new").exists() and not (server.state_dir / "new").exists() and not (top / "a" / "new").exists()
    assert not ensure(server, shared(top / "a" / "new")).error and not ensure(server, shared(top / "link" / "more")).error
    assert (top / "a" / "new").stat().st_uid == (top / "a" / "more").stat().st_uid == USER
    assert ensure(server, shared(ground / "roots" / "new")).error == 0
    assert (ground / "roots" / "new").stat().st_uid == FIRST, "nothing is made for root"


def test_a_link_that_changes_leads_nowhere_else(server, ground):
    """Somebody who may write there lets a link lead in and out by turns, while sandboxes are started through it."""
    top, going = ground / "shared", threading.Event()

    def swap():
        turn = 0
        while not going.is_set():
            (top / "next").symlink_to(("a", "../hidden", "a/../../hidden")[turn % 3])
            os.rename(top / "next", top / "moving")
            turn += 1

    (top / "moving").symlink_to("a")
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        started = 0
        for _ in range(60):
            ensure(server, shared(top / "moving" / "made"))
            sandbox_id, _, pid = start(server, ground, shared(top / "moving"))
            if pid:
                started += 1
                assert Path(f"/proc/{pid}/root/data/before").exists() and not Path(f"/proc/{pid}/root/data/file").exists()
                server.ask(rogue.DESTROY, sandbox_id)
    finally:
        going.set()
        thread.join()
    assert started > 0
    assert os.listdir(ground / "hidden") == ["file"]
    (top / "moving").unlink()


def test_links_in_a_volume_lead_nowhere(server, ground):
    assert not ensure(server, named("default/c")).error
    sandbox_id, answer, pid = start(server, ground, named("default/c"))
    assert pid, answer

    def plant():
        os.symlink("/", "/data/root")
        os.symlink("../../../../..", "/data/up")
        os.symlink("/proc/self/root", "/data/magic")
        os.mkdir("/data/dir")

    assert inside(pid, plant) == 0
    for below in ("root", "root/etc", "up", "up/etc", "magic", "magic/etc", "root/new", "dir/../../b"):
        for access in (0, rogue.WRITABLE):
            assert ensure(server, named(f"default/c/{below}", access)).error, below
            _, answer, started = start(server, ground, named(f"default/c/{below}", access))
            assert not started, f"{below}: {answer}"
    assert not ensure(server, named("default/c/dir")).error
    server.ask(rogue.DESTROY, sandbox_id)
    assert not drop(server, "c").error


def test_sizes_are_in_range(server):
    for size in (0, 1, (16 << 20) - 1, (1 << 44) + 1, (1 << 63) - 1):
        assert ensure(server, named("default/sized"), size=size).error, size
    assert not (server.state_dir / "volumes" / "default" / "sized").exists()


def test_names_of_volumes_are_names(server):
    for name in ("", ".", "..", "../db", "a/b", "A", "-a", "a" * 254, ".making-x", b"a\0", b"\xff"):
        assert drop(server, name).error, name
        assert drop(server, "a", owner=name).error, name
        assert server.ask(rogue.VOLUMES, rogue.text(name) + rogue.text("")).error, name
    answer = server.ask(rogue.VOLUMES, rogue.text("nobody") + rogue.text(""))
    assert not answer.error and answer.body == struct.pack("<I", 0)
    for body in (b"", b"x", rogue.text("default"), rogue.text("default") + rogue.text("a") + b"x"):
        assert server.ask(rogue.DROP_VOLUME, body).error and server.ask(rogue.VOLUMES, body).error
    server.assert_alive()
