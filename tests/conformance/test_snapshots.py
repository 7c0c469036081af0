"""Snapshots through the published clients: made, listed, restored, deleted."""

import pytest
from lib.waiting import wait_for
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SnapshotFilter

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.fixture
def manager(sdk):
    made = sdk.go(sdk.Manager.create(connection_config=sdk.config()))
    yield made
    sdk.go(made.close())


def ready(sdk, manager, snapshot):
    wait_for(lambda: sdk.go(manager.get_snapshot(snapshot.id)).status.state != "Creating", 30, "the snapshot is made")
    done = sdk.go(manager.get_snapshot(snapshot.id))
    assert done.status.state == "Ready", done
    return done


def test_from_sandbox_to_sandbox(sdk, manager):
    sandbox = sdk.create()
    sdk.run(sandbox, "echo kept > /root/x")
    taken = sdk.go(sandbox.create_snapshot(name="first"))
    assert taken.status.state == "Creating" and taken.sandbox_id == sandbox.id and taken.name == "first"
    ready(sdk, manager, taken)
    sdk.kill(sandbox)
    restored = sdk.create(None, snapshot_id=taken.id)
    info = sdk.go(restored.get_info())
    assert info.snapshot_id == taken.id and info.image is None
    assert sdk.run(restored, "cat /root/x").logs.stdout[0].text == "kept"
    with pytest.raises(SandboxApiException) as caught:
        sdk.go(manager.delete_snapshot(taken.id))
    assert caught.value.error.code == "SNAPSHOT::DELETE_CONFLICT" and restored.id in str(caught.value)
    sdk.kill(restored)
    sdk.go(manager.delete_snapshot(taken.id))
    with pytest.raises(SandboxApiException) as caught:
        sdk.go(manager.get_snapshot(taken.id))
    assert caught.value.error.code == "SNAPSHOT::NOT_FOUND"
    with pytest.raises(SandboxApiException) as caught:
        sdk.create(None, snapshot_id=taken.id)
    # It knows no 404 of a create; newer ones show what they were told as it came.
    assert caught.value.status_code == 404
    if hasattr(caught.value, "response_body"):
        assert b"SNAPSHOT::NOT_FOUND" in caught.value.response_body and taken.id.encode() in caught.value.response_body


def test_lists(sdk, manager):
    sandbox = sdk.create()
    taken = [ready(sdk, manager, sdk.go(manager.create_snapshot(sandbox.id))) for _ in range(3)]
    found = sdk.go(manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id, states=["Ready"], page_size=2)))
    assert [one.id for one in found.snapshot_infos] == [taken[2].id, taken[1].id]
    assert found.pagination.total_items == 3
    for one in taken:
        sdk.go(manager.delete_snapshot(one.id))
    assert sdk.go(manager.list_snapshots(SnapshotFilter(sandbox_id=sandbox.id))).snapshot_infos == []
