"""The service of an ordinary user: the same sandboxes, and what they lack is said."""

import os
import random
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from lib import leaks, rawhttp
from lib.api import Api, assert_envelope
from lib.images import programs
from lib.load import Creators
from lib.plugin import services, warm_up
from lib.rootless import RootlessService, require_user_namespaces
from lib.scope import cgroup_mounts
from lib.waiting import process_gone, wait_for


@pytest.fixture(scope="module")
def rootless(bin_dir):
    require_user_namespaces()
    with services(RootlessService, bin_dir) as make:
        yield make()


@pytest.fixture
def user_api(rootless):
    before = leaks.snapshot(rootless)
    yield Api(rootless)
    leaks.assert_nothing_leaked(rootless, before)


@pytest.fixture
def user_sandbox(user_api):
    made = user_api.create()["id"]
    yield made
    assert user_api.delete(made).status == 204


def inspect(api, sandbox_id):
    reply = api.call("GET", f"/sandboxes/{sandbox_id}/diagnostics/inspect")
    assert reply.status == 200, reply
    return reply.body.decode()


class TestSandbox:
    def test_nothing_of_it_is_root(self, rootless, user_api, user_sandbox):
        pids = [rootless.launcher_pid, rootless.server_pid(), *rootless.scope.sandbox_pids(user_sandbox)]
        for pid in pids:
            status = Path(f"/proc/{pid}/status").read_text()
            assert f"Uid:\t{rootless.uid}\t{rootless.uid}\t{rootless.uid}\t{rootless.uid}" in status
        server = Path(f"/proc/{rootless.server_pid()}/status").read_text()
        assert "CapEff:\t0000000000000000" in server
        assert "CapBnd:\t0000000000000000" in server

    def test_runs_commands_as_its_root(self, user_api, user_sandbox):
        ran = user_api.run(user_sandbox, "id -u; uname -n; echo $OPENSANDBOX_ID")
        assert ran.stdout == f"0\nsandbox\n{user_sandbox}"
        assert user_api.run(user_sandbox, "exit 3").exit_code == 3

    def test_a_user_that_does_not_exist_is_refused_with_the_reason(self, user_api, user_sandbox):
        ran = user_api.run(user_sandbox, "id", uid=1000, gid=1000)
        assert ran.stdout == "" and "uid_map" in ran.error["evalue"]

    def test_files(self, user_api, user_sandbox):
        data = bytes(range(256)) * 1000
        user_api.upload(user_sandbox, "/workspace/a/b.bin", data, mode=640)
        assert user_api.download(user_sandbox, "/workspace/a/b.bin") == data
        assert user_api.run(user_sandbox, "stat -c %a:%U /workspace/a/b.bin; rm -r /workspace/a; ls /workspace").stdout == "640:root"

    def test_directories_of_the_image_can_be_replaced(self, user_api, user_sandbox):
        """Whiteouts and opaque directories, which need attributes that a user may set."""
        script = "rm -r /etc/ssl /srv && mkdir /etc/ssl && echo new > /etc/ssl/x && ls /etc/ssl && ls -d /srv"
        ran = user_api.run(user_sandbox, script)
        assert ran.stdout == "x"
        assert "No such file" in ran.stderr

    def test_devices(self, user_api, user_sandbox):
        script = "echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 8 /dev/urandom | wc -c && ls /dev | tr '\\n' ' '"
        ran = user_api.run(user_sandbox, script)
        assert ran.stdout.split("\n") == [" 00 00 00 00", "8", "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "]
        assert user_api.run(user_sandbox, "script -qec 'tty' /dev/null").stdout.strip().startswith("/dev/pts/")

    def test_a_port_inside_is_reached_through_the_proxy(self, user_api, user_sandbox):
        user_api.upload(user_sandbox, "/srv/page", b"served from inside")
        user_api.run(user_sandbox, "cd /srv && python3 -m http.server 80 >/dev/null 2>&1", background=True)
        address, path = user_api.address, f"/sandboxes/{user_sandbox}/proxy/80/page"

        def page():
            reply = rawhttp.request(address, "GET", path, timeout=10)
            return reply.body if reply.status == 200 else None

        assert wait_for(page, 10, "the page is served") == b"served from inside"

    def test_an_end_is_reported(self, user_api):
        made = user_api.create(entrypoint=["sh", "-c", "sleep 0.3; exit 7"])["id"]
        wait_for(lambda: user_api.status(made)["state"] == "Failed", 10, "the sandbox ends")
        assert user_api.status(made)["reason"] == "ENTRYPOINT_FAILED"
        assert user_api.delete(made).status == 204

    def test_nothing_of_a_deleted_sandbox_lives(self, rootless, user_api):
        made = user_api.create()["id"]
        user_api.run(made, "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; sleep 600' & done; true", background=True)
        wait_for(lambda: len(rootless.scope.sandbox_pids(made)) >= 6, 5, "they run")
        pids = rootless.scope.sandbox_pids(made)
        assert user_api.delete(made).status == 204
        assert all(process_gone(pid) for pid in pids), "gone before the answer, not some time after"

    def test_a_read_only_root(self, user_api):
        made = user_api.create(extensions={"opensandbox.extensions.read-only-root": "true"})["id"]
        assert "Read-only" in user_api.run(made, "touch /etc/x").stderr
        assert user_api.run(made, "touch /tmp/x && echo fine").stdout == "fine"
        assert user_api.delete(made).status == 204

    def test_an_unpacked_directory_as_an_image(self, new_rootless):
        service = new_rootless(start=False, images={"small": "/"})
        root = service.directory / "small"
        for name, data in programs().items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
            (root / name).chmod(0o755)
        text = service.config_path.read_text()
        service.config_path.write_text(text.replace('"small" = "/"', f'"small" = "{root}"'))
        service.start()
        api = Api(service)
        made = api.create(image={"uri": "small"}, entrypoint=["/bin/tail", "-f", "/dev/null"])["id"]
        assert api.run(made, "id -u; ls -d /usr /dev/null; touch /made && ls /made").stdout == "0\n/dev/null\n/made"
        assert api.delete(made).status == 204


