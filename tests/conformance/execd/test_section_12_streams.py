"""The compatibility checklist (section 12 of the contract), items 1 to 9; `test_item_NN_...` holds item NN.

Items 10 and 11 (files, terminals) have modules of their own; item 12 is about code contexts and belongs to the interpreter's
tests. Where `clients-1.1.md` amends the contract, the amendment is what is tested: a blank line directly after one that is not
blank is "\\n\\n" (9.2 there).
"""

import json
import re
import time

import pytest
from daemon import TOKEN, Stream, Terminal, parse
from lib import rawhttp
from lib.waiting import wait_for


# Item 1: the bytes of a stream


def test_item_01_raw_bytes(execd):
    ran = execd.run("echo hello; echo oops >&2")
    assert b"data:" not in ran.raw and b"event:" not in ran.raw
    assert ran.raw.count(b"\n\n") == ran.raw.count(b"\n") / 2 == len(ran.events)
    assert re.fullmatch(rb'\{"type":"init","text":"[0-9a-f]{32}","timestamp":\d{13}\}', ran.raw.split(b"\n\n")[0])
    assert ran.kinds[:2] == ["init", "ping"] and ran.events[1]["text"] == "pong"
    assert sorted(ran.kinds[2:-1]) == ["stderr", "stdout"] and ran.kinds[-1] == "execution_complete"
    for event, members in zip(ran.events, re.findall(rb"\{.*?\}\n\n", ran.raw)):
        order = [name for name in ("type", "text", "execution_count", "execution_time", "timestamp", "results", "error") if name in event]
        assert list(json.loads(members)) == order
    assert abs(ran.events[0]["timestamp"] - time.time() * 1000) < 5000


def test_item_01_a_failure_has_exactly_one_terminal_event(execd):
    ran = execd.run("echo x; exit 3")
    assert [kind for kind in ran.kinds if kind != "ping"] == ["init", "stdout", "error"]


def test_item_01_pings_every_three_seconds(execd):
    ran = execd.run("sleep 3.4")
    assert ran.kinds == ["init", "ping", "ping", "execution_complete"]
    assert 2500 < ran.events[2]["timestamp"] - ran.events[0]["timestamp"] < 3500, "counted from the request, stamped when sent"


# Item 2: output


@pytest.mark.parametrize(
    "printed, texts",
    [
        (r"hi\n", ["hi"]),
        (r"a\n\nb", ["a", "\n\n", "b"]),
        (r"a\n\nb\n\n\nc\n", ["a", "\n\n", "b", "\n\n", "\n", "c"]),
        (r"\n\nx", ["\n", "\n", "x"]),
        (r"p 1%%\rp 2%%\rdone\n", ["p 1%", "p 2%", "done"]),
        (r"x\r\ny", ["x", "y"]),
        (r"x\r\n\r\ny", ["x", "\n\n", "y"]),
        (r"a\r\rb", ["a", "\n\n", "b"]),
        (r"no end", ["no end"]),
        ("", []),
        (r"\xff\xfe|\xc3\x28|\xe2\x82", ["\ufffd\ufffd|\ufffd(|\ufffd\ufffd"]),
        (r"<&>\t\\\x01\x7f", ["<&>\t\\\x01\x7f"]),
        (r"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9", ["\u0085\u2028\u2029"]),
        (r"v\vf\ff\x1c\x1d\x1e", ["v\x0bf\x0cf\x1c\x1d\x1e"]),
    ],
)
def test_item_02_splitting(execd, printed, texts):
    assert execd.run(f"printf '{printed}'").out == texts
    assert execd.run(f"printf '{printed}' >&2").err == texts


def test_item_02_separators_are_escaped(execd):
    assert rb"\u0085\u2028\u2029" in execd.run(r"printf '\xc2\x85\xe2\x80\xa8\xe2\x80\xa9'").raw


def test_item_02_a_line_end_cut_in_half_counts_once(execd):
    assert execd.out(r"printf 'x\r'; sleep 0.1; printf '\ny\n'") == ["x", "y"]
    assert execd.out(r"printf par; sleep 0.1; printf 'tial\n'") == ["partial"]
    assert execd.out(r"printf '\xe2\x82'; sleep 0.1; printf '\xac\n'") == ["€"]


