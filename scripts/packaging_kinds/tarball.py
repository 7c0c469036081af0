"""The tarball: one static executable with its two names, for any Linux, musl distributions included."""

from .archive import gzip_bytes, tar_bytes
from .extras import extras
from .release import ROOT


def make(release):
    top = f"opensandbox-{release.version}"
    documents = ["README.md", "CHANGELOG.md", "SPECIFICATION.md", "SECURITY.md", "LICENSE"]
    documents += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    entries = [
        (f"{top}/bin/osb", 0o755, release.static().read_bytes()),
        (f"{top}/bin/opensandbox-server", 0o777, "osb"),
        (f"{top}/lib/systemd/system/opensandbox.service", 0o644, (ROOT / "packaging/opensandbox.service").read_bytes()),
    ]
    entries += [(f"{top}/share/doc/opensandbox/{name}", 0o644, (ROOT / name).read_bytes()) for name in documents]
    entries += [(f"{top}/{path}", 0o644, content) for path, content in extras(release).items()]
    path = release.out / f"opensandbox-{release.version}-linux-{release.machine}.tar.gz"
    path.write_bytes(gzip_bytes(tar_bytes(entries, release.epoch)))
    return path
