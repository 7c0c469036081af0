"""Control groups of version 1 whose sandbox has ended: they serve the next one, with nothing of the last in them, or go."""

from pathlib import Path

import pytest
from lib.api import Api
from lib.scope import cgroup_mounts
from lib.waiting import wait_for

MEMORY = cgroup_mounts().get("memory")
pytestmark = pytest.mark.skipif(MEMORY is None, reason="memory is not limited through version 1 here")

LIMITED = {"cpu": "500m", "memory": "256Mi"}


@pytest.fixture
def service(new_service):
    return new_service()


@pytest.fixture
def api(service):
    return Api(service)


def group(service, sandbox, file=""):
    """A file of the sandbox's group in the hierarchy that the file's name tells, or the group of its memory."""
    controller = file.split(".")[0] or "memory"
    found = [Path(path) for path in service.scope.cgroups() if path.endswith(service.scope.handle(sandbox)) and path.startswith(cgroup_mounts()[controller] + "/")]
    assert len(found) == 1, found
    return found[0] / file


def one_life(service, api, look=lambda sandbox: None, command="true", limits=None):
    """Which group the sandbox had, and what `look` saw at its start."""
    made = api.create(resourceLimits=limits or {})["id"]
    seen = group(service, made).stat().st_ino, look(made)
    assert api.run(made, command).exit_code == 0
    assert api.delete(made).status == 204
    return seen


def test_serve_the_next(service, api):
    one_life(service, api)
    assert len({one_life(service, api)[0] for _ in range(10)}) < 10


@pytest.mark.parametrize("limits", [LIMITED, {"memory": "256Mi"}, {"cpu": "500m"}])
def test_limits_stay_behind(service, api, limits):
    def look(sandbox):
        return [group(service, sandbox, file).read_text().strip() for file in ("memory.limit_in_bytes", "cpu.cfs_quota_us", "pids.max")]

    free = one_life(service, api, look)[1]
    for _ in range(6):
        assert one_life(service, api, look, limits=limits)[1] != free
        assert one_life(service, api, look)[1] == free


def test_what_can_be_seen_inside_is_new_each_time(service, api):
    """Groups with limits are shown to their sandbox, with all that was counted in them: never somebody else's."""
    inodes = [one_life(service, api, limits=LIMITED)[0] for _ in range(6)]
    assert len(set(inodes)) == len(inodes)


def test_memory_that_is_left_stays_behind(service, api):
    def look(sandbox):
        return int(group(service, sandbox, "memory.usage_in_bytes").read_text())

    for _ in range(3):
        one_life(service, api, command="head -c 100M /dev/zero > /var/tmp/left")
        assert one_life(service, api, look)[1] < 32 << 20


def test_are_gone_soon(service, api):
    for limits in (None, LIMITED):
        one_life(service, api, limits=limits)
    wait_for(lambda: not service.scope.cgroups(), 5, "no group is left")


def test_are_swept_after_a_kill(service, api):
    for limits in (None, LIMITED):
        one_life(service, api, limits=limits)
    service.kill_launcher()
    assert service.scope.cgroups()
    service.start()
    assert not service.scope.cgroups()


def test_are_gone_after_a_stop(service, api):
    one_life(service, api, limits=LIMITED)
    service.stop()
    assert not service.scope.cgroups()
