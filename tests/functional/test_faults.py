"""Every system call of a create may fail: always a clear error or a sandbox that works, never something left behind.

Calls are those of the launcher and of the child that becomes the sandbox. lib/faults.py says which of them fail.
"""

from lib import rawhttp
from lib.api import Api
from lib.disks import no_disks
from lib.faults import Fault, LeakChecks, assert_explained, checks, fail_each, recover  # noqa: F401

LIMITS = {"cpu": "500m", "memory": "128Mi", "pids": "100"}
DISK = {"disk": "32Mi"}


def create_with_fault(service, api, number, error, limits):
    """What came back is a working sandbox or an explained refusal, and the next create works."""
    fault = Fault(service, number, error)
    try:
        reply = api.post_create(resourceLimits=limits)
    except (OSError, rawhttp.Closed):
        recover(service, fault)
        return fault
    fault.end()
    where = f"{fault}: {reply.status} {reply.body[:500]}"
    if reply.status != 202:
        assert fault.what, where
        assert_explained(service, reply, where)
        reply = api.post_create(resourceLimits=limits)
        assert reply.status == 202, f"the next try after {where}: {reply}"
    ran = api.run(reply.json["id"], "echo alive")
    assert ran.exit_code == 0 and ran.stdout == "alive", where
    assert api.delete(reply.json["id"]).status == 204, where
    return fault


def fail_creates(request, checks, sample, limits):
    service = checks.service
    api = Api(service)

    def attempt(number, error):
        fault = create_with_fault(service, api, number, error, limits)
        checks.after_a_try()
        return fault

    fail_each(request, sample, attempt)


def test_every_call_of_a_create(checks, request):
    fail_creates(request, checks, 18, {})


def test_every_call_of_a_create_with_limits(checks, request):
    fail_creates(request, checks, 10, LIMITS)


@no_disks
def test_every_call_of_a_create_with_a_limited_disk(checks, request):
    fail_creates(request, checks, 10, DISK)


def test_every_call_of_a_create_without_root(new_rootless, request):
    checks = LeakChecks(new_rootless(), request)
    fail_creates(request, checks, 8, {})
    checks.at_the_end()
