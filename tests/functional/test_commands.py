"""POST /command to the byte: framing, order, text rules, exit codes, what happens to what is left running."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from lib import rawhttp
from lib.api import assert_envelope
from lib.waiting import wait_for

pytestmark = pytest.mark.usefixtures("no_leaks")


class TestFraming:
    def test_bytes(self, api, sandbox):
        reply = api.run(sandbox, "echo hi").reply
        assert reply.header("content-type") == "text/event-stream"
        assert reply.header("cache-control") == "no-cache"
        assert reply.header("x-accel-buffering") == "no"
        assert reply.header("transfer-encoding") == "chunked"
        assert reply.header("content-length") is None
        assert re.fullmatch(rb'(\{"type":"[a-z_]+"[^\n]*\}\n\n)+', reply.body), reply.body
        assert b"data:" not in reply.body

    def test_chunks_hold_whole_events(self, api, sandbox):
        for _, chunk in api.run(sandbox, "echo a; echo b").reply.chunks:
            assert chunk.startswith(b"{") and chunk.endswith(b"}\n\n"), chunk

    def test_events(self, api, sandbox):
        before = int(time.time() * 1000)
        events = api.run(sandbox, "echo hi").events
        kinds = [event["type"] for event in events]
        assert kinds[0] == "init" and kinds.count("init") == 1
        assert kinds[-1] == "execution_complete"
        assert set(kinds) <= {"init", "ping", "stdout", "stderr", "execution_complete"}
        assert re.fullmatch(r"[0-9a-f]{32}", events[0]["text"])
        for event in events:
            assert isinstance(event["timestamp"], int)
            assert before - 1000 <= event["timestamp"] <= int(time.time() * 1000) + 1000
            assert isinstance(event.get("execution_time", 0), int)
            assert list(event) == [name for name in ("type", "text", "execution_count", "execution_time", "timestamp", "results", "error") if name in event]

    def test_stream_ends_at_once(self, api, sandbox):
        started = time.monotonic()
        api.run(sandbox, "true")
        assert time.monotonic() - started < 0.9, "nothing is to be waited for after the terminal event"

    def test_output_is_not_delayed(self, api, sandbox):
        """The first line arrives while the command still waits for us."""
        body = json.dumps({"command": "rm -f /tmp/gate; echo first; until [ -e /tmp/gate ]; do sleep 0.02; done; echo second"}).encode()
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", {"Content-Type": "application/json"}, body)
            head = connection.read_head()
            assert head.status == 200
            seen = b""
            while b'"first"' not in seen:
                seen += connection.read_chunk()
            assert b'"second"' not in seen
            assert api.run(sandbox, "touch /tmp/gate").exit_code == 0
            while chunk := connection.read_chunk():
                seen += chunk
        assert b'"second"' in seen

    def test_pings_while_silent(self, api, sandbox):
        assert len(api.run(sandbox, "sleep 3.3").texts("ping")) >= 1
        assert set(api.run(sandbox, "sleep 0.1").texts("ping")) <= {"pong"}


# Program output -> the texts of the stdout events. A blank line right after a non-blank one is "\n\n", every other "\n".
TEXTS = [
    ("echo hi", ["hi"]),
    ("true", []),
    ("printf 'a\\n\\nb'", ["a", "\n\n", "b"]),
    ("printf 'a\\n\\nb\\n\\n\\nc\\n'", ["a", "\n\n", "b", "\n\n", "\n", "c"]),
    ("printf '\\n\\na\\n'", ["\n", "\n", "a"]),
    ("printf 'no end'", ["no end"]),
    ("printf 'p 1%%\\rp 2%%\\rdone\\n'", ["p 1%", "p 2%", "done"]),
    ("printf 'x\\r\\ny'", ["x", "y"]),
    ("printf 'a\\r\\rb'", ["a", "\n\n", "b"]),
    ("printf 'x\\r'; sleep 0.2; printf '\\ny\\n'", ["x", "y"]),
    ("printf 'ünï ☃ 🦊\\n'", ["ünï ☃ 🦊"]),
    ("printf '\\xe2\\x98'; sleep 0.2; printf '\\x83\\n'", ["☃"]),
    ("printf 'a\\xffb\\n'", ["a\ufffdb"]),
    ("printf '\\xc2\\x85|\\xe2\\x80\\xa8|\\xe2\\x80\\xa9\\n'", ["\u0085|\u2028|\u2029"]),
    ("printf 'tab\\there \\\\ \" <&>\\n'", ["tab\there \\ \" <&>"]),
    ("printf '\\x01\\x0b\\x0c\\x1c\\x1d\\x1e\\x7f\\n'", ["\x01\x0b\x0c\x1c\x1d\x1e\x7f"]),
    ("printf 'nul\\0here\\n'", ["nul\0here"]),
]


class TestText:
    @pytest.mark.parametrize("command, texts", TEXTS, ids=[row[0] for row in TEXTS])
    def test_stdout(self, api, sandbox, command, texts):
        ran = api.run(sandbox, command)
        assert ran.texts("stdout") == texts
        assert ran.exit_code == 0
        for raw in ("\u0085", "\u2028", "\u2029"):
            assert raw.encode() not in ran.reply.body, "line separators of other alphabets have to be escaped"

    def test_stderr_is_separate(self, api, sandbox):
        ran = api.run(sandbox, "echo out; echo err >&2")
        assert (ran.texts("stdout"), ran.texts("stderr")) == (["out"], ["err"])

    def test_all_output_comes_before_the_end(self, api, sandbox):
        ran = api.run(sandbox, "seq 1 20000")
        assert ran.texts("stdout") == [str(n) for n in range(1, 20001)]
        assert ran.events[-1]["type"] == "execution_complete"

    def test_a_very_long_line(self, api, sandbox):
        ran = api.run(sandbox, "head -c 10485760 /dev/zero | tr '\\0' x; echo", client_timeout=120)
        assert "".join(ran.texts("stdout")) == "x" * 10485760
        assert max(len(frame) for frame in ran.reply.body.split(b"\n\n")) < 4 * 1024 * 1024, "a client reads lines of at most 4 MiB"

    def test_much_output(self, api, sandbox):
        ran = api.run(sandbox, "yes 0123456789abcdef0123456789abcdef | head -n 100000", client_timeout=120)
        assert len(ran.texts("stdout")) == 100000


class TestExit:
    @pytest.mark.parametrize("command, code", [("exit 3", "3"), ("exit 255", "255"), ("false", "1"), ("sh -c 'kill -9 $$'; exit $?", "137")])
    def test_code(self, api, sandbox, command, code):
        ran = api.run(sandbox, command)
        assert [event["type"] for event in ran.events][-1] == "error"
        assert "execution_complete" not in [event["type"] for event in ran.events]
        assert ran.error["ename"] == "CommandExecError"
        assert ran.error["evalue"] == code
        assert isinstance(ran.error["traceback"], list)

    @pytest.mark.parametrize("number, word", [(9, "killed"), (15, "terminated"), (2, "interrupt")])
    def test_signal(self, api, sandbox, number, word):
        ran = api.run(sandbox, f"kill -{number} $$; sleep 5")
        assert ran.error["evalue"] == "-1"
        assert word in ran.error["traceback"][0]

    def test_unknown_program(self, api, sandbox):
        ran = api.run(sandbox, "no-such-program-here")
        assert ran.error["evalue"] == "127"
        assert "no-such-program-here" in ran.stderr

    def test_timeout_kills_the_whole_group(self, api, sandbox):
        started = time.monotonic()
        ran = api.run(sandbox, "sleep 4711 & sleep 4711", timeout=100)
        assert time.monotonic() - started < 1.5
        assert ran.error["evalue"] == "-1"
        assert api.run(sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep [4]711'").stdout == "0"


class TestRequest:
    def test_argv_runs_without_a_shell(self, api, sandbox):
        assert api.run(sandbox, ["printf", "%s|", "$HOME", "a b", "", "*"]).stdout == "$HOME|a b||*|"

    def test_environment(self, api, sandbox):
        ran = api.run(sandbox, 'echo "$A/$HOME"', envs={"A": "x $y 'z'", "HOME": "/elsewhere"})
        assert ran.stdout == "x $y 'z'//elsewhere"

    def test_directory(self, api, sandbox):
        assert api.run(sandbox, "pwd", cwd="/usr/bin").stdout == "/usr/bin"

    def test_stdin_is_empty(self, api, sandbox):
        assert api.run(sandbox, "cat; echo done").stdout == "done"

    def test_explicit_nulls(self, api, sandbox):
        assert api.run(sandbox, "echo x", cwd=None, background=None, timeout=None, uid=None, gid=None, envs=None).stdout == "x"

    def test_identity(self, api, sandbox):
        assert api.run(sandbox, "id -u; id -g", uid=65534, gid=65534).stdout == "65534\n65534"
        assert api.run(sandbox, "id -u").stdout == "0"

    @pytest.mark.parametrize(
        "body",
        [
            {}, {"command": ""}, {"command": None}, {"command": 7}, {"argv": []}, {"argv": [""]}, {"argv": "ls"}, {"argv": [1]},
            {"command": "true", "cwd": "/nope"}, {"command": "true", "cwd": "/etc/passwd"}, {"command": "true", "timeout": -1},
            {"command": "true", "timeout": "x"}, {"command": "true", "gid": 5}, {"command": "true", "envs": []}, {"command": "true", "uid": -1},
        ],
    )  # fmt: skip
    def test_wrong(self, api, sandbox, body):
        assert_envelope(api.execd(sandbox, "POST", "/command", json=body), 400, "INVALID_REQUEST_BODY")

    def test_not_json(self, api, sandbox):
        assert_envelope(api.execd(sandbox, "POST", "/command", body=b"{nonsense"), 400, "INVALID_REQUEST_BODY")

    def test_unknown_path(self, api, sandbox):
        assert_envelope(api.execd(sandbox, "GET", "/nothing"), 404)


class TestSurvivors:
    def test_background_child_survives_and_keeps_a_good_stdout(self, api, sandbox):
        started = time.monotonic()
        ran = api.run(sandbox, "rm -f /tmp/alive; (while echo still here; do date +%s%N > /tmp/alive; sleep 0.05; done; echo lost > /tmp/lost) & echo $!")
        assert time.monotonic() - started < 5
        first = api.run(sandbox, "until [ -s /tmp/alive ]; do sleep 0.02; done; cat /tmp/alive").stdout
        wait_for(lambda: api.run(sandbox, "cat /tmp/alive").stdout not in ("", first), 5, "the survivor goes on")
        assert api.run(sandbox, "test -e /tmp/lost").exit_code == 1, "the survivor lost its stdout"
        # Which of the two wrote first is not said.
        pid = next(word for word in " ".join(ran.texts("stdout")).split() if word.isdigit())
        assert api.run(sandbox, f"kill {pid}").exit_code == 0

    def test_a_client_that_hangs_up_does_not_stop_the_command(self, api, sandbox):
        body = json.dumps({"command": "rm -f /tmp/finished; echo on; until [ -e /tmp/go-on ]; do sleep 0.02; done; echo $(id -u) > /tmp/finished"}).encode()
        api.run(sandbox, "rm -f /tmp/go-on")
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", {"Content-Type": "application/json"}, body)
            assert connection.read_head().status == 200
            init = json.loads(connection.read_chunk().split(b"\n\n")[0])
        api.run(sandbox, "touch /tmp/go-on")
        wait_for(lambda: api.run(sandbox, "test -s /tmp/finished").exit_code == 0, 5, "the abandoned command finishes")
        reply = api.execd(sandbox, "GET", f"/command/status/{init['text']}")
        assert reply.status == 200, reply
        finished = wait_for(lambda: (s := api.execd(sandbox, "GET", f"/command/status/{init['text']}").json)["running"] is False and s, 5, "its status says so")
        assert finished["exit_code"] == 0

    def test_a_slow_reader_does_not_stall_the_command(self, api, sandbox):
        body = json.dumps({"command": "yes 0123456789abcdef | head -c 30000000; echo done > /tmp/slow-done"}).encode()
        api.run(sandbox, "rm -f /tmp/slow-done")
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", {"Content-Type": "application/json"}, body)
            assert connection.read_head().status == 200
            # Nothing is read from here on.
            wait_for(lambda: api.run(sandbox, "test -e /tmp/slow-done").exit_code == 0, 20, "the command ends although nobody reads")


class TestBackground:
    def start(self, api, sandbox, command):
        ran = api.run(sandbox, command, background=True)
        assert [event["type"] for event in ran.events if event["type"] != "ping"] == ["init", "execution_complete"]
        return ran.events[0]["text"]

    def status(self, api, sandbox, name):
        reply = api.execd(sandbox, "GET", f"/command/status/{name}")
        assert reply.status == 200, reply
        return reply.json

    def test_status_and_logs(self, api, sandbox):
        name = self.start(api, sandbox, "printf 'one\\n'; echo two >&2; exit 4")
        assert self.status(api, sandbox, name)["id"] == name
        done = wait_for(lambda: not (s := self.status(api, sandbox, name))["running"] and s, 5, "the command ends")
        assert done["exit_code"] == 4
        assert done["content"].startswith("printf")
        assert done["finished_at"] >= done["started_at"]
        logs = api.execd(sandbox, "GET", f"/command/{name}/logs")
        assert logs.status == 200
        assert logs.body == b"one\ntwo\n"
        assert logs.header("content-type") == "text/plain; charset=utf-8"
        assert logs.header("execd-commands-tail-cursor") == "8"
        assert api.execd(sandbox, "GET", f"/command/{name}/logs?cursor=4").body == b"two\n"
        beyond = api.execd(sandbox, "GET", f"/command/{name}/logs?cursor=99")
        assert (beyond.body, beyond.header("execd-commands-tail-cursor")) == (b"", "99")

    def test_interrupt(self, api, sandbox):
        name = self.start(api, sandbox, "sleep 4712")
        assert self.status(api, sandbox, name)["running"] is True
        reply = api.execd(sandbox, "DELETE", f"/command?id={name}")
        assert reply.status == 200, reply
        assert reply.header("content-length") == "0"
        wait_for(lambda: not self.status(api, sandbox, name)["running"], 10, "the interrupted command ends")

    def test_unknown(self, api, sandbox):
        assert_envelope(api.execd(sandbox, "GET", "/command/status/none"), 404)
        assert_envelope(api.execd(sandbox, "GET", "/command/none/logs"), 400)
        assert_envelope(api.execd(sandbox, "DELETE", "/command"), 400, "MISSING_QUERY")


def test_ping_is_an_empty_success(api, sandbox):
    reply = api.execd(sandbox, "GET", "/ping")
    assert (reply.status, reply.body, reply.header("content-length")) == (200, b"", "0")


def test_many_commands_at_once(api, sandbox):
    with ThreadPoolExecutor(20) as pool:
        outputs = list(pool.map(lambda n: api.run(sandbox, f"echo {n}").stdout, range(60)))
    assert outputs == [str(n) for n in range(60)]
