"""Ways to a port of a sandbox besides its endpoint: signed endpoints, sandboxes with secureAccess, previews with a host name of their
own, and the bytes of a port without HTTP."""

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import EXECD_PORT, Api, assert_envelope
from lib.waiting import wait_for
from lib.websocket import TEXT, WebSocket

PORT = 8231
ECHO_PORT = 8232
ECHO = f"""import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"welcome\\n")
        for line in self.rfile:
            self.wfile.write(line.upper())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", {ECHO_PORT}), Echo).serve_forever()
"""


PROGRAMS = f'python3 -c "$0" {PORT} & exec python3 -c "$1"'


@pytest.fixture(scope="module", params=["keyed", "open"])
def api(request):
    return Api(request.getfixturevalue("keyed_service" if request.param == "keyed" else "service"))


@pytest.fixture(scope="module")
def plain(api):
    yield from with_programs(api)


@pytest.fixture(scope="module")
def secured(api):
    yield from with_programs(api, secureAccess=True)


def with_programs(api, **fields):
    """A sandbox whose entry process serves both ports."""
    backend = Path(__file__).with_name("backend.py").read_text()
    made = api.create(entrypoint=["sh", "-c", PROGRAMS, backend, ECHO], **fields)["id"]
    given = endpoint(api, made)
    wait_for(lambda: fetch(api, path_of(given["endpoint"]), headers=given.get("headers", {})).status == 200, 10, "the backend answers")
    wait_for(lambda: is_open(api, made), 10, "the other program answers")
    yield made
    assert api.delete(made).status == 204


def is_open(api, sandbox):
    with raw(api, sandbox, headers=endpoint(api, sandbox).get("headers", {}).items()) as connection:
        return connection.read_head().status == 101


def endpoint(api, sandbox, port=PORT, query=""):
    reply = api.call("GET", f"/sandboxes/{sandbox}/endpoints/{port}{query}")
    assert reply.status == 200, reply
    return reply.json


def path_of(address):
    return address[address.index("/"):]


def fetch(api, target, **more):
    """Without the key."""
    return rawhttp.request(api.address, "GET", target, **more)


def soon(seconds):
    return int(time.time()) + seconds


class TestSigned:
    def test_opens_its_port_until_its_time_is_over(self, api, plain):
        path = path_of(endpoint(api, plain, query=f"?expires={soon(2)}")["endpoint"])
        assert f"/sandboxes/{plain}/proxy/{PORT}" in path
        seen = fetch(api, path + "/a?b=1").json
        assert seen["target"] == "/a?b=1"
        assert path.split("/s/")[1].split("/")[1] not in str(seen)
        wait_for(lambda: fetch(api, path).status == 401, 5, "the end of its time")
        assert_envelope(fetch(api, path), 401, "ENDPOINT_SIGNATURE_EXPIRED")

    def test_of_another_port_sandbox_or_time_opens_nothing(self, api, plain, secured):
        path = path_of(endpoint(api, plain, query=f"?expires={soon(600)}")["endpoint"])
        later = re.sub("/s/[0-9a-z]+/", "/s/zzzzzz/", path)
        for other in (path.replace(f"/proxy/{PORT}", f"/proxy/{EXECD_PORT}"), path.replace(plain, secured), later, path.replace("/s/", "/s/x")):
            assert_envelope(fetch(api, other), 401, "INVALID_ENDPOINT_SIGNATURE")

    def test_what_cannot_be_signed_says_why(self, api, plain):
        for query in (f"expires={soon(-1)}", "expires=0", "expires=-1", f"expires={soon(60)}&use_server_proxy=true", f"expires={soon(60)}&preview=true"):
            assert_envelope(api.call("GET", f"/sandboxes/{plain}/endpoints/{PORT}?{query}"), 400, "SANDBOX::INVALID_PARAMETER")
        assert api.call("GET", f"/sandboxes/01980000-0000-7000-8000-000000000000/endpoints/80?expires={soon(60)}").status == 404

    def test_holds_after_a_restart(self, new_service):
        api = Api(new_service())
        made = api.create()["id"]
        path = path_of(endpoint(api, made, EXECD_PORT, f"?expires={soon(600)}")["endpoint"])
        api.service.restart()
        assert fetch(api, path + "/ping").status == 200


