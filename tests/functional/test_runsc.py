"""Sandboxes under runsc (gVisor), made by the native launcher without an engine. Skipped where no runsc is to be had."""

import os
import shutil
import signal
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from lib import pools
from lib.api import Api, assert_envelope
from lib.interpreter import NAME, image_root, readme_program, run_program
from lib.runsc import require_runsc, runsc_service
from lib.scope import command_line, descendants
from lib.service import STATE_PARENT, Service
from lib.waiting import process_gone, wait_for

EXTENSION = "opensandbox.extensions.runtime"
RUNSC = {"extensions": {EXTENSION: "runsc"}}
SLEEPER = ["sleep", "1000"]
MEMBARRIER = {"x86_64": 324, "aarch64": 283}[os.uname().machine]


@pytest.fixture(scope="module")
def service(bin_dir):
    made = runsc_service(bin_dir)
    try:
        yield made.start(timeout=60)
    finally:
        made.destroy()


@pytest.fixture
def api(service):
    """Every test leaves no process of its sandboxes behind."""
    api = Api(service)
    yield api
    for sandbox in api.list_all():
        assert api.delete(sandbox["id"]).status == 204
    wait_for(lambda: not service.scope.processes(), 20, "no process of a sandbox is left")


def create(api, **fields):
    return api.create(**{"entrypoint": SLEEPER, **RUNSC, **fields})["id"]


def kernel(api, sandbox):
    return api.run(sandbox, "cat /proc/version").stdout


def test_its_kernel_is_another_one(api):
    sandbox, native = create(api), create(api, extensions={})
    assert "gVisor" in api.run(sandbox, "dmesg").stdout + kernel(api, sandbox)
    assert kernel(api, sandbox) != kernel(api, native) == open("/proc/version", encoding="utf-8").read().strip()
    assert api.get(sandbox)["extensions"] == {EXTENSION: "runsc"} and EXTENSION not in api.get(native).get("extensions", {})
    text = api.call("GET", f"/sandboxes/{sandbox}/diagnostics/inspect").body.decode()
    assert "runtime       runsc\n" in text and "gVisor" in text and "  refused     snapshots: " in text


def test_commands_files_and_ports(api):
    sandbox = create(api, env={"GIVEN": "here"})
    done = api.run(sandbox, "echo $GIVEN; id -u; hostname; echo bad >&2; exit 3")
    assert done.stdout.split() == ["here", "0", "sandbox"] and done.stderr == "bad" and done.exit_code == 3
    data = bytes(range(256)) * 5000
    api.upload(sandbox, "/root/data.bin", data)
    assert api.download(sandbox, "/root/data.bin") == data
    assert api.run(sandbox, "wc -c < /root/data.bin").stdout.strip() == str(len(data))
    server = "import http.server as h; h.ThreadingHTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
    api.execd(sandbox, "POST", "/command", json={"command": f'cd /etc && python3 -c "{server}"', "background": True})
    reply = wait_for(lambda: answer(api, sandbox), 20, "the port answers")
    assert reply.status == 200 and b"passwd" in reply.body


def answer(api, sandbox):
    reply = api.call("GET", f"/sandboxes/{sandbox}/proxy/8000/")
    assert reply.status == 200, reply
    return reply


def test_the_published_client(api, service):
    opensandbox = pytest.importorskip("opensandbox")
    from opensandbox.config import ConnectionConfigSync

    config = ConnectionConfigSync(domain=f"{service.address[0]}:{service.address[1]}")
    options = {"connection_config": config, "timeout": timedelta(minutes=5), "entrypoint": SLEEPER, **RUNSC}
    with opensandbox.SandboxSync.create("host", **options) as sandbox:
        assert sandbox.commands.run("echo 'Hello OpenSandbox!'").logs.stdout[0].text == "Hello OpenSandbox!"
        sandbox.files.write_file("/tmp/hello.txt", "Hello World")
        assert sandbox.files.read_file("/tmp/hello.txt") == "Hello World"
        sandbox.kill()


