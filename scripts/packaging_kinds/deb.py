"""The package for Debian 12: the dynamic executable, whose libraries Debian keeps safe, with unit, account, configuration."""

import subprocess

from .extras import extras
from .release import ROOT, SUMMARY

# Loaded when they are first needed, so no header of the executable names them.
LOADED = ["libarchive13", "libssl3"]

POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd opensandbox >/dev/null; then
    adduser --system --group --no-create-home --home /var/lib/opensandbox --quiet opensandbox
  fi
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # An upgrade takes over the sandboxes that run. A first start is the operator's: read the configuration first.
    systemctl try-restart opensandbox.service || true
  fi
fi
"""
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now opensandbox.service || true
fi
"""
POSTRM = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
# State stays, also with purge: it may hold volumes and snapshots that nobody else has.
if [ "$1" = purge ]; then rmdir /etc/opensandbox 2>/dev/null || true; fi
"""


def make(release):
    tree = release.scratch / "deb"
    install(release, tree)
    for path, content in extras(release).items():
        write(tree / "usr" / path, content)
    control = tree / "DEBIAN"
    write(control / "control", control_file(release, tree).encode())
    write(control / "conffiles", b"/etc/opensandbox/config.toml\n")
    for name, text in {"postinst": POSTINST, "prerm": PRERM, "postrm": POSTRM}.items():
        write(control / name, text.encode(), 0o755)
    path = release.out / f"opensandbox_{release.version}_{release.deb_arch}.deb"
    environment = {"SOURCE_DATE_EPOCH": str(release.epoch), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--build", tree, path], check=True, stdout=subprocess.DEVNULL, env=environment)
    return path


def install(release, tree):
    write(tree / "usr/bin/osb", release.stripped("osb").read_bytes(), 0o755)
    (tree / "usr/bin/opensandbox-server").symlink_to("osb")
    write(tree / "usr/lib/systemd/system/opensandbox.service", (ROOT / "packaging/opensandbox.service").read_bytes())
    home = release.scratch / "example.toml"
    subprocess.run([release.bin / "opensandbox-server", "init-config", home, "--example", "native", "--force"], check=True, stdout=subprocess.DEVNULL)
    write(tree / "etc/opensandbox/config.toml", home.read_bytes())
    documents = tree / "usr/share/doc/opensandbox"
    for name in ["README.md", "CHANGELOG.md", "SPECIFICATION.md", "SECURITY.md", *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]:
        write(documents / name, (ROOT / name).read_bytes())
    write(documents / "copyright", b"Licensed under the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0\n")


def control_file(release, tree):
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    return f"""Package: opensandbox
Version: {release.version}
Architecture: {release.deb_arch}
Maintainer: OpenSandbox <maintainers@opensandbox.example>
Section: admin
Priority: optional
Installed-Size: {size // 1024}
Depends: {', '.join([needed_libraries(release), *LOADED, 'adduser'])}
Recommends: ca-certificates, uidmap
Description: {SUMMARY}
 One server that makes sandboxes from a Linux kernel alone, in milliseconds, and
 runs commands, code and file transfers in them, with the API of OpenSandbox.
 It has the command line osb as well.
"""


def needed_libraries(release):
    """What dpkg-shlibdeps finds. It wants to stand beside a debian/control."""
    folder = release.scratch / "shlibdeps"
    write(folder / "debian/control", b"Source: opensandbox\n\nPackage: opensandbox\nArchitecture: any\n")
    done = subprocess.run(["dpkg-shlibdeps", "-O", release.stripped("osb")], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip().removeprefix("shlibs:Depends=")


def write(path, content, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
