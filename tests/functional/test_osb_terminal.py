"""osb in a real terminal, driven through tmux: vim in a sandbox, another size, leaving and coming back; a live table."""

import os
import shutil
import subprocess
import time

import pytest
from lib.api import Api

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux here")


@pytest.fixture(scope="module")
def api(keyed_service):
    return Api(keyed_service)


@pytest.fixture(scope="module")
def made(api):
    name = api.create()["id"]
    yield name
    api.delete(name)


class Screen:
    """A terminal of tmux, with a server of its own."""

    def __init__(self, directory, environment, columns=100, rows=30):
        self.socket = str(directory / "tmux")
        self.environment = environment
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows), "env -i TERM=xterm-256color PATH=$PATH PS1='$ ' sh")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], env=self.environment, capture_output=True, text=True, timeout=20)

    def type(self, text, enter=True):
        self.tmux("send-keys", "-t", "t", "-l", text)
        if enter:
            self.keys("Enter")

    def keys(self, *names):
        self.tmux("send-keys", "-t", "t", *names)

    def shows(self):
        return self.tmux("capture-pane", "-p", "-t", "t").stdout

    def expect(self, condition, timeout=20):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            screen = self.shows()
            if condition(screen):
                return screen
            time.sleep(0.1)
        raise AssertionError("this is not on the screen in time:\n" + self.shows())

    def close(self):
        self.tmux("kill-server")


@pytest.fixture
def screen(api, bin_dir, tmp_path):
    environment = {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    made = Screen(tmp_path, environment)
    made.type(f"export OPEN_SANDBOX_DOMAIN={api.address[0]}:{api.address[1]} OPEN_SANDBOX_API_KEY={api.key}; clear")
    yield made
    made.close()


@pytest.mark.skipif(not shutil.which("vim"), reason="no vim here")
def test_vim_survives_another_size_and_being_left(api, made, screen):
    screen.type(f"osb shell {made} -- vim -u NONE -N -c 'set laststatus=2 ruler' /tmp/note.txt")
    screen.expect(lambda seen: "note.txt" in seen and "~" in seen)
    screen.type("ihello from vim", enter=False)
    screen.keys("Escape")
    screen.expect(lambda seen: "hello from vim" in seen)
    screen.tmux("resize-window", "-t", "t", "-x", "60", "-y", "20")
    # the last line but one is vim's status line, wherever the bottom is now
    screen.expect(lambda seen: len(seen.splitlines()) == 20 and "note.txt" in seen.splitlines()[18])
    screen.keys("C-p")
    screen.keys("C-q")
    seen = screen.expect(lambda seen: "--attach" in seen)
    session = "".join(seen.split("--attach", 1)[1].split("$")[0].split())
    screen.type("clear", enter=True)
    screen.expect(lambda seen: "hello from vim" not in seen)
    screen.type(f"osb shell {made} --attach {session}")
    screen.keys("C-l")
    screen.expect(lambda seen: "hello from vim" in seen)
    screen.type(":wq")
    screen.expect(lambda seen: seen.rstrip().endswith("$"))
    assert api.run(made, "cat /tmp/note.txt").stdout.strip() == "hello from vim"


def test_top_goes_on_and_ends_with_control_c(made, screen):
    screen.type("osb top -d 300ms")
    first = screen.expect(lambda seen: made in seen and "MEMORY" in seen)
    screen.expect(lambda seen: made in seen and seen.splitlines()[0] != first.splitlines()[0])
    screen.keys("C-c")
    screen.expect(lambda seen: seen.rstrip().endswith("$"))
