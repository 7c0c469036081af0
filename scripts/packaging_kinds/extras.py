"""Completion of shells and manual pages, as far as the executable writes them."""

import subprocess
import tempfile
from pathlib import Path

from .archive import gzip_bytes

COMPLETION = {
    "bash": "share/bash-completion/completions/osb",
    "zsh": "share/zsh/vendor-completions/_osb",
    "fish": "share/fish/vendor_completions.d/osb.fish",
}


def extras(release):
    """path below the prefix -> bytes"""
    osb = release.bin / "osb-static"
    found = {}
    for shell, path in COMPLETION.items():
        done = subprocess.run([osb, "completion", shell], capture_output=True)
        if done.returncode == 0 and done.stdout:
            found[path] = done.stdout
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([osb, "man", folder], capture_output=True)
        for page in sorted(Path(folder).glob("*.[1-8]")):
            found[f"share/man/man{page.suffix[1:]}/{page.name}.gz"] = gzip_bytes(page.read_bytes())
    return found
