"""The table of error codes as docs/errors.md has it: what an answer of the server may be."""

import re
from pathlib import Path

ROW = re.compile(r"^\| `([A-Z_:]+)` \| ([0-9, ]+) \|", re.MULTILINE)
TABLE = {
    code: {int(status) for status in statuses.split(",")}
    for code, statuses in ROW.findall((Path(__file__).resolve().parents[2] / "docs/errors.md").read_text())
}


def check(reply, path):
    """Every error that the server itself answers is in the table, with its status; what is passed on from a sandbox is not."""
    passed_on = "/proxy/" in path or path.endswith("/contexts")
    if reply.status < 400 or not reply.body or passed_on or not (reply.header("content-type") or "").startswith("application/json"):
        return
    body = reply.json
    if "code" not in body:  # /health has no code
        return
    assert body["code"] in TABLE, f"{body['code']} has no row in docs/errors.md: {reply}"
    assert reply.status in TABLE[body["code"]], f"{body['code']} with status {reply.status} is not in docs/errors.md: {reply}"
