"""An image whose own program stands in the place of execd. The engine mounts what lies deeper later, and reads links of the image: the volume of the image
comes over the directory that execd is in."""

import shutil
import subprocess
import tempfile
from pathlib import Path

IMPOSTOR = "impostor:1"

# It shows what it was given, and waits.
PROGRAM = '#!/bin/sh\necho "given: $(cat)"\nexec sleep 1000\n'


def import_impostor(engine):
    with tempfile.TemporaryDirectory(prefix="osb-impostor-", dir="/var/tmp") as place:
        root = Path(place) / "root"
        (root / "bin").mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), root / "bin/busybox")
        for applet in ("sh", "cat", "sleep", "nc", "printf"):
            (root / "bin" / applet).symlink_to("busybox")
        (root / "opt").mkdir()
        (root / "opt/opensandbox").symlink_to("/a/b/c")
        boot = root / "a/b/c/boot"
        boot.mkdir(parents=True)
        (boot / "execd").write_text(PROGRAM)
        (boot / "execd").chmod(0o755)
        tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
    engine.docker("import", "-c", "VOLUME /a/b/c/boot", "-", IMPOSTOR, input=tar)
