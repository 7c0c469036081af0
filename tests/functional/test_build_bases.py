"""`osb images build` upon images of registries: whatever the name in FROM is, the base is the one that a sandbox of that name has."""

import os
import subprocess

import pytest
from lib import images as make
from lib.image_processes import osb
from lib.plugin import shared_service
from lib.registries import Made, fake_registry

CONFIG = {"Env": ["PATH=/base/bin:/bin", "WHO=base"], "WorkingDir": "/base"}


@pytest.fixture
def registry():
    with fake_registry() as made:
        yield made


def new_image():
    """One that no other test has."""
    return Made([make.root_tar(lambda tar: make.add(tar, "which", os.urandom(8).hex()))], CONFIG)


def build(service, tmp_path, dockerfile, *words):
    (tmp_path / "Dockerfile").write_text(dockerfile)
    done = osb(service, "images", "build", tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_image(service, image, *command):
    words = [service.bin_dir / "osb", "run", "--server", f"127.0.0.1:{service.address[1]}", image, "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_base(service, tmp_path, name):
    """The variables and the directory of the base are those of the steps, the first time and when it is here."""
    dockerfile = f"FROM {name}\nENV PATH=/x:$PATH\nRUN echo $PATH $WHO > out\n"
    for words in ((), ("--no-cache",)):
        build(service, tmp_path, dockerfile, "-t", "upon:1", *words)
        assert in_image(service, "upon:1", "/bin/cat", "/base/out") == "/x:/base/bin:/bin base\n"
        assert in_image(service, "upon:1", "/bin/sh", "-c", "echo $PATH; pwd").split() == ["/x:/base/bin:/bin", "/base"]


def test_a_name_without_a_tag(bin_dir, request, registry, tmp_path):
    service = shared_service(request, bin_dir, registry={})
    registry.add("team/app", new_image(), tag="latest")
    check_base(service, tmp_path, f"{registry.host}/team/app")


def test_a_short_name(bin_dir, request, registry, tmp_path):
    service = shared_service(request, bin_dir, registry={"default": registry.host}, aliases={"mine:*": "team/app:1"})
    registry.add("team/app", new_image())
    check_base(service, tmp_path, "team/app:1")
    archive = tmp_path / "aliased.tar"
    archive.write_bytes(make.docker_archive([make.root_tar()], CONFIG, tags=("team/app:1",)))
    assert service.images().run("import", archive).returncode == 0
    (tmp_path / ".dockerignore").write_text("*.tar")
    check_base(service, tmp_path, "mine:7")


@pytest.mark.parametrize("name", ["python:3.12", "docker.io/python:3.12", "index.docker.io/library/python:3.12"])
def test_names_of_the_hub(bin_dir, request, registry, tmp_path, name):
    service = shared_service(request, bin_dir, registry={}, mirrors={"docker.io": f"http://{registry.host}"})
    registry.add("library/python", new_image(), tag="3.12")
    check_base(service, tmp_path, name)


@pytest.mark.parametrize("policy", ["if-not-present", "always"])
def test_kept_steps_are_of_the_image_that_the_name_has(bin_dir, request, registry, tmp_path, policy):
    service = shared_service(request, bin_dir, registry={"default": registry.host, "pull_policy": policy})
    first, second = new_image(), new_image()
    registry.add("team/app", first, tag="latest")
    dockerfile = "FROM team/app\nRUN cat /which > /copied\n"

    def copied():
        image, here = in_image(service, "upon:1", "/bin/cat", "/copied"), in_image(service, "upon:1", "/bin/cat", "/which")
        assert image == here
        return image

    build(service, tmp_path, dockerfile, "-t", "upon:1")
    old = copied()
    assert "  cached" in build(service, tmp_path, dockerfile, "-t", "upon:1")
    # The tag moves there: what is here is what steps are made from, until it is pulled.
    registry.add("team/app", second, tag="latest")
    build(service, tmp_path, dockerfile, "-t", "upon:1", "--no-cache")
    assert copied() == old
    assert osb(service, "images", "pull", "team/app").returncode == 0
    assert "  cached" not in build(service, tmp_path, dockerfile, "-t", "upon:1")
    assert copied() != old
