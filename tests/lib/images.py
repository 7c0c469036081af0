"""Images as tests make them: a small root from programs of this host, and archives written by hand, so that they may be wrong."""

import gzip
import hashlib
import io
import json
import platform
import subprocess
import tarfile
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

PROGRAMS = ("bash", "cat", "ls", "id", "sleep", "tail", "touch", "stat", "env", "test")
PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001:an app:/home/app:/bin/sh\n"
GROUP = "root:x:0:\napp:x:1001:\nstaff:x:50:app\n"
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


@lru_cache
def programs(more=()):
    """Path in the image -> bytes: a shell, some tools, and the libraries they need."""
    files = {}
    for name in (*PROGRAMS, *more):
        path = next(p for p in (Path("/bin") / name, Path("/usr/bin") / name) if p.exists())
        files[f"bin/{name}"] = path.read_bytes()
        for word in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.split():
            if word.startswith("/"):
                files[word.lstrip("/")] = Path(word).read_bytes()
    files["bin/sh"] = files["bin/bash"]
    return files


def add(tar, name, data=b"", *, mode=0o644, uid=0, gid=0, kind=tarfile.REGTYPE, link="", pax=None, mtime=1_600_000_000):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.uid, info.gid, info.linkname, info.mtime = kind, mode, uid, gid, link, mtime
    data = data.encode() if isinstance(data, str) else data
    info.size = len(data)
    info.pax_headers = pax or {}
    tar.addfile(info, io.BytesIO(data))


