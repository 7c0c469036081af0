"""Documents as their tests see them: which there are, and the fenced blocks of a page.

A block has a language. Directly above its fence a page may say, invisible to readers,
    <!-- not run: REASON -->    that no test can execute it
    <!-- exit: 3 -->            which status its last command ends with, when that is not 0
    <!-- anywhere -->           that its lines need no order: several things write at once
A `text` block right behind one that is executed is what that prints. `…` in it stands for anything, on a line of its own for any
lines.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
LANGUAGES = {"sh", "bash", "python", "text", "toml", "json", "yaml", "dockerfile", "c", "cpp"}
RUNNABLE = {"sh", "bash", "python"}
# What has to be there in Chinese; other pages may be.
GUIDES = ("README", "install", "first-sandbox", "command-line", "configuration", "architecture", "performance", "images", "network", "snapshots", "volumes", "code-interpreter", "pools", "limits", "operations", "migration", "mcp", "security-model")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
MARKER = re.compile(r"<!-- (?P<key>not run|exit|anywhere)(?:: (?P<value>[^\n]*?))? -->\n\Z")
SOURCE = re.compile(r"\A<!-- translation of (?P<path>\S+) (?P<hash>[0-9a-f]{16}) -->\n")


@dataclass
class Block:
    language: str
    text: str
    line: int
    marker: str = ""
    value: str = ""
    expected: str | None = None  # what it prints

    @property
    def runs(self):
        return self.language in RUNNABLE and self.marker != "not run"


def pages():
    """Everything for users, in English: the README and docs/ without decisions and without translations."""
    return [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]


def translations():
    return [REPOSITORY / "README_zh.md", *sorted((DOCS / "zh").glob("*.md"))]


def original(translation):
    """The English page that a Chinese one was made from."""
    return REPOSITORY / "README.md" if translation.parent == REPOSITORY else DOCS / translation.name


def digest(page):
    return digest_of(page.read_bytes())


def digest_of(text):
    return hashlib.sha256(text).hexdigest()[:16]


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for fence in FENCE.finditer(text):
        marker = MARKER.search(text, end, fence.start())
        block = Block(fence["language"], fence["text"], text.count("\n", 0, fence.start()) + 1)
        if marker:
            block.marker, block.value = marker["key"], marker["value"] or ""
        if block.language == "text" and found and found[-1].runs and not text[end : fence.start()].strip():
            found[-1].expected = block.text
        found.append(block)
        end = fence.end()
    return found


def fences(text):
    """(begin, end) of every block with its marker."""
    places, end = [], 0
    for fence in FENCE.finditer(text):
        marker = MARKER.search(text, end, fence.start())
        places.append((marker.start() if marker else fence.start(), fence.end()))
        end = fence.end()
    return places


def with_code_of(text, source):
    """The text with the blocks of another one in its own places; as it is when they do not have the same number."""
    mine, theirs = fences(text), fences(source)
    if len(mine) != len(theirs):
        return text
    for (begin, end), (from_, to) in zip(reversed(mine), reversed(theirs)):
        text = text[:begin] + source[from_:to] + text[end:]
    return text


def outline(page):
    """Levels of headings, and below each the number of rows: what stays the same in every language."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = []
    for line in text.split("\n"):
        if heading := re.match(r"(#+) (.*)", line):
            found.append([heading[1], 0, heading[2]])
        elif line.startswith("|") and found:
            found[-1][1] += 1
    return found


def differences(translation):
    """What a translation lacks or has too much of, as far as it can be counted."""
    here, there = outline(translation), outline(original(translation))
    told = [f"{mine[2]}: {mine[0]} with {mine[1]} rows, in English {theirs[0]} {theirs[2]} with {theirs[1]}"
            for mine, theirs in zip(here, there) if mine[:2] != theirs[:2]]  # fmt: skip
    if len(here) != len(there):
        told.append(f"{len(here)} headings, in English {len(there)}")
    blocks_here, blocks_there = (len(blocks(one)) for one in (translation, original(translation)))
    if blocks_here != blocks_there:
        told.append(f"{blocks_here} blocks of code, in English {blocks_there}")
    return told


def pattern(expected, in_order=True):
    """What matches an output that is shown as `expected`; without order one pattern for each line."""
    lines = expected.rstrip("\n").split("\n")
    shown = [r"(?:[^\n]*\n)*?" if line.strip() == "…" else "[^\n]*".join(re.escape(part) for part in line.split("…")) + "\n" for line in lines]
    if not in_order:
        return [re.compile(r"^" + one, re.M) for one in shown]
    return [re.compile(r"\A" + "".join(shown) + r"\Z")]


def matches(expected, printed, in_order=True):
    lines = [line.rstrip() for line in printed.split("\n")]
    printed = "\n".join(lines).rstrip("\n") + "\n"
    return all(one.search(printed) for one in pattern(expected, in_order))
