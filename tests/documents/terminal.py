"""A shell in which the blocks of a page are executed one after the other, as somebody who follows the page would."""

import os
import select
import subprocess
import sys
import time

from lib.scope import descendants


class Terminal:
    """Variables, directories and background jobs stay from block to block; HOME is a directory of its own."""

    def __init__(self, home, bin_dir, **environment):
        self.home = home
        self.blocks = home / ".blocks"
        self.blocks.mkdir(parents=True)
        (home / "work").mkdir()
        path = f"{bin_dir}:{os.path.dirname(sys.executable)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=home / "work",
            env={"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", "USER": "root", "NO_COLOR": "1", **environment},
        )  # fmt: skip
        # A command that fails is noted although the block goes on, as it would at a prompt.
        self.tell("set -E; trap 'failed=\"$? of: $BASH_COMMAND\"' ERR")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def run(self, number, block, timeout=60):
        """What it printed, the status of its last command, and the last command of it that failed."""
        script = self.blocks / f"{number}.{'py' if block.language == 'python' else 'sh'}"
        output = self.blocks / f"{number}.out"
        script.write_text(block.text, encoding="utf-8")
        words = f"python3 {script}" if block.language == "python" else f"source {script}"
        self.tell(f'failed=; {words} >{output} 2>&1 </dev/null; echo "$? $failed"')
        answer = self.answer(time.monotonic() + timeout)
        printed = output.read_text(errors="replace")
        if answer is None:
            return printed, None, f"nothing within {timeout} s" if self.process.poll() is None else "the shell has ended"
        status, _, failed = answer.partition(" ")
        return printed, int(status), failed.strip()

    def answer(self, deadline):
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 1) if ready else b""
            if not piece:
                return None
            line += piece
        return line.decode(errors="replace")

    def close(self):
        """Ends the shell and everything that it left in the background."""
        for pid in descendants(self.process.pid):
            try:
                os.kill(pid, 15)
            except ProcessLookupError:
                continue
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process.stdout.close()
