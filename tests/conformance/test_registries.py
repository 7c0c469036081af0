"""Published clients and images that are not here yet: a create brings them, and what goes wrong has a code and a sentence."""

import pytest
from conftest import Sdk
from lib import images as make
from lib.plugin import KEY, shared_service
from lib.registries import MANIFEST, Made, fake_registry
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import SandboxImageAuth, SandboxImageSpec


@pytest.fixture(scope="module")
def pulling_service(bin_dir, request):
    return shared_service(request, bin_dir, api_key=KEY, registry={})


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_an_image_from_a_registry(pulling_service, flavour):
    sdk = Sdk(flavour, pulling_service)
    with fake_registry() as registry:
        registry.login, registry.token = ("me", "s3cret"), "abc.def"
        nonce = make.tar_bytes(lambda tar: make.add(tar, "flavour", flavour))
        name = registry.add("team/app", Made([make.root_tar(), nonce], {"Env": ["GREETING=hello"]}))

        def refused(image, status, code):
            with pytest.raises(SandboxApiException) as caught:
                sdk.create(image)
            assert (caught.value.status_code, caught.value.error.code) == (status, code)
            assert registry.host in str(caught.value)

        refused(name, 400, "IMAGE::UNAUTHORIZED")
        auth = SandboxImageAuth(username="me", password="s3cret")
        sandbox = sdk.create(SandboxImageSpec(image=name, auth=auth))
        assert sdk.run(sandbox, "echo $GREETING; cat /flavour").logs.stdout[-1].text.strip().endswith(flavour)
        sdk.kill(sandbox)
        registry.token = None
        refused(f"{registry.host}/team/none:1", 400, "IMAGE::NOT_FOUND")
        # Its layers are nowhere, also where those of the other one are kept.
        broken = Made([make.tar_bytes(lambda tar: make.add(tar, "broken", flavour))])
        registry.documents["/v2/team/broken/manifests/1"] = (MANIFEST, broken.manifest)
        refused(f"{registry.host}/team/broken:1", 400, "IMAGE::NOT_FOUND")
        registry.documents["/v2/team/odd/manifests/1"] = ("", b"{}")
        refused(f"{registry.host}/team/odd:1", 500, "IMAGE::INVALID")
    refused(f"{registry.host}/team/app:2", 500, "IMAGE::UNREACHABLE")
    sdk.finish()
