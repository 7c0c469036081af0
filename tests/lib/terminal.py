"""A real terminal for what is drawn on one."""

import subprocess
import time


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
