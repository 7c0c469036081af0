"""On a server with a key an id opens nothing: what opens a sandbox's ports is the token in the endpoint, or the key."""

import base64
import json
import os
import re
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import EXECD_PORT, Api, assert_envelope
from lib.waiting import wait_for
from lib.websocket import TEXT, WebSocket

PORT = 8231
UNKNOWN = "01980000-0000-7000-8000-000000000000"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]


@pytest.fixture(scope="module")
def keyed(keyed_service):
    return Api(keyed_service)


@pytest.fixture(scope="module")
def backend(keyed):
    """A sandbox with a program that listens, known by its id."""
    made = keyed.create()["id"]
    start_backend(keyed, made)
    yield made
    keyed.delete(made)


@pytest.fixture(scope="module")
def other(keyed):
    made = keyed.create()["id"]
    yield made
    keyed.delete(made)


def start_backend(api, sandbox):
    api.upload(sandbox, "/tmp/backend.py", Path(__file__).with_name("backend.py").read_bytes())
    assert api.run(sandbox, f"/usr/bin/python3 /tmp/backend.py {PORT} > /tmp/backend.log 2>&1 &").exit_code == 0
    wait_for(lambda: api.call("GET", f"/sandboxes/{sandbox}/proxy/{PORT}/up").status == 200, 10, "the backend answers")


def token_of(api, sandbox, port):
    return re.fullmatch(rf"/v1/t/([\w-]{{24}})/sandboxes/{sandbox}/proxy/{port}", api.endpoint(sandbox, port))[1]


def ask(api, method, path, **more):
    """Without the key."""
    return rawhttp.request(api.address, method, path, **more)


