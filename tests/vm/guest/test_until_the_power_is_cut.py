"""Clients at work on a host whose power will be cut. Everything that was answered is told to whoever will look afterwards."""

import time

from job import order, tell
from kept import DISK_LIMIT, kept_service


def test_work(bin_dir):
    _, api = kept_service(bin_dir, order()["service"])
    tell(started=True, at=time.monotonic())
    disk = api.create(resourceLimits=DISK_LIMIT)["id"]
    tell(created=disk, at=time.monotonic())
    while True:
        first, second = api.create()["id"], api.create(resourceLimits={"memory": "64Mi"})["id"]
        for name in (first, second):
            tell(created=name, at=time.monotonic())
        tell(deleting=second, at=time.monotonic())
        assert api.delete(second).status == 204
        tell(deleted=second, at=time.monotonic())