def test_item_02_ten_mebibytes_in_one_line(execd):
    """One client reads lines of at most 4 MiB; escapes can make a text six times as long."""
    ran = execd.run("head -c 10M /dev/zero | tr '\\0' '\\1'")
    assert "".join(ran.out) == "\1" * (10 << 20)
    assert max(len(frame) for frame in ran.raw.split(b"\n\n")) < 4 << 20
    ran = execd.run("yes ü | head -c 3M | tr -d '\\n'")
    assert set("".join(ran.out)) == {"ü"}, "cut between characters only"


# Item 3: exits


@pytest.mark.parametrize(
    "command, evalue, traceback",
    [("exit 3", "3", "exit status 3"), ("kill -9 $$", "-1", "signal: killed"), ("kill -TERM $$", "-1", "signal: terminated"),
     ("kill -INT $$", "-1", "signal: interrupt"), ("sh -c 'kill -9 $$'", "137", "exit status 137")],
)  # fmt: skip
def test_item_03_exits(execd, command, evalue, traceback):
    # A trailing command keeps bash from replacing itself with its last one.
    ran = execd.run(command if "sh -c" not in command else command + "; exit $?")
    assert ran.error == {"ename": "CommandExecError", "evalue": evalue, "traceback": [traceback]}
    status = execd.status(ran.id)
    assert (status["running"], status["exit_code"], status["error"]) == (False, int(evalue), traceback)


@pytest.mark.parametrize("command", ["sleep 5", "sleep 5 | cat", "trap '' TERM; sleep 5; sleep 5", "(sleep 5; sleep 5) & wait"])
def test_item_03_timeout(execd, command):
    started = time.monotonic()
    ran = execd.run(command, timeout=100)
    assert time.monotonic() - started < 1
    assert (ran.error["evalue"], ran.error["traceback"]) == ("-1", ["signal: killed: time limit of 100 ms"])
    assert execd.status(ran.id)["error"] == "signal: killed: time limit of 100 ms"


def test_item_03_a_time_limit_is_in_the_log_of_a_background_command(execd):
    ran = execd.background("echo first; sleep 60", timeout=1000)
    assert execd.ended(ran)["error"] == "signal: killed: time limit of 1 s"
    log = execd.call("GET", f"/command/{ran}/logs")
    assert log.body == b"first\n\nexecd: the command was ended: time limit of 1 s\n"
    assert log.header("execd-commands-tail-cursor") == str(len(log.body))


def test_item_03_a_timeout_takes_the_whole_group(execd):
    execd.run("sleep 4741 & sleep 4741", timeout=100)
    wait_for(lambda: execd.out("pgrep -f '^sleep 474[1]$' || true") == [], 5, "the children are gone too")


def test_item_03_no_such_command(execd):
    ran = execd.run("no-such-command-at-all")
    assert ran.code == "127" and "not found" in ran.err[0]
    ran = execd.run(["/no/such/program"])
    assert ran.kinds == ["init", "error"]
    assert "No such file" in ran.error["evalue"] and ran.error["traceback"] == [ran.error["evalue"]]
    execd.refused(404, "INVALID_REQUEST_BODY", "GET", f"/command/status/{ran.id}")


# Item 4: children, clients that leave


def test_item_04_a_background_child_does_not_hold_the_stream(execd):
    started = time.monotonic()
    (pid,) = execd.out("sleep 60 & echo $!")
    assert time.monotonic() - started < 2
    assert execd.out(f"kill -0 {pid} && echo lives; kill {pid}") == ["lives"]


def test_item_04_a_surviving_writer_gets_no_sigpipe(execd, place):
    assert execd.out(f"(for i in 1 2 3 4; do sleep 0.1; echo $i; echo $i >&2; done; echo alive > {place}/survivor) & echo go") == ["go"]
    wait_for(lambda: execd.out(f"cat {place}/survivor 2>/dev/null || true") == ["alive"], 10, "the survivor wrote to the end")


