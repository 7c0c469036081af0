"""Entry processes: which cannot start, how they end, and what is told about it."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib.api import assert_envelope
from lib.waiting import wait_for

pytestmark = pytest.mark.usefixtures("no_leaks")

INVALID_ENTRYPOINT = "SANDBOX::INVALID_ENTRYPOINT"


def ended(api, sandbox_id, timeout=15):
    return wait_for(
        lambda: (status := api.status(sandbox_id))["state"] in ("Terminated", "Failed") and status,
        timeout, f"the end of {sandbox_id} is reported",
    )  # fmt: skip


class TestCannotStart:
    @pytest.mark.parametrize("path", ["/nope", "no-such-program", "/etc", "/etc/passwd", "/usr/bin/env/x", "", "./relative", "/" + "x" * 300])
    def test_fails_at_once_with_path_and_cause(self, api, path):
        started = time.monotonic()
        reply = api.post_create(entrypoint=[path, "arg"])
        assert time.monotonic() - started < 5
        if path == "" and reply.status == 422:
            return
        found = assert_envelope(reply, 400, INVALID_ENTRYPOINT)
        if path:
            assert path in found["message"], found
        assert "remedy" in found or "cause" in found or ":" in found["message"], "the cause has to be named"

    def test_causes_differ(self, api):
        texts = [str(api.post_create(entrypoint=[path]).json).lower() for path in ("/nope", "/etc/passwd", "/etc")]
        assert "no such file" in texts[0]
        assert "permission denied" in texts[1] or "not executable" in texts[1]
        assert "directory" in texts[2] or "permission denied" in texts[2]

    def test_nothing_is_listed_afterwards(self, api):
        before = {item["id"] for item in api.list_all()}
        api.post_create(entrypoint=["/nope"])
        assert {item["id"] for item in api.list_all()} == before

    @pytest.mark.parametrize("argv", [["tail", "a\0b"], ["x" * 200_000, "y"]])
    def test_arguments_that_no_process_can_have(self, api, argv):
        reply = api.post_create(entrypoint=argv)
        assert reply.status in (400, 422), reply
        assert_envelope(reply, reply.status)


class TestArguments:
    def test_reach_the_process_unchanged(self, api, make_sandbox):
        odd = ["", " ", "a b", "$HOME", "*", "'", '"', "ünï", "\n", "-", "--", "\\"]
        made = make_sandbox(entrypoint=["sh", "-c", 'printf "%s\\0" "$@" > /tmp/argv; exec tail -f /dev/null', "sh", *odd])
        wait_for(lambda: api.run(made["id"], "test -s /tmp/argv").exit_code == 0, 5, "the entry process wrote its arguments")
        assert api.download(made["id"], "/tmp/argv").decode().split("\0")[:-1] == odd

    def test_one_element_with_a_blank_is_a_command_line(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh -c 'sleep 0.3; exit 7'"])
        assert "7" in ended(api, made["id"])["message"]
        assert made["entrypoint"] == ["sh -c 'sleep 0.3; exit 7'"], "the client sees what it sent"
        reply = api.post_create(entrypoint=["sh -c 'exit 7"])
        assert_envelope(reply, 422)


class TestFailsAtOnce:
    def test_whoever_waits_for_it_is_told(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "echo boom >&2; sleep 0.3; exit 3"])
        ended(api, made["id"])
        ping = assert_envelope(api.execd(made["id"], "GET", "/ping"), 403, "SANDBOX::NOT_RUNNING")
        assert "code 3" in ping["message"] and ping["message"].endswith("its last output:\nboom"), ping
        command = api.execd(made["id"], "POST", "/command", json={"command": "true"})
        assert "code 3" in assert_envelope(command, 409, "SANDBOX::NOT_RUNNING")["message"]
        # Clients delete what they could not use. How it ended can be read for a day.
        assert api.delete(made["id"]).status == 204
        events = api.call("GET", f"/sandboxes/{made['id']}/diagnostics/events").body.decode()
        assert "ENTRYPOINT_FAILED: " in events and "its last output: boom" in events

    def test_also_in_the_moment_before_the_server_knows(self, api, service, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; echo boom; exit 3"])
        api.run(made["id"], "touch /tmp/go", background=True)
        answers = {200}
        while answers == {200}:
            answers = {(reply := api.execd(made["id"], "GET", "/ping")).status}
        assert reply.status == 403 and "boom" in reply.json["message"], reply

    def test_the_create_itself_where_the_end_is_known(self, api, make_sandbox):
        def create(_):
            reply = api.post_create(entrypoint=["sh", "-c", "echo boom; exit 3"])
            if reply.status == 202:
                return api.delete(reply.json["id"]).status == 204
            found = assert_envelope(reply, 400, "SANDBOX::ENTRYPOINT_EXITED")
            return "code 3" in found["message"] and "boom" in found["message"]

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(create, range(64)))


class TestEnds:
    def test_zero(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "exit 0"])
        status = ended(api, made["id"])
        assert (status["state"], status["reason"]) == ("Terminated", "ENTRYPOINT_EXITED")
        assert status["message"]

    def test_code(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "sleep 0.3; exit 3"])
        status = ended(api, made["id"])
        assert (status["state"], status["reason"]) == ("Failed", "ENTRYPOINT_FAILED")
        assert "3" in status["message"]

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
    def test_signal(self, api, make_sandbox, number):
        made = make_sandbox(entrypoint=["sh", "-c", f"sleep 0.3; kill -{int(number)} $$; sleep 60"])
        status = ended(api, made["id"])
        assert (status["state"], status["reason"]) == ("Failed", "KILLED_BY_SIGNAL")
        assert str(int(number)) in status["message"] or number.name in status["message"]

    def test_out_of_memory(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["/usr/bin/python3", "-c", "b = bytearray(512 << 20); import time; time.sleep(60)"], resourceLimits={"memory": "96Mi"})
        status = ended(api, made["id"], timeout=30)
        assert (status["state"], status["reason"]) == ("Failed", "OUT_OF_MEMORY")

    def test_immediately(self, api, make_sandbox):
        # It may end before the create is answered. It has done what it was for: the create is fine all the same.
        made = make_sandbox(entrypoint=["true"])
        assert ended(api, made["id"])["reason"] == "ENTRYPOINT_EXITED"

    def test_transition_time_moves(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done; exit 1"])
        first = api.status(made["id"])
        api.run(made["id"], "touch /tmp/go")
        assert ended(api, made["id"])["lastTransitionAt"] > first["lastTransitionAt"]

    def test_everything_else_ends_with_it(self, service, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done"])
        ran = api.run(made["id"], "nohup setsid sleep 1000 > /dev/null 2>&1 & touch /tmp/go")
        assert ran.exit_code in (0, -1)
        ended(api, made["id"])
        wait_for(lambda: not service.scope.sandbox_pids(made["id"]), 5, "no process of the ended sandbox is left")

    def test_after_the_end(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["true"])
        ended(api, made["id"])
        assert_envelope(api.execd(made["id"], "POST", "/command", json={"command": "true"}), 409)
        assert api.call("GET", f"/sandboxes/{made['id']}/endpoints/8080").status == 200
        assert api.call("PATCH", f"/sandboxes/{made['id']}/metadata", json={"a": "b"}).json["metadata"] == {"a": "b"}
        assert api.delete(made["id"]).status == 204
        assert_envelope(api.call("GET", f"/sandboxes/{made['id']}"), 404, "SANDBOX::NOT_FOUND")

    def test_killed_from_the_host(self, service, api, make_sandbox):
        made = make_sandbox()
        entry = service.scope.sandbox_pids(made["id"])[1]
        os.kill(entry, signal.SIGKILL)
        assert ended(api, made["id"])["reason"] == "KILLED_BY_SIGNAL"

    def test_its_init_terminated_from_the_host(self, service, api, make_sandbox):
        """SIGTERM is an orderly end of the daemon, also while somebody is connected to it."""
        made = make_sandbox()
        init = service.scope.sandbox_pids(made["id"])[0]
        os.kill(init, signal.SIGTERM)
        status = ended(api, made["id"])
        assert status["state"] == "Terminated" and "stopped from outside" in status["message"], status
        assert "abort" not in status["message"].lower() and "signal 6" not in status["message"], status

    def test_its_init_killed_from_the_host(self, service, api, make_sandbox):
        made = make_sandbox()
        os.kill(service.scope.sandbox_pids(made["id"])[0], signal.SIGKILL)
        status = ended(api, made["id"])
        assert status["state"] == "Failed"
        assert status["reason"] in ("LOST", "KILLED_BY_SIGNAL")

    def test_a_sandbox_cannot_kill_its_own_init(self, api, make_sandbox):
        made = make_sandbox()
        api.run(made["id"], "kill -9 1; kill -15 1; kill -2 1; true")
        assert api.ping(made["id"])
        assert api.status(made["id"])["state"] == "Running"

    def test_filter_by_state(self, api, make_sandbox):
        made = make_sandbox(entrypoint=["sh", "-c", "sleep 0.3; false"], metadata={"end": "filter"})
        ended(api, made["id"])
        found = api.call("GET", "/sandboxes?state=failed&metadata=end%3Dfilter").json["items"]
        assert [item["id"] for item in found] == [made["id"]]


class TestDiagnostics:
    def events(self, api, sandbox_id):
        reply = api.call("GET", f"/sandboxes/{sandbox_id}/diagnostics/events?scope=runtime")
        if reply.status in (400, 404, 501) and reply.json["code"] in ("SANDBOX::UNSUPPORTED", "GENERAL::UNKNOWN_ERROR", "SANDBOX::NOT_IMPLEMENTED"):
            pytest.skip(f"the server does not have diagnostics yet: {reply.json['code']}")
        return reply

    def test_a_deletion_stays_readable(self, api):
        made = api.create()
        api.delete(made["id"])
        reply = self.events(api, made["id"])
        assert reply.status == 200, reply
        assert reply.json["delivery"] == "inline"
        assert "DELETED" in reply.json["content"]
