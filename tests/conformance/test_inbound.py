"""Sandboxes with secureAccess, and signed endpoints, by the published clients."""

import time
import urllib.error
import urllib.request

import pytest


def fetch(address, headers=()):
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://{address}", headers=dict(headers)), timeout=10) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def test_secure_access(sdk):
    sandbox = sdk.create(secure_access=True)
    try:
        assert sdk.run(sandbox, "echo secured").logs.stdout[0].text.strip() == "secured"
        given = sdk.go(sandbox.get_endpoint(44772))
        assert fetch(given.endpoint + "/ping") == 401
        assert fetch(given.endpoint + "/ping", given.headers) == 200
    finally:
        sdk.kill(sandbox)


def test_signed_endpoint(sdk):
    sandbox = sdk.create(secure_access=True)
    try:
        if not hasattr(sandbox, "get_signed_endpoint"):
            pytest.skip("this version has no signed endpoints")
        given = sdk.go(sandbox.get_signed_endpoint(44772, int(time.time()) + 600))
        assert fetch(given.endpoint + "/ping") == 200
        assert fetch(given.endpoint.replace("/s/", "/s/1") + "/ping") == 401
    finally:
        sdk.kill(sandbox)
