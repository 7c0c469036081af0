#!/usr/bin/env python3
"""Drives execd --native as PID 1 of a pid namespace (needs root). Usage: native_check.py PATH_OF_EXECD"""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = tempfile.mkdtemp(prefix="execd-native-")


def equal(a, b):
    assert a == b, f"{a!r} != {b!r}"


class Sandbox:
    def __init__(self, binary):
        self.paths = [f"{ROOT}/{len(os.listdir(ROOT))}-{name}" for name in ("api", "control")]
        sockets = []
        for path in self.paths:
            s = socket.socket(socket.AF_UNIX)
            s.bind(path)
            s.listen(64)
            sockets.append(s)

        def place():
            first, second = (os.dup(s.fileno()) for s in sockets)
            spare = [os.dup2(fd, n) for fd, n in ((first, 100), (second, 101))]
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)
        self.process = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", binary, "--native"],
                                        preexec_fn=place, close_fds=False, env={}, stderr=subprocess.DEVNULL)
        for s in sockets:
            s.close()

    def control(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(self.paths[1])
        return s

    def http(self, method, target, body=b""):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(10)
        s.connect(self.paths[0])
        s.sendall(f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        data = b""
        while piece := s.recv(65536):
            data += piece
        return data


def send(s, value):
    data = json.dumps(value).encode()
    s.sendall(struct.pack(">I", len(data)) + data)


def receive(s):
    def exactly(n):
        data = b""
        while len(data) < n:
            piece = s.recv(n - len(data))
            if not piece:
                return None
            data += piece
        return data
    head = exactly(4)
    return head and json.loads(exactly(struct.unpack(">I", head)[0]))


def init(argv, env=(), cwd="/", uid=0, gid=0):
    return {"init": {"argv": argv, "env": list(env), "cwd": cwd, "uid": uid, "gid": gid}}


def command(sandbox, text):
    return sandbox.http("POST", "/command", json.dumps({"command": text}).encode())


def check_life(binary):
    sandbox = Sandbox(binary)
    c = sandbox.control()
    equal(receive(c), {"version": 1, "state": "waiting"})
    assert b"200 OK" in sandbox.http("GET", "/ping")
    send(c, init(["sleep", "1000"], [["A", "from init"], ["PATH", "/usr/bin:/bin"]], cwd="/tmp"))
    state = receive(c)
    equal((state["state"], state["pid"] > 1), ("running", True))
    out = command(sandbox, "echo $A; pwd; echo $EXECD_ENVS $USER $HOME; cat /proc/1/comm; kill -TERM 1; kill -INT 1; sleep 0.1; echo still")
    for text in (b'"from init"', b'"/tmp"', b'"/opt/opensandbox/.env root /root"', b'"execd"', b'"still"'):
        assert text in out, (text, out)
    out = command(sandbox, "ls /proc/1/fd >/dev/null 2>&1; cat /proc/1/environ; (exec -a orphan sleep 0.2) & disown; (setsid sleep 0.3 &)")
    time.sleep(0.6)
    out = command(sandbox, "ps -e -o stat= | grep -c Z")
    assert b'"text":"0"' in out, out
    second = sandbox.control()
    equal(receive(second)["state"], "running")
    command(sandbox, "setsid sleep 777 & sleep 0.1")
    command(sandbox, f"kill -9 {state['pid']}")
    for s in (c, second):
        equal(receive(s), {"version": 1, "state": "ended", "signal": 9})
    third = sandbox.control()
    equal(receive(third), {"version": 1, "state": "ended", "signal": 9})
    assert b"500 " in command(sandbox, "true")
    assert sandbox.process.poll() is None
    send(third, {"ack": True})
    equal(sandbox.process.wait(5), 0)
    equal(subprocess.run(["pgrep", "-f", "^sleep 777$"], capture_output=True).stdout, b"")


def check_exit_code(binary):
    sandbox = Sandbox(binary)
    c = sandbox.control()
    send(c, init(["sh", "-c", "sleep 0.1; exit 7"]))
    equal([receive(c)["state"] for _ in range(2)], ["waiting", "running"])
    equal(receive(c), {"version": 1, "state": "ended", "exit_code": 7})
    send(c, {"ack": True})
    equal(sandbox.process.wait(5), 0)


def check_failures(binary):
    script, no_interpreter = f"{ROOT}/script", f"{ROOT}/plain"
    for path, text in ((script, "#!/nope/interpreter\n"), (no_interpreter, "echo x\n")):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
    for argv, env, path, error in ((["/nope"], [], "/nope", 2), (["nope"], [["PATH", "/bin:/usr/bin"]], "/bin/nope", 2),
                                   (["/etc/passwd"], [], "/etc/passwd", 13), ([script], [], script, 2),
                                   ([no_interpreter], [], no_interpreter, 8)):
        sandbox = Sandbox(binary)
        c = sandbox.control()
        send(c, init(argv, env))
        equal(receive(c)["state"], "waiting")
        state = receive(c)
        equal((state["state"], state["path"], state["errno"]), ("failed", path, error))
        assert state["message"]
        equal(sandbox.process.wait(5), 1)


def check_identity(binary):
    sandbox = Sandbox(binary)
    c = sandbox.control()
    os.chmod(ROOT, 0o777)
    send(c, init(["sh", "-c", f"id -u > {ROOT}/id; sleep 100"], uid=4242, gid=4343))
    equal([receive(c)["state"] for _ in range(2)], ["waiting", "running"])
    time.sleep(0.2)
    equal(open(f"{ROOT}/id").read(), "4242\n")
    assert b'"4242"' in command(sandbox, "id -u")
    sandbox.process.kill()
    sandbox.process.wait()


def check_bad_frames(binary):
    sandbox = Sandbox(binary)
    for frame in (b"\xff\xff\xff\xff", struct.pack(">I", 3) + b"{}}", struct.pack(">I", 2) + b"{}"):
        c = sandbox.control()
        receive(c)
        c.sendall(frame)
        equal(receive(c), None)
    c = sandbox.control()
    send(c, init(["sleep", "100"]))
    equal([receive(c)["state"] for _ in range(2)], ["waiting", "running"])
    sandbox.process.kill()
    sandbox.process.wait()


def main():
    binary = os.path.abspath(sys.argv[1])
    try:
        for name, check in list(globals().items()):
            if name.startswith("check_"):
                check(binary)
                print("ok   ", name[6:], flush=True)
    finally:
        subprocess.run(["rm", "-rf", ROOT])


main()
