"""Volumes: directories of the host, and named ones that outlive sandboxes and are shared by several."""

import os
import shutil
import stat
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from lib import leaks
from lib import snapshots as of
from lib.api import Api, assert_envelope
from lib.disks import no_disks
from lib.service import STATE_PARENT
from lib.waiting import wait_for

# Ids that no sandbox has: whose the files of volumes are on the host.
FIRST = 0x7FC00000
USER, GROUP = 12345, 12346


@pytest.fixture(scope="module")
def ground():
    """A directory of an ordinary user's on the allow-list, and one beside it that is not."""
    path = Path(tempfile.mkdtemp(prefix="osb-shared-", dir=STATE_PARENT))
    path.chmod(0o755)
    for name in ("shared", "root", "open", "hidden"):
        (path / name).mkdir()
    os.chown(path / "shared", USER, GROUP)
    (path / "open").chmod(0o1777)
    (path / "root" / "file").write_text("root's\n")
    (path / "hidden" / "file").write_text("secret")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def service(bin_dir, ground, request):
    from lib.plugin import shared_service

    return shared_service(request, bin_dir, sections={"storage": {"allowed_host_paths": [str(ground / name) for name in ("shared", "root", "open")]}})


@pytest.fixture(scope="module")
def api(service):
    return Api(service)


@pytest.fixture
def make(api):
    made = []

    def create(*volumes, **fields):
        name = api.create(volumes=list(volumes), **fields)["id"]
        made.append(name)
        return name

    yield create
    for name in made:
        api.delete(name)


def host(path, at="/data", name="v", **more):
    return {"name": name, "mountPath": at, "host": {"path": str(path)}, **more}


def claim(volume, at="/data", name="v", sub=None, ro=False, **more):
    return {"name": name, "mountPath": at, "readOnly": ro, **({"subPath": sub} if sub else {}), "pvc": {"claimName": volume, **more}}


def volumes(api):
    reply = api.call("GET", "/volumes")
    assert reply.status == 200, reply
    return {item["name"]: item for item in reply.json["items"]}


def events(api, name):
    return api.call("GET", f"/sandboxes/{name}/diagnostics/events").body.decode()


def fine(ran):
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def remove(api, *names):
    for name in names:
        assert api.call("DELETE", f"/volumes/{name}").status == 204


# Directories of the host


def test_a_sandbox_writes_as_the_owner_of_the_directory(api, make, ground):
    (ground / "shared" / "before").write_text("from the host\n")
    os.chown(ground / "shared" / "before", USER, GROUP)
    name = make(host(ground / "shared"))
    assert fine(api.run(name, "cat /data/before; stat -c %u:%g /data /data/before")) == "from the host\n0:0\n0:0"
    fine(api.run(name, "echo inside > /data/new; mkdir /data/dir; chmod 4755 /data/new; echo x > /data/other; chown 7:8 /data/other"))
    new, other = (ground / "shared" / "new").stat(), (ground / "shared" / "other").stat()
    assert (new.st_uid, new.st_gid) == (USER, GROUP) and stat.S_IMODE(new.st_mode) == 0o4755
    assert (other.st_uid, other.st_gid) == (FIRST + 7, FIRST + 8), "ids that are nobody's on the host"
    # Another sandbox has another range, and sees the same owners.
    second = make(host(ground / "shared"))
    assert fine(api.run(second, "stat -c %u:%g /data/new /data/other; cat /data/new")) == "0:0\n7:8\ninside"
    assert api.delete(name).status == 204 and api.delete(second).status == 204
    assert (ground / "shared" / "new").read_text() == "inside\n", "it went with the sandbox"


def test_changes_on_either_side_are_seen_on_the_other(api, make, ground):
    one, two = make(host(ground / "shared")), make(host(ground / "shared", at="/elsewhere"))
    fine(api.run(one, "echo 1 > /data/both"))
    assert fine(api.run(two, "cat /elsewhere/both")) == "1"
    (ground / "shared" / "both").write_text("2")
    assert fine(api.run(one, "cat /data/both")) == "2"


