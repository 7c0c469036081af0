"""A guest of this host: a kernel of its own, emulated in software, with cgroup version 2 alone."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

MEMORY_MIB = 1536
PROCESSORS = 2
DISK_MIB = 1024


class Machine:
    """Boots from what tests/vm/image made. The disk for /var/tmp outlives boots; the root file system is as new at each."""

    def __init__(self, images, directory):
        self.images = Path(images)
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.disk = self.directory / "disk.img"
        self.console = self.directory / "console.log"
        self.results = self.directory / "results"
        self.console_start = 0
        self.process = None
        self.new_disk()

    def new_disk(self):
        self.disk.unlink(missing_ok=True)
        self.disk.touch()
        os.truncate(self.disk, DISK_MIB << 20)
        subprocess.run(["/usr/sbin/mke2fs", "-q", "-t", "ext4", self.disk], check=True)

    def boot(self, order):
        """Starts the guest with an order (see guest/job.py); returns at once."""
        assert self.process is None or self.process.poll() is not None, "the guest runs already"
        paper = self.directory / "order.json"
        text = json.dumps(order).encode()
        paper.write_bytes(text + b" " * (-len(text) % 512))
        self.results.write_bytes(b"")
        with open(self.console, "ab") as console:
            self.console_start = console.tell()
            self.process = subprocess.Popen(
                [
                    "nice", "-n", "10", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "pc",
                    "-m", str(MEMORY_MIB), "-smp", str(PROCESSORS), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                    "-kernel", self.images / "vmlinuz", "-initrd", self.images / "initramfs",
                    "-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all random.trust_cpu=on mitigations=off",
                    "-serial", "stdio",
                    *self.drive(self.images / "root.img", "snapshot=on"), *self.drive(self.disk), *self.drive(paper, "readonly=on"),
                    "-device", "virtio-serial", "-chardev", f"file,id=results,path={self.results}",
                    "-device", "virtserialport,chardev=results,name=results", "-device", "virtio-rng",
                ],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            )  # fmt: skip

    @staticmethod
    def drive(path, option=None):
        return ["-drive", f"file={path},if=virtio,format=raw" + (f",{option}" if option else "")]

    def console_of_this_boot(self):
        return self.console.read_bytes()[self.console_start :].decode(errors="replace")

    def lines(self):
        """What the guest has told so far: complete lines."""
        return self.results.read_bytes().decode(errors="replace").split("\n")[:-1]

    def facts(self):
        return [json.loads(line.removeprefix("fact ")) for line in self.lines() if line.startswith("fact ")]

    def wait(self, timeout):
        """Until it switched itself off; the report of its tests, or None."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.cut_power()
            return None
        told = self.results.read_bytes().decode(errors="replace")
        found = re.search(r"^report (\d+)\n(.*)^end of report$", told, re.M | re.S)
        return (int(found.group(1)), found.group(2)) if found else None

    def wait_for_facts(self, enough, timeout):
        deadline = time.monotonic() + timeout
        while not enough(self.facts()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def cut_power(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
