"""Claims from pools of the server, by the published clients, unmodified."""

import pytest
from lib import pools as of
from lib.api import Api
from opensandbox.exceptions import SandboxApiException


@pytest.fixture
def pool(service):
    api = Api(service)
    of.make(api, "warm", least=1, most=1, pool_max=2)
    of.filled(api, 1, "warm")
    yield api
    of.delete(api, "warm")


def test_a_claim(sdk, pool):
    sandbox = sdk.create(extensions={"poolRef": "warm"}, env={"COLOUR": "blue"}, metadata={"team": "t1"})
    assert sdk.run(sandbox, "echo $COLOUR $OPENSANDBOX_ID").logs.stdout[0].text == f"blue {sandbox.id}"
    info = sdk.go(sandbox.get_info())
    assert info.status.state == "Running" and info.metadata == {"team": "t1"}
    assert pool.get(sandbox.id)["allocation"]["poolRef"] == "warm"
    assert of.status(pool, "warm")["allocated"] == 1
    sdk.kill(sandbox)


def test_exhausted(sdk, pool):
    made = [sdk.create(extensions={"poolRef": "warm"}) for _ in range(2)]
    with pytest.raises(SandboxApiException) as refused:
        sdk.create(extensions={"poolRef": "warm"})
    assert refused.value.status_code == 429
    for sandbox in made:
        sdk.kill(sandbox)
