"""Waiting for changes: the long poll of one sandbox, and the stream of everybody's events, which nobody misses one of."""

import json
import os
import signal
import threading
import time

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.waiting import wait_for


class Stream:
    """An event stream, frame by frame."""

    def __init__(self, service, last=None, key=None, path="/v1/events"):
        headers = [("Last-Event-ID", str(last))] if last is not None else []
        if key:
            headers.append(("OPEN-SANDBOX-API-KEY", key))
        self.connection = rawhttp.Connection(service.address)
        self.connection.send_request("GET", path, headers)
        self.head = self.connection.read_head()
        self.text = b""
        if self.head.status == 200:
            assert self.frame() == {"retry": "1000"}

    def frame(self):
        while b"\n\n" not in self.text:
            chunk = self.connection.read_chunk()
            assert chunk, "the stream has ended"
            self.text += chunk
        frame, _, self.text = self.text.partition(b"\n\n")
        if frame.startswith(b":"):
            return self.frame()
        return dict(line.split(": ", 1) for line in frame.decode().split("\n"))

    def event(self):
        frame = self.frame()
        data = json.loads(frame["data"])
        assert frame["event"] == data["type"]
        return int(frame["id"]), data

    def types(self, count):
        return [self.event()[1]["type"] for _ in range(count)]

    def close(self):
        self.connection.close()


class TestWait:
    def wait(self, api, sandbox_id, query):
        return api.call("GET", f"/sandboxes/{sandbox_id}/wait?{query}")

    def test_is_over_at_once_when_the_state_is_there(self, api):
        sandbox_id = api.create()["id"]
        for query in ("state=Running", "state=paused,RUNNING", "state=Paused&state=Running", "state=Running&timeout=0"):
            reply = self.wait(api, sandbox_id, query)
            assert reply.status == 200 and reply.json["id"] == sandbox_id
            assert reply.json["status"]["state"] == "Running"
        assert api.delete(sandbox_id).status == 204

    def test_wakes_with_the_change(self, api):
        sandbox_id = api.create()["id"]
        replies = []
        waiting = threading.Thread(target=lambda: replies.append((self.wait(api, sandbox_id, "state=Paused"), time.monotonic())))
        waiting.start()
        assert api.call("POST", f"/sandboxes/{sandbox_id}/pause").status == 202
        paused = time.monotonic()
        waiting.join(10)
        reply, heard = replies[0]
        assert reply.json["status"]["state"] == "Paused"
        assert heard - paused < 5, "the wait was woken, and did not run into its time limit of 25 s"
        assert api.delete(sandbox_id).status == 204

    def test_tells_the_sandbox_as_it_is_when_the_time_is_up(self, api):
        sandbox_id = api.create()["id"]
        reply = self.wait(api, sandbox_id, "state=Paused&timeout=1")
        assert reply.status == 200 and reply.json["status"]["state"] == "Running"
        assert api.delete(sandbox_id).status == 204

    def test_does_not_wait_for_what_has_ended(self, api):
        sandbox_id = api.create(entrypoint=["sh", "-c", "sleep 0.2; exit 3"])["id"]
        began = time.monotonic()
        reply = self.wait(api, sandbox_id, "state=Paused")
        assert time.monotonic() - began < 10
        assert reply.json["status"]["state"] == "Failed" and reply.json["status"]["reason"] == "ENTRYPOINT_FAILED"
        assert api.delete(sandbox_id).status == 204

    def test_of_one_that_is_deleted_meanwhile_is_404(self, api):
        sandbox_id = api.create()["id"]
        replies = []
        waiting = threading.Thread(target=lambda: replies.append(self.wait(api, sandbox_id, "state=Terminated")))
        waiting.start()
        assert api.delete(sandbox_id).status == 204
        waiting.join(10)
        assert_envelope(replies[0], 404, "SANDBOX::NOT_FOUND")

    @pytest.mark.parametrize("query, status, code", [
        ("", 422, "SANDBOX::INVALID_REQUEST"),
        ("state=", 400, "SANDBOX::INVALID_PARAMETER"),
        ("state=Sleeping", 400, "SANDBOX::INVALID_PARAMETER"),
        ("state=Running&timeout=301", 422, "SANDBOX::INVALID_REQUEST"),
        ("state=Running&timeout=x", 422, "SANDBOX::INVALID_REQUEST"),
    ])
    def test_refuses_what_means_nothing(self, api, query, status, code):
        assert_envelope(self.wait(api, "01a1e226-b08d-7fd9-9df5-c7fb7d27b2cb", query), status, code)


