"""What all packages share: version, architecture, times, and executables without what only debuggers read."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = "A server that makes isolated Linux sandboxes for AI agents"
LICENSE = "Apache-2.0"


class Release:
    def __init__(self, bin_dir, out):
        self.bin, self.out = bin_dir, out
        self.version = re.search(r"^project\(opensandbox VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.machine = os.uname().machine
        self.deb_arch = {"x86_64": "amd64", "aarch64": "arm64"}[self.machine]
        self.epoch = commit_time()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="opensandbox-package-"))

    def __del__(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def stripped(self, name):
        """The path of a copy of an executable without symbols."""
        copy = self.scratch / name
        if not copy.exists():
            subprocess.run(["llvm-strip-19", "-o", copy, self.bin / name], check=True)
        return copy

    def static(self):
        """The executable that needs no library; a dynamic one is refused here, not at the user's."""
        path = self.stripped("osb-static")
        headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
        if "INTERP" in headers:
            raise SystemExit(f"{self.bin}/osb-static asks for a dynamic loader")
        return path


def commit_time():
    """Seconds: what every file in a package has as its time."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else int((ROOT / "CHANGELOG.md").stat().st_mtime)
