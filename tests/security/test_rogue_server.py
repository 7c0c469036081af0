"""A server that was taken over owns its sandboxes, not the host.

A real launcher is started with a rogue in the server's place (rogue.py). Whatever it says: the launcher refuses with a reason,
lives on, and nothing of the host has changed.
"""

import hashlib
import os
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
import rogue
from lib import images
from lib.scope import cgroup_mounts
from lib.service import STATE_PARENT
from lib.waiting import wait_for

LINKS = {
    "proc-is-root": {"proc": "/"},
    "proc-is-dev": {"proc": "/dev"},
    "dev-is-etc": {"dev": "/etc"},
    "dev-is-outside": {"dev": "../../canary"},
    "dev-is-root": {"dev": "/"},
    "sys-is-proc": {"sys": "/proc"},
    "sys-is-root": {"sys": "../../.."},
}


@pytest.fixture(scope="module")
def ground():
    path = Path(tempfile.mkdtemp(prefix="osb-rogue-", dir=STATE_PARENT))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def sources(ground):
    """Directories that the operator allows to be shown; what is in them is the attacker's."""
    top = ground / "images"
    plain = images.write_root(top / "plain")
    (plain / "link-out").symlink_to("../../canary")
    (plain / "link-root").symlink_to("/")
    for name, links in LINKS.items():
        (top / name).mkdir()
        for link, target in links.items():
            (top / name / link).symlink_to(target)
    (top / "opt-is-proc").mkdir()
    (top / "opt-is-proc" / "opt").symlink_to("/proc")
    (top / "opt-is-root").mkdir()
    (top / "opt-is-root" / "opt").symlink_to("/proc/..")
    # Descriptors of directories that the launcher holds, below which lies the whole host.
    for number in range(5, 64):
        dev = top / f"null-{number}" / "dev"
        dev.mkdir(parents=True)
        (dev / "null").symlink_to(f"/proc/self/fd/{number}/../../canary/file")
    return top


@pytest.fixture(scope="module")
def canary(ground):
    path = ground / "canary"
    path.mkdir()
    (path / "file").write_text("untouched")
    (path / "null").write_text("untouched")
    return path


@pytest.fixture(scope="module")
def server(bin_dir, ground, sources, canary):
    made = rogue.Rogue(bin_dir, ground, [sources])
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_of_the_host_changes(canary, server):
    before = state_of_host(canary)
    sandboxes = server.ids()
    yield
    server.assert_alive()
    assert state_of_host(canary) == before
    # What failed on its way is removed behind the answer.
    wait_for(lambda: server.ids() == sandboxes, 10, "nothing is left behind")


def state_of_host(canary):
    files = [(str(path), path.lstat().st_mode, path.lstat().st_size, path.read_bytes()) for path in sorted(canary.rglob("*"))]
    digest = {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in ("/etc/passwd", "/etc/hostname")}
    mounted = str(canary) in Path("/proc/self/mountinfo").read_text()
    return files, digest, os.stat("/dev/null").st_rdev, sorted(os.listdir("/")), mounted


def assert_refused(answer):
    assert answer.error and answer.message, f"not refused: {answer}"
    assert len(answer.message) < 5000


def new_id():
    return str(uuid.uuid4())


# An image decides what execd writes to


def test_no_descriptor_of_execd_is_chosen_by_the_image(server, sources, canary):
    """`dev/null` of the image is a link to a file of the host, the plan leaves `devices` out, and the launcher opens it as root."""
    for number in range(5, 64):
        steps = [
            rogue.step("overlay", "/", name="root", lowers=[str(sources / f"null-{number}")]),
            rogue.step("proc", "/proc"),
        ]
        answer, pid = server.start(new_id(), steps)
        if pid:
            opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)]
            for sandbox_id in server.ids():
                server.ask(rogue.DESTROY, sandbox_id)
            assert not any(str(canary) in path for path in opened), f"execd holds a file of the host through {number}: {opened}"
        assert_refused(answer)


