"""Images from registries whose roots are not like this host's: nothing but one static program, Red Hat's layout, musl's loader."""

import io
import os
import platform
import shutil
import struct
import subprocess
import tarfile

import pytest
from lib import images as make
from lib.api import Api
from lib.plugin import shared_service
from lib.registries import Made, has_debian_registry
from lib.waiting import wait_for

pytestmark = pytest.mark.skipif(not has_debian_registry(), reason="docker-registry is not installed")


@pytest.fixture(scope="module")
def api(bin_dir, request):
    return Api(shared_service(request, bin_dir, registry={}))


@pytest.fixture
def create(api):
    made = []

    def go(name, *entrypoint):
        made.append(api.create(image={"uri": name}, entrypoint=list(entrypoint))["id"])
        return made[-1]

    yield go
    for sandbox in made:
        api.delete(sandbox)


def output(api, sandbox):
    return api.call("GET", f"/sandboxes/{sandbox}/diagnostics/logs").body.decode()


def static_program(text):
    """An ELF file that writes the text and waits for ever. Linked with nothing."""
    # write(1, text, size); pause() again and again.
    code = b"\xbf\x01\0\0\0\x48\xbe" + struct.pack("<Q", 0x400078 + 36) + b"\xba" + struct.pack("<I", len(text)) + b"\xb8\x01\0\0\0\x0f\x05" + b"\xb8\x22\0\0\0\x0f\x05\xeb\xf7"
    code = code.ljust(36, b"\x90") + text
    size = 0x78 + len(code)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000) + code


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is written for x86-64")
def test_one_static_program_and_nothing_else(api, debian, create):
    """As distroless images are: no shell, no library, no /tmp, accounts perhaps."""
    layers = [make.tar_bytes(lambda tar: make.add(tar, "app", static_program(b"hello from nothing\n"), mode=0o755)),
              make.tar_bytes(lambda tar: make.add(tar, "etc/passwd", "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")),
              make.tar_bytes(lambda tar: make.add(tar, "home/nonroot", kind=tarfile.DIRTYPE, uid=65532, gid=65532, mode=0o700))]  # fmt: skip
    sandbox = create(debian.push("distroless", Made(layers, {"User": "65532:65532", "Entrypoint": ["/app"]})), "/app")
    assert api.status(sandbox)["state"] == "Running"
    wait_for(lambda: "hello from nothing" in output(api, sandbox), 10, "the program speaks")
    assert api.ping(sandbox)
    assert b"nonroot" in api.download(sandbox, "/etc/passwd")
    api.upload(sandbox, "/home/nonroot/made", b"by execd")
    assert api.download(sandbox, "/home/nonroot/made") == b"by execd"
    # There is nothing that could run a command line. It is said, and the sandbox goes on.
    ran = api.run(sandbox, "true")
    assert "sh: No such file" in str(ran.error)
    assert api.status(sandbox)["state"] == "Running"


def red_hat_root(place):
    """The programs of this host where Red Hat's distributions have them, with the loader's cache for that."""
    for path, data in make.programs().items():
        name = os.path.basename(path)
        target = place / ("usr/bin" if path.startswith("bin/") else "usr/lib64") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755)
    for link in ("bin", "sbin", "lib", "lib64"):
        (place / link).symlink_to("usr/" + ("bin" if link == "sbin" else link))
    (place / "usr/lib").mkdir()
    for directory in ("etc", "var/lib/rpm", "run", "tmp", "root"):
        (place / directory).mkdir(parents=True)
    (place / "var/run").symlink_to("../run")
    (place / "usr/lib/os-release").write_text('ID="rhel"\nVERSION_ID="9.4"\n')
    (place / "etc/os-release").symlink_to("../usr/lib/os-release")
    (place / "etc/redhat-release").write_text("Red Hat Enterprise Linux release 9.4 (Plow)\n")
    (place / "var/lib/rpm/rpmdb.sqlite").write_bytes(b"SQLite format 3\0" + bytes(4096))
    (place / "etc/passwd").write_text(make.PASSWD)
    (place / "etc/group").write_text(make.GROUP)
    (place / "etc/ld.so.conf").write_text("/usr/lib64\n")
    subprocess.run([shutil.which("ldconfig") or "/sbin/ldconfig", "-r", place], check=True)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add(place, ".")
    return out.getvalue()


def test_red_hats_layout(api, debian, create, tmp_path):
    (tmp_path / "root").mkdir()
    root = red_hat_root(tmp_path / "root")
    update = make.tar_bytes(lambda tar: (make.add(tar, "usr/lib64/security/pam.so", "later"), make.add(tar, "etc/.wh.redhat-release"), make.add(tar, "etc/system-release", "Plow")))
    sandbox = create(debian.push("ubi", Made([root, update])), "/bin/sleep", "600")
    ran = api.run(sandbox, "cat /etc/os-release /etc/system-release; test ! -e /etc/redhat-release; test -L /lib64 && test -L /bin && echo links; cat /lib64/security/pam.so; stat -c %s /var/lib/rpm/rpmdb.sqlite")
    assert ran.exit_code == 0, ran.stderr
    assert 'ID="rhel"' in ran.stdout and "Plow" in ran.stdout and "links" in ran.stdout and "later" in ran.stdout and "4112" in ran.stdout


MUSL = r"""
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  struct passwd* me = getpwuid(getuid());
  printf("musl says %s %s\n", me ? me->pw_name : "nobody", getcwd(NULL, 0));
  fflush(stdout);
  for (;;) pause();
}
"""


def test_musls_loader(api, debian, create, tmp_path):
    if not shutil.which("musl-gcc"):
        pytest.skip("musl-gcc is not installed (musl-tools)")
    (tmp_path / "main.c").write_text(MUSL)
    subprocess.run(["musl-gcc", "-o", tmp_path / "main", tmp_path / "main.c"], check=True)
    loader = subprocess.run(["readelf", "-l", tmp_path / "main"], check=True, capture_output=True, text=True).stdout.split("program interpreter: ")[1].split("]")[0]

    def fill(tar):
        make.add(tar, loader.lstrip("/"), open(os.path.realpath(loader), "rb").read(), mode=0o755)
        make.add(tar, "lib/libc.musl.so", kind=tarfile.SYMTYPE, link=os.path.basename(loader))
        make.add(tar, "usr/bin/main", (tmp_path / "main").read_bytes(), mode=0o755)
        make.add(tar, "etc/passwd", make.PASSWD)
        make.add(tar, "etc/alpine-release", "3.20.0\n")
        make.add(tar, "home/app", kind=tarfile.DIRTYPE, uid=1000, gid=1001, mode=0o755)

    name = debian.push("alpine", Made([make.tar_bytes(fill)], {"User": "app", "WorkingDir": "/home/app"}, compression="zstd"))
    sandbox = create(name, "/usr/bin/main")
    wait_for(lambda: "musl says app /home/app" in output(api, sandbox), 10, "the program speaks")
