"""A service is what its state directory says, whatever the path to it is called, and touches nothing else."""

import os
import re
import pwd
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api
from lib.scope import cgroup_mounts
from lib.service import Service
from lib.waiting import process_gone, wait_for

RANGES_PER_BLOCK = 64
IDS_PER_RANGE = 0x1_0000
FIRST_ID = 0x7000_0000


def set_state_dir(service, text):
    """Another way to write the same path, or another path."""
    lines = service.config_path.read_text().splitlines()
    index = next(i for i, line in enumerate(lines) if "state_dir" in line)
    lines[index] = f'"state_dir" = "{text}"'
    service.config_path.write_text("\n".join(lines) + "\n")


def refused(service, timeout=15):
    """The service ends by itself, with an error; what it said."""
    service.spawn()
    try:
        assert service.process.wait(timeout) not in (0, None)
    finally:
        if service.process.poll() is None:
            service.process.kill()
            service.process.wait()
    return service.log_tail()


def look_at(path):
    """Everything about a path that somebody could have changed. Nobody can set a change time."""
    info = os.lstat(path)
    inside = {name: look_at(Path(path, name)) for name in sorted(os.listdir(path))} if os.path.isdir(path) else Path(path).read_bytes()
    return info.st_mode, info.st_uid, info.st_gid, info.st_ctime_ns, inside


def identity_of(service):
    return (service.state_dir / "identity").read_text().split()


def block_groups(service):
    """The blocks of ids that this service has claimed."""
    top, owner = Path(cgroup_mounts()[""]), identity_of(service)[0]

    def is_ours(group):
        try:
            return os.getxattr(group, "trusted.opensandbox.owner").decode().split()[0] == owner
        except OSError:
            return False

    return {int(group.name.rpartition("-")[2]) for group in top.glob("opensandbox-ids-*") if is_ours(group)}


def range_of(api, sandbox):
    """The first id that the sandbox has on the host; a process reads its own map in the ids of the namespace above."""
    inside, outside, count = (int(word) for word in api.run(sandbox, "head -1 /proc/self/uid_map").stdout.split())
    assert (inside, count) == (0, IDS_PER_RANGE)
    return outside


class InOwnMounts(Service):
    """In a mount namespace of its own, after a script of set-up."""

    setup = "true"

    def command(self):
        script = f"{self.setup} && exec '{self.bin_dir}/opensandbox-server' --config '{self.config_path}'"
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]


@pytest.fixture
def new_in_own_mounts(bin_dir):
    made = []

    def make(**options):
        made.append(InOwnMounts(bin_dir, **options))
        return made[-1]

    yield make
    for service in made:
        service.destroy()


class TestSamePath:
    def test_another_directory_is_another_service(self, new_service, new_in_own_mounts):
        """Two containers with /var/lib/opensandbox each: the second one neither ends nor hinders the first one."""
        one, two = new_service(), new_in_own_mounts()
        first, second = Api(one), Api(two)
        mine = first.create()["id"]
        other = two.directory / "other"
        other.mkdir()
        two.setup = f"mount --bind '{other}' '{one.state_dir}'"
        set_state_dir(two, one.state_dir)
        two.start()
        theirs = second.create()["id"]
        assert first.run(mine, "echo on").stdout == "on"
        assert second.run(theirs, "echo on").stdout == "on"
        assert [item["id"] for item in first.list_all()] == [mine]
        assert [item["id"] for item in second.list_all()] == [theirs]
        two.kill_both()
        two.start()
        assert second.delete(theirs).status == 204
        two.stop()
        assert first.status(mine)["state"] == "Running"
        assert first.run(mine, "echo on").stdout == "on"
        more = first.create()["id"]
        for name in (mine, more):
            assert first.delete(name).status == 204

    def test_a_copy_does_not_run_beside_the_original(self, new_service):
        """The identity came along with the copy: its sandboxes are the original's, which runs."""
        one, two = new_service(), new_service(start=False)
        made = Api(one).create()["id"]
        two.state_dir.mkdir()
        shutil.copy(one.state_dir / "identity", two.state_dir / "identity")
        assert "copy" in refused(two)
        assert Api(one).run(made, "echo on").stdout == "on"
        assert Api(one).delete(made).status == 204


def test_every_spelling_is_the_same_service(new_service):
    service = new_service()
    api = Api(service)
    made = api.create()["id"]
    init = service.scope.sandbox_pids(made)[0]
    path = service.state_dir
    (service.directory / "link").symlink_to(path)
    for spelling in (f"{path}/", f"{path.parent}//{path.name}", f"{path.parent}/./{path.name}/.", service.directory / "link", f"{path}/../{path.name}", path):
        service.stop()
        set_state_dir(service, spelling)
        service.start()
        assert api.status(made)["state"] == "Running", spelling
        assert api.run(made, "echo on").stdout == "on", spelling
    assert api.delete(made).status == 204
    wait_for(lambda: process_gone(init), 5, "a deleted sandbox has no processes")


