"""`osb egress serve`: a sidecar that shares a network with what it polices.

The lab's first namespace (lib/netlab.py) is the pod: the sidecar, the test and the programs that the test starts are in it, each as a container of
the pod would be. The second one is the world.
"""

import contextlib
import json
import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from lib import rawhttp
from lib.netlab import DNS, HOST, HOST6, lab  # noqa: F401
from lib.service import child_pids
from lib.waiting import wait_for

AUTH = "OPENSANDBOX-EGRESS-AUTH"
ALLOWED = {"defaultAction": "deny", "egress": [{"action": "allow", "target": "allowed.test"}]}


class Sidecar:
    """One life after the other of a sidecar with the same settings."""

    def __init__(self, bin_dir, directory, **variables):
        self.rules, self.log = directory / "rules", directory / "log"
        self.rules.mkdir(exist_ok=True)
        self.variables = {"DNS_UPSTREAM": DNS, "RULES": json.dumps(ALLOWED), **variables}
        self.program = bin_dir / "osb"
        self.process = None

    def environment(self):
        ours = {f"OPENSANDBOX_EGRESS_{name}": value for name, value in self.variables.items() if value is not None}
        return {"PATH": os.environ["PATH"], **ours}

    def launch(self, **more):
        # Its own /var, with the operator's lists where a container has them.
        script = f"mount -t tmpfs none /var && mkdir /var/egress && ln -s {self.rules} /var/egress/rules && exec {shlex.quote(str(self.program))} egress serve"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], env={**self.environment(), **more}, stdout=log, stderr=log)
        return self

    def start(self, **more):
        self.launch(**more)
        wait_for(lambda: self.process.poll() is not None or self.healthy(), 10, "the sidecar answers")
        assert self.process.poll() is None, self.text()
        return self

    def healthy(self):
        try:
            return self.call("GET", "/healthz").status == 200
        except OSError:
            return False

    def call(self, method, path, body=None, token=None, host="127.0.0.1"):
        headers = {AUTH: token} if token else {}
        return rawhttp.request((host, int(self.variables.get("HTTP_ADDR", ":18080").rpartition(":")[2])), method, path, headers=headers, body=json.dumps(body).encode() if body is not None else b"")

    def end(self, how=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
        return self.process and self.process.wait(10)

    def text(self):
        return self.log.read_text()


@pytest.fixture
def sidecar(lab, bin_dir, tmp_path):  # noqa: F811
    made = []

    def make(**variables):
        made.append(Sidecar(bin_dir, tmp_path, **variables))
        return made[-1]

    lab.seen()
    yield make
    for one in made:
        one.end(signal.SIGKILL)


def program(text, timeout=30):
    """A program of the pod."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=timeout)
    return done.stdout.strip() or done.stderr.strip()[-300:]


def get(url, timeout=8):
    return program(f"""
        import urllib.request, urllib.error, ssl
        context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}), urllib.request.HTTPSHandler(context=context))
        try: print(opener.open({url!r}, timeout={timeout}).read().decode())
        except urllib.error.HTTPError as e: print(e.code, e.read().decode())
        except urllib.error.URLError as e: print(type(e.reason).__name__, e.reason)
        except OSError as e: print(type(e).__name__, e)
    """)


def question(name, kind=1):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def look_up(name, kind=1, server="8.8.8.8", over="udp", family=socket.AF_INET, timeout=4):
    """The code of the answer and how many records it has; or the kind of failure."""
    asked = question(name, kind)
    with socket.socket(family, socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM) as asking:
        asking.settimeout(timeout)
        try:
            asking.connect((server, 53))
            if over == "udp":
                asking.send(asked)
                answer = asking.recv(4096)
            else:
                asking.sendall(struct.pack("!H", len(asked)) + asked)
                size = struct.unpack("!H", asking.recv(2, socket.MSG_WAITALL))[0]
                answer = asking.recv(size, socket.MSG_WAITALL)
        except OSError as error:
            return type(error).__name__
    return answer[3] & 15, struct.unpack("!H", answer[6:8])[0]


class TestPolice:
    def test_allowed_and_denied(self, lab, sidecar):  # noqa: F811
        sidecar().start()
        assert get("http://allowed.test/") == "hello allowed.test"
        assert get("https://allowed.test/") == "hello allowed.test"
        assert get("http://other.test/").startswith("gaierror")
        began = time.monotonic()
        assert get("http://1.2.3.11/").startswith("403 The network policy")
        assert get("https://1.2.3.11/").startswith("SSLError")
        assert time.monotonic() - began < 3
        assert {seen.get("host") for seen in lab.seen() if seen["what"] == "request"} == {"allowed.test"}

    def test_ipv6(self, lab, sidecar):  # noqa: F811
        sidecar().start()
        assert look_up("allowed.test", 28, "2600:1::11", family=socket.AF_INET6) == (0, 1)
        assert get("http://[2600:1::10]/").startswith("hello")
        assert get("http://[2600:1::11]/").startswith("403")
        assert not [seen for seen in lab.seen() if seen.get("to") == "2600:1::11"]

    @pytest.mark.parametrize("over", ["udp", "tcp"])
    def test_lookups(self, lab, sidecar, over):  # noqa: F811
        sidecar().start()
        for server in ("8.8.8.8", "127.0.0.53", DNS):
            assert look_up("allowed.test", server=server, over=over) == (0, 1)
            assert look_up("other.test", server=server, over=over) == (3, 0)
        assert {seen["name"] for seen in lab.seen()} == {"allowed.test"}

    def test_nothing_else_leaves(self, lab, sidecar):  # noqa: F811
        sidecar(RULES=json.dumps({"defaultAction": "allow"})).start()
        refused = program("""
            import socket
            for family, to in ((socket.AF_INET, ("1.2.3.10", 443)), (socket.AF_INET6, ("2600:1::10", 443))):
                s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(3)
                try: s.sendto(b"quic", to); s.connect(to); s.send(b"quic"); s.recv(1)
                except OSError as e: print(type(e).__name__, end=" ")
        """)
        assert refused.split() in (["PermissionError"] * 2, ["ConnectionRefusedError"] * 2), refused
        sniffer = lab.listen_in()
        program("""
            import socket
            s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            s.sendto(bytes([8, 0, 0xe5, 0xca]) + b"\\0\\1\\0\\1secret", ("1.2.3.10", 0))
        """)
        assert not [frame for frame in sniffer() if b"secret" in frame]

    def test_a_device_of_ones_choice_is_no_way_out(self, lab, sidecar):  # noqa: F811
        """A socket that is bound to the device keeps to it when it is turned; then it goes nowhere."""
        sidecar(RULES="{}").start()
        sniffer = lab.listen_in()
        out = program("""
            import socket
            for kind, to in ((socket.SOCK_DGRAM, ("8.8.8.8", 53)), (socket.SOCK_STREAM, ("1.2.3.10", 80)), (socket.SOCK_STREAM, ("127.0.0.1", 80)), (socket.SOCK_DGRAM, ("127.0.0.1", 5353))):
                s = socket.socket(socket.AF_INET, kind); s.settimeout(1)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"up0")
                try: s.connect(to); s.send(b"secret"); s.recv(1); print("answered")
                except OSError as e: print("failed", end=" ")
        """)
        assert "answered" not in out
        assert [frame for frame in sniffer() if b"secret" in frame or frame[12:14] == b"\x08\x00"] == []

    @pytest.mark.parametrize("mark", [1, 0x6F736269])
    def test_a_mark_is_no_way_out(self, lab, sidecar, mark):  # noqa: F811
        """Root of the workload may set marks; those of the sidecar's own packets are not to be guessed."""
        sidecar(RULES="{}").start()
        out = program(f"""
            import socket
            s = socket.socket(); s.settimeout(3)
            s.setsockopt(socket.SOL_SOCKET, 36, {mark})
            try: s.connect(("1.2.3.10", 80)); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(100))
            except OSError as e: print(type(e).__name__)
        """)
        assert "403" in out
        assert not lab.seen()

    def test_the_pod_itself_and_those_who_come(self, lab, sidecar):  # noqa: F811
        """Connections within the pod and answers to those from outside are nobody's business."""
        sidecar(RULES="{}").start()
        with socket.create_server(("", 9000)) as server:
            for address in ("127.0.0.1", HOST):
                with socket.create_connection((address, 9000), 3):
                    server.accept()[0].close()
            assert lab.outside(f"import socket; s = socket.create_connection(('{HOST}', 9000), 3); print(s.recv(10))", while_=lambda: answer(server)) == "b'hi'"
        assert lab.outside(f"import urllib.request; print(urllib.request.urlopen('http://{HOST}:18080/healthz').read())") == "b'ok'"
        assert lab.outside(f"import urllib.request; print(urllib.request.urlopen('http://[{HOST6}]:18080/healthz').read())") == "b'ok'"

    @pytest.mark.parametrize("first", ["we", "they"])
    def test_what_was_open_before_is_cut(self, lab, sidecar, first):  # noqa: F811
        """A connection from before the sidecar's first start does not go on, whoever is the first to speak then."""
        flush()
        world = lab.start_outside("""
            import socket, time
            server = socket.create_server(("1.2.3.10", 9100)); print("listening", flush=True)
            client, _ = server.accept()
            for _ in range(30): client.sendall(b"tick"); time.sleep(0.1)
        """)
        assert world.stdout.readline() == "listening\n"
        try:
            with socket.create_connection(("1.2.3.10", 9100), 3) as early:
                assert early.recv(4) == b"tick"
                sniffer = lab.listen_in()
                early.sendall(b"before")
                sidecar(RULES="{}").start()
                if first == "they":
                    time.sleep(0.5)
                with contextlib.suppress(OSError):
                    for _ in range(5):
                        early.sendall(b"secret")
                        time.sleep(0.1)
                frames = sniffer()
                assert [frame for frame in frames if b"before" in frame]
                assert not [frame for frame in frames if b"secret" in frame]
        finally:
            world.kill()
            world.wait()


