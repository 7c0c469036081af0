"""Every system call of a create may fail: always a clear error or a sandbox that works, never something left behind.

osb-fault lets the Nth call fail, of the launcher or of the child that becomes the sandbox, for N = 1, 2, … until a create
passes without reaching N. Plain runs take every 9th N; --long takes all.
"""

import errno
import signal
import subprocess

import pytest
from lib import leaks, rawhttp
from lib.api import Api

STRIDE = 9
# A create has some hundred calls; a loop that has not come to an end by then never will.
MOST = 4000


class Fault:
    """The Nth call from here on fails."""

    def __init__(self, service, number, error):
        self.process = subprocess.Popen(
            [service.bin_dir / "osb-fault", str(service.launcher_pid), str(number), str(error)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        """What was made to fail, or nothing."""
        self.process.stdin.close()
        said = self.process.stdout.read()
        self.process.wait(10)
        self.process.stdout.close()
        return said.strip()


def recover(service, where):
    """No answer at all is right in two cases only. The launcher cannot return to its own network namespace: it must not
    go on in a sandbox's, and ends. Its answer to the server is lost: it starts the server again."""
    if service.process.poll() is not None:
        assert service.process.returncode == -signal.SIGABRT, f"{where}: the launcher ended: {service.log_tail()}"
        service.start()
    else:
        assert "does not take its answers" in service.log_tail(), where
        service.wait_healthy()


def create_with_fault(service, api, number, error):
    """Whether the fault was reached. Asserts that what came back is a working sandbox or an explained refusal."""
    fault = Fault(service, number, error)
    try:
        reply = api.post_create()
    except (OSError, rawhttp.Closed):
        recover(service, f"call {number} ({fault.end()})")
        return True
    said = fault.end()
    where = f"call {number} ({said}): {reply.status} {reply.body[:500]}"
    if reply.status == 202:
        ran = api.run(reply.json["id"], "echo alive")
        assert ran.exit_code == 0 and ran.stdout == "alive", where
        assert api.delete(reply.json["id"]).status == 204, where
    else:
        assert said and reply.status in (429, 500, 502, 503), where
        assert reply.json["code"] and len(reply.json["message"]) > 10, where
        service.wait_healthy()  # the launcher may have started the server again, for want of a way to talk to it
    return bool(said)


def fail_every_call(service, error, stride):
    api = Api(service)
    api.delete(api.create()["id"])
    before = leaks.snapshot(service)
    start = 1 if error == errno.ENOMEM else 1 + stride // 2
    for number in range(start, MOST, stride):
        if not create_with_fault(service, api, number, error):
            break
        if number % (stride * 8) == start:
            leaks.assert_nothing_leaked(service, before)
    else:
        pytest.fail(f"{MOST} calls, and no create has passed")
    assert number > 100, "that few calls make no sandbox"
    leaks.assert_nothing_leaked(service, before)


@pytest.mark.parametrize("error", [errno.ENOMEM, errno.EIO], ids=lambda e: errno.errorcode[e])
def test_every_call_of_a_create(new_service, request, error):
    fail_every_call(new_service(), error, 1 if request.config.getoption("--long") else STRIDE)


def test_every_call_of_a_create_without_root(new_rootless, request):
    fail_every_call(new_rootless(), errno.ENOMEM, 1 if request.config.getoption("--long") else STRIDE)