class TestAnIdOpensNothing:
    @pytest.mark.parametrize("prefix", ["", "/v1"])
    @pytest.mark.parametrize("port, path", [(EXECD_PORT, "/ping"), (EXECD_PORT, "/command"), (EXECD_PORT, f"/proxy/{PORT}/"), (PORT, "/"), (PORT, ""), (1, "/"), (18080, "/policy")])
    @pytest.mark.parametrize("method", METHODS)
    def test_without_key_and_token(self, keyed, backend, prefix, port, path, method):
        reply = ask(keyed, method, f"{prefix}/sandboxes/{backend}/proxy/{port}{path}")
        assert reply.status == 401, reply
        if method != "HEAD":
            assert_envelope(reply, 401, "MISSING_API_KEY")

    def test_commands_are_not_executed(self, keyed, backend):
        """The way in that was: the id from a name that anybody on the host can see."""
        ask(keyed, "POST", f"/sandboxes/{backend}/proxy/{EXECD_PORT}/command", json={"command": "touch /tmp/was-here"})
        assert keyed.run(backend, "ls /tmp/was-here").exit_code != 0

    def test_which_ids_exist_is_not_told(self, keyed, backend):
        def answer(sandbox, token=""):
            reply = ask(keyed, "GET", f"{token}/sandboxes/{sandbox}/proxy/{EXECD_PORT}/ping", headers={"X-Request-ID": "q"})
            headers = sorted(name.lower() for name, _ in reply.headers)
            return reply.status, reply.json, headers

        assert answer(backend) == answer(UNKNOWN) == answer("x")
        wrong = "/t/" + "A" * 24
        assert answer(backend, wrong) == answer(UNKNOWN, wrong) == answer(backend)

    SPELLINGS = [
        "/v1//sandboxes/{id}/proxy/{port}/ping", "//sandboxes/{id}/proxy/{port}/ping", "/sandboxes//{id}/proxy/{port}/ping",
        "/sandboxes/{id}//proxy/{port}/ping", "/sandboxes/{id}/proxy//{port}/ping", "/./sandboxes/{id}/proxy/{port}/ping",
        "/x/../sandboxes/{id}/proxy/{port}/ping", "/x/%2e%2e/sandboxes/{id}/proxy/{port}/ping", "/x/%2E%2E/sandboxes/{id}/proxy/{port}/ping",
        "/sandboxes%2F{id}%2Fproxy%2F{port}/ping", "/sandboxes/{id}%2fproxy/{port}/ping", "/sandboxes/{id}./proxy/{port}/ping",
        "/sandboxes/{id}/proxy/{port}./ping", "/%73andboxes/{id}/proxy/{port}/ping", "/sandboxes/{id}/%70roxy/{port}/ping",
        "/sandboxes/{id}/proxy/%34%34772/ping", "/SANDBOXES/{id}/proxy/{port}/ping", "/sandboxes/{upper}/proxy/{port}/ping",
        "/sandboxes/{id};x/proxy/{port}/ping", "/sandboxes/{id}/proxy/{port};x/ping", "/sandboxes/{id}/proxy/0{port}/ping",
        "/sandboxes/{id}/proxy/+{port}/ping", "/sandboxes/{id}/proxy/{port}%00/ping", "/health/../sandboxes/{id}/proxy/{port}/ping",
        "/health?/sandboxes/{id}/proxy/{port}/ping", "/t/sandboxes/{id}/proxy/{port}/ping", "/t//sandboxes/{id}/proxy/{port}/ping",
        "/t/./sandboxes/{id}/proxy/{port}/ping", "/t/x/../sandboxes/{id}/proxy/{port}/ping", "/t/%2e%2e/sandboxes/{id}/proxy/{port}/ping",
        "/T/x/sandboxes/{id}/proxy/{port}/ping", "/t/x/t/y/sandboxes/{id}/proxy/{port}/ping", "/v1/t/x/v1/sandboxes/{id}/proxy/{port}/ping",
        "/version/sandboxes/{id}/proxy/{port}/ping", "http://127.0.0.1/sandboxes/{id}/proxy/{port}/ping",
    ]  # fmt: skip

    @pytest.mark.parametrize("spelling", SPELLINGS)
    def test_spellings(self, keyed, backend, spelling):
        for port in (EXECD_PORT, PORT):
            path = spelling.format(id=backend, upper=backend.upper(), port=port)
            if path.startswith("/health?"):
                assert "status" in ask(keyed, "GET", path).json
                continue
            assert ask(keyed, "GET", path).status in (400, 401), path

    def test_wrong_tokens(self, keyed, backend, other):
        own, shell, foreign = token_of(keyed, backend, PORT), token_of(keyed, backend, EXECD_PORT), token_of(keyed, other, PORT)
        foreign_shell = token_of(keyed, other, EXECD_PORT)
        for token in (own, shell):
            assert ask(keyed, "GET", f"/t/{token}/sandboxes/{backend}/proxy/{PORT}/up").status == 200
        wrong = [
            foreign, foreign_shell, own[:-1], own[1:], own + "=", own + "==", own + "A", own + own, own.swapcase(), own[::-1], "%41" + own[1:],
            own + "%3D", own + "%00", "A" * 10_000, "A" * 24, "-", backend, keyed.key, base64.urlsafe_b64encode(bytes(18)).decode(),
        ]  # fmt: skip
        for token in wrong:
            for method in ("GET", "POST"):
                reply = ask(keyed, method, f"/v1/t/{token}/sandboxes/{backend}/proxy/{PORT}/up")
                assert reply.status == 401, (token, reply)

    def test_a_port_is_a_port(self, keyed, backend):
        """A link to a page is no shell; a shell is every page."""
        page, shell = token_of(keyed, backend, PORT), token_of(keyed, backend, EXECD_PORT)
        for port in (EXECD_PORT, PORT + 1, PORT - 1, 1, 18080):
            assert ask(keyed, "GET", f"/t/{page}/sandboxes/{backend}/proxy/{port}/ping").status == 401
        for path in (f"/../{EXECD_PORT}/ping", f"/%2e%2e/{EXECD_PORT}/ping", f"/..%2f{EXECD_PORT}/ping", f"/x/../../{EXECD_PORT}/ping"):
            assert ask(keyed, "GET", f"/t/{page}/sandboxes/{backend}/proxy/{PORT}{path}").status == 401
        assert ask(keyed, "GET", f"/t/{shell}/sandboxes/{backend}/proxy/{PORT}/x").json["target"] == "/x"
        assert ask(keyed, "GET", f"/t/{shell}/sandboxes/{backend}/proxy/{EXECD_PORT}/proxy/{PORT}/x").json["target"] == "/x"

    @pytest.mark.parametrize("port, path", [(PORT, "/websocket"), (EXECD_PORT, "/pty/x/ws")])
    def test_web_sockets(self, keyed, backend, other, port, path):
        for token in ("", "/t/x", f"/t/{token_of(keyed, other, port)}", *([f"/t/{token_of(keyed, backend, PORT)}"] if port != PORT else [])):
            with WebSocket(keyed.address, f"{token}/sandboxes/{backend}/proxy/{port}{path}") as ws:
                assert ws.status == 401


