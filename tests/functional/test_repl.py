"""`osb repl` as a person at a terminal uses it."""

import base64
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time

import pytest
from lib.waiting import wait_for


class Person:
    def __init__(self, bin_dir, service, *arguments, **environment):
        ours, theirs = pty.openpty()
        directory = environment.pop("directory", None)
        environment |= {"OPEN_SANDBOX_DOMAIN": f"{service.address[0]}:{service.address[1]}", "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(
            [bin_dir / "osb", "repl", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=directory,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.terminal = ours
        self.seen = ""

    def expect(self, text, timeout=30):
        """Everything up to the text, which must come in time."""
        deadline = time.monotonic() + timeout
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.terminal], [], [], left)[0], f"no {text!r} in {self.seen!r}"
            try:
                data = os.read(self.terminal, 4096)
            except OSError:  # how a terminal says that the other side is gone
                data = b""
            assert data, f"ended without {text!r}: {self.seen!r}"
            self.seen += data.decode()
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, text):
        os.write(self.terminal, text.encode())

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
        os.close(self.terminal)


@pytest.fixture
def person(bin_dir, service):
    made = []

    def sit_down(*arguments, **environment):
        made.append(Person(bin_dir, service, *arguments, **environment))
        return made[-1]

    yield sit_down
    for each in made:
        each.end()


def test_a_session(person, api):
    before = {item["id"] for item in api.list_all()}
    prompt = person()
    assert "python in sandbox" in prompt.expect(">>> ")
    prompt.type("x = 40\n")
    prompt.expect(">>> ")
    prompt.type("def f(n):\n")
    prompt.expect("... ")
    prompt.type("    return n + 2\n")
    prompt.expect("... ")
    prompt.type("\n")
    prompt.expect(">>> ")
    prompt.type("f(x)\n")
    assert prompt.expect(">>> ").splitlines()[-1] == "42"
    prompt.type("undefined_name\n")
    assert "NameError" in prompt.expect(">>> ")
    mine = {item["id"] for item in api.list_all()} - before
    assert len(mine) == 1
    prompt.type("\x04")
    assert prompt.process.wait(20) == 0
    wait_for(lambda: not mine & {item["id"] for item in api.list_all()}, 10, "the sandbox is gone")


def test_control_c(person):
    prompt = person("host")
    prompt.expect(">>> ")
    prompt.type("kept = 'state'\n")
    prompt.expect(">>> ")
    prompt.type("print('be' + 'gun'); import time; time.sleep(60)\n")
    prompt.expect("begun")
    prompt.type("\x03")
    assert "KeyboardInterrupt" in prompt.expect(">>> ")
    prompt.type("f(1,\n")
    prompt.expect("... ")
    prompt.type("\x03")  # drops what was typed
    prompt.expect(">>> ")
    prompt.type("kept\n")
    assert prompt.expect(">>> ").splitlines()[-1] == "'state'"
    prompt.type("\x04")
    assert prompt.process.wait(20) == 0


def test_the_end_of_the_terminal(person, api):
    before = {item["id"] for item in api.list_all()}
    prompt = person()
    prompt.expect(">>> ")
    prompt.type("import time; print('be' + 'gun'); time.sleep(60)\n")
    prompt.expect("begun")
    prompt.process.send_signal(signal.SIGHUP)
    assert prompt.process.wait(20) == 128 + signal.SIGHUP
    assert {item["id"] for item in api.list_all()} == before


PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
DRAWN = "p = type('P', (), {'_repr_png_': lambda self: b'\\x89PNG\\r\\n\\x1a\\n' + bytes(range(256)) * 40})()\n"


def test_a_picture_is_a_file_where_the_terminal_cannot_draw(person, tmp_path):
    prompt = person(TERM="xterm", directory=tmp_path)
    prompt.expect(">>> ")
    prompt.type(DRAWN)
    prompt.expect(">>> ")
    prompt.type("p\n")
    assert "picture: osb-picture-1.png" in prompt.expect(">>> ")
    prompt.type("p\n")
    assert "picture: osb-picture-2.png" in prompt.expect(">>> ")
    assert (tmp_path / "osb-picture-1.png").read_bytes() == PICTURE == (tmp_path / "osb-picture-2.png").read_bytes()


@pytest.mark.parametrize("environment, begin, end", [({"TERM": "xterm-kitty"}, "\x1b_Gf=100,a=T,m=1;", "\x1b\\"), ({"TERM_PROGRAM": "WezTerm"}, "\x1b]1337;File=inline=1:", "\a")])
def test_a_picture_is_drawn_where_it_can(person, tmp_path, environment, begin, end):
    prompt = person(directory=tmp_path, **environment)
    prompt.expect(">>> ")
    prompt.type(DRAWN)
    prompt.expect(">>> ")
    prompt.type("p\n")
    prompt.expect(begin)
    first = prompt.expect(end)
    assert base64.b64decode(first)[:8] == PICTURE[:8]
    prompt.expect(">>> ")
    assert not list(tmp_path.iterdir())
