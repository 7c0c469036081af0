"""/dev/shm: as large as a program may want, as much as the sandbox may have."""

import pytest
from lib.api import Api, assert_envelope

pytestmark = pytest.mark.usefixtures("no_leaks")

KEY = "opensandbox.extensions.shm-size"
SIZE = "df -B1 --output=size /dev/shm | tail -1"
MI = 1 << 20


def size(api, name):
    return int(api.run(name, SIZE).stdout)


def test_without_a_word_it_is_a_gibibyte(api, make_sandbox):
    name = make_sandbox()["id"]
    assert size(api, name) == 1 << 30
    # What the old 64 MiB were cursed for.
    ran = api.run(name, "head -c 200M /dev/zero > /dev/shm/f && stat -c %s /dev/shm/f && rm /dev/shm/f")
    assert ran.stdout == str(200 * 1000 * 1000) or ran.stdout == str(200 * MI), ran.stderr


def test_with_a_memory_limit_it_is_half_of_that(api, make_sandbox):
    name = make_sandbox(resourceLimits={"memory": "256Mi"})["id"]
    assert size(api, name) == 128 * MI
    ran = api.run(name, "head -c 200M /dev/zero > /dev/shm/f")
    assert ran.exit_code != 0 and "No space left on device" in ran.stderr, "a full file system, not a killed program"
    assert api.run(name, "echo alive").stdout == "alive"


@pytest.mark.parametrize("asked, bytes_", [("64Mi", 64 * MI), ("2Gi", 2048 * MI), ("64Ki", 64 << 10), ("1048576", MI)])
def test_a_request_may_say_it(api, make_sandbox, asked, bytes_):
    made = make_sandbox(extensions={KEY: asked})
    assert made["extensions"] == {KEY: asked}
    assert size(api, made["id"]) == bytes_
    limited = make_sandbox(extensions={KEY: asked}, resourceLimits={"memory": "256Mi"})
    assert size(api, limited["id"]) == bytes_


@pytest.mark.parametrize("value", ["", "0", "1Ki", "2Ti", "much", "-1", "1.5Gi", "64"])
def test_other_words_are_refused(api, value):
    found = assert_envelope(api.post_create(extensions={KEY: value}), 400, "SANDBOX::INVALID_PARAMETER")
    assert KEY in found["message"] and (not value or f"'{value}'" not in found["message"])


def test_it_counts_as_memory(api, make_sandbox):
    """However large it may be: what is in it is the sandbox's."""
    name = make_sandbox(resourceLimits={"memory": "256Mi"}, extensions={KEY: "1Gi"})["id"]
    used = "cat /sys/fs/cgroup/memory/memory.usage_in_bytes /sys/fs/cgroup/memory.current 2>/dev/null"
    before = int(api.run(name, used).stdout)
    api.run(name, "head -c 100M /dev/zero > /dev/shm/f")
    after = int(api.run(name, used).stdout)
    assert after - before > 90 * MI, (before, after)


def test_the_operator_may_say_it(new_service):
    api = Api(new_service(sections={"sandbox": {"shm_size": "32Mi"}}))
    for fields, bytes_ in (({}, 32 * MI), ({"resourceLimits": {"memory": "256Mi"}}, 32 * MI), ({"extensions": {KEY: "48Mi"}}, 48 * MI)):
        name = api.create(**fields)["id"]
        assert size(api, name) == bytes_
        assert api.delete(name).status == 204


def test_forks_have_the_same(api, make_sandbox):
    name = make_sandbox(extensions={KEY: "16Mi"})["id"]
    fork = api.call("POST", f"/sandboxes/{name}/fork", json={}).json["items"][0]["id"]
    api.service.scope.remember(fork)
    assert size(api, fork) == 16 * MI
    assert api.delete(fork).status == 204


def test_the_next_sandbox_has_its_own_size(api, make_sandbox):
    """Device trees are made ahead of need, and file systems used again."""
    for asked, bytes_ in (("4Mi", 4 * MI), (None, 1 << 30), ("8Mi", 8 * MI), (None, 1 << 30)):
        made = make_sandbox(**({"extensions": {KEY: asked}} if asked else {}))
        assert size(api, made["id"]) == bytes_
        assert api.delete(made["id"]).status == 204
