import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest  # noqa: E402
from lib.plugin import *  # noqa: E402,F401,F403


@pytest.fixture(scope="session")
def service(keyed_service):
    return keyed_service
