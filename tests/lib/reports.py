"""Counts and failures of a run, from the report that pytest wrote."""

import xml.etree.ElementTree as xml


def read_counts(report):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    if not report.exists():
        return counts
    outcomes = {}  # a test that passes and then fails in its tear-down is listed twice; it failed
    for case in xml.parse(report).getroot().iter("testcase"):
        name = (case.get("classname"), case.get("name"))
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        if outcomes.get(name) != "failed":
            outcomes[name] = outcome
    for outcome in outcomes.values():
        counts[outcome] += 1
    return counts


def failures(report, most=10, lines=12):
    """What failed and why, short enough to stand at the end of a long output."""
    if not report.exists():
        return []
    found = [(case, child) for case in xml.parse(report).getroot().iter("testcase") for child in case if child.tag in ("failure", "error")]
    told = []
    for case, child in found[:most]:
        why = (child.get("message") or "").strip().splitlines()
        told.append("\n".join([f"{child.tag} of {case.get('classname')}::{case.get('name')}", *(f"    {line[:300]}" for line in why[:lines])]))
    if len(found) > most:
        told.append(f"and {len(found) - most} more")
    return told


def summary(counts):
    return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
