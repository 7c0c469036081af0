#!/usr/bin/env python3
"""Drives a standalone execd over loopback, to the byte. Usage: standalone_check.py PATH_OF_EXECD [name...]"""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

PORT = int(os.environ.get("EXECD_CHECK_PORT", "45871"))
ROOT = tempfile.mkdtemp(prefix="execd-check-")


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


def call(method, path, body=None, headers=None, prefix=""):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    connection.request(method, prefix + path, body, headers or {})
    reply = Reply(connection.getresponse())
    connection.close()
    if reply.status >= 400 and reply.status != 401:
        error = reply.json()
        assert error["code"] and error["message"], reply.body
    return reply


def frames(body):
    text = body.decode()
    assert text.endswith("}\n\n"), text[-50:]
    out = []
    for frame in text[:-2].split("\n\n"):
        assert "\n" not in frame and "\r" not in frame, frame
        event = json.loads(frame)
        assert isinstance(event["timestamp"], int), event
        out.append(event)
    return out


def run(command, prefix="", path="/command", **members):
    body = dict(members)
    if isinstance(command, list):
        body["argv"] = command
    else:
        body["command"] = command
    reply = call("POST", path, body, prefix=prefix)
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "text/event-stream", reply.headers
    assert reply.headers["cache-control"] == "no-cache" and reply.headers["x-accel-buffering"] == "no"
    events = frames(reply.body)
    assert events[0]["type"] == "init" and sum(e["type"] == "init" for e in events) == 1, events
    last = [e for e in events if e["type"] in ("error", "execution_complete")]
    assert len(last) == 1 and events[-1] is last[0], events
    return events


def texts(events, kind="stdout"):
    return [e["text"] for e in events if e["type"] == kind]


def code(events):
    last = events[-1]
    if last["type"] == "execution_complete":
        return 0
    assert isinstance(last["error"]["evalue"], str) and isinstance(last["error"]["traceback"], list)
    return last["error"]["evalue"]


def equal(a, b):
    assert a == b, f"{a!r} != {b!r}"


def wait_for(condition, seconds=10):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("did not happen in time")


# ---- checks: every function named check_* ----

def check_ping():
    reply = call("GET", "/ping")
    equal((reply.status, reply.body, reply.headers.get("content-length")), (200, b"", "0"))
    assert "content-type" not in reply.headers
    equal(call("GET", "/ping/").status, 200)
    equal(call("POST", "/ping").status, 404)
    equal(call("GET", "/nope").status, 404)
    equal(call("GET", "//ping").status, 200)
    equal(call("GET", f"/proxy/{PORT}/ping").status, 200)
    equal(call("GET", f"/proxy/{PORT}//proxy/{PORT}/ping").status, 200)
    equal(call("GET", "/ping", headers={"X-Request-ID": "abc"}).headers["x-request-id"], "abc")
    equal(call("GET", "/ping", headers={"Content-Length": "0"}).status, 200)