def test_item_04_a_survivor_that_writes_for_ever_harms_nobody(execd):
    ran = execd.run("yes & echo $! >&2; sleep 0.1")
    assert ran.code == "0"
    started = time.monotonic()
    execd.out("echo quick")
    assert time.monotonic() - started < 2
    execd.out(f"kill {ran.err[0]}")


def test_item_04_a_client_that_leaves(execd, place):
    with execd.streaming(f"echo ready; sleep 0.3; seq 1 200000; echo done > {place}/done; exit 5") as reader:
        reader.until("stdout", "ready")
        command = reader.events[0]["text"]
    assert execd.ended(command)["exit_code"] == 5
    assert execd.out(f"cat {place}/done") == ["done"]


# Item 5: background commands, status, logs


def test_item_05_background(execd):
    text = "echo one; sleep 0.3; echo two >&2; exit 4"
    command = execd.background(text)
    status = execd.status(command)
    assert status["running"] is True and "exit_code" not in status and "finished_at" not in status
    status = execd.ended(command)
    assert (status["id"], status["content"], status["exit_code"], status["error"]) == (command, text, 4, "exit status 4")
    for name in ("started_at", "finished_at"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", status[name]), status
    logs = execd.call("GET", f"/command/{command}/logs")
    assert (logs.status, logs.body) == (200, b"one\ntwo\n")
    assert logs.header("content-type") == "text/plain; charset=utf-8"
    assert logs.header("execd-commands-tail-cursor") == "8"


def test_item_05_what_a_command_used(execd):
    """CPU time, peak memory and wall time, of the command and of the children it waited for."""
    ran = execd.run("sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; head -c 50M /dev/zero | tail -c 50M >/dev/null; sleep 0.2")
    status = execd.status(ran.id)
    assert status["cpu_time_ms"] > 20
    assert status["wall_time_ms"] >= 200
    assert status["wall_time_ms"] - 100 < ran.events[-1]["execution_time"] <= status["wall_time_ms"] + 100
    assert 50 << 20 < status["peak_memory_bytes"] < 200 << 20
    running = execd.background("sleep 4742")
    assert not {"cpu_time_ms", "peak_memory_bytes"} & set(execd.status(running))
    execd.empty("DELETE", f"/command?id={running}")


@pytest.mark.parametrize("cursor, body, end", [("0", b"one\ntwo\n", 8), ("4", b"two\n", 8), ("8", b"", 8), ("100", b"", 100), ("x", b"one\ntwo\n", 8), ("", b"one\ntwo\n", 8)])
def test_item_05_cursor(execd, cursor, body, end):
    command = execd.background("printf 'one\\ntwo\\n'")
    execd.ended(command)
    logs = execd.call("GET", f"/command/{command}/logs?cursor={cursor}")
    assert (logs.body, logs.header("execd-commands-tail-cursor")) == (body, str(end))
    assert logs.header("content-length") == str(len(body))


def test_item_05_logs_are_raw_bytes(execd):
    command = execd.background(r"printf '\xff\r\n\0x'")
    execd.ended(command)
    assert execd.call("GET", f"/command/{command}/logs").body == b"\xff\r\n\0x"


def test_item_05_wrong_ids_and_cursors(execd):
    command = execd.background("true")
    execd.ended(command)
    execd.refused(400, "INVALID_REQUEST_BODY", "GET", f"/command/{command}/logs?cursor=-1")
    execd.refused(400, "INVALID_REQUEST_BODY", "GET", "/command/unknown/logs")
    execd.refused(400, "INVALID_REQUEST_BODY", "GET", f"/command/{execd.run('true').id}/logs")
    execd.refused(404, "INVALID_REQUEST_BODY", "GET", "/command/status/unknown")
    execd.refused(500, "RUNTIME_ERROR", "DELETE", "/command?id=unknown")
    execd.refused(500, "RUNTIME_ERROR", "DELETE", f"/command?id={command}")
    execd.refused(400, "MISSING_QUERY", "DELETE", "/command")


def test_item_05_interrupt(execd):
    command = execd.background("sleep 4743")
    started = time.monotonic()
    execd.empty("DELETE", f"/command?id={command}")
    status = execd.ended(command, 10)
    assert time.monotonic() - started < 2
    assert (status["exit_code"], status["error"]) == (-1, "signal: terminated")


def test_item_05_code_route_interrupts_too(execd):
    command = execd.background("sleep 4744")
    execd.empty("DELETE", f"/code?id={command}")
    assert execd.ended(command)["exit_code"] == -1


def test_item_05_a_background_command_that_cannot_start(execd):
    ran = execd.run(["/no/such/program"], background=True)
    assert ran.kinds == ["init", "error"]
    status = execd.status(ran.id)
    assert (status["exit_code"], status["running"]) == (255, False) and "No such file" in status["error"]


# Item 6: forms of requests


def test_item_06_explicit_nulls(execd):
    nulls = dict.fromkeys(["cwd", "background", "timeout", "uid", "gid", "envs", "argv"])
    assert execd.out("echo hi", **nulls) == ["hi"]
    session = execd.session(cwd=None)
    assert session.out("echo hi", cwd=None, timeout=None) == ["hi"]
    session.delete()
    terminal = execd.call("POST", "/pty", json={"cwd": None, "command": None})
    assert terminal.status == 201
    execd.empty("DELETE", f"/pty/{terminal.json['session_id']}")


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b" \n", b'{"unknown":[1]} trailing'])
def test_item_06_empty_bodies(execd, body):
    session = execd.call("POST", "/session", body=body)
    assert session.status == 200 and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", session.json["session_id"])
    execd.empty("DELETE", f"/session/{session.json['session_id']}")
    terminal = execd.call("POST", "/pty", body=body)
    assert terminal.status == 201 and list(terminal.json) == ["session_id"]
    execd.empty("DELETE", f"/pty/{terminal.json['session_id']}")


