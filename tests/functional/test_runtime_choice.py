"""Several runtimes in one server, chosen by request, by image and by section. The Docker ones are skipped where no engine is installed."""

import json
import subprocess

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.dockerd import IMAGE, new_engine
from lib.engine_network import inside_network
from lib.runsc import find
from lib.service import CANNOT_START, Service
from lib.waiting import wait_for

EXTENSION = "opensandbox.extensions.runtime"
SLEEPER = ["sleep", "1000"]


@pytest.fixture(scope="module")
def engine():
    made = new_engine()
    try:
        made.start().import_images()
        yield made
    finally:
        made.destroy()


def service_with(bin_dir, engine, runtime, secure=None):
    sections = {"runtime": runtime, "docker": {"socket": str(engine.socket)}, **({"secure_runtime": secure} if secure else {})}
    return Service(bin_dir, sections=sections, registry={"pull_policy": "never"})


def test_three_runtimes(bin_dir, engine):
    runsc = find()[0]
    also = ["docker", *(["runsc"] if runsc else [])]
    rules = [{"image": "small:*", "runtime": "docker"}, {"image": "*", "runtime": "native"}]
    made = service_with(bin_dir, engine, {"type": "native", "also": also, "rules": rules}, {"runsc": str(runsc)} if runsc else None)
    try:
        api = Api(made.start(timeout=60))
        container = api.create(image={"uri": IMAGE}, entrypoint=SLEEPER)["id"]
        native = api.create(entrypoint=SLEEPER)["id"]
        assert api.get(container)["extensions"] == {EXTENSION: "docker"} and len(engine.containers()) == 1
        assert EXTENSION not in api.get(native).get("extensions", {}), "the standard one is what nobody has to name"
        if runsc:
            guarded = api.create(entrypoint=SLEEPER, extensions={EXTENSION: "runsc"})["id"]
            assert api.run(guarded, "cat /proc/version").stdout != api.run(native, "cat /proc/version").stdout
        made.kill_server()
        for sandbox in [one["id"] for one in api.list_all()]:
            assert wait_for(lambda one=sandbox: api.run(one, "echo here").stdout == "here", 20, "it is served by whose it is")
            assert api.delete(sandbox).status == 204
        wait_for(lambda: not engine.containers(), 20, "no container is left")
        assert_envelope(api.post_create(extensions={EXTENSION: "podman"}), 400)
    finally:
        made.destroy()


def test_by_command(bin_dir, engine, tmp_path):
    """osb run --runtime chooses, osb ls says what was chosen, of all of them."""
    made = service_with(bin_dir, engine, {"type": "native", "also": ["docker"]})
    try:
        api = Api(made.start(timeout=60))
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPEN_SANDBOX_DOMAIN": "%s:%d" % made.address}

        def osb(*words):
            return subprocess.run([bin_dir / "osb", *words], env=env, capture_output=True, text=True, timeout=60)

        def runtimes():
            rows = [line.split() for line in osb("ls").stdout.splitlines()]
            assert rows[0][-1] == "RUNTIME", rows
            return {row[0]: row[-1] for row in rows[1:]}

        assert runtimes() == {}
        plain = osb("run", "-d", "host", "--", "sleep", "1000").stdout.strip()
        assert runtimes() == {plain: "native"}, "the standard one by its name, also when there is no other"
        done = osb("run", "--runtime", "docker", IMAGE, "--", "echo", "there")
        assert (done.returncode, done.stdout) == (0, "there\n"), done
        chosen = osb("run", "-d", "--runtime", "docker", IMAGE, "--", "sleep", "1000").stdout.strip()
        assert len(engine.containers()) == 1 and runtimes() == {plain: "native", chosen: "docker"}
        for words in (("--json",), ("-o", "json")):
            assert {one["id"]: one["runtime"] for one in json.loads(osb("ls", *words).stdout)} == {plain: "native", chosen: "docker"}
        for sandbox, name in ((plain, "native"), (chosen, "docker")):
            assert f"runtime {name}" in " ".join(api.call("GET", f"/sandboxes/{sandbox}/diagnostics/inspect").body.decode().split())
        refused = osb("run", "--runtime", "podman", "host", "--", "true")
        assert refused.returncode == 125 and "native, docker" in refused.stderr, refused
        # Another standard does not change what there is, nor what is said of it.
        text = made.config_path.read_text()
        changed = text.replace('type = "native"', 'type = "docker"').replace('also = ["docker"]', 'also = ["native"]')
        assert changed.count("native") == text.count("native"), text
        made.config_path.write_text(changed)
        made.restart()
        assert wait_for(lambda: runtimes() == {plain: "native", chosen: "docker"}, 20, "they are what they were")
        for sandbox in (plain, chosen):
            assert api.delete(sandbox).status == 204
    finally:
        made.destroy()


def test_a_server_with_one_runtime(service, bin_dir, tmp_path):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPEN_SANDBOX_DOMAIN": "%s:%d" % service.address}
    api = Api(service)
    sandbox = api.create(entrypoint=SLEEPER)["id"]
    standard = rawhttp.request(service.address, "GET", "/health").json["runtime"]

    def rows(*words):
        done = subprocess.run([bin_dir / "osb", "ls", *words], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        return [line.split() for line in done.stdout.splitlines()]

    assert rows()[0] == ["ID", "STATE", "IMAGE", "AGE", "EXPIRES", "IN"]
    assert rows("-o", "wide")[0][-1] == "RUNTIME" and {row[-1] for row in rows("-o", "wide")[1:]} == {standard}
    assert api.delete(sandbox).status == 204


def test_what_the_engine_starts_containers_with(bin_dir, engine):
    """What may be a kernel of its own is reached by the engine's network, so the service is there."""
    made = service_with(bin_dir, engine, {"type": "docker"}, {"type": "kata", "docker_runtime": "runc"})
    with inside_network(engine):
        try:
            api = Api(made.start())
            sandbox = api.create(image={"uri": IMAGE}, entrypoint=SLEEPER)["id"]
            (name,) = engine.containers()
            assert engine.inspect(name)["HostConfig"]["Runtime"] == "runc"
            assert_envelope(api.post_create(extensions={EXTENSION: "native"}), 400)
            assert api.delete(sandbox).status == 204
        finally:
            made.destroy()


def test_a_runtime_that_the_engine_lacks(bin_dir, engine):
    made = service_with(bin_dir, engine, {"type": "docker"}, {"type": "kata", "docker_runtime": "kata-runtime"})
    try:
        assert made.ends() == CANNOT_START
        assert "the engine has no runtime kata-runtime; it has: " in made.log_tail() and "runc" in made.log_tail()
    finally:
        made.destroy()
