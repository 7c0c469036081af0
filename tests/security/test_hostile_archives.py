"""Archives made against whoever unpacks them: they unpack safely or are refused, in words, and nothing else changes.

Every archive here aims at a directory of the host with a mark in it. The import runs as root, so that a path that gets out, or a
worker that keeps its rights, would succeed.
"""

import gzip
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import time
import zlib
from pathlib import Path

import pytest
from lib import images as make
from lib.images import Images, add, tar_bytes

MARK = "untouched"


@pytest.fixture(scope="module")
def ground():
    path = Path(tempfile.mkdtemp(prefix="osb-archives-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def outside(ground):
    """A directory of the host that everybody may write to; it must look the same afterwards."""
    path = ground / "outside"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    path.chmod(0o777)
    (path / "file").write_text(MARK)
    before = snapshot(ground)
    yield path
    assert snapshot(ground) == before, "something outside the store was made or changed"


@pytest.fixture(scope="module")
def images(bin_dir, ground):
    """A store without a service: imports need none."""
    config = ground / "config.toml"
    config.write_text(f'[native]\nstate_dir = "{ground}/state"\n')
    return Images(bin_dir, config, ground / "state")


@pytest.fixture
def archive(ground):
    path = ground / "archive"
    yield lambda data: (path.write_bytes(data), path)[1]
    path.unlink(missing_ok=True)


@pytest.fixture
def unpacked(images, archive):
    """Imports, and gives the directory of the only layer; the image is gone afterwards."""

    def go(fill, *words, **more):
        data = fill if isinstance(fill, bytes) else tar_bytes(fill, **more)
        images.import_(archive(data), "--name", "hostile", *words)
        return images.layer()

    yield go
    images.run("rm", "hostile")


def snapshot(ground):
    entries = [p for p in sorted(ground.rglob("*")) if "state" not in p.parts and p.name != "archive"]
    return [(str(p), p.lstat().st_mode, p.lstat().st_uid, p.read_text() if p.is_file() else "") for p in entries]


def climb(outside, depth=30):
    return "../" * depth + str(outside).lstrip("/")


# Paths


@pytest.mark.parametrize("name", ["../../../../../../../../{o}/new", "a/../../../../../../../{o}/new", "./..", "x/..", "..", "../x"])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE])
def test_names_that_climb_are_refused(images, archive, outside, name, kind):
    name = name.format(o=str(outside).lstrip("/"))
    said = images.refuse(archive(tar_bytes(lambda tar: add(tar, name, kind=kind, link="x"))))
    assert "climbs out" in said, said


def test_absolute_names_stay_inside(unpacked, outside):
    layer = unpacked(lambda tar: add(tar, str(outside / "new"), "inside"))
    assert (layer / str(outside / "new").lstrip("/")).read_text() == "inside"


@pytest.mark.parametrize("absolute", [True, False])
def test_links_out_are_not_followed(unpacked, outside, absolute):
    target = str(outside) if absolute else climb(outside)

    def fill(tar):
        add(tar, "out", kind=tarfile.SYMTYPE, link=target)
        add(tar, str(outside).lstrip("/"), kind=tarfile.DIRTYPE, mode=0o755)  # where the link leads within the image
        add(tar, "out/new", "inside")
        add(tar, "file", kind=tarfile.SYMTYPE, link=str(outside / "file"))
        add(tar, "file", "a file of its own")

    layer = unpacked(fill)
    assert (layer / str(outside).lstrip("/") / "new").read_text() == "inside"
    assert stat.S_ISREG((layer / "file").lstat().st_mode)


def test_a_link_to_nowhere_is_no_directory(images, archive, outside):
    def fill(tar):
        add(tar, "out", kind=tarfile.SYMTYPE, link=str(outside / "made-by-import"))
        add(tar, "out/new", "x")

    images.refuse(archive(tar_bytes(fill)))


@pytest.mark.parametrize("target", ["{o}/file", "../../../../../../../..{o}/file", "/etc/shadow", "out/file", "."])
def test_hard_links_out_are_refused(images, archive, outside, target):
    def fill(tar):
        add(tar, "out", kind=tarfile.SYMTYPE, link=str(outside))
        add(tar, "hard", kind=tarfile.LNKTYPE, link=target.format(o=outside))

    assert "hard link" in images.refuse(archive(tar_bytes(fill))) or target.startswith("..")


