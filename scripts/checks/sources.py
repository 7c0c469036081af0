"""The C++ files of this repository and what they include of each other."""

import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "fuzz", "bench", "tests", "cmake")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def files():
    """Paths relative to the root, sorted."""
    found = (path for folder in FOLDERS for suffix in ("cc", "h") for path in (ROOT / folder).rglob(f"*.{suffix}"))
    return sorted(str(path.relative_to(ROOT)) for path in found if "node_modules" not in path.parts)


@functools.cache
def text(name):
    return (ROOT / name).read_text(errors="surrogateescape")


def is_test(name):
    """Also what only tests include: fakes, fixtures, support."""
    stem = name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return (not name.startswith("src/") or stem.endswith(("_test", "_fixture", "_support"))
            or stem.startswith(("test_", "fake_")) or name.startswith("src/testkit/"))


@functools.cache
def includes(name):
    """Our own files that a file includes directly: as the compiler finds them, beside it or below src/."""
    beside = (ROOT / name).parent
    found = []
    for include in INCLUDE.findall(text(name)):
        for path in (beside / include, ROOT / "src" / include):
            if path.is_file():
                found.append(str(path.resolve().relative_to(ROOT)))
                break
    return found


@functools.cache
def closure(name):
    """A file and everything of ours that it includes, also indirectly; sorted."""
    seen, waiting = {name}, [name]
    while waiting:
        for include in includes(waiting.pop()):
            if include not in seen:
                seen.add(include)
                waiting.append(include)
    return sorted(seen)
