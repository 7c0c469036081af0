"""Network policies by the published clients. Nothing is looked up outside: what is tried is denied."""

import pytest

DENIED = "python3 -c 'import socket; socket.getaddrinfo(\"denied.example\", 80)'"


def rules(policy):
    return [(rule.action, rule.target) for rule in policy.egress]


@pytest.fixture
def models():
    from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule

    return NetworkPolicy, NetworkRule


def test_a_policy_is_given_read_and_changed(sdk, models):
    NetworkPolicy, NetworkRule = models
    given = NetworkPolicy(defaultAction="deny", egress=[NetworkRule(action="allow", target="example.com"), NetworkRule(action="deny", target="*.example.com")])
    sandbox = sdk.create(network_policy=given)
    try:
        policy = sdk.go(sandbox.get_egress_policy())
        assert policy.default_action == "deny" and rules(policy) == [("allow", "example.com"), ("deny", "*.example.com")]
        sdk.go(sandbox.patch_egress_rules([NetworkRule(action="deny", target="blocked.example"), NetworkRule(action="allow", target="EXAMPLE.com")]))
        assert rules(sdk.go(sandbox.get_egress_policy())) == [("deny", "blocked.example"), ("allow", "EXAMPLE.com"), ("deny", "*.example.com")]
        sdk.go(sandbox.delete_egress_rules(["example.com", "unknown.example"]))
        assert rules(sdk.go(sandbox.get_egress_policy())) == [("deny", "blocked.example"), ("deny", "*.example.com")]
        done = sdk.run(sandbox, DENIED)
        assert done.error is not None
    finally:
        sdk.kill(sandbox)


def test_an_empty_policy_denies_and_none_is_open(sdk, models):
    NetworkPolicy, _ = models
    for given, default in ((NetworkPolicy(), "deny"), (None, "allow")):
        sandbox = sdk.create(**({"network_policy": given} if given else {}))
        try:
            policy = sdk.go(sandbox.get_egress_policy())
            assert policy.default_action == default and rules(policy) == []
        finally:
            sdk.kill(sandbox)


def test_a_refusal_says_why(sdk, models):
    from opensandbox.exceptions import SandboxException

    NetworkPolicy, NetworkRule = models
    with pytest.raises(SandboxException, match="no egress target"):
        sdk.create(network_policy=NetworkPolicy(egress=[NetworkRule(action="allow", target="http://example.com/")]))
    sandbox = sdk.create(network_policy=NetworkPolicy())
    try:
        # The oldest client shows no text of this interface.
        with pytest.raises(SandboxException, match="no egress target" if sdk.version > (0, 2) else "HTTP 400"):
            sdk.go(sandbox.patch_egress_rules([NetworkRule(action="allow", target="example.com:443")]))
    finally:
        sdk.kill(sandbox)
