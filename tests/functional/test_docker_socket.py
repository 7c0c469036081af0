"""An engine whose socket is root's alone, as dockerd makes it where no group is named docker, and Podman everywhere: the server, who is not root, is connected by the launcher."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest
from lib.api import Api
from lib.docker_engine import GROUP
from lib.dockerd import IMAGE, SLEEPER, create, nothing_left, service_on
from lib.waiting import wait_for


@contextmanager
def roots_alone(engine):
    os.chown(engine.socket, 0, 0)
    engine.socket.chmod(0o660)
    try:
        yield
    finally:
        os.chown(engine.socket, 0, GROUP)


@pytest.fixture
def service(bin_dir, engine):
    made = service_on(bin_dir, engine)
    try:
        yield made
    finally:
        made.destroy()


def groups_of(pid):
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("Groups:")]
    return line.split()[1:]


def test_a_socket_of_roots_group(service, engine):
    with roots_alone(engine):
        api = Api(service.start())
        assert groups_of(service.server_pid()) == [], "root's group is not given away"
        with nothing_left(api, engine):
            sandbox = create(api)
            assert api.run(sandbox, "echo on").stdout == "on"
            service.kill_server()
            assert api.run(sandbox, "echo again").stdout == "again"
            assert api.run(create(api), "echo new").stdout == "new"


def test_a_socket_that_comes_later(service, engine):
    """The group is read at the start; whose socket it is by then does not count."""
    away = engine.socket.with_suffix(".away")
    engine.socket.rename(away)
    try:
        service.spawn()
        api = Api(service)
        refused = wait_for(lambda: refused_create(api), 30, "the server answers while the engine is away")
        assert refused.status == 503 and "No such file" in refused.json["message"], refused
    finally:
        away.rename(engine.socket)
    with roots_alone(engine):
        wait_for(service.is_healthy, 30, "the service is healthy")
        with nothing_left(api, engine):
            assert api.run(create(api), "echo on").stdout == "on"


def refused_create(api):
    try:
        return api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
    except OSError:
        return None


def test_a_group_that_changes(service, engine):
    api = Api(service.start())
    with nothing_left(api, engine):
        create(api)
        with roots_alone(engine):
            service.kill_server()  # which has connections of before
            assert api.run(create(api), "echo on").stdout == "on"


def test_doctor_has_nothing_to_say(bin_dir, engine, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(f'[runtime]\ntype = "docker"\n[docker]\nsocket = "{engine.socket}"\n')
    with roots_alone(engine):
        done = subprocess.run([bin_dir / "osb", "doctor", "--config", config], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "OPEN_SANDBOX_DOMAIN": "127.0.0.1:1"})
    (line,) = [line for line in done.stdout.splitlines() if line[9:].startswith("Docker engine ")]
    assert line.startswith("ok ") and str(engine.socket) in line, line
