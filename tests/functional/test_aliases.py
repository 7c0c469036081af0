"""Names that older documents show: stop, contexts of a sandbox, executing in a context."""

import pytest
from lib.api import assert_envelope

UNKNOWN = "01a1e226-b08d-7fd9-9df5-c7fb7d27b2cb"


def test_stop_is_delete(api):
    sandbox_id = api.create()["id"]
    assert api.call("POST", f"/sandboxes/{sandbox_id}/stop").status == 204
    assert_envelope(api.call("GET", f"/sandboxes/{sandbox_id}"), 404, "SANDBOX::NOT_FOUND")
    assert_envelope(api.call("POST", f"/sandboxes/{sandbox_id}/stop"), 404, "SANDBOX::NOT_FOUND")


class TestContexts:
    @pytest.fixture(scope="class")
    def context(self, api, sandbox):
        reply = api.call("POST", f"/sandboxes/{sandbox}/contexts", json={"language": "python"})
        assert reply.status == 200, reply
        assert reply.json["language"] == "python"
        return reply.json["id"]

    def execute(self, api, context, code, **more):
        return api.call("POST", "/contexts/execute", json={"contextId": context, "code": code, **more}, timeout=60)

    def test_a_cell_is_one_answer(self, api, context):
        reply = self.execute(api, context, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
        assert reply.status == 200, reply
        assert (reply.json["stdout"], reply.json["stderr"], reply.json["result"]) == ("out\n", "err\n", "42")
        assert reply.json["executionTime"] >= 0 and "error" not in reply.json

    def test_state_stays_and_the_sandbox_may_be_named(self, api, context, sandbox):
        assert self.execute(api, context, "x = 20 + 1").json["stdout"] == ""
        assert self.execute(api, context, "x * 2", sandboxId=sandbox).json["result"] == "42"

    def test_a_failure_is_told(self, api, context):
        reply = self.execute(api, context, "print('before')\n1 / 0")
        assert reply.status == 200 and reply.json["stdout"] == "before\n"
        assert reply.json["error"]["name"] == "ZeroDivisionError" and reply.json["error"]["traceback"]
        assert 0 <= reply.json["executionTime"] < 60_000

    def test_unknown_ones(self, api, sandbox):
        for context in ("nothing", "../code", ""):
            assert_envelope(self.execute(api, context, "1"), 404, "SANDBOX::CONTEXT_NOT_FOUND")
        assert_envelope(self.execute(api, "nothing", "1", sandboxId=sandbox), 404, "SANDBOX::CONTEXT_NOT_FOUND")
        assert_envelope(self.execute(api, "nothing", "1", sandboxId=UNKNOWN), 404, "SANDBOX::NOT_FOUND")
        assert_envelope(api.call("POST", f"/sandboxes/{UNKNOWN}/contexts", json={"language": "python"}), 404, "SANDBOX::NOT_FOUND")
        assert_envelope(api.call("POST", "/contexts/execute", json={"code": "1"}), 422, "SANDBOX::INVALID_REQUEST")
        wrong = api.call("POST", f"/sandboxes/{sandbox}/contexts", json={})
        assert wrong.status == 400 and "language" in wrong.json["message"]
        lacking = api.call("POST", f"/sandboxes/{sandbox}/contexts", json={"language": "cobol"})
        assert lacking.status == 400 and "cobol" in lacking.json["message"]
