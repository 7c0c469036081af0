"""Flags and environment of the daemon itself (sections 8.2 and 8.3)."""

import os
import subprocess

import pytest
from lib import rawhttp
from lib.service import free_port
from lib.waiting import wait_for

CLEAN = {"PATH": "/usr/bin:/bin"}


def end_of(binary, *flags, **environment):
    return subprocess.run([binary, *flags], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL, env={**CLEAN, **environment})


@pytest.mark.parametrize(
    "flags, status",
    [(["--nope"], 2), (["-nope"], 2), (["--port", "x"], 2), (["--port"], 2), (["--port", "70000"], 2), (["--version"], 0), (["--help"], 0), (["-h"], 0)],
)
def test_flags_that_end_it(bin_dir, flags, status):
    done = end_of(bin_dir / "execd", *flags)
    assert done.returncode == status, done
    assert done.stdout or done.stderr


def test_a_taken_port_and_a_wrong_setting(bin_dir, standalone):
    taken = standalone().port
    assert end_of(bin_dir / "execd", "--port", str(taken)).returncode == 1
    assert end_of(bin_dir / "execd", "--port", str(free_port()), EXECD_CLONE3_COMPAT="nonsense").returncode == 1


@pytest.mark.parametrize(
    "flags",
    [["--port={}"], ["-port", "{}"], ["-port={}", "--log-level", "7", "--graceful-shutdown-timeout=500ms", "--jupyter-idle-poll-interval", "100ms", "--access-token", ""]],
)
def test_forms_of_flags(bin_dir, flags, tmp_path):
    port = free_port()
    process = subprocess.Popen([bin_dir / "execd", *(flag.replace("{}", str(port)) for flag in flags), "tail", "-f", "/dev/null"], env={**CLEAN, "HOME": str(tmp_path)},
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:

        def answers():
            assert process.poll() is None, f"it ended with {process.returncode}"
            try:
                return rawhttp.request(("127.0.0.1", port), "GET", "/ping").status == 200
            except OSError:
                return False

        wait_for(answers, 10, "it answers")
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_it_needs_no_name_service_and_loads_nothing(bin_dir):
    """Static: it must run in any image."""
    headers = subprocess.run(["readelf", "-lW", bin_dir / "execd"], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in headers and "DYNAMIC" not in headers
    assert os.stat(bin_dir / "execd").st_size < 3_000_000
