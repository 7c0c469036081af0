"""Debian's Docker engine in network and mount namespaces of its own, with everything it keeps below one directory.

Its programs are unpacked below build/environments/docker (scripts/docker-engine); nothing of it is installed. It never touches the
host's networks, firewall or mounts. Whoever wants its sockets names the path; nothing else leads to it.

The newer one is Debian 13's, in a root of its own, in which /var/tmp is the host's: state directories of tests are there.
"""

import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from .service import child_pids
from .waiting import wait_for

IMAGE = "small:1"
# As another user, in another directory, with a variable.
PLAIN_USER = "plain:1"


REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "build/environments/docker/root"
NEWER = REPOSITORY / "build/environments/docker-trixie/root"
# Of the engine's socket: a number that no account has. The server is given it by the launcher.
GROUP = 64123
KINDS = ("own", "newer", "podman")

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)

# Keeps namespaces. What the newer engine writes to its root is gone with it.
HOLD = "ip link set lo up && echo ready && exec sleep infinity"
HOLD_NEWER = """
set -e
ip link set lo up
mkdir "$2/root" "$2/upper" "$2/work"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mkdir -p "$2/root/var/tmp"
# For runtimes with arguments: the engine writes a script for each.
[ -e "$2/root/bin/sh" ] || cp "$(command -v busybox)" "$2/root/bin/sh"
for path in proc sys dev; do mount --rbind "/$path" "$2/root/$path"; done
mount --bind /var/tmp "$2/root/var/tmp"
mount -t tmpfs tmpfs "$2/root/run"
cd "$2/root"
pivot_root . old
umount -l /old
echo ready
exec sleep infinity
"""


@lru_cache
def make_programs(kind="own"):
    words = {"own": [], "newer": ["trixie"]}.get(kind, [kind])
    made = subprocess.run([REPOSITORY / "scripts/docker-engine", *words], capture_output=True, text=True, check=False)
    return "" if made.returncode == 0 else (made.stderr.strip().splitlines() or ["it ended with an error"])[-1]


def environment():
    libraries = [path for path in (PROGRAMS / "usr/lib", PROGRAMS / "lib") for path in path.glob("*-linux-gnu")]
    modules = next((PROGRAMS / "usr/lib").glob("*-linux-gnu/xtables"), PROGRAMS)
    return {
        "PATH": f"{PROGRAMS}/usr/sbin:{PROGRAMS}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "XTABLES_LIBDIR": str(modules),
        "HOME": "/nonexistent",
    }


