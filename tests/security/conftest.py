import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from lib.plugin import *  # noqa: E402,F401,F403

import pytest  # noqa: E402

import probes  # noqa: E402


@pytest.fixture(scope="session")
def probe_path(bin_dir):
    path = bin_dir / "osb-probe"
    assert path.exists(), f"no osb-probe in {bin_dir}: build it first"
    return path


@pytest.fixture(scope="session")
def armed(api, probe_path):
    """A running sandbox with the probes in it: armed.run(name, *arguments) -> Verdict."""
    sandbox_id = api.create()["id"]
    yield probes.Armed(api, sandbox_id, probe_path)
    api.delete(sandbox_id)
