"""What a power cut would leave: rows reach the disk soon, and what nobody waited for is not trusted after the next boot.

The real thing, with a host that is cut off, is in tests/vm.
"""

import array
import fcntl
import time
from pathlib import Path

import pytest
from lib.api import Api
from lib.waiting import wait_for

pytestmark = pytest.mark.alone

OTHER_BOOT = "00000000-0000-4000-8000-000000000000"
FS_IOC_FIEMAP = 0xC020660B
DELAYED = 0x4  # the extent has no place on the disk yet
UNWRITTEN = 0x800  # it has a place, which holds nothing yet


def unwritten_extents(path):
    """How many pieces of a file exist in memory only. What is reserved behind its end is none of it."""
    most = 200
    head = array.array("Q", [0, 2**64 - 1, 0, most])  # from, to, (flags, count of what is found), room
    request = bytearray(head.tobytes() + bytes(56 * most))
    with open(path, "rb") as file:
        fcntl.ioctl(file, FS_IOC_FIEMAP, request)
    found = int.from_bytes(request[20:24], "little")
    size = Path(path).stat().st_size
    extents = [request[32 + 56 * i : 32 + 56 * (i + 1)] for i in range(found)]
    inside = [extent for extent in extents if int.from_bytes(extent[0:8], "little") < size]
    return sum(1 for extent in inside if int.from_bytes(extent[40:44], "little") & (DELAYED | UNWRITTEN))


def log_of(service):
    return next((service.state_dir / "db").glob("*-wal"))


def test_rows_are_on_the_disk_within_a_second(new_service):
    service = new_service()
    api = Api(service)
    try:
        unwritten_extents(service.config_path)
    except OSError as error:
        pytest.skip(f"this file system does not tell what is on the disk: {error}")
    log = log_of(service)
    names = []
    for _ in range(3):
        size = log.stat().st_size
        while log.stat().st_size == size:  # a commit may lie in a page that is there already
            names.append(api.create()["id"])
        began = time.monotonic()
        wait_for(lambda: unwritten_extents(log) == 0, 5, "the log is on the disk")
        assert time.monotonic() - began < 1.5
    for name in names:
        assert api.delete(name).status == 204


def test_what_an_earlier_boot_made_is_made_anew(new_service):
    """Files that have their names but not their contents, as a power cut leaves them."""
    service = new_service()
    api = Api(service)
    made = api.create(resourceLimits={"disk": "32Mi"}, entrypoint=["true"])["id"] if Path("/dev/loop-control").exists() else None
    if made:
        api.delete(made)
    service.stop()
    image = next((service.state_dir / "images").glob("host-*"))
    for path in (image / "root/etc/passwd", image / "common/etc/hostname", image / "boot"):
        path.write_text("")
    stale = service.state_dir / "images" / "host-0123456789abcdef"
    stale.mkdir()
    (stale / "boot").write_text(OTHER_BOOT)
    for path in (service.state_dir / "disks").iterdir():
        path.write_text("")
    service.start()
    assert not stale.exists()
    for limits in ({}, {"disk": "32Mi"}) if made else ({},):
        name = api.create(resourceLimits=limits)["id"]
        assert api.run(name, "id -un; cat /etc/hostname").stdout == "root\nsandbox"
        assert api.delete(name).status == 204


def test_what_this_boot_made_is_kept(new_service):
    service = new_service()
    image = next((service.state_dir / "images").glob("host-*"))
    number = image.stat().st_ino
    service.restart()
    assert image.stat().st_ino == number, "living sandboxes use it"