class TestEvents:
    def test_the_life_of_a_sandbox_is_streamed(self, service, api):
        stream = Stream(service)
        assert stream.head.header("content-type") == "text/event-stream"
        sandbox_id = api.create()["id"]
        assert api.call("POST", f"/sandboxes/{sandbox_id}/pause").status == 202
        assert api.call("POST", f"/sandboxes/{sandbox_id}/resume").status == 202
        assert api.delete(sandbox_id).status == 204
        events = [stream.event() for _ in range(5)]
        stream.close()
        assert [data["type"] for _, data in events] == ["Created", "Running", "Paused", "Resumed", "Deleted"]
        assert [data.get("state") for _, data in events] == ["Pending", "Running", "Paused", "Running", None]
        assert {data["sandboxId"] for _, data in events} == {sandbox_id}
        numbers = [number for number, _ in events]
        assert numbers == sorted(set(numbers))

    def test_an_end_has_its_reason(self, service, api):
        stream = Stream(service)
        sandbox_id = api.create(entrypoint=["sh", "-c", "sleep 0.2; exit 3"])["id"]
        assert stream.types(2) == ["Created", "Running"]
        _, ended = stream.event()
        assert (ended["type"], ended["state"], ended["reason"]) == ("Ended", "Failed", "ENTRYPOINT_FAILED")
        stream.close()
        assert api.delete(sandbox_id).status == 204

    def test_resumes_where_it_broke_off(self, service, api):
        stream = Stream(service)
        first = api.create()["id"]
        last, _ = stream.event()
        stream.close()
        assert api.delete(first).status == 204
        second = api.create()["id"]
        stream = Stream(service, last)
        missed = [stream.event()[1] for _ in range(4)]
        assert [(data["sandboxId"], data["type"]) for data in missed] == [
            (first, "Running"), (first, "Deleted"), (second, "Created"), (second, "Running")]
        assert api.delete(second).status == 204
        assert stream.types(1) == ["Deleted"]
        stream.close()

    def test_a_stranger_number_is_told(self, service):
        stream = Stream(service, 10**15)
        _, reset = stream.event()
        assert reset["type"] == "Reset" and "GET /sandboxes" in reset["message"]
        stream.close()
        for wrong in ("x", "-1", "9" * 30):
            with rawhttp.Connection(service.address) as connection:
                connection.send_request("GET", "/v1/events", [("Last-Event-ID", wrong)])
                assert_envelope(connection.read_response(), 400, "SANDBOX::INVALID_PARAMETER")

    def test_nothing_is_missed_over_a_kill_of_the_server(self, new_service):
        service = new_service()
        api = Api(service)
        stream = Stream(service)
        sandbox_id = api.create()["id"]
        last, _ = stream.event()
        server = service.server_pid()
        os.kill(server, signal.SIGKILL)
        stream.close()
        wait_for(lambda: service.server_pid() != server and api.call("GET", "/sandboxes").status == 200, 20, "the next server")
        assert api.delete(sandbox_id).status == 204
        stream = Stream(service, last)
        assert stream.types(2) == ["Running", "Deleted"]
        stream.close()

    def test_a_stop_does_not_wait_for_those_who_follow(self, new_service):
        service = new_service()
        api = Api(service)
        sandbox_id = api.create()["id"]
        stream = Stream(service)
        with rawhttp.Connection(service.address) as waiting:
            waiting.send_request("GET", f"/v1/sandboxes/{sandbox_id}/wait?state=Paused&timeout=300")
            assert api.status(sandbox_id)["state"] == "Running"
            began = time.monotonic()
            os.kill(service.server_pid(), signal.SIGTERM)
            reply = waiting.read_response()
            assert reply.status == 200 and reply.json["status"]["state"] == "Running"
            assert stream.connection.read_chunk() == b"", "the stream ends, and is not cut"
            assert time.monotonic() - began < 4
        stream.close()

    def test_only_the_key_opens_it(self, keyed_service):
        reply = rawhttp.request(keyed_service.address, "GET", "/v1/events")
        assert_envelope(reply, 401, "MISSING_API_KEY")
        stream = Stream(keyed_service, key=keyed_service.api_key, path="/events")
        assert stream.head.status == 200
        stream.close()

    def test_too_many_are_told_to_come_back(self, new_service):
        service = new_service()
        streams = [Stream(service) for _ in range(512)]
        reply = rawhttp.request(service.address, "GET", "/v1/events")
        assert_envelope(reply, 503, "SANDBOX::OVERLOADED")
        assert reply.header("retry-after")
        streams.pop().close()
        wait_for(lambda: one_more(service, streams), 10, "the place of one that went")
        for stream in streams:
            stream.close()


def one_more(service, streams):
    stream = Stream(service)
    if stream.head.status == 200:
        streams.append(stream)
        return True
    stream.close()
    return False