def test_every_descriptor_of_execd_is_accounted_for(server, sources):
    """With the links in place and a plan that is allowed: null devices of its own, two listeners, and what execd made itself."""
    own = {"anon_inode:[eventpoll]", "anon_inode:[eventfd]", "anon_inode:[timerfd]", "anon_inode:[signalfd]", "anon_inode:[pidfd]",
           "anon_inode:inotify", "anon_inode:seccomp notify"}  # fmt: skip
    sandbox_id = new_id()
    answer, pid = server.start(sandbox_id, rogue.ordinary_steps(str(sources / "null-20")), limits=(-1, 1 << 28, -1, -1, -1, -1, -1, -1))
    assert pid, answer
    listening = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if int(line.split()[3], 16) & 0x10000}
    for fd in wait_for(lambda: os.listdir(f"/proc/{pid}/fd"), 5, "execd has descriptors"):
        kind = os.readlink(f"/proc/{pid}/fd/{fd}")
        info = os.stat(f"/proc/{pid}/fd/{fd}")
        if int(fd) < 3:
            assert stat.S_ISCHR(info.st_mode) and info.st_rdev == os.makedev(1, 3), kind
            assert info.st_ino == os.stat(f"/proc/{pid}/root/dev/null").st_ino, "not the sandbox's own"
            assert info.st_dev != os.stat("/dev/null").st_dev, "the host's"
        elif int(fd) < 5:
            assert kind.startswith("socket:[") and kind[8:-1] in listening, kind
        else:
            assert kind in own or kind.startswith(("pipe:[", "socket:[")), f"descriptor {fd} is {kind}"
    server.ask(rogue.DESTROY, sandbox_id)


@pytest.mark.parametrize("name", LINKS)
def test_links_where_the_kernels_trees_go(name, server, sources):
    answer, pid = server.start(new_id(), rogue.ordinary_steps(str(sources / name)))
    for sandbox_id in server.ids():
        server.ask(rogue.DESTROY, sandbox_id)
    assert not pid, "started with a link of the image in place of a tree of the kernel"
    assert_refused(answer)


@pytest.mark.parametrize("name", ["opt-is-proc", "opt-is-root"])
def test_a_mount_that_a_link_leads_to_proc_lies_below_it(name, server, sources):
    before = [rogue.step("bind", "/opt", source=str(sources / "plain"))]
    sandbox_id = new_id()
    answer, pid = server.start(sandbox_id, rogue.ordinary_steps(str(sources / name), before=before))
    if not pid:
        return assert_refused(answer)
    root = Path(f"/proc/{pid}/root")
    try:
        mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
        assert [m[m.index("-") + 1] for m in mounts if m[4] == "/proc"][-1] == "proc"
        for path in rogue.MASKED:
            if (Path("/") / path).is_file():
                assert os.stat(str(root) + path).st_rdev == os.makedev(1, 3), path
    finally:
        server.ask(rogue.DESTROY, sandbox_id)


# Plans


def test_hostile_plans(server, sources):
    for name, steps in rogue.hostile_plans(str(sources / "plain")).items():
        data = rogue.plan(new_id(), steps)
        if len(data) + 64 > rogue.MAX_MESSAGE:
            continue
        answer = server.ask(rogue.START, data)
        answer.close()
        if not answer.error:
            for sandbox_id in server.ids():
                server.ask(rogue.DESTROY, sandbox_id)
        assert answer.error and answer.message, f"not refused: {name}"


def test_ids_limits_and_sources_of_others(server, sources, bin_dir):
    steps = rogue.ordinary_steps(str(sources / "plain"))
    for sandbox_id in rogue.hostile_ids():
        assert_refused(server.start(sandbox_id, steps)[0])
    for limits in rogue.hostile_limits():
        answer, _ = server.start(new_id(), steps, limits=limits)
        assert answer.error, limits
    for image in ("x", "../" * 21 + "a", "A" * 64, "a" * 63, b"\0" * 64):
        assert_refused(server.start(new_id(), steps, image=image)[0])
    for network, policy in ((1, "web"), (0, "web"), (2, "web"), (3, ""), (255, "x" * 50_000)):
        assert_refused(server.start(new_id(), steps, network=network, policy=policy)[0])
    for kernel in (1, 2, 255):  # it was started without runsc; there are no others
        assert server.start(new_id(), steps, kernel=kernel)[0].error, kernel
    state = server.state_dir
    for path in (state, state / "db", state / "images", state / "run", state / "sandboxes", state / "images" / ".." / "db", bin_dir):
        assert_refused(server.start(new_id(), rogue.ordinary_steps(str(path)))[0])


