"""A create that is sent again with the same key makes one sandbox, whatever happened to the first answer."""

import json
import os
import signal
import threading
import uuid

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope, create_body
from lib.waiting import wait_for


def create(api, key, **fields):
    reply = api.call("POST", "/sandboxes", json=create_body(**fields), headers={"Idempotency-Key": key}, timeout=60)
    if reply.status == 202:
        api.service.scope.remember(reply.json["id"])
    return reply


@pytest.fixture
def key():
    return f"key-{uuid.uuid4()}"


def test_the_second_gets_the_first_ones_sandbox(api, key):
    first, second = create(api, key, metadata={"a": "b"}), create(api, key, metadata={"a": "b"})
    assert first.status == second.status == 202
    assert first.json == second.json
    assert first.header("idempotency-replayed") is None and second.header("idempotency-replayed") == "true"
    other = create(api, key + "2", metadata={"a": "b"})
    assert other.json["id"] != first.json["id"]
    for made in (first, other):
        assert api.delete(made.json["id"]).status == 204


def test_at_the_same_moment_one_is_made(api, key):
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(create(api, key))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [reply.status for reply in replies] == [202] * 8
    ids = {reply.json["id"] for reply in replies}
    assert len(ids) == 1
    assert api.delete(ids.pop()).status == 204


def test_another_request_with_it_is_refused(api, key):
    made = create(api, key)
    assert_envelope(create(api, key, timeout=601), 409, "SANDBOX::IDEMPOTENCY_KEY_REUSED")
    assert api.delete(made.json["id"]).status == 204
    assert_envelope(create(api, key), 409, "SANDBOX::IDEMPOTENCY_KEY_REUSED")


def test_one_that_failed_is_made_by_the_next(api, key):
    assert_envelope(create(api, key, image={"uri": "missing"}), 400, "IMAGE::NOT_FOUND")
    assert_envelope(create(api, key, entrypoint=["/no/such/program"]), 400, "SANDBOX::INVALID_ENTRYPOINT")
    made = create(api, key)
    assert made.status == 202 and made.header("idempotency-replayed") is None
    assert api.delete(made.json["id"]).status == 204


@pytest.mark.parametrize("wrong", ["", "x" * 256, "a b", "ä"])
def test_what_is_no_key_is_refused(api, wrong):
    assert_envelope(create(api, wrong.encode().decode("latin-1")), 400, "SANDBOX::INVALID_PARAMETER")


def test_over_a_kill_of_the_server(new_service, key):
    """The client never hears of the first one; the server dies at some moment of it."""
    service = new_service()
    api = Api(service)
    body = json.dumps(create_body()).encode()
    for round_ in range(6):
        mine = f"{key}-{round_}"
        with rawhttp.Connection(service.address) as lost:
            lost.send_request("POST", "/v1/sandboxes", [("Content-Type", "application/json"), ("Idempotency-Key", mine)], body)
            server = service.server_pid()
            if round_ % 2:  # the sandbox is made, and its answer gets lost
                assert lost.is_readable(30)
            os.kill(server, signal.SIGKILL)
        wait_for(lambda before=server: service.server_pid() != before, 20, "the next server")
        made = create(api, mine)
        assert made.status == 202, made
        assert {item["id"] for item in api.list_all()} == {made.json["id"]}, "one sandbox, and nothing beside it"
        assert api.delete(made.json["id"]).status == 204