def answer(server):
    client, _ = server.accept()
    with client:
        client.sendall(b"hi")


def flush():
    """Takes the packet rules away, which nothing else does: the network is as before the first sidecar."""
    inet, nftables, delete, name = 1, 10, 2, struct.pack("=HH", 16, 1) + b"opensandbox\0"
    message = lambda kind, family, where, flags=0, rest=b"": struct.pack("=IHHIIBBH", 20 + len(rest), kind, 1 | flags, 1, 0, family, 0, socket.htons(where)) + rest  # noqa: E731
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_NETFILTER if hasattr(socket, "NETLINK_NETFILTER") else 12) as netlink:
        netlink.settimeout(3)
        netlink.send(message(16, 0, nftables) + message(nftables << 8 | delete, inet, 0, 4, name) + message(17, 0, nftables))
        error = struct.unpack("=i", netlink.recv(4096)[16:20])[0]
        assert error in (0, -2), os.strerror(-error)


def rules_in_kernel():
    """The packet rules of every table, as the kernel tells them."""
    dump = struct.pack("=IHHIIBBH", 20, 10 << 8 | 7, 0x301, 1, 0, 0, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as netlink:
        netlink.settimeout(3)
        netlink.send(dump)
        rules = []
        while True:
            data = netlink.recv(1 << 16)
            while data:
                size, kind = struct.unpack("=IH", data[:6])
                if kind == 3:
                    return rules
                rules.append(data[16:size])
                data = data[(size + 3) & ~3 :]


class TestApi:
    def test_token(self, sidecar):
        one = sidecar(TOKEN="right").start()
        for wrong in (None, "wrong", "right1", "righ"):
            reply = one.call("GET", "/policy", token=wrong)
            assert (reply.status, reply.body) == (401, b"unauthorized\n")
        assert one.call("GET", "/policy", token="right").json["policy"] == ALLOWED
        assert one.call("GET", "/healthz").body == b"ok"
        assert one.call("GET", "/metrics").status == 401
        assert b"opensandbox_egress_lookups_total" in one.call("GET", "/metrics", token="right").body

    def test_without_a_token_it_is_open_and_says_so(self, sidecar):
        one = sidecar().start()
        assert one.call("GET", "/policy").status == 200
        assert "OPENSANDBOX_EGRESS_TOKEN is not set" in one.text()

    def test_a_patch_is_in_force_when_it_is_answered(self, sidecar):
        one = sidecar().start()
        for _ in range(20):
            assert one.call("PATCH", "/policy", [{"action": "allow", "target": "other.test"}]).status == 200
            assert look_up("other.test") == (0, 1)
            assert one.call("DELETE", "/policy", ["other.test"]).status == 200
            assert look_up("other.test") == (3, 0)

    def test_a_patch_cuts(self, sidecar):
        one = sidecar().start()
        assert look_up("allowed.test") == (0, 1)
        with socket.create_connection(("1.2.3.10", 7), 3) as held:
            held.sendall(b"word")
            assert held.recv(100) == b"welcome\n"
            one.call("DELETE", "/policy", ["allowed.test"])
            with pytest.raises(ConnectionResetError):
                held.recv(100)

    def test_most_rules(self, sidecar):
        one = sidecar(MAX_RULES="2").start()
        rules = [{"action": "allow", "target": f"n{i}.test"} for i in range(3)]
        assert one.call("PATCH", "/policy", rules[:1]).status == 200
        reply = one.call("PATCH", "/policy", rules)
        assert (reply.status, reply.body) == (413, b"egress rule total count 4 exceeds limit 2\n")
        assert one.call("PUT", "/policy", {"egress": rules}).status == 413
        one.end()
        one.variables["MAX_RULES"] = "0"
        many = {"egress": [{"action": "allow", "target": f"n{i}.test"} for i in range(5000)]}
        assert one.start().call("PUT", "/policy", many).status == 200

    def test_address(self, sidecar):
        one = sidecar(HTTP_ADDR="127.0.0.1:18099").start()
        assert one.call("GET", "/policy").status == 200
        with pytest.raises(OSError):
            one.call("GET", "/policy", host=HOST)


class TestTraps:
    """What is known to go wrong with sidecars, and must not here."""

    @pytest.mark.parametrize("kind", [1, 5, 12, 16, 28, 33, 64, 65, 255])
    def test_a_denied_name_does_not_exist_for_any_type(self, lab, sidecar, kind):  # noqa: F811
        sidecar().start()
        assert look_up("other.test", kind) == (3, 0)
        assert not lab.seen()

    def test_search_lists_go_on(self, sidecar, tmp_path):
        """The name with the first domain behind it is denied and so does not exist; the next one is tried."""
        sidecar(RULES=json.dumps({"egress": [{"action": "allow", "target": "allowed.test"}]})).start()
        resolv = tmp_path / "resolv.conf"
        resolv.write_text("nameserver 8.8.8.8\nsearch denied.test test\noptions ndots:2 timeout:2\n")
        script = f"mount --bind {resolv} /etc/resolv.conf && exec {sys.executable} -c 'import socket; print(socket.gethostbyname(\"allowed\"))'"
        assert subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True).stdout.strip() == "1.2.3.10"

    @pytest.mark.parametrize(("first", "code", "asked"), [(5301, 0, 2), (5302, 3, 1), (5303, 0, 1)])
    def test_whose_answer_counts(self, lab, sidecar, first, code, asked):  # noqa: F811
        """A failure is no answer: the next server is asked. "No such name" and "no such record" are."""
        sidecar(DNS_UPSTREAM=f"{DNS}:{first},{DNS}").start()
        assert look_up("allowed.test") == (code, 1 if first == 5301 else 0)
        assert len(lab.seen()) == asked

    def test_the_first_connect_after_a_lookup(self, sidecar):
        """A thousand times, of a name whose time is a second."""
        sidecar(RULES=json.dumps({"egress": [{"action": "allow", "target": "brief.test"}]})).start()
        out = program("""
            import socket
            failed = 0
            for _ in range(1000):
                try: socket.create_connection((socket.gethostbyname("brief.test"), 7), 5).close()
                except OSError as e: failed += 1
            print(failed)
        """, timeout=120)  # fmt: skip
        assert out == "0"

    @pytest.mark.parametrize("default", ["allow", "deny"])
    def test_dns_over_tls_is_closed(self, lab, sidecar, default):  # noqa: F811
        sidecar(RULES=json.dumps({"defaultAction": default, "egress": [{"action": "allow", "target": "allowed.test"}]})).start()
        assert look_up("allowed.test") == (0, 1)
        lab.seen()
        with contextlib.suppress(OSError), socket.create_connection(("1.2.3.10", 853), 3) as tried:
            assert tried.recv(100) == b""
        assert not lab.seen()

    def test_addresses_deny_before_they_allow(self, lab, sidecar):  # noqa: F811
        """In any order; also what an allowed name leads to, and what the operator's list has."""
        rules = [{"action": "allow", "target": target} for target in ("1.2.3.10", "allowed.test", "other.test")]
        one = sidecar(RULES=json.dumps({"egress": [*rules, {"action": "deny", "target": "1.2.3.10/31"}]})).start()
        assert look_up("allowed.test") == (0, 0) and look_up("other.test") == (0, 0)
        assert get("http://1.2.3.10/").startswith("403") and get("http://1.2.3.11/").startswith("403")
        assert not [seen for seen in lab.seen() if seen["what"] == "request"]
        assert one.call("GET", "/policy").json["mode"] == "enforcing"

    def test_an_allowed_name_does_not_open_what_is_private(self, lab, sidecar):  # noqa: F811
        names = ("metadata.test", "private.test", "host.test", "loop.test")
        sidecar(RULES=json.dumps({"egress": [{"action": "allow", "target": name} for name in names]})).start()
        for name in names:
            assert look_up(name) == (0, 0), name
        assert get("http://169.254.169.254/").startswith("403") and get("http://10.9.8.7/").startswith("403")
        assert not [seen for seen in lab.seen() if seen["what"] == "request"]

    def test_rules_do_not_pile_up(self, sidecar):
        flush()
        one = sidecar().start()
        count = len(rules_in_kernel())
        assert count > 0
        for _ in range(3):
            one.end(signal.SIGKILL)
            one.start()
        assert len(rules_in_kernel()) == count


