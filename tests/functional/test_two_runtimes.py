"""Two runtimes in one server: the native one, and one whose engine is a file, which a test can take away.

The executable is the real one with a further runtime compiled in (src/main/osb_testkit.cc). Its sandboxes are rows of that
file and run nothing; faults are written beside it.
"""

import json

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.service import Service
from lib.waiting import wait_for

EXTENSION = "opensandbox.extensions.runtime"


class Engine:
    def __init__(self, service):
        self.path = service.state_dir / "db" / "memory-engine.json"

    def faults(self, **faults):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(faults))
        new.chmod(0o644)
        new.rename(f"{self.path}.faults")

    def sandboxes(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}


class TwoRuntimes(Service):
    """Health answers 200 also without the second runtime: the service is degraded."""


def run_service(bin_dir):
    if not (bin_dir / "testkit" / "opensandbox-server").exists():
        pytest.skip("the build has no testkit executable (OSB_TESTS)")
    made = TwoRuntimes(bin_dir / "testkit")
    try:
        yield made.start()
    finally:
        made.destroy()


@pytest.fixture
def service(bin_dir):
    yield from run_service(bin_dir)


def create(api, runtime=None, **fields):
    if runtime:
        fields["extensions"] = {EXTENSION: runtime}
    reply = api.call("POST", "/sandboxes", json={"image": {"uri": "host"}, "entrypoint": ["sleep", "1000"], "resourceLimits": {}, **fields})
    assert reply.status == 202, reply
    if runtime != "memory":
        api.service.scope.remember(reply.json["id"])
    return reply.json["id"]


def health(service):
    return rawhttp.request(service.address, "GET", "/health", timeout=10)


@pytest.mark.parametrize("runtime", ["native", "memory"])
def test_the_whole_lifecycle(service, runtime):
    api = Api(service)
    name = create(api, runtime, metadata={"a": "1"}, timeout=600)
    made = api.get(name)
    assert made["status"]["state"] == "Running" and made["extensions"] == {EXTENSION: runtime}
    text = api.call("GET", f"/sandboxes/{name}/diagnostics/inspect").body.decode()
    assert f"runtime       {runtime}\n" in text and ("  refused     volumes: " in text) == (runtime == "memory")
    assert api.call("GET", f"/sandboxes/{name}/diagnostics/logs?scope=all").status == 200
    assert api.endpoint(name).endswith(f"/sandboxes/{name}/proxy/44772")
    assert api.call("GET", f"/sandboxes/{name}/proxy/44772/ping").status == 200
    assert api.call("POST", f"/sandboxes/{name}/pause").status == 202
    assert api.status(name)["state"] == "Paused"
    service.kill_server()
    assert api.status(name)["state"] == "Paused", "adopted as it is"
    assert api.call("POST", f"/sandboxes/{name}/resume").status == 202
    assert api.call("PATCH", f"/sandboxes/{name}/metadata", json={"b": "2"}).status == 200
    assert api.get(name)["metadata"] == {"a": "1", "b": "2"}
    api.renew(name, 1)
    wait_for(lambda: api.call("GET", f"/sandboxes/{name}").status == 404, 20, "it expires")
    assert name not in Engine(service).sandboxes()


def test_each_request_chooses(service):
    api, engine = Api(service), Engine(service)
    standard, native, memory = create(api), create(api, "native"), create(api, "memory")
    assert set(engine.sandboxes()) == {memory}
    assert health(service).json["runtimes"] == ["native", "memory"]
    reply = api.call("POST", "/sandboxes", json={
        "image": {"uri": "host"}, "entrypoint": ["sleep", "1"], "resourceLimits": {}, "extensions": {EXTENSION: "docker"}})  # fmt: skip
    assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")
    assert "it has: native, memory" in reply.json["message"]
    assert api.run(native, "echo it lives").stdout == "it lives"
    service.restart()
    for name in (standard, native, memory):
        assert api.status(name)["state"] == "Running"
        assert api.delete(name).status == 204
    assert engine.sandboxes() == {}


def test_an_engine_that_is_away_at_the_start_loses_nothing(service):
    api, engine = Api(service), Engine(service)
    near, far, paused, unwanted = create(api), create(api, "memory"), create(api, "memory"), create(api, "memory")
    assert api.call("POST", f"/sandboxes/{paused}/pause").status == 202
    service.stop()
    engine.faults(away=True)
    service.start()

    answer = health(service)
    assert answer.status == 200 and answer.json["status"] == "degraded", answer
    assert [check["cause"] for check in answer.json["checks"]] == ["runtime memory: the engine is away"]
    assert api.status(far)["state"] == "Running" and api.status(paused)["state"] == "Paused", "not LOST"
    assert api.run(near, "echo it lives").stdout == "it lives", "the other runtime works"
    reply = api.call("GET", f"/sandboxes/{far}/proxy/44772/ping")
    assert_envelope(reply, 503, "SANDBOX::OVERLOADED")
    assert reply.header("retry-after")
    assert api.call("POST", f"/sandboxes/{far}/pause").status == 503
    reply = api.call("POST", "/sandboxes", json={
        "image": {"uri": "host"}, "entrypoint": ["sleep", "1"], "resourceLimits": {}, "extensions": {EXTENSION: "memory"}})  # fmt: skip
    assert_envelope(reply, 503, "SANDBOX::OVERLOADED")
    assert api.delete(unwanted).status == 503
    service.kill_server()
    assert api.status(far)["state"] == "Running", "however often"

    engine.faults()
    wait_for(lambda: api.call("GET", f"/sandboxes/{far}/proxy/44772/ping").status == 200, 20, "it comes back by itself")
    assert api.status(paused)["state"] == "Paused"
    wait_for(lambda: api.call("GET", f"/sandboxes/{unwanted}").status == 404, 40, "the delete is finished")
    wait_for(lambda: health(service).json["status"] == "healthy", 10, "health says so")
    assert set(engine.sandboxes()) == {far, paused}
    for name in (near, far, paused):
        assert api.delete(name).status == 204


def test_an_engine_that_goes_away_and_forgets(service):
    api, engine = Api(service), Engine(service)
    kept, forgotten = create(api, "memory"), create(api, "memory")
    engine.faults(away=True)
    wait_for(lambda: api.call("GET", f"/sandboxes/{kept}/proxy/44772/ping").status == 503, 10, "it cannot be reached")
    assert api.status(kept)["state"] == "Running"
    engine.faults(forget=forgotten)
    wait_for(lambda: api.call("GET", f"/sandboxes/{kept}/proxy/44772/ping").status == 200, 20, "it comes back by itself")
    wait_for(lambda: api.status(forgotten)["reason"] == "LOST", 20, "what is really gone has an end")
    for name in (kept, forgotten):
        assert api.delete(name).status == 204


def test_a_slow_engine_keeps_nobody_waiting(service):
    api, engine = Api(service), Engine(service)
    near, far = create(api), create(api, "memory")
    service.stop()
    engine.faults(slow_ms=60000)
    service.start()
    assert api.run(near, "echo it lives").stdout == "it lives"
    assert api.status(far)["state"] == "Running"
    for name in (near,):
        assert api.delete(name).status == 204


def test_the_ordinary_executable_has_one_runtime(new_service):
    service = new_service()
    assert "runtimes" not in health(service).json
    reply = Api(service).call("POST", "/sandboxes", json={
        "image": {"uri": "host"}, "entrypoint": ["sleep", "1"], "resourceLimits": {}, "extensions": {EXTENSION: "memory"}})  # fmt: skip
    assert_envelope(reply, 400, "SANDBOX::INVALID_PARAMETER")
