"""Section 6, the native runtime's column: states, reasons, what changes them, and a restart."""

import time
from datetime import datetime

import pytest
from lib import snapshots as of
from lib.api import Api, assert_envelope
from lib.waiting import wait_for


def ended(api, name):
    wait_for(lambda: api.status(name)["state"] in ("Terminated", "Failed"), 15, "it ends")
    return api.status(name)


class TestStates:
    def test_s6_1_running_paused_running(self, api, make_sandbox):
        name = make_sandbox()["id"]
        seen = [api.status(name)]
        for verb in ("pause", "resume"):
            assert api.call("POST", f"/sandboxes/{name}/{verb}").status == 202
            seen.append(api.status(name))
        assert [(status["state"], status["reason"]) for status in seen] == [("Running", "RUNNING"), ("Paused", "PAUSED"), ("Running", "RUNNING")]
        moments = [datetime.fromisoformat(status["lastTransitionAt"].replace("Z", "+00:00")) for status in seen]
        assert moments == sorted(moments) and len(set(moments)) == 3, "it moves with every change"
        assert all(status["message"] for status in seen)

    @pytest.mark.parametrize("command, limits, state, reason", [
        ("sleep 0.3; exit 0", {}, "Terminated", "ENTRYPOINT_EXITED"),
        ("sleep 0.3; exit 3", {}, "Failed", "ENTRYPOINT_FAILED"),
        ("sleep 0.3; kill -TERM $$", {}, "Failed", "KILLED_BY_SIGNAL"),
        ("sleep 0.3; exec /usr/bin/python3 -c 'b = bytearray(1 << 30)'", {"memory": "64Mi"}, "Failed", "OUT_OF_MEMORY"),
    ])  # fmt: skip
    def test_s6_2_ends(self, api, make_sandbox, command, limits, state, reason):
        name = make_sandbox(entrypoint=["sh", "-c", command], resourceLimits=limits)["id"]
        status = ended(api, name)
        assert (status["state"], status["reason"]) == (state, reason)


class TestTransitions:
    def test_s6_3_an_ended_one_stays_and_can_be_deleted(self, api):
        name = api.create(entrypoint=["sh", "-c", "sleep 0.2; exit 3"])["id"]
        assert "3" in ended(api, name)["message"]
        assert_envelope(api.call("POST", f"/sandboxes/{name}/pause"), 409, "SANDBOX::NOT_RUNNING")
        assert name in [item["id"] for item in api.list_all()]
        assert api.delete(name).status == 204

    def test_s6_3_the_expiry_runs_while_paused(self, api):
        name = api.create(timeout=60)["id"]
        assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
        due = api.renew(name, 1)
        wait_for(lambda: api.call("GET", f"/sandboxes/{name}").status == 404, 10, "it expires")
        assert time.monotonic() >= due - 0.1

    def test_s6_3_an_expired_one_is_gone_and_said_why(self, api):
        name = api.create(timeout=60)["id"]
        api.renew(name, 0.5)
        wait_for(lambda: api.call("GET", f"/sandboxes/{name}").status == 404, 10, "it expires")
        assert b"Expired" in api.call("GET", f"/sandboxes/{name}/diagnostics/events").body


class TestRestart:
    def test_s6_4_renewals_metadata_and_states_stay_what_is_due_goes(self, new_service):
        service = new_service()
        api = Api(service)
        kept, paused, forever, due = (api.create(timeout=timeout)["id"] for timeout in (600, 600, ..., 600))
        reply = api.call("POST", f"/sandboxes/{kept}/renew-expiration", json={"expiresAt": "2099-01-01T00:00:00Z"})
        assert reply.status == 200 and api.call("PATCH", f"/sandboxes/{kept}/metadata", json={"k": "v"}).status == 200
        assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
        api.renew(due, 1)
        service.stop()
        time.sleep(1.1)  # it falls due while nobody is there
        service.start()
        assert api.get(kept)["expiresAt"] == "2099-01-01T00:00:00Z" and api.get(kept)["metadata"] == {"k": "v"}
        assert api.status(paused)["state"] == "Paused" and "expiresAt" not in api.get(forever)
        wait_for(lambda: api.call("GET", f"/sandboxes/{due}").status == 404, 10, "what fell due meanwhile is removed")
        assert api.ping(kept)
        for name in (kept, paused, forever):
            assert api.delete(name).status == 204


def test_s6_8_states_of_a_snapshot(api, make_sandbox):
    reply = api.call("POST", f"/sandboxes/{make_sandbox()['id']}/snapshots")
    assert reply.json["status"]["state"] == "Creating"
    assert of.settled(api, reply.json["id"])["status"]["state"] == "Ready"
    assert api.call("DELETE", f"/snapshots/{reply.json['id']}").status == 204
    assert_envelope(api.call("GET", f"/snapshots/{reply.json['id']}"), 404, "SNAPSHOT::NOT_FOUND")
