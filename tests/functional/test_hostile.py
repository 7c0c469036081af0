"""Code that turns against its own sandbox: the daemon still answers, or the sandbox ends and says truthfully why."""

import json
import subprocess
import time

import pytest
from lib import rawhttp
from lib.api import Api
from lib.service import Service
from lib.waiting import wait_for

PYTHON = "/usr/bin/python3"


def ended(api, sandbox_id, timeout=20):
    return wait_for(
        lambda: (status := api.status(sandbox_id))["state"] in ("Terminated", "Failed") and status,
        timeout, f"the end of {sandbox_id} is reported",
    )  # fmt: skip


def background(api, sandbox_id, command):
    ran = api.run(sandbox_id, command, background=True)
    return ran.events[0]["text"]


def answers(api, sandbox_id):
    """The daemon is there: it answers what needs no new process, quickly and correctly."""
    started = time.monotonic()
    assert api.ping(sandbox_id)
    assert api.execd(sandbox_id, "GET", "/metrics").status == 200
    assert api.execd(sandbox_id, "GET", "/files/info?path=/usr").json["/usr"]["type"] == "directory"
    assert api.download(sandbox_id, "/etc/passwd").startswith(b"root:")
    assert time.monotonic() - started < 5


def test_fork_bomb(api, make_sandbox):
    sandbox = make_sandbox(resourceLimits={"pids": "200"})["id"]
    bomb = background(api, sandbox, "f() { f | f & }; f; wait; sleep 4781")
    for _ in range(5):
        answers(api, sandbox)
    # No process can be made, and that is what a command is told.
    ran = api.execd(sandbox, "POST", "/command", json={"command": "echo x", "timeout": 20000}, timeout=40)
    assert ran.status == 200
    last = json.loads(ran.body.split(b"\n\n")[-2])
    assert last["type"] in ("error", "execution_complete")
    assert api.status(sandbox)["state"] == "Running"
    # Its group, all of it, can be ended.
    api.execd(sandbox, "DELETE", f"/command?id={bomb}", timeout=40)

    def recovered():
        fine = api.execd(sandbox, "POST", "/command", json={"command": "echo recovered", "timeout": 5000}, timeout=20)
        return b'"recovered"' in fine.body

    wait_for(recovered, 30, "commands run again")


def test_zombies_up_to_the_limit(api, make_sandbox):
    sandbox = make_sandbox(resourceLimits={"pids": "100"})["id"]
    script = "import os,time\nn=0\ntry:\n  while True:\n    if os.fork()==0: os._exit(0)\n    n+=1\nexcept OSError: print(n,flush=True)\ntime.sleep(4782)"
    command = background(api, sandbox, f'{PYTHON} -c "{script}"')
    wait_for(lambda: api.execd(sandbox, "GET", f"/command/{command}/logs").body, 20, "no further zombie fits")
    for _ in range(3):
        answers(api, sandbox)
    reply = api.execd(sandbox, "POST", "/command", json={"command": "echo x"})
    last = json.loads(reply.body.split(b"\n\n")[-2])
    assert last["type"] == "error" and "temporarily unavailable" in json.dumps(last).lower(), last
    assert api.execd(sandbox, "POST", "/session").status in (200, 500)
    assert api.execd(sandbox, "GET", f"/command/status/{command}").json["running"] is True
    api.execd(sandbox, "DELETE", f"/command?id={command}")
    assert api.run(sandbox, "ps -e -o stat= | grep -c ^Z || true").stdout == "0", "PID 1 reaped them all"


def test_kill_everything(api, make_sandbox):
    """The entry process is among the victims, so the sandbox is over; nobody pretends that it ended by itself."""
    sandbox = make_sandbox()["id"]
    try:
        api.execd(sandbox, "POST", "/command", json={"command": "kill -9 -1"})
    except rawhttp.Closed:
        pass  # the sandbox may be gone before its last event
    status = ended(api, sandbox)
    assert (status["state"], status["reason"]) == ("Failed", "KILLED_BY_SIGNAL")
    assert "9" in status["message"] or "KILL" in status["message"]


def test_kill_everything_else(api, make_sandbox):
    """An unprivileged user's kill -9 -1 takes only what is his."""
    sandbox = make_sandbox()["id"]
    ran = api.run(sandbox, "sleep 4783 & kill -9 -1; sleep 1", uid=4242)
    assert ran.exit_code in (-1, 0, 137)
    answers(api, sandbox)
    assert api.status(sandbox)["state"] == "Running"
    assert api.run(sandbox, "pgrep -u 4242 -c || true").stdout == "0"


def test_pid_1_cannot_be_killed(api, make_sandbox):
    sandbox = make_sandbox()["id"]
    for name in ("KILL", "TERM", "STOP", "SEGV", "ABRT", "HUP", "USR1", "INT", "QUIT"):
        api.run(sandbox, f"kill -{name} 1")
        answers(api, sandbox)
    assert api.status(sandbox)["state"] == "Running"


def test_memory_hog(api, make_sandbox):
    sandbox = make_sandbox(resourceLimits={"memory": "96Mi"})["id"]
    for hog in ("tail /dev/zero", f"{PYTHON} -c 'b = []\nwhile True: b.append(bytearray(1 << 20))'", "cat /dev/zero > /dev/shm/x; tail /dev/zero"):
        ran = api.run(sandbox, hog)
        assert ran.exit_code in (-1, 137, 1), ran.events[-1]
        answers(api, sandbox)
        api.run(sandbox, "rm -f /dev/shm/x")
    assert api.run(sandbox, "echo fine").stdout == "fine"
    assert api.status(sandbox)["state"] == "Running"