class TestTier:
    LOSSES = (
        "cpu and memory not limited", "RLIMIT_NPROC", "pause and resume", "size of the disk", "the service's user outside",
        "the server runs as the same user", "not idmapped", "only user and group 0 exist", "supplementary groups",
    )  # fmt: skip

    def test_is_in_the_diagnostics_with_every_loss(self, user_api, user_sandbox):
        text = inspect(user_api, user_sandbox)
        assert "isolation     rootless: " in text
        lacking = [line for line in text.splitlines() if line.startswith("  lacking")]
        for loss in self.LOSSES:
            assert any(loss in line for line in lacking), loss

    def test_is_in_the_log_and_in_health(self, rootless):
        log = rootless.log_path.read_text()
        for loss in self.LOSSES:
            assert loss in log, loss
        health = rawhttp.request(rootless.address, "GET", "/health").json
        assert health["isolation"].startswith("rootless: ")

    def test_a_service_of_root_does_not_have_it(self, api, sandbox):
        assert "rootless" not in inspect(api, sandbox)


class TestLimits:
    def test_what_every_client_sends_is_accepted_and_seen(self, user_api):
        made = user_api.create(resourceLimits={"cpu": "1", "memory": "512Mi"})["id"]
        ran = user_api.run(made, "nproc; awk '/MemTotal/ { print $2 }' /proc/meminfo")
        assert ran.stdout == f"1\n{512 * 1024}"
        assert user_api.delete(made).status == 204

    @pytest.mark.parametrize("name, value", [("disk", "64Mi"), ("io-read", "10Mi"), ("io-write", "10Mi")])
    def test_what_cannot_be_enforced_is_refused(self, user_api, name, value):
        reply = user_api.post_create(resourceLimits={name: value})
        assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")
        assert f"resourceLimits.{name}" in reply.json["message"]
        assert "root" in reply.json["message"]

    def test_open_files(self, user_api):
        made = user_api.create(resourceLimits={"nofile": "64"})["id"]
        assert user_api.run(made, "ulimit -Hn").stdout == "64"
        assert user_api.delete(made).status == 204

    def test_processes_of_one_sandbox_do_not_count_for_another(self, new_rootless):
        service = new_rootless(native={"pids_limit": 64})
        api = Api(service)
        bomb, other = api.create()["id"], api.create()["id"]
        # bash would try again for 15 s.
        script = "sh -c 'i=0; while [ $i -lt 200 ]; do sleep 100 & i=$((i+1)); done'; true"
        assert "Cannot fork" in api.run(bomb, script).stderr
        assert len(service.scope.sandbox_pids(bomb)) <= 66
        assert api.run(other, "for i in $(seq 20); do sleep 5 & done; echo fine").stdout == "fine"
        for name in (bomb, other):
            assert api.delete(name).status == 204

    def test_snapshots_are_refused_with_the_remedy(self, user_api, user_sandbox):
        reply = user_api.call("POST", f"/sandboxes/{user_sandbox}/snapshots", json={})
        assert_envelope(reply, 400, "SNAPSHOT::NOT_IMPLEMENTED")
        assert "start the service as root" in reply.json["message"]

    def test_pause_is_refused_with_the_remedy(self, user_api, user_sandbox):
        reply = user_api.call("POST", f"/sandboxes/{user_sandbox}/pause")
        assert_envelope(reply, 400, "SANDBOX::UNSUPPORTED")
        assert "delegated" in reply.json["remedy"]
        assert user_api.status(user_sandbox)["state"] == "Running"
        assert user_api.run(user_sandbox, "echo on").stdout == "on"