def test_code_with_a_state(api):
    sandbox = create(api)
    made = api.execd(sandbox, "POST", "/code/context", json={"language": "python"})
    assert made.status == 200, made
    for code, shown in (("kept = 6", ""), ("print(kept * 7)", "42")):
        reply = api.execd(sandbox, "POST", "/code", json={"code": code, "context": {"id": made.json["id"], "language": "python"}}, timeout=60)
        assert reply.status == 200 and shown in reply.body.decode(), reply


def test_pause_and_resume(api, service):
    sandbox = create(api)
    api.execd(sandbox, "POST", "/command", json={"command": "while true; do date +%s%N > /tmp/now; sleep 0.05; done", "background": True})
    wait_for(lambda: api.run(sandbox, "cat /tmp/now").stdout, 10, "the program writes")
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    wait_for(lambda: api.status(sandbox)["state"] == "Paused", 10, "it is paused")
    service.kill_server()
    assert api.status(sandbox)["state"] == "Paused"
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    wait_for(lambda: api.status(sandbox)["state"] == "Running", 10, "it runs again")
    assert api.run(sandbox, "echo back").stdout == "back"


@pytest.mark.parametrize("killed", ["server", "launcher", "both"])
def test_kill_9(api, service, killed):
    sandbox = create(api)
    api.upload(sandbox, "/root/kept", b"before")
    if killed == "server":
        service.kill_server()
    else:
        (service.kill_launcher if killed == "launcher" else service.kill_both)()
        service.start(timeout=60)
    assert api.status(sandbox)["state"] == "Running" and api.get(sandbox)["extensions"] == {EXTENSION: "runsc"}
    assert api.run(sandbox, "cat /root/kept").stdout == "before"
    assert api.delete(sandbox).status == 204


def test_ends_say_why(api, service):
    ended = create(api, entrypoint=["sh", "-c", "echo last words; sleep 1; exit 7"])
    status = wait_for(lambda: over(api, ended), 20, "it ends")
    assert (status["state"], status["reason"]) == ("Failed", "ENTRYPOINT_FAILED") and status["message"].endswith("code 7"), status
    assert "last words" in api.call("GET", f"/sandboxes/{ended}/diagnostics/logs").body.decode()
    assert_envelope(api.post_create(entrypoint=["/no/such/program"], **RUNSC), 400, "SANDBOX::INVALID_ENTRYPOINT")


def over(api, sandbox):
    status = api.status(sandbox)
    assert status["state"] in ("Terminated", "Failed"), status
    return status


def test_an_idle_entry_process_comes_later_and_counts_all_the_same(api):
    """Not before the first command, which would wait for it; its end is still the end of the sandbox."""
    sandbox = create(api, entrypoint=["tail", "-f", "/dev/null"])
    wait_for(lambda: api.run(sandbox, "pgrep -xc tail || true").stdout == "1", 10, "the entry process runs")
    api.run(sandbox, "pkill -9 -x tail", background=True)  # which ends with it
    wait_for(lambda: api.get(sandbox)["status"]["state"] == "Failed", 10, "the sandbox has ended")
    assert api.get(sandbox)["status"]["reason"] == "KILLED_BY_SIGNAL"
    # Paused before it has come, and deleted: nothing of it is left (see the fixture).
    early = create(api, entrypoint=["tail", "-f", "/dev/null"])
    assert api.call("POST", f"/sandboxes/{early}/pause").status == 202
    wait_for(lambda: api.get(early)["status"]["state"] == "Paused", 10, "it is paused")
    assert api.call("POST", f"/sandboxes/{early}/resume").status == 202
    wait_for(lambda: api.run(early, "pgrep -xc tail || true").stdout == "1", 10, "the entry process runs")


