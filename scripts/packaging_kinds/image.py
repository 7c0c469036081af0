"""An OCI image of the server as an archive that skopeo, podman and docker load. A layer is a tar, an image some JSON: no engine is
needed to write them.

The image has the executable, an account and nothing else. Sandboxes of the image "host" need the /usr of a distribution: mount one, or use
images of registries. A container of it needs privileges, as one that makes containers does.
"""

import hashlib
import json
import time
from pathlib import Path

from .archive import gzip_bytes, tar_bytes
from .release import LICENSE, ROOT, SUMMARY

ACCOUNTS = "root:x:0:0:root:/root:/bin/false\nopensandbox:x:990:990::/var/lib/opensandbox:/bin/false\nnobody:x:65534:65534::/:/bin/false\n"
# Of the C library that the static executable was linked with.
LOCALE = Path("/usr/lib/locale/C.utf8/LC_CTYPE")
GROUPS = "root:x:0:\nopensandbox:x:990:\nnogroup:x:65534:\n"
# Loopback, which a container of the host's network shares. For other addresses a configuration with a key is mounted over this one.
CONFIG = """[server]
host = "127.0.0.1"
port = 8080

[runtime]
type = "native"

[native]
state_dir = "/var/lib/opensandbox"
user = "opensandbox"
"""


def make(release):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch))
    plain = tar_bytes(root(release), release.epoch)
    blobs = {}

    def blob(kind, content):
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest, "size": len(content)}

    layer = blob("layer.v1.tar+gzip", gzip_bytes(plain))
    config = blob("config.v1+json", dump({
        "created": created,
        "architecture": release.deb_arch,
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/opensandbox-server"],
            "Env": ["PATH=/usr/bin:/bin", "SANDBOX_CONFIG_PATH=/etc/opensandbox/config.toml"],
            "ExposedPorts": {"8080/tcp": {}},
            "Volumes": {"/var/lib/opensandbox": {}},
            "Labels": {
                "org.opencontainers.image.title": "opensandbox-server",
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": LICENSE,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
        "history": [{"created": created, "created_by": "scripts/package image"}],
    }))
    manifest = blob("manifest.v1+json", dump({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [layer]}))
    manifest["annotations"] = {"org.opencontainers.image.ref.name": release.version}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [manifest]}

    entries = [("oci-layout", 0o644, dump({"imageLayoutVersion": "1.0.0"})), ("index.json", 0o644, dump(index)), ("blobs", 0o755, None), ("blobs/sha256", 0o755, None)]
    entries += [(f"blobs/{digest.replace(':', '/')}", 0o644, content) for digest, content in blobs.items()]
    path = release.out / f"opensandbox-{release.version}-image-{release.machine}.tar"
    path.write_bytes(tar_bytes(entries, release.epoch))
    return path


def root(release):
    folders = ["bin", "dev", "etc", "etc/opensandbox", "proc", "run", "sys", "usr", "usr/bin", "usr/lib", "usr/lib/locale", "usr/lib/locale/C.utf8", "usr/share", "usr/share/doc", "usr/share/doc/opensandbox", "var", "var/lib"]
    entries = [(folder, 0o755, None) for folder in folders] + [("root", 0o700, None), ("tmp", 0o1777, None), ("var/tmp", 0o1777, None)]
    return entries + [
        ("etc/passwd", 0o644, ACCOUNTS.encode()),
        ("etc/group", 0o644, GROUPS.encode()),
        ("etc/opensandbox/config.toml", 0o644, CONFIG.encode()),
        # Names of files in archives are text: without this no image can be unpacked.
        ("usr/lib/locale/C.utf8/LC_CTYPE", 0o644, LOCALE.read_bytes()),
        ("usr/bin/osb", 0o755, release.static().read_bytes()),
        ("usr/bin/opensandbox-server", 0o777, "osb"),
        ("usr/share/doc/opensandbox/LICENSE", 0o644, (ROOT / "LICENSE").read_bytes()),
    ]


def dump(value):
    return json.dumps(value, separators=(",", ":")).encode()
