"""Snapshots through the API, and what there is of them on the host."""

import json
import os

from .api import create_body
from .waiting import wait_for


def make(api, sandbox, name=None, timeout=30):
    """Asks for a snapshot and waits until it is Ready."""
    reply = api.call("POST", f"/sandboxes/{sandbox}/snapshots", json={"name": name} if name else {})
    assert reply.status == 202, f"snapshot: {reply}"
    done = settled(api, reply.json["id"], timeout)
    assert done["status"]["state"] == "Ready", done
    return done


def settled(api, snapshot, timeout=30):
    """The snapshot once it is Ready or Failed."""

    def over():
        found = api.call("GET", f"/snapshots/{snapshot}")
        assert found.status == 200, found
        return found.json if found.json["status"]["state"] in ("Ready", "Failed") else None

    return wait_for(over, timeout, "the snapshot is Ready or Failed", interval=0.01)


def restore(api, snapshot, **fields):
    return api.create(image=..., snapshotId=snapshot, **fields)["id"]


def fork(api, sandbox, count=1, timeout=60):
    reply = api.call("POST", f"/sandboxes/{sandbox}/fork", json={"count": count}, timeout=timeout)
    assert reply.status == 202, f"fork: {reply}"
    for one in reply.json["items"]:
        api.service.scope.remember(one["id"])
    return [one["id"] for one in reply.json["items"]]


def rollback(api, sandbox, snapshot):
    return api.call("POST", f"/sandboxes/{sandbox}/rollback", json={"snapshotId": snapshot}, timeout=60)


def on_disk(service):
    """Names of what the host keeps: layers, snapshots, half-made ones."""
    top = service.state_dir / "images/snapshots"
    return {kind: sorted(os.listdir(top / kind)) for kind in ("layers", "kept", "staging")}


def nothing_on_disk(service):
    return on_disk(service) == {"layers": [], "kept": [], "staging": []}


__all__ = ["make", "settled", "restore", "fork", "rollback", "on_disk", "nothing_on_disk", "create_body", "json"]
