"""After a power cut: nothing that was answered a second before is forgotten, and nothing half-made is in the way."""

from job import order
from kept import assert_new_ones_work, assert_nothing_left, kept_service

SETTLED = 1.0


def test_nothing_settled_is_lost(bin_dir):
    facts = order()["facts"]
    cut = max(fact["at"] for fact in facts)
    settled = {kind: {fact[kind] for fact in facts if kind in fact and fact["at"] < cut - SETTLED} for kind in ("created", "deleted")}
    touched = {fact["deleting"] for fact in facts if "deleting" in fact}
    all_made = {fact["created"] for fact in facts if "created" in fact}
    service, api = kept_service(bin_dir, order()["service"])
    try:
        listed = {item["id"]: item["status"] for item in api.list_all()}
        lost = settled["created"] - touched - listed.keys()
        assert not lost, f"{len(lost)} of {len(settled['created'] - touched)} that were answered more than {SETTLED} s before the cut"
        back = settled["deleted"] & listed.keys()
        assert not back, f"{len(back)} of {len(settled['deleted'])} that were deleted more than {SETTLED} s before the cut"
        for name, status in listed.items():
            assert (status["state"], status["reason"]) == ("Failed", "HOST_RESTARTED"), (name, status, name in all_made)
        for name in listed:
            assert api.delete(name).status == 204
        assert_nothing_left(service)
        assert_new_ones_work(api)
        assert_nothing_left(service)
    finally:
        service.stop()
