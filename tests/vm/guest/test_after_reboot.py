"""The first minute after an orderly boot: what lived has ended with the host, and that is said."""

from job import order
from kept import assert_new_ones_work, assert_nothing_left, kept_service
from lib.waiting import wait_for


def test_what_was_alive_has_ended_with_the_host(bin_dir):
    known = order()["facts"][0]
    service, api = kept_service(bin_dir, "kept")
    try:
        for name in known["live"]:
            status = api.status(name)
            assert (status["state"], status["reason"]) == ("Failed", "HOST_RESTARTED"), status
            events = api.call("GET", f"/sandboxes/{name}/diagnostics/events").body.decode()
            assert "HOST_RESTARTED" in events
            assert api.call("POST", f"/sandboxes/{name}/resume").status == 409
        wait_for(lambda: api.call("GET", f"/sandboxes/{known['expiring']}").status == 404, 10, "the overdue one goes")
        assert api.call("GET", f"/sandboxes/{known['deleted']}").status == 404
        for item in api.list_all():
            assert api.delete(item["id"]).status == 204
        assert api.list_all() == []
        assert_nothing_left(service)
        assert_new_ones_work(api)
        assert_nothing_left(service)
    finally:
        service.stop()
