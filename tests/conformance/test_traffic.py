"""What a client's everyday calls cost on the wire: nothing is asked twice, nothing is polled."""

import re
import time

import pytest
from lib.waiting import wait_for

pytestmark = pytest.mark.usefixtures("no_leaks")


def without_metrics(exchanges):
    return [e for e in exchanges if not e.path.endswith("/metrics/events")]


def test_create_never_polls(recorded):
    started = time.monotonic()
    sandbox = recorded.create()
    took = time.monotonic() - started
    asked = without_metrics(recorded.recorder.exchanges)
    base = f"/v1/sandboxes/{sandbox.id}"
    assert (asked[0].method, asked[0].path, asked[0].status) == ("POST", "/v1/sandboxes", 202)
    assert sorted(e.path for e in asked[1:3]) == [f"{base}/endpoints/18080", f"{base}/endpoints/44772"]
    [ping] = asked[3:]
    assert (ping.method, ping.status) == ("GET", 200), asked
    assert re.fullmatch(rf"/v1/t/[\w-]{{24}}/sandboxes/{sandbox.id}/proxy/44772/ping", ping.path), asked
    assert {e.status for e in asked[1:3]} == {200}
    assert took < 2, f"create took {took:.2f} s: {asked}"


def test_first_get_says_running(recorded):
    sandbox = recorded.create()
    assert recorded.go(sandbox.get_info()).status.state == "Running"
    assert len(recorded.recorder.seen("GET", f"/sandboxes/{sandbox.id}")) == 1


def test_connect_never_polls(recorded):
    sandbox = recorded.create()
    before = len(recorded.recorder.exchanges)
    other = recorded.go(recorded.Sandbox.connect(sandbox.id, connection_config=recorded.config()))
    asked = without_metrics(recorded.recorder.exchanges[before:])
    assert [e.path.rsplit("/", 2)[-1] for e in asked].count("ping") == 1
    assert {e.status for e in asked} == {200}
    recorded.go(other.close())


def test_create_is_reported(recorded):
    if recorded.version < (1, 0):
        pytest.skip("clients before 1.0 do not report create times")
    recorded.create()

    def reported():
        recorded.breathe()
        return [e.status for e in recorded.recorder.seen("POST", "/v1/metrics/events") if e.status]

    assert wait_for(reported, 5, "the client's report is answered") == [204]


def test_one_command_is_one_request(recorded):
    sandbox = recorded.create()
    recorded.run(sandbox, "echo x")
    assert [e.status for e in recorded.recorder.seen("POST", "/command")] == [200]


def test_kill_is_one_request(recorded):
    sandbox = recorded.create()
    recorded.kill(sandbox)
    assert [e.status for e in recorded.recorder.seen("DELETE")] == [204]


def test_the_key_goes_along_only_through_the_server_proxy(recorded):
    """In proxy mode the newest client sends its key on execd calls too. (That it is stripped: functional/test_tokens.py.)"""
    for proxied in (False, True):
        sandbox = recorded.create(config=recorded.config(use_server_proxy=proxied))
        assert recorded.run(sandbox, "echo fine").logs.stdout[0].text == "fine"
        sent = recorded.recorder.seen("POST", "/command")[-1].headers.get("open-sandbox-api-key")
        assert sent == (recorded.key if proxied and recorded.version >= (1, 0) else None)