class TestRecovery:
    @pytest.mark.parametrize("victim", ["server", "launcher", "both"])
    def test_sandboxes_live_on(self, new_rootless, victim):
        service = new_rootless()
        api = Api(service)
        before = leaks.snapshot(service)
        ids = [api.create()["id"] for _ in range(5)]
        inits = {name: service.scope.init_pid(name) for name in ids}
        api.run(ids[0], "echo kept > /tmp/x")
        getattr(service, f"kill_{victim}")()
        if service.process.poll() is not None:
            service.start()
        assert {item["id"] for item in api.list_all()} == set(ids)
        assert {name: service.scope.sandbox_pids(name)[0] for name in ids} == inits
        assert api.run(ids[0], "cat /tmp/x").stdout == "kept"
        # A socket inside is made from the namespace that the earlier service left.
        api.run(ids[1], "cd /etc && python3 -m http.server 8000 >/dev/null 2>&1", background=True)
        wait_for(
            lambda: rawhttp.request(service.address, "GET", f"/sandboxes/{ids[1]}/proxy/8000/hostname", timeout=10).status == 200,
            10, "the port answers",
        )  # fmt: skip
        more = api.create()["id"]
        assert api.run(more, "echo new").stdout == "new"
        for name in [*ids, more]:
            assert api.delete(name).status == 204
        leaks.assert_nothing_leaked(service, before)

    def test_creates_and_deletes_in_flight(self, new_rootless):
        """At whatever instruction the launcher dies: what runs is what is listed, and nothing else."""
        service = new_rootless()
        api = Api(service)
        before = leaks.snapshot(service)
        for round_number in range(8):
            with Creators(api, also_delete=round_number % 2 == 1) as creators:
                creators.wait_until_busy(4)
                time.sleep(random.random() * 0.05)
                (service.kill_launcher, service.kill_both)[round_number % 2]()
                service.start()
                creators.wait_until_busy(creators.started + 4)
            assert not creators.wrong, creators.wrong[:3]
            listed = {item["id"] for item in api.list_all()}
            assert creators.answered - creators.deleted <= listed, "a promised sandbox is lost"
            wait_for(lambda listed=listed: service.scope.running_sandboxes() == listed, 5, "what runs is what is listed")
            with ThreadPoolExecutor(4) as pool:
                assert set(pool.map(lambda name: api.delete(name).status, listed)) <= {204}
        leaks.assert_nothing_leaked(service, before)

    def test_ends_while_the_service_is_down_are_reported(self, new_rootless):
        service = new_rootless()
        api = Api(service)
        made = api.create(entrypoint=["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.05; done; exit 5"])["id"]
        api.run(made, "(sleep 0.5; touch /tmp/go) > /dev/null 2>&1 &")
        service.kill_both()
        time.sleep(0.8)
        service.start()
        wait_for(lambda: api.status(made)["state"] == "Failed", 5, "the end is known")
        assert api.status(made)["reason"] == "ENTRYPOINT_FAILED"
        assert api.delete(made).status == 204

    def test_a_killed_sandbox_is_told_from_a_living_one(self, new_rootless):
        service = new_rootless()
        api = Api(service)
        dead, alive = api.create()["id"], api.create()["id"]
        service.kill_both()
        os.kill(service.scope.init_pid(dead), signal.SIGKILL)
        service.start()
        assert api.status(dead)["state"] == "Failed"
        assert api.run(alive, "echo fine").stdout == "fine"
        for name in (dead, alive):
            assert api.delete(name).status == 204


