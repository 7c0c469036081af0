"""Codes of errors: docs/errors.md, which is made from src/api/error_table.cc, has every one that the sources answer with, and some test
names each. (That the document is what the table says, a unit test knows.)
"""

import re

from . import sources

DOCUMENT = "docs/errors.md"
FOLDERS = ("src/sandbox/", "src/api/", "src/server/", "src/http/")
CODE = r"[A-Z]+(?:::|_)[A-Z_]+"
# A text that is a code and nothing else; those without a prefix only where an answer gets its code.
ANSWERED = re.compile(rf'"([A-Z]+::[A-Z_]+)"|(?:\.code = |"code":)"({CODE})"')
ROW = re.compile(rf"^\| `({CODE})` \|", re.MULTILINE)


def check():
    listed = ROW.findall((sources.ROOT / DOCUMENT).read_text())
    for name in sources.files():
        if name.startswith(FOLDERS) and name.endswith(".cc") and not sources.is_test(name):
            for code in map("".join, ANSWERED.findall(sources.text(name))):
                if code not in listed:
                    yield f"{name}: {code} has no row in src/api/error_table.cc"
    tests = [path for path in (sources.ROOT / "src").rglob("*_test.cc") if path.name != "error_table_test.cc"]
    tests += [path for path in (sources.ROOT / "tests").rglob("test_*.py")]
    texts = [path.read_text() for path in tests]
    for code in listed:
        whole = re.compile(rf"(?<![A-Z_:]){code}(?![A-Z_])")
        if not any(whole.search(text) for text in texts):
            yield f"{DOCUMENT}: no test produces {code}"
