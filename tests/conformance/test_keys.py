"""Published clients on a server with a key and on one without: each way to a sandbox, from create to kill.

With a key the endpoint answer carries a token, and that is all that some clients send back. The other tests of this suite
use the service with a key, without `use_server_proxy`.
"""

from datetime import timedelta

import pytest
from conftest import SLEEPER, Sdk
from interpreters import Interpreter
from lib import rawhttp
from lib.api import Api
from lib.waiting import wait_for
from opensandbox.exceptions import SandboxApiException
from opensandbox.models import WriteEntry


def keys_inside(sdk, sandbox, key):
    """Where a program inside finds the key: its own environment, execd's, files that a request could have left."""
    seen = sdk.run(sandbox, "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat /opt/opensandbox/.env 2>/dev/null; true").logs.stdout
    return [message.text for message in seen if key in message.text]


@pytest.mark.parametrize("proxied", [False, True], ids=["direct", "server-proxy"])
@pytest.mark.parametrize("flavour", ["sync", "async"])
@pytest.mark.parametrize("kind", ["keyed", "keyless"])
def test_every_way_to_a_sandbox(request, kind, flavour, proxied):
    service = request.getfixturevalue(f"{kind}_service")
    sdk = Sdk(flavour, service)
    config = sdk.config(use_server_proxy=proxied)
    sandbox = sdk.create(config=config)
    assert sdk.run(sandbox, "echo out; echo err >&2; exit 3").logs.stderr[0].text == "err"
    sdk.go(sandbox.files.write_files([WriteEntry(path="/tmp/a/б.txt", data="x" * 100_000, mode=644)]))
    assert sdk.go(sandbox.files.read_file("/tmp/a/б.txt")) == "x" * 100_000
    cell = Interpreter(sdk, sandbox).run("a = 6 * 7\na")
    assert cell.error is None and cell.result[0].text == "42", cell
    other = sdk.go(sdk.Sandbox.connect(sandbox.id, connection_config=config))
    assert sdk.run(other, "cat /tmp/a/б.txt | wc -c").logs.stdout[0].text == "100000"
    sdk.go(other.close())
    assert service.api_key == "" or keys_inside(sdk, sandbox, service.api_key) == []

    # A page that a program serves, as a browser would open it: without any header of ours.
    sdk.run(sandbox, "cd /tmp/a && (setsid python3 -m http.server 8137 >/dev/null 2>&1 &)")
    endpoint = sdk.go(sandbox.get_endpoint(8137)).endpoint
    path = "/" + endpoint.partition("/")[2]
    wait_for(lambda: rawhttp.request(service.address, "GET", path + "/").status == 200, 10, "the page is served")
    assert "%D0%B1.txt" in rawhttp.request(service.address, "GET", path + "/").body.decode()
    assert ("/t/" in endpoint) == (kind == "keyed")

    sdk.kill(sandbox)
    assert rawhttp.request(service.address, "GET", path + "/").status == 404
    sdk.finish()


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_a_wrong_key(keyed_service, flavour):
    before = Api(keyed_service).list_all()
    bad = Sdk(flavour, keyed_service, key="wrong")
    with pytest.raises(SandboxApiException) as caught:
        bad.create()
    assert caught.value.status_code == 401
    assert caught.value.error.code == "INVALID_API_KEY"
    bad.finish()
    assert Api(keyed_service).list_all() == before


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_a_pool_of_the_clients_own(keyed_service, flavour):
    sdk = Sdk(flavour, keyed_service)
    from opensandbox import pool as pools

    kind, store = (pools.SandboxPoolAsync, pools.InMemoryAsyncPoolStateStore) if flavour == "async" else (pools.SandboxPoolSync, pools.InMemoryPoolStateStore)
    spec = pools.PoolCreationSpec(image="host", entrypoint=SLEEPER)
    pace = {"reconcile_interval": timedelta(milliseconds=200)} if sdk.version < (1, 0) else {}  # it looks for work every 30 s otherwise
    pool = kind(pool_name="keys", max_idle=2, state_store=store(), connection_config=sdk.config(), creation_spec=spec, **pace)
    before = {item["id"] for item in Api(keyed_service).list_all()}
    sdk.go(pool.start())
    try:

        def warm():
            sdk.breathe()
            return sdk.go(pool.snapshot()).idle_count == 2

        wait_for(warm, 15, "the pool is warm")
        sandbox = sdk.go(pool.acquire(policy=pools.AcquirePolicy.FAIL_FAST))
        sdk.made.append(sandbox)
        assert sdk.run(sandbox, "echo from the pool").logs.stdout[0].text == "from the pool"
        sdk.kill(sandbox)
    finally:
        sdk.go(pool.release_all_idle())
        sdk.go(pool.shutdown())
        for item in Api(keyed_service).list_all():  # warmed up after the release
            if item["id"] not in before:
                Api(keyed_service).delete(item["id"])
        sdk.finish()
