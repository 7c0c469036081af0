"""Several runtimes in one server, chosen by request, by image and by section. The Docker ones are skipped where no engine is installed."""

import pytest
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
