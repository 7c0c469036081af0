"""Code cells: our kernels beside the bare interpreters, and beside ipykernel driven by jupyter_client."""

import json
import os
import subprocess
import sys
import time

from . import BenchError
from .measure import find_python, settle

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PSS = "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '/^Pss:/ {s += $2} END {print s}'"


class Ipykernel:
    """A running ipykernel; ask() times one cell in the client, from the request to idle."""

    def __init__(self):
        self.process = subprocess.Popen([environment(), os.path.join(ROOT, "bench", "harness", "ipykernel_peer.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("1+1")

    def ask(self, code):
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise BenchError("the ipykernel peer ended; see its message above")
        return float(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


def environment():
    """The interpreter of the environment "jupyter", which the tests use as well."""
    sys.path.insert(0, os.path.join(ROOT, "tests"))
    from lib.venvs import ensure_venv

    try:
        return str(ensure_venv("jupyter"))
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"cannot make the environment of ipykernel: {error}") from error
    finally:
        del sys.path[0]


class Interpreter:
    def __init__(self, measurement, _directory):
        self.m = measurement
        self.load = measurement.load
        self.results = measurement.results
        self.ipykernel = None

    def parts(self):
        """(ids that fail with the part, the part)"""
        return [
            (["code.first", "code.context"], self.python),
            (["code.warm", "code.warm_peer"], self.warm),
            (["code.pandas"], self.pandas),
            (["code.node_first", "code.node_spare"], self.node),
            (["code.memory.10"], self.memory),
        ]

    def add(self, samples):
        for name, values in samples.items():
            self.results.add_round(name, values)

    def python(self, turns=8):
        """The first cell of a fresh sandbox, and one in a later context of it; beside them a bare interpreter."""
        if not self.m.wants("code.first", "code.context"):
            return
        settle()
        s = {"code.first": [], "code.context": [], "python.pass": []}
        for _ in range(turns):
            sandbox = self.load.ask("create")[1]
            s["python.pass"].append(self.load.program_time("exit", [find_python(), "-c", "pass"]))
            s["code.first"].append(self.load.ask("code", sandbox, "python", "1+1")[0])
            s["code.context"].append(self.load.ask("context", sandbox, "python", "1+1")[0])
            self.load.ask("delete", sandbox)
        self.add(s)

    def warm(self, turns=60):
        if not self.m.wants("code.warm", "code.warm_peer"):
            return
        self.ipykernel = self.ipykernel or Ipykernel()
        settle()
        s = {"code.warm": [], "code.warm_peer": [], "ipykernel.warm": [], "code.warm_floor": []}
        sandbox = self.load.ask("create")[1]
        self.load.ask("code", sandbox, "python", "1+1")
        for _ in range(turns):
            took = self.load.ask("code", sandbox, "python", "1+1")[0]
            s["code.warm"].append(took)
            s["code.warm_peer"].append(took)
            s["code.warm_floor"].append(self.m.floor.sample("f2"))
            s["ipykernel.warm"].append(self.ipykernel.ask("1+1"))
        self.load.ask("delete", sandbox)
        self.add(s)

    def pandas(self, turns=5):
        """A later context that imports what an earlier one has imported."""
        if not self.m.wants("code.pandas"):
            return
        program = [find_python(), "-c", "import pandas"]
        self.load.program_time("exit", program)  # its bytecode and pages are there for both
        sandbox = self.load.ask("create")[1]
        self.load.ask("code", sandbox, "python", "import pandas")
        settle(10)  # the parent is replaced in the background
        s = {"code.pandas": [], "python.pandas": []}
        for _ in range(turns):
            s["python.pandas"].append(self.load.program_time("exit", program))
            s["code.pandas"].append(self.load.ask("context", sandbox, "python", "import pandas")[0])
        self.load.ask("delete", sandbox)
        self.add(s)

    def node(self, turns=4):
        if not self.m.wants("code.node_first", "code.node_spare"):
            return
        s = {"code.node_first": [], "code.node_spare": [], "node.start": []}
        for _ in range(turns):
            settle()
            s["node.start"].append(self.load.program_time("exit", ["/usr/bin/node", "-e", "0"]))
            sandbox = self.load.ask("create")[1]
            s["code.node_first"].append(self.load.ask("code", sandbox, "javascript", "1+1")[0])
            time.sleep(1)  # the spare is made in the background, half a second after the first was wanted
            settle(4)
            s["code.node_spare"].append(self.load.ask("context", sandbox, "javascript", "1+1")[0])
            self.load.ask("delete", sandbox)
        self.add(s)

    def memory(self):
        """What ten idle contexts and what they share take together, shared pages counted once."""
        if not self.m.wants("code.memory.10"):
            return
        sandbox = self.load.ask("create")[1]
        before = self.inside(sandbox, PSS)
        for _ in range(10):
            self.load.ask("context", sandbox, "python", "1+1")
        settle()
        self.results.add_round("code.memory.10", [(self.inside(sandbox, PSS) - before) * 1024])
        self.load.ask("delete", sandbox)

    def inside(self, sandbox, command):
        """The number that a command in the sandbox prints."""
        stream = self.m.service.stream(f"{self.m.service.prefix}{sandbox}{self.m.service.suffix}/command", {"command": command})
        for event in stream.split("\n\n"):
            if '"type":"stdout"' in event:
                return int(json.loads(event)["text"])
        raise BenchError(f"{command} printed nothing: {stream[:300]}")

    def close(self):
        if self.ipykernel:
            self.ipykernel.close()