@pytest.mark.parametrize("kind", ["host", "claim"])
def test_read_only_holds_against_root(api, make, ground, kind):
    writer = make(claim("ro-test")) if kind == "claim" else None
    if writer:
        fine(api.run(writer, "echo kept > /data/file"))
    else:
        (ground / "shared" / "file").write_text("kept")
        os.chown(ground / "shared" / "file", USER, GROUP)
    name = make(claim("ro-test", ro=True) if writer else host(ground / "shared", readOnly=True))
    assert fine(api.run(name, "id -u; cat /data/file")) == "0\nkept"
    for attempt in ("echo x > /data/file", "touch /data/new", "rm /data/file", "chmod 777 /data/file", "mv /data/file /data/g", "mkdir /data/d",
                    "ln /data/file /data/h", "touch -d 2001-01-01 /data/file"):  # fmt: skip
        ran = api.run(name, attempt)
        assert ran.exit_code != 0 and "Read-only file system" in ran.stderr, (attempt, ran.stderr)
    for attempt in ("mount -o remount,rw /data", "mount -o remount,bind,rw /data", "umount /data", "unshare -Urm mount -o remount,bind,rw /data"):
        api.run(name, attempt)
        assert api.run(name, "touch /data/new").exit_code != 0, attempt
    if writer:
        api.delete(writer)
        api.delete(name)
        remove(api, "ro-test")


def test_what_is_roots_is_written_as_root(api, make, ground):
    """What a sandbox cannot do there is in tests/security/test_directories_of_root.py."""
    name = make(host(ground / "root"))
    assert fine(api.run(name, "cat /data/file; stat -c %u:%g /data/file; echo changed > /data/file; echo x > /data/new")) == "root's\n0:0"
    assert (ground / "root" / "file").read_text() == "changed\n" and (ground / "root" / "new").stat().st_uid == 0
    assert api.run(name, "chmod u+s /data/new").exit_code != 0
    reader = make(host(ground / "root", readOnly=True))
    assert fine(api.run(reader, "cat /data/file; stat -c %u /data/file")) == "changed\n0"
    assert api.run(reader, "echo x > /data/file").exit_code != 0
    # Also where everybody may write, and as root's group.
    for owner in ((0, 0), (USER, 0), (0, GROUP)):
        os.chown(ground / "open", *owner)
        name = make(host(ground / "open"))
        fine(api.run(name, "echo x > /data/mine"))
        assert ((ground / "open" / "mine").stat().st_uid, (ground / "open" / "mine").stat().st_gid) == owner
        (ground / "open" / "mine").unlink()
    os.chown(ground / "open", 0, 0)


def test_a_missing_directory_is_made_as_the_owner_of_the_place(api, make, ground):
    make(host(ground / "shared" / "made" / "deep"))
    assert ((ground / "shared" / "made" / "deep").stat().st_uid, (ground / "shared" / "made").stat().st_gid) == (USER, GROUP)
    name = make(host(ground / "root" / "made", subPath="below"))
    assert (ground / "root" / "made" / "below").stat().st_uid == FIRST, "nothing is made for root"
    fine(api.run(name, "echo x > /data/f; chmod 4755 /data/f"))
    assert (ground / "root" / "made" / "below" / "f").stat().st_uid == FIRST
    name = make(host(ground / "open" / "made"))
    fine(api.run(name, "echo x > /data/f"))
    assert (ground / "open" / "made" / "f").stat().st_gid == FIRST


def test_what_its_owner_could_not_make_is_not_made(api, ground):
    closed = ground / "shared" / "closed"
    closed.mkdir()
    os.chown(closed, USER, GROUP)
    closed.chmod(0o500)
    found = assert_envelope(api.post_create(volumes=[host(closed / "new")]), 500, "VOLUME::HOST_PATH_CREATE_FAILED")
    assert "volumes[0].host.path" in found["message"] and not (closed / "new").exists()


LEADING_OUT = (("out", "../hidden"), ("absolute", "{ground}/hidden"), ("up", ".."), ("top", "/"), ("around", "../shared/inner"), ("round", "round"),
               ("nowhere", "missing"), ("there", "{ground}/shared/inner"))  # fmt: skip


def plant(directory, links, **values):
    for name, target in links:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(target.format(**values))


