"""Words for tests of pools."""


from .waiting import wait_for

IDLE = ["tail", "-f", "/dev/null"]


def template(**more):
    return {"image": {"uri": "host"}, "resourceLimits": {}, **more}


def capacity(least=1, most=1, pool_max=10, pool_min=0):
    return {"bufferMin": least, "bufferMax": most, "poolMin": pool_min, "poolMax": pool_max}


def make(api, name="p", shape=None, **numbers):
    body = {"name": name, "template": shape or template(), "capacitySpec": capacity(**numbers)}
    reply = api.call("POST", "/pools", json=body)
    assert reply.status == 201, reply
    return reply.json


def look(api, name="p"):
    reply = api.call("GET", f"/pools/{name}")
    assert reply.status == 200, reply
    return reply.json


def status(api, name="p"):
    return look(api, name)["status"]


def filled(api, count=1, name="p", timeout=20):
    wait_for(lambda: status(api, name)["available"] == count, timeout, f"{count} sandboxes wait in pool {name}: {status(api, name)}")


def post_claim(api, name="p", headers=(), **fields):
    """As the smallest client sends it; fields as in a create."""
    body = {"extensions": {"poolRef": name}, "timeout": 600, **fields}
    return api.call("POST", "/sandboxes", json=body, headers=headers)


def claim(api, name="p", **fields):
    reply = post_claim(api, name, **fields)
    assert reply.status == 202, reply
    return reply.json["id"]


def delete(api, name="p"):
    reply = api.call("DELETE", f"/pools/{name}")
    assert reply.status == 204, reply