class TestLives:
    def test_killed_it_is_closed(self, lab, sidecar):  # noqa: F811
        one = sidecar().start()
        assert get("http://allowed.test/") == "hello allowed.test"
        for how in (signal.SIGKILL, signal.SIGTERM):
            one.end(how)
            lab.seen()
            began = time.monotonic()
            assert look_up("allowed.test") in ("ConnectionRefusedError", "PermissionError")
            assert look_up("allowed.test", over="tcp") == "ConnectionRefusedError"
            assert "ConnectionRefused" in get("http://1.2.3.10/")
            assert "ConnectionRefused" in get("http://[2600:1::10]/")
            assert time.monotonic() - began < 3
            assert not lab.seen()
            one.start()
            assert get("http://allowed.test/") == "hello allowed.test"

    def test_under_load(self, lab, sidecar):  # noqa: F811
        """Programs that never stop trying, while it is killed again and again: nothing that is denied ever arrives."""
        one = sidecar().start()
        busy = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
            import socket
            while True:
                for to in (("1.2.3.11", 80), ("1.2.3.11", 7)):
                    s = socket.socket(); s.settimeout(1)
                    try: s.connect(to); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); s.recv(100)
                    except OSError: pass
                    s.close()
        """)])  # fmt: skip
        try:
            for _ in range(5):
                time.sleep(0.3)
                one.end(signal.SIGKILL)
                one.start()
        finally:
            busy.kill()
            busy.wait()
        assert not [seen for seen in lab.seen() if seen.get("to") == "1.2.3.11"]

    def test_its_port_may_be_taken_meanwhile(self, sidecar):
        one = sidecar().start()
        one.end(signal.SIGKILL)
        with socket.create_server(("127.0.0.1", 64053)):
            one.start()
            assert get("http://allowed.test/") == "hello allowed.test"
        one.end(signal.SIGKILL)
        one.start()
        assert get("http://allowed.test/") == "hello allowed.test"

    def test_changes_are_kept_in_the_file(self, sidecar, tmp_path):
        path = tmp_path / "policy.json"
        one = sidecar(POLICY_FILE=str(path)).start()
        one.call("PATCH", "/policy", [{"action": "allow", "target": "other.test"}])
        kept = json.loads(path.read_text())
        assert kept["egress"][0] == {"action": "allow", "target": "other.test"} and path.stat().st_mode & 0o777 == 0o600
        assert path.read_text().startswith('{\n  "egress": [') and path.read_text().endswith("}\n")
        one.end(signal.SIGKILL)
        assert one.start().call("GET", "/policy").json["policy"] == kept
        # One that nobody can read does not count, and that is said.
        for text in ("", "{"):
            one.end()
            path.write_text(text)
            assert one.start().call("GET", "/policy").json["policy"] == ALLOWED
        assert one.text().count("the policy file is not used") == 2

    def test_without_a_file_a_restart_begins_anew(self, sidecar):
        one = sidecar().start()
        one.call("PATCH", "/policy", [{"action": "allow", "target": "other.test"}])
        one.end(signal.SIGKILL)
        assert one.start().call("GET", "/policy").json["policy"] == ALLOWED

    def test_a_file_that_cannot_be_written(self, sidecar, tmp_path):
        one = sidecar(POLICY_FILE=str(tmp_path / "gone" / "policy.json")).start()
        reply = one.call("PATCH", "/policy", [{"action": "allow", "target": "other.test"}])
        assert reply.status == 500 and reply.body.startswith(b"failed to persist policy")
        assert look_up("other.test") == (3, 0)


class TestSettings:
    @pytest.mark.parametrize(
        ("variables", "says"),
        [
            ({"RULES": "{"}, "OPENSANDBOX_EGRESS_RULES"),
            ({"RULES": '{"defaultAction":"maybe"}'}, "OPENSANDBOX_EGRESS_RULES: defaultAction"),
            ({"RULES": '{"egress":[{"action":"allow","target":"*"}]}'}, "OPENSANDBOX_EGRESS_RULES"),
            ({"MODE": "dns+ntf"}, "OPENSANDBOX_EGRESS_MODE: must be dns or dns+nft"),
            ({"MODE": "nft"}, "OPENSANDBOX_EGRESS_MODE"),
            ({"DNS_UPSTREAM": "resolver.test"}, "OPENSANDBOX_EGRESS_DNS_UPSTREAM"),
            ({"DNS_UPSTREAM": " , "}, "OPENSANDBOX_EGRESS_DNS_UPSTREAM: names no server"),
            ({"HTTP_ADDR": "18080"}, "OPENSANDBOX_EGRESS_HTTP_ADDR"),
            ({"POLICY_FILE": "policy.json"}, "OPENSANDBOX_EGRESS_POLICY_FILE"),
            ({"DENY_WEBHOOK": "ftp://hook.test/"}, "OPENSANDBOX_EGRESS_DENY_WEBHOOK"),
            ({"MITMPROXY_TRANSPARENT": "true"}, "OPENSANDBOX_EGRESS_MITMPROXY_TRANSPARENT: asks for interception"),
        ],
    )
    def test_wrong_ones_leave_it_closed(self, lab, sidecar, variables, says):  # noqa: F811
        flush()
        one = sidecar(**variables).launch()
        assert one.process.wait(10) == 1
        assert says in one.text()
        assert "ConnectionRefused" in get("http://1.2.3.10/")
        assert look_up("allowed.test") in ("ConnectionRefusedError", "PermissionError")

    def test_none_at_all(self, lab, bin_dir):  # noqa: F811
        """Whoever tries it out on a machine does not lose its network."""
        flush()
        done = subprocess.run([bin_dir / "osb", "egress", "serve"], env={}, capture_output=True, text=True)
        assert done.returncode == 1 and "OPENSANDBOX_EGRESS_" in done.stderr
        assert get("http://1.2.3.10/") == "hello 1.2.3.10"

    def test_without_the_right(self, lab, bin_dir):  # noqa: F811
        done = subprocess.run(["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", bin_dir / "osb", "egress", "serve"], env={"PATH": os.environ["PATH"], "OPENSANDBOX_EGRESS_RULES": "{}"}, capture_output=True, text=True)
        assert done.returncode == 1 and "NET_ADMIN" in done.stderr

    def test_those_without_a_meaning_are_named(self, sidecar):
        names = ["DNS_UPSTREAM_PROBE", "DNS_UPSTREAM_PROBE_INTERVAL_SEC", "NAMESERVER_EXEMPT", "METRICS_EXTRA_ATTRS", "MITMPROXY_PORT", "MITMPROXY_SCRIPT", "MITMPROXY_UPSTREAM_TRUST_DIR", "MITMPROXY_SSL_INSECURE", "NOBODY_KNOWS"]
        one = sidecar(**dict.fromkeys(names, "1"), MITMPROXY_TRANSPARENT="false", MODE="DNS + nft")
        others = ["OPENSANDBOX_CREDENTIAL_PROXY_SOCKET", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"]
        one.start(**dict.fromkeys(others, "/x"), OPENSANDBOX_LOG_OUTPUT="/var/log/egress.log")
        for name in [*(f"OPENSANDBOX_EGRESS_{n}" for n in names), *others, "OPENSANDBOX_LOG_OUTPUT"]:
            assert [line for line in one.text().splitlines() if "WARN" in line and name in line], name
        assert "MITMPROXY_TRANSPARENT" not in one.text()

    def test_an_exempt_name_server_is_not(self, lab, sidecar):  # noqa: F811
        sidecar(NAMESERVER_EXEMPT=DNS).start()
        assert look_up("other.test", server=DNS) == (3, 0)
        assert not lab.seen()

    def test_name_servers_of_the_container(self, sidecar):
        one = sidecar(DNS_UPSTREAM=None)
        script = f"mount -t tmpfs none /var && echo nameserver {DNS} > /var/resolv.conf && mount --bind /var/resolv.conf /etc/resolv.conf && exec {one.program} egress serve"
        with one.log.open("ab") as log:
            one.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], env=one.environment(), stdout=log, stderr=log)
        wait_for(one.healthy, 10, "the sidecar answers")
        assert look_up("allowed.test") == (0, 1)

    def test_the_next_name_server_after_so_many_seconds(self, sidecar):
        sidecar(DNS_UPSTREAM=f"1.2.3.99, {DNS}:53", DNS_UPSTREAM_TIMEOUT="2").start()
        began = time.monotonic()
        assert look_up("allowed.test", timeout=8) == (0, 1)
        assert 1.9 < time.monotonic() - began < 5

    def test_dns_over_https(self, sidecar):
        rules = json.dumps({"defaultAction": "allow"})
        one = sidecar(RULES=rules, BLOCK_DOH_443="yes", DOH_BLOCKLIST="1.2.3.11, 2600:1::11/128, nonsense").start()
        assert get("https://1.2.3.10/") == "hello 1.2.3.10"
        assert get("https://1.2.3.11/").startswith("SSLError") and get("https://[2600:1::11]/").startswith("SSLError")
        assert get("http://1.2.3.11/") == "hello 1.2.3.11"
        assert "OPENSANDBOX_EGRESS_DOH_BLOCKLIST" in one.text()
        one.end()
        del one.variables["DOH_BLOCKLIST"]
        one.start()
        assert get("https://1.2.3.10/").startswith("SSLError")
        assert get("http://1.2.3.10/") == "hello 1.2.3.10"

    def test_webhook_and_id(self, lab, sidecar):  # noqa: F811
        """It is told although the policy allows nobody to go there."""
        sidecar(DENY_WEBHOOK="http://1.2.3.12:8080/denied", SANDBOX_ID="box-7").start()
        assert look_up("Secret.test") == (3, 0)
        posts = []
        wait_for(lambda: posts.extend(seen for seen in lab.seen() if seen["what"] == "post") or posts, 5, "a post")
        body = json.loads(posts[0]["body"])
        assert (body["hostname"], body["sandboxId"], body["source"]) == ("secret.test", "box-7", "opensandbox-egress")

    def test_webhook_by_tls(self, lab, sidecar, tmp_path):  # noqa: F811
        """By a second process that has no right and no packet rule lets pass: it gets connections that are made already."""
        trusted = tmp_path / "ca.pem"
        trusted.write_bytes((lab.directory / "ca.pem").read_bytes())  # its own /var hides the lab's
        one = sidecar(DENY_WEBHOOK="https://other.test/flaky-sidecar?x=1", SANDBOX_ID="box-8").start(SSL_CERT_FILE=str(trusted))
        assert look_up("secret.test") == (3, 0)
        posts = []
        wait_for(lambda: posts.extend(seen for seen in lab.seen() if seen["what"] == "post") or len(posts) == 2, 8, "it is posted, and again after a failure")
        assert {(post["host"], post["path"]) for post in posts} == {("other.test", "/flaky-sidecar?x=1")}
        assert json.loads(posts[1]["body"])["hostname"] == "secret.test" and json.loads(posts[1]["body"])["sandboxId"] == "box-8"
        (child,) = child_pids(one.process.pid)
        status = Path(f"/proc/{child}/status").read_text()
        assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
        assert "ConnectionReset" in get("http://other.test/") or "gaierror" in get("http://other.test/"), "the policy denies that host still"
        one.end(signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{child}").exists() or "Z (zombie)" in Path(f"/proc/{child}/status").read_text(), 5, "it ends with the sidecar")

    def test_webhook_by_tls_to_nobody_who_cannot_prove_himself(self, lab, sidecar):  # noqa: F811
        one = sidecar(DENY_WEBHOOK="https://other.test/denied").start()
        assert look_up("secret.test") == (3, 0)
        wait_for(lambda: 'webhook_total{outcome="failed"} 1' in one.call("GET", "/metrics").body.decode(), 20, "it is given up")
        assert not [seen for seen in lab.seen() if seen["what"] == "post"]
        assert "not reached" in one.text()

    def test_what_is_not_logged(self, sidecar):
        """Nothing that succeeds is; the list of it has to be one, and no more."""
        one = sidecar()
        (one.rules / "log_skip.always").write_text("# quiet\nallowed.test\n*.wild.test\n")
        one.start()
        before = one.text()
        assert look_up("allowed.test") == (0, 1)
        assert one.text() == before and "log_skip" not in before
        one.end()
        for wrong, says in (("http://no/\n", "log_skip.always: line 1"), ("10.0.0.0/8\n", "log_skip.always: only names")):
            (one.rules / "log_skip.always").write_text(wrong)
            one.launch()
            assert one.process.wait(10) == 1 and says in one.text()

    def test_the_operators_lists(self, sidecar):
        one = sidecar()
        (one.rules / "deny.always").write_text("# of the operator\n\nother.test\n127.0.0.0/8\n")
        (one.rules / "allow.always").write_text("private.test\n")
        one.variables["RULES"] = json.dumps({"defaultAction": "allow"})
        one.start()
        assert look_up("other.test") == (3, 0) and look_up("allowed.test") == (0, 1)
        assert get("http://private.test/") == "hello private.test"
        # They are read again while it runs.
        (one.rules / "deny.always").write_text("allowed.test\n")
        wait_for(lambda: look_up("allowed.test") == (3, 0), 61, "the list is read again")
        assert look_up("other.test") == (0, 1)
        (one.rules / "deny.always").write_text("http://no/\n")
        wait_for(lambda: "stay as they were" in one.text(), 61, "the bad one is noticed")
        assert look_up("allowed.test") == (3, 0)
        one.end()
        one.launch()
        assert one.process.wait(10) == 1 and "deny.always: line 1" in one.text()

    def test_log_level_and_output(self, sidecar, tmp_path):
        one = sidecar(LOG_LEVEL="error")
        one.start()
        assert look_up("other.test") == (3, 0)
        assert one.text() == ""
        one.end()
        one.variables["LOG_LEVEL"] = "info"
        one.start(OPENSANDBOX_LOG_OUTPUT="stdout")
        assert "egress policy loaded" in one.text()


def test_memory(sidecar):
    """Of the process, as a container's limit counts it."""
    one = sidecar().start()
    for _ in range(50):
        assert get("http://allowed.test/") == "hello allowed.test"
    rollup = open(f"/proc/{one.process.pid}/smaps_rollup").read()
    pss = int(rollup.split("\nPss:")[1].split()[0])
    assert pss < 4096, f"{pss} kB"