class TestSecureAccess:
    def test_needs_its_header_besides(self, api, secured):
        given = endpoint(api, secured)
        header = given["headers"]["OpenSandbox-Secure-Access"]
        path = path_of(given["endpoint"])
        key = [("OPEN-SANDBOX-API-KEY", api.key)] if api.key else []
        for wrong in ([], key, [("OpenSandbox-Secure-Access", "")], [("OpenSandbox-Secure-Access", header[:-1])]):
            assert_envelope(fetch(api, path, headers=wrong), 401, "MISSING_OR_INVALID_SECURE_ACCESS")
        seen = fetch(api, path, headers=[("OpenSandbox-Secure-Access", header)])
        assert seen.status == 200 and header not in str(seen.json)

    def test_everything_that_leads_into_it_needs_it(self, api, secured):
        assert endpoint(api, secured, EXECD_PORT)["headers"]["OpenSandbox-Secure-Access"]
        assert_envelope(api.execd(secured, "GET", "/ping"), 401, "MISSING_OR_INVALID_SECURE_ACCESS")
        for method, path in (("GET", "networkpolicy"), ("GET", "egress/log")):
            assert_envelope(api.call(method, f"/sandboxes/{secured}/{path}"), 401, "MISSING_OR_INVALID_SECURE_ACCESS")
        context = api.call("POST", f"/sandboxes/{secured}/contexts", json={"language": "python"})
        assert_envelope(context, 401, "MISSING_OR_INVALID_SECURE_ACCESS")

    def test_a_signed_endpoint_takes_its_place_unless_the_header_is_wrong(self, api, secured):
        given = endpoint(api, secured, query=f"?expires={soon(600)}")
        assert "OpenSandbox-Secure-Access" not in given.get("headers", {})
        path = path_of(given["endpoint"])
        assert fetch(api, path).status == 200
        assert_envelope(fetch(api, path, headers=[("OpenSandbox-Secure-Access", "x")]), 401, "MISSING_OR_INVALID_SECURE_ACCESS")

    def test_is_told_to_nobody_and_survives_a_lost_database(self, new_service):
        api = Api(new_service())
        made = api.create(secureAccess=True)["id"]
        header = endpoint(api, made, EXECD_PORT)["headers"]["OpenSandbox-Secure-Access"]
        assert "ecure" not in str(api.get(made))
        api.service.stop()
        for file in (api.service.state_dir / "db").glob("opensandbox.db*"):
            file.unlink()
        api.service.start()
        api.service.wait_healthy()
        assert_envelope(api.execd(made, "GET", "/ping"), 401, "MISSING_OR_INVALID_SECURE_ACCESS")
        assert api.execd(made, "GET", "/ping", headers=[("OpenSandbox-Secure-Access", header)]).status == 200
        assert header not in api.service.log_tail()

    def test_has_no_preview(self, api, secured):
        assert_envelope(api.call("GET", f"/sandboxes/{secured}/endpoints/{PORT}?preview=true"), 400, "SANDBOX::INVALID_PARAMETER")