class TestTheEndpointOpens:
    def test_its_form(self, keyed, backend):
        host = f"{keyed.address[0]}:{keyed.address[1]}"
        for prefix in ("", "/v1"):
            for query in ("", "?use_server_proxy=true"):
                reply = ask(keyed, "GET", f"{prefix}/sandboxes/{backend}/endpoints/{PORT}{query}", headers={"OPEN-SANDBOX-API-KEY": keyed.key})
                assert re.fullmatch(rf"{host}{prefix}/t/[\w-]{{24}}/sandboxes/{backend}/proxy/{PORT}", reply.json["endpoint"])
                assert "headers" not in reply.json

    def test_commands_files_and_terminals(self, keyed, backend):
        base = keyed.endpoint(backend)
        body = ask(keyed, "POST", base + "/command", json={"command": "echo in"}).body
        assert b'"text":"in"' in body
        session = ask(keyed, "POST", base + "/pty", json={"command": "echo over $((40+2)); sleep 60"}).json["session_id"]
        with WebSocket(keyed.address, f"{base}/pty/{session}/ws") as ws:
            assert ws.status == 101
            assert ws.frame() is not None
        with WebSocket(keyed.address, keyed.endpoint(backend, PORT) + "/websocket") as ws:
            assert ws.status == 101
            ws.send(TEXT, b"hello")
            assert ws.frame()[1] == b"hello"

    def test_redirects_keep_the_token(self, keyed, backend):
        base = keyed.endpoint(backend, PORT)
        reply = ask(keyed, "GET", base + "/redirect?/next")
        assert reply.header("location") == base + "/next"
        assert ask(keyed, "GET", reply.header("location")).json["target"] == "/next"

    def test_links_learn_the_origin_at_most(self, keyed, backend):
        assert ask(keyed, "GET", keyed.endpoint(backend, PORT) + "/x").all("referrer-policy") == ["origin"]

    def test_the_key_opens_too(self, keyed, backend):
        assert keyed.call("GET", f"/sandboxes/{backend}/proxy/{PORT}/x").status == 200
        assert keyed.call("GET", f"/t/wrong/sandboxes/{backend}/proxy/{PORT}/x").status == 200
        assert_envelope(keyed.call("GET", f"/sandboxes/{backend}/proxy/{PORT}/x", key="wrong"), 401, "INVALID_API_KEY")

    def test_after_a_restart_and_after_the_end(self, new_service):
        service = new_service(api_key="k-for-this-test")
        api = Api(service)
        sandbox = api.create()["id"]
        base = api.endpoint(sandbox)
        service.kill_server()
        assert ask(api, "GET", base + "/ping").status == 200
        service.restart()
        assert ask(api, "GET", base + "/ping").status == 200
        assert api.endpoint(sandbox) == base
        secret = service.state_dir / "secret"
        assert stat.S_IMODE(secret.stat().st_mode) == 0o400 and secret.stat().st_size == 32
        assert secret.stat().st_uid == (service.state_dir / "db").stat().st_uid
        assert api.delete(sandbox).status == 204
        assert_envelope(ask(api, "GET", base + "/ping"), 404, "SANDBOX::NOT_FOUND")

    def test_an_open_proxy(self, new_service):
        service = new_service(api_key="k-for-this-test", proxy={"open": True})
        api = Api(service)
        sandbox = api.create()["id"]
        assert api.endpoint(sandbox) == f"/v1/sandboxes/{sandbox}/proxy/{EXECD_PORT}"
        assert ask(api, "GET", f"/sandboxes/{sandbox}/proxy/{EXECD_PORT}/ping").status == 200
        assert ask(api, "GET", f"/sandboxes/{sandbox}").status == 401
        warnings = [line for line in service.log_path.read_text().splitlines() if "proxy.open" in line]
        assert len(warnings) == 1 and "WARN" in warnings[0].upper(), warnings


