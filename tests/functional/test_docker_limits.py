"""What a container may use and do: limits that engines hold, or refuse by themselves, and what the operator gives to all of them."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, SLEEPER, Dockerd, create, handles, nothing_left, ours, require_docker, service_on
from lib.waiting import wait_for


@pytest.fixture
def api(docker, engine):
    """Every test leaves nothing behind."""
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


@pytest.mark.parametrize("files", [100, 5000])
def test_open_files(api, files):
    """Of what runs in the container; execd itself has more."""
    sandbox = create(api, resourceLimits={"nofile": str(files)}, entrypoint=["sh", "-c", "(ulimit -n; ulimit -Hn) > /tmp/entry; exec sleep 1000"])
    assert api.run(sandbox, "ulimit -n; ulimit -Hn").stdout.split() == [str(files)] * 2
    wait_for(lambda: api.run(sandbox, "cat /tmp/entry").stdout.split() == [str(files)] * 2, 10, "the entry process has it, too")
    execd = api.run(sandbox, "grep 'open files' /proc/1/limits").stdout.split()
    assert int(execd[3]) >= max(files, 4096), execd


def test_more_files_than_the_engine_can_give(api, engine):
    refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, resourceLimits={"nofile": str(1 << 30)})
    assert "resourceLimits.nofile" in assert_envelope(refused, 400, "SANDBOX::INVALID_PARAMETER")["message"], refused
    assert not ours(engine) and not handles(api.service), "nothing is left of it"


@pytest.mark.parametrize("count", ["all", "1"])
def test_an_engine_without_gpus_says_so(api, engine, count):
    refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, resourceLimits={"gpu": count})
    found = assert_envelope(refused, 400, "SANDBOX::INVALID_PARAMETER")
    assert "resourceLimits.gpu" in found["message"] and "no GPUs" in found["message"], found
    assert not ours(engine) and not handles(api.service), "nothing is left of it"
    assert_envelope(api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, resourceLimits={"gpu": "0"}), 400, "SANDBOX::INVALID_PARAMETER")


def test_a_limit_of_the_disk_is_the_storage_drivers(api, engine):
    """Held or refused by the engine, never ignored."""
    reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, resourceLimits={"disk": "64Mi"})
    if reply.status == 202:
        filled = api.run(reply.json["id"], "dd if=/dev/zero of=/file bs=1M count=80; echo $?").stdout
        assert filled.strip() != "0", "more was written than the limit"
        return
    found = assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")
    assert "resourceLimits.disk" in found["message"] and "storage driver" in found["message"], found
    assert not ours(engine) and not handles(api.service)


def test_an_engine_that_can_limit_the_disk(bin_dir):
    """On btrfs, which has quotas wherever it is; overlay2 needs those of xfs."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs here; install btrfs-progs to run this")
    require_docker()
    engine = Dockerd("--storage-driver", "btrfs")
    service = None
    try:
        disk, data = engine.directory / "disk", engine.directory / "data"
        with open(disk, "wb") as file:
            file.truncate(1 << 30)
        subprocess.run(["mkfs.btrfs", "-q", disk], check=True)
        data.mkdir()
        mounted = subprocess.run([*engine.inside(), "mount", "-o", "loop", disk, data], capture_output=True, check=False)
        if mounted.returncode != 0:
            pytest.skip(f"this kernel does not mount btrfs: {mounted.stderr.decode().strip()}")
        service = service_on(bin_dir, engine.start().import_images())
        api = Api(service.start())
        sandbox = create(api, resourceLimits={"disk": "64Mi"})
        done = api.run(sandbox, "dd if=/dev/zero of=/file bs=1M count=32 && dd if=/dev/zero of=/more bs=1M count=64 conv=fsync; echo $?")
        assert "quota" in done.stderr and done.stdout.strip() == "1", done
        assert api.run(create(api), "dd if=/dev/zero of=/file bs=1M count=96 conv=fsync; echo $?").stdout.strip() == "0", "without one there is none"
    finally:
        if service:
            service.destroy()
        engine.destroy()


