"""Snapshots where the file system of the state directory shares blocks: what is captured is shared, not copied, and stays as it was."""

import fcntl
import os
import struct

import pytest
from lib import leaks
from lib import snapshots as of
from lib.api import Api
from lib.small_disk import missing, small_disk
from lib.waiting import wait_for

FIEMAP = 0xC020660B
SYNC, SHARED, LAST = 1, 0x2000, 1
MIB = 1 << 20


def extents(path):
    """Of each extent of a file its length, and whether another file has it, too."""
    most = 256
    with open(path, "rb") as file:
        head = struct.pack("QQIIII", 0, os.fstat(file.fileno()).st_size, SYNC, 0, most, 0)
        told = bytearray(head + bytes(56 * most))
        fcntl.ioctl(file, FIEMAP, told)
    count = struct.unpack_from("I", told, 20)[0]
    found = [struct.unpack_from("QQQ16xI", told, 32 + 56 * n) for n in range(count)]
    assert found and found[-1][3] & LAST, "the map has all of them"
    return [(length, bool(flags & SHARED)) for _, _, length, flags in found]


def used(directory):
    os.sync()
    about = os.statvfs(directory)
    return (about.f_blocks - about.f_bfree) * about.f_frsize


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_what_is_captured_is_shared(new_service, kind):
    if why := missing(kind):
        pytest.skip(why)
    service = new_service(start=False)
    with small_disk(service, 512, kind):
        api = Api(service.start())
        baseline = leaks.snapshot(service)
        source = api.create()["id"]
        api.run(source, "head -c 64M /dev/urandom > /root/f; cd /root; sha256sum f > sum; truncate -s 1G hole; sync")
        before = used(service.state_dir)
        taken = of.make(api, source)
        assert used(service.state_dir) - before < 8 * MIB, "64 MiB are there once"
        (layer,) = of.on_disk(service)["layers"]
        captured = service.state_dir / "images/snapshots/layers" / layer / "root/f"
        parts = extents(captured)
        assert sum(length for length, _ in parts) >= 64 * MIB and all(shared for _, shared in parts), parts
        # Whoever writes on has blocks of its own from then on.
        api.run(source, "head -c 64M /dev/zero > /root/f; rm /root/hole")
        (fork,) = of.fork(api, source)
        assert api.run(fork, "head -c 1 /root/f | od -An -tx1").stdout.strip() == "00"
        restored = of.restore(api, taken["id"])
        assert api.run(restored, "cd /root && sha256sum -c sum && stat -c %s hole && du -k hole | cut -f1").stdout.splitlines()[-2:] == ["1073741824", "0"]
        for one in (source, fork, restored):
            assert api.delete(one).status == 204
        assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
        wait_for(lambda: of.nothing_on_disk(service), 10, "nothing is left")
        leaks.assert_nothing_leaked(service, baseline)
