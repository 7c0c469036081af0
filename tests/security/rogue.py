"""A server that was taken over, as the launcher sees it: a child of the service's user that holds the launcher's socket.

The launcher executes a Python interpreter with this file as its server. That process hands its end of the socket to the test,
which then says on it whatever it likes; the launcher cannot tell the difference. As a library it writes the launcher's messages:
with every mistake that a caller asks for.

`rogue.py --write-corpus DIR` writes what the tests say as seeds of the fuzz target launcher_message.
"""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

LAUNCHER_FD = 4
SERVICE_ID = 60_700
MAX_MESSAGE = 128 * 1024

VERSION = 5
START, STOP, DESTROY, LIST, ADOPT, SOCKETS, OOMS, FREEZE, THAW, RECALL, RECORD, HEALTH, IMAGES, LISTENERS = range(1, 15)
CAPTURE, KEEP, DROP, SNAPSHOTS, DIFF, VOLUME, VOLUMES, DROP_VOLUME, CALLERS, CONTAINER, ENGINE, PLACE = range(15, 27)
KINDS = ["overlay", "bind", "proc", "sysfs", "devices", "mask", "read_only", "hostname", "scratch", "seal", "show_limits", "volume"]
WRITABLE = 1  # access of a volume
OWNER = 1  # ids of a directory of the host
READ_ONLY = ["/proc/sys", "/proc/sysrq-trigger"]
MASKED = ["/proc/" + name for name in (
    "acpi asound bootconfig bus cmdline diskstats fs interrupts irq kcore keys latency_stats mdstat partitions sched_debug scsi "
    "swaps timer_list").split()]  # fmt: skip


def text(value):
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def step(kind, target="", *, source="", name="", lowers=(), access=0, ids=0):
    number = KINDS.index(kind) if isinstance(kind, str) else kind
    out = struct.pack("<B", number) + text(target) + text(source) + text(name) + struct.pack("<I", len(lowers))
    return out + b"".join(text(lower) for lower in lowers) + struct.pack("<BB", access, ids)


def system_steps():
    """(name, bytes) of what no plan is without."""
    steps = [("proc", step("proc", "/proc")), ("sysfs", step("sysfs", "/sys")), ("devices", step("devices", "/dev"))]
    steps += [(f"read-only {path}", step("read_only", path)) for path in READ_ONLY]
    steps += [(f"mask {path}", step("mask", path)) for path in MASKED]
    return steps


def plan(sandbox_id, steps, *, image="", limits=(-1,) * 8, count=None, record=b"", network=0, policy="", kernel=0):
    head = text(sandbox_id) + text(image) + struct.pack("<8qB", *limits, network) + text(policy) + struct.pack("<B", kernel)
    return head + struct.pack("<I", len(steps) if count is None else count) + b"".join(steps) + text(record)


def ordinary_steps(lower, before=(), after=()):
    root = step("overlay", "/", name="root", lowers=[lower])
    return [root, *before, *(data for _, data in system_steps()), *after, step("hostname", name="sandbox")]


def request(tag, verb, body):
    return struct.pack("<BQB", VERSION, tag, verb) + text(body)


class Answer:
    def __init__(self, data, descriptors):
        version, self.tag, self.error, self.code = struct.unpack_from("<BQiI", data)
        assert version == VERSION, f"an answer of version {version}"
        at = 17
        parts = []
        for _ in range(2):
            (size,) = struct.unpack_from("<I", data, at)
            parts.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        self.message, self.body = parts[0].decode(errors="replace"), parts[1]
        self.descriptors = descriptors

    def close(self):
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []

    def __repr__(self):
        return f"Answer(error={self.error}, message={self.message!r}, body={self.body!r}, descriptors={len(self.descriptors)})"


class Gone(Exception):
    """The launcher closed the channel."""


