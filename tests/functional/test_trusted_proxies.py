"""server.trusted_proxies: what a proxy in front of the server says about its clients counts, what anybody else says does not. Peers
have addresses of their own on loopback; the last tests have a real nginx in front."""

import shutil
import subprocess
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api
from lib.plugin import shared_service
from lib.service import free_port
from lib.waiting import wait_for

PORT = 8231
KEY = "a-key-for-proxies-0123456789"
TRUSTED, IN_RANGE, STRANGER = "127.0.0.2", "127.0.9.200", "127.0.0.3"
CLAIMS = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "sandboxes.example", "X-Forwarded-Proto": "https"}
OTHER_CLAIMS = {"Forwarded": "for=198.51.100.1;host=forged.example;proto=https", "X-Real-IP": "198.51.100.1", "X-Forwarded-Port": "1",
                "X-Forwarded-Prefix": "/forged"}  # fmt: skip


@pytest.fixture(scope="module")
def api(bin_dir, request):
    return Api(shared_service(request, bin_dir, api_key=KEY, server={"trusted_proxies": [TRUSTED, "127.0.9.0/24"]}))


@pytest.fixture(scope="module")
def sandbox(api):
    backend = Path(__file__).with_name("backend.py").read_text()
    made = api.create(entrypoint=["python3", "-c", backend, str(PORT)])["id"]
    wait_for(lambda: ask(api, "127.0.0.1", f"/v1/sandboxes/{made}/proxy/{PORT}/").status == 200, 10, "the backend answers")
    yield made
    assert api.delete(made).status == 204


def ask(api, peer, target, headers=()):
    """A request whose connection comes from that address."""
    given = [("Host", f"{api.address[0]}:{api.address[1]}"), ("OPEN-SANDBOX-API-KEY", KEY), *(headers.items() if isinstance(headers, dict) else headers)]
    with rawhttp.Connection(api.address, source=(peer, 0)) as connection:
        connection.send_request("GET", target, given)
        return connection.read_response()


def seen_inside(api, sandbox, peer, headers=()):
    reply = ask(api, peer, f"/v1/sandboxes/{sandbox}/proxy/{PORT}/x", headers)
    assert reply.status == 200, reply
    return {name.lower(): value for name, value in reply.json["headers"]}


def endpoint(api, sandbox, peer, headers=(), query=""):
    reply = ask(api, peer, f"/v1/sandboxes/{sandbox}/endpoints/{PORT}{query}", headers)
    assert reply.status == 200, reply
    return reply.json["endpoint"]


@pytest.mark.parametrize("peer", [TRUSTED, IN_RANGE])
class TestTrusted:
    def test_a_program_learns_who_asked(self, api, sandbox, peer):
        seen = seen_inside(api, sandbox, peer, CLAIMS)
        assert seen["x-forwarded-for"] == f"203.0.113.9, {peer}"
        assert seen["x-forwarded-host"] == "sandboxes.example"
        assert seen["x-forwarded-proto"] == "https"

    def test_endpoints_have_the_name_that_the_client_used(self, api, sandbox, peer):
        assert endpoint(api, sandbox, peer, CLAIMS).startswith("sandboxes.example/v1/")
        assert endpoint(api, sandbox, peer, {"X-Forwarded-Host": "sandboxes.example:8443"}).startswith("sandboxes.example:8443/v1/")

    def test_previews_have_the_port_that_the_client_used(self, api, sandbox, peer):
        assert endpoint(api, sandbox, peer, {"X-Forwarded-Host": "sandboxes.example:8443"}, "?preview=true").endswith(":8443")

    def test_of_a_chain_counts_what_trusted_ones_added(self, api, sandbox, peer):
        forged = {"X-Forwarded-For": f"198.51.100.1, 203.0.113.9, {TRUSTED}"}
        assert seen_inside(api, sandbox, peer, forged)["x-forwarded-for"] == f"203.0.113.9, {TRUSTED}, {peer}"
        # One proxy writes one field; two are one chain.
        split = [("X-Forwarded-For", "198.51.100.1, 203.0.113.9"), ("X-Forwarded-For", TRUSTED)]
        assert seen_inside(api, sandbox, peer, split)["x-forwarded-for"] == f"203.0.113.9, {TRUSTED}, {peer}"

    @pytest.mark.parametrize("wrong", ["unknown", "203.0.113.9:80", "_hidden", "203.0.113.999", "", "a, b, c"])
    def test_what_is_no_address_ends_the_chain(self, api, sandbox, peer, wrong):
        assert seen_inside(api, sandbox, peer, {"X-Forwarded-For": wrong})["x-forwarded-for"] == peer

    @pytest.mark.parametrize("wrong", ["a/b", "a b", "user@host", "", "x" * 300, "a.example, b.example"])
    def test_what_is_no_host_is_not_used(self, api, sandbox, peer, wrong):
        own = f"{api.address[0]}:{api.address[1]}"
        assert endpoint(api, sandbox, peer, {"X-Forwarded-Host": wrong}).startswith(own + "/v1/")
        assert seen_inside(api, sandbox, peer, {"X-Forwarded-Host": wrong})["x-forwarded-host"] == own

    def test_two_hosts_are_none(self, api, sandbox, peer):
        twice = [("X-Forwarded-Host", "a.example"), ("X-Forwarded-Host", "b.example")]
        assert endpoint(api, sandbox, peer, twice).startswith(f"{api.address[0]}:{api.address[1]}/v1/")

    def test_a_protocol_is_http_or_https(self, api, sandbox, peer):
        for said, wanted in (("https", "https"), ("HTTPS", "https"), ("http", "http"), ("gopher", "http"), ("https, http", "http")):
            assert seen_inside(api, sandbox, peer, {"X-Forwarded-Proto": said})["x-forwarded-proto"] == wanted

    def test_other_fields_are_ignored(self, api, sandbox, peer):
        assert_ignored(api, sandbox, peer, OTHER_CLAIMS)


