"""A sandbox whose root file system nobody inside can change."""

import pytest
from lib.api import assert_envelope

pytestmark = pytest.mark.usefixtures("no_leaks")

KEY = "opensandbox.extensions.read-only-root"


def test_nothing_but_scratch_space_can_be_written(api, make_sandbox):
    made = make_sandbox(extensions={KEY: "true"})
    assert made["extensions"] == {KEY: "true"}
    name = made["id"]
    for path in ("/x", "/usr/x", "/usr/local/bin/x", "/etc/x", "/root/x", "/var/tmp/x", "/home/x"):
        ran = api.run(name, f"echo x > {path}")
        assert ran.exit_code != 0 and "Read-only file system" in ran.stderr, (path, ran.stderr)
    for path in ("/tmp/x", "/run/x", "/dev/shm/x"):
        assert api.run(name, f"echo fine > {path} && cat {path}").stdout == "fine"
    for attempt in ("mount -o remount,rw /", "mount -o remount,rw /usr", "mount -t tmpfs none /etc", "umount /tmp"):
        assert api.run(name, attempt).exit_code != 0, attempt
    api.upload(name, "/tmp/up", b"data")
    assert api.download(name, "/tmp/up") == b"data"
    assert api.run(name, "cd /tmp; python3 -c 'print(1)'").stdout == "1"


def test_without_it_everything_can(api, make_sandbox):
    for fields in ({}, {"extensions": {KEY: "false"}}):
        name = make_sandbox(**fields)["id"]
        assert api.run(name, "echo x > /x && echo x > /usr/x && cat /x").stdout == "x"


def test_together_with_limits(api, make_sandbox):
    name = make_sandbox(extensions={KEY: "true"}, resourceLimits={"memory": "256Mi", "cpu": "1", "disk": "32Mi"})["id"]
    assert api.run(name, "echo x > /x").exit_code != 0
    assert api.run(name, "echo fine > /tmp/x; cat /tmp/x").stdout == "fine"


@pytest.mark.parametrize("value", ["", "yes", "True", "1"])
def test_other_words_are_refused(api, value):
    found = assert_envelope(api.post_create(extensions={KEY: value}), 400, "SANDBOX::INVALID_PARAMETER")
    assert KEY in found["message"]
