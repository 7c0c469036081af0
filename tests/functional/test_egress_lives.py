"""The egress process that is killed under load, hosts that have no way out themselves, and how much is remembered (lib/netlab.py)."""

import json
import os
import signal
import socket
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

from lib.netlab import DNS, Lab, egress_pid, ip, lab, wait_egress  # noqa: F401
from lib.waiting import wait_for
from test_egress import QUERY, SECTIONS, Box, Net, net  # noqa: F401
from test_egress_sidecar import rules_in_kernel

LOAD = """
import os, socket, threading, time
def again_and_again(address, port, allowed):
    while True:
        s = socket.socket(); s.settimeout(2)
        try:
            s.connect((address, port)); s.sendall(b"GET / HTTP/1.0\\r\\nHost: allowed.test\\r\\n\\r\\n")
            said = b""
            while piece := s.recv(4096): said += piece
            if allowed and b"hello allowed.test" in said: os.write(1, b"%f\\n" % time.time())
        except OSError: pass
        s.close()
for _ in range(3): threading.Thread(target=again_and_again, args=("1.2.3.10", 80, True)).start()
for port in (80, 7, 8080): threading.Thread(target=again_and_again, args=("1.2.3.11", port, False)).start()
"""


class TestKilledUnderLoad:
    @pytest.mark.alone
    def test_nothing_leaves_and_it_is_back_within_a_second(self, net):  # noqa: F811
        """Programs never stop to try what is allowed and what is denied, while the process is killed again and again."""
        with net.create("allow allowed.test", "allow 1.2.3.10") as box:
            box.api.run(box.id, ["sh", "-c", f"nohup python3 -u -c '{LOAD}' > /tmp/times 2>/dev/null &"])
            times = lambda: [float(line) for line in box.api.run(box.id, "cat /tmp/times").stdout.split()]  # noqa: E731
            wait_for(lambda: len(times()) > 20, 20, "there is load")
            pid, away = wait_egress(net.service), []
            for _ in range(5):
                killed = time.time()
                os.kill(pid, signal.SIGKILL)
                pid = wait_egress(net.service, other_than=pid)
                begun = time.time()
                back = wait_for(lambda since=begun: [one for one in times() if one > since], 10, "it serves again")[0]
                away.append((back - killed, back - begun))
                time.sleep(0.3)
            print("ms without an answer after each kill, and of them with a process:", " ".join(f"{gap * 1000:.0f}/{late * 1000:.0f}" for gap, late in away))
            # The launcher waits longer before each start of one that keeps ending.
            assert max(late for _, late in away) <= 1 and min(gap for gap, _ in away) <= 1, away
            assert not [seen for seen in net.lab.seen() if seen.get("to") == "1.2.3.11"]
            assert box.policy()["egress"] == [{"action": "allow", "target": "allowed.test"}, {"action": "allow", "target": "1.2.3.10"}]


class TestNoWayOut:
    def test_the_host_says_so(self, bin_dir, request):
        """In `osb doctor`, in the answer of the first request, and in the log of the sandbox."""
        from lib.plugin import service_class

        own = Lab().enter()
        request.addfinalizer(own.leave)
        ip("route", "del", "default")
        ip("-6", "route", "del", "default")
        doctor = subprocess.run([bin_dir / "osb", "doctor"], capture_output=True, text=True, timeout=60)
        said = " ".join(doctor.stdout.split())
        assert "way out of the host" in said and "no route to the internet" in said and "give the host a default route" in said, doctor.stdout
        service = service_class(request)(bin_dir, sections=SECTIONS)
        request.addfinalizer(service.destroy)
        alone = Net(service.start(), own)
        with alone.create_plain() as box:
            begun = time.monotonic()
            said = box.get("http://9.9.9.9/")
            assert said.startswith("502 ") and "has no way there itself" in said and "osb doctor" in said, said
            assert time.monotonic() - begun < 5, "at once"
            failed = [event for event in box.log() if event["outcome"] == "failed"]
            assert failed and "unreachable" in failed[-1]["rule"].lower()
            assert box.get("http://allowed.test/") == "200 hello allowed.test", "what has a route is reached"


