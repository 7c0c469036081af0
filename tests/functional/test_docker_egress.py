"""Policies of sandboxes that are containers of a Docker engine: a service and its engine in a small internet (lib/netlab.py). Skipped where no engine is installed."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lib.api import Api
from lib.dockerd import new_engine
from lib.netlab import DNS, lab, wait_egress  # noqa: F401
from lib.service import Service
from lib.waiting import wait_for

SLEEPER = ["sleep", "1000"]
CURL = "curl:1"


def import_curl(engine):
    """busybox, and curl with its libraries: what is linked statically looks no names up."""
    root = engine.directory / "curl"
    for name in ("bin", "etc", "tmp", "root"):
        (root / name).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for applet in ("sh", "sleep", "cat", "touch", "test", "true", "ip", "ping", "nc", "nslookup", "grep"):
        (root / "bin" / applet).symlink_to("busybox")
    shutil.copy(shutil.which("curl"), root / "bin/curl")
    libraries = subprocess.run(["ldd", shutil.which("curl")], capture_output=True, check=True, text=True).stdout.split()
    for library in {Path(word) for word in libraries if word.startswith("/")}:
        target = root / str(library).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.resolve(), target)
    tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
    engine.docker("import", "-", CURL, input=tar)
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def engine(lab):  # noqa: F811
    made = new_engine()
    try:
        import_curl(made.start())
        yield made
    finally:
        made.destroy()


def service_of(bin_dir, engine, **egress):
    sections = {"runtime": {"type": "docker"}, "docker": {"socket": str(engine.socket)}, "egress": {"name_servers": [DNS], **egress}}
    return Service(bin_dir, sections=sections, registry={"pull_policy": "never"})


@pytest.fixture(scope="module")
def docker(bin_dir, engine):
    made = service_of(bin_dir, engine)
    try:
        yield made.start()
    finally:
        made.destroy()


@pytest.fixture
def api(docker, engine):
    """Every test leaves no container, no policy and no note behind."""
    api = Api(docker)
    yield api
    for sandbox in api.list_all():
        assert api.delete(sandbox["id"]).status == 204
    wait_for(lambda: not engine.containers(), 20, "no container is left")
    for directory in ("containers", "egress"):
        wait_for(lambda at=docker.state_dir / directory: not list(at.iterdir()), 10, f"{directory} is empty")


def rule(text):
    action, _, target = text.partition(" ")
    return {"action": action, "target": target}


def create(api, *rules, default="deny", **fields):
    policy = {"defaultAction": default, "egress": [rule(text) for text in rules]}
    return api.create(**{"image": {"uri": CURL}, "entrypoint": SLEEPER, "networkPolicy": policy, **fields})["id"]


def get(api, sandbox, url):
    """Status and page, or curl's complaint."""
    done = api.run(sandbox, ["curl", "-sS", "-m", "8", "-w", "%{http_code}", url])
    return f"{done.stdout[-3:]} {done.stdout[:-3].strip()}" if done.exit_code == 0 else done.stderr.strip()


def log(api, sandbox):
    return [json.loads(line) for line in api.call("GET", f"/sandboxes/{sandbox}/egress/log").body.decode().splitlines()]


def test_allowed_and_denied(api, engine, lab):  # noqa: F811
    sandbox = create(api, "allow allowed.test")
    lab.seen()
    (name,) = engine.containers()
    assert engine.inspect(name)["HostConfig"]["NetworkMode"] == "none", "the engine has connected it to nothing"
    assert get(api, sandbox, "http://allowed.test/") == "200 hello allowed.test"
    assert "Could not resolve host" in get(api, sandbox, "http://other.test/")
    assert get(api, sandbox, "http://1.2.3.11/").startswith("403 "), "an address that nobody looked up"
    assert get(api, sandbox, "http://10.9.8.7/").startswith("403 ")
    said = api.run(sandbox, ["sh", "-c", "nslookup allowed.test 8.8.8.8; nslookup other.test 8.8.8.8; true"]).stdout
    assert "1.2.3.10" in said and "NXDOMAIN" in said, "whoever is asked, it is the egress process"
    assert not [seen for seen in lab.seen() if seen.get("to") in ("1.2.3.11", "10.9.8.7") or seen.get("name") == "other.test"]
    denied = [event for event in log(api, sandbox) if event["outcome"] == "denied"]
    assert ("other.test", "default deny") in [(event.get("name"), event["rule"]) for event in denied]


def test_before_the_first_instruction(api, lab):  # noqa: F811
    """The entry process itself finds its policy in force: what it tries first does not leave."""
    lab.seen()
    program = "curl -s -m 5 -o /tmp/denied http://1.2.3.11/; curl -s -m 8 -o /tmp/allowed http://allowed.test/; touch /tmp/done; sleep 1000"
    sandbox = create(api, "allow allowed.test", entrypoint=["sh", "-c", program])
    wait_for(lambda: api.run(sandbox, "test -e /tmp/done").exit_code == 0, 20, "the entry process has tried")
    assert api.run(sandbox, "cat /tmp/allowed").stdout == "hello allowed.test"
    assert not [seen for seen in lab.seen() if seen.get("to") == "1.2.3.11"]


