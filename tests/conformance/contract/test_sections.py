"""Every section of the contract has its tests, or a reason."""

import sections


def test_no_section_is_without_a_test():
    assert sections.untested() == []


def test_no_test_names_a_section_that_is_not_there():
    known = {*sections.SECTIONS, *(f"17.{n}" for n in range(1, 22))}
    assert set(sections.own_tests()) <= known


def test_what_is_named_exists():
    missing = {place: part for places in sections.ELSEWHERE.values() for place in places if (part := sections.missing_part(place))}
    assert missing == {}


def test_what_is_not_here_has_no_test_that_says_otherwise():
    reasons = {**sections.NOT_HERE, **sections.CHECKLIST_NOT_HERE}
    assert set(reasons) & (set(sections.own_tests()) | set(sections.ELSEWHERE)) == set()
