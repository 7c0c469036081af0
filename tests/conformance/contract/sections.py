#!/usr/bin/env python3
"""The sections of the lifecycle contract that concern a server, and where each is tested.

A test of this folder names its section: test_s5_11_… is one of 5.11. What is tested elsewhere is named here; what does not concern
this server says why. test_sections.py compares this table with the tests that there are; as a program this prints it:

    tests/conformance/contract/sections.py
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]

SECTIONS = {
    "1.1": "Mounting", "1.2": "Order of what looks at a request", "1.3": "X-Request-ID", "1.4": "CORS", "1.5": "JSON", "1.6": "Limits",
    "2.1": "API key", "2.2": "Exemptions", "2.3": "Guard of the start",
    "3.1": "Shapes of errors", "3.2": "Details of 422", "3.3": "Codes", "3.4": "No error outside the envelope",
    "4.1": "Create request", "4.2": "Answers", "4.3": "Image", "4.4": "Platform", "4.5": "Labels", "4.6": "Limits of resources", "4.7": "Network policy", "4.8": "Volumes",
    "4.9": "Extensions", "4.10": "Other requests",
    "5.1": "Health, version, documents", "5.2": "Create", "5.3": "List", "5.4": "Get", "5.5": "Metadata", "5.6": "Delete", "5.7": "Pause, resume", "5.8": "Renew", "5.9": "Snapshots",
    "5.10": "Location", "5.11": "Endpoint", "5.12": "Proxy", "5.13": "Pools", "5.14": "Diagnostics", "5.15": "Routes that are not there", "5.16": "Templates", "5.17": "Network policy route",
    "5.18": "Metrics events",
    "6.1": "States", "6.2": "Reasons", "6.3": "Transitions", "6.4": "Restart", "6.8": "States of snapshots",
    "7.1": "Place of the configuration", "7.2": "Keys", "7.3": "Environment", "7.4": "Command line",
    "11.1": "Store of snapshots", "11.2": "Life of a snapshot", "11.3": "Reasons of snapshots",
    "12.1": "Renewal by use: when", "12.2": "Renewal by use: how far", "12.3": "Renewal by use: Redis",
}  # fmt: skip

NOT_HERE = {
    "11.1": "a database of another server is not taken over (docs/configuration.md)",
    "12.3": "uses that a gateway reports are not read",
}

# "17.N": the lines of the acceptance checklist. Files are below tests/.
ELSEWHERE = {
    "7.1": ["functional/test_start.py", "functional/test_configuration.py::TestMistakes"],
    "7.2": ["functional/test_configuration.py::TestFilesOfOtherServers", "functional/test_configuration.py::TestSandboxDefaults"],
    "7.3": ["functional/test_configuration.py::TestVariables"],
    "7.4": ["functional/test_configuration.py::TestCommandLine"],
    "17.1": ["conformance/test_lifecycle.py", "conformance/test_commands.py", "conformance/test_files.py", "conformance/test_snapshots.py", "conformance/javascript", "conformance/java"],
    "17.2": ["conformance/contract/test_s17_checklist.py::test_s17_2_the_everyday_sequence", "functional/test_egress.py"],
    "17.3": ["conformance/contract/test_s17_checklist.py::test_s17_3_without_a_timeout"],
    "17.4": ["conformance/contract/test_s5_routes.py::TestEndpoint::test_s5_11_of_nobody"],
    "17.5": ["conformance/contract/test_s5_routes.py::TestEndpoint::test_s5_11_string", "conformance/contract/test_s17_checklist.py::test_s17_5_the_string_is_followed", "functional/test_tokens.py::TestTheEndpointOpens"],
    "17.6": ["conformance/contract/test_s5_12_proxy.py::TestRequestHeaders", "conformance/contract/test_s5_12_proxy.py::TestAnswers"],
    "17.7": ["conformance/contract/test_s17_checklist.py::test_s17_7_refusals"],
    "17.8": ["conformance/contract/test_s1_transport.py::TestJson::test_s1_5_null_is_absent"],
    "17.9": ["conformance/contract/test_s1_transport.py::TestJson::test_s1_5_timestamps"],
    "17.10": ["conformance/contract/test_s5_routes.py::test_s5_7_pause_and_resume", "functional/test_snapshots.py::test_of_a_paused_sandbox"],
    "17.11": ["conformance/contract/test_s6_states.py::TestStates::test_s6_2_ends", "conformance/contract/test_s5_routes.py::test_s5_6_delete"],
    "17.12": ["conformance/contract/test_s6_states.py::TestRestart", "functional/test_kill9.py"],
    "17.13": ["functional/test_snapshots.py::test_a_snapshot_and_what_is_made_from_it"],
    "17.15": ["conformance/contract/test_s2_authentication.py"],
    "17.16": ["functional/test_admission.py", "functional/test_starvation.py"],
    "17.17": ["conformance/contract/test_s5_routes.py::TestDiagnostics::test_s5_14_stable_form"],
    "17.18": ["conformance/contract/test_s17_checklist.py::test_s17_18_metrics_events_never_hang"],
    "17.19": ["conformance/contract/test_s5_12_proxy.py::TestRequestHeaders::test_s5_12_forwarded_fields_are_rebuilt", "conformance/contract/test_s5_12_proxy.py::TestAnswers"],
    "17.20": ["conformance/contract/test_s5_13_pools.py::test_s5_13_exhausted"],
    "17.21": ["conformance/contract/test_s2_authentication.py::TestExemptions::test_s2_2_need_no_key"],
}  # fmt: skip
CHECKLIST_NOT_HERE = {
    "17.14": "routes are not signed: `expires` is refused by name (5.11)",
}


def own_tests():
    """Section -> names of the tests of this folder."""
    found = {}
    for file in sorted(HERE.glob("test_s*.py")):
        for name in re.findall(r"^ *def (test_s\w+)", file.read_text(), re.MULTILINE):
            numbers = re.match(r"test_s(\d+)_(\d+)_", name)
            if numbers:
                found.setdefault(".".join(numbers.groups()), []).append(f"{file.name}::{name}")
    return found


def missing_part(place):
    """What of "file::Class::test" is not there; nothing when all is."""
    file, *names = place.split("::")
    if not (TESTS / file).exists():
        return file
    text = (TESTS / file).read_text() if names else ""
    return next((name for name in names if not re.search(rf"^ *(def|class) {name}\b", text, re.MULTILINE)), None)


def untested():
    own = own_tests()
    wanted = [*SECTIONS, *(f"17.{n}" for n in range(1, 22))]
    return [section for section in wanted if section not in own and section not in ELSEWHERE and section not in NOT_HERE and section not in CHECKLIST_NOT_HERE]


def main():
    own = own_tests()
    for section in [*SECTIONS, *(f"17.{n}" for n in range(1, 22))]:
        reason = NOT_HERE.get(section) or CHECKLIST_NOT_HERE.get(section)
        where = f"{len(own[section])} here" if section in own else reason or ", ".join(ELSEWHERE.get(section, ["NO TEST"]))
        print(f"{section:6} {SECTIONS.get(section, 'checklist'):36} {where}")
    return 1 if untested() else 0


if __name__ == "__main__":
    sys.exit(main())