class TestGroups:
    def remove(self, service):
        """What a container manager or an administrator does who cleans up empty groups."""
        roots = [mount + path for mount, path in service.scope.cgroup_roots]
        assert roots

        def gone():
            for root in sorted(roots):
                try:
                    os.rmdir(root)
                except FileNotFoundError:
                    pass
                except OSError:
                    return False  # groups of the sandbox that ended are still there
            return True

        wait_for(gone, 10, "the service's groups are empty and can be removed")

    def test_empty_ones_that_vanish_are_made_again(self, new_service):
        service = new_service()
        api = Api(service)
        assert api.delete(api.create()["id"]).status == 204
        self.remove(service)
        made = api.post_create(resourceLimits={"memory": "64Mi", "cpu": "500m"})
        assert made.status == 202, made
        assert api.run(made.json["id"], "echo on").stdout == "on"
        assert api.delete(made.json["id"]).status == 204

    def test_health_tells_while_they_cannot_be_made(self, new_in_own_mounts):
        service = new_in_own_mounts().start()
        api = Api(service)
        healthy = rawhttp.request(service.address, "GET", "/health")
        assert healthy.json["status"] == "healthy" and "checks" not in healthy.json
        assert api.delete(api.create()["id"]).status == 204
        self.remove(service)
        mount = cgroup_mounts()[""]

        def remount(how):
            subprocess.run(["nsenter", "--target", str(service.launcher_pid), "--mount", "mount", "-o", f"remount,bind,{how}", mount], check=True)

        remount("ro")
        sick = wait_for(lambda: (r := rawhttp.request(service.address, "GET", "/health")).status == 503 and r, 10, "/health says 503")
        assert sick.json["status"] == "unhealthy"
        (check,) = sick.json["checks"]
        assert check["name"] == "runtime" and "Read-only" in check["cause"] and check["remedy"]
        assert api.post_create().status >= 500
        remount("rw")
        wait_for(service.is_healthy, 10, "/health says 200 again")
        made = api.create()["id"]
        assert api.delete(made).status == 204

    def test_strangers_with_processes_are_left_alone(self, new_service):
        """A group below ours, with a process and without a directory: nobody knows whose it is."""
        service = new_service()
        api = Api(service)
        made = api.create()["id"]
        mount, path = next((mount, path) for mount, path in service.scope.cgroup_roots if mount == cgroup_mounts()[""])
        stranger, empty = (Path(mount + path, str(uuid.uuid4())) for _ in range(2))
        stranger.mkdir()
        empty.mkdir()
        process = subprocess.Popen(["sleep", "600"])
        try:
            (stranger / "cgroup.procs").write_text(str(process.pid))
            service.kill_both()
            service.start()
            service.kill_server()
            assert process.poll() is None, "its process was ended"
            assert not empty.exists(), "an empty one is swept"
            assert "left alone" in service.log_tail()
            assert api.run(made, "echo on").stdout == "on"
        finally:
            process.kill()
            process.wait()
        assert api.delete(made).status == 204


