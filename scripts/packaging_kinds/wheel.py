"""The wheel opensandbox-server: the static executable as the command opensandbox-server. It brings no osb, which another package of the
same users has.

The executable needs no C library at all, so the tags name the oldest ones of both families that installers know.
"""

import base64
import hashlib
import time
import zipfile

from .release import LICENSE, ROOT, SUMMARY

TAGS = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"


def make(release):
    tag = f"py3-none-{TAGS.format(release.machine)}"
    name = f"opensandbox_server-{release.version}"
    info = f"{name}.dist-info"
    files = {
        f"{name}.data/scripts/opensandbox-server": release.static().read_bytes(),
        f"{info}/METADATA": metadata(release).encode(),
        f"{info}/WHEEL": wheel_file(tag).encode(),
        f"{info}/licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    record = "".join(f"{path},sha256={digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()

    path = release.out / f"{name}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for member, content in files.items():
            entry = zipfile.ZipInfo(member, time.gmtime(max(release.epoch, 315532800))[:6])
            entry.external_attr = (0o100755 if "/scripts/" in member else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def metadata(release):
    return f"""Metadata-Version: 2.1
Name: opensandbox-server
Version: {release.version}
Summary: {SUMMARY}
License: {LICENSE}
Classifier: Operating System :: POSIX :: Linux
Requires-Python: >=3.8
Description-Content-Type: text/markdown

# opensandbox-server

{SUMMARY}, with a Linux kernel alone. The package has one executable and no Python code.

```
opensandbox-server init-config ~/.sandbox.toml --example docker-zh
opensandbox-server
```
"""


def wheel_file(tag):
    head, abi, platforms = tag.split("-")
    tags = "".join(f"Tag: {head}-{abi}-{platform}\n" for platform in platforms.split("."))
    return f"Wheel-Version: 1.0\nGenerator: opensandbox scripts/package\nRoot-Is-Purelib: false\n{tags}"
