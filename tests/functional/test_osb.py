"""The command line on sandboxes that are there: exec, a terminal that is left and come back to, logs, pause, renew, and ids by their
beginning."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from lib.api import Api
from lib.waiting import wait_for


@pytest.fixture(scope="module", params=["keyed", "open"])
def api(request):
    return Api(request.getfixturevalue("keyed_service" if request.param == "keyed" else "service"))


@pytest.fixture(scope="module")
def made(api):
    name = api.create(entrypoint=["sh", "-c", "echo ready; exec sleep 1000"])["id"]
    yield name
    api.delete(name)


@pytest.fixture(scope="module")
def osb(api, bin_dir):
    """Runs it to its end."""
    def run(*words, **more):
        return subprocess.run([bin_dir / "osb", *words], env=environment(api), capture_output=True, timeout=60, **more)

    return run


def environment(api):
    key = {"OPEN_SANDBOX_API_KEY": api.key} if api.key else {}
    return {"PATH": os.environ["PATH"], "OPEN_SANDBOX_DOMAIN": "%s:%d" % api.address, **key}


class TestExec:
    def test_output_and_status(self, osb, made):
        done = osb("exec", made, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
        assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")

    def test_workdir_and_timeout(self, osb, made):
        assert osb("exec", "-w", "/usr", made, "--", "pwd").stdout == b"/usr\n"
        assert osb("exec", "-t", "200ms", made, "--", "sleep", "30").returncode == 124

    def test_an_interrupt_ends_the_command(self, api, made, bin_dir):
        words = ["sh", "-c", "trap 'echo interrupted; exit 3' INT; echo on; while :; do sleep 0.1; done"]
        process = subprocess.Popen([bin_dir / "osb", "exec", made, "--", *words], env=environment(api), stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"on\n"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
        assert api.run(made, "pgrep -f 'echo interrupte[d]'").exit_code != 0, "it is gone"
        assert process.returncode != 0, rest

    def test_of_a_secured_sandbox(self, api, osb):
        secured = api.create(secureAccess=True)["id"]
        try:
            assert osb("exec", secured, "--", "echo", "in").stdout == b"in\n"
        finally:
            api.delete(secured)

    def test_what_is_not_there(self, osb, made):
        none = osb("exec", "01980000-0000-7000-8000-000000000000", "--", "true")
        assert none.returncode == 125 and b"SANDBOX::NOT_FOUND" in none.stderr
        assert b"no sandbox has an id that begins so" in osb("exec", "zzz", "--", "true").stderr
        assert osb("exec", made).returncode == 2


class TestByTheBeginning:
    def test_one(self, osb, made):
        assert osb("exec", made[:-1], "--", "echo", "found").stdout == b"found\n"

    def test_several(self, api, osb, made):
        other = api.create()["id"]
        try:
            done = osb("exec", "0", "--", "true")
            assert done.returncode == 125 and b"begin so; write more of it" in done.stderr
        finally:
            api.delete(other)


class Terminal:
    """osb shell with a terminal that this test holds the other end of."""

    def __init__(self, bin_dir, api, *words, size=(30, 100)):
        self.master, end = pty.openpty()
        self.resize(*size)
        self.process = subprocess.Popen([bin_dir / "osb", "shell", *words], env={**environment(api), "TERM": "xterm"}, stdin=end, stdout=end, stderr=end, start_new_session=True)
        os.close(end)
        self.seen = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text)

    def expect(self, pattern, timeout=15):
        """The match, when it has been written; what is before it is dropped."""
        end = time.monotonic() + timeout
        while not (found := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.seen[-2000:]!r}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    assert False, f"the terminal ended without {pattern!r}: {self.seen[-2000:]!r}"
        self.seen = self.seen[found.end():]
        return found

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(bin_dir, api, made):
    opened = []

    def open_one(*words, **more):
        opened.append(Terminal(bin_dir, api, made, *words, **more))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


class TestShell:
    def test_it_is_a_terminal_of_this_size(self, terminal):
        one = terminal()
        one.type(b"stty size; tty\n")
        one.expect(rb"30 100\r\n/dev/pts/\d+")
        one.resize(24, 71)
        os.kill(one.process.pid, signal.SIGWINCH)
        one.type(b"sleep 0.3; stty size\n")
        one.expect(rb"24 71\r\n")
        one.type(b"exit 5\n")
        assert one.process.wait(15) == 5

    def test_keys_reach_the_program(self, terminal):
        # Not a shell: a signal that dash gets between a command and the next is noticed when that one has ended.
        one = terminal("--", "python3", "-c", "import time; print('it\\'s on', flush=True); time.sleep(100); print('not reached')")
        one.expect(rb"it's on")
        one.type(b"\x03")
        assert one.process.wait(15) != 0
        assert b"not reached" not in one.seen

    def test_left_and_come_back_to(self, terminal):
        one = terminal()
        one.type(b"marked=yes; echo was-$marked\n")
        one.expect(rb"was-yes\r\n")
        one.type(b"\x10\x11")
        session = one.expect(rb"--attach (\S+)")[1].decode()
        assert one.process.wait(15) == 0
        again = terminal("--attach", session)
        again.expect(rb"was-yes")
        again.type(b"echo still-$marked; exit\n")
        again.expect(rb"still-yes\r\n")
        assert again.process.wait(15) == 0

    def test_a_single_control_p_is_the_programs(self, terminal):
        one = terminal("--", "sh", "-c", "stty raw -echo; echo on; head -c 2 | od -An -tx1")
        one.expect(rb"on")
        one.type(b"\x10x")
        one.expect(rb"10 78")

    def test_the_terminal_is_as_before(self, bin_dir, api, made):
        master, end = pty.openpty()
        before = termios.tcgetattr(end)
        process = subprocess.Popen([bin_dir / "osb", "shell", made, "--", "sleep", "100"], env=environment(api), stdin=end, stdout=end, start_new_session=True)
        wait_for(lambda: termios.tcgetattr(end)[3] != before[3], 10, "the terminal is raw")
        process.terminate()
        process.wait(15)
        assert termios.tcgetattr(end) == before
        os.close(master)
        os.close(end)

    def test_without_a_terminal(self, osb, made):
        done = osb("shell", made, stdin=subprocess.DEVNULL)
        assert done.returncode == 125 and b"osb exec" in done.stderr


class TestManaging:
    def test_logs(self, api, osb, bin_dir, made):
        assert osb("logs", made).stdout.endswith(b"ready\n")
        short = api.create(entrypoint=["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.4; done; exit 3"])["id"]
        try:
            assert [line.split()[-1] for line in osb("logs", "-f", short).stdout.splitlines()] == [b"1", b"2", b"3"]
        finally:
            api.delete(short)

    def test_pause_and_resume(self, api, osb, made):
        assert osb("pause", made).stdout.decode() == made + "\n"
        assert api.status(made)["state"] == "Paused"
        assert osb("resume", made[:-2]).returncode == 0
        assert api.status(made)["state"] == "Running"
        assert b"SANDBOX::NOT_PAUSED" in osb("resume", made).stderr

    def test_renew(self, api, osb, made):
        assert osb("renew", made, "2h").returncode == 0
        left = time.mktime(time.strptime(api.get(made)["expiresAt"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime())
        assert 7100 < left < 7300

    def test_inspect(self, osb, made):
        assert made.encode() in osb("inspect", made).stdout