class TestNothingReachesTheSandbox:
    @pytest.fixture
    def seen(self, keyed, backend):
        def send(path="/x", headers=()):
            reply = ask(keyed, "GET", keyed.endpoint(backend, PORT) + path, headers=headers)
            assert reply.status == 200, reply
            return reply.json

        return send

    @pytest.mark.parametrize("name", ["OPEN-SANDBOX-API-KEY", "X-API-Key", "X-EXECD-ACCESS-TOKEN", "OPENSANDBOX-EGRESS-AUTH", "Authorization", "X-Anything", "Sec-WebSocket-Protocol", "User-Agent"])
    @pytest.mark.parametrize("form", ["{key}", "Bearer {key}", "key={key}; x=1"])
    def test_the_key_under_any_name(self, keyed, seen, name, form):
        assert keyed.key not in json.dumps(seen(headers={name: form.format(key=keyed.key)}))

    def test_the_key_in_a_parameter(self, keyed, seen):
        escaped = keyed.key.replace("-", "%2D")
        assert seen(f"/x?a=1&k={keyed.key}&b=%20&k={escaped}")["target"] == "/x?a=1&b=%20"

    def test_the_token(self, keyed, backend, seen):
        base = keyed.endpoint(backend, PORT)
        token = token_of(keyed, backend, PORT)
        shell = keyed.endpoint(backend)
        url = f"http://{keyed.address[0]}:{keyed.address[1]}{shell}/x"
        found = seen(headers={"Referer": url, "X-Original-URI": base + "/x", "X-Envoy-Original-Path": base + "/x", "X-Kept": "1"})
        text = json.dumps(found)
        assert token not in text and token_of(keyed, backend, EXECD_PORT) not in text
        assert ["Referer", f"http://{keyed.address[0]}:{keyed.address[1]}/"] in found["headers"]
        assert ["X-Kept", "1"] in found["headers"]

    def test_the_key_in_an_upgrade(self, keyed, backend):
        keyed.run(backend, "rm -f /tmp/heads")
        listen = "import socket\ns=socket.create_server(('127.0.0.1',8377))\nc,_=s.accept()\nopen('/tmp/heads','wb').write(c.recv(65536))\nc.sendall(b'HTTP/1.1 400 no\\r\\nContent-Length: 0\\r\\n\\r\\n')"
        keyed.upload(backend, "/tmp/listen.py", listen.encode())
        keyed.run(backend, "(setsid python3 /tmp/listen.py >/dev/null 2>&1 &)")

        def upgrade():
            with WebSocket(keyed.address, keyed.endpoint(backend, 8377) + f"/ws?k={keyed.key}", headers=[("X-Mine", keyed.key), ("OPEN-SANDBOX-API-KEY", keyed.key), ("X-Kept", "1")]) as ws:
                return ws.status == 400

        wait_for(upgrade, 10, "the listener answers")
        head = keyed.download(backend, "/tmp/heads")
        assert b"GET /ws HTTP/1.1\r\n" in head and b"X-Kept: 1" in head and keyed.key.encode() not in head

    def test_nor_logs_lists_and_diagnostics(self, keyed, keyed_service, backend):
        tokens = [token_of(keyed, backend, port) for port in (EXECD_PORT, PORT)]
        for token in tokens:
            for path in (f"/t/{token}/sandboxes/{backend}/nothing", f"/t/{token}/sandboxes/{backend}/proxy/1/", f"/v1/t/{token}", f"/t/{token}/sandboxes/{backend}/proxy/{PORT}/drop"):
                reply = keyed.call("GET", path) if not path.startswith("/v1") else ask(keyed, "GET", path, headers={"OPEN-SANDBOX-API-KEY": keyed.key})
                assert reply.status >= 400 and token not in repr(reply.headers) + reply.body.decode()
        said = [keyed_service.log_path.read_text(), json.dumps(keyed.list_all()), json.dumps(keyed.get(backend))]
        for scope in ("inspect", "events", "logs"):
            reply = keyed.call("GET", f"/sandboxes/{backend}/diagnostics/{scope}")
            said.append(reply.body.decode())
        assert "BACKEND_CONNECTION_FAILED" in said[0], "the refusals above are in the log"
        for text in said:
            assert not any(token in text for token in tokens)


