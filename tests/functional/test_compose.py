"""The compose files with the image that our packaging writes, in an engine of the test's own. Skipped without Docker or the static executable."""

import json
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import pytest
from lib import compose
from lib.dockerd import Dockerd, require_docker
from lib.plugin import REPOSITORY
from lib.waiting import wait_for

FILES = REPOSITORY / "packaging" / "compose"
SERVER = "opensandbox-server"
KEY = "a-key-of-the-test"

PROGRAM = """
    import sys
    from datetime import timedelta

    import opensandbox
    from opensandbox.config import ConnectionConfigSync

    config = ConnectionConfigSync(domain=f"127.0.0.1:{sys.argv[1]}", api_key=sys.argv[2])
    with opensandbox.SandboxSync.create("small", connection_config=config, timeout=timedelta(minutes=5), entrypoint=["sleep", "1000"]) as sandbox:
        print(sandbox.commands.run("echo 'Hello OpenSandbox!'").logs.stdout[0].text)
        sandbox.files.write_file("/tmp/hello.txt", "Hello World")
        print("Content:", sandbox.files.read_file("/tmp/hello.txt"))
        sandbox.kill()
"""


@pytest.fixture(scope="module")
def engine(bin_dir, tmp_path_factory):
    require_docker()
    if not (bin_dir / "osb-static").exists():
        pytest.skip(f"no osb-static in {bin_dir}: cmake --build build/release --target osb-static")
    made = Dockerd()
    try:
        made.start().import_images()
        out = tmp_path_factory.mktemp("dist")
        subprocess.run([REPOSITORY / "scripts/package", "--bin", bin_dir, "--out", out, "image"], check=True, capture_output=True)
        (archive,) = out.glob("*-image-*.tar")
        subprocess.run(
            ["skopeo", "copy", "--insecure-policy", f"oci-archive:{archive}", f"docker-archive:{out}/load.tar:opensandbox/server:latest"],
            check=True, capture_output=True,
        )  # fmt: skip
        made.docker("load", "-i", out / "load.tar")
        yield made
    finally:
        made.destroy()


def log(engine):
    done = engine.docker("logs", "--tail", "30", SERVER, check=False)
    return (done.stdout + done.stderr).decode(errors="replace")


def inside(engine, *words, **options):
    """In the engine's network, where its ports are published."""
    return subprocess.run(["nsenter", "-t", str(engine.holder.pid), "-n", *map(str, words)], capture_output=True, text=True, timeout=120, check=False, **options)


def answers(engine, port):
    done = inside(engine, "curl", "-s", "-m", "5", f"http://127.0.0.1:{port}/health")
    assert '"healthy"' in done.stdout, done.stdout + log(engine)
    return True


@pytest.mark.parametrize("file, port", [("docker-compose.yaml", 8080), ("docker-compose.8194.yaml", 8194)])
def test_the_first_program(engine, file, port, tmp_path):
    pytest.importorskip("opensandbox")
    engine.docker(*compose.run_words(FILES / file, {"OPENSANDBOX_SERVER_API_KEY": KEY}))
    try:
        wait_for(lambda: answers(engine, port), 30, "the server in its container answers", interval=0.2)
        refused = inside(engine, "curl", "-s", "-m", "5", f"http://127.0.0.1:{port}/v1/sandboxes").stdout
        assert "MISSING_API_KEY" in refused, refused
        # An image without a registry, as somebody without one brings it.
        engine.docker("save", "-o", tmp_path / "small.tar", "small:1")
        engine.docker("cp", tmp_path / "small.tar", f"{SERVER}:/tmp/small.tar")
        imported = engine.docker("exec", SERVER, "/usr/bin/osb", "images", "import", "/tmp/small.tar", "--name", "small", check=False)
        assert imported.returncode == 0, imported
        done = inside(engine, sys.executable, "-c", textwrap.dedent(PROGRAM), port, KEY)
        assert done.stdout.splitlines() == ["Hello OpenSandbox!", "Content: Hello World"], done.stderr + log(engine)
    finally:
        engine.docker("rm", "-f", "-v", SERVER, check=False)
        engine.docker("volume", "rm", "-f", "opensandbox-state", check=False)


