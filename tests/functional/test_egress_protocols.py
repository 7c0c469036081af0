"""What sandboxes send that is not plain HTTP: HTTP/2 and WebSockets over TLS, and everything that tries to be something else than it is.

A service in a small internet of its own (lib/netlab.py), as in test_egress.py.
"""

import shutil

import pytest
from lib.netlab import lab  # noqa: F401
from test_egress import QUERY, net  # noqa: F401


@pytest.fixture(scope="module")
def http2(lab):  # noqa: F811
    if not shutil.which("nginx") or not shutil.which("curl"):
        pytest.skip("needs nginx and curl")
    running = lab.start_http2()
    yield lab
    running.terminate()
    running.wait(10)


def curl(box, *words):
    """What it prints, or its complaint."""
    done = box.api.run(box.id, ["curl", "-sSk", "-m", "8", "--http2", *words])
    return done.stdout if done.exit_code == 0 else f"{done.exit_code}: {done.stderr.strip()}"


class TestHttp2:
    def test_allowed_and_denied(self, net, http2):  # noqa: F811
        http2.seen_by_http2()
        with net.create("allow allowed.test", "allow shared-a.test") as box:
            assert curl(box, "https://allowed.test:8443/") == "hello allowed.test by HTTP/2.0"
            assert curl(box, "https://shared-a.test:8443/") == "hello shared-a.test by HTTP/2.0"
            assert curl(box, "https://other.test:8443/").startswith("6: "), "no such name"
            # A name that shares the address of an allowed one; an address that nobody looked up; no name at all.
            for words in (["--resolve", "shared-b.test:8443:1.2.3.12", "https://shared-b.test:8443/"], ["--resolve", "other.test:8443:1.2.3.11", "https://other.test:8443/"],
                          ["https://1.2.3.11:8443/"]):  # fmt: skip
                said = curl(box, *words)
                assert said.startswith("35: ") and "access denied" in said.lower(), said
        assert http2.seen_by_http2() == ["allowed.test HTTP/2.0", "shared-a.test HTTP/2.0"]

    def test_much_and_many(self, net, http2):  # noqa: F811
        """Streams of one connection, and a large body."""
        with net.create("allow allowed.test") as box:
            urls = [word for n in range(20) for word in ("-o", "/dev/null", f"https://allowed.test:8443/{n}")]
            said = curl(box, "-Z", "-w", "%{http_version} %{http_code}\\n", *urls).split("\n")
            assert [one for one in said if one] == ["2 200"] * 20
            assert curl(box, "-o", "/dev/null", "-w", "%{size_download}", f"https://allowed.test:8443/bytes/{32 << 20}") == str(32 << 20)

    def test_a_patch_cuts_it(self, net, http2):  # noqa: F811
        with net.create("allow allowed.test") as box:
            begun = box.api.run(box.id, ["sh", "-c", "nohup curl -sSk --http2 -o /dev/null https://allowed.test:8443/bytes/1000000000000 2> /tmp/said & sleep 0.5; cat /tmp/said"])
            assert begun.stdout == "", "it goes on"
            assert box.egress("PATCH", json=[{"action": "deny", "target": "allowed.test"}]).status == 200
            said = box.api.run(box.id, ["sh", "-c", "for i in $(seq 50); do [ -s /tmp/said ] && break; sleep 0.1; done; cat /tmp/said"]).stdout
            assert "curl: (" in said, said


class TestWebSocketOverTls:
    TALK = """
import socket, ssl
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
try:
    s = context.wrap_socket(socket.create_connection(({where!r}, {port}), timeout=8), server_hostname={name!r})
    s.sendall(b"GET /socket HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
    head = s.recv(4096)
    s.sendall(b"ping\\n"); print(head[:12].decode(), s.recv(100).decode())
except OSError as e: print(type(e).__name__, e)
"""

    @pytest.mark.parametrize("port", [443, 8443])
    def test_allowed_and_denied(self, net, http2, port):  # noqa: F811
        with net.create("allow shared-a.test") as box:
            said = box.python(self.TALK.format(where="shared-a.test", port=port, name="shared-a.test"))
            assert said == "HTTP/1.1 101 echo ping", said
            net.lab.seen()
            said = box.python(self.TALK.format(where="1.2.3.12", port=port, name="shared-b.test"))
            assert "access denied" in said.lower().replace("_", " "), said
            assert not [seen for seen in net.lab.seen() if seen["what"] == "request"]


