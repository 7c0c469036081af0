"""Images whose root is laid out against the runtime: links where it mounts, masks and opens.

The class of CVE-2025-31133, 52565 and 52881, and of every "the image decides where the mount goes" before them. Such an image
may fail to start; it must not move a mount, a mask or a write to a place of its choosing on the host.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from lib.api import Api
from lib.plugin import shared_service
from lib.waiting import wait_for

MARK = "untouched"


def link(root, name, target):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


# name -> what is laid into the root; `outside` is a directory of the host.
HOSTILE = {
    "null-is-core-pattern": lambda root, outside: link(root, "dev/null", "/proc/sys/kernel/core_pattern"),
    "console-is-sysrq": lambda root, outside: link(root, "dev/console", "/proc/sysrq-trigger"),
    "dev-is-proc-sys": lambda root, outside: link(root, "dev", "/proc/sys"),
    "dev-leads-outside": lambda root, outside: link(root, "dev", outside),
    "dev-climbs-outside": lambda root, outside: link(root, "dev", "../" * 40 + str(outside).lstrip("/")),
    "dev-is-own-process": lambda root, outside: link(root, "dev", "/proc/self"),
    "dev-is-a-file": lambda root, outside: (root / "dev").write_text("x"),
    "proc-is-tmp": lambda root, outside: link(root, "proc", "/tmp"),
    "proc-leads-outside": lambda root, outside: link(root, "proc", outside),
    "proc-is-a-loop": lambda root, outside: link(root, "proc", "proc"),
    "sys-is-proc": lambda root, outside: link(root, "sys", "/proc"),
    "sys-leads-outside": lambda root, outside: link(root, "sys", outside),
    "tmp-leads-outside": lambda root, outside: link(root, "tmp", outside),
    "etc-leads-outside": lambda root, outside: link(root, "etc", outside),
    "root-leads-outside": lambda root, outside: link(root, "root", outside),
    "proc-is-prepared": lambda root, outside: [link(root, f"proc/{name}", outside) for name in ("kcore", "keys", "sys", "1")],
}


@pytest.fixture(scope="module")
def ground():
    """Where the images lie, and the directory of the host that they aim at."""
    path = Path(tempfile.mkdtemp(prefix="osb-hostile-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def outside(ground):
    path = ground / "outside"
    path.mkdir()
    path.chmod(0o777)
    (path / "null").write_text(MARK)
    (path / "sys").mkdir()
    return path


@pytest.fixture(scope="module")
def hostile_api(bin_dir, request, ground, outside, probe_path):
    images = {}
    for name, prepare in HOSTILE.items():
        root = ground / name
        root.mkdir()
        (root / "osb-probe").write_bytes(probe_path.read_bytes())
        (root / "osb-probe").chmod(0o755)
        prepare(root, outside)
        images[name] = str(root)
    return Api(shared_service(request, bin_dir, images=images))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("probe", ["masked_paths", "proc_sys", "leaked_fds", "canary"])
def test_hostile_root(name, probe, hostile_api, outside):
    before = snapshot(outside)
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    null = os.stat("/dev/null").st_rdev

    arguments = [str(outside / "null")] if probe == "canary" else []
    reply = hostile_api.post_create(image={"uri": name}, entrypoint=["/osb-probe", "run", probe, *arguments])
    if reply.status == 202:
        end = wait_for(lambda: ended(hostile_api, reply.json["id"]), 20, "the probe ends")
        hostile_api.delete(reply.json["id"])
        assert end["state"] == "Terminated" and end["reason"] == "ENTRYPOINT_EXITED", f"{name}: {end}"
    else:
        assert 400 <= reply.status <= 500 and reply.json["code"], reply  # refused, and in words

    assert snapshot(outside) == before, "something was made or changed outside"
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert os.stat("/dev/null").st_rdev == null
    assert str(outside) not in Path("/proc/self/mountinfo").read_text()


def ended(api, sandbox_id):
    status = api.status(sandbox_id)
    return status if status["state"] in ("Terminated", "Failed") else None


def snapshot(directory):
    entries = sorted(directory.rglob("*"))
    return [(str(path), path.stat().st_mode, path.read_text() if path.is_file() else "") for path in entries]
