"""The wall clock is set, which only a machine of the test's own may do: what is due by then goes at once, and nothing else."""

import time

from lib.api import Api
from lib.waiting import wait_for


def set_forward(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)


def test_what_is_due_by_a_set_clock_goes_at_once(new_service):
    service = new_service()
    api = Api(service)
    due, later, ageless = api.create(timeout=3600)["id"], api.create(timeout=86400)["id"], api.create(timeout=None)["id"]
    set_forward(7200)
    wait_for(lambda: api.call("GET", f"/sandboxes/{due}").status == 404, 10, "the one that is due goes")
    assert "the wall clock was set" in service.log_path.read_text()
    assert api.ping(later) and api.ping(ageless)
    # Again: the watch on the clock outlives what it has seen.
    set_forward(86400)
    wait_for(lambda: api.call("GET", f"/sandboxes/{later}").status == 404, 10, "the next one goes, too")
    assert api.ping(ageless)
    api.delete(ageless)