def test_a_directory_swapped_for_a_link(unpacked, outside):
    def fill(tar):
        add(tar, "d", kind=tarfile.DIRTYPE, mode=0o777)
        add(tar, "d/a", "x")
        add(tar, "d", kind=tarfile.SYMTYPE, link=str(outside))
        add(tar, str(outside).lstrip("/"), kind=tarfile.DIRTYPE, mode=0o777)
        add(tar, "d/b", "y")
        add(tar, "d", kind=tarfile.DIRTYPE, mode=0o700)

    layer = unpacked(fill)
    assert stat.S_IMODE((layer / "d").stat().st_mode) == 0o700


def test_long_and_odd_names(unpacked, images, archive):
    names = ["a" * 255, "/".join(["d" * 60] * 60), "new\nline", "\x1b[31mred", "-rf", " ", "...", "grüße", "back\\slash"]
    layer = unpacked(lambda tar: [add(tar, name, "x") for name in names])
    assert all((layer / name).read_text() == "x" for name in names)
    for name in ["a" * 256, "/".join(["d" * 100] * 60), "/".join("d" * 300)]:
        said = images.refuse(archive(tar_bytes(lambda tar: add(tar, name, "x"))))
        assert "\x1b" not in said
    said = images.refuse(archive(tar_bytes(lambda tar: add(tar, "../\x1b[31mred", "x"))))
    assert "\x1b" not in said, "a name must not reach the terminal as it is"


# Kinds and attributes


def test_device_nodes_are_left_out(unpacked):
    def fill(tar):
        for name, kind, major, minor in (("sda", tarfile.BLKTYPE, 8, 0), ("mem", tarfile.CHRTYPE, 1, 1), ("null", tarfile.CHRTYPE, 1, 3)):
            info = tarfile.TarInfo(name)
            info.type, info.devmajor, info.devminor, info.mode = kind, major, minor, 0o666
            tar.addfile(info)
        add(tar, "pipe", kind=tarfile.FIFOTYPE)

    layer = unpacked(fill)
    assert os.listdir(layer) == ["pipe"]


def test_set_id_bits_stay_inside_the_store(unpacked, images):
    layer = unpacked(lambda tar: add(tar, "sh", Path("/bin/sh").read_bytes(), mode=0o6755))
    assert stat.S_IMODE((layer / "sh").stat().st_mode) == 0o6755
    # Root's file with the bit set: nobody but root may come near it.
    closed = images.state_dir / "images"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700 and closed.stat().st_uid == 0


@pytest.mark.parametrize("name", ["trusted.overlay.opaque", "trusted.overlay.redirect", "trusted.x", "trusted.opensandbox.size"])
def test_attributes_of_the_kernel_are_refused(images, archive, name):
    said = images.refuse(archive(tar_bytes(lambda tar: add(tar, "d", kind=tarfile.DIRTYPE, mode=0o755, pax={f"SCHILY.xattr.{name}": "y"}))))
    assert name in said


def test_other_attributes(unpacked):
    pax = {"SCHILY.xattr.user.fine": "1", "SCHILY.xattr.security.selinux": "x", "SCHILY.xattr.system.posix_acl_access": "x"}
    layer = unpacked(lambda tar: add(tar, "f", "x", pax=pax))
    assert os.listxattr(layer / "f") == ["user.fine"]


@pytest.mark.parametrize("uid, gid", [(65536, 0), (0, 65536), (2**31, 0), (2**32 - 1, 0)])
def test_owners_outside_of_a_sandbox_are_refused(images, archive, uid, gid):
    assert "65536 ids" in images.refuse(archive(tar_bytes(lambda tar: add(tar, "f", "x", uid=uid, gid=gid))))


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "d/.wh.."])
def test_whiteouts_stay_inside(images, archive, name, outside):
    layers = [make.tar_bytes(lambda tar: add(tar, "d/x", "x")), make.tar_bytes(lambda tar: add(tar, name))]
    assert "whiteout" in images.refuse(archive(make.docker_archive(layers)))


def test_opaque_marks_behind_a_link(images, archive, outside):
    # The mark is set by root: it must not leave the layer.
    def fill(tar):
        add(tar, "out", kind=tarfile.SYMTYPE, link=str(outside))
        add(tar, "out/.wh..wh..opq")

    data = make.docker_archive([make.tar_bytes(lambda tar: add(tar, "x", "x")), make.tar_bytes(fill)])
    images.refuse(archive(data))
    assert os.listxattr(outside) == []


# Sizes


