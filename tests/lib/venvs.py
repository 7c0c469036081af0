"""Virtual environments with exact pins below build/venvs/, made on first use."""

import hashlib
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
VENVS = Path(__file__).resolve().parents[2] / "build" / "venvs"


def ensure_venv(name):
    """The interpreter of an environment that holds exactly what its requirements file says."""
    requirements = REQUIREMENTS / f"{name}.txt"
    home = VENVS / name
    stamp = home / "made-from"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"== making {home}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", "--no-deps", "-r", requirements], check=True)
        stamp.write_text(wanted)
    return home / "bin" / "python"


if __name__ == "__main__":
    for file in sorted(REQUIREMENTS.glob("*.txt")):
        ensure_venv(file.stem)
