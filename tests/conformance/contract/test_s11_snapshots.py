"""Section 11: the life of a snapshot, as far as it is the same for every runtime."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from lib import snapshots as of
from lib.api import Api, assert_envelope


@pytest.fixture
def source(api):
    name = api.create()["id"]
    assert api.run(name, "echo one > /root/f").exit_code == 0
    yield name
    api.delete(name)


class TestFlow:
    def test_s11_2_accepted_then_ready(self, api, source):
        reply = api.call("POST", f"/sandboxes/{source}/snapshots")
        assert (reply.status, reply.json["status"]["state"], reply.json["status"]["reason"]) == (202, "Creating", "snapshot_accepted")
        done = of.settled(api, reply.json["id"])["status"]
        assert (done["state"], done["reason"]) == ("Ready", "snapshot_runtime_ready")
        assert done["lastTransitionAt"] >= reply.json["status"]["lastTransitionAt"]
        assert api.call("DELETE", f"/snapshots/{reply.json['id']}").status == 204

    def test_s11_2_restored_ones_show_where_they_come_from(self, api, source):
        taken = of.make(api, source)["id"]
        made = of.restore(api, taken)
        shown = api.get(made)
        assert shown["snapshotId"] == taken and "image" not in shown and shown["entrypoint"]
        assert api.run(made, "cat /root/f").stdout == "one"
        # In use: refused, and usable as before.
        assert_envelope(api.call("DELETE", f"/snapshots/{taken}"), 409, "SNAPSHOT::DELETE_CONFLICT")
        assert api.call("GET", f"/snapshots/{taken}").json["status"]["state"] == "Ready"
        again = of.restore(api, taken)
        for name in (made, again):
            assert api.delete(name).status == 204
        assert api.call("DELETE", f"/snapshots/{taken}").status == 204

    def test_s11_2_with_the_default_entrypoint(self, api, source):
        taken = of.make(api, source)["id"]
        made = api.create(image=..., snapshotId=taken, entrypoint=...)
        assert made["entrypoint"] == ["tail", "-f", "/dev/null"]
        assert api.delete(made["id"]).status == 204 and api.call("DELETE", f"/snapshots/{taken}").status == 204

    def test_s11_2_many_at_once(self, api, source):
        with ThreadPoolExecutor(6) as pool:
            taken = list(pool.map(lambda _: of.make(api, source)["id"], range(6)))
        assert len(set(taken)) == 6
        for name in taken:
            assert api.call("DELETE", f"/snapshots/{name}").status == 204

    def test_s11_2_one_that_is_being_made_is_not_deleted(self, api, source):
        assert api.run(source, "head -c 60000000 /dev/urandom > /root/big").exit_code == 0
        reply = api.call("POST", f"/sandboxes/{source}/snapshots")
        deleted = api.call("DELETE", f"/snapshots/{reply.json['id']}")
        # Whoever is faster: it is refused while Creating, or is Ready and goes.
        if deleted.status != 204:
            assert_envelope(deleted, 409, "SNAPSHOT::INVALID_STATE")
            of.settled(api, reply.json["id"])
            assert api.call("DELETE", f"/snapshots/{reply.json['id']}").status == 204

    def test_s11_2_a_restart_keeps_them(self, new_service):
        service = new_service()
        api = Api(service)
        name = api.create()["id"]
        assert api.run(name, "echo kept > /root/f").exit_code == 0
        taken = of.make(api, name)["id"]
        service.restart()
        assert api.delete(name).status == 204
        made = of.restore(api, taken)
        assert api.run(made, "cat /root/f").stdout == "kept"
        assert api.delete(made).status == 204 and api.call("DELETE", f"/snapshots/{taken}").status == 204


def test_s11_3_reasons_are_words_of_the_contract(api, source):
    taken = of.make(api, source)["id"]
    listed = api.call("GET", f"/snapshots?sandboxId={source}").json["items"]
    assert {item["status"]["reason"] for item in listed} <= {"snapshot_accepted", "snapshot_runtime_ready", "snapshot_recovery_ready"}
    assert api.call("DELETE", f"/snapshots/{taken}").status == 204