def tar_bytes(fill, format=tarfile.PAX_FORMAT):
    """A tar archive as bytes; `fill` gets the open archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        fill(tar)
    return out.getvalue()


def fill_root(tar, more=()):
    for name, data in programs(more).items():
        add(tar, name, data, mode=0o755)
    add(tar, "etc/passwd", PASSWD)
    add(tar, "etc/group", GROUP)
    add(tar, "home/app", kind=tarfile.DIRTYPE, mode=0o750, uid=1000, gid=1001)
    add(tar, "tmp", kind=tarfile.DIRTYPE, mode=0o1777)
    add(tar, "root", kind=tarfile.DIRTYPE, mode=0o700)


def root_tar(extra=lambda tar: None, more=()):
    return tar_bytes(lambda tar: (fill_root(tar, more), extra(tar)))


def write_root(directory):
    """The same root as a directory."""
    with tarfile.open(fileobj=io.BytesIO(root_tar())) as tar:
        tar.extractall(directory, numeric_owner=True)
    return directory


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c", "-"], input=data, capture_output=True, check=True).stdout


COMPRESSIONS = {"plain": lambda data: data, "gzip": lambda data: gzip.compress(data, 1), "zstd": zstd}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def config_bytes(layers, config, machine=MACHINE):
    return json.dumps({
        "architecture": machine, "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(layer) for layer in layers]},
    }).encode()  # fmt: skip


def docker_archive(layers, config=None, tags=("made:1",), compression="plain", machine=MACHINE):
    """What `docker save` writes. Layers are tar archives as bytes, lowest first."""

    def fill(tar):
        names = []
        for layer in layers:
            name = sha256(layer) + "/layer.tar"
            if name in names:  # the same layer twice is a link in such an archive
                link = f"{len(names)}-again/layer.tar"
                add(tar, link, kind=tarfile.SYMTYPE, link="../" + name)
                names.append(link)
                continue
            add(tar, name, COMPRESSIONS[compression](layer))
            names.append(name)
        text = config_bytes(layers, config or {}, machine)
        add(tar, sha256(text) + ".json", text)
        add(tar, "manifest.json", json.dumps([{"Config": sha256(text) + ".json", "RepoTags": list(tags), "Layers": names}]))

    return tar_bytes(fill)


def oci_files(layers, config=None, name="made:1", compression="gzip", machine=MACHINE, nested=False):
    """Path -> bytes of an OCI image layout."""
    files = {"oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode()}

    def blob(data, media_type, **more):
        files["blobs/sha256/" + sha256(data)] = data
        return {"mediaType": media_type, "digest": "sha256:" + sha256(data), "size": len(data), **more}

    suffix = {"plain": "", "gzip": "+gzip", "zstd": "+zstd"}[compression]
    packed = [blob(COMPRESSIONS[compression](layer), "application/vnd.oci.image.layer.v1.tar" + suffix) for layer in layers]
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(config_bytes(layers, config or {}, machine), "application/vnd.oci.image.config.v1+json"), "layers": packed,
    }  # fmt: skip
    annotations = {"org.opencontainers.image.ref.name": name} if name else {}
    platform_of = {"os": "linux", "architecture": machine}
    found = blob(json.dumps(manifest).encode(), manifest["mediaType"], platform=platform_of, annotations=annotations)
    if nested:
        other = blob(b"not for this machine", manifest["mediaType"], platform={"os": "linux", "architecture": "s390x"})
        inner = json.dumps({"schemaVersion": 2, "manifests": [other, found]}).encode()
        found = blob(inner, "application/vnd.oci.image.index.v1+json", annotations=annotations)
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [found]}).encode()
    return files


def files_tar(files):
    return tar_bytes(lambda tar: [add(tar, name, data) for name, data in files.items()])


class Images:
    """`osb images` for the store of one service."""

    def __init__(self, bin_dir, config_path, state_dir):
        self.osb = Path(bin_dir) / "osb"
        self.config_path = Path(config_path)
        self.state_dir = Path(state_dir)

    def command(self, *words):
        return [self.osb, "images", words[0], "--config", self.config_path, *words[1:]]

    def run(self, *words, **more):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=120, **more)

    def import_(self, source, *words, **more):
        done = self.run("import", str(source), *words, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refuse(self, source, *words, **more):
        """The error message of an import that must fail, and leave nothing."""
        before = self.contents()
        done = self.run("import", str(source), *words, **more)
        assert done.returncode == 1, f"imported: {done.stdout} {done.stderr}"
        assert self.contents() == before, "a refused import left something behind"
        return done.stderr

    def list(self):
        done = self.run("ls", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def names(self):
        return sorted(name for image in self.list() for name in image["names"])

    def contents(self):
        """What is in the store: layers, staging, trash, names."""
        store = self.state_dir / "images" / "store"
        lists = [sorted(p.name for p in (store / part).iterdir()) for part in ("layers", "staging", "trash") if (store / part).exists()]
        return lists or [[], [], []], self.names()

    def layer(self, number=0):
        return self.state_dir / "images" / "store" / "layers" / self.list()[0]["layers"][number]


class EngineImages(Images):
    """The same where sandboxes are containers: whatever is imported into the store is the engine's image as well, under the same names."""

    def __init__(self, bin_dir, config_path, state_dir, engine):
        super().__init__(bin_dir, config_path, state_dir)
        self.engine = engine

    def import_(self, source, *words, **more):
        said = super().import_(source, *words, **more)
        source, given = Path(source), list(zip(words[::2], words[1::2], strict=True))
        if source.is_file() and "manifest.json" in subprocess.run(["tar", "-tf", source], capture_output=True, text=True, check=True).stdout.split():
            self.engine.docker("load", "-i", source)
            return said
        changes = [f"{option.removeprefix('--').upper()} {value}" for option, value in given if option != "--name"]
        names = [value for option, value in given if option == "--name"] or [source.name.split(".")[0]]
        with open_archive(source) as archive:
            words = [word for change in changes for word in ("-c", change)]
            image = self.engine.docker("import", *words, "-", stdin=archive).stdout.decode().strip()
        for name in names:
            self.engine.docker("tag", image, name)
        return said


@contextmanager
def open_archive(source):
    """A root as a stream of tar, packed or not: an archive's own bytes, or those of a directory."""
    if source.is_file():
        with open(source, "rb") as opened:
            yield opened
        return
    with subprocess.Popen(["tar", "-C", source, "-c", "."], stdout=subprocess.PIPE) as tar:
        yield tar.stdout
    assert tar.returncode == 0
