"""What sandboxes reach, and what not: a service in a small internet of its own (lib/netlab.py)."""

import json
import textwrap
import threading
import time

import pytest
from lib.api import Api
from lib.netlab import DNS, egress_pid, lab, wait_egress  # noqa: F401
from lib.waiting import wait_for

SECTIONS = {"egress": {"name_servers": [DNS]}}
AUTH = "OPENSANDBOX-EGRESS-AUTH"


@pytest.fixture(scope="module")
def net(lab, bin_dir, request):  # noqa: F811
    from lib.plugin import service_class

    service = service_class(request)(bin_dir, sections=SECTIONS)
    request.addfinalizer(service.destroy)
    service.start()
    return Net(service, lab)


class Net:
    def __init__(self, service, lab):  # noqa: F811
        self.service, self.lab, self.api = service, lab, Api(service)

    def create(self, *rules, default="deny", **more):
        self.lab.seen()
        policy = {"defaultAction": default, "egress": [rule_of(rule) for rule in rules]}
        return Box(self, self.api.create(networkPolicy=policy, **more)["id"])

    def create_plain(self, **more):
        self.lab.seen()
        return Box(self, self.api.create(**{**self.service.open_network, **more})["id"])


def rule_of(text):
    action, _, target = text.partition(" ")
    return {"action": action, "target": target}


class Box:
    """A sandbox with what tests try in it."""

    def __init__(self, net, sandbox):
        self.net, self.api, self.id = net, net.api, sandbox

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.api.delete(self.id)

    def python(self, program, **more):
        done = self.api.run(self.id, ["python3", "-c", textwrap.dedent(program)], **more)
        return done.stdout.strip() or f"exit {done.exit_code}: {done.stderr.strip().splitlines()[-1:]}"

    def resolve(self, name, family="AF_INET"):
        return self.python(f"""
            import socket
            try: print(sorted({{a[4][0] for a in socket.getaddrinfo({name!r}, 80, socket.{family}, socket.SOCK_STREAM)}}))
            except OSError as e: print(type(e).__name__, e.errno)
        """)

    def get(self, url, host=None, timeout=8):
        """Status and body, or the kind of failure."""
        headers = {"Host": host} if host else {}
        return self.python(f"""
            import urllib.request, urllib.error, ssl, time
            context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}), urllib.request.HTTPSHandler(context=context))
            try:
                reply = opener.open(urllib.request.Request({url!r}, headers={headers!r}), timeout={timeout})
                print(reply.status, reply.read().decode())
            except urllib.error.HTTPError as e: print(e.code, e.read().decode())
            except urllib.error.URLError as e: print(type(e.reason).__name__, e.reason)
            except OSError as e: print(type(e).__name__, e)
        """)

    def talk(self, address, port, say=b"", family="AF_INET"):
        """What the other side says before and after our end, or the kind of failure; and after how many seconds."""
        return self.python(f"""
            import socket
            s = socket.socket(socket.{family}); s.settimeout(8)
            try:
                s.connect(({address!r}, {port})); s.sendall({say!r}); s.shutdown(socket.SHUT_WR)
                out = b""
                while piece := s.recv(65536): out += piece
                print(out.decode())
            except OSError as e: print(type(e).__name__)
        """)

    def egress(self, method, path="/policy", token=True, **more):
        reply = self.api.call("GET", f"/sandboxes/{self.id}/endpoints/18080")
        headers = reply.json["headers"] if token is True else {AUTH: token} if token else {}
        return self.api.call(method, f"/sandboxes/{self.id}/proxy/18080{path}", headers=headers, **more)

    def policy(self):
        return self.egress("GET").json["policy"]

    def log(self):
        reply = self.api.call("GET", f"/sandboxes/{self.id}/egress/log")
        assert reply.status == 200, reply
        return [json.loads(line) for line in reply.body.decode().splitlines()]


def request_for(host, path="/", more=""):
    return f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n{more}\\r\\n"