def check_output():
    equal(texts(run("echo hi")), ["hi"])
    equal(texts(run("printf 'a\\n\\nb'")), ["a", "\n\n", "b"])
    equal(texts(run("printf 'a\\n\\nb\\n\\n\\nc\\n'")), ["a", "\n\n", "b", "\n\n", "\n", "c"])
    equal(texts(run("printf 'p 1%%\\rp 2%%\\rdone\\n'")), ["p 1%", "p 2%", "done"])
    equal(texts(run("printf 'x\\r'; sleep 0.05; printf '\\ny'")), ["x", "y"])
    equal(texts(run("printf 'a\\r\\rb'")), ["a", "\n\n", "b"])
    equal(texts(run("printf 'par'; sleep 0.05; printf 'tial\\n'")), ["partial"])
    equal(texts(run("echo no >&2"), "stderr"), ["no"])
    equal(texts(run("printf '\\xff\\xc2\\x85|\\xe2\\x80\\xa8<&>'")), ["\ufffd\u0085|\u2028<&>"])
    equal(texts(run("true")), [])
    equal(texts(run("echo a; echo b > /dev/stdout; echo c")), ["a", "b", "c"])
    raw = call("POST", "/command", {"command": "printf '\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xa9'"}).body
    assert b"\\u0085\\u2028\\u2029" in raw, raw
    events = run("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
    equal("".join(texts(events)), "x" * 3000000 + "end")
    assert all(len(t) <= 256 * 1024 for t in texts(events))
    out = texts(run("seq 1 200000"))
    equal(out, [str(i) for i in range(1, 200001)])


def check_exit():
    equal(code(run("exit 3")), "3")
    equal(run("exit 3")[-1]["error"], {"ename": "CommandExecError", "evalue": "3", "traceback": ["exit status 3"]})
    equal(run("kill -9 $$")[-1]["error"], {"ename": "CommandExecError", "evalue": "-1", "traceback": ["signal: killed"]})
    equal(code(run("no-such-thing-at-all")), "127")
    start = time.time()
    equal(run("sleep 5", timeout=100)[-1]["error"]["traceback"], ["signal: killed"])
    assert time.time() - start < 1
    start = time.time()
    equal(code(run("sleep 5 | cat", timeout=100)), "-1")
    assert time.time() - start < 1
    equal(code(run("true", timeout=0)), 0)
    events = run(["/nope", "x"])
    equal([e["type"] for e in events], ["init", "error"])
    assert "No such file" in events[-1]["error"]["evalue"]


def check_request_forms():
    equal(texts(run(["printf", "%s|", "a b", "", "$HOME"])), ["a b||$HOME|"])
    nulls = dict(cwd=None, background=None, timeout=None, uid=None, gid=None, envs=None, argv=None)
    equal(texts(run("echo hi", **nulls)), ["hi"])
    equal(texts(run("echo $A$B", envs={"A": "1", "B": "x y"})), ["1x y"])
    equal(texts(run("pwd", cwd="/usr")), ["/usr"])
    equal(texts(run("pwd", cwd="$WHERE/lib", envs={"WHERE": "/usr"})), ["/usr/lib"])
    equal(texts(run("pwd", cwd="~")), [os.path.expanduser("~")])
    equal(texts(run("cat")), [], )
    for bad in ({}, {"command": ""}, {"command": "x", "timeout": -1}, {"command": "x", "gid": 5}, {"command": 5},
                {"command": "x", "cwd": "/nope"}, {"command": "x", "cwd": "/etc/passwd"}, {"command": "x", "cwd": "$NOPE"},
                {"command": "x", "argv": ["y"]}, {"argv": [""]}, {"command": "x", "uid": -1}, {"command": "x", "uid": 2**32},
                {"command": "x", "envs": {"A": 5}}, {"command": "x", "envs": {"A=B": "c"}}, {"command": "a\0b"}, [], None):
        reply = call("POST", "/command", json.dumps(bad))
        equal((reply.status, reply.json()["code"]), (400, "INVALID_REQUEST_BODY"))
    equal(call("POST", "/command", "").status, 400)
    equal(call("POST", "/command", "{").status, 400)
    equal(call("POST", "/command", '{"command":"true"} trailing').status, 200)
    equal(call("POST", "/command", '{"Command":"true","UNKNOWN":1}').status, 200)
    equal(texts(run("echo hi", prefix=f"/proxy/{PORT}")), ["hi"])


def check_environment():
    events = run("env")
    env = dict(t.split("=", 1) for t in texts(events) if "=" in t)
    assert "EXECD_ACCESS_TOKEN" not in env and "JUPYTER_TOKEN" not in env
    equal(env["EXECD_ENVS"], ROOT + "/env")
    equal(env["OSB_CHECK"], "kept")
    key = 'fail() { echo no >&2; exit 1; }; [ -n "$EXECD_ENVS" ] || fail\nmkdir -p "$(dirname "$EXECD_ENVS")"\nprintf '
    equal(code(run(key + "'%s\\n' \"Q='it costs \\$5\" >> \"$EXECD_ENVS\"; printf \"two'\\n\" >> $EXECD_ENVS")), 0)
    equal(texts(run('echo "$Q"')), ["it costs $5", "two"])
    with open(ROOT + "/env", "w") as f:
        f.write('A=plain $HOME\nB="it\'s\\t\\"q\\""\nA=later\n')
    equal(texts(run('echo "$A|$B"')), ['later|it\'s\t"q"'])
    equal(texts(run('echo "$A"', envs={"A": "mine"})), ["mine"])
    os.unlink(ROOT + "/env")


def check_children():
    start = time.time()
    events = run("sleep 60 & echo $!")
    assert time.time() - start < 2
    pid = int(texts(events)[0])
    os.kill(pid, 0)
    os.kill(pid, 9)
    # A survivor that goes on writing gets no SIGPIPE and does not hold the stream.
    events = run(f"(for i in 1 2 3 4 5; do sleep 0.1; echo $i; echo $i >&2; done; echo alive > {ROOT}/survivor) & echo go")
    equal(texts(events), ["go"])
    wait_for(lambda: os.path.exists(ROOT + "/survivor"))
    start = time.time()
    events = run("yes & echo $! >&2; sleep 0.1")
    assert time.time() - start < 5
    pid = int(texts(events, "stderr")[0])
    os.kill(pid, 9)
    # fds, signals
    equal(texts(run("ls /proc/self/fd | tr '\\n' ' '")), ["0 1 2 3 "])
    equal(texts(run("grep -E '^Sig(Blk|Ign)' /proc/self/status")), ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"])
    equal(int(texts(run("sleep 0.2; cat /proc/self/oom_score_adj"))[0]) > 0, True)
    equal(texts(run("readlink /proc/self/fd/0")), ["/dev/null"])


def check_disconnect():
    s = socket.create_connection(("127.0.0.1", PORT))
    body = json.dumps({"command": f"sleep 0.3; echo done > {ROOT}/disconnected; echo x"})
    s.sendall(f"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    data = s.recv(4096)
    command_id = re.search(rb'"text":"([0-9a-f]{32})"', data).group(1).decode()
    s.close()
    wait_for(lambda: os.path.exists(ROOT + "/disconnected"))
    wait_for(lambda: not call("GET", "/command/status/" + command_id).json()["running"])
    equal(call("GET", "/command/status/" + command_id).json()["exit_code"], 0)


def check_slow_client():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", PORT))
    body = json.dumps({"command": f"seq 1 150000; date > {ROOT}/not-stalled"})
    s.sendall(f"POST /command HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    wait_for(lambda: os.path.exists(ROOT + "/not-stalled"))
    received = b""
    while True:
        piece = s.recv(1 << 20)
        if not piece:
            break
        received += piece
    head, _, rest = received.partition(b"\r\n\r\n")
    out = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size, 16)
        if n == 0:
            break
        out += rest[:n]
        rest = rest[n + 2:]
    events = frames(out)
    equal([e["text"] for e in events if e["type"] == "stdout"], [str(i) for i in range(1, 150001)])
    equal(events[-1]["type"], "execution_complete")


def check_pings():
    events = run("sleep 6.5")
    equal([e["type"] for e in events], ["init", "ping", "ping", "ping", "execution_complete"])


def check_background():
    events = run("echo one; sleep 0.2; echo two >&2; exit 4", background=True)
    equal([e["type"] for e in events], ["init", "execution_complete"])
    command_id = events[0]["text"]
    status = call("GET", "/command/status/" + command_id).json()
    assert status["running"] and "exit_code" not in status and "finished_at" not in status, status
    wait_for(lambda: not call("GET", "/command/status/" + command_id).json()["running"])
    status = call("GET", "/command/status/" + command_id).json()
    equal((status["exit_code"], status["error"], status["content"]), (4, "exit status 4", "echo one; sleep 0.2; echo two >&2; exit 4"))
    logs = call("GET", f"/command/{command_id}/logs")
    equal((logs.body, logs.headers["execd-commands-tail-cursor"]), (b"one\ntwo\n", "8"))
    equal(logs.headers["content-type"], "text/plain; charset=utf-8")
    equal(call("GET", f"/command/{command_id}/logs?cursor=4").body, b"two\n")
    beyond = call("GET", f"/command/{command_id}/logs?cursor=100")
    equal((beyond.body, beyond.headers["execd-commands-tail-cursor"], beyond.headers["content-length"]), (b"", "100", "0"))
    equal(call("GET", f"/command/{command_id}/logs?cursor=x").body, b"one\ntwo\n")
    equal(call("GET", f"/command/{command_id}/logs?cursor=-1").status, 400)
    equal(call("GET", "/command/unknown/logs").status, 400)
    unknown = call("GET", "/command/status/unknown")
    equal((unknown.status, unknown.json()["code"]), (404, "INVALID_REQUEST_BODY"))
    foreground = run("true")[0]["text"]
    equal(call("GET", f"/command/{foreground}/logs").status, 400)
    equal(call("GET", f"/command/status/{foreground}").json()["exit_code"], 0)
    big = run("seq 1 300000", background=True)[0]["text"]
    wait_for(lambda: not call("GET", "/command/status/" + big).json()["running"])
    equal(call("GET", f"/command/{big}/logs").body.decode(), "".join(f"{i}\n" for i in range(1, 300001)))
    survivor = run(f"(sleep 0.3; echo x > {ROOT}/bg-survivor) & echo started", background=True)[0]["text"]
    wait_for(lambda: os.path.exists(ROOT + "/bg-survivor"))
    failed = call("POST", "/command", {"argv": ["/nope"], "background": True})
    events = frames(failed.body)
    equal([e["type"] for e in events], ["init", "error"])
    equal(call("GET", "/command/status/" + events[0]["text"]).json()["exit_code"], 255)


def interrupt_while_running(command, **members):
    result = {}

    def stream():
        result["events"] = run(command, **members)
    thread = threading.Thread(target=stream)
    s = socket.create_connection(("127.0.0.1", PORT))
    body = json.dumps(dict(command=command, **members))
    s.sendall(f"POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    data = b""
    while b"ready" not in data:
        data += s.recv(4096)
    command_id = re.search(rb'"text":"([0-9a-f]{32})"', data).group(1).decode()
    start = time.time()
    reply = call("DELETE", "/command?id=" + command_id)
    took = time.time() - start
    equal((reply.status, reply.body), (200, b""))
    while b"0\r\n\r\n" not in data:
        piece = s.recv(4096)
        assert piece
        data += piece
    s.close()
    return command_id, took, data


def check_interrupt():
    command_id, took, data = interrupt_while_running("echo ready; sleep 30")
    assert took < 1 and b'"signal: terminated"' in data, (took, data)
    again = call("DELETE", "/command?id=" + command_id)
    equal((again.status, again.json()["code"]), (500, "RUNTIME_ERROR"))
    equal(call("DELETE", "/command?id=nope").status, 500)
    missing = call("DELETE", "/command")
    equal((missing.status, missing.json()["code"]), (400, "MISSING_QUERY"))
    _, took, data = interrupt_while_running("trap '' TERM; echo ready; sleep 30; sleep 30")
    assert 2.9 < took < 4 and b'"signal: killed"' in data, (took, data)
    # The leader dies at once, a child that ignores the signal must not survive.
    _, took, data = interrupt_while_running("(trap '' TERM; echo ready; exec sleep 40) & sleep 30")
    assert 2.9 < took < 4, took
    assert not texts(run("pgrep -f '^sleep 40$' || true"))


def check_identity():
    if os.getuid() != 0:
        return
    equal(texts(run("id -u; id -g; id -G", uid=65534)), ["65534", "65534", "65534"])
    equal(texts(run("id -u; id -g", uid=4242)), ["4242", "4242"])
    equal(texts(run("id -u; id -g", uid=4242, gid=7)), ["4242", "7"])
    equal(texts(run("grep -E '^Cap(Eff|Prm)' /proc/self/status", uid=4242)), ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"])


def multipart(pairs, boundary="opensandbox_0123_1", quoted=False):
    out = b""
    for name, content, extra in pairs:
        disposition = f'form-data; name="{name}"; filename="{extra}"' if not quoted else f"form-data; name={name}; filename={extra}"
        out += f"--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
        out += content + b"\r\n"
    return out + f"--{boundary}--\r\n".encode()


def upload(pairs, chunked=False, path="/files/upload", **kw):
    body = multipart(pairs, **kw)
    headers = {"Content-Type": "multipart/form-data; boundary=opensandbox_0123_1"}
    if not chunked:
        return call("POST", path, body, headers)
    headers["Transfer-Encoding"] = "chunked"
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    connection.request("POST", path, (body[i:i + 1000] for i in range(0, len(body), 1000)), headers, encode_chunked=True)
    return Reply(connection.getresponse())


def meta(path, **more):
    return ("metadata", json.dumps(dict(path=path, **more)).encode(), "metadata")


def check_upload_download():
    path = ROOT + "/up/load/файл.bin"
    content = os.urandom(1_500_000)
    for chunked in (False, True):
        reply = upload([meta(path, owner=None, group=None, mode=644), ("file", content, "x")], chunked)
        equal((reply.status, reply.body, reply.headers["content-length"]), (200, b"", "0"))
        equal(open(path, "rb").read(), content)
        equal(os.stat(path).st_mode & 0o777, 0o644)
        os.unlink(path)
    equal(upload([("file", b"late", "x"), meta(ROOT + "/late")]).status, 200)
    equal(open(ROOT + "/late").read(), "late")
    equal(upload([meta(ROOT + "/p1"), ("file", b"1", "a"), meta(ROOT + "/p2", mode=600), ("file", b"", "b")], quoted=True).status, 200)
    equal((open(ROOT + "/p1").read(), open(ROOT + "/p2").read(), os.stat(ROOT + "/p2").st_mode & 0o777), ("1", "", 0o600))
    equal(os.stat(ROOT + "/p1").st_mode & 0o777, 0o755)
    for pairs, expected in (([meta(ROOT + "/q")], "INVALID_FILE_CONTENT"), ([("file", b"", "x")], "INVALID_FILE_METADATA"),
                            ([meta(ROOT + "/q"), ("file", b"", "x"), ("file", b"", "x")], "INVALID_FILE"),
                            ([meta(""), ("file", b"", "x")], "INVALID_FILE_METADATA"),
                            ([("metadata", b"{", "m"), ("file", b"", "x")], "INVALID_FILE_METADATA")):
        reply = upload(pairs)
        equal((reply.status, reply.json()["code"]), (400, expected))
        assert not os.path.exists(ROOT + "/q")
    equal(call("POST", "/files/upload", "x", {"Content-Type": "text/plain"}).status, 400)
    equal([n for n in os.listdir(ROOT) if n.startswith(".upload")], [])

    upload([meta(path), ("file", content, "x")])
    quote = "/files/download?path=" + http.client.quote(path) if hasattr(http.client, "quote") else None
    from urllib.parse import quote as q, quote_plus
    url = "/files/download?path=" + q(path)
    reply = call("GET", url)
    equal((reply.status, reply.body), (200, content))
    equal((reply.headers["content-type"], reply.headers["content-length"]), ("application/octet-stream", str(len(content))))
    assert "filename*=UTF-8''%D1%84" in reply.headers["content-disposition"], reply.headers
    for header, status, body, content_range in (
            ("bytes=0-9", 206, content[:10], f"bytes 0-9/{len(content)}"), ("bytes=-5", 206, content[-5:], None),
            ("bytes=1499990-", 206, content[1499990:], None), ("bytes=5-4", 416, None, None), ("bytes=9999999-", 416, None, f"bytes */{len(content)}"),
            ("lines=1-2", 416, None, None)):
        reply = call("GET", url, headers={"Range": header})
        equal(reply.status, status)
        if body is not None:
            equal(reply.body, body)
        if content_range:
            equal(reply.headers["content-range"], content_range)
    not_modified = call("GET", url, headers={"If-Modified-Since": call("GET", url).headers["last-modified"]})
    equal((not_modified.status, not_modified.body), (304, b""))
    missing = call("GET", "/files/download?path=/nope")
    equal((missing.status, missing.json()["code"]), (404, "FILE_NOT_FOUND"))
    equal(call("GET", "/files/download").json()["code"], "MISSING_QUERY")
    equal(call("GET", "/files/download?path=/tmp").status, 400)
    open(ROOT + "/a b.txt", "w").write("1\r\n2\n\n4")
    equal(call("GET", "/files/download?path=" + quote_plus(ROOT + "/a b.txt")).body, b"1\r\n2\n\n4")
    lines = call("GET", "/files/download?offset=2&limit=2&path=" + quote_plus(ROOT + "/a b.txt"))
    equal((lines.body, lines.headers["content-type"]), (b"2\n", "text/plain; charset=utf-8"))
    equal(call("GET", "/files/download?offset=1&path=" + quote_plus(ROOT + "/a b.txt")).body, b"1\n2\n\n4")
    equal(call("GET", "/files/download?offset=0&path=" + quote_plus(ROOT + "/a b.txt")).status, 400)
    equal(call("GET", "/files/download?limit=1&path=" + quote_plus(ROOT + "/a b.txt"), headers={"Range": "bytes=0-1"}).status, 400)
    assert b"MemTotal" in call("GET", "/files/download?path=/proc/meminfo").body
    open(ROOT + "/empty", "w").close()
    equal(call("GET", "/files/download?path=" + ROOT + "/empty", headers={"Range": "bytes=0-1"}).status, 200)


def check_files():
    base = ROOT + "/files"
    equal(call("GET", "/files/info").json(), {})
    equal(call("POST", "/directories", {base + "/d/e": {"mode": 700}, base + "/x": {"mode": None}}).status, 200)
    equal(os.stat(base + "/d/e").st_mode & 0o777, 0o700)
    equal(call("POST", "/directories", {base + "/d/e": {"mode": 755}}).status, 200)
    equal(os.stat(base + "/d/e").st_mode & 0o777, 0o700)
    open(base + "/d/f.txt", "w").write("one two one")
    os.symlink("d", base + "/link")
    info = call("GET", f"/files/info?path={base}/d/f.txt&path={base}/link").json()
    equal(sorted(info), [base + "/d/f.txt", base + "/link"])
    entry = info[base + "/d/f.txt"]
    equal(sorted(entry), sorted(["path", "type", "size", "modified_at", "created_at", "owner", "group", "mode"]))
    equal((entry["type"], entry["size"], entry["mode"], info[base + "/link"]["type"]), ("file", 11, 644, "symlink"))
    equal(call("GET", f"/files/info?path={base}/nope").json()["code"], "FILE_NOT_FOUND")
    listing = lambda q: [e["path"][len(base):] for e in call("GET", f"/directories/list?path={base}{q}").json()]
    equal(listing(""), ["/d", "/link", "/x"])
    equal(listing("&depth=2"), ["/d", "/d/e", "/d/f.txt", "/link", "/x"])
    equal(listing("&depth=0"), [])
    for query, status in (("&depth=-1", 400), ("&depth=x", 400), ("/link", 400), ("/d/f.txt", 400), ("/nope", 404)):
        equal(call("GET", f"/directories/list?path={base}{query}").status, status)
    equal(call("GET", "/directories/list").json()["code"], "MISSING_QUERY")
    search = lambda p: [e["path"][len(base):] for e in call("GET", f"/files/search?path={base}&pattern={p}").json()]
    equal(search("*.txt"), ["/d/f.txt"])
    equal(search(""), ["/d/f.txt", "/link"])
    equal(search("nothing"), [])
    equal(call("GET", f"/files/search?path={base}&pattern=[").status, 500)
    equal(call("GET", f"/files/search?path={base}/nope").status, 404)
    reply = call("POST", "/files/replace", {base + "/d/f.txt": {"old": "one", "new": "1"}})
    equal(reply.json(), {base + "/d/f.txt": {"replacedCount": 2}})
    equal(open(base + "/d/f.txt").read(), "1 two 1")
    equal(call("POST", "/files/replace?verbose=true", {base + "/d/f.txt": {"old": "zz", "new": ""}}).json()[base + "/d/f.txt"]["replacedCount"], 0)
    equal(call("POST", "/files/replace", {base + "/d/f.txt": {"old": "", "new": ""}}).status, 400)
    equal(call("POST", "/files/replace", {base + "/nope": {"old": "a", "new": ""}}).status, 404)
    equal(call("POST", "/files/permissions", {base + "/d/f.txt": {"mode": 600}}).status, 200)
    equal(os.stat(base + "/d/f.txt").st_mode & 0o777, 0o600)
    if os.getuid() == 0:
        equal(call("POST", "/files/permissions", {base + "/d/f.txt": {"owner": "nobody", "group": "nogroup", "mode": 0}}).status, 200)
        info = call("GET", f"/files/info?path={base}/d/f.txt").json()[base + "/d/f.txt"]
        equal((info["owner"], info["group"], info["mode"]), ("nobody", "nogroup", 600))
    equal(call("POST", "/files/permissions", {base + "/d/f.txt": {"owner": "no-such-user"}}).status, 500)
    equal(call("POST", "/files/permissions", {base + "/d/f.txt": {"mode": 888}}).status, 500)
    equal(call("POST", "/files/mv", [{"src": base + "/d/f.txt", "dest": base + "/new/dir/g"}]).status, 200)
    assert os.path.exists(base + "/new/dir/g")
    equal(call("POST", "/files/mv", [{"src": base + "/x", "dest": base + "/new"}]).status, 500)
    equal(call("POST", "/files/mv", [{"src": base + "/nope", "dest": base + "/y"}]).status, 404)
    equal(call("POST", "/files/mv", {"src": "a"}).status, 400)
    equal(call("DELETE", f"/files?path={base}/new/dir/g&path={base}/nope").status, 200)
    equal(call("DELETE", f"/files?path={base}/d").status, 500)
    reply = call("DELETE", f"/directories?path={base}&path={base}/nope")
    equal((reply.status, reply.headers["content-length"]), (200, "0"))
    assert not os.path.exists(base)
    names = []
    os.makedirs(base)
    for i in range(3000):
        names.append(f"{base}/{i:05d}")
        open(names[-1], "w").close()
    equal([e["path"] for e in call("GET", f"/directories/list?path={base}").json()], names)


def check_file_identity():
    if os.getuid() != 0:
        return
    os.chmod(ROOT, 0o755)
    base = ROOT + "/owned"
    os.mkdir(base, 0o700)
    os.chown(base, 4242, 4343)
    pre = "/v1/filesystem/4242/4343"
    equal(upload([meta(base + "/f"), ("file", b"x", "x")], path=pre + "/files/upload").status, 200)
    info = os.stat(base + "/f")
    equal((info.st_uid, info.st_gid), (4242, 4343))
    equal(call("GET", f"/v1/filesystem/5555/5555/files/download?path={base}/f").status, 500)
    equal(call("GET", f"{pre}/files/download?path={base}/f").body, b"x")
    equal(call("POST", pre + "/files/permissions", {base + "/f": {"owner": "root"}}).status, 500)
    equal(call("GET", f"/v1/filesystem/5555/5555/directories/list?path={base}").status, 500)
    equal(call("GET", f"/v1/filesystem/x/1/files/info").status, 400)
    equal(call("GET", f"/files/download?path={base}/f").body, b"x")


def check_proxy():
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT + 1), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    seen = call("GET", f"/proxy/{PORT + 1}/a%2Fb/c?x=1&y=%20", headers={"Host": "orig.example", "X-EXECD-ACCESS-TOKEN": "t"}).json()
    equal(seen["path"], "/a%2Fb/c?x=1&y=%20")
    headers = {k.lower(): v for k, v in seen["headers"].items()}
    equal((headers["host"], headers["x-forwarded-for"], headers["x-forwarded-proto"]), ("orig.example", "127.0.0.1", "http"))
    assert "x-execd-access-token" not in headers
    equal(call("GET", f"/proxy/{PORT + 1}").json()["path"], "/")
    equal(call("GET", "/proxy/1/x").status, 502)
    equal(call("GET", "/proxy//x").status, 400)
    equal(call("GET", "/proxy/abc/x").status, 400)
    server.shutdown()


def session(**body):
    reply = call("POST", "/session", body)
    equal(reply.status, 200)
    session_id = reply.json()["session_id"]
    assert re.fullmatch(r"[0-9a-f-]{36}", session_id)

    def in_session(code, **members):
        events = run(code, path=f"/session/{session_id}/run", **members)
        equal(events[0]["text"], session_id)
        assert not texts(events, "stderr")
        return events
    in_session.id = session_id
    return in_session


def check_session_state():
    os.makedirs(ROOT + "/w", exist_ok=True)
    s = session(cwd=ROOT + "/made/for/it")
    equal(texts(s("pwd")), [ROOT + "/made/for/it"])
    equal(code(s("export A='v $x \"q\" `b`\nl2'; u=plain; f() { echo f-$1-$u; }; set -o pipefail; trap 'echo usr' USR1; cd /usr")), 0)
    equal(texts(s('echo "$A"; f 1; pwd; kill -USR1 $$')), ['v $x "q" `b`', "l2", "f-1-plain", "/usr", "usr"])
    equal(code(s("false | true")), "1")
    equal(code(s("sh -c 'exit 7'")), "7")
    equal(s("sh -c 'exit 7'")[-1]["error"]["traceback"], ["exit status 7"])
    equal(texts(s("printf no-newline")), ["no-newline"])
    equal(texts(s("true")), [])
    equal(texts(s("cat <<E\nhere $u\nE")), ["here plain"])
    equal(texts(s("echo out; echo err >&2; echo out2")), ["out", "err", "out2"])
    equal(texts(s("sleep 0.2 & echo started")), ["started"])
    equal(texts(s("wait $!; echo $?")), ["0"])
    equal(texts(s("(sleep 0.2; echo from job) & true")), [])
    equal(texts(s("wait; echo after")), ["from job", "after"])
    equal(texts(s("pwd", cwd=ROOT)), [ROOT])
    equal(texts(s("pwd")), [ROOT])
    equal(texts(s("W=made; pwd", cwd="w")), [ROOT + "/w"])
    equal(texts(s("pwd", cwd="../$W")), [ROOT + "/made"])
    for bad in ("/nope", "$NOPE/x", "/etc/passwd"):
        reply = call("POST", f"/session/{s.id}/run", {"command": "pwd", "cwd": bad})
        equal((reply.status, reply.json()["code"]), (400, "INVALID_REQUEST_BODY"))
    equal(texts(s("pwd")), [ROOT + "/made"])
    equal(texts(s("printf 'a\\rb\\r\\n\\nc'")), ["a\rb", "\n\n", "c"])
    equal(texts(s("ls -l /proc/self/fd | grep -c '24[0-4] -> /dev/null'; ls /proc/self/fd | wc -l")), ["5", "9"])
    equal(texts(s("cat")), [])
    equal(code(s("echo 'unterminated")), "2")
    equal(code(s("syntax ) error")), "2")
    equal([code(s(c)) for c in ("break", "continue", "false", "return 3")], [0, 0, "1", "2"])
    equal([t.lstrip("+ ") for t in texts(s("set -x; echo traced"))], ["echo traced", "traced"])
    equal([t.lstrip("+ ") for t in texts(s("set +x; echo quiet"))], ["set +x", "quiet"])
    equal(texts(s(f"exec 10>{ROOT}/ten 11>&1 12>&1 9>&1; echo x >&10; echo e >&11; exec 10>&- 11>&- 12>&- 13>&- 14>&-; echo nine >&9; exec >/dev/null; echo lost")), ["e", "nine"])
    equal(texts(s(f"cat {ROOT}/ten; exec 13>{ROOT}/ten; echo y >&13; echo z >&9")), ["x", "z"])
    equal(texts(s(f"echo w >&13; cat {ROOT}/ten; exec 13>&- 9>&-")), ["y", "w"])
    equal(texts(s("echo back")), ["back"])
    with open(ROOT + "/env", "w") as f:
        f.write("LATE='from file'\n")
    equal(texts(s("echo $LATE; env | grep -c ^LATE=")), ["from file", "1"])
    os.unlink(ROOT + "/env")
    big = "x=" + "a" * 300000 + "; echo ${#x}"
    equal(texts(s(big)), ["300000"])
    equal(texts(s("seq 1 100000")), [str(i) for i in range(1, 100001)])
    equal(call("DELETE", "/session/" + s.id).status, 200)
    gone = call("DELETE", "/session/" + s.id)
    equal((gone.status, gone.json()["code"]), (404, "CONTEXT_NOT_FOUND"))
    equal(call("POST", f"/session/{s.id}/run", {"command": "x"}).status, 500)
    for body in ("", "null", "{}"):
        reply = call("POST", "/session", body)
        equal(reply.status, 200)
        equal(call("DELETE", "/session/" + reply.json()["session_id"]).status, 200)
    equal(call("POST", "/session", {"cwd": 5}).status, 400)
    equal(call("POST", "/session", {"cwd": "/proc/nope"}).status, 500)


def check_session_survives():
    s = session()
    s("f() { echo f; }; x='it is'; export E=1; declare -A m=([k]=v); cd /usr; set -u; trap 'echo usr' USR1; alias a=b; shopt -s extglob; readonly r=1; unset HOME")
    for end, expected in (("exit 7", "7"), ("x=lost; exit 0", 0), ("exec sh -c 'exit 5'", "5"), ("kill -9 $$", "-1"), ("set -e; false", "1"),
                          ("echo $undefined", "127"), ("exec 240<&- 241>&-; exit 9", "9")):
        got = code(s(end))
        equal(got, expected)
        equal(texts(s('f; echo "$x $E ${m[k]} $r $PWD $- ${HOME-unset}"; env | grep -c ^E=; trap -p; alias a; shopt -q extglob && echo ext; kill -USR1 $$')),
              ["f", "it is 1 v 1 /usr " + texts(s("echo $-"))[0] + " unset", "1", "trap -- 'echo usr' SIGUSR1", "alias a='b'", "ext", "usr"])
    equal(texts(s("trap 'echo bye' EXIT; echo hi; exit 3")), ["hi", "bye"])
    equal(code(s("exec ls /nonexistent-xyz")), "2")
    for i in range(30):
        equal(code(s(f"n=$((${{n:-0}})); exit {i + 1}")), str(i + 1))
    equal(texts(s("f; b=$BASHPID; echo $((b == $$))")), ["f", "1"])
    call("DELETE", "/session/" + s.id)


def check_session_timeout():
    s = session()
    s("x=1; sleep 300 & old=$!")
    start = time.time()
    events = s("y=2; sleep 100 & sleep 100 | cat", timeout=200)
    assert time.time() - start < 2
    equal(code(events), "-1")
    assert "200 ms" in events[-1]["error"]["traceback"][0], events
    equal(texts(s("echo $x$y; kill -0 $old && echo old lives; pgrep -f '^sleep 100$' | wc -l")), ["1", "old lives", "0"])
    start = time.time()
    equal(code(s("while :; do :; done", timeout=200)), "-1")
    assert time.time() - start < 2
    s("kill $old")
    # A client that leaves takes its run with it.
    c = socket.create_connection(("127.0.0.1", PORT))
    body = json.dumps({"command": "echo ready; sleep 123"})
    c.sendall(f"POST /session/{s.id}/run HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    data = b""
    while b"ready" not in data:
        data += c.recv(4096)
    c.close()
    wait_for(lambda: not texts(run("pgrep -f '^sleep 123$' || true")), 8)
    equal(texts(s("echo $x")), ["1"])
    # One after the other.
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(texts(s(f"echo a{i}; sleep 0.05; echo b{i}")))) for i in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(sorted(results), [[f"a{i}", f"b{i}"] for i in range(5)])
    # Deleting ends what runs, by either route.
    for route in ("/session/", "/command?id="):
        d = session()
        result = []
        t = threading.Thread(target=lambda: result.append(d("echo ready; sleep 77")))
        t.start()
        time.sleep(0.3)
        start = time.time()
        equal(call("DELETE", route + d.id).status, 200)
        t.join()
        assert time.time() - start < 3
        equal(result[0][-1]["error"]["evalue"], "-1")
    call("DELETE", "/session/" + s.id)
    assert not texts(run("pgrep -f '^sleep 77$' || true"))


def check_metrics():
    for _ in range(2):
        reply = call("GET", "/metrics").json()
        equal(sorted(reply), ["cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib", "timestamp"])
        assert reply["cpu_count"] > 0 and 0 <= reply["cpu_used_pct"] <= 100, reply
        assert 0 < reply["mem_used_mib"] <= reply["mem_total_mib"], reply
        assert abs(reply["timestamp"] - time.time() * 1000) < 5000
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    connection.request("GET", "/metrics/watch")
    response = connection.getresponse()
    first = response.readline()
    assert json.loads(first) and response.readline() == b"\n" and json.loads(response.readline())
    connection.close()
    equal(call("GET", "/v1/isolated/capabilities").json()["available"], False)
    equal(call("POST", "/v1/isolated/session", {}).status, 503)
    equal(call("GET", "/v1/isolated/sessions").json()["code"], "SERVICE_UNAVAILABLE")


def check_watch():
    os.makedirs(ROOT + "/watched")
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    connection.request("GET", f"/files/watch?path={ROOT}/watched&recursive=true")
    response = connection.getresponse()
    equal(json.loads(response.readline())["type"], "ready")
    response.readline()
    open(ROOT + "/watched/f", "w").close()
    event = json.loads(response.readline())
    equal((event["type"], event["path"]), ("created", ROOT + "/watched/f"))
    connection.close()
    equal(call("GET", "/files/watch?path=/nope").status, 404)
    equal(call("GET", "/files/watch").status, 400)


class WebSocket:
    def __init__(self, target):
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=10)
        self.socket.sendall((f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode())
        self.buffer = b""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.exactly(1)
        self.status = int(head.split()[1])

    def exactly(self, n):
        while len(self.buffer) < n:
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError
            self.buffer += piece
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def frame(self):
        a, b = self.exactly(2)
        length = b & 127
        if length == 126:
            length = int.from_bytes(self.exactly(2), "big")
        elif length == 127:
            length = int.from_bytes(self.exactly(8), "big")
        return a & 15, self.exactly(length)

    def send(self, opcode, data):
        head = bytes([0x80 | opcode])
        head += bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0xFE]) + len(data).to_bytes(2, "big")
        self.socket.sendall(head + b"\0\0\0\0" + data)

    def text(self, **value):
        self.send(1, json.dumps(value).encode())

    def until(self, wanted):
        """Frames until `wanted` is in the collected output (bytes) or a text frame of that type comes (str)."""
        output, frames = b"", []
        while True:
            opcode, data = self.frame()
            frames.append((opcode, data))
            if opcode == 2:
                output += data[1:]
                if isinstance(wanted, bytes) and wanted in output:
                    return output
            if opcode == 1:
                assert data.endswith(b"}\n"), data
                if wanted == json.loads(data)["type"]:
                    return json.loads(data), output, frames
            if opcode == 8:
                assert wanted == "close", (wanted, data, output)
                return int.from_bytes(data[:2], "big"), data[2:].decode()


def check_pty():
    reply = call("POST", "/pty", "")
    equal(reply.status, 201)
    pid = reply.json()["session_id"]
    equal(call("GET", "/pty/" + pid).json(), {"session_id": pid, "running": False, "output_offset": 0})
    equal(call("GET", "/pty/nope").json()["code"], "CONTEXT_NOT_FOUND")
    equal(WebSocket("/pty/nope/ws").status, 404)
    equal(call("GET", f"/pty/{pid}/ws").status >= 400, True)
    w = WebSocket(f"/pty/{pid}/ws")
    equal(w.status, 101)
    equal(w.until("connected")[0], {"type": "connected", "session_id": pid, "mode": "pty"})
    w.send(2, b"\0stty size; tty; echo m$((1+1))k $TERM\n")
    out = w.until(b"m2k")
    assert b"24 80" in out and b"/dev/pts/" in out, out
    w.text(type="resize", cols=100, rows=40)
    w.text(type="stdin", data="stty size; echo n$((1+1))k\n")
    assert b"40 100" in w.until(b"n2k")
    w.text(type="ping")
    w.until("pong")
    w.text(type="nonsense")
    equal(w.until("error")[0]["code"], "INVALID_FRAME")
    w.send(1, b"not json")
    w.send(2, b"\x07ignored")
    equal(call("GET", f"/pty/{pid}/ws").json()["code"], "ALREADY_CONNECTED")
    equal(WebSocket(f"/pty/{pid}/ws").status, 409)
    # SIGINT reaches the foreground job.
    w.send(2, b"\0sleep 55; echo s=$?\n")
    time.sleep(0.3)
    w.text(type="signal", signal="SIGINT")
    w.send(2, b"\0echo p$((2+2))q\n")
    w.until(b"p4q")
    assert not texts(run("pgrep -f '^sleep 55$' || true"))
    # Takeover, with replay before connected.
    total = call("GET", "/pty/" + pid).json()["output_offset"]
    w2 = WebSocket(f"/pty/{pid}/ws?takeover=1&since=5")
    equal(w.until("close"), (4001, "TAKEN_OVER"))
    _, _, seen = w2.until("connected")
    equal(len(seen), 2)
    opcode, replay = seen[0]
    equal((opcode, replay[0], int.from_bytes(replay[1:9], "big")), (2, 3, 5))
    assert len(replay) - 9 >= total - 5
    # Leaving and coming back: nothing lost meanwhile.
    w2.send(2, b"\0(sleep 0.3; echo la$((1+1))te) &\n")
    time.sleep(0.1)
    offset = call("GET", "/pty/" + pid).json()["output_offset"]
    w2.socket.close()
    time.sleep(0.6)
    wait_for(lambda: WebSocket(f"/pty/{pid}/ws?since={offset}").status == 101) if False else None
    w3 = WebSocket(f"/pty/{pid}/ws?takeover=1&since={offset}")
    _, _, seen = w3.until("connected")
    assert b"la2te" in b"".join(data for op, data in seen if op == 2), seen
    # Everything printed comes before the exit.
    w3.send(2, b"\0seq 1 20000; exit 6\n")
    exit_frame, output, _ = w3.until("exit")
    equal(exit_frame, {"type": "exit", "exit_code": 6})
    assert b"20000\r\n" in output
    equal(w3.until("close"), (1000, "process exited"))
    equal(call("GET", "/pty/" + pid).json()["running"], False)
    # The next client starts it again, now with pipes.
    w4 = WebSocket(f"/pty/{pid}/ws?pty=0&since=999999999")
    equal(w4.until("connected")[0]["mode"], "pipe")
    w4.send(2, b"\0echo out; echo err >&2; exit 3\n")
    exit_frame, _, seen = w4.until("exit")
    equal(exit_frame["exit_code"], 3)
    equal(sorted(data for op, data in seen if op == 2), [b"\x01out\n", b"\x02err\n"])
    w5 = WebSocket(f"/pty/{pid}/ws?since=999999999")
    w5.until("connected")
    equal(call("DELETE", "/pty/" + pid).status, 200)
    equal(w5.until("exit")[0]["exit_code"], -1)
    equal(w5.until("close")[0], 1000)
    equal(call("DELETE", "/pty/" + pid).status, 404)
    reply = call("POST", "/pty", {"cwd": ROOT + "/pty-dir", "command": "pwd; echo $0"})
    w6 = WebSocket(f"/proxy/{PORT}/pty/{reply.json()['session_id']}/ws")
    _, output, _ = w6.until("exit")
    assert (ROOT + "/pty-dir").encode() in output, output


def main():
    binary, *names = sys.argv[1:]
    env = dict(os.environ, EXECD_ENVS=ROOT + "/env", OSB_CHECK="kept", JUPYTER_TOKEN="secret")
    daemon = subprocess.Popen([binary, "--port", str(PORT), "tail", "-f", "/dev/null"], env=env)
    try:
        def up():
            try:
                return call("GET", "/ping").status == 200
            except OSError:
                return False
        wait_for(up)
        failures = 0
        for name, check in list(globals().items()):
            if not name.startswith("check_") or (names and name[6:] not in names):
                continue
            start = time.time()
            try:
                check()
                print(f"ok    {name[6:]} ({time.time() - start:.2f} s)", flush=True)
            except Exception as error:
                failures += 1
                import traceback
                traceback.print_exc()
                print(f"FAIL  {name[6:]}: {error!r}"[:600], flush=True)
        daemon.terminate()
        equal(daemon.wait(5), 0)
        return 1 if failures else 0
    finally:
        daemon.kill()
        subprocess.run(["rm", "-rf", ROOT])


if __name__ == "__main__":
    sys.exit(main())