class TestPreview:
    @pytest.fixture
    def host(self, api, plain):
        return endpoint(api, plain, query="?preview=true")["endpoint"]

    def test_is_the_whole_of_a_host(self, api, plain, host):
        assert re.fullmatch(rf"{PORT}-[a-z2-7]{{45}}\.localhost:{api.address[1]}", host) and plain[:8] not in host
        cookies = [("Host", host), ("Cookie", "a=1"), ("Authorization", "Basic abc")]
        seen = fetch(api, "/sandboxes?x=1", headers=cookies).json
        got = {name.lower(): value for name, value in seen["headers"]}
        assert seen["target"] == "/sandboxes?x=1", "no path of it is ours"
        assert (got["host"], got["cookie"], got["authorization"], got["x-forwarded-host"]) == (host, "a=1", "Basic abc", host)

    def test_the_key_does_not_come_along(self, api, host):
        if not api.key:
            pytest.skip("this server has no key")
        names = ["OPEN-SANDBOX-API-KEY", "X-Any"]
        seen = fetch(api, "/", headers=[("Host", host), ("Authorization", f"Bearer {api.key}"), *((name, api.key) for name in names)]).json
        assert api.key not in str(seen)

    def test_links_and_cookies_are_its_own(self, api, host):
        reply = fetch(api, "/redirect?/next", headers=[("Host", host)])
        assert reply.header("Location") == "/next"
        assert reply.header("Referrer-Policy") == "same-origin", "its name opens it"
        assert fetch(api, "/cookies", headers=[("Host", host)]).all("Set-Cookie") == ["a=1", "b=2"]

    def test_websocket(self, api, host):
        with WebSocket(api.address, "/websocket", headers=[("Host", host)]) as connection:
            connection.send(TEXT, b"through")
            assert connection.frame() == (TEXT, b"through")

    def test_a_handle_is_for_its_port(self, api, host):
        for other in (host.replace(str(PORT), str(ECHO_PORT), 1), host.replace(str(PORT), str(EXECD_PORT), 1), host[:10] + ("a" if host[10] != "a" else "b") + host[11:]):
            assert_envelope(fetch(api, "/ping", headers=[("Host", other)]), 404, "PREVIEW_NOT_FOUND")

    def test_ends_with_its_sandbox_and_holds_over_restarts(self, new_service):
        api = Api(new_service())
        made = api.create()["id"]
        api.upload(made, "/tmp/backend.py", Path(__file__).with_name("backend.py").read_bytes())
        assert api.run(made, f"python3 /tmp/backend.py {PORT} > /dev/null 2>&1 &").exit_code == 0
        host = [("Host", endpoint(api, made, query="?preview=true")["endpoint"])]
        wait_for(lambda: fetch(api, "/", headers=host).status == 200, 10, "the backend answers")
        api.service.restart()
        assert fetch(api, "/", headers=host).status == 200
        api.delete(made)
        assert fetch(api, "/", headers=host).status == 404

    def test_is_not_for_our_own_ports(self, api, plain):
        for port in (EXECD_PORT, 18080):
            assert_envelope(api.call("GET", f"/sandboxes/{plain}/endpoints/{port}?preview=true"), 400, "SANDBOX::INVALID_PARAMETER")

    def test_can_be_switched_off(self, new_service):
        api = Api(new_service(proxy={"preview_domain": ""}))
        made = api.create()["id"]
        assert_envelope(api.call("GET", f"/sandboxes/{made}/endpoints/80?preview=true"), 400, "SANDBOX::API_NOT_SUPPORTED")


def raw(api, sandbox, port=ECHO_PORT, headers=()):
    connection = rawhttp.Connection(api.address)
    key = [("OPEN-SANDBOX-API-KEY", api.key)] if api.key else []
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "opensandbox-tcp")]
    connection.send_request("GET", f"/sandboxes/{sandbox}/proxy/{port}", [*upgrade, *key, *headers])
    return connection


class TestBytes:
    def test_both_ways(self, api, plain):
        with raw(api, plain) as connection:
            assert connection.read_head().status == 101
            assert connection._take_until(b"\n") == b"welcome"
            connection.send(b"abc\n")
            assert connection._take_until(b"\n") == b"ABC"
            connection.socket.shutdown(socket.SHUT_WR)
            assert connection.read_to_end() == b""

    def test_what_is_refused(self, api, plain, secured):
        with raw(api, plain, 1) as connection:
            assert_envelope(connection.read_response(), 502, "BACKEND_CONNECTION_FAILED")
        with raw(api, secured) as connection:
            assert_envelope(connection.read_response(), 401, "MISSING_OR_INVALID_SECURE_ACCESS")

    def test_osb_forward(self, api, plain, secured, bin_dir):
        environment = {"PATH": os.environ["PATH"], "OPEN_SANDBOX_DOMAIN": "%s:%d" % api.address, **({"OPEN_SANDBOX_API_KEY": api.key} if api.key else {})}
        shown = subprocess.run([bin_dir / "osb", "preview", plain, str(PORT)], env=environment, capture_output=True, text=True)
        assert shown.stdout == "http://%s/\n" % endpoint(api, plain, query="?preview=true")["endpoint"], shown
        command = [bin_dir / "osb", "forward", f"0:{plain}:{ECHO_PORT}", f"0:{secured}:{ECHO_PORT}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            for _ in range(2):
                port = int(re.match(r"127\.0\.0\.1:(\d+) -> port", process.stdout.readline())[1])
                with socket.create_connection(("127.0.0.1", port), 10) as client, client.makefile("rwb") as stream:
                    assert stream.readline() == b"welcome\n"
                    for word in (b"one\n", b"two\n"):
                        stream.write(word)
                        stream.flush()
                        assert stream.readline() == word.upper()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