def test_item_06_accepted(execd):
    assert execd.out("true", timeout=0) == []
    assert execd.out("pwd", cwd="/usr") == ["/usr"]
    assert execd.out("pwd", cwd="$WHERE/lib", envs={"WHERE": "/usr"}) == ["/usr/lib"]
    assert execd.out("pwd", cwd="~") == execd.out("cd ~; pwd")
    assert execd.out('echo "$A|$B"', envs={"A": "x y", "B": "$A"}) == ["x y|$A"]
    assert execd.out(["printf", "%s|", "a b", "", "$HOME", "*"]) == ["a b||$HOME|*|"]
    assert execd.out("readlink /proc/self/fd/0") == ["/dev/null"]
    assert execd.out("ls /proc/self/fd | tr '\\n' ' '") == ["0 1 2 3 "]
    assert execd.out("grep -E '^Sig(Blk|Ign)' /proc/self/status") == ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"]


def test_item_06_the_rest_after_the_first_value_is_ignored(execd):
    assert Stream(execd.call("POST", "/command", body=b'{"command":"echo 1"} {"command":"echo 2"}')).out == ["1"]
    assert Stream(execd.call("POST", "/command", body=b'{"command":"echo 1"}garbage', headers={"Content-Type": "text/plain"})).out == ["1"]