class Dockerd:
    takes_port_ranges = True
    tells_image_ids = True
    takes_variables_away = True  # of an image that is committed; otherwise they are left empty
    commits_stop_signals = True  # of a container; Debian 12's Docker takes none as a change of the image, and Podman only that

    def __init__(self, *options, kind="own"):
        self.options, self.kind = options, kind
        self.directory = Path(tempfile.mkdtemp(prefix="osb-dockerd-", dir="/var/tmp"))
        self.directory.chmod(0o755)  # the server is not root and has to reach the socket
        self.socket = self.directory / "docker.sock"
        self.process = None
        # Keeps the namespaces while the engine is away: what containers have of them is still there when it is back.
        script = [HOLD] if kind == "own" else [HOLD_NEWER, "sh", str(NEWER), str(self.directory)]
        self.holder = subprocess.Popen(
            ["unshare", "-n", "-m", "--propagation", "private", "sh", "-c", *script],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.holder.stdout.readline() == b"ready\n"

    def start(self):
        command = [
            "dockerd", *self.options, "--data-root", str(self.directory / "data"), "--exec-root", str(self.directory / "exec"),
            "-H", f"unix://{self.socket}", "-G", str(GROUP), "--pidfile", str(self.directory / "pid"),
        ]  # fmt: skip
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.inside(), *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(),
            )  # fmt: skip
        wait_for(self.answers, 60, "dockerd answers", interval=0.1)
        return self

    def environment(self):
        return environment() if self.kind == "own" else {"PATH": "/usr/sbin:/usr/bin", "HOME": "/nonexistent"}

    @contextmanager
    def network(self):
        """This thread, and what it starts meanwhile, is in the engine's network: its loopback is the engine's."""
        with open("/proc/thread-self/ns/net") as home, open(f"/proc/{self.holder.pid}/ns/net") as there:
            if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                if libc.setns(home.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")

    def inside(self):
        """Before a command: in the engine's namespaces."""
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-m"]

    def beside(self):
        """Before a command of this machine: in the engine's network, with the host's files."""
        return ["nsenter", "-t", str(self.holder.pid), "-n"]

    def run_inside(self, *words):
        subprocess.run([*self.inside(), *words], check=True, capture_output=True)

    def answers(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
        return self.docker("version", check=False).returncode == 0

    def docker(self, *words, check=True, **options):
        return subprocess.run(["docker", "-H", f"unix://{self.socket}", *words], capture_output=True, check=check, timeout=60, env=environment(), **options)

    def get(self, path):
        """What its API answers. Quicker than the client, for what is asked again and again."""
        connection = http.client.HTTPConnection("docker")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(20)
        try:
            connection.sock.connect(str(self.socket))
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def inspect(self, name):
        return json.loads(self.docker("inspect", name).stdout)[0]

    def containers(self):
        return self.docker("ps", "-a", "--format", "{{.Names}}").stdout.decode().split()

    def images(self):
        """Ids of all, also of those without a name."""
        return set(self.docker("images", "-a", "-q", "--no-trunc").stdout.decode().split())

    def volumes(self):
        return set(self.docker("volume", "ls", "-q").stdout.decode().split())

    def networks(self):
        return set(self.docker("network", "ls", "-q", "--no-trunc").stdout.decode().split())

    def import_root(self, name, root, without=()):
        """A directory as an image; once."""
        if self.docker("image", "inspect", name, check=False).returncode == 0:
            return
        tar = subprocess.Popen(["tar", "-C", root, "-c", *(f"--exclude={part}" for part in without), "."], stdout=subprocess.PIPE)
        changes = ["-c", "ENV LANG=C.UTF-8", "-c", "WORKDIR /"]
        if not without:
            changes = ["-c", "ENV LANG=C.UTF-8", "-c", "WORKDIR /workspace", "-c", 'ENTRYPOINT ["/opt/code-interpreter/code-interpreter.sh"]']
        subprocess.run(["docker", "-H", f"unix://{self.socket}", "import", *changes, "-", name], stdin=tar.stdout, capture_output=True, check=True, env=environment())
        assert tar.wait(10) == 0

    def import_images(self):
        root = self.directory / "root"
        for name in ("bin", "etc", "tmp", "root", "home/plain"):
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        (root / "root").chmod(0o700)
        os.chown(root / "home/plain", 1000, 1000)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for applet in subprocess.run(["busybox", "--list"], capture_output=True, check=True, text=True).stdout.split():
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nplain:x:1000:1000::/home/plain:/bin/sh\n")
        tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
        self.docker("import", "-", IMAGE, input=tar)
        self.docker("import", "-c", "USER plain", "-c", "WORKDIR /home/plain", "-c", "ENV OF_IMAGE=yes", "-", PLAIN_USER, input=tar)
        shutil.rmtree(root)
        return self

    def kill(self):
        """kill -9; its containers run on until it is started again."""
        self.process.kill()
        self.process.wait(20)
        # Its containerd dies with it. Where nobody reaps that, the next engine would take it for alive and wait for it.
        (self.directory / "exec/containerd/containerd.pid").unlink(missing_ok=True)

    def shims(self):
        """Of containers that an engine has left behind: they name its socket, or Podman's files, which are below our directory."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if (b"containerd-shim" in words[0] or words[0].endswith(b"/conmon")) and any(word.startswith(bytes(self.directory) + b"/") for word in words):
                yield int(path.parent.name)

    def destroy(self):
        """All of it goes, also when a part of it is gone already or does not end."""
        try:
            self.end_engine()
            for pid in self.shims():
                for process in [*child_pids(pid), pid]:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
        finally:
            self.holder.kill()
            self.holder.wait(10)
            shutil.rmtree(self.directory, ignore_errors=True)

    def end_engine(self):
        if self.process is not None and self.process.poll() is None:
            # One that does not answer any more is ended all the same.
            if left := self.docker("ps", "-aq", check=False).stdout.decode().split():
                self.docker("rm", "-f", *left, check=False)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
