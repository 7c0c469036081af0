"""What pages are made of: blocks with a language, links that lead somewhere, settings that exist, reasons for what is not executed."""

import json
import re
import tomllib

import pytest
from lib.pages import DOCS, LANGUAGES, REPOSITORY, RUNNABLE, blocks, pages, translations

LINK = re.compile(r"\]\((?!https?://|mailto:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)|<img src=\"(?P<image>[^\"]+)\"")
ALL = [*pages(), *translations()]
KEYS = re.compile(r"^\| `([a-z_.]+(?:\.\*)?)` \|", re.M)


def name_of(page):
    return str(page.relative_to(REPOSITORY))


def without_blocks(page):
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page):
    """As a forge makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_every_block_has_a_language(page):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{name_of(page)}:{block.line}: {block.language or 'no language'}"
    fences = len(re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.M))
    assert fences == 2 * len(blocks(page)), f"{name_of(page)}: a fence that is not closed"


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_links_lead_somewhere(page):
    for link in LINK.finditer(without_blocks(page)):
        path = link["path"] if link["path"] is not None else link["image"]
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {path}"
        if link["anchor"] and target.suffix == ".md":
            assert link["anchor"] in anchors(target), f"{name_of(page)}: no heading {link['anchor']} in {path or 'it'}"


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_settings_and_bodies_can_be_read(page):
    known = KEYS.findall((DOCS / "configuration.md").read_text())
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.language == "json":
            text = block.text.strip()
            json.loads(text if text[0] in "{[" else "{" + text + "}")
        if block.language == "toml":
            for key in keys_of(tomllib.loads(block.text)):
                assert any(key == one or one.endswith(".*") and key.startswith(one[:-1]) for one in known), f"{where}: no key {key}"


def keys_of(table, above=""):
    for name, value in table.items():
        yield from keys_of(value, f"{above}{name}.") if isinstance(value, dict) else [above + name]


def test_what_is_not_executed_has_a_reason(capsys):
    lines = []
    for page in pages():
        for block in blocks(page):
            if block.marker == "not run":
                assert block.language in RUNNABLE, f"{name_of(page)}:{block.line}: {block.language} is never executed, a marker says nothing"
                assert len(block.value.split()) >= 3, f"{name_of(page)}:{block.line}: why is it not executed?"
                lines.append(f"{name_of(page)}:{block.line}: not run: {block.value}")
    with capsys.disabled():
        print("", *lines, sep="\n")


def test_the_map_has_every_page():
    """Whoever adds a page says where it belongs."""
    for index in (DOCS / "README.md", REPOSITORY / "llms.txt"):
        text = index.read_text()
        for page in DOCS.glob("*.md"):
            assert page.name in text or page == index, f"{name_of(index)} does not mention {page.name}"