NO_FURTHER_USER_NAMESPACES = """
import ctypes, os, sys
told, tell = os.pipe()
parent = os.getpid()
if os.fork() == 0:  # stays outside, where it may write the map
    os.read(told, 1)
    for name in ("uid_map", "gid_map"):
        open(f"/proc/{parent}/{name}", "w").write("0 0 70000")
    os._exit(0)
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(tell, b"1")
os.wait()
open("/proc/sys/user/max_user_namespaces", "w").write("0")
os.execvp(sys.argv[1], sys.argv[1:])
"""


class TestPlaces:
    def test_without_a_configured_directory_the_users_own_is_used(self, new_rootless):
        service = new_rootless(default_state_dir=True)
        assert (service.home / ".local/state/opensandbox/db").is_dir()
        api = Api(service)
        made = api.create()["id"]
        assert list(service.runtime_dir.glob(f"opensandbox-*/{service.scope.handle(made)}.api")), "sockets are in XDG_RUNTIME_DIR"
        assert api.delete(made).status == 204
        assert service.stop() in (0, -15)
        assert not list(service.runtime_dir.iterdir()), "and nothing stays there"

    def test_two_services_of_one_user(self, new_rootless):
        first = new_rootless(default_state_dir=True)
        second = new_rootless(start=False)
        second.uid = first.uid
        for path in (second.home, second.runtime_dir):
            shutil.chown(path, first.uid, first.uid)
        second.scope.uid = first.uid
        second.start()
        names = [Api(service).create()["id"] for service in (first, second)]
        for service, name in zip((first, second), names, strict=True):
            assert [item["id"] for item in Api(service).list_all()] == [name]
            assert Api(service).delete(name).status == 204

    def test_a_directory_of_somebody_else_is_refused_with_the_remedy(self, new_rootless):
        service = new_rootless(start=False)
        text = service.config_path.read_text()
        service.config_path.write_text(text.replace(str(service.state_dir), "/var/lib/osb-test-of-root"))
        service.spawn()
        assert service.process.wait(15) == 1
        assert "remove native.state_dir" in service.log_tail()

    def test_root_does_not_take_over_a_users_directory(self, new_rootless, new_service):
        users = new_rootless()
        made = Api(users).create()["id"]
        users.stop()
        roots = new_service(start=False)
        text = roots.config_path.read_text()
        roots.config_path.write_text(text.replace(str(roots.state_dir), str(users.state_dir)))
        roots.spawn()
        assert roots.process.wait(15) == 1
        assert "ordinary user" in roots.log_tail()
        users.start()
        assert Api(users).run(made, "echo on").stdout == "on"
        assert Api(users).delete(made).status == 204

    def test_where_user_namespaces_are_forbidden_the_switch_is_named(self, new_rootless):
        # A user namespace in which no further ones may be made: the host itself is not touched.
        service = new_rootless(start=False, wrapper=["python3", "-c", NO_FURTHER_USER_NAMESPACES])
        service.spawn()
        assert service.process.wait(15) == 1
        log = service.log_tail()
        assert "user.max_user_namespaces" in log
        assert "root" in log
        assert not (service.state_dir / "db").exists()


