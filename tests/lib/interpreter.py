"""The code interpreter image: where its build puts it, and a service that has it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ROOT = Path(os.environ.get("OSB_CODE_INTERPRETER_ROOT") or REPOSITORY / "build" / "environments" / "code-interpreter" / "root")
NAME = "opensandbox/code-interpreter"


def image_is_built():
    return (ROOT / "opt" / "code-interpreter" / "versions").exists()


def image_root():
    """The root directory of the image; skips the test when it was not built."""
    if not image_is_built():
        pytest.skip(f"the code interpreter image is not built ({ROOT}); run environments/code-interpreter/build")
    return ROOT


def installed_versions():
    """{"python": "3.11.2", …}"""
    lines = (image_root() / "opt" / "code-interpreter" / "versions").read_text().splitlines()
    return {line.split()[0]: line.split()[1] for line in lines}


def readme_program():
    """The README's program: its first block of Python, which ./quickstart runs, too."""
    block = re.search(r"^```python\n(.*?)^```$", (REPOSITORY / "README.md").read_text(), re.M | re.S)
    assert block, "the README has no program"
    return block[1]


def run_program(arguments, service, cwd, timeout=120):
    """Runs a Python program of ours with the SDK under test against a service, as a user would."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPEN_SANDBOX_")}
    environment["OPEN_SANDBOX_DOMAIN"] = f"{service.address[0]}:{service.address[1]}"
    if service.api_key:
        environment["OPEN_SANDBOX_API_KEY"] = service.api_key
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()