class TestEveryRequest:
    """shared-a.test and shared-b.test have one address; only the first is allowed. What a kept connection asks for later counts, too."""

    def ask(self, box, *pieces):
        """All that comes back on one connection to shared-a.test, on which each piece is sent when something has come for the one before."""
        return box.python(f"""
            import socket
            s = socket.create_connection(("shared-a.test", 80)); s.settimeout(6)
            out = b""
            for piece in {list(pieces)!r}:
                try:
                    s.sendall(piece.encode().decode("unicode_escape").encode("latin-1"))
                    out += s.recv(65536)
                except OSError as e: out += type(e).__name__.encode()
            s.shutdown(socket.SHUT_WR)
            try:
                while more := s.recv(65536): out += more
            except OSError as e: out += type(e).__name__.encode()
            print(out.decode("latin-1"))
        """)

    def hosts(self, net):
        return [seen["host"] for seen in net.lab.seen() if seen["what"] == "request"]

    def test_the_same_host_again(self, net):
        with net.create("allow shared-a.test") as box:
            out = self.ask(box, *[request_for("shared-a.test")] * 3)
            assert out.count("hello shared-a.test") == 3 and "403" not in out
            assert self.hosts(net) == ["shared-a.test"] * 3

    @pytest.mark.parametrize("together", [False, True], ids=["after the answer", "at once"])
    def test_another_host_is_refused(self, net, together):
        with net.create("allow shared-a.test") as box:
            requests = [request_for("shared-a.test"), request_for("shared-b.test")]
            out = self.ask(box, *(["".join(requests)] if together else requests))
            assert out.count("hello shared-a.test") == 1 and "hello shared-b.test" not in out
            assert "HTTP/1.1 403 Forbidden" in out.partition("hello shared-a.test")[2], out
            assert "shared-b.test" in out and "X-OpenSandbox-Egress: denied" in out
            assert self.hosts(net) == ["shared-a.test"]
            assert any(event["outcome"] == "denied" and event["kind"] == "connection" for event in box.log())

    @pytest.mark.parametrize(
        "first",
        [
            "POST / HTTP/1.1\\r\\nHost: shared-a.test\\r\\nContent-Length: 3\\r\\n\\r\\nabc",
            "POST / HTTP/1.1\\r\\nHost: shared-a.test\\r\\nContent-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
            "GET / HTTP/1.1\\nHost: shared-a.test\\n\\n",
        ],
        ids=["a body", "two lengths", "bare line feeds"],
    )
    def test_nothing_hides_behind_a_body(self, net, first):
        with net.create("allow shared-a.test") as box:
            out = self.ask(box, first + request_for("shared-b.test"))
            assert "hello shared-b.test" not in out
            assert "shared-b.test" not in self.hosts(net)

    def test_a_websocket_is_one(self, net):
        upgrade = "Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
        with net.create("allow shared-a.test") as box:
            out = self.ask(box, request_for("shared-a.test", "/socket", upgrade), "ping\\n", "\\x81\\n")
            assert "101" in out and "echo ping" in out and "403" not in out
            # One that the server does not want is none: what follows are requests.
            out = self.ask(box, request_for("shared-a.test", "/", upgrade), request_for("shared-b.test"))
            assert "hello shared-a.test" in out and "hello shared-b.test" not in out and "403" in out

    def test_a_proxys_tunnel(self, net):
        """shared-a.test is a proxy. Whom its client asks it for counts; what is in the tunnel is the two ends' business."""
        with net.create("allow shared-a.test", "allow allowed.test", "allow shy.allowed.test") as box:
            connect = lambda host: f"CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\n\\r\\n"  # noqa: E731
            out = self.ask(box, connect("allowed.test"), "GET other.test\\n", "\\x16\\x03not HTTP\\n")
            assert out.startswith("HTTP/1.1 200") and "echo GET other.test" in out and "echo \x16\x03not HTTP" in out
            assert [seen["path"] for seen in net.lab.seen() if seen["what"] == "connect"] == ["allowed.test:443"]
            out = self.ask(box, connect("other.test"), "secret\\n")
            assert out.startswith("HTTP/1.1 403") and "other.test" in out and "secret" not in out
            # Only as the first request, and only when the proxy agrees.
            out = self.ask(box, request_for("shared-a.test"), connect("allowed.test"), "secret\\n")
            assert "403" in out and "echo" not in out
            out = self.ask(box, connect("shy.allowed.test"), request_for("other.test"))
            assert out.startswith("HTTP/1.1 407") and "403" in out
            assert [seen["path"] for seen in net.lab.seen() if seen["what"] == "connect"] == ["shy.allowed.test:443"]

    def test_http_2_without_tls_is_refused(self, net):
        with net.create("allow shared-a.test") as box:
            out = self.ask(box, "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n")
            assert "403" in out and not self.hosts(net)

    def test_a_large_upload_arrives(self, net):
        with net.create("allow shared-a.test") as box:
            out = box.python("""
                import http.client
                c = http.client.HTTPConnection("shared-a.test")
                for body in (b"x" * 5_000_000, iter([b"y" * 70_000] * 50)):
                    c.request("POST", "/", body, encode_chunked=False, headers={} if isinstance(body, bytes) else {"Content-Length": "3500000"})
                    print(c.getresponse().read().decode())
            """)
            assert out.split() == ["5000000", "3500000"]


class TestPolicy:
    def test_allowed_and_denied_by_name(self, net):
        with net.create("allow allowed.test") as box:
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            assert box.resolve("other.test") == "gaierror -2"
            assert box.get("http://1.2.3.11/").startswith("403 "), "an address that nobody looked up"
            assert not [s for s in net.lab.seen() if s.get("to") == "1.2.3.11" or s.get("name") == "other.test"]

    def test_without_a_policy_the_public_internet_is_open(self, net):
        with net.create_plain() as box:
            assert box.get("http://other.test/") == "200 hello other.test"
            assert box.get("http://1.2.3.11/") == "200 hello 1.2.3.11"
            assert box.get("https://allowed.test/") == "200 hello allowed.test"
            assert box.policy() == {"defaultAction": "allow", "egress": []}

    @pytest.mark.parametrize("target", ["10.9.8.7", "169.254.169.254", "1.2.3.1"])
    def test_nothing_private_is(self, net, target):
        with net.create_plain() as box:
            before = time.monotonic()
            said = box.get(f"http://{target}/")
            assert said.startswith("403 ") and "does not allow" in said and target in said
            assert time.monotonic() - before < 5
        with net.create(f"allow {target}") as box:
            if target != "1.2.3.1":
                assert box.get(f"http://{target}/") == f"200 hello {target}"
            net.lab.seen()

    @pytest.mark.parametrize("name", ["private.test", "metadata.test", "loop.test", "host.test"])
    def test_a_name_does_not_open_what_is_private(self, net, name):
        with net.create(f"allow {name}") as box:
            assert box.resolve(name).startswith("gaierror")
            assert any(name == e.get("name") and e["outcome"] == "denied" for e in box.log())

    def test_rules_in_order_and_wildcards(self, net):
        with net.create("deny a.wild.test", "allow *.wild.test", "allow alias.test") as box:
            assert box.resolve("a.wild.test").startswith("gaierror")
            assert box.resolve("wild.test").startswith("gaierror"), "what is below is not the name itself"
            assert box.get("http://alias.test/") == "200 hello alias.test"
        with net.create("allow *.wild.test", "deny a.wild.test") as box:
            assert box.get("http://A.Wild.TEST./") == "200 hello A.Wild.TEST."

    def test_an_address_rule_and_a_denied_range(self, net):
        with net.create("allow 1.2.3.0/24", "deny 1.2.3.11") as box:
            assert box.get("http://1.2.3.10/") == "200 hello 1.2.3.10"
            assert box.get("http://1.2.3.11/").startswith("403 ")

    def test_what_a_lookup_brings_along_is_not_learned(self, net):
        with net.create("allow poison.test") as box:
            assert box.resolve("poison.test") == "['1.2.3.10']"
            assert box.get("http://1.2.3.11/").startswith("403 ")

    def test_the_operator_comes_first(self, net, bin_dir, request):
        from lib.plugin import service_class

        sections = {"egress": {**SECTIONS["egress"], "deny_always": ["other.test", "1.2.3.12"], "allow_always": ["private.test", "10.0.0.0/8", "alias.test"]}, "sandbox": {"allow_network": False}}
        service = service_class(request)(bin_dir, sections=sections)
        request.addfinalizer(service.destroy)
        operated = Net(service.start(), net.lab)
        with operated.create("allow other.test", "allow 1.2.3.12", "allow allowed.test") as box:
            assert box.resolve("other.test").startswith("gaierror")
            assert box.get("http://1.2.3.12/").startswith("403 ")
            assert box.get("http://private.test/") == "200 hello private.test"
            assert box.get("http://alias.test/") == "200 hello alias.test"
        # And without a policy nothing is open there.
        with Box(operated, operated.api.create()["id"]) as box:
            assert box.talk("1.2.3.10", 80) in ("ConnectionRefusedError", "OSError")
            assert box.resolve("allowed.test").startswith("gaierror")
            assert box.egress("GET").status == 502


