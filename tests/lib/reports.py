"""Counts of a run, from the report that pytest wrote."""

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


def summary(counts):
    return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
