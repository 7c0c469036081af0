"""clang-tidy on some files, remembering what was clean.

A file is clean as long as it, everything of ours that it includes, its command, the checks and clang-tidy itself are the same; then
it is not looked at again. (Headers of the system come with packages: after an upgrade of Boost, delete build/style.) Fuzz targets, which
the release preset does not compile, are not looked at.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import time

from . import sources

TOOL = "clang-tidy-19"
BUILD = sources.ROOT / "build/release"
CACHE = sources.ROOT / "build/style/tidy"
PRECOMPILED = re.compile(r"-Xclang -include(-pch)? -Xclang \S+cmake_pch\S+")


def commands():
    """Source file -> compiler arguments. Of files that are compiled twice, also for the static executables, the first counts."""
    subprocess.run(["cmake", "--preset", "release"], cwd=sources.ROOT, check=True, stdout=subprocess.DEVNULL)
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if file.is_relative_to(sources.ROOT) and file.suffix == ".cc":
            found.setdefault(str(file.relative_to(sources.ROOT)), shlex.split(entry["command"])[1:])
    return {name: lean(name, command) for name, command in found.items() if not name.startswith("build/")}


def lean(name, command):
    """Without the compiler's own warnings, and without the precompiled header where a file has no use for it: clang-tidy would look
    at all of Boost."""
    command = [word for word in command if not word.startswith("-W")]
    if any("#include <boost/" in sources.text(path) for path in sources.closure(name)):
        return command
    return shlex.split(PRECOMPILED.sub("", shlex.join(command)))


def build_headers(commands):
    """The precompiled ones that the commands name."""
    targets = sorted(set(re.findall(r"(\w+)\.dir/cmake_pch", " ".join(word for command in commands for word in command))))
    if targets:
        subprocess.run(["cmake", "--build", BUILD, "--target", *targets], check=True, stdout=subprocess.DEVNULL)


def key(name, command):
    digest = hashlib.sha256()
    parts = [tool_version(), json.dumps([word.replace(str(sources.ROOT), "") for word in command])]
    parts += [path.read_text() for path in sorted(sources.ROOT.glob("src/*/.clang-tidy")) + [sources.ROOT / ".clang-tidy"]]
    parts += [text for path in sources.closure(name) for text in (path, sources.text(path))]
    for part in parts:
        digest.update(part.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()


def tool_version(known=[]):  # asked once
    if not known:
        known.append(subprocess.run([TOOL, "--version"], check=True, capture_output=True, text=True).stdout)
    return known[0]


def complaints(name, command):
    arguments = [TOOL, "--quiet", name, "--", *command]
    done = subprocess.run(arguments, cwd=sources.ROOT, capture_output=True, text=True, errors="replace")
    return "" if done.returncode == 0 else done.stdout or done.stderr


def check(names, seconds=None):
    """Yields what is wrong, per file. Returns how many files there was no time for."""
    known = commands()
    CACHE.mkdir(parents=True, exist_ok=True)
    clean = {name: CACHE / key(name, known[name]) for name in names if name in known}
    unknown = [name for name in clean if not clean[name].exists()]
    build_headers(known[name] for name in unknown)
    end = time.monotonic() + seconds if seconds else None

    def look(name):
        if end and time.monotonic() > end:
            return None
        found = complaints(name, known[name])
        if not found:
            clean[name].touch()
        return re.sub(r"^\d+ warnings? .*\n", "", found, flags=re.MULTILINE)

    late = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(look, unknown):
            if found is None:
                late += 1
            elif found:
                yield found.rstrip()
    return late
