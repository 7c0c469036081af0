"""The README's program, word for word, and under every name that users know the image by."""

import pytest
from lib.interpreter import readme_program, run_program

OTHER_NAMES = ["opensandbox/code-interpreter", *(f"registry.example/opensandbox/code-interpreter:{tag}" for tag in ("latest", "v1.0.1", "v1.0.2"))]


def check(lines):
    assert lines[:3] == ["Hello OpenSandbox!", "Content: Hello World", "4"]
    assert lines[3].startswith("3.11")


def test_as_it_is(interpreter_service, tmp_path):
    (tmp_path / "program.py").write_text(readme_program())
    check(run_program(["program.py"], interpreter_service, tmp_path))


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_names(interpreter_service, tmp_path, name):
    program = readme_program()
    assert program.count('"opensandbox/code-interpreter:latest"') == 1
    (tmp_path / "program.py").write_text(program.replace('"opensandbox/code-interpreter:latest"', repr(name)))
    check(run_program(["program.py"], interpreter_service, tmp_path))
