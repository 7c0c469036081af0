"""The last minute of a host that is about to be booted again in an orderly way."""

from job import tell
from kept import DISK_LIMIT, kept_service


def test_leave_some_behind(bin_dir):
    service, api = kept_service(bin_dir, "kept")
    running = api.create(resourceLimits={"cpu": "500m", "memory": "128Mi"})["id"]
    paused, disk, ended = api.create()["id"], api.create(resourceLimits=DISK_LIMIT)["id"], api.create()["id"]
    expiring, deleted = api.create()["id"], api.create()["id"]
    assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
    assert api.run(disk, "head -c 1M /dev/urandom > /root/data; echo ok").stdout == "ok"
    api.run(ended, "kill 1", background=True)
    assert api.delete(deleted).status == 204
    api.renew(expiring, 4)  # alive when the host goes down, overdue when it is up again
    for name in (running, paused, disk, expiring):
        assert api.status(name)["state"] in ("Running", "Paused")
    tell(live=[running, paused, disk], expiring=expiring, deleted=deleted)
    service.stop()
    assert service.scope.sandbox_pids(running), "sandboxes outlive the service, until the host ends them"
