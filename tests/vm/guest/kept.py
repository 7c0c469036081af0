"""A service whose state outlives boots of the guest."""

import os
import re
from pathlib import Path

from lib.api import Api
from lib.service import Service
from lib.waiting import wait_for

DISK = Path("/var/tmp")
DISK_LIMIT = {"disk": "48Mi"}


def kept_service(bin_dir, name):
    directory = DISK / name
    directory.mkdir(exist_ok=True)
    service = Service(bin_dir, directory=directory)
    service.start(timeout=60)
    return service, Api(service)


def leftovers(service):
    """What is there of sandboxes although the service has none: names of files, mounts, loop devices, groups."""
    found = [f"{kind}/{name}" for kind in ("sandboxes", "trash", "spares") for name in os.listdir(service.state_dir / kind)]
    found += [f"run/{name}" for name in os.listdir(service.state_dir / "run")]
    found += [f"images/{name}" for name in os.listdir(service.state_dir / "images") if name.startswith(".")]
    found += [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if str(service.state_dir) in line]
    found += [path.name for path in Path("/sys/fs/cgroup").rglob("*") if path.is_dir() and re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", path.name)]
    return found


def assert_nothing_left(service):
    wait_for(lambda: not leftovers(service) or _fail(leftovers(service)), 20, "nothing is left", interval=0.1)


def _fail(found):
    raise AssertionError(str(found[:10]))


def assert_new_ones_work(api):
    """Of every kind: what was made ahead or kept for later before the host went down must be whole."""
    for limits in ({}, {"cpu": "500m", "memory": "128Mi", "pids": "64"}, DISK_LIMIT):
        made = api.create(resourceLimits=limits)["id"]
        ran = api.run(made, "id -un; cat /etc/hostname; head -c 1M /dev/zero > /tmp/x && stat -c %s /tmp/x; grep -c . /etc/passwd")
        assert ran.stdout.splitlines()[:3] == ["root", "sandbox", str(1 << 20)], (limits, ran.stdout, ran.stderr)
        assert int(ran.stdout.splitlines()[3]) > 5
        assert api.call("POST", f"/sandboxes/{made}/pause").status == 202
        assert api.call("POST", f"/sandboxes/{made}/resume").status == 202
        assert api.delete(made).status == 204
