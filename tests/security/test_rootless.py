"""The probes inside a sandbox of a service that an ordinary user started: it has fewer layers, and they hold too."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest
from lib.api import Api
from lib.rootless import RootlessService, require_user_namespaces

import probes
from test_probes import targets


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


def test_no_id_of_the_host_but_those_of_the_user(rootless, user_armed):
    """As the host sees the map; inside only that of the namespace above is seen."""
    init = rootless.scope.init_pid(user_armed.sandbox_id)
    first = rootless.scope.first_subordinate
    for name in ("uid_map", "gid_map"):
        lines = [list(map(int, line.split())) for line in Path(f"/proc/{init}/{name}").read_text().splitlines()]
        assert lines == [[0, rootless.uid, 1]] + ([[1, first, 65535]] if first else [])


def test_the_user_namespace_of_a_sandbox_owns_nothing(rootless, user_armed):
    """Its root would otherwise have rights over mounts, network and processes that the launcher made."""
    init = rootless.scope.init_pid(user_armed.sandbox_id)
    own = Path(f"/proc/{init}/ns/user").readlink()
    services = Path(f"/proc/{rootless.launcher_pid}/ns/user").readlink()
    assert own != services
    for kind in ("mnt", "net", "pid", "ipc", "uts", "cgroup"):
        assert owner_of(init, kind) == inode_of(rootless.launcher_pid), kind


def test_other_sandboxes_files_are_out_of_reach(rootless, user_armed):
    """They belong to the same user outside: only the file tree keeps them apart."""
    api = Api(rootless)
    other = api.create()["id"]
    api.run(other, "echo secret > /root/secret")
    upper = rootless.state_dir / "sandboxes" / rootless.scope.handle(other) / "root.upper/root/secret"
    assert upper.read_text() == "secret\n"
    for path in (upper, rootless.state_dir / "db", rootless.config_path, rootless.home, "/etc/shadow-", "/var/tmp"):
        ran = api.run(user_armed.sandbox_id, ["cat", str(path)])
        assert ran.exit_code != 0 and "secret" not in ran.stdout, path
    assert api.run(user_armed.sandbox_id, "find / -xdev -name secret 2>/dev/null").stdout == ""
    api.delete(other)


NS_GET_USERNS = 0xB701


def owner_of(pid, kind):
    with open(f"/proc/{pid}/ns/{kind}", "rb") as namespace:
        descriptor = fcntl.ioctl(namespace, NS_GET_USERNS)
    try:
        return os.fstat(descriptor).st_ino
    finally:
        os.close(descriptor)


def inode_of(pid):
    return os.stat(f"/proc/{pid}/ns/user").st_ino