# Before a host has either of them: where the file looks for the engine's socket and keeps its state.
PLACES = """
mount -t tmpfs tmpfs /run && touch /run/docker.sock && mount --bind "$0" /run/docker.sock
mount -t tmpfs tmpfs /var/lib && mkdir -m 755 /var/lib/opensandbox
"""


@pytest.fixture(scope="module")
def places(engine):
    engine.run_inside("sh", "-ec", PLACES, str(engine.socket))


def create(engine, port, **fields):
    body = json.dumps({"image": {"uri": "small:1"}, "entrypoint": ["sleep", "1000"], "resourceLimits": {}, "timeout": 60, **fields})
    head = ("-H", f"OPEN-SANDBOX-API-KEY: {KEY}", "-H", "Content-Type: application/json")
    return inside(engine, "curl", "-s", "-m", "30", *head, "-d", body, f"http://127.0.0.1:{port}/v1/sandboxes").stdout


@contextmanager
def up(engine, file, port):
    """The server of a compose file; its sandboxes are containers beside its own."""
    engine.docker(*compose.run_words(FILES / file, {"OPENSANDBOX_SERVER_API_KEY": KEY}))
    try:
        wait_for(lambda: answers(engine, port), 30, "the server in its container answers", interval=0.2)
        yield
    finally:
        engine.docker("rm", "-f", "-v", *engine.containers(), check=False)
        engine.docker("volume", "rm", "-f", *engine.volumes(), check=False)


def run_program(engine, port):
    done = inside(engine, sys.executable, "-c", textwrap.dedent(PROGRAM).replace('"small"', '"small:1"'), port, KEY)
    assert done.stdout.splitlines() == ["Hello OpenSandbox!", "Content: Hello World"], done.stderr + log(engine)


@pytest.mark.parametrize("file, port", [("docker-compose.docker.yaml", 8080), ("docker-compose.docker.8194.yaml", 8194)])
def test_with_the_docker_runtime(engine, places, file, port):
    pytest.importorskip("opensandbox")
    with up(engine, file, port):
        run_program(engine, port)
        made = create(engine, port, networkPolicy={"defaultAction": "deny"})
        assert '"Running"' in made, made + log(engine)
        (name,) = [name for name in engine.containers() if name.startswith("sandbox-")]
        assert engine.inspect(name)["HostConfig"]["NetworkMode"] == "none", "the policy is the service's affair"


def test_with_the_engines_socket_alone(engine, places):
    """No right, and no file that the engine sees: as other servers' compose files have it."""
    pytest.importorskip("opensandbox")
    with up(engine, "docker-compose.socket.yaml", 8080):
        assert not engine.inspect(SERVER)["HostConfig"]["CapAdd"]
        run_program(engine, 8080)
        assert log(engine).count("does not see the files of this service") == 1, log(engine)
        for wish, word in (({"networkPolicy": {"defaultAction": "deny"}}, "egress.image"), ({"extensions": {"opensandbox.extensions.runtime": "native"}}, "it has: docker")):
            refused = create(engine, 8080, **wish)
            assert word in refused and '"Running"' not in refused, refused
        # The server is killed, as an engine does it, and finds its sandbox again.
        made = json.loads(create(engine, 8080))
        engine.docker("kill", SERVER)
        engine.docker("start", SERVER)
        wait_for(lambda: answers(engine, 8080), 30, "it answers again", interval=0.2)
        path = f"http://127.0.0.1:8080/v1/sandboxes/{made['id']}/proxy/44772/command"
        ran = inside(engine, "curl", "-s", "-m", "30", "-H", f"OPEN-SANDBOX-API-KEY: {KEY}", "-H", "Content-Type: application/json", "-d", '{"command": "echo still here"}', path)
        assert "still here" in ran.stdout, ran.stdout + log(engine)


@pytest.mark.parametrize("names", [("docker-compose.yaml", "docker-compose.8194.yaml"), ("docker-compose.docker.yaml", "docker-compose.docker.8194.yaml")])
def test_two_files_differ_in_the_port_alone(names):
    one, other = ((FILES / name).read_text() for name in names)
    different = [pair for pair in zip(one.splitlines(), other.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(different) <= 4 and all("8194" in pair[1] or "instead" in pair[0] for pair in different), different
