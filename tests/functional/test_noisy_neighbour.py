"""A sandbox without limits that takes all it can get: the service answers, and others' commands run."""

import statistics
import time

import pytest
from lib import rawhttp
from lib.api import Api

pytestmark = pytest.mark.alone

BURN = "for i in $(seq 50); do (while :; do :; done) & done; sleep 0.2; wait"


def times(action, count):
    taken = []
    for _ in range(count):
        started = time.monotonic()
        action()
        taken.append((time.monotonic() - started) * 1000)
    return taken


def measure(api, quiet, count=60):
    listed = times(lambda: api.list_all(), count)
    ran = times(lambda: api.run(quiet, "true"), count)
    return {"list": statistics.median(listed), "list p90": sorted(listed)[count * 9 // 10], "command": statistics.median(ran), "command p90": sorted(ran)[count * 9 // 10]}


def test_all_cores(new_service):
    api = Api(new_service())
    quiet, noisy = api.create()["id"], api.create()["id"]
    alone = measure(api, quiet)
    api.run(noisy, BURN, background=True)
    time.sleep(1)
    beside = measure(api, quiet)
    print({name: f"{value:.1f} ms, alone {alone[name]:.1f} ms" for name, value in beside.items()})
    assert api.delete(noisy).status == 204
