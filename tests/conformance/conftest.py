"""Published Python clients against our server: the same tests for every version and flavour that is installed."""

import asyncio
import inspect
import os
import sys
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pytest  # noqa: E402
from lib.plugin import *  # noqa: E402,F401,F403
from lib.recorder import Recorder  # noqa: E402

# Clients may report create times to the server in the background; conformance includes that.
os.environ.pop("OPENSANDBOX_DISABLE_METRICS", None)
for name in ("OPEN_SANDBOX_API_KEY", "OPEN_SANDBOX_DOMAIN"):
    os.environ.pop(name, None)

# Suites of their own, in folders of their own.
collect_ignore = ["contract", "execd", "javascript", "java", "cli"]

SLEEPER = ["tail", "-f", "/dev/null"]


@pytest.fixture(scope="session")
def service(keyed_service):
    """Published clients have to work with a key; test_keys.py shows that they work without one, too."""
    return keyed_service


@pytest.fixture(scope="session")
def keyless_service(bin_dir, request):
    return shared_service(request, bin_dir)  # noqa: F405


class Sdk:
    """One flavour of the installed client. go() makes synchronous and asynchronous calls look alike."""

    def __init__(self, flavour, service, domain=None, key=...):
        from opensandbox import Sandbox, SandboxManager, SandboxManagerSync, SandboxSync
        from opensandbox.config import ConnectionConfig, ConnectionConfigSync

        self.flavour = flavour
        self.version = tuple(int(part) for part in version("opensandbox").split("."))
        self.Sandbox = Sandbox if flavour == "async" else SandboxSync
        self.Manager = SandboxManager if flavour == "async" else SandboxManagerSync
        self.Config = ConnectionConfig if flavour == "async" else ConnectionConfigSync
        self.domain = domain or f"{service.address[0]}:{service.address[1]}"
        self.key = service.api_key or None if key is ... else key
        self.loop = asyncio.new_event_loop()
        self.made = []

    def go(self, value):
        return self.loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def breathe(self):
        """Lets what the client does in the background go on."""
        self.loop.run_until_complete(asyncio.sleep(0.005))

    def config(self, **more):
        return self.Config(domain=self.domain, api_key=self.key, request_timeout=timedelta(seconds=20), **more)

    def create(self, image="host", config=None, **options):
        options.setdefault("entrypoint", SLEEPER)
        options.setdefault("timeout", timedelta(minutes=10))
        sandbox = self.go(self.Sandbox.create(image, connection_config=config or self.config(), **options))
        self.made.append(sandbox)
        return sandbox

    def run(self, sandbox, command, **options):
        return self.go(sandbox.commands.run(command, **options))

    def kill(self, sandbox):
        self.go(sandbox.kill())
        self.forget(sandbox)

    def forget(self, sandbox):
        self.made.remove(sandbox)
        self.go(sandbox.close())

    def finish(self):
        for sandbox in list(self.made):
            try:
                self.go(sandbox.kill())
            except Exception as error:  # noqa: BLE001 - a test may have ended it already
                print(f"kill {sandbox.id}: {error}")
            self.forget(sandbox)
        pending = asyncio.all_tasks(self.loop)
        if pending:
            self.loop.run_until_complete(asyncio.wait(pending, timeout=5))
        self.loop.close()


@pytest.fixture(params=["sync", "async"])
def sdk(request, service):
    made = Sdk(request.param, service)
    yield made
    made.finish()


@pytest.fixture(params=["sync", "async"], scope="module")
def shared(request, service):
    """A client and one sandbox for the tests of a module that do not harm it."""
    made = Sdk(request.param, service)
    made.sandbox = made.create(env={"COLOUR": "blue"})
    yield made
    made.finish()


@pytest.fixture
def needs_route(api):
    """Skips a test whose route the daemon says it does not have (yet)."""

    def check(sandbox, method, path):
        reply = api.execd(sandbox.id, method, path)
        if reply.status == 404 and "no route" in reply.json["message"]:
            pytest.skip(f"the daemon does not serve {method} {path} yet")
        if (method, path) == ("POST", "/session") and reply.status == 200:
            api.execd(sandbox.id, "DELETE", f"/session/{reply.json['session_id']}")

    return check


@pytest.fixture(params=["sync", "async"])
def recorded(request, service):
    """A client whose every request goes through a recorder."""
    with Recorder(service.address) as recorder:
        made = Sdk(request.param, service, recorder.domain)
        made.recorder = recorder
        yield made
        made.finish()


@pytest.fixture(params=["sync", "async"])
def interpreter_sdk(request, interpreter_service):
    made = Sdk(request.param, interpreter_service)
    yield made
    made.finish()
