"""What deleted sandboxes left is removed in the background, and nobody's files keep others' waiting."""

import pytest
from lib.api import Api
from lib.waiting import wait_for

DEEP = """
import os
os.chdir("/tmp")
for i in range(4000):
    os.mkdir("d")
    os.chdir("d")
"""
# Each branch is longer than the launcher descends at once.
COMB = """
import os
for i in range(100):
    os.mkdir(f"/tmp/{i}")
    os.chdir(f"/tmp/{i}")
    for j in range(40):
        os.mkdir("d")
        os.chdir("d")
"""


def trash(service):
    return list((service.state_dir / "trash").iterdir())


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("tree", [DEEP, COMB], ids=["deep", "comb"])
def test_a_hostile_tree_does_not_hold_up_others(api, service, make_sandbox, tree):
    hostile, plain = make_sandbox()["id"], make_sandbox()["id"]
    assert api.run(hostile, ["python3", "-c", tree], timeout=60000).exit_code == 0
    assert api.run(plain, "touch /root/plain").exit_code == 0
    wait_for(lambda: not trash(service), 30, "an empty trash to begin with")
    seen = set()

    def look():
        names = trash(service)
        seen.update(path.name for path in names)
        return names

    assert api.delete(hostile).status == 204
    wait_for(look, 5, "the files in the trash")
    assert api.delete(plain).status == 204
    wait_for(lambda: not [path for path in look() if list(path.glob("*.upper/root/plain"))], 10, "the other's files are gone")
    # How long it takes as a whole is a matter of the disk: some wait for each directory that is freed.
    wait_for(lambda: not look(), 90, "an empty trash")
    # One entry for each sandbox, and some of spares: pieces of a hostile one would take turns with everybody else's.
    assert len(seen) < 30


def test_a_stop_right_after_a_delete_leaves_no_files(new_service):
    service = new_service()
    api = Api(service)
    name = api.create()["id"]
    assert api.run(name, "mkdir -p /tmp/a/b && head -c 1M /dev/zero > /tmp/a/b/c").exit_code == 0
    assert api.delete(name).status == 204
    assert service.stop() == 0
    assert trash(service) == []


def test_a_delete_without_a_trash_is_no_success(new_service):
    service = new_service()
    api = Api(service)
    name = api.create()["id"]
    assert api.run(name, "touch /root/mine").exit_code == 0
    wait_for(lambda: not trash(service), 30, "an empty trash to begin with")
    (service.state_dir / "trash").rmdir()
    reply = api.delete(name)
    assert reply.status == 500 and "trash was removed" in reply.json["message"], reply
    assert service.scope.sandbox_pids(name) == [], "whatever happens to its files, it has ended"
    service.restart()
    assert api.delete(name).status in (204, 404)
    wait_for(lambda: not any((service.state_dir / "sandboxes").iterdir()), 10, "its files are gone")
