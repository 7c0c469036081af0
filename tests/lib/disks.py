"""Whether sandboxes can have a limited disk on this host."""

import shutil
from pathlib import Path

import pytest

no_disks = pytest.mark.skipif(
    not (shutil.which("mkfs.ext4", path="/usr/sbin:/sbin") and Path("/dev/loop-control").exists()),
    reason="this host has no mkfs.ext4 or no loop devices",
)  # fmt: skip
