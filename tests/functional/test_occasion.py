"""A server for the occasion: the first osb starts it where none answers, the next ones use it, and it ends by itself."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from lib.rootless import unused_id
from lib.service import remove_claims
from lib.waiting import process_gone, process_stat, wait_for

RUN = ["run", "host", "--", "python3", "-c", "print(2+2)"]


class Place:
    """A machine on which nobody has a server: an empty /var/lib, a network with nothing but a loopback."""

    def __init__(self, bin_dir, user=0):
        self.directory = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp"))
        self.directory.chmod(0o755)
        self.lib, self.home = self.directory / "lib", self.directory / "h"  # short: sockets are below it
        for path in (self.lib, self.home):
            path.mkdir()
        os.chown(self.home, user, user)
        shutil.copy2(bin_dir / "osb", self.directory / "osb")
        self.user = user
        self.kept = self.lib / "osb-occasion" if user == 0 else self.home / ".local/state/osb-occasion"
        script = f"mount --make-rprivate / && mount --bind {self.lib} /var/lib && ip link set lo up && echo ready && exec sleep infinity"
        self.holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", script], stdout=subprocess.PIPE)
        assert self.holder.stdout.readline() == b"ready\n"

    def start(self, *words, env={}, **more):
        enter = ["nsenter", "-t", self.holder.pid, "-m", "-n"]
        if self.user:
            enter += ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", "--inh-caps=-all"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **env}
        return subprocess.Popen([*map(str, enter), self.directory / "osb", *map(str, words)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more)

    def osb(self, *words, env={}):
        process = self.start(*words, env=env)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def record(self):
        """pid, start, port, key; None when there is none, or its process has ended."""
        try:
            words = (self.kept / "record").read_text().split()
        except OSError:
            return None
        stat = process_stat(int(words[0]))
        return words if stat and str(stat["start_time"]) == words[1] and stat["state"] not in "ZX" else None

    def launchers(self):
        """Services that run here, as the kernel knows them: by what /var/lib is where they are. Their workers are forks of them, with the
        same name."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                name = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")[0]
                if name == b"osb-launcher" and os.path.samefile(f"/proc/{pid}/root/var/lib", self.lib):
                    found[int(pid)] = process_stat(pid)
            except OSError:
                continue
        return {pid for pid, stat in found.items() if stat and stat["parent"] not in found and not process_gone(pid)}

    def close(self):
        # A starter that was killed may have left one, and no server that knows of it.
        sandboxes = self.kept / "state/sandboxes"
        if self.record() or (sandboxes.is_dir() and any(sandboxes.iterdir())):
            self.osb("rm", "--all")
            self.osb("server", "stop")
        wait_for(lambda: not self.launchers(), 30, "no server is left")
        self.holder.kill()
        self.holder.wait()
        remove_claims(self.kept / "state")
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture(params=["root", "user"])
def place(request, bin_dir):
    made = Place(bin_dir, 0 if request.param == "root" else unused_id())
    yield made
    made.close()


@pytest.fixture
def roots(bin_dir):
    made = Place(bin_dir)
    yield made
    made.close()


def test_the_first_command_starts_it_and_the_next_use_it(place):
    first = place.osb(*RUN)
    assert (first.returncode, first.stdout) == (0, "4\n"), first
    assert first.stderr.count("\n") == 1 and "started for the occasion" in first.stderr and "osb server stop" in first.stderr
    record = place.record()
    second = place.osb(*RUN)
    assert (second.returncode, second.stdout, second.stderr) == (0, "4\n", ""), second
    assert place.record() == record
    kept = place.kept / "record"
    assert kept.stat().st_mode & 0o777 == 0o600, "the key is in it"
    assert place.osb("run", "-d", "--name", "stays", "host", "--", "sleep", "1000").returncode == 0
    assert place.osb("exec", "stays", "--", "echo", "in").stdout == "in\n"
    status = place.osb("server", "status")
    assert status.returncode == 0 and f"127.0.0.1:{record[2]}" in status.stdout and record[3] not in status.stdout
    assert place.osb("server", "stop").returncode == 0
    assert place.record() is None and process_gone(int(record[0]))
    assert place.osb("server", "status").returncode == 1
    # what it left lives on, and the next server knows it
    again = place.osb("exec", "stays", "--", "echo", "still")
    assert again.stdout == "still\n" and "started for the occasion" in again.stderr


def test_nobody_else_is_let_in(roots):
    assert roots.osb(*RUN).returncode == 0
    port = roots.record()[2]
    refused = roots.osb("--domain", f"127.0.0.1:{port}", "ls")
    assert refused.returncode == 1 and "API_KEY" in refused.stderr


def test_many_at_once_start_one(roots):
    started = [roots.start(*RUN) for _ in range(8)]
    ends = [(process.communicate(timeout=90), process.returncode) for process in started]
    assert [(status, out) for (out, _), status in ends] == [(0, "4\n")] * 8, ends
    assert sum("started for the occasion" in err for (_, err), _ in ends) == 1
    assert len(roots.launchers()) == 1


