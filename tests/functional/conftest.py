import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.plugin import *  # noqa: E402,F401,F403
from lib import dockerd  # noqa: E402
from lib.registries import DebianRegistry  # noqa: E402


@pytest.fixture(scope="module")
def debian(request):
    registry = DebianRegistry()
    request.addfinalizer(registry.close)
    return registry


@pytest.fixture(scope="session")
def engine():
    """A Docker engine for the tests that leave it as they found it."""
    with dockerd.engine() as made:
        yield made


@pytest.fixture(scope="session")
def docker(bin_dir, engine):
    """A service on it, which shares a directory of the host."""
    shared = Path(tempfile.mkdtemp(prefix="osb-shared-", dir="/var/tmp"))
    shared.chmod(0o755)
    made = dockerd.service_on(bin_dir, engine, sections={"storage": {"allowed_host_paths": [str(shared)]}})
    made.shared = shared
    try:
        yield made.start()
    finally:
        made.destroy()
        shutil.rmtree(shared, ignore_errors=True)