def test_huge_sparse_files(images, archive):
    """A terabyte that takes no room: its size counts."""

    def header(size):
        info = tarfile.TarInfo("./GNUSparseFile.0/huge")
        body = b"1\n0\n512\n".ljust(512, b"\0") + b"x" * 512
        info.size = len(body)
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "huge", "GNU.sparse.realsize": str(size)}
        return info, body

    for size in (1 << 40, 1 << 62, (1 << 63) - 1):
        info, body = header(size)
        said = images.refuse(archive(tar_bytes(lambda tar: tar.addfile(info, io.BytesIO(body)))))
        assert "larger than" in said, said


def test_sparse_files_keep_their_holes(unpacked):
    info = tarfile.TarInfo("./GNUSparseFile.0/holes")
    body = b"1\n67108864\n512\n".ljust(512, b"\0") + b"x" * 512
    info.size = len(body)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "holes", "GNU.sparse.realsize": str(64 << 20 | 512)}
    layer = unpacked(lambda tar: tar.addfile(info, io.BytesIO(body)))
    assert (layer / "holes").stat().st_size == (64 << 20) + 512
    assert (layer / "holes").stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("size", [8**11 - 1, 2**62])
def test_sizes_that_lie(images, archive, size):
    info = tarfile.TarInfo("liar")
    info.size = size
    images.refuse(archive(info.tobuf(tarfile.GNU_FORMAT) + b"x" * 2048))


def test_more_entries_than_allowed(images, archive):
    head = tarfile.TarInfo("d").tobuf()
    many = b"".join(tarfile.TarInfo(f"d{i % 100}/{i}").tobuf(tarfile.USTAR_FORMAT) for i in range(6000)) + bytes(1024)
    assert "entries" in images.refuse(archive(head + many), "--max-entries", "5000")


@pytest.mark.long
def test_a_million_entries(images, archive):
    def fill(tar):
        for i in range(1_000_001):
            tar.addfile(tarfile.TarInfo(f"d{i % 1000}/{i}"))

    assert "1000000 entries" in images.refuse(archive(tar_bytes(fill, format=tarfile.USTAR_FORMAT)))


def bomb(megabytes):
    """Zeros that compress a hundredfold and more: a tar member of that size."""
    info = tarfile.TarInfo("zeros")
    info.size = megabytes << 20
    squeeze = zlib.compressobj(1, wbits=31)
    out = [squeeze.compress(info.tobuf(tarfile.GNU_FORMAT))]
    block = bytes(1 << 20)
    for _ in range(megabytes):
        out.append(squeeze.compress(block))
    return b"".join([*out, squeeze.flush()])


@pytest.mark.parametrize("layer", [False, True])
def test_a_bomb(images, archive, layer):
    data = bomb(256)
    assert len(data) < 4 << 20
    if layer:  # of an OCI image, whose digests are right
        files = make.oci_files([b""])
        config = make.config_bytes([b""], {})
        files = {name: value for name, value in files.items() if not name.startswith("blobs/")}
        def blob(value, media):
            files["blobs/sha256/" + make.sha256(value)] = value
            return {"mediaType": media, "digest": "sha256:" + make.sha256(value), "size": len(value)}

        manifest = {"config": blob(config, "config"), "layers": [blob(data, "application/vnd.oci.image.layer.v1.tar+gzip")]}
        files["index.json"] = json.dumps({"manifests": [blob(json.dumps(manifest).encode(), "manifest")]}).encode()
        data = make.files_tar(files)
    began = time.monotonic()
    assert "larger than" in images.refuse(archive(data), "--max-size", "64Mi")
    assert time.monotonic() - began < 30


def test_zeros_without_end_behind_the_archive(images, archive):
    squeeze = zlib.compressobj(1, wbits=31)
    out = [squeeze.compress(tar_bytes(lambda tar: add(tar, "f", "x")))]
    out += [squeeze.compress(bytes(1 << 24)) for _ in range(4)]
    data = b"".join([*out, squeeze.flush()])
    assert "decompresses to more" in images.refuse(archive(data), "--max-size", "1Mi", "--max-entries", "10")


# Broken ones


