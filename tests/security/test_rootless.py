"""The probes inside a sandbox of a service that an ordinary user started: it has fewer layers, and they hold too."""

import contextlib
import os
import shutil

import pytest
from lib.api import Api
from lib.rootless import RootlessService, require_user_namespaces

import host
import probes
from test_probes import targets

# Without control groups there is none to look for, and a service without root keeps its user's id outside (the tier says so).
NOT_OF_THIS_TIER = {}


@pytest.fixture(scope="module", params=["one id", "mapped ids"])
def rootless(bin_dir, request):
    require_user_namespaces()
    mapped = request.param == "mapped ids"
    if mapped and not shutil.which("newuidmap"):
        pytest.skip("newuidmap is not installed (Debian: uidmap)")
    service = RootlessService(bin_dir, subordinate_ids=mapped)
    try:
        service.start()
        yield service
    finally:
        service.destroy()


@pytest.fixture(scope="module")
def user_armed(rootless, probe_path):
    api = Api(rootless)
    made = api.create()["id"]
    yield probes.Armed(api, made, probe_path)
    api.delete(made)


@pytest.mark.parametrize("name", probes.names())
def test_refused(name, rootless, user_armed):
    with targets(name, rootless, user_armed) as arguments:
        user_armed.run(name, *arguments).assert_refused()
