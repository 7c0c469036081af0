"""Where pages are executed: a host that looks as the pages say. A network of its own, in which port 8080 is free and the lab of netlab.py is
the internet; an /etc/hosts with a registry in it; an empty /var/lib/opensandbox. Nothing of the machine's own is touched."""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

from lib import images, netlab
from lib.registries import DebianRegistry, Made

CLONE_NEWNS = 0x00020000
STATE = Path("/var/lib/opensandbox")
HOSTS = "127.0.0.1 localhost registry.example\n"
REGISTRY_PORT = 5000
# Names that pages use, at addresses of the lab.
SITES = {"example.com": {"A": ["1.2.3.10"]}, "www.example.com": {"A": ["1.2.3.10"]}, "pypi.org": {"A": ["1.2.3.11"]}, "example.org": {"A": ["1.2.3.11"]}}
libc = ctypes.CDLL(None, use_errno=True)


def busybox():
    """An image as registries have them, of the one static program that Debian has for it."""
    program = Path("/bin/busybox").read_bytes()

    def fill(tar):
        images.add(tar, "bin/busybox", program, mode=0o755)
        for name in ("sh", "echo", "cat", "ls", "tail", "sleep", "uname", "mkdir", "ln", "cp", "wget", "id"):
            images.add(tar, f"bin/{name}", kind=b"2", link="busybox")
        images.add(tar, "etc/passwd", images.PASSWD)
        images.add(tar, "etc/group", images.GROUP)
        images.add(tar, "tmp", kind=b"5", mode=0o1777)

    return Made([images.tar_bytes(fill)], config={"Env": ["PATH=/bin"], "Cmd": ["sh"]})


class Stage:
    """The calling thread, and what it starts, is on the stage from enter() on; a process enters once and never leaves it."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="osb-stage-", dir="/var/tmp"))
        self.directory.chmod(0o755)
        self.lab = netlab.Lab({**netlab.ZONE, **SITES})
        self.registry = None

    def enter(self):
        netlab.check(libc.unshare(CLONE_NEWNS), "unshare")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        hosts = self.directory / "hosts"
        hosts.write_text(HOSTS)
        self.bind(hosts, "/etc/hosts")
        self.lab.enter()
        self.registry = DebianRegistry(port=REGISTRY_PORT)
        self.registry.push("library/busybox", busybox(), tag="latest")
        self.registry.push("team/app", busybox(), tag="1")
        return self

    def bind(self, source, target):
        subprocess.run(["mount", "--bind", source, target], check=True)

    def settings(self):
        """What a service needs to know of the stage."""
        return {
            "registry": {"plain_hosts": [f"registry.example:{REGISTRY_PORT}"]},
            "mirrors": {"docker.io": f"http://127.0.0.1:{REGISTRY_PORT}"},
            "sections": {"egress": {"name_servers": [netlab.DNS]}},
            "server": {"port": 8080},
        }

    def close(self):
        if self.registry:
            self.registry.close()
        self.lab.leave()
        subprocess.run(["umount", "/etc/hosts"], check=False)
        for path in self.directory.iterdir():
            path.unlink()
        os.rmdir(self.directory)