@pytest.fixture
def place():
    made = Path(tempfile.mkdtemp(prefix="osb-given-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


def test_what_the_operator_gives_to_all(bin_dir, engine, place):
    """A profile that only root can read, variables that a request may change, a mount."""
    profile = place / "profile.json"
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["symlink", "symlinkat"], "action": "SCMP_ACT_ERRNO"}]}))
    profile.chmod(0o600)
    place.chmod(0o755)
    (place / "data").mkdir()
    (place / "data/file").write_text("given\n")
    given = {"seccomp_profile": str(profile), "sandbox_binds": [f"{place}/data:/given:ro"]}
    service = service_on(bin_dir, engine, docker=given, sections={"docker.sandbox_env": {"TZ": "Asia/Tokyo", "KIND": "all"}})
    try:
        api = Api(service.start())
        sandbox = create(api, env={"KIND": "own"})
        assert api.run(sandbox, "echo $TZ $KIND; cat /given/file").stdout.split() == ["Asia/Tokyo", "own", "given"]
        assert "Read-only" in api.run(sandbox, "touch /given/x").stderr
        assert "not permitted" in api.run(sandbox, "ln -s /a /tmp/b").stderr, "the profile of the file"
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        service.destroy()


def test_without_a_profile(bin_dir, engine):
    service = service_on(bin_dir, engine, docker={"seccomp_profile": "unconfined"})
    try:
        api = Api(service.start())
        assert "every call to the host's kernel" in service.log_tail()
        sandbox = create(api)
        words = engine.inspect(f"sandbox-{sandbox}")["HostConfig"]["SecurityOpt"]  # Podman leaves "=true" out
        assert [word.removesuffix("=true") for word in words] == ["no-new-privileges", "seccomp=unconfined"]
        assert api.run(sandbox, "grep Seccomp: /proc/self/status").stdout.split()[-1] == "0"
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
    finally:
        service.destroy()


@pytest.mark.parametrize("text", [None, "no JSON", "[]", "{}"])
def test_a_profile_that_is_none(bin_dir, engine, place, text):
    if text is not None:
        (place / "profile.json").write_text(text)
    service = service_on(bin_dir, engine, docker={"seccomp_profile": str(place / "profile.json")})
    try:
        service.spawn()
        wait_for(lambda: "docker.seccomp_profile" in service.log_tail(), 10, "the log has the reason")
    finally:
        service.destroy()


# osb doctor


def doctor(bin_dir, config, **environment):
    done = subprocess.run([bin_dir / "osb", "doctor", "--config", config], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "OPEN_SANDBOX_DOMAIN": "127.0.0.1:1", **environment})
    (line,) = [line for line in done.stdout.splitlines() if line[9:].startswith("Docker engine ")]
    return line, done


def test_doctor_looks_at_the_engine_that_is_configured(bin_dir, engine, place):
    config = place / "config.toml"
    config.write_text(f'[runtime]\ntype = "docker"\n[docker]\nsocket = "{engine.socket}"\n')
    line, done = doctor(bin_dir, config)
    assert line.startswith("ok ") and str(engine.socket) in line and "Docker " in line, line
    assert "resourceLimits.io-read" in done.stdout and "by the device" in done.stdout, "what containers can have"
    config.write_text('[runtime]\ntype = "docker"\n')
    line, _ = doctor(bin_dir, config, DOCKER_HOST=f"unix://{engine.socket}")
    assert line.startswith("ok ") and str(engine.socket) in line, line


def test_doctor_says_what_is_wrong_with_it(bin_dir, engine, place):
    config = place / "config.toml"
    config.write_text(f'[runtime]\ntype = "docker"\n[docker]\nsocket = "{place}/none.sock"\n')
    line, done = doctor(bin_dir, config)
    assert line.startswith("MISSING") and f"{place}/none.sock" in line and "; fix: apt-get install docker.io" in line, line
    assert done.returncode == 1 and "Docker engine missing" in done.stdout
    config.write_text(f'[runtime]\ntype = "native"\n[docker]\nsocket = "{place}/none.sock"\n')
    line, done = doctor(bin_dir, config)
    assert line.startswith("no ") and done.returncode == 0, "the native runtime needs none"
    config.write_text('[runtime]\ntype = "docker"\n[docker]\nhost = "tcp://127.0.0.1:9"\n')
    line, _ = doctor(bin_dir, config)
    assert line.startswith("MISSING") and "tcp://127.0.0.1:9" in line and "An engine at an address" in line, line
    config.write_text('[docker]\nhost = "ftp://x"\n')
    line, _ = doctor(bin_dir, config)
    assert "docker.host" in line and "correct that line" in line, line
