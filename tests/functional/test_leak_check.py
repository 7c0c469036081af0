"""The leak check itself: what it is meant to find, it finds. Without this, every green leak check would prove nothing."""

import os
import subprocess

import pytest
from lib import leaks, rawhttp
from lib.api import Api, create_body
from lib.disks import no_disks
from lib.scope import all_pids, cgroup_mounts, cgroups_of
from lib.service import Service
from lib.waiting import wait_for


def kinds(before, after):
    return {line.split(":")[0] for line in leaks.difference(before, after)}


@pytest.fixture
def quiet(new_service):
    service = new_service()

    def is_quiet():
        trash = any((service.state_dir / "trash").iterdir())  # its worker starts a moment later
        return not service.scope.cgroups() and not trash and not service.scope.processes()

    wait_for(is_quiet, 10, "nothing is kept for the next sandbox, nor being removed")
    return service, leaks.snapshot(service)


def test_a_sandbox_that_is_left_is_found_in_every_way(quiet):
    service, before = quiet
    made = Api(service).create()
    engine = {"engine"} if service.scope.engine_holds() else set()
    assert kinds(before, leaks.snapshot(service)) == {"cgroups", "processes", "namespaces", "files", "rows"} | engine
    with pytest.raises(AssertionError, match="left behind"):
        leaks.assert_nothing_leaked(service, before, timeout=0.2)
    assert Api(service).delete(made["id"]).status == 204
    leaks.assert_nothing_leaked(service, before)


def test_an_empty_control_group(quiet):
    service, before = quiet
    for mount, path in service.scope.cgroup_roots:
        group = f"{mount}{path}/left-over"
        os.mkdir(group)
        assert kinds(before, leaks.snapshot(service)) == {"cgroups"}, group
        os.rmdir(group)


def test_a_mount_on_the_host(quiet):
    service, before = quiet
    point = service.state_dir / "trash"
    subprocess.run(["mount", "-t", "tmpfs", "none", point], check=True)
    try:
        assert "mounts" in kinds(before, leaks.snapshot(service))
    finally:
        subprocess.run(["umount", point], check=True)


@no_disks
def test_a_loop_device_over_a_disk_that_is_gone(quiet):
    service, before = quiet
    made = Api(service).create(resourceLimits={"disk": "32Mi"})
    assert "loops" not in kinds(before, leaks.snapshot(service))
    next(service.state_dir.glob("sandboxes/*/disk.img")).unlink()
    assert "loops" in kinds(before, leaks.snapshot(service))
    assert Api(service).delete(made["id"]).status == 204
    leaks.assert_nothing_leaked(service, before)


def test_a_copy_of_the_launcher_that_nobody_owns(quiet):
    service, before = quiet
    stray = subprocess.Popen(["sh", "-c", "sleep 60; :", f"--state-dir={service.state_dir}"])
    try:
        assert kinds(before, leaks.snapshot(service)) == {"processes"}
    finally:
        stray.kill()
        stray.wait()


def test_descriptors_of_the_server(quiet):
    service, before = quiet
    held = [idle_connection(service) for _ in range(20)]
    try:
        assert "descriptors of the server" in kinds(before, leaks.snapshot(service))
    finally:
        for connection in held:
            connection.close()
    leaks.assert_nothing_leaked(service, before)


def idle_connection(service):
    connection = rawhttp.Connection(service.address)
    connection.send_request("GET", "/health")
    assert connection.read_response().status == 200
    return connection


def test_what_others_have_made_ends_with_its_service(bin_dir):
    """A published client's sandboxes are none that our own client has told the scope of; a service that is over leaves them to us."""
    service = Service(bin_dir).start()
    try:
        made = rawhttp.request(service.address, "POST", "/v1/sandboxes", json=create_body())
        assert made.status == 202, made
        handle = service.scope.handle(made.json["id"])
        assert with_group(handle)
    finally:
        service.destroy()
    wait_for(lambda: not with_group(handle), 10, "no process is left, nor its entry in the table")
    assert not [mount for mount in cgroup_mounts().values() for _, names, _ in os.walk(mount) if handle in names]


def with_group(handle):
    return [pid for pid in all_pids() if any(handle in path for _, path in cgroups_of(pid))]
