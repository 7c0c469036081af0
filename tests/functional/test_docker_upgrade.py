"""Containers of the build in which they bore their handles, and not yet the ids of their sandboxes.

That build is not made for this test: OSB_OLD_DOCKER_BIN names its executables, or tests/lib/old_build has them.
"""

import os
import subprocess
from pathlib import Path

import pytest
from lib import pools as of
from lib import snapshots
from lib.api import Api
from lib.dockerd import IMAGE, SLEEPER, create, handles, ours, service_on, state
from lib.waiting import wait_for

BEFORE = "d1d89af"


@pytest.fixture
def old_docker_bin():
    if given := os.environ.get("OSB_OLD_DOCKER_BIN"):
        return Path(given)
    found = subprocess.run([Path(__file__).parents[1] / "lib/old_build", "--find", BEFORE], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0 or os.environ.get("OSB_OLD_BIN"):
        pytest.skip(f"{BEFORE} has not been built: tests/lib/old_build {BEFORE}")
    return Path(found.stdout.strip())


def test_from_the_build_with_handles(old_docker_bin, bin_dir, engine):
    service = service_on(old_docker_bin, engine)
    try:
        api = Api(service.start())
        of.make(api, shape=of.template(image={"uri": IMAGE}), least=1, most=1)
        of.filled(api)
        (waiting,) = ours(engine)
        running, paused = create(api, metadata={"team": "red"}), create(api)
        ended, ending = create(api, entrypoint=["sh", "-c", "sleep 1; exit 3"]), create(api, entrypoint=["sh", "-c", "sleep 3; exit 4"])
        api.run(running, "echo kept > /tmp/file")
        assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
        state(api, paused, "Paused")
        state(api, ended, "Failed")
        snapshot = snapshots.make(api, running)["id"]
        assert not any(running in name for name in ours(engine)), "that build names containers otherwise"
        service.kill_both()
        service.bin_dir = bin_dir
        service.start()
        assert api.run(running, "cat /tmp/file").stdout == "kept" and api.get(running)["metadata"] == {"team": "red"}
        assert "code 4" in state(api, ending, "Failed")["message"]
        assert api.call("POST", f"/sandboxes/{paused}/resume").status == 202
        state(api, paused, "Running")
        of.filled(api)
        claimed = of.claim(api, entrypoint=SLEEPER)
        assert api.run(claimed, "echo on").stdout == "on"
        wait_for(lambda: f"sandbox-{claimed}" in ours(engine) and waiting not in ours(engine), 10, "it is named after its sandbox")
        restored = snapshots.restore(api, snapshot, entrypoint=SLEEPER)
        assert api.run(restored, "cat /tmp/file").stdout == "kept"
        assert snapshots.rollback(api, running, snapshot).status == 200
        wait_for(lambda: f"sandbox-{running}" in ours(engine), 10, "what replaces it has a name as they have now")
        of.delete(api)
        for sandbox in (running, paused, ended, ending, claimed, restored):
            assert api.delete(sandbox).status == 204
        assert api.call("DELETE", f"/snapshots/{snapshot}").status == 204
        wait_for(lambda: not ours(engine) and not handles(service), 20, "nothing is left")
    finally:
        service.destroy()
        if left := ours(engine):
            engine.docker("rm", "-f", *left)
