"""Section 5.13: pools, and claims of their sandboxes."""

import pytest
from lib import pools as of
from lib.api import Api, assert_envelope


@pytest.fixture
def made(api):
    pool = of.make(api, "contract", least=1, most=1, pool_max=1)
    yield pool
    api.call("DELETE", "/pools/contract")


def test_s5_13_shapes(api, made):
    assert set(made) == {"name", "capacitySpec", "status", "createdAt"}, "the template is never returned"
    assert set(made["capacitySpec"]) == {"bufferMax", "bufferMin", "poolMax", "poolMin"}
    assert {"total", "allocated", "available", "revision"} <= set(made["status"])
    listed = api.call("GET", "/pools")
    assert listed.status == 200 and set(listed.json) == {"items"}
    assert [one["name"] for one in listed.json["items"]] == ["contract"]
    for prefix in ("", "/v1"):
        assert Api(api.service, prefix=prefix).call("GET", "/pools/contract").status == 200


def test_s5_13_statuses(api, made):
    again = {"name": "contract", "template": of.template(), "capacitySpec": of.capacity()}
    assert_envelope(api.call("POST", "/pools", json=again), 409, "POOL::ALREADY_EXISTS")
    assert api.call("PUT", "/pools/contract", json={"capacitySpec": of.capacity(0, 0, 1)}).status == 200
    assert api.call("DELETE", "/pools/contract").status == 204
    for method in ("GET", "PUT", "DELETE"):
        assert_envelope(api.call(method, "/pools/contract", json={"capacitySpec": of.capacity()}), 404, "POOL::NOT_FOUND")


@pytest.mark.parametrize(
    "change",
    [{"name": "Upper"}, {"name": "a" * 254}, {"name": None}, {"template": None}, {"template": []}, {"capacitySpec": {"poolMax": 1}}, {"capacitySpec": {**of.capacity(), "poolMax": -1}}],
    ids=["upper", "long", "no name", "no template", "list", "incomplete", "negative"],
)
def test_s5_13_bodies(api, change):
    body = {"name": "contract-bad", "template": of.template(), "capacitySpec": of.capacity(), **change}
    assert api.call("POST", "/pools", json=body).status == 422


def test_s5_13_claims(api, made):
    of.filled(api, 1, "contract")
    reply = of.post_claim(api, " contract ", timeout=60)
    assert reply.status == 202 and isinstance(reply.json["entrypoint"], list), "clients need the key"
    shown = api.get(reply.json["id"])
    assert shown["allocation"] == {"mode": "pool", "poolRef": "contract", "state": "allocated"}
    assert api.delete(reply.json["id"]).status == 204
    assert_envelope(of.post_claim(api, "none"), 400, "POOL::NOT_FOUND")


def test_s5_13_exhausted(api, made):
    first = of.claim(api, "contract")
    refused = of.post_claim(api, "contract")
    assert_envelope(refused, 429, "POOL::EXHAUSTED")
    assert int(refused.header("retry-after")) >= 1
    assert api.delete(first).status == 204
