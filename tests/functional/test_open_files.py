"""Low limits of open files: they are the programs', and execd works whatever they are."""

import pytest
from lib.api import Command

pytestmark = pytest.mark.usefixtures("no_leaks")


def session_of(api, sandbox):
    reply = api.execd(sandbox, "POST", "/session", json={})
    assert reply.status == 200, reply
    return reply.json["session_id"]


def in_session(api, sandbox, session, command):
    return Command(api.execd(sandbox, "POST", f"/session/{session}/run", json={"command": command}))


def cell(api, sandbox, language, code):
    return Command(api.execd(sandbox, "POST", "/code", json={"code": code, "context": {"language": language}}))


@pytest.mark.parametrize("most", [64, 100, 255, 256, 300, 512])
class TestLow:
    def test_a_session(self, api, make_sandbox, most):
        name = make_sandbox(resourceLimits={"nofile": str(most)})["id"]
        assert api.run(name, "ulimit -n; ulimit -Hn").stdout == f"{most}\n{most}"
        session = session_of(api, name)
        assert in_session(api, name, session, "x=kept; f() { echo $x; }; ulimit -n").stdout == str(most)
        # The descriptors of the session's own are not to be seen, nor in the way.
        assert in_session(api, name, session, "exec 9>/tmp/nine; echo nine >&9; for d in /proc/self/fd/*; do echo $(readlink $d); done | sort -u").exit_code == 0
        ended = in_session(api, name, session, "exit 7")
        assert ended.exit_code == 7, "a run that ends the shell"
        assert in_session(api, name, session, "f; cat /tmp/nine").stdout == "kept\nnine", "and the state from before it"

    def test_code(self, api, make_sandbox, most):
        name = make_sandbox(resourceLimits={"nofile": str(most)})["id"]
        first = cell(api, name, "python", "import resource\nresource.getrlimit(resource.RLIMIT_NOFILE)")
        assert [event["results"]["text"] for event in first.events if event["type"] == "result"] == [f"({most}, {most})"]
        assert cell(api, name, "bash", "y=3; ulimit -n").stdout == str(most)
        assert cell(api, name, "bash", "echo $y").stdout == "3"


def test_a_low_limit_is_not_execds(api, make_sandbox):
    name = make_sandbox(resourceLimits={"nofile": "64"})["id"]
    sessions = [session_of(api, name) for _ in range(24)]  # five descriptors each
    assert [in_session(api, name, session, "echo $((6 * 7))").stdout for session in sessions] == ["42"] * 24
    assert api.run(name, "ulimit -n 65").exit_code != 0, "it cannot be raised from inside"
    program = "import os\ntry:\n    while True: os.open('/dev/null', 0)\nexcept OSError as e: print(e.errno)"
    assert api.run(name, ["python3", "-c", program]).stdout == "24"
