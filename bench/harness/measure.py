"""The measurements. Everything that will be compared is measured alternately in the same round, so that whatever else the
machine does falls on both sides."""

import os
import time

from . import BenchError
from .service import Service, kibibytes


def settle(limit_seconds=2.5):
    """Until the machine is about idle: the kernel takes network namespaces down long after their sandboxes are gone."""

    def busy_and_total():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(word) for word in file.readline().split()[1:9]]
        return sum(fields) - fields[3] - fields[4], sum(fields)

    end = time.monotonic() + limit_seconds
    before = busy_and_total()
    while time.monotonic() < end:
        time.sleep(0.2)
        after = busy_and_total()
        if (after[0] - before[0]) < 0.1 * max(1, after[1] - before[1]):
            return
        before = after


def available_bytes():
    """MemAvailable, once it stops moving (or after five seconds)."""
    last = kibibytes("/proc/meminfo", "MemAvailable")
    for _ in range(20):
        time.sleep(0.25)
        now = kibibytes("/proc/meminfo", "MemAvailable")
        if abs(now - last) < 256:
            break
        last = now
    return now * 1024


def settle_disk(limit_seconds=20):
    """Until no disk has had work for half a second: what others wrote and removed is still being written long afterwards."""

    def busy_ms():
        with open("/proc/diskstats", encoding="ascii") as file:
            return sum(int(fields[12]) for fields in map(str.split, file))

    end = time.monotonic() + limit_seconds
    os.sync()
    before = busy_ms()
    while time.monotonic() < end:
        time.sleep(0.5)
        after = busy_ms()
        if after - before < 25:
            return
        before = after