def test_item_06_member_names_match_in_any_case(execd, place):
    assert Stream(execd.call("POST", "/command", json={"COMMAND": "echo $X; pwd", "Envs": {"X": "1"}, "Cwd": "/usr", "Nope": 1})).out == ["1", "/usr"]
    execd.put(f"{place}/a", b"one")
    assert execd.upload([("metadata", {"Path": f"{place}/b", "MODE": 600}), ("file", b"two")]).status == 200
    assert execd.info(f"{place}/b")["mode"] == 600
    execd.empty("POST", "/files/permissions", json={f"{place}/a": {"Mode": 640}})
    assert execd.info(f"{place}/a")["mode"] == 640
    assert execd.call("POST", "/files/replace", json={f"{place}/a": {"Old": "one", "NEW": "two"}}).json == {f"{place}/a": {"replacedCount": 1}}
    execd.empty("POST", "/files/mv", json=[{"Src": f"{place}/a", "DEST": f"{place}/c"}])
    execd.empty("POST", "/directories", json={f"{place}/d": {"Mode": 700}})
    assert execd.info(f"{place}/d")["mode"] == 700
    # Names of variables and paths are data, not members.
    assert execd.out("echo $lower-$LOWER", envs={"lower": "1", "LOWER": "2"}) == ["1-2"]


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", "5", "{}", '{"command":""}', '{"command":5}', '{"command":"x","timeout":-1}', '{"command":"x","timeout":"5"}',
     '{"command":"x","timeout":1.5}', '{"command":"x","background":"yes"}', '{"command":"x","background":1}', '{"command":"x","gid":5}',
     '{"command":"x","uid":-1}', '{"command":"x","uid":4294967296}', '{"command":"x","uid":"0"}', '{"command":"x","cwd":"/no/such/dir"}',
     '{"command":"x","cwd":"/etc/passwd"}', '{"command":"x","cwd":"$NOT_DEFINED_HERE"}', '{"command":"x","cwd":5}', '{"command":"x","envs":{"A":5}}',
     '{"command":"x","envs":[]}', '{"command":"x","envs":{"A=B":"c"}}', '{"command":"x","argv":["y"]}', '{"argv":[]}', '{"argv":[""]}',
     '{"argv":"ls"}', '{"command":"a\\u0000b"}'],
)  # fmt: skip
def test_item_06_refused(execd, body):
    execd.refused(400, "INVALID_REQUEST_BODY", "POST", "/command", body=body.encode())


# Item 7: empty successes, errors


def test_item_07_empty_successes(execd, place):
    execd.empty("GET", "/ping")
    execd.empty("DELETE", f"/files?path={place}/nothing")
    execd.empty("DELETE", "/files")
    execd.empty("DELETE", f"/directories?path={place}/nothing")
    execd.empty("POST", "/directories", json={f"{place}/d": {}})
    execd.empty("POST", "/files/mv", json=[])
    execd.empty("POST", "/files/permissions", json={})
    command = execd.background("true")
    execd.ended(command)
    log = execd.call("GET", f"/command/{command}/logs")
    assert (log.body, log.header("content-length")) == (b"", "0")


@pytest.mark.parametrize(
    "method, path, status, code",
    [("GET", "/nope", 404, None), ("POST", "/ping", 404, None), ("HEAD", "/ping", 404, None), ("GET", "/command", 404, None),
     ("GET", "/files/info?path=/nope", 404, "FILE_NOT_FOUND"), ("GET", "/files/search", 400, "MISSING_QUERY"),
     ("GET", "/files/download", 400, "MISSING_QUERY"), ("GET", "/directories/list", 400, "MISSING_QUERY"),
     ("POST", "/files/upload", 400, "INVALID_FILE"), ("POST", "/files/mv", 400, "INVALID_REQUEST_BODY"),
     ("POST", "/files/replace", 400, "INVALID_REQUEST_BODY"), ("POST", "/files/permissions", 400, "INVALID_REQUEST_BODY"),
     ("POST", "/directories", 400, "INVALID_REQUEST_BODY"), ("POST", "/session/x/run", 400, "INVALID_REQUEST_BODY"),
     ("DELETE", "/session/x", 404, "CONTEXT_NOT_FOUND"), ("GET", "/pty/x", 404, "CONTEXT_NOT_FOUND"),
     ("DELETE", "/pty/x", 404, "CONTEXT_NOT_FOUND"), ("GET", "/pty/x/ws", 404, "CONTEXT_NOT_FOUND"),
     ("POST", "/v1/isolated/session", 503, "SERVICE_UNAVAILABLE"), ("GET", "/proxy//x", 400, None), ("GET", "/proxy/1/x", 502, None)],
)  # fmt: skip
def test_item_07_every_error_has_a_code_and_a_message(execd, method, path, status, code):
    reply = execd.call(method, path, check=method != "HEAD")
    assert reply.status == status, reply
    if code:
        assert reply.json["code"] == code


# Item 8: through its own proxy, with and without a token (the fixture `token` runs everything that way)


def test_item_08_own_proxy(execd):
    base = f"/proxy/{execd.port}"
    assert execd.call("GET", base + "/ping").status == 200
    assert execd.call("GET", base + "/nope").status == 404
    ran = Stream(execd.call("POST", base + "/command", json={"command": "echo hi; exit 3"}))
    assert (ran.out, ran.code) == (["hi"], "3")


