"""The programs in examples/, as they are."""

import struct

from lib.interpreter import REPOSITORY, run_program

FOLDER = REPOSITORY / "examples" / "code-interpreter"


def test_languages(interpreter_service, tmp_path):
    lines = run_program([FOLDER / "languages.py"], interpreter_service, tmp_path)
    assert lines == [
        "python: 42", "javascript: 42", "typescript: 42", "java: 42", "go: 42",
        "kept: ['a', 'b']", "elsewhere: NameError", "interrupted: KeyboardInterrupt", "still 'alive'",
    ]  # fmt: skip


def test_chart(interpreter_service, tmp_path):
    lines = run_program([FOLDER / "chart.py", "out.png"], interpreter_service, tmp_path)
    assert lines[0].startswith("means: {'sun': ")
    png = (tmp_path / "out.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (960, 480)
    assert len(png) > 10_000