def test_osb(keyed, bin_dir):
    """Our own client has the key and needs no endpoint."""
    environment = {"OPEN_SANDBOX_DOMAIN": f"{keyed.address[0]}:{keyed.address[1]}", "PATH": os.environ["PATH"]}
    command = [bin_dir / "osb", "run", "host", "--", "sh", "-c", "echo in; exit 7"]
    done = subprocess.run(command, env={**environment, "OPEN_SANDBOX_API_KEY": keyed.key}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "in\n"), done
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "MISSING_API_KEY" in done.stderr, done


class TestTheEgressPort:
    """Port 18080 belongs to the egress process; execd's own proxy is no way round that."""

    WAYS = ["/proxy/18080/", "/proxy/18080", "//proxy/18080/", "/proxy/44772/proxy/18080/x", "/proxy/44772/proxy/44772/proxy/18080", "/proxy/018080/", "/%70roxy/18080/", "/proxy%2F18080/", "/proxy/18080/%zz"]

    @pytest.fixture(scope="class")
    def impostor(self, api):
        """A sandbox in which a program listens on that port."""
        sandbox = api.create()["id"]
        api.upload(sandbox, "/tmp/backend.py", Path(__file__).with_name("backend.py").read_bytes())
        api.run(sandbox, "/usr/bin/python3 /tmp/backend.py 18080 > /tmp/backend.log 2>&1 &")
        listens = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 18080))'"
        wait_for(lambda: api.run(sandbox, listens).exit_code == 0, 10, "the program listens")
        yield sandbox
        api.delete(sandbox)

    @pytest.mark.parametrize("way", WAYS)
    def test_not_through_execd(self, api, impostor, way):
        reply = api.execd(impostor, "POST", way, body=b"a secret for the egress process")
        assert_envelope(reply, 502, "BACKEND_CONNECTION_FAILED")

    def test_nor_by_execd_itself(self, new_service):
        """Also for whoever reaches execd without the server, as root of the host can."""
        service = new_service()
        api = Api(service)
        sandbox = api.create()["id"]
        api.run(sandbox, "true")
        for way in ("/proxy/18080/", "/proxy/44772/proxy/18080/"):
            with socket.socket(socket.AF_UNIX) as execd:
                execd.settimeout(10)
                execd.connect(service.scope.socket(sandbox, "api"))
                execd.sendall(f"GET {way} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                reply = b"".join(iter(lambda: execd.recv(65536), b""))
            assert reply.startswith(b"HTTP/1.1 502 ") and b"belongs to the egress process" in reply, reply