def test_item_08_own_proxy_flushes(execd):
    with execd.streaming("echo now; sleep 1; echo later", path=f"/proxy/{execd.port}/command") as reader:
        started = time.monotonic()
        reader.until("stdout", "now")
        assert time.monotonic() - started < 0.7
        reader.until("stdout", "later")


def test_item_08_own_proxy_carries_websockets(execd):
    session = execd.call("POST", f"/proxy/{execd.port}/pty", json={"command": "echo over $((40+2))"}).json["session_id"]
    execd_prefix = execd.prefix
    with Terminal(execd, session, "") as terminal:
        terminal.until_output(b"over 42")
    with execd.socket(f"/proxy/{execd.port}/pty/{session}/ws?takeover=1") as socket:
        assert socket.status == 101
    assert execd.prefix == execd_prefix
    execd.empty("DELETE", f"/pty/{session}")


def test_item_08_another_port(execd):
    """A server inside the sandbox, reached through execd."""
    script = ("import http.server as h,json\nclass H(h.BaseHTTPRequestHandler):\n protocol_version='HTTP/1.1'\n def do_GET(s):\n"
              "  b=json.dumps([s.path,dict(s.headers)]).encode()\n  s.send_response(200);s.send_header('Content-Length',str(len(b)));s.end_headers();s.wfile.write(b)\n"
              " def log_message(s,*a): pass\nv=h.ThreadingHTTPServer(('127.0.0.1',0),H)\nprint(v.server_port,flush=True)\nv.serve_forever()")  # fmt: skip
    server = execd.background(f"python3 -c \"{script}\"")
    port = wait_for(lambda: execd.call("GET", f"/command/{server}/logs").body.decode().strip(), 10, "it listens")
    path, headers = execd.call("GET", f"/proxy/{port}/a%2Fb/c?x=1&y=%20", headers={"X-Mine": "1"}).json
    headers = {name.lower(): value for name, value in headers.items()}
    assert path == "/a%2Fb/c?x=1&y=%20"
    assert headers["x-mine"] == "1" and headers["x-forwarded-proto"] == "http" and "x-forwarded-host" not in headers
    assert TOKEN not in headers.values(), "the token is execd's and nobody else's"
    assert execd.call("GET", f"/proxy/{port}").json[0] == "/"
    execd.empty("DELETE", f"/command?id={server}")


def test_item_08_without_the_token(execd):
    if execd.kind != "token":
        pytest.skip("no token is set here")
    for headers in ((), (("X-EXECD-ACCESS-TOKEN", TOKEN[:-1]),), (("X-EXECD-ACCESS-TOKEN", TOKEN + "x"),)):
        for path in ("/ping", "/nope", f"/proxy/{execd.port}/ping", "/proxy/1/", "/command?access_token=" + TOKEN):
            reply = rawhttp.request(execd.address, "GET", path, headers=headers)
            assert reply.status == 401, reply
            assert reply.json["error"].startswith("Unauthorized") and reply.json["code"] and reply.json["message"]
    assert rawhttp.request(execd.address, "GET", "/ping", headers=[("x-execd-access-token", TOKEN)]).status == 200
    with execd.socket("/pty/x/ws") as known:
        assert known.status == 404
    execd.headers, kept = (), execd.headers
    with execd.socket("/pty/x/ws") as unknown:
        assert unknown.status == 401
    execd.headers = kept


# Item 9: sessions


def test_item_09_envelope(execd, place):
    session = execd.session(cwd=f"{place}/made/for/it")
    assert session.out("pwd") == [f"{place}/made/for/it"]
    assert session.out("pwd", cwd="/usr") == ["/usr"]
    assert session.out("pwd") == ["/usr"], "the override sticks"
    session.out("export SEEN=1")
    assert session.out("echo $SEEN") == ["1"]
    ran = session.run("sh -c 'echo x; exit 7'")
    assert ran.kinds == ["init", "stdout", "error"] or ran.kinds == ["init", "ping", "stdout", "error"], ran.kinds
    assert ran.error == {"ename": "CommandExecError", "evalue": "7", "traceback": ["exit status 7"]}
    assert session.out("cat <<E\nhere $SEEN\nE") == ["here 1"]
    assert session.out("printf no-newline") == ["no-newline"]
    assert session.out("true") == []
    assert session.out("echo out; echo err >&2; echo out2") == ["out", "err", "out2"]
    session.delete()
    execd.refused(404, "CONTEXT_NOT_FOUND", "DELETE", f"/session/{session.id}")
    execd.refused(500, "RUNTIME_ERROR", "POST", f"/session/{session.id}/run", json={"command": "true"})


