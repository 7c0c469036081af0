"""osb run and osb exec pass bytes, signals and terminals on; osb cp copies both ways; osb ls, top and events tell what is there."""

import fcntl
import hashlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pytest
from lib.api import Api
from lib.plugin import service_class

MEGABYTES = 100


@pytest.fixture(scope="module")
def api(keyed_service):
    return Api(keyed_service)


@pytest.fixture(scope="module")
def made(api):
    name = api.create(metadata={"name": "cellar"})["id"]
    yield name
    api.delete(name)


@pytest.fixture(scope="module")
def command(api, bin_dir):
    environment = {"PATH": os.environ["PATH"], "OPEN_SANDBOX_DOMAIN": "%s:%d" % api.address, "OPEN_SANDBOX_API_KEY": api.key}

    def start(*words, **more):
        return subprocess.Popen([bin_dir / "osb", *words], env={**environment, **more.pop("env", {})}, **more)

    return start


@pytest.fixture(scope="module")
def osb(command):
    def run(*words, input=b"", timeout=60, stdin=subprocess.PIPE, **more):
        process = command(*words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        out, err = process.communicate(input if stdin == subprocess.PIPE else None, timeout)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    return run


EVERY_BYTE = bytes(range(256)) * 3


class TestBytes:
    def test_output_and_errors_are_what_was_written(self, osb, made):
        script = "import os; b=bytes(range(256))*3; os.write(1,b); os.write(2,b[::-1]); os._exit(9)"
        done = osb("exec", made, "--", "python3", "-c", script)
        assert (done.returncode, done.stdout, done.stderr) == (9, EVERY_BYTE, EVERY_BYTE[::-1])

    def test_input_is_what_was_given(self, osb):
        done = osb("run", "-i", "host", "--", "cat", input=EVERY_BYTE)
        assert (done.returncode, done.stdout) == (0, EVERY_BYTE), done.stderr

    def test_input_from_a_file_and_from_nothing(self, osb, made, tmp_path):
        (tmp_path / "given").write_bytes(EVERY_BYTE * 4000)
        with open(tmp_path / "given", "rb") as given:
            assert osb("exec", "-i", made, "--", "cat", stdin=given).stdout == EVERY_BYTE * 4000
        assert osb("exec", "-i", made, "--", "cat", stdin=subprocess.DEVNULL).stdout == b""

    def test_without_i_there_is_none(self, osb, made):
        assert osb("exec", made, "--", "cat", input=b"not for it").stdout == b""

    def test_a_program_that_does_not_read_ends_all_the_same(self, osb, made):
        assert osb("exec", "-i", made, "--", "sh", "-c", "exit 4", input=bytes(8 << 20)).returncode == 4

    def test_a_hundred_megabytes_in_and_out(self, command, made, tmp_path):
        """tar c | osb exec -i ID -- tar x, and back."""
        (tmp_path / "in").mkdir()
        (tmp_path / "out").mkdir()
        data = os.urandom(1 << 20)
        with open(tmp_path / "in" / "random", "wb") as file:
            for part in range(MEGABYTES):
                file.write(hashlib.sha256(bytes([part])).digest() + data[32:])
        digest = hashlib.file_digest(open(tmp_path / "in" / "random", "rb"), "sha256").hexdigest()
        pack = subprocess.Popen(["tar", "c", "-C", tmp_path / "in", "random"], stdout=subprocess.PIPE)
        inside = command("exec", "-i", "-w", "/tmp", made, "--", "sh", "-c", "tar x && sha256sum random", stdin=pack.stdout, stdout=subprocess.PIPE)
        assert inside.communicate(timeout=120)[0].split()[0].decode() == digest
        assert (pack.wait(), inside.returncode) == (0, 0)
        back = command("exec", "-w", "/tmp", made, "--", "tar", "c", "random", stdout=subprocess.PIPE)
        subprocess.run(["tar", "x", "-C", tmp_path / "out"], stdin=back.stdout, check=True, timeout=120)
        assert back.wait(30) == 0
        assert hashlib.file_digest(open(tmp_path / "out" / "random", "rb"), "sha256").hexdigest() == digest

    def test_a_hundred_megabytes_through_a_new_sandbox(self, command, tmp_path):
        """tar c | osb run -i host -- tar x, and back, in one line."""
        (tmp_path / "in").mkdir()
        (tmp_path / "out").mkdir()
        with open(tmp_path / "in" / "random", "wb") as file:
            for _ in range(MEGABYTES):
                file.write(os.urandom(1 << 20))
        pack = subprocess.Popen(["tar", "c", "-C", tmp_path / "in", "random"], stdout=subprocess.PIPE)
        through = command("run", "-i", "-w", "/tmp", "host", "--", "sh", "-c", "tar x && tar c random", stdin=pack.stdout, stdout=subprocess.PIPE)
        subprocess.run(["tar", "x", "-C", tmp_path / "out"], stdin=through.stdout, check=True, timeout=140)
        assert (pack.wait(30), through.wait(30)) == (0, 0)
        subprocess.run(["cmp", tmp_path / "in" / "random", tmp_path / "out" / "random"], check=True)

    def test_the_input_is_left_as_it_was(self, osb, made):
        """It belongs to whoever started us, too."""
        ours, theirs = os.pipe()
        os.write(theirs, b"x")
        os.close(theirs)
        before = fcntl.fcntl(ours, fcntl.F_GETFL)
        done = osb("exec", "-i", made, "--", "cat", stdin=ours)
        assert (done.stdout, fcntl.fcntl(ours, fcntl.F_GETFL)) == (b"x", before)
        os.close(ours)

    def test_nobody_reads_the_output(self, command, made):
        process = command("exec", made, "--", "yes", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(20) == 128 + signal.SIGPIPE


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_the_program_gets_it_and_decides(self, command, number):
        name = number.name.removeprefix("SIG")
        script = f"trap 'echo got {name}; exit 3' {name}; echo on; while :; do sleep 0.05; done"
        process = command("run", "host", "--", "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"on\n"
        process.send_signal(number)
        assert (process.communicate(timeout=20)[0], process.returncode) == (f"got {name}\n".encode(), 3)

    def test_one_that_ends_it_is_the_exit_status(self, osb, made):
        assert osb("exec", made, "--", "sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL

    def test_the_second_one_is_final(self, api, command):
        before = {one["id"] for one in api.list_all()}
        process = command("run", "host", "--", "sh", "-c", "trap '' INT; echo on; sleep 1000", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.readline() == b"on\n"
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None, "the program ignores it"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT
        assert {one["id"] for one in api.list_all()} == before


class TestRun:
    def test_detached_with_a_name(self, api, osb):
        made = osb("run", "-d", "--name", "attic", "--ttl", "2m", "host", "--", "sh", "-c", "echo begun; exec sleep 100").stdout.decode().strip()
        try:
            seen = api.get(made)
            assert seen["metadata"]["name"] == "attic" and seen["entrypoint"][0] == "sh" and seen["expiresAt"]
            assert osb("exec", "attic", "--", "echo", "in").stdout == b"in\n"
            assert osb("logs", "attic").stdout.endswith(b"begun\n")
            assert osb("ls", "-q", "-f", "name=attic").stdout.decode().strip() == made
            assert osb("rm", "attic").stdout.decode().strip() == made
        finally:
            api.call("DELETE", f"/sandboxes/{made}")

    def test_user(self, osb, made):
        assert osb("exec", "-u", "65534:65533", made, "--", "id", "-u").stdout == b"65534\n"
        assert osb("run", "-u", "1234", "host", "--", "id", "-g").stdout == b"1234\n"

    def test_limits(self, osb):
        done = osb("run", "--pids", "100", "--disk", "64Mi", "host", "--", "sh", "-c", "head -c 100000000 /dev/zero > /root/full")
        assert done.returncode != 0 and b"No space" in done.stderr, done

    def test_a_terminal(self, command):
        ours, theirs = pty.openpty()
        process = command("run", "-it", "host", "--", "sh", "-c", "test -t 0 && stty size && read line && echo got $line", stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env={"TERM": "xterm"})
        os.close(theirs)
        os.write(ours, b"hello\r")
        seen = b""
        while process.poll() is None or select.select([ours], [], [], 0.2)[0]:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                seen += os.read(ours, 4096)
            except OSError:
                break
        os.close(ours)
        assert process.wait(20) == 0 and b"got hello" in seen, seen

    def test_what_does_not_go_together(self, osb):
        for words in (["-d", "-i"], ["--ttl", "5m"], ["-d", "-t", "5s"], ["-u", "root"]):
            assert osb("run", *words, "host", "--", "true").returncode == 2, words


class TestBareImage:
    """An image with one static program: no tail to wait with, no shell."""

    @pytest.fixture(scope="class")
    def bare(self, bin_dir, tmp_path_factory, request):
        root = tmp_path_factory.mktemp("bare")
        root.chmod(0o755)
        shutil.copy(bin_dir / "osb-probe", root / "probe")
        service = service_class(request)(bin_dir, images={"bare": str(root)})
        try:
            service.start()
            yield service
        finally:
            service.destroy()

    def test_its_program_runs(self, bare, bin_dir):
        environment = {"PATH": os.environ["PATH"], "OPEN_SANDBOX_DOMAIN": "%s:%d" % bare.address}
        done = subprocess.run([bin_dir / "osb", "run", "bare", "--", "/probe", "list"], env=environment, capture_output=True, timeout=60)
        assert done.returncode == 0 and done.stdout.count(b"\n") > 5, done
        none = subprocess.run([bin_dir / "osb", "run", "bare", "--", "tail", "-f", "/dev/null"], env=environment, capture_output=True, timeout=60)
        assert none.returncode == 127, none


class TestCopy:
    def test_a_tree_and_back(self, osb, made, tmp_path):
        tree = tmp_path / "tree"
        (tree / "sub").mkdir(parents=True)
        (tree / "a").write_bytes(EVERY_BYTE)
        (tree / "sub" / "run").write_text("#!/bin/sh\necho copied\n")
        (tree / "sub" / "run").chmod(0o755)
        (tree / "link").symlink_to("a")
        done = osb("cp", str(tree), f"{made}:/tmp/copied")
        assert done.returncode == 0 and b"1 links" in done.stderr, done
        assert osb("exec", made, "--", "/tmp/copied/sub/run").stdout == b"copied\n"
        assert osb("cp", f"cellar:/tmp/copied", str(tmp_path / "back")).returncode == 0
        assert (tmp_path / "back" / "a").read_bytes() == EVERY_BYTE
        assert (tmp_path / "back" / "sub" / "run").stat().st_mode & 0o777 == 0o755

    def test_into_a_directory(self, osb, made, tmp_path):
        (tmp_path / "one").write_text("1")
        assert osb("cp", str(tmp_path / "one"), f"{made}:/tmp").returncode == 0
        assert osb("cp", f"{made}:/tmp/one", str(tmp_path / "two")).returncode == 0
        assert (tmp_path / "two").read_text() == "1"

    def test_what_is_not_there(self, osb, made, tmp_path):
        assert b"SOURCE is not there" in osb("cp", str(tmp_path / "none"), f"{made}:/tmp").stderr
        assert b"SOURCE is not there in the sandbox" in osb("cp", f"{made}:/none", str(tmp_path)).stderr
        assert b"one of SOURCE and TARGET" in osb("cp", "a", "b").stderr


class TestLists:
    def test_ls(self, osb, made):
        assert made in osb("ls", "-q").stdout.decode().split()
        assert osb("ls", "-q", "-f", "name=nobody").stdout == b""
        assert osb("ls", "--state", "paused", "-q").stdout == b""
        assert made.encode() in osb("ls", "--state", "running", "-o", "yaml").stdout

    def test_top(self, osb, made):
        rows = [line.split() for line in osb("top").stdout.decode().splitlines()]
        (row,) = [row for row in rows if row and row[0] == made]
        assert row[1] == "Running" and float(row[4]) > 0 and float(row[5]) > 0

    def test_events(self, api, command):
        process = command("events", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            seen = b""
            until = time.monotonic() + 20
            made = None
            while time.monotonic() < until and not (made and made.encode() in seen):
                made = made or (api.create()["id"] if time.monotonic() > until - 19 else None)
                if select.select([process.stdout], [], [], 0.2)[0]:
                    seen += os.read(process.stdout.fileno(), 4096)
            assert made and re.search(made.encode() + rb"  Created ", seen), seen
        finally:
            process.terminate()
            process.communicate(timeout=10)
            if made:
                api.delete(made)


class TestCompletion:
    def complete(self, osb, *line):
        return osb("__complete", "--", *line).stdout.decode().split()

    def test_commands_options_choices_and_ids(self, osb, made):
        assert {"sandbox", "run", "config"} <= set(self.complete(osb, ""))
        assert self.complete(osb, "sandbox", "re") == ["renew", "resume"]
        assert "--page-size" in self.complete(osb, "sandbox", "list", "--pa")
        assert self.complete(osb, "sandbox", "list", "-o", "") == ["json", "table", "yaml"]
        assert self.complete(osb, "sandbox", "get", made[:-3]) == [made]
        assert self.complete(osb, "exec", "cell") == ["cellar"]
        assert "host" in self.complete(osb, "run", "ho")
        assert self.complete(osb, "exec", made, "--", "l") == [], "what follows is the sandbox's"

    def shell(self, api, bin_dir, home, *words):
        environment = {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(home), "OPEN_SANDBOX_DOMAIN": "%s:%d" % api.address, "OPEN_SANDBOX_API_KEY": api.key}
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30)

    def test_bash(self, api, bin_dir, made, tmp_path):
        script = f"""source <(osb completion bash); COMP_LINE='osb sandbox get {made[:-2]}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDBREAKS=:; _osb; echo "${{COMPREPLY[@]}}"
        COMP_LINE='osb sandbox ki'; COMP_POINT=${{#COMP_LINE}}; _osb; echo "${{COMPREPLY[@]}}" """
        assert self.shell(api, bin_dir, tmp_path, "bash", "--norc", "-c", script).stdout.split() == [made, "kill"]

    def test_fish(self, api, bin_dir, made, tmp_path):
        if subprocess.run(["which", "fish"], capture_output=True).returncode:
            pytest.skip("no fish here")
        done = self.shell(api, bin_dir, tmp_path, "fish", "--no-config", "-c", f"osb completion fish | source; complete -C'osb sandbox get {made[:-2]}'")
        assert made in done.stdout, done

    def test_zsh_reads_it(self, api, bin_dir, tmp_path):
        if subprocess.run(["which", "zsh"], capture_output=True).returncode:
            pytest.skip("no zsh here")
        done = self.shell(api, bin_dir, tmp_path, "zsh", "-f", "-c", "autoload -U compinit; compinit -D -u; source <(osb completion zsh); print $_comps[osb]")
        assert done.stdout.strip() == "_osb", done


class TestManual:
    def test_every_page_is_well_formed(self, osb, tmp_path):
        assert osb("man", str(tmp_path)).returncode == 0
        pages = sorted(tmp_path.iterdir())
        assert {"osb.1", "osb-run.1", "osb-sandbox-list.1"} <= {page.name for page in pages}
        for page in pages:
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "120"})
            assert done.returncode == 0 and done.stderr == b"", (page.name, done.stderr)

    def test_the_document_is_the_present_one(self, osb):
        document = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "cli.md")
        assert osb("man", "--document").stdout.decode() == open(document, encoding="utf-8").read(), "osb man --document > docs/cli.md"
