import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

import uuid  # noqa: E402

import pytest  # noqa: E402
from daemon import InSandbox, Standalone, WithToken  # noqa: E402
from lib.plugin import *  # noqa: E402,F401,F403


@pytest.fixture(scope="session", params=["direct", "token", "server"])
def execd(request, bin_dir):
    """Every test runs against each of these."""
    if request.param == "server":
        made = InSandbox(request.getfixturevalue("keyed_service"))
    else:
        made = {"direct": Standalone, "token": WithToken}[request.param](bin_dir / "execd")
    yield made
    made.stop()


@pytest.fixture
def place(execd):
    """A fresh directory on the daemon's side."""
    path = f"{execd.tmp}/{uuid.uuid4().hex[:12]}"
    execd.empty("POST", "/directories", json={path: {}})
    yield path
    execd.empty("DELETE", f"/directories?path={path}")


@pytest.fixture
def standalone(bin_dir):
    """Daemons of the test's own."""
    made = []

    def make(kind=Standalone):
        made.append(kind(bin_dir / "execd"))
        return made[-1]

    yield make
    for daemon in made:
        daemon.stop()