@pytest.mark.parametrize("ending, code", [("exit 7", "7"), ("exec sh -c 'exit 5'", "5"), ("set -e; false", "1"), ("kill -9 $$", "-1"), ("exit 0", "0")])
def test_item_09_what_ends_a_shell_keeps_the_session(execd, ending, code):
    session = execd.session()
    session.out("export A=1; plain=2; f() { echo f; }; cd /usr")
    assert session.run(ending).code == code
    assert session.out("f; echo $A $plain; pwd") == ["f", "1 2", "/usr"]
    session.delete()


def test_item_09_values_survive(execd):
    session = execd.session()
    values = ["$HOME `id` \\ \\$x", "it's \"quoted\"", "line one\nline two\n", "tab\tand \x01", "ünï ☃", "x" * 20000, ""]
    for value in values:
        session.out("export VALUE=$(printf %b '" + "".join(f"\\0{byte:o}" for byte in value.encode()) + "x'); VALUE=${VALUE%x}")
        session.run("exit 3")
        got = session.out("printf %s \"$VALUE\" | base64 -w0")
        import base64

        assert base64.b64decode("".join(got)).decode() == value
    session.delete()


def test_item_09_timeout_kills_children(execd):
    session = execd.session()
    session.out("kept=1; sleep 4751 & old=$!")
    started = time.monotonic()
    ran = session.run("sleep 4752 & sleep 4752 | cat", timeout=200)
    assert time.monotonic() - started < 2
    assert ran.code == "-1" and ran.error["traceback"]
    assert session.out("echo $kept; kill -0 $old && echo lives; kill $old; pgrep -f '^sleep 475[2]$' || true") == ["1", "lives"]
    assert session.run("while :; do :; done", timeout=200).code == "-1"
    session.delete()


def test_item_09_delete_ends_what_runs(execd):
    for route in ("/session/", "/command?id="):
        session = execd.session()
        running = execd.in_background("echo ready; sleep 4753", path=f"/session/{session.id}/run")
        wait_for(lambda: execd.out("pgrep -f '^sleep 475[3]$' || true"), 5, "it runs")
        started = time.monotonic()
        execd.empty("DELETE", route + session.id)
        assert running.join().error["evalue"] == "-1"
        assert time.monotonic() - started < 3
        wait_for(lambda: execd.out("pgrep -f '^sleep 475[3]$' || true") == [], 5, "it is gone")


def test_item_09_a_client_that_leaves_takes_its_run_along(execd):
    session = execd.session()
    with execd.streaming("echo ready; sleep 4754", path=f"/session/{session.id}/run") as reader:
        reader.until("stdout", "ready")
    wait_for(lambda: execd.out("pgrep -f '^sleep 475[4]$' || true") == [], 10, "the run ended with its client")
    assert session.out("echo usable") == ["usable"]
    session.delete()


def test_item_09_runs_of_one_session_take_turns(execd):
    session = execd.session()
    threads = [execd.in_background(f"echo a{i}; sleep 0.05; echo b{i}", path=f"/session/{session.id}/run") for i in range(5)]
    assert [thread.join().out for thread in threads] == [[f"a{i}", f"b{i}"] for i in range(5)]
    session.delete()


def test_item_09_background_children_do_not_hold_a_run(execd):
    session = execd.session()
    started = time.monotonic()
    assert session.out("sleep 4755 & echo started") == ["started"]
    assert time.monotonic() - started < 2
    session.out("kill %1 2>/dev/null || kill $!")
    session.delete()