class TestStranger:
    @pytest.mark.parametrize("peer", [STRANGER, "127.0.0.1", "127.0.10.1"])
    def test_nothing_counts(self, api, sandbox, peer):
        assert_ignored(api, sandbox, peer, {**CLAIMS, **OTHER_CLAIMS})

    def test_a_trusted_address_in_the_field_makes_nobody_trusted(self, api, sandbox):
        assert_ignored(api, sandbox, STRANGER, {**CLAIMS, "X-Forwarded-For": f"203.0.113.9, {TRUSTED}"})

    def test_no_key_is_no_key_whoever_sends_it(self, api, sandbox):
        with rawhttp.Connection(api.address) as connection:
            connection.send_request("GET", f"/v1/sandboxes/{sandbox}", [("Host", "h"), ("X-Forwarded-For", TRUSTED)])
            assert connection.read_response().status == 401

    def test_nothing_of_it_is_in_the_log(self, api, sandbox):
        ask(api, STRANGER, "/v1/none", {**CLAIMS, **OTHER_CLAIMS})
        log = api.service.log_path.read_text()
        for claim in ("203.0.113.9", "sandboxes.example", "forged"):
            assert claim not in log


def assert_ignored(api, sandbox, peer, claims):
    own = f"{api.address[0]}:{api.address[1]}"
    seen = seen_inside(api, sandbox, peer, claims)
    assert (seen["x-forwarded-for"], seen["x-forwarded-host"], seen["x-forwarded-proto"]) == (peer, own, "http")
    assert not {"forwarded", "x-real-ip", "x-forwarded-port", "x-forwarded-prefix"} & seen.keys()
    assert endpoint(api, sandbox, peer, claims).startswith(own + "/v1/")
    assert endpoint(api, sandbox, peer, claims, "?preview=true").endswith(f":{api.address[1]}")


NGINX = """
worker_processes 1;
daemon off;
master_process off;
pid {directory}/pid;
error_log {directory}/log crit;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://{address[0]}:{address[1]};
      proxy_bind {bound};
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
}}
"""


@pytest.fixture
def nginx(api, tmp_path):
    """Starts one whose connections to the server come from an address."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("nginx is not installed")
    started = []

    def start(bound):
        port = free_port()
        (tmp_path / "conf").write_text(NGINX.format(directory=tmp_path, port=port, address=api.address, bound=bound))
        started.append(subprocess.Popen([program, "-p", tmp_path, "-c", tmp_path / "conf"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        address = ("127.0.0.1", port)
        wait_for(lambda: answers(address), 10, "nginx answers")
        return address

    yield start
    for process in started:
        process.terminate()
        process.wait(10)


def answers(address):
    try:
        return rawhttp.request(address, "GET", "/health").status == 200
    except OSError:
        return False


def test_an_endpoint_that_was_asked_for_through_nginx_works_through_it(api, sandbox, nginx):
    address = nginx(TRUSTED)
    key = {"OPEN-SANDBOX-API-KEY": KEY}
    given = rawhttp.request(address, "GET", f"/v1/sandboxes/{sandbox}/endpoints/{PORT}", headers=key).json["endpoint"]
    host, _, path = given.partition("/")
    assert host == f"127.0.0.1:{address[1]}"
    seen = rawhttp.request(address, "GET", f"/{path}/x", headers={"X-Forwarded-For": "198.51.100.1"}).json
    headers = {name.lower(): value for name, value in seen["headers"]}
    # The client is on loopback, too, and not trusted: what it claims ends there.
    assert headers["x-forwarded-for"] == f"127.0.0.1, {TRUSTED}"
    assert headers["x-forwarded-host"] == host


def test_an_nginx_that_is_not_trusted_is_a_client_like_others(api, sandbox, nginx):
    address = nginx(STRANGER)
    key = {"OPEN-SANDBOX-API-KEY": KEY}
    given = rawhttp.request(address, "GET", f"/v1/sandboxes/{sandbox}/endpoints/{PORT}", headers=key).json["endpoint"]
    assert given.startswith(f"{api.address[0]}:{api.address[1]}/v1/")
