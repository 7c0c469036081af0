"""An engine on another host: it sees none of the service's files, and only its API is reached, by TLS. Skipped where no engine can be had."""

import pytest
from lib.api import Api
from lib.dockerd import create, nothing_left
from lib.engine_remote import apart


@pytest.fixture(scope="module")
def there():
    with apart() as made:
        yield made


@pytest.fixture(scope="module")
def service(bin_dir, there):
    with there.service(bin_dir) as made:
        yield made.start()


@pytest.fixture
def api(service, there):
    """Every test leaves nothing behind."""
    api = Api(service)
    create_once = create(api)  # what stays, one volume with execd, is made by the first create
    assert api.delete(create_once).status == 204
    with nothing_left(api, there.engine):
        yield api


def test_a_life(api, there):
    sandbox = create(api, env={"GIVEN": "here"})
    assert api.run(sandbox, "echo hello $GIVEN").stdout == "hello here"
