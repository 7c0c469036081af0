"""Hooks of a create: one command before the entry process, others on a schedule."""

import time

import pytest
from lib.api import assert_envelope
from lib.waiting import wait_for


def pre(*command, **more):
    return {"preStart": {"command": list(command), **more}}


def every(seconds, *command, name="tick", **more):
    return {"periodic": [{"name": name, "schedule": f"@every {seconds}s", "command": list(command), **more}]}


class TestPreStart:
    def test_comes_before_the_entry_process(self, api, make_sandbox):
        made = make_sandbox(lifecycle=pre("sh", "-c", "sleep 0.3; echo $A > /tmp/hook; env > /tmp/env"), env={"A": "hello"},
                            entrypoint=["sh", "-c", "cat /tmp/hook > /tmp/seen; exec tail -f /dev/null"])
        assert made["status"]["state"] == "Running"
        # Commands wait for it.
        assert api.run(made["id"], "cat /tmp/hook").stdout == "hello"
        wait_for(lambda: api.run(made["id"], "cat /tmp/seen").stdout == "hello", 10, "what the entry process found")
        assert "OPENSANDBOX_LIFECYCLE" not in api.run(made["id"], "env; cat /tmp/env; cat /proc/*/environ | tr '\\0' '\\n'").stdout

    def test_one_that_fails_ends_the_sandbox_and_says_so(self, api):
        made = api.create(lifecycle=pre("sh", "-c", "sleep 0.5; echo no luck; exit 3"), entrypoint=["touch", "/tmp/never"])
        reply = api.call("GET", f"/sandboxes/{made['id']}/wait?state=Failed")
        assert reply.json["status"]["reason"] == "ENTRYPOINT_FAILED" and "3" in reply.json["status"]["message"]
        logs = api.call("GET", f"/sandboxes/{made['id']}/diagnostics/logs?scope=container").json["content"]
        assert "no luck" in logs and "the preStart hook failed: exit status 3" in logs
        assert api.delete(made["id"]).status == 204

    def test_one_that_fails_at_once_may_fail_the_create(self, api):
        reply = api.post_create(lifecycle=pre("sh", "-c", "exit 3"))
        if reply.status == 202:  # it was slower than the answer
            state = api.call("GET", f"/sandboxes/{reply.json['id']}/wait?state=Failed").json["status"]["state"]
            assert state == "Failed"
            assert api.delete(reply.json["id"]).status == 204
        else:
            assert "the preStart hook failed" in assert_envelope(reply, 400, "SANDBOX::ENTRYPOINT_EXITED")["message"]

    def test_one_that_cannot_be_executed_fails_the_create(self, api):
        assert_envelope(api.post_create(lifecycle=pre("/no/such/program")), 400, "SANDBOX::INVALID_ENTRYPOINT")

    def test_its_time_is_limited(self, api):
        made = api.create(lifecycle=pre("sleep", "60", timeoutSeconds=1))
        began = time.monotonic()
        assert api.call("GET", f"/sandboxes/{made['id']}/wait?state=Failed").json["status"]["state"] == "Failed"
        assert time.monotonic() - began < 20
        logs = api.call("GET", f"/sandboxes/{made['id']}/diagnostics/logs?scope=container").json["content"]
        assert "the preStart hook failed: time limit of 1 s" in logs
        assert api.delete(made["id"]).status == 204

    def test_an_entry_process_that_cannot_be_executed_after_it_is_told(self, api):
        made = api.create(lifecycle=pre("sleep", "0.3"), entrypoint=["/no/such/program"])
        status = api.call("GET", f"/sandboxes/{made['id']}/wait?state=Failed").json["status"]
        assert status["state"] == "Failed" and "127" in status["message"]
        assert api.delete(made["id"]).status == 204


class TestPeriodic:
    def test_runs_again_and_again_and_its_failures_are_in_the_log(self, api, make_sandbox):
        made = make_sandbox(lifecycle=every(1, "sh", "-c", "echo tick | tee -a /tmp/ticks; exit 2"))
        wait_for(lambda: len(api.run(made["id"], "cat /tmp/ticks").stdout.split()) >= 2, 20, "two runs")
        logs = api.call("GET", f"/sandboxes/{made['id']}/diagnostics/logs?scope=container").json["content"]
        assert "tick" in logs and "hook tick failed: exit status 2" in logs

    def test_one_run_at_a_time_with_a_limit(self, api, make_sandbox):
        made = make_sandbox(lifecycle=every(1, "sh", "-c", "echo x >> /tmp/runs; sleep 60", timeoutSeconds=1))
        wait_for(lambda: len(api.run(made["id"], "cat /tmp/runs").stdout.split()) >= 2, 30, "a second run")
        assert int(api.run(made["id"], "pgrep -c -x sleep || true").stdout or 0) <= 1
        logs = api.call("GET", f"/sandboxes/{made['id']}/diagnostics/logs?scope=container").json["content"]
        assert "hook tick failed: time limit of 1 s" in logs

    def test_ends_with_the_entry_process(self, api):
        made = api.create(lifecycle=every(1, "sh", "-c", "echo tick"), entrypoint=["sleep", "2"])
        assert api.call("GET", f"/sandboxes/{made['id']}/wait?state=Terminated").json["status"]["state"] == "Terminated"
        assert api.delete(made["id"]).status == 204

    @pytest.mark.parametrize("schedule", ["often", "* * * *", "61 * * * *", "@every 5", "@every 10ms"])
    def test_a_schedule_that_is_none_is_refused(self, api, schedule):
        hook = {"name": "n", "schedule": schedule, "command": ["true"]}
        body = assert_envelope(api.post_create(lifecycle={"periodic": [hook]}), 400, "SANDBOX::INVALID_PARAMETER")
        assert "lifecycle.periodic[0].schedule" in body["message"] and "@every 30s" in body["message"]