class Rogue:
    """A launcher with a rogue server, and the rogue's end of their socket."""

    def __init__(self, bin_dir, directory, sources, shared_paths=(), engine_socket=None):
        self.directory = Path(directory)
        self.state_dir = self.directory / "state"
        self.log_path = self.directory / "launcher.log"
        self.tag = 0
        # What opensandbox-server makes of a directory before it starts the launcher.
        self.state_dir.mkdir(mode=0o711, exist_ok=True)
        (self.state_dir / "identity").write_text(f"{os.urandom(16).hex()}\nopensandbox-{os.urandom(8).hex()}\n")
        self.channel = None
        self.peer = None
        script = self.directory / "rogue.py"
        script.write_bytes(Path(__file__).read_bytes())
        script.chmod(0o644)
        self.meeting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        place = self.directory / "rogue.socket"
        self.meeting.bind(str(place))
        place.chmod(0o777)
        self.meeting.listen(8)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        python = os.open(os.path.realpath(sys.executable), os.O_RDONLY)
        execd = os.open(Path(bin_dir) / "execd", os.O_RDONLY)
        words = [
            f"--state-dir={self.state_dir}", f"--service-uid={SERVICE_ID}", f"--service-gid={SERVICE_ID}",
            f"--listener-fd={listener.fileno()}", f"--server-fd={python}", f"--execd-fd={execd}",
            *(f"--source={source}" for source in sources), *(f"--shared-path={path}" for path in shared_paths),
            *([f"--engine-socket={engine_socket}"] if engine_socket else []),
            "--server-argument=python3", f"--server-argument={script}", f"--server-argument={place}",
        ]  # fmt: skip
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [Path(bin_dir) / "launcher", *words], pass_fds=(listener.fileno(), python, execd),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env={"PATH": "/usr/bin:/bin"},
            )  # fmt: skip
        os.close(python)
        os.close(execd)
        listener.close()
        self.meet()

    def meet(self, timeout=20):
        """Waits for the next server that the launcher starts."""
        self.meeting.settimeout(timeout)
        if self.peer:
            self.peer.close()
            self.channel.close()
        self.peer, _ = self.meeting.accept()
        self.peer.settimeout(timeout)
        data, descriptors, _, _ = socket.recv_fds(self.peer, 16, 1)
        self.rogue_pid = int(data)
        self.channel = socket.socket(fileno=descriptors[0])
        assert Path(f"/proc/{self.rogue_pid}/status").read_text().split("\nUid:\t")[1].startswith(f"{SERVICE_ID}\t")
        return self

    def log(self):
        return self.log_path.read_text(errors="replace")

    # What is said

    def send_raw(self, data, descriptors=()):
        self.channel.setblocking(True)
        socket.send_fds(self.channel, [data], list(descriptors))

    def receive(self, timeout=20):
        ready, _, _ = select.select([self.channel], [], [], timeout)
        assert ready, f"no answer within {timeout} s; log:\n{self.log()[-2000:]}"
        try:
            data, descriptors, _, _ = socket.recv_fds(self.channel, MAX_MESSAGE, 16)
        except ConnectionResetError as error:
            raise Gone from error
        if not data:
            raise Gone
        return Answer(data, descriptors)

    def ask(self, verb, body, descriptors=()):
        self.tag += 1
        self.send_raw(request(self.tag, verb, body), descriptors)
        answer = self.receive()
        assert answer.tag == self.tag, answer
        return answer

    def start(self, sandbox_id, steps, **more):
        """The answer, and the pid of the sandbox's first process when there is one."""
        answer = self.ask(START, plan(sandbox_id, steps, **more))
        pid = struct.unpack_from("<q", answer.body)[0] if not answer.error else None
        answer.close()
        return answer, pid

    def ids(self):
        answer = self.ask(LIST, b"")
        assert not answer.error, answer
        (count,) = struct.unpack_from("<I", answer.body)
        return [answer.body[4 + i * 40 + 4 : 4 + i * 40 + 40].decode() for i in range(count)]

    def assert_alive(self):
        assert self.process.poll() is None, f"the launcher ended with {self.process.returncode}:\n{self.log()[-2000:]}"
        assert not self.ask(LIST, b"").error

    def close(self):
        try:
            for sandbox_id in self.ids():
                self.ask(DESTROY, sandbox_id)
        except (Gone, OSError, AssertionError):
            pass  # a test that failed may have left it without a server
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.meeting.close()
        self.peer.close()
        self.channel.close()