def test_its_start_waits_for_no_other_processor(api, service):
    """What runsc would wait for, some ten milliseconds each time: a registration for memory barriers, which is refused (sandboxes
    have them all the same), and a table of descriptors that grows."""
    sandbox = create(api)
    offered = f"import ctypes; print(ctypes.CDLL(None).syscall({MEMBARRIER}, 0, 0, 0))"
    assert int(api.run(sandbox, f'python3 -c "{offered}"').stdout) > 0
    statuses = [status(pid) for pid in service.scope.sandbox_pids(sandbox) if command_line(pid)[0].startswith(b"runsc")]
    assert len(statuses) >= 3 and {one["Seccomp"] for one in statuses} == {"2"}
    assert all(int(one["FDSize"]) >= 512 for one in statuses), statuses


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def test_expiry(api):
    sandbox = create(api, timeout=60)
    api.renew(sandbox, 2)
    wait_for(lambda: sandbox not in [one["id"] for one in api.list_all()] or api.status(sandbox)["state"] != "Running", 20, "it expires")


def test_out_of_memory(api):
    """The kernel that runs out of it is the sandbox's own, so the sandbox ends."""
    sandbox = create(api, entrypoint=["python3", "-c", "b = bytearray(600 << 20); import time; time.sleep(60)"], resourceLimits={"memory": "256Mi"})
    status = wait_for(lambda: over(api, sandbox), 30, "it ends")
    assert (status["state"], status["reason"]) == ("Failed", "OUT_OF_MEMORY"), status


def test_refusals(api):
    sandbox = create(api)
    refused = assert_envelope(api.call("POST", f"/sandboxes/{sandbox}/snapshots", json={}), 400, "SNAPSHOT::NOT_IMPLEMENTED")
    assert "runsc keeps changes" in refused["message"]
    refused = assert_envelope(api.post_create(resourceLimits={"pids": "100"}, **RUNSC), 400, "SANDBOX::INVALID_PARAMETER")
    assert "no processes of this host" in refused["message"]
    refused = assert_envelope(api.post_create(extensions={EXTENSION: "kata"}), 400, "SANDBOX::INVALID_PARAMETER")
    assert "native, runsc" in refused["message"]


def test_volumes(api):
    volume = {"volumes": [{"name": "data", "pvc": {"claimName": "runsc-shared"}, "mountPath": "/data"}]}
    writer, native = create(api, **volume), create(api, **volume, extensions={})
    assert api.run(writer, "echo from-runsc > /data/a").exit_code == 0
    assert api.run(native, "cat /data/a; echo from-native > /data/b").stdout == "from-runsc"
    assert api.run(writer, "cat /data/b").stdout == "from-native"


def test_volumes_in_each_other(api):
    volumes = [{"name": name, "pvc": {"claimName": f"runsc-{name}"}, "mountPath": path} for name, path in (("inner", "/work/cache"), ("outer", "/work/"))]
    sandbox = create(api, volumes=volumes)
    assert api.run(sandbox, "echo a > /work/a; echo b > /work/cache/b; cat /work/a /work/cache/b").stdout == "a\nb"
    native = create(api, volumes=[{**volumes[0], "mountPath": "/inner"}, {**volumes[1], "mountPath": "/outer"}], extensions={})
    assert api.run(native, "cat /outer/a /inner/b; ls -A /outer/cache").stdout == "a\nb"


def test_a_directory_of_roots_is_only_read(bin_dir):
    """What runsc does for a sandbox is not what the launcher's filters see."""
    ground = Path(tempfile.mkdtemp(prefix="osb-roots-", dir=STATE_PARENT))
    (ground / "file").write_text("root's")
    made = runsc_service(bin_dir, sections={"storage": {"allowed_host_paths": [str(ground)]}})
    try:
        api = Api(made.start(timeout=60))
        volume = {"name": "v", "host": {"path": str(ground)}, "mountPath": "/data"}
        found = assert_envelope(api.post_create(entrypoint=SLEEPER, volumes=[volume], **RUNSC), 400, "VOLUME::HOST_PATH_NOT_ALLOWED")
        assert "/data: the directory belongs to root" in found["message"] and "chown" in found["message"]
        sandbox = create(api, volumes=[{**volume, "readOnly": True}])
        assert api.run(sandbox, "cat /data/file; touch /data/new || true").stdout == "root's" and not (ground / "new").exists()
    finally:
        made.destroy()
        shutil.rmtree(ground)


