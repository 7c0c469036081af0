"""Heads that two parsers could read differently are refused, and the connection with them: no request is smuggled past."""

import pytest
from lib import rawhttp

# The request that an attacker would like to have executed behind the first one.
SMUGGLED = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-ID: smuggled\r\n\r\n"

GOOD = b"Host: 127.0.0.1\r\n"

REFUSED = {
    "two hosts": b"GET /health HTTP/1.1\r\n" + GOOD + GOOD + b"\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "host with a path": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1/x\r\n\r\n",
    "host with user": b"GET /health HTTP/1.1\r\nHost: a@127.0.0.1\r\n\r\n",
    "folded header": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A: 1\r\n 2\r\n\r\n",
    "folded with tab": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A: 1\r\n\t2\r\n\r\n",
    "space before colon": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A : 1\r\n\r\n",
    "leading space": b"GET /health HTTP/1.1\r\n X-A: 1\r\n" + GOOD + b"\r\n",
    "empty header name": b"GET /health HTTP/1.1\r\n" + GOOD + b": 1\r\n\r\n",
    "no colon": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A\r\n\r\n",
    "header name with odd bytes": b"GET /health HTTP/1.1\r\n" + GOOD + b"X(A): 1\r\n\r\n",
    "nul in value": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A: a\x00b\r\n\r\n",
    "bare CR in value": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A: a\rb\r\n\r\n",
    "bare LF as line end": b"GET /health HTTP/1.1\n" + GOOD + b"\r\n",
    "bare LF between headers": b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\nX-A: 1\r\n\r\n",
    "length and chunked": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "list of lengths": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: 0, 5\r\n\r\n",
    "signed length": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: +0\r\n\r\n",
    "negative length": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: -1\r\n\r\n",
    "hexadecimal length": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: 0x0\r\n\r\n",
    "length beyond 64 bits": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length: 18446744073709551616\r\n\r\n",
    "empty length": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Content-Length:\r\n\r\n",
    "xchunked": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "two codings": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked then identity": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two coding lines": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "coding with odd white space": b"POST /v1/sandboxes HTTP/1.1\r\n" + GOOD + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"POST /v1/sandboxes HTTP/1.0\r\n" + GOOD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad version": b"GET /health HTTP/1.2\r\n" + GOOD + b"\r\n",
    "HTTP/2": b"GET /health HTTP/2.0\r\n" + GOOD + b"\r\n",
    "no version": b"GET /health\r\n" + GOOD + b"\r\n",
    "lower case protocol": b"GET /health http/1.1\r\n" + GOOD + b"\r\n",
    "two spaces": b"GET  /health HTTP/1.1\r\n" + GOOD + b"\r\n",
    "tab in the request line": b"GET\t/health HTTP/1.1\r\n" + GOOD + b"\r\n",
    "space in target": b"GET /heal th HTTP/1.1\r\n" + GOOD + b"\r\n",
    "control in target": b"GET /health\x01 HTTP/1.1\r\n" + GOOD + b"\r\n",
    "raw byte in target": b"GET /health\xff HTTP/1.1\r\n" + GOOD + b"\r\n",
    "target without slash": b"GET health HTTP/1.1\r\n" + GOOD + b"\r\n",
    "odd method": b"GE(T /health HTTP/1.1\r\n" + GOOD + b"\r\n",
    "connect": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + GOOD + b"\r\n",
    "endless head": b"GET /health HTTP/1.1\r\n" + GOOD + b"X-A: " + b"a" * 70000 + b"\r\n\r\n",
    "endless target": b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + GOOD + b"\r\n",
    "many headers": b"GET /health HTTP/1.1\r\n" + GOOD + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n",
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
}

# 400 for what is ambiguous; the narrower statuses where they say more.
STATUSES = {400, 405, 413, 414, 417, 431, 501, 505}


def replies(data):
    """Status codes of all responses in a byte string (the tests' bodies contain no status lines)."""
    return [int(line.split(b" ")[1]) for line in data.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


@pytest.mark.parametrize("head", REFUSED.values(), ids=REFUSED.keys())
def test_refused_and_closed(api, head):
    with rawhttp.Connection(api.address, timeout=10) as connection:
        try:
            connection.send(head + SMUGGLED)
        except (BrokenPipeError, ConnectionResetError):
            pass
        received = connection.read_to_end()
    found = replies(received)
    assert b"smuggled" not in received, "the second request was answered"
    assert len(found) <= 1, found
    assert found and found[0] in STATUSES, received[:300]
    if found[0] != 405:
        assert b"connection: close" in received.lower()


AMBIGUOUS = [name for name in REFUSED if "endless" not in name and name not in ("bad version", "HTTP/2", "connect", "many headers", "two codings", "chunked twice", "xchunked", "chunked then identity")]


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_heads_are_400(api, name):
    with rawhttp.Connection(api.address, timeout=10) as connection:
        connection.send(REFUSED[name])
        assert replies(connection.read_to_end())[:1] == [400]


CHUNKED = b"POST /v1/metrics/events HTTP/1.1\r\n" + GOOD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [b"zz\r\n", b"-1\r\n", b"+1\r\na\r\n0\r\n\r\n", b"0x1\r\na\r\n0\r\n\r\n", b"1\r\nab\r\n0\r\n\r\n", b"1\na\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n", b"1 \x00\r\na\r\n0\r\n\r\n"],
)
def test_broken_chunks(api, body):
    with rawhttp.Connection(api.address, timeout=10) as connection:
        connection.send(CHUNKED + body + SMUGGLED)
        received = connection.read_to_end()
    assert b"smuggled" not in received
    assert all(status >= 400 for status in replies(received)), received[:300]


def test_the_same_through_the_proxy(api, sandbox):
    """What is refused for the server's own routes is refused before it reaches a sandbox, too."""
    for name in ("length and chunked", "two lengths", "xchunked", "folded header", "two hosts"):
        head = REFUSED[name].replace(b" /v1/sandboxes ", f" /v1/sandboxes/{sandbox}/proxy/44772/command ".encode()).replace(b" /health ", f" /v1/sandboxes/{sandbox}/proxy/44772/ping ".encode())
        with rawhttp.Connection(api.address, timeout=10) as connection:
            connection.send(head + SMUGGLED)
            received = connection.read_to_end()
        assert b"smuggled" not in received, name
        assert replies(received) and replies(received)[0] in STATUSES, name


def test_http_1_0_is_answered_and_closed(api):
    with rawhttp.Connection(api.address, timeout=10) as connection:
        connection.send(b"GET /health HTTP/1.0\r\n" + GOOD + b"\r\n")
        received = connection.read_to_end()
    assert replies(received) in ([200], [400], [505])


def test_slow_head_does_not_block_others(api):
    with rawhttp.Connection(api.address) as slow:
        slow.send(b"GET /health HTT")
        assert rawhttp.request(api.address, "GET", "/health", timeout=5).status == 200
        slow.send(b"P/1.1\r\n" + GOOD + b"\r\n")
        assert slow.read_response().status == 200
