"""Images of a server whose sandboxes are containers are the engine's: whoever asks the server for them is told whose they are and what to use."""

import subprocess

import pytest
from lib import snapshots
from lib.api import Api, assert_envelope
from lib.dockerd import create, nothing_left, service_on


@pytest.fixture(scope="module")
def docker(bin_dir, engine):
    service = service_on(bin_dir, engine)
    try:
        yield service.start()
    finally:
        service.destroy()


@pytest.fixture
def api(docker, engine):
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


ROUTES = [("GET", "/images", None), ("DELETE", "/images?name=x", None), ("POST", "/images/prune", None),
          ("POST", "/images/pull", {"image": "x"}), ("POST", "/images/push", {"image": "x", "as": "registry.example/x:1"})]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=lambda value: value if isinstance(value, str) else "")
def test_they_are_the_engines(api, method, path, body):
    said = assert_envelope(api.call(method, path, **({"json": body} if body else {})), 501, "SANDBOX::UNSUPPORTED")["message"]
    assert "docker images" in said and "the engine's own client" in said, said


def test_a_container_becomes_none(api, engine):
    """And nothing is captured for it first, which would make it stand still."""
    sandbox = create(api)
    before = engine.images()
    said = assert_envelope(api.call("POST", "/images/commit", json={"name": "mine", "sandboxId": sandbox}), 400, "SANDBOX::UNSUPPORTED")["message"]
    assert "docker commit" in said and "snapshots" not in said.lower(), said
    assert engine.images() == before
    assert api.call("GET", "/snapshots").json["items"] == []
    snapshot = snapshots.make(api, sandbox)["id"]
    said = assert_envelope(api.call("POST", "/images/commit", json={"name": "mine", "snapshotId": snapshot}), 400, "SANDBOX::UNSUPPORTED")["message"]
    assert "docker commit" in said, said


def test_by_command(docker, bin_dir, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM small:1\nRUN true\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPEN_SANDBOX_DOMAIN": "%s:%d" % docker.address}
    for words in (["pull", "x"], ["build", str(tmp_path), "-t", "x:1"]):
        done = subprocess.run([bin_dir / "osb", "images", *words], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "docker pull" in done.stderr, done


def test_an_operator_who_says_never_means_it(api, engine):
    """What a request says of pulls is no way around it."""
    always = {"opensandbox.extensions.image-pull-policy": "always"}
    for extensions in ({}, always):
        said = assert_envelope(api.post_create(image={"uri": "127.0.0.1:1/x:1"}, extensions=extensions), 400, "IMAGE::NOT_FOUND")["message"]
        assert 'registry.pull_policy is "never"' in said and "docker pull 127.0.0.1:1/x:1" in said, said
