"""Two services on one host, with state of their own, do not see or touch each other's sandboxes."""

from lib.api import Api


def test_side_by_side(new_service):
    one, two = new_service(), new_service()
    first, second = Api(one), Api(two)
    mine, theirs = first.create()["id"], second.create()["id"]
    assert [item["id"] for item in first.list_all()] == [mine]
    assert [item["id"] for item in second.list_all()] == [theirs]
    assert first.call("GET", f"/sandboxes/{theirs}").status == 404

    # Recovery removes what it does not know; that must not be the neighbour's.
    one.kill_both()
    one.start()
    two.restart()
    assert first.run(mine, "echo 1").stdout == "1"
    assert second.run(theirs, "echo 2").stdout == "2"
    assert first.delete(mine).status == 204
    assert second.ping(theirs)
    assert second.delete(theirs).status == 204


def test_sandboxes_do_not_see_each_other(api, make_sandbox):
    one, two = make_sandbox()["id"], make_sandbox()["id"]
    api.run(one, "echo secret > /tmp/here; sleep 4714 > /dev/null 2>&1 &")
    assert api.run(two, "test -e /tmp/here").exit_code == 1
    assert "4714" not in api.run(two, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
    assert api.run(one, "cat /tmp/here").stdout == "secret"
    assert api.run(two, "ls /proc | grep -c '^[0-9]'").exit_code == 0
    for name in (one, two):
        assert int(api.run(name, "ls -d /proc/[0-9]* | wc -l").stdout) < 10, "only its own processes are visible"


def test_a_second_service_on_the_same_state_is_refused(new_service):
    """Two servers on one state directory would each destroy what the other makes."""
    one = new_service()
    api = Api(one)
    made = api.create()["id"]
    two = new_service(start=False)
    two.config_path.write_text(two.config_path.read_text().replace(str(two.state_dir), str(one.state_dir)))
    two.spawn()
    try:
        assert two.process.wait(10) != 0
    finally:
        if two.process.poll() is None:
            two.process.kill()
            two.process.wait()
    assert api.ping(made)
    assert api.delete(made).status == 204
