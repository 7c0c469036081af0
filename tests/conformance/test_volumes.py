"""Volumes through the published clients: their models of a directory of the host and of a named volume."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from lib.api import Api
from lib.plugin import KEY, shared_service
from lib.service import STATE_PARENT
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import OSSFS, PVC, Host, Volume


@pytest.fixture(scope="module")
def shared():
    path = Path(tempfile.mkdtemp(prefix="osb-shared-", dir=STATE_PARENT))
    os.chown(path, 12345, 12345)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def service(bin_dir, shared, request):
    return shared_service(request, bin_dir, api_key=KEY, sections={"storage": {"allowed_host_paths": [str(shared)]}})


def text(execution):
    return [message.text for message in execution.logs.stdout]


def test_a_directory_of_the_host(sdk, shared, request):
    # Root inside is the directory's owner natively, and the host's root to an engine.
    owner = 0 if request.config.getoption("--runtime") == "docker" else 12345
    sandbox = sdk.create(volumes=[Volume(name="work", host=Host(path=str(shared)), mount_path="/mnt/work")])
    sdk.run(sandbox, "echo from the sandbox > /mnt/work/out")
    assert (shared / "out").read_text() == "from the sandbox\n" and (shared / "out").stat().st_uid == owner
    reader = sdk.create(volumes=[Volume(name="work", host=Host(path=str(shared)), mount_path="/mnt/work", read_only=True)])
    assert text(sdk.run(reader, "cat /mnt/work/out")) == ["from the sandbox"]
    assert sdk.run(reader, "touch /mnt/work/x").error is not None
    for one in (sandbox, reader):
        sdk.kill(one)


def test_a_named_volume(sdk, service):
    api = Api(service)
    volume = Volume(name="models", pvc=PVC(claim_name="shared-models"), mount_path="/mnt/models")
    one = sdk.create(volumes=[volume])
    sdk.run(one, "mkdir -p /mnt/models/a; echo weights > /mnt/models/a/f")
    part = Volume(name="models", pvc=PVC(claim_name="shared-models", create_if_not_exists=False), mount_path="/a", sub_path="a", read_only=True)
    two = sdk.create(volumes=[part])
    assert text(sdk.run(two, "cat /a/f")) == ["weights"]
    for sandbox in (one, two):
        sdk.kill(sandbox)
    assert [item["name"] for item in api.call("GET", "/volumes").json["items"]] == ["shared-models"]
    assert api.call("DELETE", "/volumes/shared-models").status == 204
    brief = sdk.create(volumes=[Volume(name="b", pvc=PVC(claim_name="brief", delete_on_sandbox_termination=True), mount_path="/b")])
    sdk.kill(brief)
    assert api.call("GET", "/volumes").json["items"] == []


@pytest.mark.parametrize("volume, code", [
    (Volume(name="v", host=Host(path="/etc"), mount_path="/v"), "VOLUME::HOST_PATH_NOT_ALLOWED"),
    (Volume(name="v", pvc=PVC(claim_name="none", create_if_not_exists=False), mount_path="/v"), "VOLUME::PVC_NOT_FOUND"),
    (Volume(name="v", pvc=PVC(claim_name="v"), mount_path="/v", sub_path="../x"), "VOLUME::INVALID_SUB_PATH"),
    (Volume(name="v", ossfs=OSSFS(bucket="abc", endpoint="e", access_key_id="i", access_key_secret="s"), mount_path="/v"), "SANDBOX::UNSUPPORTED"),
], ids=["not allowed", "not there", "out of it", "object store"])  # fmt: skip
def test_the_client_shows_why_not(sdk, volume, code):
    with pytest.raises(SandboxApiException) as caught:
        sdk.create(volumes=[volume])
    assert caught.value.error.code == code and "volumes[0]" in str(caught.value)
