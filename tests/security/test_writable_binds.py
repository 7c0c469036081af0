"""Directories of the host that a sandbox may write to, as the launcher makes them: with the sandbox's ids, and no further than
their own tree. There is no such thing in the API yet; a launcher is started with a rogue in the server's place (rogue.py).
"""

import ctypes
import errno
import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

import pytest
import rogue
from lib import images
from lib.service import STATE_PARENT

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000


@pytest.fixture(scope="module")
def ground():
    path = Path(tempfile.mkdtemp(prefix="osb-volumes-", dir=STATE_PARENT))
    path.chmod(0o755)
    images.write_root(path / "image")
    volumes = path / "volumes"
    (volumes / "a").mkdir(parents=True)
    volumes.chmod(0o700)
    (volumes / "a" / "before").write_text("by root")
    (volumes / "link").symlink_to("a")
    (path / "open").mkdir(mode=0o755)
    (path / "open" / "a").mkdir()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def server(bin_dir, ground):
    made = rogue.Rogue(bin_dir, ground, [ground / "image"], [ground / "volumes", ground / "open"])
    yield made
    made.close()


def start(server, ground, source, access):
    sandbox_id = str(uuid.uuid4())
    bind = rogue.step("bind", "/data", source=str(source), access=access)
    answer, pid = server.start(sandbox_id, rogue.ordinary_steps(str(ground / "image"), before=[bind]))
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


def test_what_is_written_has_the_ids_of_the_sandbox(server, ground):
    sandbox_id, answer, pid = start(server, ground, ground / "volumes" / "a", rogue.WRITABLE)
    assert pid, answer

    def write():
        assert Path("/data/before").read_text() == "by root"
        Path("/data/own").write_text("from inside")
        Path("/data/other").write_text("from inside")
        os.chown("/data/other", 7, 8)
        os.chmod("/data/own", 0o4755)

    assert inside(pid, write) == 0
    own, other = (ground / "volumes" / "a" / "own").stat(), (ground / "volumes" / "a" / "other").stat()
    assert (own.st_uid, own.st_gid, stat.S_IMODE(own.st_mode)) == (0, 0, 0o4755)
    assert (other.st_uid, other.st_gid) == (7, 8)
    # The host's root is nobody in there.
    with pytest.raises(OSError) as refused:
        Path(f"/proc/{pid}/root/data/host").write_text("x")
    assert refused.value.errno == errno.EOVERFLOW
    options = next(line for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines() if line.split()[4] == "/data").split()[5]
    assert {"rw", "nosuid", "nodev"} <= set(options.split(",")), options
    assert not server.ask(rogue.DESTROY, sandbox_id).error
    assert (ground / "volumes" / "a" / "own").read_text() == "from inside", "it went with the sandbox"

    # Another sandbox, another range: the same ids.
    sandbox_id, answer, pid = start(server, ground, ground / "volumes" / "a", rogue.WRITABLE)
    assert pid, answer

    def look():
        assert (os.stat("/data/own").st_uid, os.stat("/data/other").st_gid) == (0, 8)
        Path("/data/own").unlink()

    assert inside(pid, look) == 0
    assert not (ground / "volumes" / "a" / "own").exists()
    server.ask(rogue.DESTROY, sandbox_id)


def test_a_volume_can_be_shown_read_only(server, ground):
    sandbox_id, answer, pid = start(server, ground, ground / "volumes" / "a", 0)
    assert pid, answer
    assert inside(pid, lambda: Path("/data/before").read_text()) == 0
    assert inside(pid, lambda: Path("/data/more").write_text("x")) == errno.EROFS
    server.ask(rogue.DESTROY, sandbox_id)


def test_nothing_else_can_be_written(server, ground):
    for source in (ground / "image", ground / "volumes", ground / "volumes" / "link", ground / "volumes" / "none",
                   ground / "volumes" / "a" / "before", server.state_dir / "images", server.state_dir / "db", "/etc"):  # fmt: skip
        _, answer, pid = start(server, ground, source, rogue.WRITABLE)
        assert not pid and answer.message, f"{source} could be written: {answer}"
    _, answer, pid = start(server, ground, ground / "open" / "a", rogue.WRITABLE)
    assert not pid and "0700" in answer.message, answer
    assert not server.ids()
