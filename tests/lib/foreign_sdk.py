"""What a published client in another language must have seen.

A driver program runs a fixed series of calls and prints one JSON object; the checks are the same for every language.
`check_*` takes that object; a suite makes a test of each.
"""

import json
import subprocess


def run_driver(command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, f"the driver ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return json.loads(done.stdout.strip().split("\n")[-1])


def ran(stdout=(), stderr=(), exit=0, error=None):
    return {"stdout": list(stdout), "stderr": list(stderr), "exit": exit, "error": error}


COMMANDS = {
    "echo": ran(["hi"]),
    "failing": ran(["out"], ["err"], 3, "CommandExecError"),
    "killed": ran(exit=-1, error="CommandExecError"),
    "blank": ran(["a", "\n\n", "b"]),
    "unicode": ran(["ünï ☃ \u2028|\u0085 end"]),
    "many": [20000, "20000"],
    "options": ran(["x y|blue|/usr/lib"]),
    "identity": ran(["65534", "65534"]),
    "timeout": ran(exit=-1, error="CommandExecError"),
    "streamed": ["one", "two"],
}


def check_commands(seen, lacks=()):
    """`lacks` names what this client cannot ask for."""
    for name, wanted in COMMANDS.items():
        if name not in lacks:
            assert seen[name] == wanted, f"{name}: {seen[name]}, not {wanted}"
    assert seen["unknown"]["exit"] == 127 and "not found" in seen["unknown"]["stderr"][0], seen["unknown"]


def check_background(seen):
    assert seen["running"] is True
    assert seen["logs"] == ["started\n", 8]
    assert seen["logs_rest"] == ""
    assert seen["interrupted"] == [False, -1, "echo started; sleep 4771"]


def check_sessions(seen):
    assert seen["session"][:4] == [ran(["/tmp"]), ran(["yes 1 /usr", "f"]), ran(exit=7, error="CommandExecError"), ran(["yes"])]
    assert seen["session"][4]["exit"] == -1


def check_files(seen, root, lacks=()):
    wanted = {
        "read": "one two one\n",
        "binary": True,
        "streamed_bytes": 300000,
        "range": "two",
        "dates": True,
        "search": [f"{root}/a.txt", f"{root}/deep/файл.bin"],
        "list": [f"{root}/a.txt", f"{root}/deep", f"{root}/deep/файл.bin", f"{root}/owned"],
        "replaced": [2],
        "after_replace": "1 2 1\n",
        "permissions": [600, "nobody", "nogroup"],
        "moved": "1 2 1\n",
        "missing": "FILE_NOT_FOUND",
    }
    for name, value in wanted.items():
        if name not in lacks:
            assert seen[name] == value, f"{name}: {seen[name]}, not {value}"
    info = {entry["path"]: entry for entry in seen["info"]}
    for path, kind, size, mode, owner, group in (
        (f"{root}/a.txt", "file", 12, 644, "root", "root"),
        (f"{root}/deep", "directory", None, 700, "root", "root"),
        (f"{root}/owned", "file", 0, 755, "nobody", "nogroup"),
    ):
        entry = info.pop(path)
        assert (entry["mode"], entry["owner"], entry["group"]) == (mode, owner, group), entry
        assert size is None or entry["size"] == size, entry
        assert "type" in lacks or entry["type"] == kind, entry
    assert info == {}


def check_metrics(seen):
    cpus, percent, total, used, stamp = seen["metrics"]
    assert cpus > 0 and 0 <= percent <= 100 and 0 <= used <= total and total > 0
    assert abs(stamp - seen["now"]) < 5000


def check_lifecycle(seen, runtime="native"):
    assert seen["info"] == [True, "Running", "host", "1", ["tail", "-f", "/dev/null"]]
    assert seen["created"] is True
    assert 280 <= seen["left"] <= 300
    processors, memory, colour = seen["limits"]
    assert colour == "blue"
    if runtime == "native":  # in a container /proc has the host's numbers
        assert processors == "1" and "262144 kB" in memory
    assert 3580 <= seen["renewed"] <= 3600
    assert seen["paused"] == "Paused" and seen["paused_twice"] == "SANDBOX::NOT_RUNNING"
    assert seen["resumed"] == ["Running", "kept"]
    assert seen["connected"] == [True, "kept"]
    assert seen["served"] == [200, "page\n"]
    assert seen["ended"] == ["Failed", "ENTRYPOINT_FAILED"]


def check_manager(seen):
    assert seen["listed"] == [["3", "2", "1"], ["2"], []]
    assert seen["page"] == [["1"], 3, 2, False]
    state, paused, resumed, left = seen["managed"]
    assert (state, paused, resumed) == ("Paused", ["3"], "Running") and 7180 <= left <= 7200
    assert seen["killed"] == ["SANDBOX::NOT_FOUND", "SANDBOX::NOT_FOUND"]


def check_refusals(seen):
    """An image, a limit, an entry process and a key that cannot be."""
    assert seen["refused"] == ["IMAGE::NOT_FOUND", "SANDBOX::INVALID_PARAMETER", "SANDBOX::INVALID_ENTRYPOINT", "INVALID_API_KEY"]