class Measurement:
    """One run against one service. `wanted` restricts it to what a check needs; None measures everything."""

    def __init__(self, results, floor, load, service, peers, wanted=None):
        self.results = results
        self.floor = floor
        self.load = load
        self.service = service
        self.peers = peers
        self._wanted = wanted
        self._fleet = []
        self._grown = []  # how long each create of the fleet took
        self._started = []

    def wants(self, *names):
        return self._wanted is None or any(name in self._wanted for name in names)

    def latency(self, samples):
        """Create to first output, and a command's round trip: one sample of each per turn."""
        s = {}

        def add(name, value):
            s.setdefault(name, []).append(value)

        sandbox = self.load.ask("create")[1]
        self.load.ask("run", sandbox, "true")
        every = max(1, samples // 8)  # programs that take tens of milliseconds get fewer turns
        for turn in range(samples):
            add("f1", self.floor.sample("f1"))
            total, create, delete = self.load.ask("first")
            add("create.first_output", total)
            add("create.call", float(create))
            add("delete.call", float(delete))
            add("f2", self.floor.sample("f2"))
            add("command.round_trip", self.load.ask("run", sandbox, "true")[0])
            add("ping.round_trip", self.load.ask("ping", sandbox)[0])
            for peer in self.peers:
                if peer.name != "bubblewrap" and turn % every:
                    continue
                if self.wants(peer.name + ".first_output"):
                    add(peer.name + ".first_output", self.load.program_time("first", peer.first()))
                if peer.exec_argv and self.wants(peer.name + ".exec"):
                    add(peer.name + ".exec", self.load.program_time("exit", peer.exec_argv))
        self.load.ask("delete", sandbox)
        s["create.beside_bubblewrap"] = s["create.first_output"]  # the same, promised against another yardstick
        for name, values in s.items():
            self.results.add_round(name, values)

    def pool(self, samples):
        """A claim to its first output, beside a command in a sandbox that runs. Each turn begins with a full pool: how fast one
        is filled is another question."""
        if not self.wants("pool.first_output"):
            return
        s = {name: [] for name in ("pool.first_output", "pool.claim", "command.call")}
        capacity = {"bufferMin": 4, "bufferMax": 4, "poolMin": 0, "poolMax": 100}
        self.service.call("POST", "/v1/pools", {"name": "bench", "template": {"image": {"uri": "host"}}, "capacitySpec": capacity})
        try:
            sandbox = self.load.ask("create")[1]
            self.load.ask("run", sandbox, "true")
            for _ in range(samples):
                self._wait_for_pool("bench", 4)
                s["command.call"].append(self.load.ask("run", sandbox, "true")[0])
                total, claim, _ = self.load.ask("claim", "bench")
                s["pool.first_output"].append(total)
                s["pool.claim"].append(float(claim))
            self.load.ask("delete", sandbox)
        finally:
            self.service.call("DELETE", "/v1/pools/bench")
        for name, values in s.items():
            self.results.add_round(name, values)

    def _wait_for_pool(self, name, count, limit_seconds=20):
        end = time.monotonic() + limit_seconds
        while (status := self.service.call("GET", f"/v1/pools/{name}")["status"])["available"] < count or status["pending"]:
            if time.monotonic() > end:
                raise BenchError(f"pool {name} is not filled: {status}")
            time.sleep(0.01)
        time.sleep(0.02)  # what it made last comes to rest

    def pause(self, samples):
        """Pause and resume beside the bare freeze and thaw; their yardstick is that and one GET /health of the same service."""
        if not self.wants("pause", "resume"):
            return
        s = {name: [] for name in ("pause", "pause.floor", "resume", "resume.floor", "freeze", "thaw", "health")}
        sandbox = self.load.ask("create")[1]
        for _ in range(samples):
            for ours, bare in (("pause", "freeze"), ("resume", "thaw")):
                kernel, health = self.floor.sample(bare), self.load.ask("health")[0]
                s[bare].append(kernel)
                s["health"].append(health)
                s[ours + ".floor"].append(kernel + health)
                s[ours].append(self.load.ask(ours, sandbox)[0])
        self.load.ask("delete", sandbox)
        for name, values in s.items():
            self.results.add_round(name, values)

    def throughput(self, clients, seconds):
        ours, bare = f"throughput.{clients}", f"f3.{clients}"
        if not self.wants(ours, bare):
            return
        settle()
        self.results.add_round(bare, [self.floor.sustained(clients, seconds)])
        settle()
        result = self.service.sustained(clients, seconds)
        self.results.add_round(ours, [result["per_second"]])
        self.results.add_round(f"throughput.{clients}.cycle", [result["median_us"]])
        self.results.add_round(f"throughput.{clients}.generator_cpu", [result["own_cpu"]])
        for peer in self.peers:
            name = f"{peer.name}.throughput.{clients}"
            if peer.name in ("bubblewrap", "runc") and self.wants(name):
                settle()
                self.results.add_round(name, [self.load.spawn_rate(peer.template, clients, seconds)])
        settle()

    def start(self, bin_dir, parent, python, samples):
        """A second service, started on an empty state directory and again on the same; beside it an interpreter."""
        bare, ready, again, resident, proportional = [], [], [], [], []
        for _ in range(samples):
            bare.append(self.load.program_time("exit", [python, "-c", "pass"]))
            other = Service(self.load, bin_dir, parent)
            try:
                ready.append(other.start())
                other.stop()
                again.append(other.start())
                memory = other.memory()
            finally:
                other.stop()
                self._started.append(other)
            resident.append(memory[0])
            proportional.append(memory[1])
        for name, values in (("python.start", bare), ("service.ready", ready), ("service.ready_again", again),
                             ("service.memory_fresh", resident), ("service.memory_fresh_pss", proportional)):
            self.results.add_round(name, values)

    def close(self):
        """Removes the directories of start(): only now, because removing many files makes the next ones slow to create."""
        for other in self._started:
            other.remove()

    def memory(self):
        """Of the service that has done all the work of this run so far and holds no sandbox now."""
        settle(2)
        resident, proportional = self.service.memory()
        self.results.add_round("service.memory", [resident])
        self.results.add_round("service.memory_pss", [proportional])

    def grow(self, count):
        """Adds idle sandboxes; returns what one cost. A growing fleet, because memory comes back slowly after a delete."""
        for _ in range(3):
            settle()
            before = available_bytes()
            for _ in range(count):
                took, sandbox = self.load.ask("create")[:2]
                self._fleet.append(sandbox)
                self._grown.append(took)
            settle()
            cost = (before - available_bytes()) / count
            if cost > 0:
                return cost
        # Somebody else gave memory back in the meantime. "Less than nothing" must not pass as a small cost.
        raise BenchError("the machine released more memory than the sandboxes took; measure again when it is quiet")

    def density(self, rounds):
        if self.wants("sandbox.memory.10"):
            self.results.add_round("sandbox.memory.10", [self.grow(10)])
        for _ in range(rounds):
            self.results.add_round("sandbox.memory.100", [self.grow(100)])

    def fleet(self, size):
        """The whole fleet at `size`: what one costs, and how many answer."""
        missing = size - len(self._fleet)
        if missing > 0:
            self.results.add_round(f"sandbox.memory.{size}", [self.grow(missing)])
        # Some creates around the one, because a single one may be unlucky.
        self.results.add_round("create.10th", self._grown[:20])
        self.results.add_round(f"create.{size}th", self._grown[size - 20:size])
        answered = 0
        for sandbox in self._fleet:
            try:
                self.load.ask("ping", sandbox)
                answered += 1
            except BenchError:
                continue
        self.results.add_round(f"sandbox.live.{size}", [answered])
        for _ in range(3):
            self.results.add_round(f"create.beside_{size}", [float(self.load.ask("first")[1]) for _ in range(20)])

    def end_fleet(self):
        fleet, self._fleet = self._fleet, []
        for sandbox in fleet:
            self.load.ask("delete", sandbox)


def find_python():
    """The system's interpreter; a version manager's wrapper script would start several programs."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else os.path.realpath("/proc/self/exe")
