"""Images whose root is laid out against the runtime: links where it mounts, masks and opens.

The class of CVE-2025-31133, 52565 and 52881, and of every "the image decides where the mount goes" before them. Such an image
may fail to start; it must not move a mount, a mask or a write to a place of its choosing on the host.
"""

import os
from pathlib import Path

import pytest

from lib.api import Api
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


@pytest.fixture
def outside(tmp_path_factory):
    path = tmp_path_factory.mktemp("outside")
    path.chmod(0o777)
    (path / "null").write_text(MARK)
    (path / "sys").mkdir()
    return path


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("probe", ["masked_paths", "proc_sys", "leaked_fds", "canary"])
def test_hostile_root(name, probe, new_service, probe_path, tmp_path, outside):
    root = tmp_path / "image"
    root.mkdir()
    root.chmod(0o755)
    (root / "osb-probe").write_bytes(probe_path.read_bytes())
    (root / "osb-probe").chmod(0o755)
    HOSTILE[name](root, outside)
    before = snapshot(outside)
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    nulls = os.stat("/dev/null").st_rdev

    service = new_service(images={"hostile": str(root)})
    api = Api(service)
    arguments = [str(outside / "null")] if probe == "canary" else []
    reply = api.post_create(image={"uri": "hostile"}, entrypoint=["/osb-probe", "run", probe, *arguments])
    if reply.status == 202:
        end = wait_for(lambda: ended(api, reply.json["id"]), 20, "the probe ends")
        assert end["state"] == "Terminated" and end["reason"] == "ENTRYPOINT_EXITED", f"{name}: {end}"
    else:
        assert 400 <= reply.status <= 500 and reply.json["code"], reply  # refused, and in words

    assert snapshot(outside) == before, "something was made or changed outside"
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert os.stat("/dev/null").st_rdev == nulls
    assert str(outside) not in Path("/proc/self/mountinfo").read_text()


def ended(api, sandbox_id):
    status = api.status(sandbox_id)
    return status if status["state"] in ("Terminated", "Failed") else None


def snapshot(directory):
    entries = sorted(directory.rglob("*"))
    return [(str(path), path.stat().st_mode, path.read_text() if path.is_file() else "") for path in entries]