class TestMappedIds:
    @pytest.fixture(scope="class")
    def mapped(self, bin_dir):
        require_user_namespaces()
        if not shutil.which("newuidmap"):
            pytest.skip("newuidmap is not installed (Debian: uidmap)")
        with services(RootlessService, bin_dir) as make:
            yield make(subordinate_ids=True)

    def test_other_users_exist_inside(self, mapped):
        api = Api(mapped)
        before = leaks.snapshot(mapped)
        made = api.create()["id"]
        assert api.run(made, "id -u; id -G; stat -c %U /home/user", uid=1000, gid=1000).stdout == "1000\n1000\nuser"
        assert api.run(made, "touch /tmp/x && chown www-data:mail /tmp/x && stat -c %U:%G /tmp/x").stdout == "www-data:mail"
        text = inspect(api, made)
        assert "isolation     rootless: " in text
        assert "exist inside" not in text
        assert "supplementary groups" not in text
        assert mapped.scope.sandbox_pids(made)
        mapped.kill_both()
        mapped.start()
        assert api.run(made, "id -u", uid=1000, gid=1000).stdout == "1000"
        assert api.delete(made).status == 204
        leaks.assert_nothing_leaked(mapped, before)


class TestDelegatedGroup:
    """A cgroup of version 2 that the system gave to the user, as a service manager does with Delegate=yes."""

    @pytest.fixture
    def delegated(self, new_rootless):
        mount = cgroup_mounts().get("")
        if not mount:
            pytest.skip("no cgroup version 2 is mounted")
        service = new_rootless(start=False)
        group = Path(mount, f"osb-test-{service.uid}")
        group.mkdir()
        for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(group / name, service.uid, service.uid)
        service.wrapper = start_in(group)
        try:
            service.start()
            warm_up(service)
            yield service, group
        finally:
            service.destroy()
            for path in [*sorted((path for path in group.rglob("*") if path.is_dir()), key=lambda p: -len(p.parts)), group]:
                wait_for(lambda path=path: not path.exists() or remove_group(path), 5, f"{path} is empty")

    def test_pause_and_resume(self, delegated):
        service, group = delegated
        api = Api(service)
        made = api.create(resourceLimits={"cpu": "1", "memory": "512Mi"})["id"]
        assert list(group.glob(f"*/{service.scope.handle(made)}/cgroup.procs")), "the sandbox has a group of its own"
        text = inspect(api, made)
        assert "rootless" in text and "pause" not in text
        assert api.call("POST", f"/sandboxes/{made}/pause").status == 202
        assert api.status(made)["state"] == "Paused"
        # Frozen ones are found again as such, and can be ended.
        service.kill_both()
        service.start()
        assert api.status(made)["state"] == "Paused"
        assert api.call("POST", f"/sandboxes/{made}/resume").status == 202
        assert api.run(made, "echo on").stdout == "on"
        assert api.call("POST", f"/sandboxes/{made}/pause").status == 202
        assert api.delete(made).status == 204
        assert not list(group.glob(f"*/{made}"))

    def test_a_create_whose_note_cannot_be_written_leaves_no_group(self, delegated):
        """Something is in the way of the note of the first process, which then waits in the sandbox's group."""
        service, group = delegated
        api = Api(service)
        groups = {path for path in group.rglob("*") if path.is_dir()}
        sandboxes = service.state_dir / "sandboxes"
        stop = threading.Event()

        def stand_in_the_way():
            while not stop.is_set():
                for directory in sandboxes.iterdir():
                    with suppress(OSError):
                        (directory / "process").mkdir()

        thread = threading.Thread(target=stand_in_the_way)
        thread.start()
        try:
            replies = []
            for _ in range(50):  # the launcher may be quicker
                replies.append(api.post_create())
                if replies[-1].status >= 500:
                    break
                api.delete(replies[-1].json["id"])
        finally:
            stop.set()
            thread.join()
        assert "first process" in replies[-1].json["message"], replies[-1]
        wait_for(lambda: {path for path in group.rglob("*") if path.is_dir()} == groups, 5, "the group goes with the create that failed")
        assert api.delete(api.create()["id"]).status == 204

    def test_the_next_service_may_be_in_another_group(self, delegated):
        """Every login, every systemd-run gives another one."""
        service, group = delegated
        api = Api(service)
        paused, running = api.create()["id"], api.create()["id"]
        assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
        service.kill_both()
        other = group / "other"
        other.mkdir()
        for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(other / name, service.uid, service.uid)
        service.wrapper = start_in(other)
        service.start()
        assert api.status(paused)["state"] == "Paused"
        assert api.call("POST", f"/sandboxes/{paused}/resume").status == 202
        assert api.run(paused, "echo on").stdout == "on"
        assert api.call("POST", f"/sandboxes/{running}/pause").status == 202
        new = api.create()["id"]
        assert list(other.glob(f"*/{service.scope.handle(new)}"))
        for name in (paused, running, new):
            handle = service.scope.handle(name)
            assert api.delete(name).status == 204
            assert not list(group.rglob(handle))

    def test_a_sandbox_made_without_a_group_cannot_be_paused(self, delegated):
        service, _ = delegated
        api = Api(service)
        service.stop()
        wrapper, service.wrapper = service.wrapper, []
        service.start()
        made = api.create()["id"]
        service.stop()
        service.wrapper = wrapper
        service.start()
        reply = api.call("POST", f"/sandboxes/{made}/pause")
        assert_envelope(reply, 400, "SANDBOX::UNSUPPORTED")
        assert api.run(made, "echo on").stdout == "on"
        assert api.delete(made).status == 204

    def test_a_sandbox_of_a_service_without_the_group_is_kept(self, delegated):
        service, _ = delegated
        api = Api(service)
        made = api.create()["id"]
        service.kill_both()
        service.wrapper = []
        service.start()
        assert api.run(made, "echo on").stdout == "on"
        assert api.call("POST", f"/sandboxes/{made}/pause").status == 400
        assert api.delete(made).status == 204