def test_no_link_leads_out(api, make, ground):
    shared = ground / "shared"
    (shared / "inner").mkdir(exist_ok=True)
    plant(shared, LEADING_OUT, ground=ground)
    # Where a link counts when what it leads to may be named itself, some of these do.
    others = ("out", "absolute", "up") if api.service.follows_links_within else [name for name, _ in LEADING_OUT]
    for link in others:
        for volume, code in ((host(shared / link), "VOLUME::HOST_PATH_NOT_ALLOWED"), (host(shared, subPath=link), "VOLUME::INVALID_SUB_PATH"),
                             (host(shared, subPath=f"{link}/new"), "VOLUME::INVALID_SUB_PATH")):  # fmt: skip
            for read_only in (True, False):
                found = assert_envelope(api.post_create(volumes=[{**volume, "readOnly": read_only}]), 400, code)
                assert "symbolic link" in found["message"], found
    assert not (ground / "hidden" / "new").exists() and not (shared / "missing").exists() and not (shared / "inner" / "new").exists()
    # Inside the sandbox they are what they are: links in its own tree.
    name = make(host(shared))
    assert api.run(name, "cat /data/out/file /data/absolute/file").exit_code != 0


def test_links_that_stay_inside_are_followed(api, make, ground):
    shared = ground / "shared"
    for path in (shared / "releases" / "5", shared / "aside"):
        path.mkdir(parents=True)
        os.chown(path, USER, GROUP)
    os.chown(shared / "releases", USER, GROUP)
    (shared / "releases" / "5" / "file").write_text("five")
    plant(shared, (("current", "releases/latest"), ("aside/back", "../releases/5")))
    plant(shared / "releases", (("latest", "5"),))
    for path, more in ((shared / "current", {}), (shared, {"subPath": "current"}), (shared / "aside" / "back", {}), (shared / "aside", {"subPath": "back"})):
        name = make(host(path, **more), host(path, at="/ro", name="ro", readOnly=True, **more))
        assert fine(api.run(name, "cat /data/file /ro/file; echo x > /data/new; cat /ro/new; rm /data/new")) == "fivefivex"
    # What is missing is made where the link leads.
    make(host(shared / "current" / "made" / "deep"))
    assert (shared / "releases" / "5" / "made" / "deep").stat().st_uid == USER


