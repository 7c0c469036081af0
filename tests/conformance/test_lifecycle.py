"""Create, connect, info, list, renew, metadata, kill through the published client."""

import re
import time
import traceback
from datetime import datetime, timedelta, timezone

import pytest
from lib.waiting import wait_for
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.execd import RunCommandOpts
from opensandbox.models.sandboxes import SandboxFilter

pytestmark = pytest.mark.usefixtures("no_leaks")


def test_create_run_kill(sdk):
    sandbox = sdk.create(env={"COLOUR": "blue"}, metadata={"team": "t1"})
    info = sdk.go(sandbox.get_info())
    assert info.id == sandbox.id
    assert info.status.state == "Running"
    assert info.image.image == "host"
    assert info.metadata == {"team": "t1"}
    assert info.entrypoint == ["tail", "-f", "/dev/null"]
    assert info.expires_at - datetime.now(timezone.utc) < timedelta(minutes=10)
    ran = sdk.run(sandbox, "echo $COLOUR")
    assert (ran.text if hasattr(ran, "text") else ran.logs.stdout[0].text) == "blue"
    sdk.kill(sandbox)
    with pytest.raises(SandboxException):
        sdk.go(sdk.Sandbox.connect(sandbox.id, connection_config=sdk.config()))


def test_connect(sdk):
    made = sdk.create()
    other = sdk.go(sdk.Sandbox.connect(made.id, connection_config=sdk.config()))
    sdk.run(made, "echo shared > /tmp/x")
    assert sdk.run(other, "cat /tmp/x").logs.stdout[0].text == "shared"
    assert sdk.go(other.is_healthy()) is True
    sdk.go(other.close())


def test_without_expiry(sdk):
    sandbox = sdk.create(timeout=None)
    assert sdk.go(sandbox.get_info()).expires_at is None


def test_renew(sdk):
    sandbox = sdk.create(timeout=timedelta(minutes=2))
    renewed = sdk.go(sandbox.renew(timedelta(hours=1)))
    left = sdk.go(sandbox.get_info()).expires_at - datetime.now(timezone.utc)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    assert renewed.expires_at == sdk.go(sandbox.get_info()).expires_at


def test_metadata_patch(sdk):
    sandbox = sdk.create(metadata={"keep": "1", "drop": "2"})
    info = sdk.go(sandbox.patch_metadata({"drop": None, "new": "3"}))
    assert info.metadata == {"keep": "1", "new": "3"}


def test_pause_resume_and_connect_again(sdk):
    sandbox = sdk.create()
    sdk.run(sandbox, "echo kept > /tmp/x")
    sdk.go(sandbox.pause())
    assert sdk.go(sandbox.get_info()).status.state == "Paused"
    with pytest.raises(SandboxException):
        sdk.go(sandbox.pause())
    again = sdk.go(sdk.Sandbox.resume(sandbox.id, connection_config=sdk.config()))
    assert sdk.go(again.get_info()).status.state == "Running"
    assert sdk.run(again, "cat /tmp/x").logs.stdout[0].text == "kept"
    other = sdk.go(sdk.Sandbox.connect(sandbox.id, connection_config=sdk.config()))
    assert sdk.run(other, "cat /tmp/x").logs.stdout[0].text == "kept"
    assert sdk.run(sandbox, "cat /tmp/x").logs.stdout[0].text == "kept", "the first object works on"
    with pytest.raises(SandboxException):
        sdk.go(sdk.Sandbox.resume(sandbox.id, connection_config=sdk.config()))
    sdk.go(again.close())
    sdk.go(other.close())


def test_limits_are_the_true_ones(sdk):
    sandbox = sdk.create(resource={"cpu": "1", "memory": "256Mi", "disk": "64Mi"})
    assert sdk.run(sandbox, "nproc").logs.stdout[0].text == "1"
    assert "262144 kB" in sdk.run(sandbox, "head -1 /proc/meminfo").logs.stdout[0].text
    full = sdk.run(sandbox, "head -c 100M /dev/zero > /root/x")
    assert "No space left" in "".join(line.text for line in full.logs.stderr)
    with pytest.raises(SandboxException) as caught:
        sdk.create(resource={"cpu": "1", "memory": "lots"})
    assert "resourceLimits.memory" in str(caught.value)


def test_ends_are_the_true_ones(sdk):
    waiter = ["sh", "-c", "until [ -e /tmp/go ]; do sleep 0.02; done; exit $(cat /tmp/go)"]
    for code, state, reason in ((0, "Terminated", "ENTRYPOINT_EXITED"), (7, "Failed", "ENTRYPOINT_FAILED")):
        sandbox = sdk.create(entrypoint=waiter)
        sdk.run(sandbox, f"echo {code} > /tmp/x; mv /tmp/x /tmp/go")
        wait_for(lambda sandbox=sandbox, state=state: sdk.go(sandbox.get_info()).status.state == state, 5, "it ends")
        status = sdk.go(sandbox.get_info()).status
        assert status.reason == reason and str(code) in status.message