def test_the_interface(api):
    sandbox = create(api, "allow allowed.test")
    path = f"/sandboxes/{sandbox}/networkpolicy"
    assert api.call("GET", path).json["policy"] == {"defaultAction": "deny", "egress": [rule("allow allowed.test")]}
    assert api.call("PATCH", path, json=[rule("allow other.test")]).status == 200
    assert get(api, sandbox, "http://other.test/") == "200 hello other.test", "in force when it is answered"
    assert api.call("DELETE", path, json=["other.test"]).status == 200
    assert get(api, sandbox, "http://1.2.3.11/").startswith("403 ")
    headers = api.call("GET", f"/sandboxes/{sandbox}/endpoints/18080").json["headers"]
    assert api.call("GET", f"/sandboxes/{sandbox}/proxy/18080/policy", headers=headers).json["mode"] == "enforcing"


def test_open_but_nothing_private(api):
    sandbox = create(api, default="allow")
    assert get(api, sandbox, "http://other.test/") == "200 hello other.test"
    for address in ("10.9.8.7", "169.254.169.254", "1.2.3.1"):
        assert get(api, sandbox, f"http://{address}/").startswith("403 "), address


def test_root_inside(api, lab):  # noqa: F811
    """A container's root has no right over its network, and its network leads nowhere else."""
    sandbox = create(api, "allow allowed.test")
    lab.seen()
    run = lambda command: api.run(sandbox, ["sh", "-c", f"{command} 2>&1"])  # noqa: E731
    for command in ("ip addr add 1.2.3.77/24 dev lo", "ip route del default", "ip link set lo down", "ip link add v0 type dummy", "ping -c 1 -W 2 1.2.3.10"):
        assert run(command).exit_code != 0, command
    frames = lab.listen_in()
    said = run("curl -sS -m 2 tftp://1.2.3.11:443/smuggled").stdout  # by UDP
    assert said and "not supported" not in said, said
    assert get(api, sandbox, "http://allowed.test/") == "200 hello allowed.test"
    frames = frames()
    assert [frame for frame in frames if b"GET / HTTP" in frame], "nothing is heard at all"
    assert not [frame for frame in frames if b"smuggled" in frame]
    assert run("ip -o link | grep -v 'lo:' | grep UP").stdout == ""
    assert get(api, sandbox, "http://1.2.3.11/").startswith("403 ")
    # By IPv6 it is refused as well, or has no route where the engine has switched that off.
    assert get(api, sandbox, "http://[2600:1::11]/").startswith(("403 ", "curl: (7)"))
    assert get(api, sandbox, "http://allowed.test/") == "200 hello allowed.test"
    assert {seen.get("to") for seen in lab.seen()} <= {None, "1.2.3.10"}


@pytest.mark.parametrize("who", ["egress", "server", "launcher", "both", "restart"])
def test_it_is_there_again(api, docker, lab, who):  # noqa: F811
    """With the policy as it was changed; and meanwhile nothing leaves."""
    sandbox = create(api, "allow other.test")
    path = f"/sandboxes/{sandbox}/networkpolicy"
    assert api.call("PUT", path, json={"defaultAction": "deny", "egress": [rule("allow allowed.test")]}).status == 200
    lab.seen()
    if who == "egress":
        pid = wait_egress(docker)
        os.kill(pid, signal.SIGKILL)
        wait_egress(docker, other_than=pid)
    elif who == "restart":
        docker.restart()
    else:
        getattr(docker, f"kill_{who}")()
        if docker.process.poll() is not None:
            docker.start()
    wait_for(lambda: get(api, sandbox, "http://allowed.test/") == "200 hello allowed.test", 15, "the way is open again")
    assert get(api, sandbox, "http://1.2.3.11/").startswith("403 ")
    assert api.call("GET", path).json["policy"]["egress"] == [rule("allow allowed.test")]
    assert not [seen for seen in lab.seen() if seen.get("to") == "1.2.3.11"]


def test_pause(api):
    sandbox = create(api, "allow allowed.test")
    path = f"/sandboxes/{sandbox}/networkpolicy"
    assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
    wait_for(lambda: api.status(sandbox)["state"] == "Paused", 20, "it is paused")
    assert api.call("PATCH", path, json=[rule("allow other.test")]).status == 200
    assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
    assert get(api, sandbox, "http://other.test/") == "200 hello other.test"


