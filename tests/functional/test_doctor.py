"""osb doctor on machines that lack something: it names what is missing, what follows from it, and what to do."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from lib.rootless import unused_id

LINE = re.compile(r"^(?P<word>ok|no|weaker|untried|MISSING) +(?P<name>\S+(?: \S+)*?)  +(?P<text>.*)$")
# Not tried but known from the runtime: what a request may ask for.
ASKED = ("resourceLimits.", "pause", "snapshots", "pools", "volumes", "networkPolicy", "secureAccess", "pulling images", "server")


@pytest.fixture(scope="module")
def place():
    """A directory that everybody may enter, on a real disk, with an executable that everybody may start."""
    made = Path(tempfile.mkdtemp(prefix="osb-test-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def doctor(bin_dir, place):
    shutil.copy2(bin_dir / "osb", place / "osb")

    def run(*wrapper, state=place / "state"):
        words = [*wrapper, place / "osb", "doctor", "--state-dir", state]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"], "OPEN_SANDBOX_DOMAIN": "127.0.0.1:1"})
        lines = {line["name"]: line for line in map(LINE.match, done.stdout.splitlines()) if line}
        assert len(lines) > 20, done
        return done, lines

    return run


def in_mounts(script):
    return ["unshare", "--mount", "sh", "-c", f'mount --make-rprivate / && {script} && exec "$@"', "sh"]


def as_user():
    user = str(unused_id())
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all"]


# what is taken away: how, where the state directory is instead, and the words for the abilities that are gone
LACKS = {
    "root": (as_user, None, {"root": ("weaker", "MISSING")}),
    "the right to mount": (lambda: ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"], None, {"root": ("MISSING",), "overlayfs": ("MISSING",), "own root": ("MISSING",)}),
    "control groups": (lambda: in_mounts("umount -R -l /sys/fs/cgroup && mount -t tmpfs none /sys/fs/cgroup"), None, {"cgroup placement": ("MISSING",), "cgroup kill and freeze": ("MISSING",), "memory limit": ("weaker",), "cpu limit": ("weaker",)}),
    "a file system for layers": (
        lambda: in_mounts("mount -t tmpfs none /mnt && mkdir /mnt/l /mnt/u /mnt/w /mnt/m && mount -t overlay none -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w /mnt/m"),
        "/mnt/m/state", {"overlayfs": ("MISSING",)}),
    "space on the disk": (lambda: in_mounts("mount -t tmpfs -o size=4m none /mnt"), "/mnt/state", {"disk": ("weaker",)}),
    "open files": (lambda: ["prlimit", "--nofile=256:256"], None, {"open files": ("weaker",)}),
    "a network": (lambda: ["unshare", "--net"], None, {"way out of the host": ("no",)}),
    "loop devices": (lambda: in_mounts("mount -t tmpfs none /mnt && touch /mnt/null && mount --bind /dev/null /mnt/null && mount --move /mnt /dev"), None, {"disk limit": ("no",)}),
}  # fmt: skip


@pytest.mark.parametrize("what", LACKS)
def test_what_is_missing_is_named_with_its_consequence_and_its_fix(doctor, what):
    wrapper, state, gone = LACKS[what]
    done, lines = doctor(*wrapper(), **({"state": state} if state else {}))
    for name, words in gone.items():
        assert lines[name]["word"] in words, done.stdout
    for name, line in lines.items():
        if line["word"] == "ok" or name.startswith(ASKED):
            continue
        if line["word"] == "untried":
            assert "fix: sudo osb doctor" in line["text"], line[0]
            continue
        assert re.search(r"\S; so: \S.*; fix: \S", line["text"]), line[0]
    missing = [name for name, line in lines.items() if line["word"] == "MISSING"]
    assert done.returncode == (1 if missing else 0), done.stdout
    if missing:
        assert f"Sandboxes cannot run here: {', '.join(missing)} missing" in done.stdout


def test_nothing_is_missing_here(doctor):
    """The control: the same machine with everything."""
    done, lines = doctor()
    assert done.returncode == 0 and "Sandboxes can run here" in done.stdout
    for _, _, gone in LACKS.values():
        for name in gone:
            if name not in ("way out of the host", "disk limit"):
                assert lines[name]["word"] == "ok", done.stdout