@pytest.mark.parametrize("named", ["flag", "server", "variable", "file", "switched off", "configured"])
def test_never_for_a_server_that_somebody_named(roots, named):
    env, words = {}, ["ls"]
    if named == "flag":
        words = ["--domain", "localhost:8080", "ls"]
    elif named == "server":
        words = ["ls", "--server", "localhost:8080"]
    elif named == "variable":
        env["OPEN_SANDBOX_DOMAIN"] = "localhost:8080"
    elif named == "file":
        (roots.home / ".opensandbox").mkdir()
        (roots.home / ".opensandbox" / "config.toml").write_text('[connection]\ndomain = "localhost:8080"\n')
    elif named == "switched off":
        env["OPEN_SANDBOX_START_SERVER"] = "0"
    else:
        (roots.home / ".sandbox.toml").write_text("[server]\nport = 8080\n")
    done = roots.osb(*words, env=env)
    assert done.returncode == 1 and "SERVER::UNREACHABLE" in done.stderr and "remedy" in done.stderr, done
    assert not roots.launchers() and not (roots.kept / "record").exists()


def test_it_ends_when_nobody_uses_it(roots):
    env = {"OPEN_SANDBOX_SERVER_IDLE": "2s"}
    made = roots.osb("run", "-d", "host", "--", "sleep", "1000", env=env)
    assert made.returncode == 0, made
    pid = int(roots.record()[0])
    time.sleep(5)
    assert roots.record(), "a sandbox is a use"
    assert roots.osb("rm", made.stdout.strip(), env=env).returncode == 0
    wait_for(lambda: process_gone(pid), 30, "the server ends by itself")
    wait_for(lambda: not (roots.kept / "record").exists(), 10, "and says so")
    assert roots.osb(*RUN, env=env).stdout == "4\n"


def test_a_command_that_waits_is_a_use(roots):
    """Nothing of it is a sandbox, and it asks for nothing."""
    env = {"OPEN_SANDBOX_SERVER_IDLE": "1s"}
    watching = roots.start("events", env=env)
    wait_for(roots.record, 20, "the server runs")
    time.sleep(4)
    assert roots.record() and watching.poll() is None
    watching.terminate()
    watching.communicate(timeout=20)
    wait_for(lambda: not (roots.kept / "record").exists(), 20, "the server ends after it")


def test_kill_9_at_any_moment(roots):
    """Whoever starts it is killed, sooner or later; the next command works, and there is one server."""
    for after in [0.001 * step for step in (2, 5, 8, 12, 16, 20, 25, 30, 40, 60)]:
        process = roots.start(*RUN)
        time.sleep(after)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        done = roots.osb(*RUN)
        assert (done.returncode, done.stdout) == (0, "4\n"), (after, done)
        assert len(roots.launchers()) == 1, after
        assert roots.osb("server", "stop").returncode == 0
        wait_for(lambda: not roots.launchers(), 20, "it has ended")


def test_the_server_is_killed(roots):
    assert roots.osb(*RUN).returncode == 0
    old = roots.record()
    os.kill(int(old[0]), signal.SIGKILL)
    wait_for(lambda: process_gone(int(old[0])), 5, "the kernel has ended it")
    done = roots.osb(*RUN)
    assert (done.returncode, done.stdout) == (0, "4\n") and roots.record()[0] != old[0], done


def test_one_that_cannot_start_says_why(roots):
    (roots.lib / "osb-occasion").mkdir()
    (roots.lib / "osb-occasion" / "state").write_text("in the way")
    done = roots.osb(*RUN)
    assert done.returncode == 125 and "none could be started" in done.stderr and "state" in done.stderr and "osb doctor" in done.stderr, done


def test_images_are_those_of_the_server_that_other_commands_ask(roots):
    """As a pull: one is started, unless somebody has configured one, who is told how to look without it."""
    listed = roots.osb("images", "ls")
    assert listed.returncode == 0 and listed.stdout.splitlines()[1].startswith("host "), listed
    assert "started for the occasion" in listed.stderr and roots.record()
    assert roots.osb("server", "stop").returncode == 0
    (roots.home / ".sandbox.toml").write_text("")
    for words in (("ls",), ("rm", "x")):
        refused = roots.osb("images", *words)
        assert refused.returncode == 1 and "your server does not run" in refused.stderr and "--state-dir DIR" in refused.stderr, refused
    local = roots.osb("images", "ls", "--config", roots.home / ".sandbox.toml")
    assert local.returncode == 0 and "\nhost " in local.stdout, local


class TestInTheBackground:
    """osb server start --detach, stop, status."""

    def test_a_life(self, roots):
        assert roots.osb("server", "status").returncode == 1
        assert "no server" in roots.osb("server", "stop").stderr
        started = roots.osb("server", "start", "--detach")
        assert started.returncode == 0 and "localhost:8080" in started.stdout.replace("127.0.0.1", "localhost"), started
        assert "runs already" in roots.osb("server", "start", "--detach").stdout
        done = roots.osb(*RUN)
        assert (done.stdout, done.stderr) == ("4\n", ""), done
        status = roots.osb("server", "status")
        assert status.returncode == 0 and "runs, pid" in status.stdout and "yes," in status.stdout
        assert roots.osb("server", "stop").returncode == 0
        assert not roots.launchers()

    def test_two_at_once_start_one(self, roots):
        both = [roots.start("server", "start", "--detach") for _ in range(3)]
        assert [process.communicate(timeout=60)[1:] and process.returncode for process in both] == [0, 0, 0]
        assert len(roots.launchers()) == 1
        assert roots.osb("server", "stop").returncode == 0

    def test_the_starter_is_killed(self, roots):
        for after in (0.004, 0.01, 0.02, 0.04):
            process = roots.start("server", "start", "--detach")
            time.sleep(after)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            started = roots.osb("server", "start", "--detach")
            assert started.returncode == 0, started
            assert len(roots.launchers()) == 1
            assert roots.osb("server", "stop").returncode == 0
            wait_for(lambda: not roots.launchers(), 20, "it has ended")