def test_an_allowed_plan_starts_and_cannot_start_twice(server, sources):
    steps = rogue.ordinary_steps(str(sources / "plain"))
    sandbox_id = new_id()
    answer, pid = server.start(sandbox_id, steps)
    assert pid, answer
    assert_refused(server.start(sandbox_id, steps)[0])
    assert not server.ask(rogue.DESTROY, sandbox_id).error


# The other verbs


def test_processes_and_groups_of_others(server, sources):
    sandbox_id = new_id()
    answer, pid = server.start(sandbox_id, rogue.ordinary_steps(str(sources / "plain")))
    assert pid, answer
    bystander = subprocess.Popen(["sleep", "300"])
    mounts = {Path(mount) for mount in cgroup_mounts().values()}
    groups = [mount / f"osb-rogue-test-{os.getpid()}" / sandbox_id for mount in mounts]
    assert groups
    try:
        for group in groups:
            group.mkdir(parents=True)
            with suppress(OSError):  # of a kind that needs to be set up first, as cpuset
                (group / "cgroup.procs").write_text(str(bystander.pid))
        for other in (1, os.getpid(), server.process.pid, server.rogue_pid, bystander.pid, 0, -1, 2**31, 2**63 - 1):
            for ticks in (0, start_ticks(other), 2**64 - 1):
                for name in (sandbox_id, new_id(), "..", ""):
                    answer = server.ask(rogue.ADOPT, rogue.text(name) + struct.pack("<qQ", other, ticks))
                    assert answer.error and not answer.descriptors, (other, answer)
        for name in [*rogue.hostile_ids(), f"../osb-rogue-test-{os.getpid()}", f"../osb-rogue-test-{os.getpid()}/{sandbox_id}"]:
            for verb in (rogue.STOP, rogue.DESTROY, rogue.FREEZE, rogue.THAW, rogue.OOMS, rogue.RECALL):
                assert server.ask(verb, name).error, (verb, name[:50])
            for verb in (rogue.ADOPT, rogue.SOCKETS):
                assert server.ask(verb, rogue.text(name) + struct.pack("<qQ", 1, 1)).error, (verb, name[:50])
            assert server.ask(rogue.RECORD, rogue.text(name) + rogue.text(b"{}")).error, name[:50]
        assert_refused(server.ask(rogue.RECORD, rogue.text(sandbox_id) + rogue.text(b"x" * (65 << 10))))
        # What a sandbox sends out is for the egress process alone.
        answer = server.ask(rogue.LISTENERS, sandbox_id)
        assert answer.error and "may not ask for listeners" in answer.message and not answer.descriptors, answer
        for verb in (rogue.FREEZE, rogue.STOP, rogue.DESTROY):
            server.ask(verb, new_id())
        server.ask(rogue.DESTROY, sandbox_id)  # a group of that name is another's, too
        assert bystander.poll() is None, "a process of somebody else was ended"
        assert Path(f"/proc/{bystander.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"
        assert all(group.is_dir() for group in groups), "a group of somebody else was removed"
    finally:
        bystander.kill()
        bystander.wait()
        for group in groups:
            for path in (group, group.parent):
                if path.is_dir():
                    path.rmdir()


def start_ticks(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    except OSError:
        return 1


def test_sockets(server, sources):
    sandbox_id = new_id()
    answer, pid = server.start(sandbox_id, rogue.ordinary_steps(str(sources / "plain")))
    assert pid, answer
    for count in (0, 17, 1000, 2**31, 2**32 - 1):
        assert_refused(server.ask(rogue.SOCKETS, rogue.text(sandbox_id) + struct.pack("<I", count)))
    for body in (b"", rogue.text(sandbox_id), rogue.text(sandbox_id)[:7], b"\xff" * 40):
        assert_refused(server.ask(rogue.SOCKETS, body))
    answer = server.ask(rogue.SOCKETS, rogue.text(sandbox_id) + struct.pack("<I", 16))
    assert len(answer.descriptors) == 16
    for descriptor in answer.descriptors:
        with socket.socket(fileno=descriptor) as made:
            assert os.stat(f"/proc/{pid}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino
            assert made.getsockname() == ("0.0.0.0", 0)
    server.ask(rogue.DESTROY, sandbox_id)


@pytest.fixture
def group_of():
    """Puts a process into groups that are named like a container's, as an engine would."""
    made = []

    def put(pid, name):
        for mount in {Path(mount) for mount in cgroup_mounts().values()}:
            group = mount / f"osb-rogue-test-{os.getpid()}" / name
            group.mkdir(parents=True, exist_ok=True)
            made.append(group)
            with suppress(OSError):  # of a kind that needs to be set up first, as cpuset
                (group / "cgroup.procs").write_text(str(pid))

    yield put
    for group in made:
        for path in (group, group.parent):
            with suppress(OSError):
                path.rmdir()


def test_networks_of_containers(server, sources, group_of):
    """An outlet is opened in a network in which there is nothing, of the first process of the container that is named; nowhere else."""
    container = "c0" * 32
    children = []

    def run(*flags, setup="true"):
        """The pid of `sleep` in namespaces of its own."""
        process = subprocess.Popen(["unshare", "--fork", *flags, "sh", "-c", f"{setup}; echo ready; exec sleep 300"], stdout=subprocess.PIPE, text=True)
        children.append(process)
        assert process.stdout.readline() == "ready\n"
        return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())

    def ask(pid, name=None, of=container):
        return server.ask(rogue.CONTAINER, rogue.text(name or new_id()) + rogue.text(of) + struct.pack("<q", pid))

    try:
        sandbox_id = new_id()
        answer, native = server.start(sandbox_id, rogue.ordinary_steps(str(sources / "plain")))
        assert native, answer
        outside, alone = run("--pid", "--net", setup="ip link set lo up"), run("--pid", "--net", setup="ip link set lo up")
        hosts, connected = run("--pid"), run("--pid", "--net", setup="ip link set lo up; ip link add d0 type veth peer name d1; ip link set d0 up")
        second = run("--net", setup="ip link set lo up")  # not the first of a pid namespace
        for pid in (alone, hosts, connected, second):
            group_of(pid, container)
        for pid, why in [(outside, "not in that container"), (hosts, "the network of the host"), (connected, "something in this network"),
                         (second, "not the first one"), (native, "not in that container"), (1, ""), (os.getpid(), ""), (server.process.pid, ""),
                         (0, ""), (-1, ""), (2**31, ""), (2**63 - 1, "")]:  # fmt: skip
            answer = ask(pid)
            assert answer.error and why in answer.message and not answer.descriptors, (pid, answer)
        for name in rogue.hostile_ids():
            assert ask(alone, name or " ").error, name[:50]
        for of in ("", "c0", "C0" * 32, "c0" * 33, "../" + "c0" * 30, "\0" * 64, "c1" * 32):
            assert ask(alone, of=of).error, of
        assert not list((server.state_dir / "containers").iterdir()), "nothing is left of what was refused"
        rules = lambda pid: subprocess.run(["nsenter", "-n", "-t", str(pid), "ip", "-o", "addr"], capture_output=True, text=True).stdout  # noqa: E731
        assert "10.0.2.15" not in rules(alone) + rules(outside) + rules(connected) + rules(hosts)
        name = new_id()
        assert not (answer := ask(alone, name)).error, answer
        assert "10.0.2.15" in rules(alone)
        assert ask(alone, name).error and ask(alone).error, "it is one sandbox's and stays so"
        assert not server.ask(rogue.DESTROY, name).error
        assert not list((server.state_dir / "containers").iterdir())
    finally:
        server.ask(rogue.DESTROY, sandbox_id)
        for process in children:
            process.kill()
            process.wait()


def test_lists(server):
    for after in ("", "\xff" * 100, "../..", "\0", "z" * 100_000, new_id()):
        answer = server.ask(rogue.LIST, after)
        assert not answer.error and struct.unpack_from("<I", answer.body)[0] == 0


# What is no message


def test_descriptors_that_come_with_a_request_are_closed(server, canary):
    with open(canary / "file", "rb") as file:
        for count in (1, 16):
            for _ in range(50):
                assert not server.ask(rogue.LIST, b"", [file.fileno()] * count).error

    def held():
        found = []
        for fd in os.scandir(f"/proc/{server.process.pid}/fd"):
            with suppress(OSError):
                found.append(os.readlink(fd.path))
        return found

    # Those of the last request go right behind its answer.
    wait_for(lambda: str(canary / "file") not in held(), 5, "the launcher lets go of what the server gave it")


def test_nonsense_ends_the_server_and_not_the_launcher(server, pytestconfig):
    # All of it with --long: the launcher waits longer before each start of a server that never lives long. Every kind is also
    # a seed of the fuzz target.
    kinds = list(rogue.nonsense().items())
    for name, data in kinds if pytestconfig.getoption("--long") else kinds[::3]:
        old = server.rogue_pid
        server.send_raw(data)
        server.meet(30)
        assert server.rogue_pid != old, name
        server.assert_alive()
    assert server.process.poll() is None


def test_a_message_that_is_too_large(server):
    server.channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    server.send_raw(rogue.request(1, rogue.LIST, b"x" * (rogue.MAX_MESSAGE + 1000)))
    with pytest.raises(rogue.Gone):
        while True:
            server.receive().close()
    os.kill(server.rogue_pid, signal.SIGKILL)  # a real one ends by itself when its launcher is gone
    server.meet(30)


def test_a_server_that_does_not_read_its_answers(server):
    """Answers in flight are bounded: the launcher stops reading, nothing is lost, and the server is not ended for being slow."""
    old = server.rogue_pid
    server.channel.setblocking(False)
    sent = 0
    while sent < 100_000:
        try:
            server.channel.send(rogue.request(sent, rogue.OOMS, "no such id"))
            sent += 1
        except BlockingIOError:
            if not select.select([], [server.channel], [], 2)[1]:
                break  # both directions are full
    assert 200 < sent < 100_000, sent
    memory = resident(server.process.pid)
    tags = []
    for _ in range(sent):
        tags.append(server.receive().tag)
    assert tags == list(range(sent))
    assert server.rogue_pid == old and Path(f"/proc/{old}").exists()
    assert memory < 64 << 20
    assert "does not take its answers" not in server.log()


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_engines_socket(bin_dir, ground, server, tmp_path):
    """A server gets a connection to the one socket that root has named, and to no other; without one there is no such verb."""
    assert "may not ask for engine" in server.ask(rogue.ENGINE, b"").message
    tmp_path.chmod(0o700)
    named, other = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    for listener, name in ((named, "engine.sock"), (other, "other.sock")):
        listener.bind(str(tmp_path / name))
        listener.listen(8)
        listener.settimeout(10)
    (ground / "with-engine").mkdir()
    second = rogue.Rogue(bin_dir, ground / "with-engine", [], engine_socket=tmp_path / "engine.sock")
    try:
        for body in (str(tmp_path / "other.sock"), rogue.text(str(tmp_path / "other.sock")), b"\0", b"x" * 100_000):
            answer = second.ask(rogue.ENGINE, body)
            assert answer.error and not answer.descriptors, answer
        answer = second.ask(rogue.ENGINE, b"")
        assert not answer.error and len(answer.descriptors) == 1, answer
        there, _ = named.accept()
        with there, socket.socket(fileno=answer.descriptors.pop()) as here:
            here.sendall(b"asked")
            assert there.recv(16) == b"asked"
        named.close()
        assert "Connection refused" in second.ask(rogue.ENGINE, b"").message
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()
        second.assert_alive()
    finally:
        second.close()
        other.close()
