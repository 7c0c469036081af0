"""docker.direct: ports of containers are published, and endpoints lead past the server."""

import urllib.request
from datetime import timedelta

import pytest
from lib.api import Api
from lib.dockerd import IMAGE, SLEEPER, create, nothing_left, ours, service_on
from lib.dockerd import engine as an_engine
from lib.engine_network import inside_network
from lib.waiting import wait_for


@pytest.fixture(scope="module")
def engine():
    with an_engine() as made, inside_network(made):
        yield made


@pytest.fixture(scope="module")
def service(bin_dir, engine):
    ports = {"port_range_min": 45000, "port_range_max": 45200} if engine.takes_port_ranges else {}
    made = service_on(bin_dir, engine, api_key="k3y", docker={"direct": True, **ports})
    try:
        yield made.start(timeout=60)
    finally:
        made.destroy()


@pytest.fixture
def api(service, engine):
    api = Api(service)
    with nothing_left(api, engine):
        yield api


def endpoint(api, sandbox, port, query=""):
    reply = api.call("GET", f"/sandboxes/{sandbox}/endpoints/{port}{query}")
    assert reply.status == 200, reply
    return reply.json["endpoint"]


def get(url):
    with urllib.request.urlopen(f"http://{url}", timeout=10) as reply:
        return reply.status, reply.read()


def test_endpoints(api, service, engine):
    sandbox = create(api, entrypoint=["sh", "-c", "httpd -p 8080 -h /etc; exec httpd -f -p 127.0.0.1:9000 -h /etc"])
    (name,) = ours(engine)
    ports = {port: places[0] for port, places in engine.inspect(name)["NetworkSettings"]["Ports"].items()}
    assert {place["HostIp"] for place in ports.values()} == {"127.0.0.1"}
    assert all(45000 <= int(place["HostPort"]) <= 45200 for place in ports.values()) or not engine.takes_port_ranges
    execd, web = (f"127.0.0.1:{ports[port]['HostPort']}" for port in ("44772/tcp", "8080/tcp"))
    assert endpoint(api, sandbox, 44772) == execd
    assert endpoint(api, sandbox, 8080) == web
    assert endpoint(api, sandbox, 9000) == f"{execd}/proxy/9000"
    assert get(f"{execd}/ping")[0] == 200
    for url in (web, f"{execd}/proxy/9000"):
        assert wait_for(lambda: get(f"{url}/passwd")[1].startswith(b"root:x:0"), 10, "the program answers", interval=0.1)
    assert f"/sandboxes/{sandbox}/proxy/8080" in endpoint(api, sandbox, 8080, "?use_server_proxy=true")
    assert "/s/" in endpoint(api, sandbox, 8080, "?expires=4000000000"), "a signed one is the server's"
    service.kill_server()
    assert endpoint(api, sandbox, 44772) == execd, "found again"
    assert api.run(sandbox, "echo as always").stdout == "as always"


def test_the_published_client(api, service, engine):
    opensandbox = pytest.importorskip("opensandbox")
    from opensandbox.config import ConnectionConfigSync

    config = ConnectionConfigSync(domain=f"{service.address[0]}:{service.address[1]}", api_key="k3y")
    options = {"connection_config": config, "timeout": timedelta(minutes=5), "entrypoint": SLEEPER, "env": {"GIVEN": "here"}}
    with opensandbox.SandboxSync.create(IMAGE, **options) as sandbox:
        assert sandbox.get_endpoint(44772).endpoint.startswith("127.0.0.1:45" if engine.takes_port_ranges else "127.0.0.1:")
        assert sandbox.commands.run("echo hello $GIVEN").logs.stdout[0].text == "hello here"
        sandbox.files.write_file("/tmp/a.txt", "text")
        assert sandbox.files.read_file("/tmp/a.txt") == "text"
        sandbox.kill()


def test_what_has_to_be_closed_is_refused_or_not_published(api, engine):
    reply = api.post_create(image={"uri": IMAGE}, secureAccess=True)
    assert reply.status in (400, 501) and "docker.direct" in reply.body.decode(), reply
    sandbox = create(api, networkPolicy={"defaultAction": "deny", "egress": []})
    (name,) = ours(engine)
    assert not engine.inspect(name)["NetworkSettings"]["Ports"]
    assert f"/sandboxes/{sandbox}/proxy/8080" in endpoint(api, sandbox, 8080)


def test_it_is_said(service):
    log = service.log_path.read_text()
    assert log.count("docker.direct: whoever reaches the published ports") == log.count(" server: serving ") >= 1, "once at every start"


def test_without_it_nothing_is_published(bin_dir, engine):
    made = service_on(bin_dir, engine, api_key="k3y", docker={"publish_host": "127.0.0.1"})
    try:
        api = Api(made.start(timeout=60))
        with nothing_left(api, engine):
            sandbox = create(api)
            (name,) = ours(engine)
            assert not engine.inspect(name)["HostConfig"]["PortBindings"]
            for port in (44772, 8080):
                assert f"/sandboxes/{sandbox}/proxy/{port}" in endpoint(api, sandbox, port)
    finally:
        made.destroy()