class TestHosts:
    """The host that a client names has to be one that is allowed, wherever it can be seen."""

    def test_another_name_in_http(self, net):
        with net.create("allow shared-a.test") as box:
            assert box.get("http://shared-a.test/") == "200 hello shared-a.test"
            said = box.get("http://shared-a.test/", host="shared-b.test")
            assert said.startswith("403 ") and "shared-b.test" in said and "default deny" in said
            assert "shared-b.test" not in [s.get("host") for s in net.lab.seen()]

    def test_another_name_in_tls(self, net):
        with net.create("allow shared-a.test") as box:
            assert box.get("https://shared-a.test/") == "200 hello shared-a.test"
            said = box.python("""
                import socket, ssl
                context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
                s = socket.create_connection(("shared-a.test", 443), timeout=8)
                try: context.wrap_socket(s, server_hostname="shared-b.test"); print("connected")
                except OSError as e: print(type(e).__name__, e)
            """)
            assert "access denied" in said.lower().replace("_", " "), said

    @pytest.mark.parametrize("head", [
        "GET / HTTP/1.1\\r\\nHost: shared-a.test\\r\\nHost: shared-b.test\\r\\n\\r\\n",
        "GET http://shared-b.test/ HTTP/1.1\\r\\nHost: shared-a.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost : shared-b.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: shared-a.test\\0.shared-b.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nX: y\\r\\n Host: shared-b.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: shared-a.test@shared-b.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: shared%2db.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: shared-a.test%00.shared-b.test\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: 0x01.2.3.12\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: 16909068\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: 1.2.3.11\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: [::ffff:10.9.8.7]\\r\\n\\r\\n",
        "CONNECT 10.9.8.7:443 HTTP/1.1\\r\\nHost: 10.9.8.7:443\\r\\n\\r\\n",
        "GET / HTTP/1.1\\r\\nHost: \\r\\n\\r\\n",
    ])  # fmt: skip
    def test_tricks(self, net, head):
        with net.create("allow shared-a.test") as box:
            said = box.python(f"""
                import socket
                s = socket.create_connection(("shared-a.test", 80), timeout=8); s.sendall("{head}".encode())
                try: print(s.recv(4096)[:12].decode() or "closed")
                except OSError as e: print(type(e).__name__)
            """)
            assert said in ("ConnectionResetError", "closed") or "403" in said, said
            assert not [s for s in net.lab.seen() if s["what"] == "request"]

    def test_a_server_may_speak_first(self, net):
        """And half-closed connections carry on: the echo tells how much came after our end."""
        with net.create("allow allowed.test") as box:
            box.resolve("allowed.test")
            assert box.talk("1.2.3.10", 7, b"x" * 100000) == "welcome\n100000"

    def test_dns_over_tls_is_closed(self, net):
        with net.create_plain() as box:
            assert box.talk("1.2.3.10", 853) in ("", "ConnectionResetError")

    def test_quic_is_refused_at_once(self, net):
        with net.create_plain() as box:
            said = box.python("""
                import socket, time
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(8); start = time.monotonic()
                try: s.connect(("1.2.3.10", 443)); s.send(b"x" * 1200); s.recv(10)
                except OSError as e: print(type(e).__name__, time.monotonic() - start < 2)
            """)
            assert said in ("PermissionError True", "ConnectionRefusedError True")