def test_an_engine_that_dies_changes_nothing(api, engine):
    sandbox = create(api, "allow allowed.test")
    engine.kill()
    try:
        assert get(api, sandbox, "http://allowed.test/") == "200 hello allowed.test"
        assert get(api, sandbox, "http://1.2.3.11/").startswith("403 ")
    finally:
        engine.start()


def test_a_container_that_somebody_starts_again_has_no_way_out(api, docker, engine, lab):  # noqa: F811
    """Its network is a new one, in which nobody has opened anything; the sandbox has ended. Nor has one that takes its place."""
    sandbox = create(api, "allow allowed.test", default="allow")
    (name,) = engine.containers()
    engine.docker("restart", "-t", "0", name)
    wait_for(lambda: api.status(sandbox)["state"] in ("Failed", "Terminated"), 20, "it has ended")
    wait_for(lambda: not list((docker.state_dir / "egress").iterdir()), 10, "its policy is gone")


def test_a_container_in_the_place_of_one_with_a_policy_has_no_way_out(api, docker, engine, lab):  # noqa: F811
    """The same name, the same labels, another process: what the sandbox may reach is not its."""
    sandbox = create(api, "allow allowed.test", default="allow")
    assert get(api, sandbox, "http://allowed.test/") == "200 hello allowed.test"
    (name,) = engine.containers()
    labels = [word for label in engine.inspect(name)["Config"]["Labels"].items() for word in ("--label", "=".join(label))]
    engine.docker("rm", "-f", name)
    engine.docker("run", "-d", "--name", name, *labels, "--network", "none", CURL, *SLEEPER)
    try:
        lab.seen()
        for restarted in (False, True):
            if restarted:
                docker.restart()
            for address in ("http://1.2.3.10/", "http://allowed.test/"):
                tried = engine.docker("exec", name, "curl", "-sS", "-m", "5", address, check=False)
                assert tried.returncode != 0, tried.stdout
        assert not [seen for seen in lab.seen() if seen.get("to") == "1.2.3.10"]
    finally:
        engine.docker("rm", "-f", name, check=False)


def test_without_a_policy_it_has_the_engines_network(api, engine):
    sandbox = api.create(image={"uri": CURL}, entrypoint=SLEEPER)["id"]
    (name,) = engine.containers()
    assert engine.inspect(name)["HostConfig"]["NetworkMode"] == "bridge"
    reply = api.call("GET", f"/sandboxes/{sandbox}/networkpolicy")
    assert reply.status == 502 and "created with networkPolicy" in reply.json["message"], reply


def test_a_service_without_egress_refuses(bin_dir, engine):
    service = service_of(bin_dir, engine, enabled=False)
    try:
        reply = Api(service.start()).post_create(image={"uri": CURL}, entrypoint=SLEEPER, networkPolicy={"defaultAction": "deny"})
        assert reply.status == 400 and reply.json["code"] == "SANDBOX::UNSUPPORTED" and "enabled = true" in reply.json["message"], reply
    finally:
        service.destroy()


def test_a_service_without_egress_copies_none_that_has_a_policy(bin_dir, engine):
    """A copy would have the whole of the engine's network."""
    service = service_of(bin_dir, engine)
    try:
        api = Api(service.start())
        policed, plain = create(api, "allow allowed.test"), api.create(image={"uri": CURL}, entrypoint=SLEEPER)["id"]
        service.stop()
        text = service.config_path.read_text()
        assert "[egress]\n" in text
        service.config_path.write_text(text.replace("[egress]\n", "[egress]\nenabled = false\n"))
        api = Api(service.start())
        wait_for(lambda: api.run(policed, "true").exit_code == 0, 20, "it is taken up")
        for verb in ("fork", "snapshots"):
            reply = api.call("POST", f"/sandboxes/{policed}/{verb}", json={})
            assert reply.status == 503 and "egress switched off" in reply.json["message"], (verb, reply)
        assert len(engine.containers()) == 2
        assert api.call("POST", f"/sandboxes/{plain}/fork", json={}).status in (200, 201, 202)
        for one in api.list_all():
            assert api.delete(one["id"]).status == 204
    finally:
        service.destroy()


@pytest.mark.alone
def test_what_it_costs(api):
    """A create with a policy beside one without, in turns: it asks the engine once more, the launcher and the egress process."""
    taken = {True: [], False: []}
    for _ in range(5):
        for policed in (True, False):
            before = time.monotonic()
            sandbox = create(api, "allow allowed.test") if policed else api.create(image={"uri": CURL}, entrypoint=SLEEPER)["id"]
            taken[policed].append(time.monotonic() - before)
            assert api.delete(sandbox).status == 204
    median = {policed: sorted(times)[2] for policed, times in taken.items()}
    print(f"a create with a policy takes {median[True] * 1000:.0f} ms, one on the engine's bridge {median[False] * 1000:.0f} ms")
    assert median[True] < 1.5 * median[False]
