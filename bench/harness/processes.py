"""The two measuring programs, kept running beside the harness so that single samples can be interleaved.

Python only says what comes next; every time is taken inside the static programs.
"""

import json
import subprocess

from . import BenchError


class Floor:
    """`floor serve`: the bare kernel work, one sample per call, in microseconds."""

    def __init__(self, program, directory):
        self._program = program
        self._directory = directory
        self._process = subprocess.Popen([program, "serve", directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def sample(self, name):
        try:
            self._process.stdin.write(name + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline().strip()
        if not line or line.startswith("error"):
            raise BenchError(f"floor {name}: {line or 'it ended; see its message above'}")
        return float(line)

    def sustained(self, workers, seconds):
        """Complete sandbox lives per second."""
        done = subprocess.run([self._program, "f3", self._directory, "--workers", str(workers), "--seconds", str(seconds)],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"floor f3 with {workers} workers failed")
        return json.loads(done.stdout)["per_second"]

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=10)


class Load:
    """`bench-load serve`: the client and the spawner."""

    def __init__(self, program):
        self.program = program
        self._process = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        """Sends one command; returns the words of the answer, the first as a number (microseconds)."""
        try:
            self._process.stdin.write("\t".join(str(word) for word in words) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("bench-load ended")
        answer = line.rstrip("\n").split("\t")
        if answer[0] == "error":
            raise BenchError(f"{words[0]}: {answer[1]}")
        return [float(answer[0])] + answer[1:]

    def program_time(self, until, argv):
        """Microseconds until the first byte of output ("first") or until the program was reaped ("exit")."""
        return self.ask("program", until, *argv)[0]

    def spawn_rate(self, argv, workers, seconds):
        done = subprocess.run([self.program, "spawn-rate", "--workers", str(workers), "--seconds", str(seconds), "--", *argv],
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"{argv[0]} with {workers} workers failed")
        return json.loads(done.stdout)["per_second"]

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
