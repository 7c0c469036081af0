"""gVisor for tests: what OSB_RUNSC names, or Debian's, unpacked once below build/ (scripts/runsc). Nothing is installed."""

import os
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from .service import Service

TOP = Path(__file__).resolve().parents[2]


@lru_cache
def find():
    """Its path, or the reason why there is none."""
    given = os.environ.get("OSB_RUNSC")
    if given:
        return Path(given), ""
    made = subprocess.run([TOP / "scripts/runsc"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return None, f"no runsc here, and none to be had: {made.stderr.strip()[-200:]}"
    return Path(made.stdout.strip()), ""


def require_runsc():
    path, why = find()
    if path is None:
        pytest.skip(why)
    return path


def runsc_service(bin_dir, *, runtime=None, secure=None, **more):
    """A service whose creates may name `runsc`; with secure={"type": "gvisor"} all of them get it."""
    sections = {
        "runtime": {"type": "native", **({"also": ["runsc"]} if secure is None and runtime is None else runtime or {})},
        "secure_runtime": {"runsc": str(require_runsc()), **(secure or {})},
        **more.pop("sections", {}),
    }
    return Service(bin_dir, sections=sections, **more)
