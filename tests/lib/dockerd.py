"""The Docker engine of docker_engine.py as tests use it: fixtures' parts, services on it, and what has to be gone afterwards."""

import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

from .docker_engine import IMAGE, KINDS, PLAIN_USER, Dockerd, environment, make_programs
from .docker_scope import DockerScope
from .images import EngineImages
from .interpreter import image_root
from .service import Service
from .waiting import wait_for

__all__ = ["IMAGE", "KINDS", "PLAIN_USER", "Dockerd", "require_docker", "environment"]

# Of engines that name none (--engine).
CHOSEN = ["own"]


def choose(kind):
    CHOSEN[0] = kind


def skipped(runtime):
    """Tests that an engine cannot pass, by a part of their names, with the reason: of suites that have containers instead of native
    sandboxes (docker_skips), and with Podman (podman_skips)."""
    files = [*["docker_skips"] * (runtime == "docker"), *["podman_skips"] * (CHOSEN[0] == "podman")]
    texts = [(Path(__file__).parent / name).read_text() for name in files]
    lines = [line for text in texts for line in text.splitlines() if line and not line.startswith("#")]
    return {part: why.strip() for part, _, why in (line.partition("  ") for line in lines)}


def require_docker(kind="own"):
    for program in ("busybox", "unshare", "nsenter"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here; install busybox-static and util-linux to run this")
    if why := make_programs():
        pytest.skip(f"no Docker engine: scripts/docker-engine: {why}")
    if kind == "newer" and (why := make_programs("newer")):
        pytest.skip(f"no newer Docker engine: scripts/docker-engine trixie: {why}")
    if kind == "podman" and (why := make_programs("podman")):
        pytest.skip(f"no Podman: scripts/docker-engine podman: {why}")


def new_engine(*options, kind=None):
    """One that does not run yet, of the kind that is asked for or chosen; skips where it cannot be had. Podman takes no options of Docker's."""
    kind = kind or CHOSEN[0]
    require_docker(kind)
    if kind == "podman":
        from .podman import Podman  # noqa: PLC0415  (it is made of what this file is made of)

        if options:
            pytest.skip("Podman has no such options")
        return Podman()
    return Dockerd(*options, kind=kind)


@contextmanager
def engine(*options, kind=None):
    """One that runs and has the images. Where its programs are and it does not start, that is a failure."""
    made = new_engine(*options, kind=kind)
    try:
        yield made.start().import_images()
    finally:
        made.destroy()


SLEEPER = ["sleep", "1000"]


def service_on(bin_dir, engine, docker=None, registry=None, **options):
    """A service whose sandboxes are containers of this engine."""
    sections = {"runtime": {"type": "docker"}, "docker": {"socket": str(engine.socket), **(docker or {})}, **options.pop("sections", {})}
    return Service(bin_dir, sections=sections, registry=registry or {"pull_policy": "never"}, **options)


def ours(engine):
    return [name for name in engine.containers() if name.startswith("sandbox-")]


def handles(service):
    """Directories that the server keeps for containers."""
    return [path for path in (service.state_dir / "db/docker").iterdir() if path.is_dir()]


def create(api, **fields):
    return api.create(**{"image": {"uri": IMAGE}, "entrypoint": SLEEPER, **fields})["id"]


def state(api, sandbox, wanted, timeout=20):
    def reached():
        status = api.status(sandbox)
        assert status["state"] == wanted, status
        return status

    return wait_for(reached, timeout, f"{sandbox} is {wanted}")


@contextmanager
def nothing_left(api, engine):
    """What is made meanwhile is deleted, and then there is no container, file, image, volume or network more than before."""
    before = engine_state(engine)
    yield
    for sandbox in api.list_all():
        assert api.delete(sandbox["id"]).status == 204
    for snapshot in api.call("GET", "/snapshots").json["items"]:
        assert api.call("DELETE", f"/snapshots/{snapshot['id']}").status == 204
    wait_for(lambda: not ours(engine), 20, "no container is left")
    wait_for(lambda: not handles(api.service), 10, "no directory is left")

    def is_as_before():
        now = engine_state(engine)
        assert now == before, f"left: {now - before}, gone: {before - now}"
        return True

    wait_for(is_as_before, 10, "no image, volume or network is left", interval=0.2)


def engine_state(engine):
    return {f"{kind} {name}" for kind in ("images", "volumes", "networks") for name in getattr(engine, kind)()}


@lru_cache
def shared_engine():
    """One for everything in this process; whoever calls this calls close_shared_engine() in the end."""
    made = new_engine()
    try:
        made.start()
        made.import_root("host", image_root(), without=HEAVY)
    except BaseException:
        made.destroy()
        raise
    return made


def close_shared_engine():
    if shared_engine.cache_info().currsize:
        shared_engine().destroy()
        shared_engine.cache_clear()


# Of the code interpreter's root, which stands for the host: languages that only their own tests use.
HEAVY = ("./usr/lib/jvm", "./usr/lib/go*", "./usr/share/go*", "./opt", "./usr/lib/node_modules", "./usr/lib/python3/dist-packages", "./usr/local/lib/node_modules")


class DockerService(Service):
    """The service of any suite, on a Docker engine (tests/run --runtime docker)."""

    create_seconds = 0.8
    most_in_a_row = 20
    limits_disks = False
    bring_image = "docker pull"
    maps_users = False
    follows_links_within = True
    open_network = {"networkPolicy": {"defaultAction": "allow", "egress": []}}
    memory_limit_command = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null"

    def __init__(self, bin_dir, *, images=None, sections=None, **options):
        self.engine = shared_engine()
        for name, root in (images or {}).items():
            self.engine.import_root(name, root)
        # Tests say it as the native runtime has it.
        pids = {key: value for key, value in options.get("native", {}).items() if key == "pids_limit"}
        more = {"runtime": {"type": "docker"}, "docker": {"socket": str(self.engine.socket), **pids}, **(sections or {})}
        super().__init__(bin_dir, sections=more, **options)
        self.scope = DockerScope(self.state_dir, self.engine)

    def images(self):
        return EngineImages(self.bin_dir, self.config_path, self.state_dir, self.engine)

    def show_mount(self, path):
        device = subprocess.run(["findmnt", "-no", "SOURCE", path], capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run([*self.engine.inside(), "mount", device, path], check=True)

    def hide_mount(self, path):
        subprocess.run([*self.engine.inside(), "umount", "-l", path], check=True)


class EngineRegistry:
    """Debian's registry with a password, on loopback of the engine's network: the engine reaches it, and nobody else."""

    auth = {"username": "me", "password": "letmein"}

    def __init__(self, engine, port=5000):
        import crypt  # noqa: PLC0415  (gone in later versions of Python)

        if shutil.which("docker-registry") is None:
            pytest.skip("no docker-registry here; install it to run this")
        self.engine, self.host = engine, f"127.0.0.1:{port}"
        self.directory = Path(tempfile.mkdtemp(prefix="osb-registry-", dir="/var/tmp"))
        hashed = crypt.crypt(self.auth["password"], crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
        (self.directory / "htpasswd").write_text(f"{self.auth['username']}:{hashed}\n")
        (self.directory / "config.yml").write_text(
            f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {self.directory}/data}}}}\n"
            f"http:\n  addr: {self.host}\nauth:\n  htpasswd:\n    realm: test\n    path: {self.directory}/htpasswd\n"
        )
        self.log = self.directory / "access.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*engine.beside(), "docker-registry", "serve", self.directory / "config.yml"], stdout=log, stderr=subprocess.DEVNULL)

    def __enter__(self):
        wait_for(self.login, 20, "the registry answers", interval=0.1)
        return self

    def client(self, *words, check=True, **options):
        return subprocess.run(
            ["docker", "--config", self.directory / "client", "-H", f"unix://{self.engine.socket}", *words],
            capture_output=True, check=check, timeout=60, env=environment(), **options,
        )  # fmt: skip

    def login(self):
        assert self.process.poll() is None, "docker-registry has ended"
        given = self.auth["password"].encode()
        return self.client("login", "-u", self.auth["username"], "--password-stdin", self.host, check=False, input=given).returncode == 0

    def push(self, name, image):
        """What the image is called there; the engine itself does not know that name afterwards."""
        full = f"{self.host}/{name}:1"
        self.engine.docker("tag", image, full)
        self.client("push", full)
        self.engine.docker("rmi", full)
        return full

    def count(self, part):
        return sum(part in line for line in self.log.read_text().splitlines())

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)
        shutil.rmtree(self.directory, ignore_errors=True)
