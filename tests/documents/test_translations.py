"""The Chinese pages: of the present English text, with the same code, in the same order."""

import re
import subprocess

import pytest
from lib.pages import DOCS, GUIDES, REPOSITORY, SOURCE, blocks, differences, digest, original, translations, with_code_of


def name_of(page):
    return str(page.relative_to(REPOSITORY))


def test_every_guide_is_there():
    assert (REPOSITORY / "README_zh.md") in translations()
    for name in GUIDES:
        assert (DOCS / "zh" / f"{name}.md").exists(), f"docs/zh/{name}.md is missing"


@pytest.mark.parametrize("page", translations(), ids=name_of)
def test_it_is_of_the_present_text(page):
    head = SOURCE.match(page.read_text(encoding="utf-8"))
    assert head, f"{name_of(page)} does not say what it is a translation of"
    assert head["path"] == name_of(original(page))
    assert head["hash"] == digest(original(page)), f"{name_of(original(page))} has changed: scripts/translations shows how"


@pytest.mark.parametrize("page", translations(), ids=name_of)
def test_the_code_is_the_same(page):
    here, there = ([(block.language, block.text, block.marker, block.value) for block in blocks(one)] for one in (page, original(page)))
    for mine, theirs in zip(here, there):
        assert mine == theirs
    assert len(here) == len(there)


@pytest.mark.parametrize("page", translations(), ids=name_of)
def test_it_has_the_same_parts(page):
    assert not differences(page)


@pytest.mark.parametrize("page", translations(), ids=name_of)
def test_it_is_chinese(page):
    """A copy of the English text is no translation: outside of code, tables of names and links most letters are Chinese."""
    text = re.sub(r"^ *```.*?^ *```$|`[^`]*`|\]\([^)]*\)|<[^>]*>", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    chinese, latin = len(re.findall(r"[\u4e00-\u9fff]", text)), len(re.findall(r"[A-Za-z]{2,}", text))
    assert chinese > 3 * latin, f"{name_of(page)}: {chinese} Chinese characters, {latin} Latin words"


def test_code_is_taken_over():
    """What scripts/translations --update does: the code of the English page in the places of the Chinese one."""
    english = "a\n<!-- exit: 1 -->\n```sh\nnew\n```\nb\n```text\nout\n```\n"
    chinese = "甲\n```sh\nold\n```\n乙\n```text\nold\n```\n丙\n"
    assert with_code_of(chinese, english) == "甲\n<!-- exit: 1 -->\n```sh\nnew\n```\n乙\n```text\nout\n```\n丙\n"
    assert with_code_of(chinese, "a\n") == chinese


def test_the_script_finds_what_is_stale():
    """And agrees with the tests above."""
    done = subprocess.run([REPOSITORY / "scripts" / "translations"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
