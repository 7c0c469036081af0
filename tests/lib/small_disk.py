"""A state directory on a file system of its own: small enough to be filled up on purpose, or of a kind that shares blocks."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

FILLER = "filler"
SBIN = "/usr/sbin:/sbin:/usr/bin:/bin"
MAKE = {
    # No blocks reserved for root: the launcher is to see the same full disk as everybody else.
    "ext4": ["mkfs.ext4", "-q", "-m", "0"],
    "xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"],
    "btrfs": ["mkfs.btrfs", "-q"],
}


def missing(kind):
    """Why there can be no such file system here; nothing when there can be one."""
    if shutil.which(MAKE[kind][0], path=SBIN) is None:
        return f"no mkfs.{kind} here; install xfsprogs or btrfs-progs"
    if kind not in Path("/proc/filesystems").read_text().split():
        return f"this kernel has no {kind}"
    return None


@contextmanager
def small_disk(service, mebibytes, kind="ext4"):
    """Mounts a fresh file system where the service, not started yet, will keep its state. Both are gone afterwards."""
    image = service.directory / "disk.img"
    with open(image, "wb") as file:
        file.truncate(mebibytes << 20)
    subprocess.run([*MAKE[kind], image], check=True, env={"PATH": SBIN})
    service.state_dir.mkdir()
    subprocess.run(["mount", "-o", "loop", image, service.state_dir], check=True)
    service.show_mount(service.state_dir)
    try:
        if kind == "ext4":
            (service.state_dir / "lost+found").rmdir()
        yield service.state_dir
    finally:
        service.destroy()
        service.hide_mount(service.state_dir)
        # Lazily: a worker that removes trash may still sit in it.
        subprocess.run(["umount", "-l", service.state_dir], check=True)
        image.unlink(missing_ok=True)


def fill(state_dir):
    """Takes every block that is left."""
    with open(Path(state_dir, FILLER), "ab") as file:
        for size in (1 << 20, 4096):
            block = b"x" * size
            try:
                while True:
                    os.write(file.fileno(), block)
            except OSError:
                continue


def free(state_dir):
    Path(state_dir, FILLER).unlink(missing_ok=True)