class TestLookups:
    def test_other_servers_are_this_one(self, net):
        """Whatever server a program asks, the same one answers; so there is no other way to look something up."""
        with net.create("allow allowed.test") as box:
            said = box.python(QUERY + """
print([ask(("8.8.8.8", 53), "allowed.test"), ask(("10.1.2.3", 53), "other.test"), ask(("127.0.0.1", 53), "allowed.test"), ask(("9.9.9.9", 53), "allowed.test", tcp=True)])
            """)  # fmt: skip
            assert said == "[(0, 1), (3, 0), (0, 1), (0, 1)]"

    def test_long_answers_come_over_tcp(self, net):
        with net.create("allow big.test", "allow *.test") as box:
            assert len(json.loads(box.resolve("big.test").replace("'", '"'))) == 199
            assert {s["over"] for s in net.lab.seen() if s.get("name") == "big.test"} == {"udp", "tcp"}

    def test_ech_does_not_come_through(self, net):
        with net.create("allow https.test") as box:
            said = box.python(QUERY + """
print(b"secret" in raw(("1.1.1.1", 53), "https.test", 65), b"h2" in raw(("1.1.1.1", 53), "https.test", 65))
            """)  # fmt: skip
            assert said == "False True"

    @pytest.mark.parametrize("name", ["a\\0b.allowed.test", "x y.allowed.test", "a.b?c.test"])
    def test_no_names(self, net, name):
        with net.create_plain() as box:
            said = box.python(QUERY + f"""
print(ask(("1.1.1.1", 53), "{name}"))
            """)  # fmt: skip
            assert said == "(3, 0)"
            assert not [s for s in net.lab.seen() if s["what"] == "lookup"]

    def test_nothing_but_the_question_travels(self, net):
        """No cookies, no client subnets, no padding: what a program hides in a question stays here."""
        with net.create_plain() as box:
            said = box.python(QUERY + """
opt = b"\\0" + struct.pack("!HHIH", 41, 1232, 0, 12) + struct.pack("!HH", 65001, 8) + b"contents"
print(len(exchange(("1.1.1.1", 53), struct.pack("!6H", 7, 0x100, 1, 0, 0, 1) + name("allowed.test") + struct.pack("!HH", 1, 1) + opt)) > 12)
            """)  # fmt: skip
            assert said == "True"

    def test_ipv6(self, net):
        with net.create("allow six.test") as box:
            assert box.get("http://six.test/") == "200 hello six.test"
            assert box.resolve("six.test", "AF_INET6") == "['2600:1::10']"
            assert box.talk("2600:1::11", 80, family="AF_INET6") in ("", "ConnectionResetError")
            assert box.get("http://[2600:1::11]/").startswith("403 ")


QUERY = '''
import socket, struct
def name(text):
    return b"".join(bytes([len(l)]) + l for l in text.encode("latin-1").split(b".")) + b"\\0"
def exchange(server, query, tcp=False):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM); s.settimeout(8); s.connect(server)
    s.send(struct.pack("!H", len(query)) * tcp + query)
    if not tcp: return s.recv(65535)
    return s.recv(struct.unpack("!H", s.recv(2, socket.MSG_WAITALL))[0], socket.MSG_WAITALL)
def raw(server, text, kind=1, tcp=False):
    return exchange(server, struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + name(text) + struct.pack("!HH", kind, 1), tcp)
def ask(server, text, kind=1, tcp=False):
    answer = raw(server, text, kind, tcp)
    return answer[3] & 15, struct.unpack("!H", answer[6:8])[0]
'''


class TestChanges:
    def test_a_patch_is_in_force_when_it_is_answered(self, net):
        with net.create("allow allowed.test") as box:
            assert box.resolve("other.test").startswith("gaierror")
            for _ in range(5):
                assert box.egress("PATCH", json=[{"action": "allow", "target": "other.test"}]).status == 200
                assert box.get("http://other.test/") == "200 hello other.test"
                assert box.egress("DELETE", json=["OTHER.test"]).status == 200
                assert box.get("http://1.2.3.11/").startswith("403 "), "also where a program still knows the address"

    def test_open_connections_that_it_denies_are_cut(self, net):
        with net.create("allow allowed.test") as box:
            box.api.run(box.id, ["sh", "-c", "nohup python3 -u -c '" + textwrap.dedent("""
                import socket
                s = socket.create_connection(("allowed.test", 7)); print(s.recv(100), flush=True)
                try: print("end", s.recv(100), flush=True)
                except OSError as e: print(type(e).__name__, flush=True)
            """) + "' > /tmp/out 2>&1 &"])  # fmt: skip
            output = lambda: box.api.run(box.id, "cat /tmp/out").stdout  # noqa: E731
            wait_for(lambda: "welcome" in output(), 10, "the connection is there")
            assert box.egress("PATCH", json=[{"action": "allow", "target": "other.test"}]).status == 200
            assert "Error" not in output(), "one that is still allowed lives on"
            assert box.egress("PATCH", json=[{"action": "deny", "target": "allowed.test"}]).status == 200
            wait_for(lambda: "ConnectionResetError" in output(), 5, "the connection is cut")
            denied = [e for e in box.log() if e["kind"] == "connection" and e["outcome"] == "denied"]
            assert denied[-1]["rule"] == "deny allowed.test" and denied[-1]["receivedBytes"] == 8

    def test_one_that_nobody_has_read_is_cut_when_names_begin_to_matter(self, net):
        """Under "allow everything" nobody reads whom a connection wants. When a host is denied later, it could be that one; unless a rule names its address."""
        hold = """
            import socket, sys
            s = socket.create_connection((sys.argv[1], 7)); print(s.recv(100), flush=True)
            try: print("end", s.recv(100), flush=True)
            except OSError as e: print(type(e).__name__, flush=True)
        """
        with net.create("allow 1.2.3.11", default="allow") as box:
            start = lambda address: box.api.run(box.id, ["sh", "-c", f"nohup python3 -u -c '{textwrap.dedent(hold)}' {address} > /tmp/{address} 2>&1 &"])  # noqa: E731
            output = lambda address: box.api.run(box.id, f"cat /tmp/{address}").stdout  # noqa: E731
            for address in ("1.2.3.10", "1.2.3.11"):
                start(address)
                wait_for(lambda address=address: "welcome" in output(address), 10, "the connection is there")
            assert box.egress("PATCH", json=[{"action": "allow", "target": "other.test"}]).status == 200
            assert "Error" not in output("1.2.3.10"), "names make no difference yet"
            # Not by the default any more: only the address that a rule names is open.
            assert box.egress("PUT", json={"defaultAction": "deny", "egress": [{"action": "allow", "target": "1.2.3.11"}, {"action": "allow", "target": "allowed.test"}]}).status == 200
            wait_for(lambda: "ConnectionResetError" in output("1.2.3.10"), 5, "the connection is cut")
            assert "Error" not in output("1.2.3.11")
        with net.create("allow 1.2.3.10", default="allow") as box:
            start("1.2.3.12")
            wait_for(lambda: "welcome" in output("1.2.3.12"), 10, "the connection is there")
            assert box.egress("PATCH", json=[{"action": "deny", "target": "shared-b.test"}]).status == 200
            wait_for(lambda: "ConnectionResetError" in output("1.2.3.12"), 5, "the connection is cut")
            assert "has come to name hosts" in box.log()[-1]["rule"]

    def test_kept_over_kill_and_restart_and_pause(self, net):
        service = net.service
        with net.create("allow allowed.test") as box, net.create_plain() as other:
            before = wait_egress(service)
            box.egress("PATCH", json=[{"action": "allow", "target": "other.test"}])
            wanted = box.policy()
            import os
            import signal

            os.kill(before, signal.SIGKILL)
            start = time.monotonic()
            wait_egress(service, other_than=before)
            wait_for(lambda: box.get("http://allowed.test/") == "200 hello allowed.test", 10, "the way is open again")
            assert box.policy() == wanted
            assert box.get("http://1.2.3.12/").startswith("403 ")
            assert other.get("http://1.2.3.12/") == "200 hello 1.2.3.12"
            assert time.monotonic() - start < 8
            service.restart()
            wait_for(lambda: box.get("http://other.test/") == "200 hello other.test", 10, "the way is open again")
            assert box.policy() == wanted
            if box.api.call("POST", f"/sandboxes/{box.id}/pause").status == 202:
                assert box.policy() == wanted, "also while it is paused"
                assert box.egress("DELETE", json=["other.test"]).status == 200
                box.api.call("POST", f"/sandboxes/{box.id}/resume")
                assert box.get("http://1.2.3.11/").startswith("403 ")

    def test_nothing_is_left_of_a_sandbox_that_is_gone(self, net):
        directory = net.service.state_dir / "egress"
        with net.create("allow allowed.test") as box:
            handle = net.service.scope.handle(box.id)
            assert (directory / handle).exists()
        wait_for(lambda: not (directory / handle).exists(), 5, "the policy is gone")


