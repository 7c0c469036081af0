"""Importing an image beside `tar -x` of the same archive, on the same file system, each into an empty directory."""

import gzip
import io
import os
import random
import shutil
import tarfile
import tempfile

KINDS = ("plain", "gzip")
FILES = 4000
MEGABYTES = 96


def write_archives(directory):
    """About what a small distribution's layer is: thousands of small files, some large ones, in a few hundred directories."""
    chance = random.Random(1)
    words = [chance.randbytes(chance.randrange(2, 9)).hex() for _ in range(2000)]
    text = " ".join(chance.choices(words, k=200_000)).encode()
    sizes = [min(int(chance.paretovariate(1.0) * 2000), 8 << 20) for _ in range(FILES)]
    scale = MEGABYTES * (1 << 20) / sum(sizes)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i, size in enumerate(sizes):
            info = tarfile.TarInfo(f"usr/share/d{i % 17}/d{i % 310}/file{i}")
            info.size, info.mode, info.mtime = int(size * scale), 0o644, 1_600_000_000
            data = (text * (info.size // len(text) + 1))[: info.size]
            tar.addfile(info, io.BytesIO(data))
    paths = {kind: os.path.join(directory, "layer-" + kind) for kind in KINDS}
    with open(paths["plain"], "wb") as file:
        file.write(out.getvalue())
    with gzip.open(paths["gzip"], "wb", compresslevel=6) as file:
        file.write(out.getvalue())
    return paths


class Unpack:
    def __init__(self, load, bin_dir, parent):
        self._load = load
        self._osb = os.path.join(bin_dir, "osb")
        self._directory = tempfile.mkdtemp(prefix="osb-bench-unpack-", dir=parent)
        self._archives = write_archives(self._directory)
        self._count = 0

    def _fresh(self):
        self._count += 1
        path = os.path.join(self._directory, str(self._count))
        os.mkdir(path)
        return path

    def measure(self, results, samples):
        for kind, archive in self._archives.items():
            bare, ours = [], []
            for _ in range(samples):
                bare.append(self._load.program_time("exit", ["tar", "-xf", archive, "-C", self._fresh()]))
                command = [self._osb, "images", "import", archive, "--name", "bench", "--quiet", "--state-dir", self._fresh()]
                ours.append(self._load.program_time("exit", command))
            results.add_round("tar." + kind, bare)
            results.add_round("unpack." + kind, ours)

    def close(self):
        """Only at the end: removing many files makes the next ones slow to create."""
        shutil.rmtree(self._directory, ignore_errors=True)
