"""The description of the API against the running server: what it says is what the server does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from lib import rawhttp
from lib.api import Api

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
# A stream that does not end, a wait that may take minutes, what a program in a sandbox answers; /metrics/events exists below /v1 only.
LEFT_OUT = "^/events$|/wait$|/proxy/|^/metrics/events$"


@pytest.fixture(scope="module")
def spec(keyed_service):
    reply = rawhttp.request(keyed_service.address, "GET", "/openapi.json")
    assert reply.status == 200 and reply.header("content-type") == "application/json"
    return reply.json


def test_the_files_are_what_the_server_carries(spec):
    checked = subprocess.run([sys.executable, ROOT / "scripts/spec", "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert spec == json.loads((ROOT / "specs/openapi.json").read_text())
    for name in ("lifecycle", "diagnostic"):
        paths = yaml.safe_load((ROOT / f"specs/{name}.yaml").read_text())["paths"]
        assert paths.keys() <= spec["paths"].keys()


def test_it_declares_no_500_and_nothing_that_may_be_anything(spec):
    def walk(value, path):
        if isinstance(value, dict):
            if "responses" in value and isinstance(value["responses"], dict) and path[-1] in ("get", "post", "put", "patch", "delete"):
                assert not {"500", "default"} & value["responses"].keys(), f"{path}: declares a fault"
            for name, inner in value.items():
                if name in ("schema", "items", "additionalProperties"):
                    assert inner not in ({}, True), f"{path}: {name} allows anything"
                walk(inner, [*path, name])
        elif isinstance(value, list):
            for inner in value:
                walk(inner, path)

    walk(spec, [])


def test_whatever_needs_the_key_says_401(spec):
    for path, item in spec["paths"].items():
        for method in {"get", "post", "put", "patch", "delete"} & item.keys():
            needs = item[method].get("security", spec["security"]) != []
            assert ("401" in item[method]["responses"]) == needs, f"{method} {path}"


def test_every_path_of_it_exists(spec, keyed_service):
    """With both prefixes, and with no method beside those it names."""
    api = Api(keyed_service, prefix="")
    root_only = {"/health", "/version", "/openapi.json", "/docs", "/redoc", "/metrics"}
    for path, item in spec["paths"].items():
        methods = {name.upper() for name in item} & {"GET", "POST", "PUT", "PATCH", "DELETE"}
        concrete = re.sub(r"\{[a-z]+\}", "1", path)
        if "/proxy/" in path:
            continue
        for prefix in ("", "/v1"):
            if (prefix and path in root_only) or (not prefix and path == "/metrics/events"):
                continue
            reply = api.call("OPTIONS", prefix + concrete)
            assert reply.status == 405, f"{prefix}{path}: {reply}"
            assert set(reply.header("allow").split(", ")) - {"HEAD"} == methods, f"{prefix}{path}"


def test_the_page_is_for_people(spec, keyed_service):
    reply = rawhttp.request(keyed_service.address, "GET", "/docs")
    assert reply.status == 200 and reply.header("content-type") == "text/html; charset=utf-8"
    text = reply.body.decode()
    for path in spec["paths"]:
        assert f"<code>{path}</code>" in text
    assert rawhttp.request(keyed_service.address, "GET", "/redoc").body == reply.body
    assert "<script" not in text and "http-equiv" not in text and "src=" not in text


def run_schemathesis(service, tmp_path, examples, phases, seed=None):
    location = f"http://{service.address[0]}:{service.address[1]}"
    command = [
        Path(sys.executable).parent / "schemathesis", "--config-file", HERE / "schemathesis.toml", "run", f"{location}/openapi.json", "--url", location,
        "--header", f"OPEN-SANDBOX-API-KEY:{service.api_key}", "--checks", "all", "--phases", phases, "--max-examples", str(examples),
        "--generation-database", "none", "--suppress-health-check", "all", "--continue-on-failure", "--no-color", "--request-timeout", "60",
        "--exclude-path-regex", LEFT_OUT, *(["--seed", seed] if seed else []),
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE), "OSB_TRIED_URL": location, "OSB_TRIED_KEY": service.api_key, **({"OSB_TRIED_SEED": seed} if seed else {})}
    return subprocess.run([str(word) for word in command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


def judge(done, least):
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-20000:]
    generated = re.search(r"(\d+) generated", said)
    assert generated, said[-3000:]
    assert int(generated.group(1)) >= least, said[-3000:]
    print(said[-2000:])


@pytest.fixture
def tried(new_service):
    service = new_service(api_key="a-key-for-the-description-01")
    yield service
    for item in Api(service).list_all():
        Api(service).delete(item["id"])


def test_some_hundred_cases(tried, tmp_path):
    """The same ones every day: whoever changes something else need not learn what luck has found. --long tries its luck."""
    judge(run_schemathesis(tried, tmp_path, 8, "fuzzing,stateful", "20261116"), 200)


@pytest.mark.long
@pytest.mark.parametrize(("phases", "examples", "least"), [("fuzzing", 100, 4000), ("stateful", 150, 1000), ("examples,coverage", 1, 500)])
def test_five_thousand_cases(tried, tmp_path, phases, examples, least):
    """In three parts, each with a server of its own, so that none takes half an hour."""
    judge(run_schemathesis(tried, tmp_path, examples, phases), least)
