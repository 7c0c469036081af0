"""Output, downloads and uploads in bulk, each beside its yardstick, and what execd itself needs."""

import json
import os
import shutil
import statistics
import tempfile
import threading
import time

from . import BenchError
from .nginx import Nginx
from .service import free_port, kibibytes

LINE = 1024  # with its end


class Transfer:
    """One sandbox with a memory limit, used for everything that is moved. Rates are bytes per second."""

    def __init__(self, results, load, service, bin_dir, directory):
        self.results = results
        self.load = load
        self.service = service
        self.bin_dir = bin_dir
        self.directory = tempfile.mkdtemp(prefix="osb-bench-transfer-", dir=directory)
        os.chmod(self.directory, 0o755)
        self.nginx = None
        body = {"image": {"uri": "host"}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": {"memory": "8Gi"}}
        self.sandbox = service.call("POST", "/v1/sandboxes", body)["id"]

    def close(self):
        if self.nginx:
            self.nginx.close()
        self.service.call("DELETE", f"/v1/sandboxes/{self.sandbox}")
        shutil.rmtree(self.directory, ignore_errors=True)

    def _turns(self, count, **pairs):
        """Takes turns, one sample of each per turn; a round is their medians."""
        samples = {name: [] for name in pairs}
        for _ in range(count):
            for name, sample in pairs.items():
                samples[name].append(sample())
        for name, values in samples.items():
            self.results.add_round(name.replace("__", "."), [statistics.median(values)])

    def output(self, size, turns):
        """Lines of 1 KiB through the server, beside the same command into `cat >/dev/null`."""
        lines = size // LINE
        command = f"yes $(printf %0{LINE - 1}d 7) | head -n {lines}"

        def streamed():
            took, seen, payload = self.load.ask("stream", self.sandbox, command)
            if (int(seen), int(payload)) != (lines, lines * (LINE - 1)):
                raise BenchError(f"{seen} lines and {payload} bytes arrived of {lines} lines")
            return size / took * 1e6

        def bare():
            return size / self.load.ask("run", self.sandbox, command + " | cat > /dev/null")[0] * 1e6

        self._turns(turns, output__cat=bare, output__stream=streamed)

    def short_lines(self, lines):
        """How many of so many 10-byte lines arrive."""
        took, seen, payload = self.load.ask("stream", self.sandbox, f"yes 012345678 | head -n {lines}")
        if int(payload) != int(seen) * 9:
            raise BenchError(f"{payload} bytes in {seen} lines of 9")
        self.results.add_round("output.lines", [int(seen) / lines])
        self.results.add_round("output.lines_rate", [lines / took * 1e6])

    def files(self, size, turns):
        self.nginx = self.nginx or Nginx(self.directory)
        static = os.path.join(self.directory, "static")
        with open(static, "wb") as file:
            for _ in range(size >> 20):
                file.write(b"x" * (1 << 20))
        os.chmod(static, 0o644)
        self.load.ask("upload", self.sandbox, "/tmp/bench-file", size)
        path = f"{self.service.prefix}{self.sandbox}{self.service.suffix}/files/download?path=/tmp/bench-file"

        def rate(*words):
            return size / self.load.ask(*words)[0] * 1e6

        bare = os.path.join(self.directory, "bare")

        def same_start():
            """Each write finds the machine as the other does: nothing of an earlier one waits for the disk, and for all of the file
            there is memory that need not come from a hypervisor first (which costs several times what the write itself does,
            and falls on the one or the other by luck)."""
            os.sync()
            self.load.ask("stock", size * 5 // 4)

        def bare_upload():
            # Both write a new file: an old one's pages would be warm in one case and not in the other.
            if os.path.exists(bare):
                os.unlink(bare)
            same_start()
            return rate("receive", bare, size)

        def our_upload():
            self.load.ask("run", self.sandbox, "rm -f /tmp/bench-upload")
            same_start()
            return rate("upload", self.sandbox, "/tmp/bench-upload", size)

        self._turns(turns,
                    nginx__download=lambda: rate("download", self.nginx.port, "/static", size),
                    file__download=lambda: rate("download", self.service.port, path, size),
                    bare__upload=bare_upload, file__upload=our_upload)  # fmt: skip
        self.load.ask("stock", 0)
        self.load.ask("run", self.sandbox, "rm -f /tmp/bench-upload /tmp/bench-file")
        for name in (static, bare):
            os.unlink(name)

    def concurrent(self, count):
        """So many commands at once, each with output of its own; how many end with all of it."""
        fine = []

        def one(number):
            text = self.service.text("POST", f"{self.service.prefix}{self.sandbox}{self.service.suffix}/command",
                                     {"command": f"for i in 1 2 3; do echo {number}-$i; done; exit {number % 5}"})
            wanted = [f'"text":"{number}-{i}"' for i in (1, 2, 3)]
            ending = "execution_complete" if number % 5 == 0 else f'"evalue":"{number % 5}"'
            if all(text.count(part) == 1 for part in wanted) and ending in text:
                fine.append(number)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.results.add_round("command.concurrent", [len(fine)])

    def peak(self):
        """The most that execd had in memory in all of this."""
        text = self.service.text("POST", f"{self.service.prefix}{self.sandbox}{self.service.suffix}/command",
                                 {"command": "grep VmHWM /proc/1/status"})
        for line in text.split("\n"):
            if "VmHWM" in line:
                self.results.add_round("execd.memory_peak", [int(json.loads(line)["text"].split()[1]) * 1024])
                return
        raise BenchError(f"no peak in {text[:300]}")

    # execd by itself

    def binary(self):
        self.results.add_round("execd.binary", [os.stat(os.path.join(self.bin_dir, "execd")).st_size])

    def idle(self, seconds):
        """Private memory of a sandbox's execd that has done some work and rests; another one shares its program."""
        other = self.load.ask("create")[1]
        mine = self.load.ask("create")[1]
        try:
            for sandbox in (other, mine):
                self.load.ask("run", sandbox, "echo x")
            time.sleep(seconds)
            pid = execd_pid(mine)
            private = sum(kibibytes(f"/proc/{pid}/smaps_rollup", name) for name in ("Private_Clean", "Private_Dirty"))
            self.results.add_round("execd.memory", [private * 1024])
        finally:
            for sandbox in (other, mine):
                self.load.ask("delete", sandbox)

    def ready(self, samples):
        """From starting the daemon to its first answer, beside a static program that ends at once."""
        bare, ready = [], []
        log = os.path.join(self.directory, "execd.log")
        for _ in range(samples):
            bare.append(self.load.program_time("exit", [os.path.join(self.bin_dir, "static-true")]))
            port = free_port()
            took, pid = self.load.ask("start", port, "/ping", log, os.path.join(self.bin_dir, "execd"), "--port", port)
            ready.append(took)
            self.load.ask("stop", int(pid))
        self.results.add_round("static.true", bare)
        self.results.add_round("execd.ready", ready)


def execd_pid(sandbox):
    """The process that is PID 1 of a sandbox, as the host numbers it. Nothing on the host names the sandbox but the environment
    of its entry process, which is in the same pid namespace."""
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    namespace = None
    for name in pids:
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if f"OPENSANDBOX_ID={sandbox}".encode() in file.read().split(b"\0"):
                    namespace = os.readlink(f"/proc/{name}/ns/pid")
        except OSError:
            continue
    for name in pids:
        try:
            if os.readlink(f"/proc/{name}/ns/pid") != namespace:
                continue
            with open(f"/proc/{name}/status", encoding="utf-8") as file:
                if any(line.startswith("NSpid:") and line.split()[-1] == "1" for line in file):
                    return int(name)
        except OSError:
            continue
    raise BenchError(f"no process of sandbox {sandbox}")