def mutations():
    good = make.root_tar()
    packed = gzip.compress(good, 1)
    frame = make.zstd(good)
    docker = make.docker_archive([tar_bytes(lambda tar: add(tar, "f", "x"))])
    return {
        "cut gzip": packed[: len(packed) // 2], "gzip without its checksum": packed[:-4], "gzip head": packed[:10],
        "damaged gzip": packed[:5000] + b"\xff" * 64 + packed[5064:], "cut zstd": frame[: len(frame) // 2],
        "damaged zstd": frame[:5000] + b"\xff" * 64 + frame[5064:], "cut tar": good[: len(good) // 2], "noise": os.urandom(100_000),
        "text": b"hello\n" * 1000, "cut docker archive": docker[: len(docker) // 2],
        "wrong manifest": make.files_tar({"manifest.json": b"{}", "x.tar": b""}),
        "manifest that is no JSON": make.files_tar({"manifest.json": b"[" * 10_000, "x.tar": b""}),
        "manifest without a layer": make.files_tar({"manifest.json": b'[{"Config":"c","Layers":["../../etc/passwd"]}]', "c": b"{}", "x.tar": b""}),
        "manifest with a far config": make.files_tar({"manifest.json": b'[{"Config":"/etc/passwd","Layers":[]}]', "x.tar": b""}),
        "no image": make.files_tar({"index.json": b"{}", "oci-layout": b"{}", "blobs/sha256/x": b""}),
    }  # fmt: skip


MUTATIONS = mutations()


@pytest.mark.parametrize("name", MUTATIONS)
def test_broken_archives_are_refused(images, archive, name):
    said = images.refuse(archive(MUTATIONS[name]), "--name", "broken")
    assert said.startswith("osb: import ") and "worker ended" not in said, said


@pytest.mark.parametrize("victim", ["blob", "manifest", "config", "diff-id"])
def test_digests_are_checked(images, archive, victim):
    layer = make.root_tar()
    if victim == "diff-id":
        data = make.docker_archive([layer]).replace(make.sha256(layer).encode() + b'"', b"0" * 64 + b'"')
        said = images.refuse(archive(data))
        assert "something else" in said, said
        return
    files = make.oci_files([layer], compression="plain")
    sizes = {"blob": len(layer), "manifest": None, "config": len(make.config_bytes([layer], {}))}
    name = next(n for n, v in files.items() if n.startswith("blobs/") and (len(v) == sizes[victim] if sizes[victim] else b"schemaVersion" in v))
    changed = bytearray(files[name])
    changed[-1 if victim == "blob" else changed.index(b"2")] ^= 1
    files[name] = bytes(changed)
    assert "promises" in images.refuse(archive(make.files_tar(files)))


def test_an_image_for_another_machine(images, archive):
    other = "arm64" if make.MACHINE == "amd64" else "amd64"
    layers = [tar_bytes(lambda tar: add(tar, "f", "x"))]
    assert other in images.refuse(archive(make.docker_archive(layers, machine=other)))
    assert make.MACHINE in images.refuse(archive(make.files_tar(make.oci_files(layers, machine=other))))


@pytest.mark.parametrize("name", ["host", "../../x", "-x", "a b", "\x1b[0m"])
def test_names_that_an_archive_must_not_take(images, archive, name):
    images.refuse(archive(make.docker_archive([tar_bytes(lambda tar: add(tar, "f", "x"))], tags=[name])))


# The worker


def test_the_worker_has_no_rights_over_the_host(images):
    """Looks at a worker while it works: its ids, capabilities, namespaces, root, and what it may still call."""
    info = tarfile.TarInfo("slow")
    info.size = 4 << 30
    process = subprocess.Popen(images.command("import", "-", "--name", "slow"), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.stdin.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
        process.stdin.flush()
        end = time.monotonic() + 20
        status = {}
        while status.get("Seccomp") != "2":
            assert time.monotonic() < end, "no confined worker appeared"
            for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                status = {line.split(":")[0]: line.split(":")[1].strip() for line in lines}
                status["pid"] = pid
        worker = Path("/proc") / status["pid"]
        assert set(status["Uid"].split()) == {str(0x6FFF0000)}, status["Uid"]
        assert status["NoNewPrivs"] == "1"
        # chown, dac_override, dac_read_search, fowner, fsetid, setfcap: over its own ids only.
        assert int(status["CapEff"], 16) & ~0x8000001F == 0 and int(status["CapBnd"], 16) & ~0x8000001F == 0
        for kind in ("user", "mnt", "pid", "net", "ipc", "uts"):
            assert os.readlink(worker / "ns" / kind) != os.readlink(f"/proc/self/ns/{kind}"), kind
        inside = [line.split()[4] for line in (worker / "mountinfo").read_text().splitlines()]
        assert inside == ["/"], inside
        targets = {os.readlink(worker / "fd" / fd) for fd in os.listdir(worker / "fd")}
        assert not any("lock" in target or "config" in target or target.endswith("/layers") for target in targets), targets
    finally:
        process.kill()
        process.communicate()
    images.run("rm", "nothing")  # sweeps
    assert images.contents()[0][1:] == [[], []]
