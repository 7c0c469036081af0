"""Options, fixtures and failure reports of the system test suites. A suite's conftest.py imports everything from here."""

import faulthandler
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import pytest

from . import dockerd, doorway, leaks
from .api import Api
from .interpreter import NAME as INTERPRETER
from .interpreter import image_root
from .rootless import RootlessService, require_user_namespaces
from .service import ALIVE, Service

REPOSITORY = Path(__file__).resolve().parents[2]
OLD = "d4c026d"
KEY = "a-key-for-tests-0123456789"


def pytest_addoption(parser):
    parser.addoption("--bin", default=None, help="directory of the executables under test")
    parser.addoption("--long", action="store_true", help="also run the long variants")
    parser.addoption("--part", default="1/1", help="1/2 and 2/2 are halves of the files, for runs side by side")
    parser.addoption("--runtime", default="native", choices=("native", "docker"), help="what the services of the fixtures run sandboxes on")
    parser.addoption("--engine", default="own", choices=dockerd.KINDS, help="which Docker engine: that of this machine's release, Debian 13's, or Podman")
    parser.addoption("--rootless", action="store_true", help="let an ordinary user start every service; tests of what that lacks fail")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes; runs with --long only")
    dockerd.choose(config.getoption("--engine"))
    if config.getoption("--runtime") == "docker":
        doorway.OPENERS.append(lambda port: doorway.Doorway(dockerd.shared_engine(), port))
    # Whoever ends the run early must not leave services and sandboxes behind.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("ended by SIGTERM", returncode=143))


def pytest_unconfigure():
    dockerd.close_shared_engine()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """No test hangs for ever: set-up, call and tear-down together get a bounded time. And what services log meanwhile is told."""
    limit = 1800 if "long" in item.keywords or item.config.getoption("--long") else 150

    def expired(*_):
        faulthandler.dump_traceback(file=sys.__stderr__)
        raise TimeoutError(f"the test took more than {limit} s")

    item.logs_before = {service: service.log_size() for service in ALIVE}
    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(limit)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_collection_modifyitems(config, items):
    part, parts = map(int, config.getoption("--part").split("/"))
    elsewhere = {item for item in items if crc32(item.path.name.encode()) % parts != part - 1}
    config.hook.pytest_deselected(items=list(elsewhere))
    items[:] = [item for item in items if item not in elsewhere]
    reason = None
    if os.geteuid() != 0:
        reason = "the service under test has to be started as root"
    without = dockerd.skipped(config.getoption("--runtime"))
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif why := next((why for part, why in without.items() if part in item.nodeid), None):
            item.add_marker(pytest.mark.skip(reason=f"not with this engine: {why}"))
        elif "long" in item.keywords and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="a long variant; give --long"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for service in ALIVE:
            if said := service.log_tail(since=item.logs_before.get(service, 0)):
                report.sections.append((f"log of {service.directory.name}, port {service.address[1]}", said))


def newest_bin_dir():
    candidates = [REPOSITORY / "build" / preset / "bin" for preset in ("release", "dev")]
    built = [path for path in candidates if (path / "opensandbox-server").exists()]
    return max(built, key=lambda path: (path / "opensandbox-server").stat().st_mtime, default=None)


@pytest.fixture(scope="session")
def bin_dir(pytestconfig):
    path = pytestconfig.getoption("--bin") or newest_bin_dir()
    if path is None or not (Path(path) / "opensandbox-server").exists():
        pytest.exit(f"no opensandbox-server in {path or 'build/{release,dev}/bin'}: build first, or give --bin", returncode=4)
    return Path(path)


@pytest.fixture(scope="session")
def old_bin(pytestconfig):
    """The executables of the version before sandboxes had handles and services identities; made once with --long."""
    find = [] if pytestconfig.getoption("--long") else ["--find"]
    made = subprocess.run([REPOSITORY / "tests/lib/old_build", *find, OLD], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode == 3:
        pytest.skip(f"{OLD} has not been built: tests/lib/old_build {OLD}, or --long")
    if made.returncode == 4:
        pytest.skip(f"this copy of the repository has no commit {OLD}")
    assert made.returncode == 0, "the earlier version cannot be built"
    return Path(made.stdout.strip())


@pytest.fixture(scope="session")
def service(bin_dir, request):
    """The shared service without a key. Tests leave it as they found it."""
    return shared_service(request, bin_dir)


@pytest.fixture(scope="session")
def api(service):
    return Api(service)


@pytest.fixture(scope="session")
def keyed_service(bin_dir, request):
    return shared_service(request, bin_dir, api_key=KEY)


@pytest.fixture(scope="session")
def interpreter_service(bin_dir, request):
    """A service with a key that has the code interpreter image; skips when nobody built that."""
    return shared_service(request, bin_dir, api_key=KEY, images={INTERPRETER: str(image_root())})


@pytest.fixture(scope="session")
def interpreter_api(interpreter_service):
    return Api(interpreter_service)


def service_class(request):
    if request.config.getoption("--runtime") == "docker":
        return dockerd.DockerService
    return RootlessService if request.config.getoption("--rootless") else Service


def shared_service(request, bin_dir, **options):
    made = service_class(request)(bin_dir, **options)
    request.addfinalizer(made.destroy)  # also when the start fails; the report of that still finds the log
    made.start()
    warm_up(made)
    return made


@contextmanager
def services(kind, bin_dir):
    """A function that makes (and starts) services of a kind; all of them are gone in the end."""
    made = []

    def make(start=True, **options):
        service = kind(bin_dir, **options)
        made.append(service)
        if start:
            service.start()
            warm_up(service)
        return service

    try:
        yield make
    finally:
        for service in made:
            service.destroy()


@pytest.fixture
def new_service(bin_dir, request):
    """Makes services of the test's own: new_service(native={...}) starts one."""
    with services(service_class(request), bin_dir) as make:
        yield make


@pytest.fixture
def new_rootless(bin_dir):
    """The same for services that an ordinary user starts."""
    require_user_namespaces()
    with services(RootlessService, bin_dir) as make:
        yield make


@pytest.fixture(scope="module")
def sandbox(api):
    """One running sandbox for the tests of a module that do not harm it."""
    made = api.create()
    yield made["id"]
    api.delete(made["id"])


@pytest.fixture
def make_sandbox(api):
    """Makes sandboxes of the test's own on the shared service; they are deleted afterwards."""
    made = []

    def make(**fields):
        sandbox = api.create(**fields)
        made.append(sandbox["id"])
        return sandbox

    yield make
    for sandbox_id in made:
        api.delete(sandbox_id)


@pytest.fixture
def no_leaks(service):
    """After the test the shared service holds exactly what it held before. Name it before fixtures that make things."""
    before = leaks.snapshot(service)
    yield
    leaks.assert_nothing_leaked(service, before)


def warm_up(service):
    """One sandbox's life: teaches the scope where this service keeps its control groups, and fills lazy state."""
    api = Api(service)
    made = api.create(timeout=60)
    assert api.run(made["id"], "true").exit_code == 0
    assert api.delete(made["id"]).status == 204