def test_an_entry_process_that_fails_at_once(sdk):
    if sdk.version < (1,):
        pytest.skip("this client asks for health until its own limit, whatever the answer")
    for _ in range(5):
        started = time.monotonic()
        try:
            sandbox = sdk.create(entrypoint=["sh", "-c", "echo boom >&2; exit 3"])
        except SandboxException as error:
            assert time.monotonic() - started < 5, "it does not wait for what will never be healthy"
            said = words_of(error)
            assert "boom" in said and ("code 3" in said or "exit status 3" in said), said
            return
        # On a busy machine the client may be told that it is healthy before it has failed; then it is told afterwards.
        status = wait_for(lambda sandbox=sandbox: (now := sdk.go(sandbox.get_info()).status).state == "Failed" and now, 5, "it fails")
        assert status.reason == "ENTRYPOINT_FAILED" and "code 3" in status.message, status
    pytest.fail("no create has failed")


def words_of(error):
    """What a traceback shows: the error and what caused it."""
    return "".join(traceback.format_exception(error))


def test_what_to_do_is_in_what_clients_show(sdk):
    with pytest.raises(SandboxException) as caught:
        sdk.create(resource={"gpu": "1"})
    assert "leave resourceLimits.gpu out of the request" in str(caught.value), caught.value
    if sdk.version < (1,):
        return  # of a refused command this client shows the status and nothing else
    sandbox = sdk.create()
    with pytest.raises(SandboxException) as caught:
        sdk.run(sandbox, "true", opts=RunCommandOpts(working_directory="/no/such/place"))
    assert "/no/such/place" in (said := words_of(caught.value)) and "create the directory first" in said, said


def test_endpoint(sdk, service):
    sandbox = sdk.create()
    endpoint = sdk.go(sandbox.get_endpoint(8080))
    host = f"{service.address[0]}:{service.address[1]}"
    assert re.fullmatch(rf"{host}/v1/t/[\w-]{{24}}/sandboxes/{sandbox.id}/proxy/8080", endpoint.endpoint)


class TestManager:
    @pytest.fixture
    def manager(self, sdk):
        made = sdk.go(sdk.Manager.create(connection_config=sdk.config()))
        yield made
        sdk.go(made.close())

    def test_list_with_filters(self, sdk, manager):
        mine = [sdk.create(metadata={"suite": "manager", "n": str(n)}).id for n in range(3)]

        def listed(**options):
            page = sdk.go(manager.list_sandbox_infos(SandboxFilter(**options)))
            return [info.id for info in page.sandbox_infos], page.pagination

        assert listed(metadata={"suite": "manager"})[0] == mine[::-1]
        assert listed(metadata={"suite": "manager", "n": "1"})[0] == [mine[1]]
        assert listed(metadata={"suite": "manager"}, states=["Running"])[0] == mine[::-1]
        assert listed(metadata={"suite": "manager"}, states=["Failed"])[0] == []
        ids, pagination = listed(metadata={"suite": "manager"}, page=2, page_size=2)
        assert ids == [mine[0]]
        assert (pagination.total_items, pagination.total_pages, pagination.has_next_page) == (3, 2, False)

    def test_kill_renew_and_get(self, sdk, manager):
        sandbox = sdk.create()
        assert sdk.go(manager.get_sandbox_info(sandbox.id)).id == sandbox.id
        sdk.go(manager.renew_sandbox(sandbox.id, timedelta(hours=2)))
        assert sdk.go(manager.get_sandbox_info(sandbox.id)).expires_at > datetime.now(timezone.utc) + timedelta(minutes=100)
        sdk.go(manager.kill_sandbox(sandbox.id))
        with pytest.raises(SandboxApiException) as caught:
            sdk.go(manager.get_sandbox_info(sandbox.id))
        assert caught.value.status_code == 404
        sdk.forget(sandbox)

    def test_pause_and_resume(self, sdk, manager):
        sandbox = sdk.create(metadata={"suite": "pausing"})

        def state():
            return sdk.go(manager.get_sandbox_info(sandbox.id)).status.state

        sdk.go(manager.pause_sandbox(sandbox.id))
        assert state() == "Paused"
        page = sdk.go(manager.list_sandbox_infos(SandboxFilter(metadata={"suite": "pausing"}, states=["Paused"])))
        assert [info.id for info in page.sandbox_infos] == [sandbox.id]
        sdk.go(manager.resume_sandbox(sandbox.id))
        assert state() == "Running"
        assert sdk.run(sandbox, "echo on").logs.stdout[0].text == "on"

    def test_unknown_sandbox(self, sdk, manager):
        with pytest.raises(SandboxApiException) as caught:
            sdk.go(manager.kill_sandbox("00000000-0000-4000-8000-000000000000"))
        assert caught.value.status_code == 404
        assert caught.value.error.code == "SANDBOX::NOT_FOUND"
        assert caught.value.request_id


class TestErrors:
    def test_unknown_image(self, sdk):
        with pytest.raises(SandboxApiException) as caught:
            sdk.create("registry.example/none:1")
        assert caught.value.status_code == 400
        assert caught.value.error.code == "IMAGE::NOT_FOUND"
        assert "registry.example/none:1" in str(caught.value)

    def test_entrypoint_that_cannot_be_executed(self, sdk):
        with pytest.raises(SandboxApiException) as caught:
            sdk.create(entrypoint=["/nope"])
        assert caught.value.status_code == 400
        assert caught.value.error.code == "SANDBOX::INVALID_ENTRYPOINT"
        assert "/nope" in str(caught.value)

    def test_impossible_limit(self, sdk):
        with pytest.raises(SandboxApiException) as caught:
            sdk.create(resource={"memory": "lots"})
        assert caught.value.error.code == "SANDBOX::INVALID_PARAMETER"
        assert "resourceLimits.memory" in str(caught.value)
