"""Two command lines that are run alike."""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path


class Ended:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out.decode(errors="replace"), err.decode(errors="replace")


class Client:
    """One of the two, with a home of its own."""

    def __init__(self, home, service):
        self.home = Path(home)
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "COLUMNS": "400", "LC_ALL": "C.UTF-8",
            "OPENSANDBOX_DISABLE_METRICS": "1",
        }  # fmt: skip
        self.root = ["--no-color", "--domain", "%s:%d" % service.address, "--api-key", service.api_key]


class Ours(Client):
    def __init__(self, home, service, program):
        super().__init__(home, service)
        self.program = program

    def run(self, *words, input=b"", root=None):
        command = [self.program, *(self.root if root is None else root), *words]
        done = subprocess.run(command, env=self.environment, cwd=self.home, input=input, capture_output=True, timeout=60)
        return Ended(done.returncode, done.stdout, done.stderr)


class Published(Client):
    """The console script's function in a fork of this process: the same as the script, without half a second of imports each time."""

    def __init__(self, home, service):
        super().__init__(home, service)
        (script,) = [one for one in entry_points(group="console_scripts") if one.name == "osb"]
        self.function = script.load()

    def run(self, *words, input=b"", root=None):
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(input)
            given.seek(0)
            child = os.fork()
            if child == 0:
                self.become(["osb", *(self.root if root is None else root), *words], given, out, err)
            _, status = os.waitpid(child, 0)
            for file in (out, err):
                file.seek(0)
            return Ended(os.waitstatus_to_exitcode(status), out.read(), err.read())

    def become(self, words, given, out, err):
        status = 70
        try:
            for number, file in enumerate((given, out, err)):
                os.dup2(file.fileno(), number)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
            sys.argv = words
            os.environ.clear()
            os.environ.update(self.environment)
            os.chdir(self.home)
            try:
                self.function()
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