def start_in(group):
    """Into a group; into the service's own one below when that is left from an earlier service: a group that shares out
    controllers takes no process (systemd: DelegateSubgroup=)."""
    script = f'for g in {group}/*-service {group}; do echo $$ 2>/dev/null > $g/cgroup.procs && exec "$@"; done; exit 9'
    return ["sh", "-c", script, "sh"]


def remove_group(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


def test_the_published_client(rootless):
    opensandbox = pytest.importorskip("opensandbox")
    from opensandbox.config import ConnectionConfigSync

    config = ConnectionConfigSync(domain=f"{rootless.address[0]}:{rootless.address[1]}")
    with opensandbox.SandboxSync.create("host", connection_config=config, timeout=timedelta(minutes=5)) as sandbox:
        assert sandbox.commands.run("echo hello").logs.stdout[0].text == "hello"
        sandbox.files.write_file("/tmp/a.txt", "text")
        assert sandbox.files.read_file("/tmp/a.txt") == "text"
        limits = next(line for line in inspect(Api(rootless), sandbox.id).splitlines() if line.startswith("limits"))
        assert "cpu" in limits and "memory" in limits, "this client sends limits by itself"
        sandbox.kill()


def test_volumes_are_the_users(bin_dir):
    require_user_namespaces()
    with services(RootlessService, bin_dir) as make:
        service = make(start=False)
        own, other = service.directory / "own", service.directory / "roots"
        for path in (own, other):
            path.mkdir()
        (other / "file").write_text("seen\n")
        os.chown(own, service.uid, service.uid)
        text = service.config_path.read_text()
        service.config_path.write_text(text + f'\n[storage]\nallowed_host_paths = ["{own}", "{other}"]\n')
        service.start()
        api = Api(service)

        def volume(name, at, source, **more):
            return {"name": name, "mountPath": at, **source, **more}

        wanted = [volume("a", "/own", {"host": {"path": str(own)}}), volume("b", "/other", {"host": {"path": str(other)}}, readOnly=True),
                  volume("c", "/named", {"pvc": {"claimName": "named"}}, subPath="x/y")]  # fmt: skip
        first, second = (api.create(volumes=wanted)["id"] for _ in range(2))
        ran = api.run(first, "echo 1 > /own/f && echo 2 > /named/f && cat /other/file && stat -c %u /own /named /named/f")
        assert ran.stdout == "seen\n0\n0\n0", ran.stderr
        assert (own / "f").stat().st_uid == service.uid
        assert api.run(second, "cat /own/f /named/f").stdout == "1\n2"
        assert "Read-only" in api.run(second, "touch /other/x").stderr
        assert api.call("DELETE", "/volumes/named").status == 409
        for name in (first, second):
            assert api.delete(name).status == 204
        assert api.call("DELETE", "/volumes/named").status == 204
