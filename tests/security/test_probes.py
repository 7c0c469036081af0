"""Every probe, inside a sandbox, as its root and as an ordinary user: refused, and it says by what."""

import contextlib
import os
import socket

import pytest

import host
import probes
from lib.api import Api

# Probes that may have nothing to try on some machine, with the reason they give.
MAY_BE_NOT_APPLICABLE = {"io_ports", "other_abi"} if os.uname().machine != "x86_64" else set()
# Without arguments these have nothing to aim at, and say so.
NEED_A_TARGET = {"canary", "host_loopback", "abstract_sockets", "control_sockets", "names"}


@contextlib.contextmanager
def targets(name, service, armed):
    """The arguments that make a probe aim at something real of the host."""
    with contextlib.ExitStack() as stack:
        if name == "canary":
            yield stack.enter_context(host.canaries([service.state_dir, "/etc"]))
        elif name == "host_processes":
            yield [stack.enter_context(host.process()), f"{service.launcher_pid}:launcher"]
        elif name == "host_ipc":
            yield [stack.enter_context(host.shared_memory())]
        elif name == "host_loopback":
            outside = [f"{own_address()}:{service.address[1]}"] if own_address() else []
            yield [stack.enter_context(host.tcp_service()), service.address[1], *outside]
        elif name == "abstract_sockets":
            yield [stack.enter_context(host.abstract_socket())]
        elif name == "control_sockets":
            sockets = sorted((service.state_dir / "run").glob(f"{service.scope.handle(armed.sandbox_id)}*"))
            assert sockets, "the sandbox's own sockets are not where this test looks for them"
            yield sockets
        elif name == "names":
            yield [text.encode().hex() for text in stack.enter_context(neighbour(service))]
        else:
            yield []


@contextlib.contextmanager
def neighbour(service):
    """What another sandbox, one with a device of its own where that is possible, and the service are called."""
    api = Api(service)
    reply = api.post_create(resourceLimits={"disk": "64Mi"})
    other = reply.json["id"] if reply.status == 202 else api.create()["id"]
    try:
        yield [other, str(service.state_dir)]
    finally:
        api.delete(other)


def own_address():
    """An address of this machine other than loopback. Connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    return None


@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize("name", probes.names())
def test_refused(name, who, service, armed):
    members = {} if who == "root" else {"uid": 1000, "gid": 1000}
    with targets(name, service, armed) as arguments:
        verdict = armed.run(name, *arguments, **members)
    if verdict.status == probes.NOT_APPLICABLE and name in MAY_BE_NOT_APPLICABLE:
        pytest.skip(verdict.line)
    verdict.assert_refused()


# How execd starts a process differs by route; what the process may do must not.
STARTED_BY_EXECD = ["leaked_fds", "cwd_escape", "seccomp", "capabilities", "setuid", "initial_namespaces", "tty"]


@pytest.mark.parametrize("name", STARTED_BY_EXECD)
def test_refused_in_a_session(name, api, armed):
    made = api.execd(armed.sandbox_id, "POST", "/session", json={})
    if made.status in (404, 501):
        pytest.skip("this execd has no sessions")
    assert made.status == 200, made
    session = made.json["session_id"]
    try:
        line = f"{armed.PATH} run {name} > /tmp/session-out 2>&1; echo $? > /tmp/session-status"
        reply = api.execd(armed.sandbox_id, "POST", f"/session/{session}/run", json={"command": line})
        assert reply.status == 200, reply
        status = int(api.download(armed.sandbox_id, "/tmp/session-status"))
        output = api.download(armed.sandbox_id, "/tmp/session-out").decode().strip()
        probes.Verdict(name, status, output).assert_refused()
    finally:
        api.execd(armed.sandbox_id, "DELETE", f"/session/{session}")


@pytest.mark.parametrize("name", STARTED_BY_EXECD)
def test_refused_in_the_background(name, api, armed):
    line = f"{armed.PATH} run {name} > /tmp/background-out 2>&1; echo $? > /tmp/background-{name}"
    api.run(armed.sandbox_id, line, background=True)
    waited = api.run(armed.sandbox_id, f"until test -s /tmp/background-{name}; do sleep 0.02; done", timeout=20000)
    assert waited.exit_code == 0
    status = int(api.download(armed.sandbox_id, f"/tmp/background-{name}"))
    probes.Verdict(name, status, api.download(armed.sandbox_id, "/tmp/background-out").decode().strip()).assert_refused()


# What a create request may ask for changes what is mounted inside; what is refused must stay refused.
SHAPES = {
    "plain": {},
    "limited": {"resourceLimits": {"memory": "512Mi", "cpu": "1", "disk": "64Mi", "nofile": "512"}},
    "read-only": {"extensions": {"opensandbox.extensions.read-only-root": "true"}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_refused_as_the_entrypoint(api, make_sandbox, probe_path, shape):
    """The user's own first process has no more than any other."""
    script = (
        "until test -x /tmp/go; do sleep 0.02; done; "
        "for name in $(/tmp/go list | cut -f1); do /tmp/go run $name > /tmp/$name.out 2>&1; echo $? > /tmp/$name.status; done; "
        "touch /tmp/finished; exec tail -f /dev/null"
    )
    sandbox_id = make_sandbox(entrypoint=["sh", "-c", script], **SHAPES[shape])["id"]
    api.upload(sandbox_id, "/tmp/probe", probe_path.read_bytes(), mode=755)
    api.run(sandbox_id, "mv /tmp/probe /tmp/go")  # there as a whole or not at all
    assert api.run(sandbox_id, "until test -e /tmp/finished; do sleep 0.05; done", timeout=120000, client_timeout=130).exit_code == 0
    for name in probes.names():
        status = int(api.download(sandbox_id, f"/tmp/{name}.status"))
        if name in NEED_A_TARGET or name in MAY_BE_NOT_APPLICABLE:
            assert status == probes.NOT_APPLICABLE, name
        else:
            probes.Verdict(name, status, api.download(sandbox_id, f"/tmp/{name}.out").decode().strip()).assert_refused()


def test_the_sandbox_is_unharmed(api, armed):
    """After all of it the sandbox still works: a probe that wrecked it would have hidden what came after."""
    assert api.run(armed.sandbox_id, "echo alive; echo x > /dev/null; ls /proc/self/fd | wc -l").stdout.startswith("alive")
