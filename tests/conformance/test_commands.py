"""Commands through the published client: text, exit codes, options."""

import time
from datetime import timedelta

import pytest
from opensandbox.models.execd import RunCommandOpts

pytestmark = pytest.mark.usefixtures("no_leaks")


def texts(messages):
    return [message.text for message in messages]


def text_of(ran):
    """All of stdout as the client itself puts it together; clients before 1.0 join lines the same way for line events."""
    return ran.text if hasattr(ran, "text") else "\n".join(message.text.rstrip("\n") for message in ran.logs.stdout)


def test_stdout(shared):
    ran = shared.run(shared.sandbox, "echo hi")
    assert texts(ran.logs.stdout) == ["hi"]
    assert ran.logs.stderr == []
    assert ran.error is None
    assert ran.exit_code == 0
    assert ran.id


def test_stderr_and_exit_code(shared):
    ran = shared.run(shared.sandbox, "echo out; echo err >&2; exit 3")
    assert (texts(ran.logs.stdout), texts(ran.logs.stderr)) == (["out"], ["err"])
    assert ran.exit_code == 3
    assert ran.error.name == "CommandExecError"


@pytest.mark.parametrize("command, code", [("true", 0), ("false", 1), ("exit 255", 255), ("no-such-program", 127), ("kill -9 $$", -1)])
def test_exit_codes(shared, command, code):
    assert shared.run(shared.sandbox, command).exit_code == code


@pytest.mark.parametrize(
    "output",
    ["one\ntwo\nthree", "a\n\nb", "a\n\nb\n\n\nc", "\n\nfirst", "  indented\n\ttab", "ünï ☃ 🦊", "quotes ' \" \\ $HOME `x`", "line\u2028separator\u0085next"],
)
def test_text_is_what_the_program_wrote(shared, output):
    script = "".join(f"\\{byte:03o}" for byte in output.encode())
    ran = shared.run(shared.sandbox, f"printf '{script}\\n'")
    assert text_of(ran) == output


def test_many_lines(shared):
    assert text_of(shared.run(shared.sandbox, "seq 1 5000")) == "\n".join(str(n) for n in range(1, 5001))


def test_environment_and_directory(shared):
    opts = RunCommandOpts(envs={"A": "x y", "B": "$A"}, working_directory="/usr/lib")
    assert text_of(shared.run(shared.sandbox, 'echo "$A|$B|$COLOUR|$(pwd)"', opts=opts)) == "x y|$A|blue|/usr/lib"


def test_identity(shared):
    assert text_of(shared.run(shared.sandbox, "id -u; id -g", opts=RunCommandOpts(uid=65534, gid=65534))) == "65534\n65534"


def test_timeout(shared):
    started = time.monotonic()
    ran = shared.run(shared.sandbox, "sleep 30", opts=RunCommandOpts(timeout=timedelta(milliseconds=300)))
    assert time.monotonic() - started < 5
    assert ran.exit_code == -1


def test_argument_list(shared):
    if shared.version < (1, 0):
        pytest.skip("clients before 1.0 send shell text only")
    assert text_of(shared.run(shared.sandbox, ["printf", "%s|", "a b", "$HOME", "", "*"])) == "a b|$HOME||*|"


def test_background_status_logs_and_interrupt(shared):
    ran = shared.run(shared.sandbox, "echo started; sleep 4721", opts=RunCommandOpts(background=True))
    commands = shared.sandbox.commands
    assert shared.go(commands.get_command_status(ran.id)).running is True

    deadline = time.monotonic() + 5
    logs = shared.go(commands.get_background_command_logs(ran.id))
    while logs.content == "" and time.monotonic() < deadline:
        logs = shared.go(commands.get_background_command_logs(ran.id))
    assert logs.content == "started\n"
    assert logs.cursor == 8
    shared.go(commands.interrupt(ran.id))
    while (status := shared.go(commands.get_command_status(ran.id))).running and time.monotonic() < deadline + 10:
        pass
    assert status.running is False


def test_set_env(sdk):
    if sdk.version < (1, 0):
        pytest.skip("clients before 1.0 have no set_env")
    sandbox = sdk.create()
    for value in ("plain", "two words", "it's", 'quote " here', "literal $HOME", "line one\nline two", ""):
        sdk.go(sandbox.commands.set_env("GIVEN", value))
        ran = sdk.run(sandbox, ["printenv", "GIVEN"])
        assert (text_of(ran), ran.exit_code) == (value, 0)


def test_session(shared, needs_route):
    needs_route(shared.sandbox, "POST", "/session")
    commands = shared.sandbox.commands
    session = shared.go(commands.create_session(working_directory="/tmp"))
    shared.go(commands.run_in_session(session, "export KEPT=yes; cd /usr"))
    assert text_of(shared.go(commands.run_in_session(session, "echo $KEPT $(pwd)"))) == "yes /usr"
    assert shared.go(commands.run_in_session(session, "exit 7")).exit_code == 7
    shared.go(commands.delete_session(session))


def test_metrics(shared, needs_route):
    needs_route(shared.sandbox, "GET", "/metrics")
    metrics = shared.go(shared.sandbox.get_metrics())
    assert metrics.cpu_count > 0
    assert 0 <= metrics.cpu_used_percentage <= 100
    assert 0 <= metrics.memory_used_in_mib <= metrics.memory_total_in_mib
