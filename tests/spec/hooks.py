"""What schemathesis needs to know beyond the description: which creates can succeed on a host without images, and quickly; and the ids
of things that are there, since nearly everything that it invents is 404."""

import json
import os
import random
import urllib.request

import schemathesis

# Not the module's own: Hypothesis sets that to the same number before every case, and half of them would be all or none.
CHANCE = random.Random(os.environ.get("OSB_TRIED_SEED"))
SLEEPER = {"image": {"uri": "host"}, "entrypoint": ["sleep", "600"], "resourceLimits": {}}


def ask(method, path, body=None):
    """The server that is tried, on a connection of our own."""
    headers = {"OPEN-SANDBOX-API-KEY": os.environ["OSB_TRIED_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["OSB_TRIED_URL"] + path, json.dumps(body).encode() if body is not None else None, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        text = reply.read()
        return json.loads(text) if text else None


def living_sandbox():
    """One of those that run or are paused, also one that schemathesis has made; forks of forks are not left to grow."""
    items = [item for item in ask("GET", "/v1/sandboxes?pageSize=200")["items"] if item["status"]["state"] in ("Running", "Paused")]
    for item in items[20:]:
        ask("DELETE", f"/v1/sandboxes/{item['id']}")
    return CHANCE.choice(items[:20])["id"] if items else ask("POST", "/v1/sandboxes", SLEEPER)["id"]


def ready_snapshot():
    items = [item for item in ask("GET", "/v1/snapshots?pageSize=200")["items"] if item["status"]["state"] == "Ready"]
    return CHANCE.choice(items)["id"] if items else None


def existing(kind):
    """The name of a pool or a volume."""
    items = ask("GET", f"/v1/{kind}")["items"]
    return CHANCE.choice(items)["name"] if items else None


@schemathesis.hook
def before_call(context, case, kwargs):
    """Half of the invented ids become real ones. What a link has handed on stays."""
    given, kind = case.path_parameters or {}, case.operation.path.split("/")[1]
    if TOLD & {str(value) for value in given.values()} or CHANCE.random() < 0.5:
        return
    if "id" in given and kind == "sandboxes":
        given["id"] = living_sandbox()
    elif "snapshot" in given and (found := ready_snapshot()):
        given["snapshot"] = found
    elif "name" in given and kind in ("pools", "volumes") and (found := existing(kind)):
        given["name"] = found


@schemathesis.hook
def map_body(context, body):
    """Every other well-formed create is one that can be made; the others try what is refused."""
    if context.operation.definition.raw.get("operationId") != "createSandbox" or not isinstance(body, dict):
        return body
    if isinstance(body.get("entrypoint"), list) and CHANCE.random() < 0.5:
        body.update({"image": {"uri": "host"}, "entrypoint": ["sleep", "600"], "resourceLimits": {}, "timeout": 60, "env": {}, "metadata": {}})
        for name in ("platform", "secureAccess", "extensions", "lifecycle"):
            body.pop(name, None)
    return body


# use_after_free is off for the policy of a sandbox (schemathesis.toml): this is what it would say there that is so.
DELETED = set()
TOLD = set()  # ids and names in answers


def note_ids(answer):
    for item in [answer, *answer.get("items", [])] if isinstance(answer, dict) else []:
        TOLD.update(str(item[name]) for name in ("id", "name") if name in item)


@schemathesis.hook
def after_call(context, case, response):
    ends = (case.method, case.operation.path) in (("DELETE", "/sandboxes/{id}"), ("POST", "/sandboxes/{id}/stop"))
    if ends and response.status_code == 204:
        DELETED.add(str(case.path_parameters["id"]))
    if response.status_code in (200, 201, 202) and response.headers.get("content-type", [""])[0] == "application/json":
        note_ids(response.json())


@schemathesis.check
def a_deleted_sandbox_has_no_policy(ctx, response, case):
    if case.operation.path == "/sandboxes/{id}/networkpolicy" and str(case.path_parameters.get("id")) in DELETED:
        assert response.status_code in (401, 404), f"{case.method} of a deleted sandbox's policy: {response.status_code}"