class TestBeforeTheFirstWord:
    """Nobody serves a sandbox with the default policy before it sends something (decision 42)."""

    def test_it_is_served_from_its_first_packet_on(self, net):
        directory = net.service.state_dir / "egress"
        with net.create_plain() as box:
            assert not (directory / net.service.scope.handle(box.id)).exists(), "nothing is kept of a policy that is the default"
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            assert box.get("http://10.9.8.7/").startswith("403 "), "and nothing private"

    def test_its_policy_is_known_and_can_be_changed(self, net):
        with net.create_plain() as box:
            assert box.policy() == {"defaultAction": "allow", "egress": []}
            assert box.egress("PATCH", json=[{"action": "deny", "target": "1.2.3.12"}]).status == 200
            assert box.get("http://1.2.3.12/").startswith("403 ")
            net.service.kill_both()
            net.service.start()
            wait_for(lambda: box.get("http://allowed.test/") == "200 hello allowed.test", 10, "the way is open again")
            assert box.get("http://1.2.3.12/").startswith("403 "), "a policy that is kept counts before the default"

    @pytest.mark.parametrize("kill", ["kill_server", "kill_launcher", "kill_both"])
    def test_silent_ones_are_heard_after_a_kill(self, net, kill):
        with net.create_plain() as silent, net.create_plain() as spoke, net.create("allow allowed.test") as strict:
            assert spoke.get("http://allowed.test/") == "200 hello allowed.test"
            getattr(net.service, kill)()
            if net.service.process.poll() is not None:
                net.service.start()
            for box in (silent, spoke, strict):
                wait_for(lambda: box.get("http://allowed.test/") == "200 hello allowed.test", 10, "the way is open again")
            assert strict.get("http://1.2.3.12/").startswith("403 ")

    def test_one_that_was_made_for_a_policy_never_has_the_default(self, net):
        """Its policy is lost: nothing leaves, and the default is not put in its place."""
        with net.create("allow allowed.test") as strict:
            net.service.stop()
            (net.service.state_dir / "egress" / net.service.scope.handle(strict.id)).unlink()
            net.service.start()
            for _ in range(3):
                assert "hello" not in strict.get("http://allowed.test/", timeout=2)


class TestWithoutTheProcess:
    def test_nothing_leaves(self, net):
        """While it is stopped, and while it is dead."""
        import os
        import signal

        with net.create_plain() as box:
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            net.lab.seen()
            pid = wait_egress(net.service)
            # Killed again and again, so that it is away for longer each time.
            for _ in range(3):
                os.kill(egress_pid(net.service) or pid, signal.SIGKILL)
                said = box.talk("1.2.3.11", 80, b"GET / HTTP/1.0\r\n\r\n")
                assert "hello" in said or said in ("ConnectionRefusedError", "ConnectionResetError", ""), said
                pid = wait_egress(net.service, other_than=pid)
            wait_for(lambda: box.get("http://allowed.test/") == "200 hello allowed.test", 10, "the way is open again")

    def test_a_sandbox_that_took_the_port_meanwhile(self, net):
        """What listens where the process did hears the sandbox's own words and nobody else's; the next process finds a way."""
        import os
        import signal

        with net.create("allow allowed.test") as box:
            box.api.run(box.id, ["sh", "-c", "nohup python3 -c '" + textwrap.dedent("""
                import socket, time
                while True:
                    try: s = socket.create_server(("127.0.0.1", 64053)); break
                    except OSError: time.sleep(0.0005)
                open("/tmp/taken", "w").close()
                time.sleep(1000)
            """) + "' > /dev/null 2>&1 &"])  # fmt: skip
            pid = wait_egress(net.service)
            for _ in range(6):
                os.kill(pid, signal.SIGKILL)
                pid = wait_egress(net.service, other_than=pid)
                if box.api.run(box.id, "test -e /tmp/taken").exit_code == 0:
                    break
            wait_for(lambda: box.get("http://allowed.test/") == "200 hello allowed.test", 10, "the way is open again")
            assert box.get("http://1.2.3.11/").startswith("403 ")