def host_network():
    """Everything that a firewall, a route or a device of this network namespace is."""
    run = lambda *words: subprocess.run(words, capture_output=True, text=True).stdout  # noqa: E731
    sysctls = {name: Path(f"/proc/sys/net/{name}").read_text() for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/route_localnet")}
    return [run("ip", "-br", "link"), run("ip", "-4", "addr"), run("ip", "-4", "route", "show", "table", "all"), run("ip", "-6", "route", "show", "table", "main"), run("ip", "rule"),
            rules_in_kernel(), sorted(line.split()[0] for line in Path("/proc/net/dev").read_text().splitlines()[2:]), sysctls]  # fmt: skip


class TestTheHost:
    def test_its_network_is_not_touched(self, bin_dir, request):
        """No device, route, address or packet rule while sandboxes speak; and names of its own files mean nothing to them."""
        from lib.plugin import service_class

        own = Lab().enter()
        request.addfinalizer(own.leave)
        wait_for(lambda: "NO-CARRIER" not in host_network()[0], 10, "the lab's own device has settled")
        before = host_network()
        service = service_class(request)(bin_dir, sections=SECTIONS)
        request.addfinalizer(service.destroy)
        served = Net(service.start(), own)
        with served.create("allow allowed.test") as box, served.create_plain() as other:
            assert box.get("http://allowed.test/") == other.get("http://allowed.test/") == "200 hello allowed.test"
            own.seen()
            # localhost, and the host's own name, are in its /etc/hosts: a lookup asks the name server all the same, and asks for nothing longer.
            names = ["localhost", socket.gethostname().lower()]
            said = other.python(QUERY + f"""
print([ask(("1.1.1.1", 53), name)[0] for name in {names!r}])
            """)  # fmt: skip
            assert said == "[3, 3]"
            assert [seen["name"] for seen in own.seen() if seen["what"] == "lookup"] == names
            assert host_network() == before
        service.stop()
        assert host_network() == before


class TestWithoutRoot:
    def test_an_ordinary_users_sandboxes_have_the_same_way_out(self, lab, bin_dir, request):  # noqa: F811
        from lib.rootless import RootlessService, require_user_namespaces

        require_user_namespaces()
        service = RootlessService(bin_dir, sections=SECTIONS)
        request.addfinalizer(service.destroy)
        users = Net(service.start(), lab)
        with users.create("allow allowed.test") as box:
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            assert box.resolve("other.test") == "gaierror -2"
            assert box.get("http://1.2.3.11/").startswith("403 ")
            pid = wait_egress(service)
            os.kill(pid, signal.SIGKILL)
            wait_egress(service, other_than=pid)
            wait_for(lambda: box.get("http://allowed.test/") == "200 hello allowed.test", 10, "the way is open again")
            assert box.get("http://1.2.3.11/").startswith("403 ")
        assert not [seen for seen in lab.seen() if seen.get("to") == "1.2.3.11"]


class TestMemoryOfThePast:
    def test_the_log_is_bounded_and_its_numbers_go_on(self, net):  # noqa: F811
        with net.create("allow allowed.test") as box:
            box.python(textwrap.dedent("""
                import socket
                for n in range(700):
                    try: socket.gethostbyname(f"secret{n}.test")
                    except OSError: pass
            """))
            events = box.log()
            numbers = [event["number"] for event in events]
            assert len(events) == 512 and numbers == list(range(numbers[0], numbers[0] + 512)) and numbers[0] > 188
            reply = box.api.call("GET", f"/sandboxes/{box.id}/egress/log?after={numbers[-1] - 3}")
            assert [json.loads(line)["number"] for line in reply.body.decode().splitlines()] == numbers[-3:]
            assert 0 < len(box.egress("GET").json["recentDenials"]) <= 32


DENY = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "allowed.test"}]}


class TestRestored:
    @pytest.fixture
    def snapshot(self, net):  # noqa: F811
        """Of a sandbox whose policy was changed after it was made."""
        with net.create("allow other.test") as box:
            assert box.api.call("PUT", f"/sandboxes/{box.id}/networkpolicy", json=DENY).status == 200
            made = box.api.call("POST", f"/sandboxes/{box.id}/snapshots").json["id"]
            wait_for(lambda: box.api.call("GET", f"/snapshots/{made}").json["status"]["state"] == "Ready", 20, "the snapshot is ready")
        yield made
        assert net.api.call("DELETE", f"/snapshots/{made}").status == 204

    def restored(self, net, snapshot, **more):  # noqa: F811
        made = net.api.call("POST", "/sandboxes", json={"snapshotId": snapshot, "entrypoint": ["sleep", "600"], "timeout": 600, "resourceLimits": {}, **more})
        assert made.status == 202, made
        wait_for(lambda: net.api.status(made.json["id"])["state"] == "Running", 20, "it runs")
        return Box(net, made.json["id"])

    def test_the_policy_of_then_is_kept(self, net, snapshot):  # noqa: F811
        """Also after a restart: whoever restores it reaches no more than its sandbox did."""
        net.service.restart()
        with self.restored(net, snapshot) as box:
            assert box.policy() == DENY
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            assert box.get("http://1.2.3.11/").startswith("403 ")

    def test_one_that_the_create_names_comes_first(self, net, snapshot):  # noqa: F811
        policy = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "other.test"}]}
        with self.restored(net, snapshot, networkPolicy=policy) as box:
            assert box.policy() == policy

    def test_a_pool_does_not_lose_it(self, net, snapshot):  # noqa: F811
        """A claim has its own policy or none, and none would open what was closed."""
        body = {"name": "closed", "template": {"snapshotId": snapshot, "entrypoint": ["sleep", "600"], "resourceLimits": {}}, "capacitySpec": {"bufferMin": 1, "bufferMax": 1, "poolMin": 0, "poolMax": 1}}
        made = net.api.call("POST", "/pools", json=body)
        assert made.status == 201, made
        try:
            wait_for(lambda: "networkPolicy" in net.api.call("GET", "/pools/closed").json["status"].get("message", ""), 20, "the pool says why it has none")
        finally:
            assert net.api.call("DELETE", "/pools/closed").status == 204