def test_only_what_is_on_the_list(api, ground):
    for path in (ground / "hidden", ground, "/etc", "/", f"{ground}/sharedmore"):
        found = assert_envelope(api.post_create(volumes=[host(path)]), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
        assert "storage.allowed_host_paths" in found["message"] and str(path) not in found["message"] or path == "/"
    for path in (f"{ground}/shared/../hidden", f"{ground}/shared/", f"{ground}//shared", "C:\\data"):
        assert_envelope(api.post_create(volumes=[host(path)]), 400, "VOLUME::INVALID_HOST_PATH")


def test_without_a_list_there_are_none(new_service, tmp_path):
    api = Api(new_service())
    found = assert_envelope(api.post_create(volumes=[host(tmp_path)]), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
    assert "storage.allowed_host_paths" in found["message"] and "named volume" in found["message"]


def test_the_services_own_files_are_no_volume(new_service):
    service = new_service(start=False)
    text = service.config_path.read_text()
    service.config_path.write_text(text + f'\n[storage]\nallowed_host_paths = ["{service.directory}"]\n')
    service.start()
    api = Api(service)
    (service.directory / "way").symlink_to("state")
    for path in ("", "/state", "/state/db", "/state/new", "/way", "/way/db", "/way/new"):
        for read_only in (True, False):
            found = assert_envelope(api.post_create(volumes=[host(f"{service.directory}{path}", readOnly=read_only)]), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
            # For containers no link is followed at all.
            assert "files of the service" in found["message"] or ("/way" in path and "symbolic link" in found["message"]), found
    assert not (service.state_dir / "new").exists()


# Wrong requests


WRONG = [
    ("two of a name", [claim("a"), claim("b", at="/b")], "VOLUME::DUPLICATE_NAME", "volumes[1].name"),
    ("over the root", [claim("a", at="/")], "VOLUME::INVALID_MOUNT_PATH", "volumes[0].mountPath"),
    ("over /proc", [claim("a", at="/proc/x")], "VOLUME::INVALID_MOUNT_PATH", "volumes[0].mountPath"),
    ("over /dev/shm", [claim("a", at="/dev/shm")], "VOLUME::INVALID_MOUNT_PATH", "volumes[0].mountPath"),
    ("with ..", [claim("a", at="/a/../b")], "VOLUME::INVALID_MOUNT_PATH", "volumes[0].mountPath"),
    ("where another is", [claim("a", at="/a"), claim("b", at="/a/", name="w")], "VOLUME::INVALID_MOUNT_PATH", "volumes[1].mountPath"),
    ("an absolute subPath", [claim("a", sub="/etc")], "VOLUME::INVALID_SUB_PATH", "volumes[0].subPath"),
    ("a subPath out of it", [claim("a", sub="x/../../y")], "VOLUME::INVALID_SUB_PATH", "volumes[0].subPath"),
    ("one that is not there", [claim("a", createIfNotExists=False)], "VOLUME::PVC_NOT_FOUND", "volumes[0].pvc"),
    ("33", [claim("a", at=f"/m{i}", name=f"n{i}") for i in range(33)], "SANDBOX::INVALID_PARAMETER", "volumes"),
]


@pytest.mark.parametrize("wanted, code, field", [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_wrong_is_said(api, wanted, code, field):
    found = assert_envelope(api.post_create(volumes=wanted), 400, code)
    assert found["message"].startswith(field), found
    assert volumes(api) == {}, "a refused request leaves no volume"


# Named volumes


def test_a_named_volume_outlives_its_sandboxes(api, make):
    name = make(claim("keep"))
    fine(api.run(name, "echo one > /data/f; chown 5:6 /data/f"))
    listed = volumes(api)["keep"]
    assert listed["sandboxes"] == 1 and listed["deleteOnSandboxTermination"] is False and listed["createdAt"]
    assert_envelope(api.call("DELETE", "/volumes/keep"), 409, "VOLUME::IN_USE")
    assert api.delete(name).status == 204
    assert volumes(api)["keep"]["sandboxes"] == 0
    again = make(claim("keep", at="/elsewhere", createIfNotExists=False))
    assert fine(api.run(again, "cat /elsewhere/f; stat -c %u:%g /elsewhere /elsewhere/f")) == "one\n0:0\n5:6"
    assert api.delete(again).status == 204
    files = api.service.state_dir / "volumes" / "default" / "keep" / "files"
    assert (files.stat().st_uid, (files / "f").stat().st_uid) == (FIRST, FIRST + 5)
    remove(api, "keep")
    assert_envelope(api.call("DELETE", "/volumes/keep"), 404, "VOLUME::NOT_FOUND")
    assert_envelope(api.call("DELETE", "/volumes/..%2f..%2fdb"), 404, "VOLUME::NOT_FOUND")
    wait_for(lambda: not any((api.service.state_dir / "trash").iterdir()), 10, "its files are gone")


def test_several_sandboxes_share_one(api, make):
    one, two = make(claim("share")), make(claim("share", at="/b"))
    users = make(claim("share", at="/c", ro=True))
    fine(api.run(one, "echo hello > /data/f"))
    assert fine(api.run(two, "cat /b/f; echo more >> /b/f")) == "hello"
    assert fine(api.run(users, "cat /c/f")) == "hello\nmore"
    assert volumes(api)["share"]["sandboxes"] == 3
    for name in (one, two, users):
        api.delete(name)
    remove(api, "share")


def test_a_part_of_a_volume(api, make):
    whole = make(claim("parts"))
    part = make(claim("parts", sub="a/b", name="x"), claim("parts", at="/c", sub="c"))
    fine(api.run(part, "echo 1 > /data/f; echo 2 > /c/f"))
    assert fine(api.run(whole, "cat /data/a/b/f /data/c/f; stat -c %u /data/a /data/a/b")) == "1\n2\n0\n0"
    fine(api.run(whole, "ln -s / /data/out; ln -s ../.. /data/up; ln -s a /data/in; echo x > /data/file"))
    for sub in ("out", "out/etc", "up", "up/x", "file", "file/x"):
        found = assert_envelope(api.post_create(volumes=[claim("parts", sub=sub)]), 400, "VOLUME::INVALID_SUB_PATH")
        assert "volumes[0].subPath" in found["message"] and ("symbolic link" in found["message"]) != sub.startswith("file"), found
    linked = make(claim("parts", sub="in/b"), claim("parts", at="/made", name="w", sub="in/made"))
    assert fine(api.run(linked, "cat /data/f")) == "1" and fine(api.run(whole, "ls /data/a")) == "b\nmade"
    for name in (whole, part, linked):
        api.delete(name)
    remove(api, "parts")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["parents first", "children first"])
def test_volumes_lie_in_each_other(api, make, ground, order):
    (ground / "shared" / "nested").mkdir(exist_ok=True)
    os.chown(ground / "shared" / "nested", USER, GROUP)
    wanted = [claim("outer", at="/work/", name="a"), host(ground / "shared" / "nested", at="/work/cache", name="b", subPath="x/"),
              claim("inner", at="/work/cache/deep/", name="c")]  # fmt: skip
    name = make(*(wanted[i] for i in order))
    fine(api.run(name, "echo 1 > /work/f; echo 2 > /work/cache/f; echo 3 > /work/cache/deep/f"))
    shown = [line.split()[4] for line in fine(api.run(name, "cat /proc/self/mountinfo")).splitlines() if line.split()[4].startswith("/work")]
    assert shown == ["/work", "/work/cache", "/work/cache/deep"]
    assert (ground / "shared" / "nested" / "x" / "f").read_text() == "2\n"
    # Where they are mounted is made, as the root of the sandbox makes it.
    outer = make(claim("outer"), host(ground / "shared" / "nested", at="/host", name="w"))
    assert fine(api.run(outer, "cat /data/f; ls -A /data /data/cache; stat -c %u:%g /data/cache")) == "1\n/data:\ncache\nf\n\n/data/cache:\n0:0"
    assert (ground / "shared" / "nested" / "x" / "deep").stat().st_uid == USER
    # In one that is only read the place has to be there.
    reader = make(claim("outer", at="/work", ro=True), claim("inner", at="/work/cache", name="w"))
    assert fine(api.run(reader, "cat /work/cache/f; echo 4 > /work/cache/g; touch /work/g 2>&1 || true")).startswith("3\n")
    reply = api.post_create(volumes=[claim("outer", at="/work", ro=True), claim("inner", at="/work/none", name="w")])
    assert reply.status == 500 and "Read-only file system" in reply.body.decode()
    for one in (name, outer, reader):
        api.delete(one)
    remove(api, "outer", "inner")


def test_a_link_in_a_volume_is_no_way_out_for_another(api, make):
    """Where a volume comes to lie is found inside the sandbox's root, whatever is in the volume around it."""
    planter = make(claim("planted"))
    fine(api.run(planter, "ln -s /etc /data/etc; ln -s ../../../../.. /data/up; ln -s / /data/root; ln -s /proc /data/proc"))
    name = make(claim("planted", at="/work"), claim("inner", at="/work/etc", name="w"))
    assert fine(api.run(name, "ls -A /etc; test -e /proc/1/status && echo proc")) == "proc"
    for target in ("up", "root"):
        assert api.post_create(volumes=[claim("planted", at="/work"), claim("inner", at=f"/work/{target}", name="w")]).status == 500
    over = make(claim("planted", at="/work"), claim("inner", at="/work/proc", name="w"))
    assert fine(api.run(over, "test -e /proc/1/status && echo proc")) == "proc"
    for one in (planter, name, over):
        api.delete(one)
    remove(api, "planted", "inner")


@no_disks
def test_a_volume_with_a_size(api, make):
    one = make(claim("sized", storage="32Mi"), resourceLimits={"disk": "32Mi"})
    assert volumes(api)["sized"]["sizeBytes"] == 32 << 20
    assert fine(api.run(one, "ls -A /data; stat -c %u:%g /data; echo x > /data/f; chown 5:6 /data/f")) == "0:0"
    ran = api.run(one, "head -c 40M /dev/zero > /data/large")
    assert ran.exit_code != 0 and "No space left on device" in ran.stderr
    fine(api.run(one, "rm /data/large"))
    # One file system, however many have it, and whatever their own sizes say.
    two = make(claim("sized", at="/b", storage="64Mi"))
    assert "volume sized holds 33554432 bytes, and not the 67108864" in events(api, two) and "Warning" not in events(api, one)
    assert fine(api.run(two, "cat /b/f; stat -c %u:%g /b/f; echo more >> /b/f")) == "x\n5:6"
    reader = make(claim("sized", at="/c", ro=True))
    assert fine(api.run(reader, "cat /c/f")) == "x\nmore"
    assert api.run(reader, "touch /c/g").exit_code != 0
    assert volumes(api)["sized"]["sizeBytes"] == 32 << 20
    for name in (one, two, reader):
        api.delete(name)
    # Nobody has it: its device is gone, its files are not.
    image = api.service.state_dir / "volumes" / "default" / "sized" / "disk.img"
    wait_for(lambda: image.stat().st_ino not in loops(), 5, "its loop device is gone")
    api.service.restart()
    again = make(claim("sized", sub="d/e"), claim("sized", at="/all", name="w"))
    fine(api.run(again, "echo part > /data/g"))
    assert fine(api.run(again, "cat /all/f /all/d/e/g")) == "x\nmore\npart"
    api.delete(again)
    remove(api, "sized")
    wait_for(lambda: not image.exists(), 5, "it is removed")


@no_disks
def test_volumes_of_one_size_have_nothing_in_common(api, make):
    """The second is a copy of what the first was made from, not of the first."""
    one = make(claim("first", storage="24Mi"))
    fine(api.run(one, "head -c 4M /dev/urandom > /data/f; sync /data/f"))
    two = make(claim("second", storage="24Mi"))
    assert fine(api.run(two, "ls -A /data; stat -c %u:%g /data")) == "0:0"
    fine(api.run(two, "echo other > /data/f"))
    assert fine(api.run(one, "stat -c %s /data/f")) == str(4 << 20)
    for name in (one, two):
        api.delete(name)
    for name in ("first", "second"):
        image = api.service.state_dir / "volumes/default" / name / "disk.img"
        wait_for(lambda image=image: image.stat().st_ino not in loops(), 5, "its loop device is gone")
        checked = subprocess.run(["fsck.ext4", "-fn", image], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout
        remove(api, name)


@no_disks
def test_two_at_once_make_one_volume_of_a_size(api):
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda i: api.create(volumes=[claim("race", storage="16Mi")])["id"], range(6)))
    for i, name in enumerate(made):
        fine(api.run(name, f"echo {i} > /data/{i}"))
    assert fine(api.run(made[0], "ls /data")).split() == [str(i) for i in range(6)]
    for name in made:
        api.delete(name)
    remove(api, "race")


@no_disks
def test_a_device_that_somebody_looks_at(api, make):
    """What looks at block devices on a slow host holds the one that the first volume of a size is made on."""
    held, over = threading.Event(), threading.Event()

    def hold():
        while not over.is_set() and not held.is_set():
            for device in Path("/sys/block").glob("loop*"):
                with suppress(OSError), open(f"/dev/{device.name}", "rb"):
                    making = {path.stat().st_ino for path in (api.service.state_dir / "disks").glob(".making-*")}
                    if making and leaks.loop_status(device.name)[1] in making:
                        held.set()
                        over.wait(5)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        # The moment is short, and missed now and then: every size has one.
        for size in range(40, 80):
            made = make(claim("looked-at", storage=f"{size}Mi"))
            assert fine(api.run(made, "echo x > /data/f; cat /data/f")) == "x"
            api.delete(made)
            remove(api, "looked-at")
            if held.is_set():
                break
    finally:
        over.set()
        holder.join()
    assert held.is_set(), "nobody held it"


def loops():
    """Inodes of the files that are under loop devices."""
    found = set()
    for device in Path("/sys/block").glob("loop*"):
        with suppress(OSError):
            found.add(leaks.loop_status(device.name)[1])
    return found


def test_one_that_goes_with_its_last_sandbox(api, make):
    one, two = make(claim("brief", deleteOnSandboxTermination=True)), make(claim("brief"))
    fine(api.run(one, "echo x > /data/f"))
    assert volumes(api)["brief"]["deleteOnSandboxTermination"] is True
    assert api.delete(one).status == 204
    assert fine(api.run(two, "cat /data/f")) == "x", "somebody has it still"
    assert api.delete(two).status == 204
    assert "brief" not in volumes(api)
    # Only what was made for it: one that was there before stays.
    lasting = make(claim("lasting"))
    other = make(claim("lasting", deleteOnSandboxTermination=True))
    api.delete(lasting)
    api.delete(other)
    assert "lasting" in volumes(api)
    remove(api, "lasting")


def test_it_goes_when_the_time_is_up_too(api):
    name = api.create(volumes=[claim("timed", deleteOnSandboxTermination=True)], timeout=60)["id"]
    api.renew(name, 0.5)
    wait_for(lambda: "timed" not in volumes(api), 20, "the volume went with the expired sandbox")


def test_a_failed_create_leaves_no_volume(api):
    for entrypoint, code in ((["/nowhere"], "SANDBOX::INVALID_ENTRYPOINT"), (["sh", "-c", "exit 3"], None)):
        reply = api.post_create(volumes=[claim("unmade"), claim("unmade-too", at="/b", name="w", deleteOnSandboxTermination=True)], entrypoint=entrypoint)
        if reply.status == 202:
            api.delete(reply.json["id"])
            remove(api, "unmade")
            continue
        assert reply.status == 400 and (code is None or reply.json["code"] == code)
        assert volumes(api) == {}
    # The second cannot be had: the first is not left either.
    assert_envelope(api.post_create(volumes=[claim("unmade"), host("/etc", at="/b", name="w")]), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
    assert_envelope(api.post_create(volumes=[claim("unmade"), claim("none", at="/b", name="w", createIfNotExists=False)]), 400, "VOLUME::PVC_NOT_FOUND")
    assert volumes(api) == {}


def test_over_what_the_image_has_and_where_it_has_nothing(api, make):
    name = make(claim("over", at="/usr/local"), claim("over", at="/a/b/c", name="w", sub="w"), claim("over", at="/tmp", name="t", sub="t"))
    assert fine(api.run(name, "ls /usr/local; ls -d /a/b/c /tmp")) == "w\n/a/b/c\n/tmp" or "t" in fine(api.run(name, "ls /usr/local"))
    api.delete(name)
    sealed = make(claim("over", at="/a/b"), claim("over", at="/tmp", name="t", sub="t"), extensions={"opensandbox.extensions.read-only-root": "true"})
    fine(api.run(sealed, "echo x > /a/b/f; echo y > /tmp/f"))
    assert api.run(sealed, "echo x > /a/f").exit_code != 0
    api.delete(sealed)
    remove(api, "over")


def test_together_with_limits(api, make):
    name = make(claim("limited"), resourceLimits={"memory": "256Mi", "cpu": "1", "disk": "32Mi"})
    fine(api.run(name, "head -c 64M /dev/zero > /data/large"))
    assert api.run(name, "head -c 64M /dev/zero > /large").exit_code != 0, "the disk limit is for the sandbox's own files"
    api.delete(name)
    remove(api, "limited")


def test_nothing_of_it_is_left(api, ground):
    baseline = leaks.snapshot(api.service)
    for _ in range(5):
        name = api.create(volumes=[host(ground / "shared"), claim("leak", at="/b", name="w", deleteOnSandboxTermination=True)])["id"]
        fine(api.run(name, "echo x > /data/l; echo y > /b/l"))
        assert api.delete(name).status == 204
    leaks.assert_nothing_leaked(api.service, baseline)


# Snapshots, forks, rollbacks


def test_snapshots_have_no_volumes_in_them_and_copies_have_the_same(api, make, ground):
    name = make(claim("copied"), host(ground / "shared", at="/in", name="h", readOnly=True))
    fine(api.run(name, "echo v > /data/f; echo own > /root/f"))
    taken = of.make(api, name)
    restored = of.restore(api, taken["id"])
    assert fine(api.run(restored, "cat /root/f; ls -A /data /in")).split() == ["own", "/data:", "/in:"]
    reply = api.call("POST", f"/sandboxes/{name}/fork", json={"count": 2})
    assert reply.status == 202, reply
    forks = [item["id"] for item in reply.json["items"]]
    for fork in forks:
        api.service.scope.remember(fork)
        assert fine(api.run(fork, "cat /root/f /data/f; echo more >> /data/f")) .split()[:2] == ["own", "v"]
        assert api.run(fork, "touch /in/x").exit_code != 0
    fine(api.run(name, "echo changed > /root/f"))
    assert api.call("POST", f"/sandboxes/{name}/rollback", json={"snapshotId": taken["id"]}).status == 200
    assert fine(api.run(name, "cat /root/f /data/f")).split() == ["own", "v", "more", "more"], "volumes are not rolled back"
    # Also after a change of the record.
    assert api.call("PATCH", f"/sandboxes/{name}/metadata", json={"a": "b"}).status == 200
    reply = api.call("POST", f"/sandboxes/{name}/fork", json={})
    forks.append(reply.json["items"][0]["id"])
    assert fine(api.run(forks[-1], "head -1 /data/f")) == "v"
    for one in (*forks, restored, name):
        assert api.delete(one).status == 204
    assert api.call("DELETE", f"/snapshots/{taken['id']}").status == 204
    remove(api, "copied")


# Crashes


@pytest.mark.parametrize("who", ["server", "launcher", "both"])
def test_after_a_crash(new_service, who):
    service = new_service()
    api = Api(service)
    lasting, brief = claim("lasting"), claim("brief", at="/b", name="w", deleteOnSandboxTermination=True)
    name = api.create(volumes=[lasting, brief])["id"]
    fine(api.run(name, "echo x > /data/f; echo y > /b/f"))
    if who == "server":
        service.kill_server()
    else:
        (service.kill_launcher if who == "launcher" else service.kill_both)()
        service.start()
    assert fine(api.run(name, "cat /data/f /b/f; echo z >> /data/f")) == "x\ny"
    assert volumes(api)["lasting"]["sandboxes"] == 1
    assert_envelope(api.call("DELETE", "/volumes/brief"), 409, "VOLUME::IN_USE")
    assert api.delete(name).status == 204
    assert set(volumes(api)) == {"lasting"}
    again = api.create(volumes=[lasting])["id"]
    assert fine(api.run(again, "cat /data/f")) == "x\nz"
    assert api.delete(again).status == 204


def test_what_was_half_made_is_swept_by_the_next_start(new_service):
    service = new_service()
    api = Api(service)
    name = api.create(volumes=[claim("orphan", deleteOnSandboxTermination=True), claim("stays", at="/b", name="w")])["id"]
    assert api.delete(name).status == 204
    service.stop()
    directory = service.state_dir / "volumes"
    # As a launcher leaves it that is killed at the wrong moment.
    shutil.copytree(directory / "default" / "stays", directory / "default" / "orphan")
    (directory / "default" / "orphan" / "manifest").write_text("created 1\nephemeral\n")
    (directory / ".making-abc").mkdir()
    service.start()
    assert set(volumes(api)) == {"stays"}
    assert sorted(path.name for path in directory.iterdir()) == ["default"]


def test_a_volume_that_cannot_be_read_says_so_and_can_be_removed(new_service):
    service = new_service()
    api = Api(service)
    assert api.delete(api.create(volumes=[claim("damaged")])["id"]).status == 204
    (service.state_dir / "volumes" / "default" / "damaged" / "manifest").write_text("nonsense\n")
    found = assert_envelope(api.post_create(volumes=[claim("damaged")]), 500, "VOLUME::PVC_INSPECT_FAILED")
    assert "volumes[0].pvc" in found["message"] and "manifest" in found["cause"]
    service.restart()
    assert "damaged" in volumes(api)
    remove(api, "damaged")
    assert volumes(api) == {}


# The command line


def test_osb_run_and_osb_volumes(service, bin_dir, ground):
    def osb(*words, status=0):
        done = subprocess.run([bin_dir / "osb", *map(str, words)], env={"OPEN_SANDBOX_DOMAIN": "%s:%d" % service.address, "PATH": os.environ["PATH"]},
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr

    osb("run", "-v", "cli:/data", "-v", f"{ground}/shared:/in:ro", "host", "--", "sh", "-c", "echo from osb > /data/f; ls /in; ! touch /in/y")
    assert osb("run", "-v", "cli:/data:ro", "host", "--", "cat", "/data/f") == "from osb\n"
    listed = osb("volumes", "ls").splitlines()
    assert listed[0].split()[0] == "NAME" and any(line.split()[0] == "cli" for line in listed[1:])
    assert '"name":"cli"' in osb("volumes", "ls", "--json")
    assert osb("volumes", "rm", "cli") == "cli\n"
    assert "There is no volume cli" in osb("volumes", "rm", "cli", status=1)
    for wrong in ("cli", "cli:data", ":/data", "cli:/data:maybe"):
        assert "SOURCE:/PATH" in osb("run", "-v", wrong, "host", "--", "true", status=2)