class TestRootInside:
    """Whoever is root in a sandbox has no right over its network."""

    def test_ways_round(self, net):
        with net.create("allow allowed.test") as box:
            said = json.loads(box.python("""
                import ctypes, fcntl, json, os, socket, struct
                libc = ctypes.CDLL(None, use_errno=True)
                def tried(what):
                    try: what(); return "done"
                    except OSError as e: return e.errno
                out = {}
                out["raw"] = tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 17))
                out["packet"] = tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 8))
                def mark():
                    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 36, 1)
                out["mark"] = tried(mark)
                def device():
                    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
                out["device"] = tried(device)
                def transparent():
                    s = socket.socket(); s.setsockopt(socket.SOL_IP, 19, 1)
                out["transparent"] = tried(transparent)
                def lo_down():
                    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0))
                out["lo"] = tried(lo_down)
                def netlink(protocol, message):
                    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol); s.settimeout(2); s.send(message)
                    answer = s.recv(4096); code = struct.unpack("=i", answer[16:20])[0]
                    if struct.unpack("=H", answer[4:6])[0] == 2 and code: raise OSError(-code, "x")
                # A route; the deletion of all rules.
                out["route"] = tried(lambda: netlink(0, struct.pack("=IHHII", 28, 25, 5, 1, 0) + struct.pack("=8BI", 2, 0, 0, 0, 254, 4, 0, 1, 0)))
                batch = lambda kind: struct.pack("=IHHII", 20, kind, 1, 1, 0) + struct.pack("!BBH", 0, 0, 10)
                out["rules"] = tried(lambda: netlink(12, batch(16) + struct.pack("=IHHII", 20, 10 << 8 | 2, 5, 2, 0) + struct.pack("!BBH", 0, 0, 0) + batch(17)))
                out["namespace"] = tried(lambda: libc.unshare(0x40000000) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), "x")))
                print(json.dumps(out))
            """))  # fmt: skip
            assert "done" not in said.values(), said
            assert box.get("http://1.2.3.11/").startswith("403 ")
            assert box.get("http://allowed.test/") == "200 hello allowed.test"

    def test_the_outlet_itself_leads_nowhere(self, net):
        with net.create_plain() as box:
            assert box.talk("127.0.0.1", 64053, b"GET / HTTP/1.0\r\n\r\n") in ("ConnectionResetError", "")

    def test_fast_open_and_odd_packets(self, net):
        with net.create("allow allowed.test") as box:
            said = box.python("""
                import socket
                s = socket.socket(); s.settimeout(4)
                try: s.sendto(b"GET / HTTP/1.0\\r\\n\\r\\n", 0x20000000, ("1.2.3.11", 80)); print(s.recv(100)[:12].decode())
                except OSError as e: print(type(e).__name__)
            """)
            assert "200" not in said
            assert not [s for s in net.lab.seen() if s.get("to") == "1.2.3.11"]

    def test_the_hosts_own_services(self, net):
        """The API of the service itself, above all."""
        port = net.service.address[1]
        with net.create("allow 0.0.0.0/0", "allow ::/0", default="allow") as box:
            for address in ("127.0.0.1", "10.0.2.15", "0.0.0.0"):
                assert box.talk(address, port, b"GET /health HTTP/1.0\r\n\r\n") in ("ConnectionRefusedError", "ConnectionResetError", ""), address
            for address in ("::1", "::ffff:127.0.0.1", "fd00:6f73:62::15"):
                assert box.talk(address, port, b"GET /health HTTP/1.0\r\n\r\n", "AF_INET6") in ("ConnectionRefusedError", "ConnectionResetError", "", "OSError"), address


