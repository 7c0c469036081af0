"""What can be seen without compiling: format, headers, sizes, commit subjects."""

import os
import re
import subprocess

from . import sources

FORMAT = "clang-format-19"
MAX_LINES = 500
# Tests may be longer: one scene after the other, nothing to understand between them. Nothing else is, at present.
LONG_FILES = ()
MAX_FUNCTION = 60
LONG_FUNCTIONS = (
    # A line or two per case, which nobody reads from top to bottom.
    "src/cli/arguments.cc:parse_osb_arguments",
    "src/execd/exit_status.cc:signal_text",
    "src/execd/options.cc:parse_options",
    "src/http/message.cc:reason_phrase",
    # Recipes, which are read from top to bottom, and where the order is the point.
    "src/launcher/child.cc:run_child",
    "src/server/serve.cc:run",
)
# As clang-format leaves them, functions begin in the first column and end with a brace there.
TYPE = re.compile(r"(namespace|struct|class|enum|union|extern|template)\b")
HEAD = re.compile(r"[A-Za-z_].*([({,]|\)( const)?( noexcept)? \{)$")
# Of threads that block: base/mutex.h has what the compiler checks.
UNCHECKED = re.compile(r"std::(\w*mutex|condition_variable\w*|lock_guard|unique_lock|scoped_lock)\b")
SUBJECT = re.compile(r"[a-z0-9_][a-z0-9_./, -]*: [^ ].*")
MAX_SUBJECT = 72


def check_format():
    names = sources.files()
    for start in range(0, len(names), 200):
        done = subprocess.run([FORMAT, "--dry-run", "-Werror", *names[start:start + 200]], cwd=sources.ROOT, capture_output=True, text=True)
        if done.returncode != 0 and not done.stderr:
            yield f"{FORMAT} ended with {done.returncode}"
        for name in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE))):
            yield f"{name}: not formatted; {FORMAT} -i {name}"


def check_headers():
    for name in sources.files():
        if name.endswith(".h") and not re.match(r"#pragma once\n\n// \S", sources.text(name)):
            yield f"{name}: begins with #pragma once, a blank line, and a comment that says what it is for"


def check_sizes():
    for name in sources.files():
        lines = sources.text(name).count("\n")
        if lines > MAX_LINES and name not in LONG_FILES and not sources.is_test(name):
            yield f"{name}: {lines} lines; more than {MAX_LINES} is more than one concept"


def functions(name):
    """Name and number of lines of each function."""
    start = None
    for number, line in enumerate(sources.text(name).splitlines()):
        if start is None and HEAD.match(line) and not TYPE.match(line):
            start, title = number, re.search(r"([\w:~]+)\(", line)
        elif line == "}" and start is not None:
            yield title.group(1) if title else "?", number - start + 1
            start = None
        elif line.startswith("}") or (line.endswith(";") and line[:1].strip()):
            start = None


def check_functions():
    for name in sources.files():
        if name.endswith(".cc") and not sources.is_test(name):
            for function, lines in functions(name):
                if lines > MAX_FUNCTION and f"{name}:{function}" not in LONG_FUNCTIONS:
                    yield f"{name}: {function}() has {lines} lines; one screen ({MAX_FUNCTION}) is enough"


def check_mutexes():
    for name in sources.files():
        if name.startswith("src/") and name != "src/base/mutex.h" and (found := UNCHECKED.search(sources.text(name))):
            yield f"{name}: {found.group()}; base/mutex.h has one that the compiler checks"


def check_subjects(base):
    log = subprocess.run(["git", "log", "--no-merges", "--format=%h %s", f"{base}..HEAD"], cwd=sources.ROOT, capture_output=True,
                         text=True, check=True)
    for line in log.stdout.splitlines():
        commit, subject = line.split(" ", 1)
        if len(subject) > MAX_SUBJECT or not SUBJECT.fullmatch(subject):
            yield f"commit {commit}: {subject!r} is not \"area: what\" in at most {MAX_SUBJECT} characters"
