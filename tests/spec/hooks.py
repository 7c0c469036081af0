"""What schemathesis needs to know beyond the description: which creates can succeed on a host without images, and quickly."""

import random

import schemathesis


@schemathesis.hook
def map_body(context, body):
    """Every other well-formed create is one that can be made; the others try what is refused."""
    if context.operation.definition.raw.get("operationId") != "createSandbox" or not isinstance(body, dict):
        return body
    if isinstance(body.get("entrypoint"), list) and random.random() < 0.5:
        body.update({"image": {"uri": "host"}, "entrypoint": ["sleep", "600"], "resourceLimits": {}, "timeout": 60, "env": {}, "metadata": {}})
        for name in ("platform", "secureAccess", "extensions", "lifecycle"):
            body.pop(name, None)
    return body
