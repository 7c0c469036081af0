"""`osb images ls | rm | inspect`: through the server that the other commands ask; a store of this host only when it is named."""

import json
import os
import subprocess

import pytest
from lib import images as make
from lib.api import Api, assert_envelope
from lib.plugin import shared_service


@pytest.fixture(scope="module")
def service(bin_dir, request):
    return shared_service(request, bin_dir, aliases={"called:*": "first"})


@pytest.fixture(scope="module")
def api(service):
    return Api(service)


@pytest.fixture(scope="module")
def osb(service, bin_dir, tmp_path_factory):
    """As somebody who has set the variable and nothing else."""
    home = tmp_path_factory.mktemp("home")

    def run(*words, **environment):
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "OPEN_SANDBOX_DOMAIN": "%s:%d" % service.address, **environment}
        return subprocess.run([bin_dir / "osb", *words], env=env, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def images(service, tmp_path):
    """Two images, the first with two names. Whatever is left of them goes."""
    store = service.images()
    for name, extra in (("first", "1"), ("second", "2")):
        path = tmp_path / f"{name}.tar"
        path.write_bytes(make.root_tar(lambda tar, text=extra: make.add(tar, "which", text)))
        store.import_(path, "--name", name, *(["--name", "team/first:1"] if name == "first" else []))
    yield store
    for name in set(store.names()) & {"first", "team/first:1", "second"}:
        assert store.run("rm", name).returncode == 0


def id_of(images, name):
    return next(one["id"] for one in images.list() if name in one["names"])


def test_ls_asks_the_server_of_the_variable(osb, images):
    done = osb("images", "ls")
    assert done.returncode == 0 and done.stderr == "", done
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["NAME", "ID", "LAYERS", "SIZE", "AGE"] and rows[1][:3] == ["host", "(the", "server's"]
    assert {row[0] for row in rows[2:]} == {"first", "team/first:1", "second"}
    records = json.loads(osb("images", "ls", "--json").stdout)
    assert {one["id"]: one["names"] for one in records} == {one["id"]: one["names"] for one in images.list()}


def test_a_server_that_is_away_is_no_empty_table(osb, images):
    for words in (("ls",), ("rm", "first")):
        done = osb("images", *words, OPEN_SANDBOX_DOMAIN="127.0.0.1:1")
        assert done.returncode == 1 and done.stdout == "" and "127.0.0.1:1" in done.stderr, done
    assert "first" in images.names()


def test_a_context_names_the_server(service, osb, images):
    address = "%s:%d" % service.address
    assert osb("context", "add", "mine", address).returncode == 0
    done = osb("--context", "mine", "images", "ls", OPEN_SANDBOX_DOMAIN="127.0.0.1:1")
    assert done.returncode == 0 and "team/first:1" in done.stdout, done


def test_rm_by_name_and_by_id(osb, images, api):
    identity = id_of(images, "first")
    done = osb("images", "rm", "first")
    assert (done.returncode, done.stdout, done.stderr) == (0, "first\n", ""), done
    assert images.names() == ["second", "team/first:1"], "the other name is there"
    second = id_of(images, "second")
    done = osb("images", "rm", identity[:12], second)
    assert (done.returncode, done.stdout) == (0, f"{identity[:12]}\n{second}\n"), done
    assert images.names() == []
    for gone in (identity[:12], "second", second[:7]):
        done = osb("images", "rm", gone)
        assert done.returncode == 1 and "IMAGE::NOT_FOUND" in done.stderr and "remedy: osb images ls" in done.stderr, done
    assert_envelope(api.call("DELETE", "/images?name=" + identity), 404, "IMAGE::NOT_FOUND")


def test_an_id_takes_all_names_and_not_what_is_in_use(osb, images, api):
    identity = id_of(images, "first")
    sandbox = api.create(image={"uri": "first"}, entrypoint=["sleep", "600"])["id"]
    try:
        refused = osb("images", "rm", identity[:12])
        assert refused.returncode == 1 and "IMAGE::IN_USE" in refused.stderr and sandbox in refused.stderr, refused
        assert "first" in images.names() and "team/first:1" in images.names(), "all of it or nothing"
        assert osb("images", "rm", "--force", identity[:12]).returncode == 0
        assert images.names() == ["second"]
        assert api.run(sandbox, "cat /which").stdout == "1"
    finally:
        api.delete(sandbox)


def test_a_store_of_this_host_when_it_is_named(service, osb, images):
    """Whatever the variable says."""
    identity = id_of(images, "first")
    for place in (("--state-dir", service.state_dir), ("--config", service.config_path)):
        done = osb("images", "ls", *map(str, place), OPEN_SANDBOX_DOMAIN="127.0.0.1:1")
        assert done.returncode == 0 and "team/first:1" in done.stdout and str(service.state_dir) in done.stderr, done
    place = ("--config", str(service.config_path))
    assert osb("images", "rm", identity[:12], *place, OPEN_SANDBOX_DOMAIN="127.0.0.1:1").returncode == 0
    assert images.names() == ["second"]
    both = osb("images", "ls", "--server", "127.0.0.1:1", *place)
    assert both.returncode == 2 and "give one of them" in both.stderr, both


@pytest.mark.parametrize("asked", ["first", "first:latest", "docker.io/first", "docker.io/library/first:latest", "called:1", "team/first:1", "docker.io/team/first:1"])
def test_inspect_finds_what_a_create_would_take(osb, images, api, asked):
    identity = id_of(images, "first")
    done = osb("images", "inspect", asked)
    assert done.returncode == 0 and json.loads(done.stdout)["id"] == identity, done
    sandbox = api.create(image={"uri": asked}, entrypoint=["sleep", "600"])["id"]
    assert api.run(sandbox, "cat /which").stdout == "1"
    api.delete(sandbox)


def test_inspect_by_id_and_what_is_not_stored(osb, images):
    identity = id_of(images, "first")
    assert json.loads(osb("images", "inspect", identity[:8]).stdout)["names"] == ["first", "team/first:1"]
    host = json.loads(osb("images", "inspect", "host").stdout)
    assert host["names"] == ["host"] and host["directory"] is True and host["platform"] == f"linux/{make.MACHINE}", host
    for unknown in ("third", identity[:7], "first:2"):
        done = osb("images", "inspect", unknown)
        assert done.returncode == 1 and f"osb images pull {unknown}" in done.stderr, done
