"""The lifecycle suite, unchanged, with a second runtime's sandboxes, while one of the native runtime lives in the same server."""

import pytest
from lib.api import Api
from test_expiry import test_expired_sandboxes_are_not_listed, test_renewal_moves_it  # noqa: F401
from test_lifecycle import TestCreate, TestDelete, TestEndpoint, TestList, TestMetadataPatch, TestRenew  # noqa: F401
from test_pause import TestOne as TestPause  # noqa: F401
from test_two_runtimes import EXTENSION, run_service

# Its sandboxes have no processes and no execd: they are entries in a file.
NEEDS_PROCESSES = {
    "test_null_environment_entries_are_dropped",
    "test_environment_of_entry_process_and_commands",
    "test_is_done_when_answered",
    "test_states_and_answers",
    "test_an_ended_one_cannot_be_paused",
    "test_every_process_stops",
    "test_a_stream_open_at_pause_goes_on",
    "test_the_time_limit_of_a_command_does_not_run",
    "test_many_clients_pause_resume_and_delete_at_once",
}
# Here every request names its runtime, and the name is given back.
NAMES_NO_RUNTIME = {"test_answer", "test_known_extension_is_given_back"}


class MemoryApi(Api):
    def post_create(self, timeout_seconds=60, **fields):
        extensions = {EXTENSION: "memory", **(fields.pop("extensions", None) or {})}
        return super().post_create(timeout_seconds, extensions=extensions, **fields)


@pytest.fixture(scope="module")
def service(bin_dir):
    yield from run_service(bin_dir)


@pytest.fixture(scope="module")
def api(service):
    native = Api(service)
    neighbour = native.create(metadata={"who": "neighbour"})["id"]
    yield MemoryApi(service)
    assert native.run(neighbour, "echo it lives").stdout == "it lives"
    assert native.delete(neighbour).status == 204


@pytest.fixture(autouse=True)
def _only_what_the_runtime_shows(request):
    if request.function.__name__ in NEEDS_PROCESSES:
        pytest.skip("sandboxes of the second runtime run nothing")
    if request.function.__name__ in NAMES_NO_RUNTIME:
        pytest.skip("what a request gets that names no runtime")