class TestInterface:
    """The contract of port 18080, row by row."""

    def test_token(self, net):
        with net.create() as box:
            right = box.api.call("GET", f"/sandboxes/{box.id}/endpoints/18080").json["headers"][AUTH]
            assert len(right) >= 24
            for wrong in (None, "", right[:-1], right + "x", right[:-1] + ("a" if right[-1] != "a" else "b")):
                reply = box.egress("GET", token=wrong)
                assert (reply.status, reply.body) == (401, b"unauthorized\n"), wrong
            assert box.egress("GET", token=right).status == 200
            reply = box.egress("GET", "/healthz", token=None)
            assert (reply.status, reply.body) == (200, b"ok")

    def test_reset(self, net):
        with net.create("allow allowed.test") as box:
            reply = box.egress("POST", body=b" \n").json
            assert reply == {"status": "ok", "mode": "deny_all", "reason": "policy reset to default deny-all"}
            reply = box.egress("PUT", json={}).json
            assert reply == {"status": "ok", "mode": "deny_all", "enforcementMode": "dns+nft"}
            assert box.policy() == {"defaultAction": "deny", "egress": []}

    def test_order_of_a_patch(self, net):
        with net.create("allow example.com", "deny *.example.com") as box:
            reply = box.egress("PATCH", json=[rule_of("deny blocked.com"), rule_of("allow example.com")])
            assert reply.json == {"status": "ok", "mode": "enforcing", "enforcementMode": "dns+nft"}
            assert box.policy()["egress"] == [rule_of("deny blocked.com"), rule_of("allow example.com"), rule_of("deny *.example.com")]

    @pytest.mark.parametrize("method, body, message", [
        ("PATCH", b"", "empty body"), ("PATCH", b"[]", "invalid patch rules: empty array"), ("PATCH", b"{}", "invalid patch rules: "),
        ("PATCH", b'[{"action":"drop","target":"a.com"}]', "invalid patch rules: "), ("PATCH", b'[{"action":"allow","target":"*"}]', "invalid patch rules: "),
        ("DELETE", b"", "empty body"), ("DELETE", b"[]", "invalid delete targets: empty array"), ("DELETE", b"{", "invalid delete targets: "),
        ("PUT", b'{"defaultAction":"maybe"}', "invalid policy: defaultAction"), ("PUT", b"[1", "invalid policy: "),
    ])  # fmt: skip
    def test_refusals_are_a_line_of_text(self, net, method, body, message):
        with net.create("allow allowed.test") as box:
            before = box.policy()
            reply = box.egress(method, body=body)
            assert reply.status == 400 and reply.body.decode().startswith(message), reply
            assert reply.header("content-type") == "text/plain; charset=utf-8" and reply.header("x-content-type-options") == "nosniff"
            assert box.policy() == before

    def test_the_rest(self, net):
        with net.create("allow allowed.test") as box:
            assert box.egress("DELETE", json=["nothing.com", ""]).json["reason"] == "no matching targets found"
            rules = [{"action": "allow", "target": f"a{n}.com"} for n in range(4097)]
            reply = box.egress("PUT", json={"egress": rules})
            assert (reply.status, reply.body) == (413, b"egress rule total count 4097 exceeds limit 4096\n")
            assert box.egress("PUT", json={"egress": rules[:4096]}).status == 200
            assert box.egress("PATCH", json=[rule_of("allow one-more.com")]).status == 413
            reply = box.egress("OPTIONS")
            assert reply.status == 405 and reply.header("allow") == "GET, POST, PUT, PATCH, DELETE"
            assert box.egress("GET", "/nothing").status == 404
            assert box.egress("GET", "/credential-vault").status == 412

    def test_by_the_lifecycle_route(self, net):
        with net.create("allow allowed.test") as box:
            path = f"/sandboxes/{box.id}/networkpolicy"
            assert box.api.call("GET", path).json["policy"] == box.policy()
            assert box.api.call("PATCH", path, json=[rule_of("allow other.test")]).status == 200
            assert box.api.call("DELETE", path, json=["allowed.test"]).status == 200
            assert box.api.call("GET", path).json["policy"]["egress"] == [rule_of("allow other.test")]
            assert box.api.call("PUT", path, json={"defaultAction": "allow"}).json["mode"] == "allow_all"
            assert box.api.call("GET", "/sandboxes/018f0000-0000-7000-8000-000000000000/networkpolicy").status == 404

    @pytest.mark.parametrize("policy, field", [
        ({"defaultAction": "perhaps"}, "networkPolicy.defaultAction"), ({"egress": [{"action": "drop", "target": "a.com"}]}, "networkPolicy.egress[0].action"),
        ({"egress": [{"action": "allow", "target": "http://a.com/"}]}, "networkPolicy.egress[0].target"),
    ])  # fmt: skip
    def test_wrong_ones_on_create(self, net, policy, field):
        reply = net.api.post_create(networkPolicy=policy)
        assert reply.status == 400 and field in reply.json["message"], reply


