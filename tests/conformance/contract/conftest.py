"""The lifecycle contract row by row, over raw HTTP, against a service without a key and one with a key."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# backend.py, which runs inside a sandbox, lives with the tests of the proxy.
BACKEND = HERE.parents[1] / "functional" / "backend.py"
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

import pytest  # noqa: E402
from lib.api import Api  # noqa: E402
from lib.plugin import *  # noqa: E402,F401,F403
from lib.waiting import wait_for  # noqa: E402


@pytest.fixture(scope="session")
def keyed(keyed_service):
    return Api(keyed_service)


@pytest.fixture(scope="session")
def renewing(bin_dir, request):
    """A service on which the use of a port renews a sandbox."""
    return Api(shared_service(request, bin_dir, renew={"enabled": True, "min_interval_seconds": 1}))  # noqa: F405


def listen_inside(api, sandbox, port):
    """Starts the backend on a port of a sandbox; gives the path of the proxy to it."""
    api.upload(sandbox, "/tmp/backend.py", BACKEND.read_bytes())
    assert api.run(sandbox, f"/usr/bin/python3 /tmp/backend.py {port} > /tmp/backend.log 2>&1 &").exit_code == 0
    path = f"/sandboxes/{sandbox}/proxy/{port}"
    wait_for(lambda: api.call("GET", path + "/up").status == 200, 10, "the backend answers")
    return path


@pytest.fixture(scope="session")
def behind(api):
    """The path of the proxy to a program that tells what arrived, without a mount prefix."""
    made = api.create(timeout=3600)
    yield listen_inside(api, made["id"], 8232)
    api.delete(made["id"])
