"""Files of the host, of the service and of other sandboxes cannot be read from inside, nor even be seen."""

import os
from pathlib import Path

import pytest

import host
import probes
from lib.api import Api

HOST_DIRECTORIES = ["/root", "/home", "/etc", "/var/lib", "/var/tmp", "/tmp", "/opt", "/srv", "/"]


@pytest.fixture(scope="module")
def keyed(keyed_service, probe_path):
    """A service with a key in its configuration, and an armed sandbox of it."""
    api = Api(keyed_service)
    sandbox_id = api.create()["id"]
    yield keyed_service, probes.Armed(api, sandbox_id, probe_path)
    api.delete(sandbox_id)


@pytest.mark.parametrize("uid", [0, 1000])
def test_directories_of_the_host(keyed, uid):
    _, armed = keyed
    with host.canaries([path for path in HOST_DIRECTORIES if Path(path).is_dir()]) as files:
        armed.run("canary", *files, uid=uid, gid=uid).assert_refused()


@pytest.mark.parametrize("uid", [0, 1000])
def test_the_services_own_files(keyed, uid):
    """The configuration with the key, the database, the log, the state directory with everything in it."""
    service, armed = keyed
    # os.walk goes on when a worker empties the trash meanwhile.
    files = [Path(folder) / name for folder, _, names in os.walk(service.directory) for name in names]
    own = [path for path in files if path.is_file() or path.is_socket()]
    assert service.state_dir / "secret" in own
    assert service.config_path in own and "a-key-for-tests" in service.config_path.read_text()
    with host.canaries([service.directory, service.state_dir]) as files:
        armed.run("canary", *own[:200], *files, uid=uid, gid=uid).assert_refused()


def test_files_of_another_sandbox(keyed):
    service, armed = keyed
    other = armed.api.create()["id"]
    try:
        name = "osb-canary-of-another-sandbox"
        armed.api.upload(other, f"/tmp/{name}", b"theirs", mode=644)
        on_host = [path for path in service.state_dir.rglob(name)]
        assert on_host, "the other sandbox's file is not below the state directory; this test looks in the wrong place"
        armed.run("canary", f"/tmp/{name}", *on_host).assert_refused()
    finally:
        armed.api.delete(other)


def test_the_keys_value_is_nowhere_inside(keyed):
    """Neither in a process's environment nor in a file that the sandbox can read."""
    service, armed = keyed
    # The pattern is split so that the search does not find itself.
    key = service.api_key
    search = f"grep -rlsI --exclude-dir=sys --exclude-dir=usr '{key[:8]}''{key[8:]}' /proc/*/environ /proc/*/cmdline /etc /tmp /run /var /root /home /dev"
    found = armed.api.run(armed.sandbox_id, search)
    assert found.stdout == "", f"the API key is visible in {found.stdout}"


def test_no_secrets_in_etc(keyed):
    """/etc of the image `host` is made from a list; nothing that holds a secret of the host may get onto it."""
    _, armed = keyed
    secret = "/etc/gshadow /etc/sudoers /etc/sudoers.d /etc/machine-id /etc/ssl/private /etc/krb5.keytab /etc/wireguard /etc/cron.d"
    found = armed.api.run(armed.sandbox_id, f"ls -d {secret} /etc/ssh/*key* /etc/NetworkManager 2>/dev/null; true").stdout
    assert found == "", f"visible inside: {found}"
    assert armed.api.run(armed.sandbox_id, "grep -s '[$]' /etc/shadow /etc/passwd").stdout == "", "a password hash is visible"