def test_links_of_an_image_on_the_way_to_a_volume(bin_dir, tmp_path):
    """They are followed inside the sandbox, as natively, and lead to nothing of the host's."""
    root = tmp_path / "root"
    for name in ("bin", "goal", "tmp", "proc"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for link, to in (("bin/sh", "busybox"), ("bin/cat", "busybox"), ("bin/sleep", "busybox"), ("aside", "/goal"), ("kernel", "/proc"), ("top", "/")):
        (root / link).symlink_to(to)
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        of_host = file.read().strip()
    made = runsc_service(bin_dir, images={"links": str(root)})
    try:
        api = Api(made.start(timeout=60))

        def reply_at(path, **fields):
            volumes = [{"name": "data", "pvc": {"claimName": "linked"}, "mountPath": path}]
            return api.post_create(image={"uri": "links"}, entrypoint=SLEEPER, volumes=volumes, **fields)

        for fields in ({}, RUNSC):
            reply = reply_at("/aside/deep", **fields)
            assert reply.status == 202, reply
            assert api.run(reply.json["id"], "echo x > /goal/deep/y; cat /aside/deep/y").stdout == "x"
        for link in ("kernel", "top"):
            reply = reply_at(f"/{link}", **RUNSC)
            if reply.status == 202:
                seen = api.run(reply.json["id"], f"cat /{link}/sys/kernel/random/boot_id /{link}/proc/sys/kernel/random/boot_id /{link}/bundle/config.json 2>&1")
                assert of_host not in seen.stdout and "ociVersion" not in seen.stdout, (link, seen)
    finally:
        made.destroy()


def test_read_only_root(api):
    sandbox = create(api, extensions={EXTENSION: "runsc", "opensandbox.extensions.read-only-root": "true"})
    assert api.run(sandbox, "touch /etc/x").exit_code != 0
    assert api.run(sandbox, "echo a > /tmp/x && cat /tmp/x").stdout == "a"


def test_a_failed_start_leaves_nothing(api, service):
    before = service.scope.processes()
    assert api.post_create(entrypoint=["/no/such/program"], **RUNSC).status != 202
    wait_for(lambda: service.scope.processes() == before, 20, "nothing of it is left")


def test_rules_choose(bin_dir):
    made = runsc_service(bin_dir, runtime={"also": ["runsc"], "rules": [{"image": "host", "runtime": "runsc"}]})
    try:
        api = Api(made.start(timeout=60))
        by_rule = create(api, extensions={})
        assert api.get(by_rule)["extensions"] == {EXTENSION: "runsc"}
        named = create(api, extensions={EXTENSION: "native"})
        assert kernel(api, named) != kernel(api, by_rule)
    finally:
        made.destroy()


def test_a_lost_database(bin_dir):
    """The native runtime finds what the launcher has, and the record says whose it is."""
    made = runsc_service(bin_dir, runtime={"also": ["runsc"], "rules": [{"image": "*", "runtime": "runsc"}]})
    try:
        api = Api(made.start(timeout=60))
        sandbox = create(api, extensions={}, metadata={"team": "red"})
        made.kill_both()
        for file in (made.state_dir / "db").glob("opensandbox.db*"):
            file.unlink()
        made.start(timeout=60)
        assert api.get(sandbox)["metadata"] == {"team": "red"}
        assert "runtime       runsc\n" in api.call("GET", f"/sandboxes/{sandbox}/diagnostics/inspect").body.decode()
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.delete(sandbox).status == 204
    finally:
        made.destroy()


def test_all_of_them(bin_dir):
    """[secure_runtime] with gvisor: nothing less is offered, and what there was before is served."""
    made = runsc_service(bin_dir)
    try:
        api = Api(made.start(timeout=60))
        native = create(api, extensions={})
        made.stop()
        secured = runsc_service(bin_dir, secure={"type": "gvisor"}, directory=made.directory)
        made.config_path.write_text(secured.config_path.read_text().replace(str(secured.address[1]), str(made.address[1])), encoding="utf-8")
        made.start(timeout=60)
        assert api.run(native, "echo still").stdout == "still"
        standard = create(api, extensions={})
        assert kernel(api, standard) != kernel(api, native)
        assert_envelope(api.post_create(extensions={EXTENSION: "native"}), 400)
    finally:
        made.destroy()


def test_the_readmes_program(bin_dir, tmp_path):
    """Unchanged, on a service where all sandboxes are under runsc."""
    pytest.importorskip("code_interpreter")
    made = runsc_service(bin_dir, secure={"type": "gvisor"}, images={NAME: str(image_root())})
    try:
        (tmp_path / "program.py").write_text(readme_program())
        lines = run_program([tmp_path / "program.py"], made.start(timeout=60), tmp_path)
        assert lines[:3] == ["Hello OpenSandbox!", "Content: Hello World", "4"] and lines[3].startswith("3.11"), lines
    finally:
        made.destroy()


def handles(service):
    return {path.name for path in (service.state_dir / "sandboxes").iterdir()}


def test_pools(bin_dir):
    """What waits has booted already, and a claim gets that."""
    made = runsc_service(bin_dir, secure={"type": "gvisor"})
    try:
        api = Api(made.start(timeout=60))
        pools.make(api)
        pools.filled(api, timeout=60)
        waiting = handles(made)
        sandbox = pools.claim(api, entrypoint=SLEEPER)
        assert len(waiting) == 1 and made.scope.handle(sandbox) in waiting
        made.scope.remember(sandbox)
        assert kernel(api, sandbox) != open("/proc/version", encoding="utf-8").read().strip()
        pools.delete(api)
        assert api.delete(sandbox).status == 204
    finally:
        made.destroy()


def test_the_servers_own_pool(bin_dir):
    """Nothing says when one waits, so creates are tried until one gets what was there before it."""
    made = runsc_service(bin_dir, secure={"type": "gvisor"}, sections={"sandbox": {"pool_size": 1}})

    def claimed(api):
        before = handles(made)
        sandbox = api.create(entrypoint=SLEEPER)["id"]
        assert api.run(sandbox, "echo in").stdout == "in"
        was_there = made.scope.handle(sandbox) in before
        assert api.delete(sandbox).status == 204
        return was_there

    try:
        api = Api(made.start(timeout=60))
        wait_for(lambda: claimed(api), 60, "a create gets one that waited", interval=0.5)
    finally:
        made.destroy()


def test_a_small_limit_on_processes(bin_dir):
    """It counts those of runsc, which would end with the sandbox at less than it needs."""
    made = runsc_service(bin_dir, native={"pids_limit": 64})
    try:
        api = Api(made.start(timeout=60))
        sandbox = create(api)
        ran = api.run(sandbox, "for i in $(seq 100); do sleep 1 & done; wait; echo all", timeout=60000, client_timeout=70)
        assert ran.stdout == "all" and api.status(sandbox)["state"] == "Running", (ran, api.status(sandbox))
    finally:
        made.destroy()


def test_a_host_without_it(bin_dir):
    require_runsc()
    made = Service(bin_dir, sections={"secure_runtime": {"type": "gvisor", "runsc": "/nowhere/runsc"}})
    try:
        assert made.ends() == 78
        assert "secure_runtime.runsc" in made.log_tail()
    finally:
        made.destroy()


def test_a_kill_while_it_is_tried(bin_dir):
    """Before a service starts it tries runsc. Killed in that moment it leaves nothing, also of a runsc that hangs."""
    left = set(Path("/tmp").iterdir())
    made = runsc_service(bin_dir)
    tried = None
    try:
        made.spawn()
        tried = wait_for(lambda: [pid for pid in descendants(made.process.pid) if command_line(pid)[:1] == [b"runsc"]], 20, "it is tried", interval=0.001)
        for pid in tried:
            os.kill(pid, signal.SIGSTOP)
        assert made.process.poll() is None
        made.process.kill()
        made.process.wait(10)
        wait_for(lambda: all(process_gone(pid) for pid in tried), 10, "what it had started ends with it")
        assert not [path for path in set(Path("/tmp").iterdir()) - left if "runsc" in path.name]
    finally:
        for pid in tried or []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        made.destroy()
