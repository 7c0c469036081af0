"""The processes that deal with images, and the command line that asks for it."""

import os
import subprocess


def osb(service, *words, **more):
    return subprocess.run([service.bin_dir / "osb", *words, "--server", f"127.0.0.1:{service.address[1]}"], capture_output=True, text=True, timeout=60, **more)  # fmt: skip


def swallow(call):
    try:
        call()
    except Exception:  # noqa: BLE001  (the server that would answer is killed)
        pass


def children_named(word):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] == word:
            found.append(int(pid))
    return found


def keeper_of(service):
    for pid in children_named(b"image-keeper"):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if str(service.state_dir).encode() in file.read():
                return pid
    raise AssertionError("no keeper runs")


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])
