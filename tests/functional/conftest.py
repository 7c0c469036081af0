import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lib.plugin import *  # noqa: E402,F401,F403
from lib.registries import DebianRegistry  # noqa: E402


@pytest.fixture(scope="module")
def debian(request):
    registry = DebianRegistry()
    request.addfinalizer(registry.close)
    return registry