def test_item_09_wrong_directories(execd):
    session = execd.session()
    for cwd in ("/no/such/dir", "/etc/passwd", "$NOT_DEFINED_HERE/x"):
        execd.refused(400, "INVALID_REQUEST_BODY", "POST", f"/session/{session.id}/run", json={"command": "pwd", "cwd": cwd})
    session.delete()
    execd.refused(400, "INVALID_REQUEST_BODY", "POST", "/session", json={"cwd": 5})


def test_item_09_corners_of_a_shell(execd, place):
    session = execd.session(cwd=place)
    assert session.run("echo 'unterminated").code == "2"
    assert session.run("syntax ) error").code == "2"
    assert [session.run(text).code for text in ("break", "continue", "false")] == ["0", "0", "1"]
    assert [line.lstrip("+ ") for line in session.out("set -x; echo traced")] == ["echo traced", "traced"]
    assert [line.lstrip("+ ") for line in session.out("set +x; echo quiet")] == ["set +x", "quiet"]
    assert session.out("cat") == [], "nothing to read"
    # Descriptors that a user opens or closes are his; ours are out of his reach and his sight.
    assert session.out(f"exec 10>{place}/ten 11>&1; echo x >&10; echo e >&11; exec 10>&- 11>&- 12>&- 13>&-; exec >/dev/null; echo lost") == ["e"]
    assert session.out(f"cat {place}/ten") == ["x"]
    assert session.out(f"exec 13>{place}/ten; echo y >&13; cat {place}/ten") == ["y"]
    assert session.out(f"echo z >&13; exec 13>&-; cat {place}/ten") == ["y", "z"]
    assert session.run("exec 240<&- 241>&- 242>&- 243>&- 244>&-; exit 9").code == "9"
    assert session.out("trap 'echo bye' EXIT; echo hi; exit 0") == ["hi", "bye"]
    assert session.out("x=" + "a" * 300000 + "; echo ${#x}") == ["300000"]
    assert session.out("seq 1 50000") == [str(i) for i in range(1, 50001)]
    assert session.run(r"printf 'a\rb\r\n\nc'").out == ["a\rb", "\n\n", "c"]
    session.delete()


# The environment file (section 8.4): not in the list, but every published client writes it


def test_environment_file_plain_and_quoted(execd):
    def write(text):
        execd.put(execd.env_file, text.encode())

    session = execd.session()
    try:
        write("# a comment\n\nPLAIN=two words\n  SPACED = x \nEXPANDED=$KEPT!${KEPT}\nUNKNOWN=[$NOT_DEFINED_HERE]\nno equals sign\nTWICE=1\nTWICE=2\n")
        show = 'printf "%s\\n" "$PLAIN" "$EXPANDED" "$UNKNOWN" "$TWICE"'
        wanted = ["two words", "from outside!from outside", "[]", "2"]
        assert execd.out(show) == wanted
        assert session.out(show) == wanted
        background = execd.background(show)
        execd.ended(background)
        assert execd.call("GET", f"/command/{background}/logs").body.decode().splitlines() == wanted
        assert execd.out("echo $TWICE", envs={"TWICE": "mine"}) == ["mine"]
        # As the newest clients write it.
        write("SINGLE='it costs $5'\nMULTI='one\ntwo'\nDOUBLE=\"a\\tb \\\"q\\\" \\$x \\\\ $KEPT\"\nAFTER=1\n")
        show = 'printf "%s|" "$SINGLE" "$MULTI" "$DOUBLE" "$AFTER"'
        assert execd.out(show) == ["it costs $5|one", 'two|a\tb "q" $x \\ from outside|1|']
        assert session.out(show) == ["it costs $5|one", 'two|a\tb "q" $x \\ from outside|1|']
    finally:
        execd.empty("DELETE", f"/files?path={execd.env_file}")
    assert execd.out("echo [$PLAIN$SINGLE]") == ["[]"]
    session.delete()


def test_parse_is_strict():
    """The checks of this suite can fail."""
    for bad in (b'{"type":"init","timestamp":1}\n', b'data: {"type":"x","timestamp":1}\n\n', b'{"type":"x"}\n\n', b'{"type":"x","timestamp":1.5}\n\n'):
        with pytest.raises((AssertionError, ValueError, KeyError)):
            parse(bad)