class TestDisguises:
    """Root inside tries to send what no rule would know. Every frame that reaches the internet is looked at: the mark is in none of them."""

    MARK = b"contraband"

    @pytest.mark.parametrize("attempt", [
        # IPv6 fragments: to a port that is refused, and to the resolver.
        "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.setsockopt(41, 24, 1280); s.sendto(MARK * 1000, ('2600:1::11', 443))",
        "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.setsockopt(41, 24, 1280); s.sendto(MARK * 1000, ('2600:1::11', 53))",
        # Many datagrams in one call.
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(17, 103, 500); s.sendto(MARK * 200, ('1.2.3.11', 443))",
        # Data in the first packet of a connection.
        "s = socket.socket(); s.sendto(MARK, 0x20000000, ('1.2.3.11', 7)); s.recv(10)",
        "s = socket.socket(); s.setsockopt(6, 30, 1); s.connect(('1.2.3.11', 7)); s.sendall(MARK); s.recv(10)",
        "s = socket.socket(socket.AF_INET6); s.sendto(MARK, 0x20000000, ('2600:1::11', 7)); s.recv(10)",
        # Other protocols above IP.
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(('1.2.3.11', 7)); s.sendall(MARK); s.recv(10)",
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132); s.connect(('1.2.3.11', 7)); s.sendall(MARK)",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136); s.sendto(MARK, ('1.2.3.11', 443))",
        "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255); s.sendto(MARK, ('1.2.3.11', 0))",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); s.sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0' + MARK, ('1.2.3.11', 0))",
        # A route of the sender's choice, and an urgent byte.
        "s = socket.socket(); s.setsockopt(0, 4, bytes([131, 7, 4, 1, 2, 3, 11, 0])); s.connect(('1.2.3.10', 7)); s.sendall(MARK)",
        "s = socket.socket(); s.connect(('1.2.3.11', 7)); s.send(MARK, socket.MSG_OOB); s.recv(10)",
        # To everybody at once.
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1); s.sendto(MARK, ('255.255.255.255', 53))",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(MARK, ('224.0.0.251', 5353))",
        # The name of a host that is not allowed, in the place of one that is.
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'\\0\\7\\1\\0\\0\\1' + bytes(6) + b'\\12' + MARK + b'\\5other\\4test\\0\\0\\1\\0\\1', ('1.2.3.53', 53)); s.recv(100)",
    ])  # fmt: skip
    def test_does_not_leave(self, net, attempt):  # noqa: F811
        with net.create("allow allowed.test") as box:
            stop = net.lab.listen_in()
            box.python(f"""
                import socket
                MARK = {self.MARK!r}
                socket.setdefaulttimeout(3)
                try: {attempt}; print("sent")
                except OSError as e: print(type(e).__name__, e.errno)
            """)
            assert box.get("http://allowed.test/") == "200 hello allowed.test"
            frames = stop()
            assert any(b"hello allowed.test" in frame or b"Host: allowed.test" in frame for frame in frames), "frames are seen at all"
            assert not [frame for frame in frames if self.MARK in frame.lower()]


class TestTunnelsOfLookups:
    """Below a wildcard every name is allowed, and whoever holds the zone reads it."""

    def test_new_names_have_an_end(self, net):  # noqa: F811
        with net.create("allow *.wild.test") as box:
            said = box.python(QUERY + """
import time
begin = time.monotonic()
codes = [ask(("1.1.1.1", 53), f"{'x' * 50}{n}.wild.test")[0] for n in range(1500)]
took = time.monotonic() - begin
again = [ask(("1.1.1.1", 53), "a.wild.test")[0] for n in range(3)]
print(codes.count(3), codes.count(5), round(took, 2), again)
            """)  # fmt: skip
            asked, refused, took = int(said.split()[0]), int(said.split()[1]), float(said.split()[2])
            print(f"{asked} of 1500 new names were asked within {took} s")
            assert asked + refused == 1500 and refused > 0
            assert 512 <= asked <= 512 + 32 * (took + 1)
            assert len([seen for seen in net.lab.seen() if seen.get("name", "").startswith("xxx")]) == asked
            events = [event for event in box.log() if event["outcome"] == "denied"]
            assert events and "too many new names" in events[-1]["rule"]
            assert box.egress("GET").json["recentDenials"], "and GET /policy tells it"

    def test_what_is_used_again_is_free(self, net):  # noqa: F811
        with net.create("allow allowed.test") as box:
            said = box.python(QUERY + """
print({ask(("1.1.1.1", 53), "allowed.test")[0] for n in range(2000)})
            """)  # fmt: skip
            assert said == "{0}"

    def test_the_case_of_letters_stays_here(self, net):  # noqa: F811
        with net.create("allow allowed.test") as box:
            stop = net.lab.listen_in()
            assert box.resolve("aLLoWeD.TesT") == "['1.2.3.10']"
            frames = stop()
            asked = [frame for frame in frames if b"\x07allowed\x04test" in frame.lower()]
            assert asked and all(b"\x07allowed\x04test" in frame for frame in asked)
