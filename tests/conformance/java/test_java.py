"""The published Java client (com.alibaba.opensandbox:sandbox 1.0.0) against our server.

Its jars are fetched once by Maven below build/ and compared with checksums.sha256; the drivers are compiled by javac. This client can
make, find, pause, renew and end sandboxes, run and interrupt commands, work on files and read metrics; sessions, status, logs, snapshots
and a pool it does not have.
"""

import hashlib
import subprocess
from pathlib import Path

import pytest
from lib import foreign_sdk
from lib.foreign_sdk import ran
from lib.plugin import REPOSITORY

HERE = Path(__file__).resolve().parent
HOME = REPOSITORY / "build" / "java"
LIBRARIES = HOME / "lib"


def checksums():
    lines = (HERE / "checksums.sha256").read_text().split("\n")
    return {name: digest for digest, name in (line.split() for line in lines if line)}


def present():
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in LIBRARIES.glob("*.jar")}


def install():
    if present() != checksums():
        command = ["mvn", "-q", "-B", "-f", HERE / "pom.xml", f"-Dmaven.repo.local={HOME / 'repository'}",
                   "dependency:copy-dependencies", f"-DoutputDirectory={LIBRARIES}"]  # fmt: skip
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=140)
    assert present() == checksums(), "these are not the jars that were pinned"


def compile_drivers():
    classes = HOME / "classes"
    sources = sorted(HERE.glob("*.java"))
    made = [classes / f"{source.stem}.class" for source in sources]
    if not all(one.exists() for one in made) or min(one.stat().st_mtime for one in made) < max(source.stat().st_mtime for source in sources):
        subprocess.run(["javac", "-encoding", "UTF-8", "-cp", f"{LIBRARIES}/*", "-d", classes, *sources], check=True, timeout=100)
    return classes


def run_driver(service, name):
    install()
    classes = compile_drivers()
    address = f"{service.address[0]}:{service.address[1]}"
    return foreign_sdk.run_driver(["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-cp", f"{classes}:{LIBRARIES}/*", name, address, service.api_key])


@pytest.fixture(scope="module")
def seen(service):
    return run_driver(service, "Driver")


@pytest.fixture(scope="module")
def lived(service):
    return run_driver(service, "Lifecycle")


def test_lifecycle(lived, pytestconfig):
    foreign_sdk.check_lifecycle(lived, pytestconfig.getoption("--runtime"))


def test_manager(lived):
    foreign_sdk.check_manager(lived)


def test_refusals(lived):
    foreign_sdk.check_refusals(lived)


def test_commands(seen):
    foreign_sdk.check_commands(seen, lacks=("options", "identity", "timeout"))
    assert seen["options"] == ran(["blue|/usr/lib"])  # the directory; variables of one command it cannot give


def test_background_and_interrupt(seen):
    assert seen["background"] == [True, True]
    assert seen["after_interrupt"]["stdout"] == ["0"]
    assert seen["interrupted"]["exit"] == -1 and seen["interrupted"]["error"] == "CommandExecError"


def test_files(seen):
    foreign_sdk.check_files(seen, "/tmp/java", lacks=("list", "replaced", "type"))
    assert seen["ranges"] == ["one\n", "one"]
    assert seen["written"] == ["plain", True]


def test_metrics_and_health(seen):
    foreign_sdk.check_metrics(seen)
    assert seen["healthy"] is True