class TestWrongPath:
    """Nothing that is not ours is changed in any way, and the service ends at once and says why."""

    def case_file(self, path):
        shutil.copy("/etc/passwd", path)
        path.chmod(0o644)

    def case_directory_with_files(self, path):
        path.mkdir()
        (path / "sub").mkdir(mode=0o750)
        (path / "notes").write_text("mine")

    def case_some_of_our_names(self, path):
        path.mkdir()
        for name in ("images", "db", "run"):
            (path / name).mkdir()

    def case_world_writable(self, path):
        path.mkdir()
        path.chmod(0o1777)

    def case_of_somebody_else(self, path):
        path.mkdir(mode=0o755)
        os.chown(path, 4711, 4711)

    def case_foreign_identity(self, path):
        path.mkdir()
        (path / "identity").write_text("this is about somebody else\n")

    @pytest.mark.parametrize("case", ["file", "directory_with_files", "some_of_our_names", "world_writable", "of_somebody_else", "foreign_identity"])
    def test_state_dir(self, new_service, case):
        service = new_service(start=False)
        path = service.directory / "wrong"
        getattr(self, f"case_{case}")(path)
        set_state_dir(service, path)
        before = look_at(path)
        said = refused(service)
        assert look_at(path) == before
        assert str(path) in said and "remedy" in said

    def test_a_link_means_where_it_leads(self, new_service):
        service = new_service(start=False)
        target = service.directory / "target"
        self.case_directory_with_files(target)
        (service.directory / "link").symlink_to(target)
        set_state_dir(service, service.directory / "link")
        before = look_at(target)
        assert str(target) in refused(service)
        assert look_at(target) == before

    def test_a_missing_parent_is_not_made(self, new_service):
        service = new_service(start=False)
        set_state_dir(service, service.directory / "no" / "such")
        assert str(service.directory / "no") in refused(service)
        assert not (service.directory / "no").exists()

    @pytest.mark.parametrize("text", ["root:x:0:0:root:/root:/bin/sh\n", "SQLite format 3 is what this is about"])
    def test_store_path(self, new_service, text):
        service = new_service(start=False)
        path = service.directory / "file"
        path.write_text(text)
        with service.config_path.open("a") as config:
            config.write(f'[store]\npath = "{path}"\n')
        before = look_at(path)
        said = refused(service)
        assert look_at(path) == before
        assert "store.path" in said and "remedy" in said
        assert not service.state_dir.exists(), "refused before anything is made"

    def test_importing_images(self, new_service, bin_dir):
        service = new_service(start=False)
        path = service.directory / "wrong"
        self.case_directory_with_files(path)
        root = service.directory / "root"
        (root / "bin").mkdir(parents=True)
        before = look_at(path)
        done = subprocess.run([bin_dir / "osb", "images", "import", root, "--name", "x", "--state-dir", path], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and str(path) in done.stderr, done
        assert look_at(path) == before

    def test_an_empty_directory_is_taken_and_keeps_its_mode(self, new_service):
        service = new_service(start=False)
        service.state_dir.mkdir(mode=0o755)
        (service.state_dir / "lost+found").mkdir(mode=0o700)
        service.start()
        assert service.state_dir.stat().st_mode & 0o7777 == 0o755
        api = Api(service)
        assert api.delete(api.create()["id"]).status == 204


class TestIds:
    def test_two_services_have_none_in_common(self, new_service):
        one, two = new_service(), new_service()
        ids = {}
        for service in (one, two):
            api = Api(service)
            made = [api.create()["id"] for _ in range(3)]
            ids[service] = {range_of(api, name) for name in made}
            assert len(ids[service]) == 3
        assert not ids[one] & ids[two]
        for service in (one, two):
            blocks = {(first - FIRST_ID) // IDS_PER_RANGE // RANGES_PER_BLOCK for first in ids[service]}
            assert blocks <= block_groups(service)
        assert not block_groups(one) & block_groups(two)

    def test_blocks_are_kept_for_sandboxes_and_given_back_without(self, new_service):
        service = new_service()
        api = Api(service)
        made = api.create()["id"]
        blocks = block_groups(service)
        service.stop()
        assert block_groups(service) == blocks, "the sandbox runs with these ids"
        service.start()
        assert block_groups(service) == blocks
        more = api.create()["id"]
        assert range_of(api, more) != range_of(api, made)
        for name in (made, more):
            assert api.delete(name).status == 204
        service.kill_both()
        service.start()
        assert block_groups(service) == blocks
        service.stop()
        assert block_groups(service) == set()

    def test_servers_have_users_of_their_own(self, new_service):
        try:
            pwd.getpwnam("opensandbox")
            pytest.skip("this host has an account opensandbox, which both services use")
        except KeyError:
            pass
        one, two = new_service(), new_service()
        users = [os.stat(f"/proc/{service.server_pid()}").st_uid for service in (one, two)]
        assert 0 not in users
        # 606 numbers for all services of the world: two of them may be the same, three hardly.
        if users[0] == users[1]:
            users.append(os.stat(f"/proc/{new_service().server_pid()}").st_uid)
        assert len(set(users)) > 1, users
        one.restart()
        assert os.stat(f"/proc/{one.server_pid()}").st_uid == users[0]


def test_other_users_cannot_list_sockets_or_groups(new_service):
    service = new_service()
    api = Api(service)
    made = api.create()["id"]
    run = Path(os.readlink(service.state_dir / "run")) if (service.state_dir / "run").is_symlink() else service.state_dir / "run"
    assert run.stat().st_mode & 0o007 == 0 and run.stat().st_uid == 0
    group = Path(cgroup_mounts()[""], identity_of(service)[1])
    assert group.stat().st_mode & 0o077 == 0
    assert (service.state_dir / "identity").stat().st_mode & 0o777 == 0o600
    assert api.delete(made).status == 204


class TestUpgrade:
    """From the version that named things by the path of the state directory."""

    @pytest.mark.parametrize("spelling", ["state", "link"])
    def test_its_sandboxes_go_on(self, bin_dir, new_service, old_bin, spelling):
        service = new_service(start=False)
        path = service.state_dir
        (service.directory / "link").symlink_to(path)
        path.mkdir()
        service.bin_dir = old_bin
        # That version ends when it reads of what it does not know.
        text = service.config_path.read_text()
        service.config_path.write_text(re.sub(r"(?m)^\[(egress|registry(\.mirrors)?)\]\n([^\[].*\n)*", "", text))
        set_state_dir(service, service.directory / spelling)
        service.start()
        api = Api(service)
        made = [api.create()["id"] for _ in range(2)]
        api.run(made[0], "echo kept > /tmp/file")
        ranges = {range_of(api, name) for name in made}
        old_run = os.readlink(path / "run")
        service.stop()
        service.bin_dir = Path(bin_dir).resolve()
        set_state_dir(service, path)
        service.start()
        assert os.readlink(path / "run") == old_run
        assert api.run(made[0], "cat /tmp/file").stdout == "kept"
        more = api.create()["id"]
        assert range_of(api, more) not in ranges
        service.restart()
        for name in (*made, more):
            assert api.run(name, "echo on").stdout == "on"
            assert api.delete(name).status == 204
