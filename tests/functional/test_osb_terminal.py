"""osb in a real terminal, driven through tmux: vim in a sandbox, another size, leaving and coming back; a live table; completion in shells; a prompt."""

import re
import shutil

import pytest
from lib.api import Api
from lib.terminal import Screen

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux here")


@pytest.fixture(scope="module")
def api(keyed_service):
    return Api(keyed_service)


@pytest.fixture(scope="module")
def made(api):
    name = api.create()["id"]
    yield name
    api.delete(name)


@pytest.fixture
def screen(api, bin_dir, tmp_path):
    environment = {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    made = Screen(tmp_path, environment)
    made.type(f"export HOME={tmp_path} OPEN_SANDBOX_DOMAIN={api.address[0]}:{api.address[1]} OPEN_SANDBOX_API_KEY={api.key}; clear")
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
    # It may be broken across lines, and what vim had drawn may still be below it.
    session = re.compile(r"--attach([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
    session = session.search("".join(screen.expect(lambda seen: session.search("".join(seen.split()))).split()))[1]
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


SHELLS = {
    "zsh": ["zsh -f", "PS1='ready> '; autoload -U compinit; compinit -D -u; source <(osb completion zsh)"],
    "fish": ["fish --no-config", "function fish_prompt; echo -n 'ready> '; end; set -g fish_autosuggestion_enabled 0; osb completion fish | source"],
    "bash": ["bash --norc", "PS1='ready> '; source <(osb completion bash)"],
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_ids_and_images(made, screen, shell):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    for line in SHELLS[shell]:
        screen.type(line)
    screen.type("clear")
    screen.expect(lambda seen: seen.strip() == "ready>")
    screen.type(f"osb sandbox get {made[:-6]}", enter=False)
    screen.keys("Tab")
    screen.expect(lambda seen: made in seen)
    screen.keys("C-u")
    screen.type("osb run ho", enter=False)
    screen.keys("Tab")
    screen.expect(lambda seen: "osb run host" in seen)
    screen.keys("C-u")
    screen.type("osb sandbox ki", enter=False)
    screen.keys("Tab")
    screen.expect(lambda seen: "osb sandbox kill" in seen)


class TestPrompt:
    def test_lines_are_edited_and_come_back(self, screen):
        screen.type("osb repl")
        screen.expect(lambda seen: seen.rstrip().endswith(">>>"))
        screen.type("print(4)", enter=False)
        screen.keys("Left", "2", "Home", "Delete", "p", "End", "Enter")
        screen.expect(lambda seen: "\n42\n" in seen)
        screen.keys("Up", "BSpace", "BSpace", "BSpace")
        screen.type("'中文' * 2)")
        screen.expect(lambda seen: "\n中文中文\n" in seen)
        screen.keys("C-d")
        screen.expect(lambda seen: seen.rstrip().endswith("$"))
        screen.type("clear; osb repl")
        screen.expect(lambda seen: seen.rstrip().endswith(">>>"))
        screen.keys("Up", "Up")
        screen.expect(lambda seen: seen.rstrip().endswith(">>> print(42)"))

    def test_a_line_longer_than_the_terminal(self, screen):
        screen.type("osb repl")
        screen.expect(lambda seen: seen.rstrip().endswith(">>>"))
        screen.type("x = '" + "a" * 230 + "'", enter=False)
        screen.keys("Home", "Delete", "y", "Enter")
        screen.type("len(y)")
        screen.expect(lambda seen: "\n230\n" in seen)

    def test_tab_asks_the_context(self, screen):
        screen.type("osb repl")
        screen.expect(lambda seen: seen.rstrip().endswith(">>>"))
        screen.type("cellar_of_mine = 7; import os")
        screen.type("cellar_", enter=False)
        screen.keys("Tab")
        screen.expect(lambda seen: seen.rstrip().endswith(">>> cellar_of_mine"))
        screen.keys("Enter")
        screen.expect(lambda seen: "\n7\n" in seen)
        screen.type("os.path.joi", enter=False)
        screen.keys("Tab")
        screen.expect(lambda seen: "os.path.join(" in seen)
        screen.keys("C-u")
        screen.type("os.O_C", enter=False)
        screen.keys("Tab", "Tab")
        screen.expect(lambda seen: "os.O_CLOEXEC" in seen and "os.O_CREAT" in seen)