def test_memory_hog_as_the_entry_process(api, make_sandbox):
    sandbox = make_sandbox(resourceLimits={"memory": "64Mi"}, entrypoint=["sh", "-c", "sleep 0.5; exec tail /dev/zero"])["id"]
    status = ended(api, sandbox)
    assert status["state"] == "Failed"
    assert "memory" in status["message"].lower(), status


def test_a_command_without_descriptors(api, make_sandbox):
    sandbox = make_sandbox()["id"]
    close_all = "for fd in $(ls /proc/self/fd 2>/dev/null); do [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; exec 0<&- 1>&- 2>&-; sleep 0.3; exit 4"
    started = time.monotonic()
    ran = api.run(sandbox, "echo before; " + close_all)
    assert (ran.stdout, ran.exit_code) == ("before", 4)
    assert 0.25 < time.monotonic() - started < 10, "the end of its output is not its end"
    command = background(api, sandbox, close_all)
    status = wait_for(lambda: (s := api.execd(sandbox, "GET", f"/command/status/{command}").json) and not s["running"] and s, 10, "it ends")
    assert status["exit_code"] == 4
    answers(api, sandbox)


def test_out_of_descriptors(api, make_sandbox):
    """Whoever opens all files he may open starves himself, not the daemon."""
    sandbox = make_sandbox()["id"]
    script = "import os\nn=0\ntry:\n  while True: os.open('/dev/null',0); n+=1\nexcept OSError as e: print(e.errno)"
    assert api.run(sandbox, [PYTHON, "-c", script]).stdout == "24"
    answers(api, sandbox)


class OnSmallDisk(Service):
    """A service whose state directory is a small file system of its own, seen by nobody else."""

    def spawn(self):
        self.state_dir.mkdir(exist_ok=True)
        self.state_dir.chmod(0o755)
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.directory)}
        script = f"mount -t tmpfs -o size=192m,mode=755 small '{self.state_dir}' && exec '{self.bin_dir}/opensandbox-server' --config '{self.config_path}'"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.directory)  # fmt: skip
        self.scope.launcher = self.process


@pytest.fixture
def small(bin_dir):
    service = OnSmallDisk(bin_dir)
    try:
        yield service.start()
    finally:
        service.destroy()


def test_filling_the_disk(small):
    """No space left in the whole state directory: everything that needs none goes on, the rest says why, and room heals it."""
    api = Api(small)
    sandbox = api.create()["id"]
    full = api.run(sandbox, "cat /dev/zero > /tmp/fill; echo code $?")
    assert "No space left" in full.stderr and full.stdout == "code 1"
    answers(api, sandbox)
    assert api.run(sandbox, "echo fine; exit 3").exit_code == 3
    assert api.run(sandbox, "seq 1 200000").stdout.endswith("200000"), "output needs no disk while its reader keeps up"
    body = b"x" * (4 << 20)
    from lib.api import multipart

    form, media_type = multipart([({"path": "/tmp/upload"}, body)])
    reply = api.execd(sandbox, "POST", "/files/upload", body=form, headers={"Content-Type": media_type})
    assert reply.status == 500 and "no space" in reply.json["message"].lower(), reply
    command = background(api, sandbox, "seq 1 300000")
    status = wait_for(lambda: (s := api.execd(sandbox, "GET", f"/command/status/{command}").json) and not s["running"] and s, 10, "it ends")
    assert status["exit_code"] == 0, "a log that cannot be kept does not stop its command"
    api.run(sandbox, "rm /tmp/fill")
    api.upload(sandbox, "/tmp/upload", body)
    assert api.run(sandbox, "stat -c %s /tmp/upload").stdout == str(len(body))
    assert api.delete(sandbox).status == 204


def test_deleting_on_a_full_disk(small):
    api = Api(small)
    sandbox = api.create()["id"]
    api.run(sandbox, "cat /dev/zero > /tmp/fill; true")
    reply = api.delete(sandbox)
    assert reply.status == 204, reply

    def room_again():
        made = api.post_create()
        return made.status == 202 and made.json["id"]

    other = wait_for(room_again, 15, "what was deleted gives its space back")
    assert api.run(other, "echo fine").stdout == "fine"
    assert api.delete(other).status == 204


def test_unfair_neighbours_do_not_stop_the_others(api, make_sandbox):
    """While one sandbox burns everything it may, another one's command takes a bounded time."""
    bad = make_sandbox(resourceLimits={"pids": "100", "memory": "96Mi", "cpu": "500m"})["id"]
    good = make_sandbox()["id"]
    background(api, bad, "f() { f | f & }; f; yes > /dev/null & tail /dev/zero")
    started = time.monotonic()
    for _ in range(10):
        assert api.run(good, "echo fine").stdout == "fine"
    assert time.monotonic() - started < 20


def test_a_flood_of_output_nobody_reads(api, make_sandbox):
    """A client that never reads, a command that never stops writing: memory stays bounded on both sides."""
    sandbox = make_sandbox()["id"]
    with rawhttp.Connection(api.address, 30) as connection:
        body = json.dumps({"command": "head -c 40000000 /dev/zero | tr '\\0' x | fold -w 1000; echo written > /tmp/done"}).encode()
        connection.send_request("POST", f"/v1/sandboxes/{sandbox}/proxy/44772/command", [], body)
        wait_for(lambda: api.run(sandbox, "cat /tmp/done 2>/dev/null || true").stdout == "written", 60, "the command ends although nobody reads")
        own = int(api.run(sandbox, "awk '/^VmHWM/ { print $2 }' /proc/1/status").stdout)
        assert own < 16 * 1024, f"{own} KiB"
    assert api.service.server_memory_bytes() < 80 << 20