def hand_over(place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as test:
        test.connect(place)
        socket.send_fds(test, [str(os.getpid()).encode()], [LAUNCHER_FD])
        os.close(LAUNCHER_FD)
        test.recv(1)  # until the test is done
    # Ended by the launcher; without a server it would start the next one again and again.
    time.sleep(60)


# What the tests say, by name; also the seeds of the fuzz target.

GOOD_ID = "01900000-0000-7000-8000-000000000001"


def hostile_plans(lower):
    """name -> a plan that must be refused."""
    usual = ordinary_steps(lower)
    system = [data for _, data in system_steps()]
    found = {}
    for index, (name, _) in enumerate(system_steps()):
        found[f"without {name}"] = usual[: 1 + index] + usual[2 + index :]
    found["without proc, devices and masks"] = [usual[0]]
    found["nothing but proc"] = [usual[0], step("proc", "/proc")]
    found["devices first"] = [usual[0], system[2], system[0], system[1], *system[3:]]
    found["masks before proc"] = [usual[0], *system[3:], *system[:3]]
    found["proc twice"] = [usual[0], system[0], *system]
    found["the root twice"] = [usual[0], usual[0], *system]
    found["no root"] = system
    found["no steps"] = []
    for kind, more in (("overlay", {"name": "more", "lowers": [lower]}), ("bind", {"source": lower}), ("scratch", {})):
        for target in ("/", "/proc", "/dev", "/sys", "/proc/sys", "/dev/null", "/dev/shm", "/sys/fs/cgroup"):
            found[f"{kind} over {target}"] = ordinary_steps(lower, before=[step(kind, target, **more)])
            found[f"{kind} over {target} afterwards"] = ordinary_steps(lower, after=[step(kind, target, **more)])
        found[f"{kind} behind the masks"] = ordinary_steps(lower, after=[step(kind, "/opt", **more)])
    for kind in ("proc", "sysfs", "devices", "mask", "read_only", "seal"):
        found[f"{kind} somewhere else"] = ordinary_steps(lower, after=[step(kind, "/opt")])
    found["two names alike"] = ordinary_steps(lower, before=[step("overlay", "/opt", name="root", lowers=[lower])])
    for name in ("..", "a/b", "", "a" * 300, b"a\0b", "A"):
        found[f"layer name {name[:8]!r}"] = [step("overlay", "/", name=name, lowers=[lower]), *system]
        found[f"host name {name[:8]!r}"] = [usual[0], *system, step("hostname", name=name)]
    for target in ("opt", "/../opt", "/opt/..", "//opt", "/opt/", "/./opt", b"/opt\0x", "/" + "a/" * 3000 + "a", "/" + "a" * 300, ""):
        found[f"target {target[:12]!r}"] = ordinary_steps(lower, before=[step("bind", target, source=lower)])
    for source in ("/", "/etc", "/root", "/proc/1/root", "/proc/self/fd/17", "/dev", f"{lower}/..", f"{lower}/../canary", "usr", "",
                   f"{lower}x", f"{lower}/link-out", f"{lower}/link-root", "/usr" + "/." * 10, b"/usr\0"):  # fmt: skip
        found[f"bind of {source[-24:]!r}"] = ordinary_steps(lower, before=[step("bind", "/opt", source=source)])
        found[f"layer {source[-24:]!r}"] = ordinary_steps(source)
        found[f"writable {source[-24:]!r}"] = ordinary_steps(lower, before=[step("bind", "/opt", source=source, access=WRITABLE)])
    found["a source that is to be read, writable"] = ordinary_steps(lower, before=[step("bind", "/opt", source=lower, access=WRITABLE)])
    found["an unknown access"] = ordinary_steps(lower, before=[step("bind", "/opt", source=lower, access=2)])
    found["ids of the owner"] = ordinary_steps(lower, before=[step("bind", "/opt", source=lower, ids=OWNER)])
    for source in ("/", "/etc", "/root", f"{lower}/..", f"{lower}/link-out", f"{lower}/link-root", "etc", "", b"/usr\0"):
        found[f"shared {source[-24:]!r}"] = ordinary_steps(lower, before=[step("bind", "/opt", source=source, ids=OWNER, access=WRITABLE)])
    for source in ("", "default", "default/", "/etc", "default/..", "../../etc", "default/none", "default/A", "default/a/../../b", "default/a//b",
                   b"default/a\0b", "default/.making-x", "default/" + "a" * 300, "/default/a"):  # fmt: skip
        found[f"volume {source[:24]!r}"] = ordinary_steps(lower, before=[step("volume", "/opt", source=source, access=WRITABLE)])
    for target in ("/", "/proc", "/dev", "/dev/shm", "/sys/fs/cgroup", "opt", "/opt/.."):
        found[f"volume over {target}"] = ordinary_steps(lower, before=[step("volume", target, source="default/none")])
    found["a volume behind the masks"] = ordinary_steps(lower, after=[step("volume", "/opt", source="default/none")])
    found["a volume with ids"] = ordinary_steps(lower, before=[step("volume", "/opt", source="default/none", ids=OWNER)])
    found["a volume with layers"] = ordinary_steps(lower, before=[step("volume", "/opt", source="default/none", lowers=[lower])])
    found["unknown ids"] = ordinary_steps(lower, before=[step("bind", "/opt", source=lower, ids=2)])
    found["a writable overlay"] = [step("overlay", "/", name="root", lowers=[lower], access=WRITABLE), *system]
    found["a source where none belongs"] = ordinary_steps(lower, before=[step("scratch", "/tmp", source="/etc")])
    found["layers where none belong"] = ordinary_steps(lower, before=[step("scratch", "/tmp", lowers=["/etc"])])
    found["an unknown step"] = ordinary_steps(lower, before=[step(200, "/opt")])
    found["thousands of steps"] = ordinary_steps(lower, before=[step("scratch", f"/a{i}") for i in range(2000)])
    found["thousands of layers"] = [step("overlay", "/", name="root", lowers=[lower] * 2000), *system]
    found["many overlays of many layers"] = ordinary_steps(
        lower, before=[step("overlay", f"/a{i}", name=f"a{i}", lowers=[lower] * 50) for i in range(8)])  # fmt: skip
    found["a huge target"] = ordinary_steps(lower, before=[step("scratch", "/" + "a" * 100_000)])
    return found


def hostile_ids():
    return ["", "x", ".", "..", "../..", "/", "/etc", "../../etc", GOOD_ID + "/..", GOOD_ID + "\0", GOOD_ID + "x", GOOD_ID[:-1],
            "a" * 100_000, b"\xff" * 36, "%s%n", "opensandbox", GOOD_ID.replace("0", "/"), "." * 36]  # fmt: skip


def hostile_limits():
    whole, none = 2**63 - 1, -1
    return [tuple(value if i == at else none for i in range(8)) for at in range(8) for value in (0, whole)
            if (at, value) not in ((1, whole), (3, whole), (4, whole))]  # fmt: skip  # memory and speeds have no upper end


def nonsense():
    """name -> bytes that are no request."""
    good = request(1, LIST, b"")
    return {
        "a byte": b"\0",
        "cut": good[:-1],
        "too long": good + b"x",
        "verb 0": request(1, 0, b""),
        "verb 64": request(1, 64, b""),
        "verb 255": request(1, 255, b""),
        "a length beyond the end": struct.pack("<BQBI", VERSION, 1, LIST, 2**32 - 1) + b"x",
        "another version": b"\x01" + good[1:],
        "no version": good[1:],
        "zeros": bytes(100),
        "ones": b"\xff" * 1000,
    }


def write_corpus(directory):
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    lower = "/srv/image"
    seeds = {"ordinary": request(1, START, plan(GOOD_ID, ordinary_steps(lower)))}
    limited = ordinary_steps(lower, after=[step("show_limits")])
    seeds["limited"] = request(2, START, plan(GOOD_ID, limited, limits=(500, 1 << 28, 64, 1000, 1000, 1 << 26, 64, 1 << 26)))
    for name, steps in hostile_plans(lower).items():
        if name.startswith("without mask") or name.endswith("afterwards"):
            continue  # too much like the others
        seeds[name] = request(3, START, plan(GOOD_ID, steps))
    for index, sandbox_id in enumerate(hostile_ids()):
        seeds[f"id {index}"] = request(4, DESTROY, sandbox_id)
        seeds[f"plan id {index}"] = request(5, START, plan(sandbox_id, []))
    for index, limits in enumerate(hostile_limits()):
        seeds[f"limits {index}"] = request(6, START, plan(GOOD_ID, limited, limits=limits))
    seeds["network"] = request(6, START, plan(GOOD_ID, ordinary_steps(lower), network=1, policy="web"))
    seeds["kernel"] = request(6, START, plan(GOOD_ID, ordinary_steps(lower), kernel=1))
    seeds["no kernel"] = request(6, START, plan(GOOD_ID, ordinary_steps(lower), kernel=2))
    seeds["adopt"] = request(7, ADOPT, text(GOOD_ID) + struct.pack("<qQ", 1, 1))
    seeds["sockets"] = request(8, SOCKETS, text(GOOD_ID) + struct.pack("<I", 2**32 - 1))
    seeds["listeners"] = request(12, LISTENERS, GOOD_ID)
    seeds["container"] = request(18, CONTAINER, text(GOOD_ID) + text("a" * 64) + struct.pack("<q", 1234))
    seeds["engine"] = request(19, ENGINE, b"")
    seeds["capture"] = request(9, CAPTURE, text(GOOD_ID) + text(GOOD_ID))
    seeds["keep"] = request(10, KEEP, GOOD_ID)
    seeds["place"] = request(20, PLACE, GOOD_ID)
    seeds["snapshots"] = request(11, SNAPSHOTS, GOOD_ID)
    named = step("volume", "/data", source="default/a/b", access=WRITABLE)
    shared = step("bind", "/data", source="/srv/shared/a", ids=OWNER, access=WRITABLE)
    seeds["with volumes"] = request(13, START, plan(GOOD_ID, ordinary_steps(lower, before=[named, step("bind", "/in", source="/srv/a", ids=OWNER)])))
    seeds["volume"] = request(14, VOLUME, named + struct.pack("<BBq", 1, 0, 1 << 30))
    seeds["shared path"] = request(15, VOLUME, shared + struct.pack("<BBq", 1, 1, -1))
    seeds["volumes"] = request(16, VOLUMES, text("default") + text("a"))
    seeds["drop volume"] = request(17, DROP_VOLUME, text("default") + text("a"))
    seeds.update(nonsense())
    for name, data in seeds.items():
        if len(data) <= 4096:
            file = "".join(c if c.isalnum() else "-" for c in name)
            (directory / file).write_bytes(data)
    print(json.dumps({"seeds": len(list(directory.iterdir()))}))


if __name__ == "__main__":
    if sys.argv[1] == "--write-corpus":
        write_corpus(sys.argv[2])
    else:
        hand_over(sys.argv[1])
