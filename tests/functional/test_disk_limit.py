"""A sandbox with a disk limit can write so much and no more, and leaves no loop device, mount or file behind."""

import time
from pathlib import Path

import pytest
from lib import leaks
from lib.api import Api, assert_envelope
from lib.disks import no_disks
from lib.waiting import wait_for

pytestmark = no_disks

FILL = "head -c 200M /dev/zero > {} 2>/dev/null; stat -c %s {} 2>/dev/null || echo 0"


def loop_files(service):
    """Loop devices over disks of the service's sandboxes, by file: their names tell nothing. Disks are remembered from call to call."""
    known = service.__dict__.setdefault("known_disks", set())
    for image in service.state_dir.glob("sandboxes/*/disk.img"):
        known.add((image.stat().st_dev, image.stat().st_ino))
    found = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            status, text = leaks.loop_status(path.parts[3]), path.read_text().strip()
        except OSError:
            continue
        if status in known:
            found.append(text)
    return found


def test_it_is_enforced_on_every_path(new_service):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    name = api.create(resourceLimits={"disk": "64Mi"})["id"]
    total = 0
    for path in ("/tmp/a", "/root/b", "/usr/local/c"):
        total += int(api.run(name, FILL.format(path, path)).stdout.splitlines()[-1])
    assert 32 << 20 < total <= 64 << 20
    full = api.run(name, "echo x > /tmp/d && head -c 1M /dev/zero > /tmp/e")
    assert full.exit_code != 0 and "No space left" in full.stderr
    assert api.run(name, "rm /tmp/a /root/b /usr/local/c /tmp/e; echo again > /tmp/d; cat /tmp/d").stdout == "again"
    size = int(api.run(name, "df -B1 --output=size / | tail -1").stdout)
    assert 48 << 20 < size <= 64 << 20
    # Every user of the host may read it.
    assert loop_files(service) == ["/disk.img"]
    mounts = Path(f"/proc/{service.launcher_pid}/mountinfo").read_text()
    assert "/dev/loop" not in mounts and "disk.img" not in mounts, "nothing of it is in the host's mount table"
    assert api.delete(name).status == 204
    wait_for(lambda: not loop_files(service), 10, "the loop device goes with the sandbox")
    leaks.assert_nothing_leaked(service, baseline)


def test_inodes_run_out_before_the_host_does(new_service):
    service = new_service()
    api = Api(service)
    name = api.create(resourceLimits={"disk": "16Mi"})["id"]
    script = "import os\nn = 0\ntry:\n  while n < 200000:\n    open(f'/tmp/f{n}', 'w').close(); n += 1\nexcept OSError as e: print(n, e.errno)"
    made, errno = map(int, api.run(name, ["/usr/bin/python3", "-c", script]).stdout.split())
    assert errno == 28 and made < 100000
    assert api.delete(name).status == 204


@pytest.mark.parametrize("victim", ["server", "both"])
def test_kill_9(new_service, victim):
    service = new_service()
    api = Api(service)
    baseline = leaks.snapshot(service)
    name = api.create(resourceLimits={"disk": "32Mi"})["id"]
    api.run(name, "echo kept > /root/x")
    if victim == "both":
        service.kill_both()
        service.start()
    else:
        service.kill_server()
    assert api.run(name, "cat /root/x").stdout == "kept"
    assert int(api.run(name, FILL.format("/tmp/a", "/tmp/a")).stdout.splitlines()[-1]) < 32 << 20
    assert api.delete(name).status == 204
    wait_for(lambda: not loop_files(service), 10, "the loop device goes with the sandbox")
    leaks.assert_nothing_leaked(service, baseline)


def test_sizes_are_independent_and_many(new_service):
    service = new_service()
    api = Api(service)
    names = {}
    for mib in (16, 17, 64, 200):
        began = time.monotonic()
        names[api.create(resourceLimits={"disk": f"{mib}Mi"})["id"]] = mib
        assert time.monotonic() - began < 10
    for name, mib in names.items():
        size = int(api.run(name, "df -B1 --output=size / | tail -1").stdout)
        assert (mib << 20) * 0.7 < size <= mib << 20
        assert api.delete(name).status == 204


def test_wrong_sizes(api):
    for text in ("1Mi", "0", "-1", "lots", "1.5Gi"):
        found = assert_envelope(api.post_create(resourceLimits={"disk": text}), 400, "SANDBOX::INVALID_PARAMETER")
        assert "resourceLimits.disk" in found["message"]