class TestLog:
    def test_every_lookup_and_connection(self, net):
        with net.create("allow allowed.test") as box:
            box.get("http://allowed.test/")
            box.resolve("other.test")
            box.get("http://1.2.3.11/")
            events = wait_for(lambda: (log := box.log()) and any(e.get("receivedBytes") for e in log) and log, 5, "the connection is logged")
            by = {(e["kind"], e["outcome"], e.get("name") or e.get("address")): e for e in events}
            assert by["lookup", "allowed", "allowed.test"]["rule"] == "allow allowed.test"
            assert by["lookup", "denied", "other.test"]["rule"] == "default deny"
            assert by["connection", "denied", "1.2.3.11"]["port"] == 80
            allowed = by["connection", "allowed", "allowed.test"]
            assert allowed["address"] == "1.2.3.10" and allowed["sentBytes"] > 50 and allowed["receivedBytes"] > 50
            assert [e["number"] for e in events] == list(range(1, len(events) + 1))
            assert box.egress("GET").json["recentDenials"][0]["outcome"] == "denied"

    def test_it_is_followed(self, net, bin_dir):
        """As a stream of the route, and by `osb egress log -f`: each line when it happens."""
        import os
        import subprocess

        environment = {"OPEN_SANDBOX_DOMAIN": f"{net.service.address[0]}:{net.service.address[1]}", "PATH": os.environ["PATH"]}
        with net.create("allow allowed.test") as box:
            box.resolve("before.test")
            following = subprocess.Popen([bin_dir / "osb", "egress", "log", box.id, "-f"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            lines = []
            threading.Thread(target=lambda: lines.extend(iter(following.stdout.readline, "")), daemon=True).start()
            try:
                wait_for(lambda: lines, 20, "what was before comes first")
                for name in ("one.test", "two.test"):
                    had = len(lines)
                    box.resolve(name)
                    wait_for(lambda had=had: len(lines) > had, 5, f"{name} is told when it happens")
                assert [part in line for part, line in zip(("before.test", "one.test", "two.test"), lines, strict=True)] == [True] * 3, lines
            finally:
                following.kill()
                following.wait()
            reply = box.api.call("GET", f"/sandboxes/{box.id}/egress/log?after=1")
            assert [json.loads(line)["name"] for line in reply.body.decode().splitlines()] == ["one.test", "two.test"]

    def test_osb(self, net, bin_dir):
        import os
        import subprocess

        environment = {"OPEN_SANDBOX_DOMAIN": f"{net.service.address[0]}:{net.service.address[1]}", "PATH": os.environ["PATH"]}
        osb = lambda *words: subprocess.run([bin_dir / "osb", *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)  # noqa: E731
        probe = "import urllib.request as u; print(u.urlopen('http://allowed.test/', timeout=8).read().decode())"
        for network, ok in (("none", False), ("open", True), ("allowed.test,other.test", True), ("other.test", False)):
            done = osb("run", "--network", network, "host", "--", "python3", "-c", probe)
            assert (done.returncode == 0) == ok, (network, done)
        with net.create("allow allowed.test") as box:
            box.resolve("other.test")
            done = osb("egress", "log", box.id)
            assert done.returncode == 0 and "denied  lookup     other.test: default deny" in done.stdout, done


class TestRelay:
    def test_much(self, net):
        with net.create("allow allowed.test") as box:
            said = box.python("""
                import urllib.request as u
                size = 64 << 20; total = 0
                reply = u.urlopen(f"http://allowed.test/bytes/{size}", timeout=30)
                while piece := reply.read(1 << 20): total += len(piece)
                up = u.urlopen(u.Request("http://allowed.test/", data=b"x" * (32 << 20)), timeout=30).read().decode()
                print(total == size, up == str(32 << 20))
            """)  # fmt: skip
            assert said == "True True"

    def test_many_at_once(self, net):
        with net.create("allow allowed.test") as box:
            said = box.python("""
                import concurrent.futures, urllib.request as u
                get = lambda n: u.urlopen("http://allowed.test/", timeout=30).status
                with concurrent.futures.ThreadPoolExecutor(32) as pool: print(set(pool.map(get, range(300))))
            """)
            assert said == "{200}"

    def test_a_host_that_is_not_there(self, net):
        with net.create("allow nobody.test") as box:
            said = box.get("http://nobody.test/", timeout=20)
            assert said.startswith("502 ") and "could not be made" in said


def test_a_server_without_it(new_service):
    """As it is unless the configuration says otherwise: no way out, said at once, and no process for it."""
    service = new_service(sections={"egress": {"enabled": False}})
    api = Api(service)
    refused = api.call("POST", "/sandboxes", json={"image": {"uri": "host"}, "entrypoint": ["sleep", "60"], "resourceLimits": {}, "timeout": 60,
                                                   "networkPolicy": {"defaultAction": "deny"}})  # fmt: skip
    assert refused.status == 400 and refused.json["code"] == "SANDBOX::UNSUPPORTED", refused
    assert "enabled = true below [egress]" in refused.json["message"]
    made = api.create()["id"]
    program = "import socket\ntry: socket.create_connection(('1.2.3.4', 80), 10)\nexcept OSError as e: print(e.errno)"
    begun = time.monotonic()
    assert api.run(made, ["python3", "-c", program]).stdout.strip() == "101", "the network is unreachable"
    assert time.monotonic() - begun < 5
    assert api.call("GET", f"/sandboxes/{made}/networkpolicy").status == 502
    forked = api.call("POST", f"/sandboxes/{made}/fork", json={"count": 1})
    assert forked.status == 202, forked
    for sandbox in (made, forked.json["items"][0]["id"]):
        assert api.delete(sandbox).status == 204


def test_sandboxes_of_a_version_without_a_network(lab, bin_dir, request):  # noqa: F811
    """They go on, without a way out, and the log says why. One of such a version has no address on its loopback, and no note of its kind of network."""
    from lib.plugin import service_class

    service = service_class(request)(bin_dir, sections={"egress": {"enabled": False}})
    request.addfinalizer(service.destroy)
    service.start()
    api = Api(service)
    old = api.create()["id"]
    api.run(old, "echo kept > /tmp/file")
    service.stop()
    notes = list(service.state_dir.glob("**/network"))
    assert notes
    for note in notes:
        note.unlink()
    service.config_path.write_text(service.config_path.read_text().replace('"enabled" = false', f'"enabled" = true\n"name_servers" = ["{DNS}"]'))
    service.start()
    net = Net(service, lab)
    net.lab.seen()
    box = Box(net, old)
    assert api.run(old, "cat /tmp/file").stdout == "kept"
    assert box.talk("1.2.3.10", 7) == "OSError"  # unreachable, at once
    assert box.resolve("allowed.test").startswith("gaierror")
    assert not net.lab.seen()
    assert "no network" in service.log_path.read_text()
    refused = box.egress("GET")
    assert refused.status == 502 and b"made by an older server" in refused.body
    with net.create_plain() as new:
        assert new.get("http://allowed.test/") == "200 hello allowed.test"
    assert api.delete(old).status == 204


class TestForks:
    def test_a_fork_may_reach_what_its_source_may_now(self, net):
        """Also what was changed since: a copy is not a way around a policy."""
        with net.create("allow other.test", default="allow") as box:
            assert box.egress("PUT", json={"defaultAction": "deny", "egress": [rule_of("allow example.com")]}).status == 200
            reply = box.api.call("POST", f"/sandboxes/{box.id}/fork", json={"count": 1})
            assert reply.status == 202, reply
            with Box(net, reply.json["items"][0]["id"]) as fork:
                assert fork.policy() == {"defaultAction": "deny", "egress": [rule_of("allow example.com")]}

    def test_a_rollback_keeps_it(self, net):
        with net.create("allow example.com") as box:
            snapshot = box.api.call("POST", f"/sandboxes/{box.id}/snapshots").json["id"]
            wait_for(lambda: box.api.call("GET", f"/snapshots/{snapshot}").json["status"]["state"] == "Ready", 20, "the snapshot is ready")
            assert box.egress("PUT", json={"defaultAction": "deny", "egress": []}).status == 200
            reply = box.api.call("POST", f"/sandboxes/{box.id}/rollback", json={"snapshotId": snapshot})
            assert reply.status == 200, reply
            assert box.policy() == {"defaultAction": "deny", "egress": []}
            assert box.api.call("DELETE", f"/snapshots/{snapshot}").status == 204
