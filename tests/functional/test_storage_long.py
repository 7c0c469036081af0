"""Pulls, unpacking, imports, pushes, volumes and pools under kill -9 at random moments. Run with --long.

Whatever is killed when: an image that has a name is whole, one that a registry lists is whole there, a volume has what was written
to it before the answer, a claim that was answered is a sandbox and nobody else's, and at the end nothing is on the disk that nobody refers to.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from lib import images as make
from lib import leaks, pools
from lib import snapshots as of
from lib.api import Api
from lib.image_processes import children_named, parent_of
from lib.images import Images
from lib.rawhttp import Closed
from lib.registries import DebianRegistry, Made, has_debian_registry
from lib.waiting import wait_for
from test_kill9 import VICTIMS
from test_volumes import claim

pytestmark = [pytest.mark.long, pytest.mark.skipif(not has_debian_registry(), reason="docker-registry is not installed")]

SECONDS = int(os.environ.get("OSB_SECONDS", "180"))
MEGABYTE = 1 << 20


class Store:
    """Layers as they were made, by their digests: what each file of them has to be."""

    def __init__(self, registry, chance):
        self.files, self.names = {}, []
        root = self.know({name: data for name, data in make.programs().items()} | {"etc/passwd": make.PASSWD.encode(), "etc/group": make.GROUP.encode()}, mode=0o755)
        for i, kind in enumerate(("gzip", "zstd", "plain")):
            layers = [root] + [self.know({f"data/{i}/{j}/{k}": chance.randbytes(MEGABYTE) for k in range(4)}) for j in range(3)]
            self.names.append(registry.push(f"kills/{kind}", Made(layers, compression=kind)))
        self.archive = make.docker_archive([root, self.know({"data/imported": chance.randbytes(8 * MEGABYTE)})], tags=("imported:1",))

    def know(self, files, mode=0o644):
        layer = make.tar_bytes(lambda tar: [make.add(tar, name, data, mode=mode) for name, data in files.items()])
        self.files[make.sha256(layer)] = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        return layer


def whole(directory, files):
    found = {}
    for top, _, names in os.walk(directory):
        for name in names:
            path = Path(top, name)
            found[str(path.relative_to(directory))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found == files


def keepers(service):
    found = []
    for pid in children_named(b"image-keeper"):
        try:
            if str(service.state_dir).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def kill_keeper(service):
    """One of the processes that work on images: a keeper, its fetcher, its worker."""
    family = []
    for keeper in keepers(service):
        below = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if parent_of(pid) == keeper:
                    below.append(int(pid))
            except OSError:
                continue
        family += [keeper, *below]
    if family:
        try:
            os.kill(random.choice(family), signal.SIGKILL)
        except ProcessLookupError:
            pass


KILLS = {**VICTIMS, "keeper": kill_keeper, "keeper again": kill_keeper, "nobody": lambda service: None}


class Turns:
    def __init__(self, service, registry, seed):
        self.chance = random.Random(seed)
        self.service, self.registry, self.seed = service, registry, seed
        self.api, self.store = Api(service), Store(registry, self.chance)
        self.images = Images(service.bin_dir, service.config_path, service.state_dir)
        self.volumes, self.pushes, self.snapshot = {}, 0, None
        self.claimed = []

    def begin(self):
        """Everything once, so that the directories are there which stay."""
        assert self.until_done("/images/pull", {"image": self.store.names[0]}).status == 200
        self.api.delete(self.api.create(volumes=[claim("first")])["id"])
        self.end()

    def beside_a_kill(self, action):
        """The answer may be lost with whoever would give it; what was done is looked at afterwards."""
        victim = self.chance.choice(list(KILLS))
        killer = threading.Timer(self.chance.random() * 1.0, KILLS[victim], [self.service])
        killer.start()
        try:
            return action()
        except (OSError, Closed, AssertionError, ValueError):
            return None
        finally:
            killer.join()
            self.service.wait_healthy()

    def until_done(self, path, body):
        for _ in range(100):
            answer = self.api.call("POST", path, json=body)
            if answer.status != 202:
                return answer
        raise AssertionError(f"{path} does not end")

    def pull(self):
        self.beside_a_kill(lambda: self.until_done("/images/pull", {"image": self.chance.choice(self.store.names)}))

    def remove(self):
        self.beside_a_kill(lambda: self.api.call("DELETE", "/images?name=" + self.chance.choice(self.store.names)))

    def prune(self):
        self.beside_a_kill(lambda: self.api.call("POST", "/images/prune"))

    def import_(self):
        command = subprocess.Popen(self.images.command("import", "-"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if self.chance.random() < 0.5:
            threading.Timer(self.chance.random() * 0.3, command.kill).start()
        try:
            command.communicate(self.store.archive)
        except BrokenPipeError:
            command.wait()

    def push(self):
        names = self.images.names()
        if self.snapshot and self.chance.random() < 0.5:
            names = [f"opensandbox-snapshots:{self.snapshot}"]
        if not names:
            return
        self.pushes += 1
        # Half of them have to be packed, instead of being lent by the repository that they came from.
        for layer in (self.service.state_dir / "images/store/layers").iterdir():
            for note in ("trusted.opensandbox.came", "trusted.opensandbox.packed"):
                if self.chance.random() < 0.5 and note in os.listxattr(layer):
                    os.removexattr(layer, note)
        body = {"image": self.chance.choice(names), "as": f"{self.registry.host}/pushed/app:{self.pushes}"}
        done = self.beside_a_kill(lambda: self.until_done("/images/push", body))
        if done is not None and done.status == 200:
            assert str(self.pushes) in self.registry.tags("pushed/app"), "what was answered is there"

    def snapshots(self):
        """A snapshot over a pulled image, to be pushed."""
        if self.snapshot or not (names := self.images.names()):
            return
        try:
            sandbox = self.api.create(image={"uri": names[0]}, entrypoint=["sleep", "600"])["id"]
            self.api.run(sandbox, "cat /bin/bash > /data/copy; cat /bin/ls > /etc/passwd")
            self.snapshot = of.make(self.api, sandbox)["id"]
            self.api.delete(sandbox)
        except (Closed, AssertionError):
            pass

    def volume(self):
        name = f"v{self.chance.randrange(3)}"

        def write():
            sandbox = self.api.create(volumes=[claim(name)])["id"]
            self.service.scope.remember(sandbox)
            word = str(self.chance.random())
            self.volumes[name] = self.volumes.get(name, set()) | {word}
            ran = self.api.run(sandbox, f"echo {word} > /data/new; sync /data/new; mv /data/new /data/word; head -c 4M /dev/urandom > /data/much")
            if ran.exit_code == 0:
                self.volumes[name] = {word}

        def remove():
            if self.api.call("DELETE", f"/volumes/{name}").status == 204:
                self.volumes.pop(name, None)
            else:
                self.volumes[name] = self.volumes.get(name, set()) | {None}

        self.beside_a_kill(write if self.chance.random() < 0.7 else remove)

    def pool(self):
        def make_it():
            body = {"name": "p", "template": pools.template(), "capacitySpec": pools.capacity(least=2, most=3, pool_max=6)}
            self.api.call("POST", "/pools", json=body)

        def claim_two():
            for _ in range(2):
                reply = pools.post_claim(self.api)
                if reply.status == 202:
                    self.claimed.append(reply.json["id"])

        def remove():
            self.api.call("DELETE", "/pools/p")

        self.beside_a_kill(self.chance.choices([make_it, claim_two, remove], [3, 5, 1])[0])

    # What must be true

    def check(self):
        here = self.api.list_all()
        assert len(set(self.claimed)) == len(self.claimed) and set(self.claimed) <= {one["id"] for one in here}, "a claim that was answered is lost"
        self.claimed.clear()
        for one in here:
            self.service.scope.remember(one["id"])
            # A create that failed at the kill may be removed by the recovery meanwhile; one that was answered may not.
            status = self.api.delete(one["id"]).status
            assert status == 204 or (status == 404 and one["status"]["state"] != "Running")
        index = json.loads((self.service.state_dir / "catalog/index.json").read_text()) if (self.service.state_dir / "catalog/index.json").exists() else {"images": []}
        layers = self.service.state_dir / "images/store/layers"
        for image in index["images"]:
            for layer in image["layers"]:
                assert (layers / layer).exists(), "an image lacks a layer"
        for layer in layers.iterdir() if layers.exists() else []:
            assert whole(layer, self.store.files[layer.name]), f"layer {layer.name} has a name and is not whole"
        for tag in self.registry.tags("pushed/app"):
            subprocess.run(["skopeo", "inspect", "--tls-verify=false", f"docker://{self.registry.host}/pushed/app:{tag}"], check=True, capture_output=True)
        listed = {item["name"] for item in self.api.call("GET", "/volumes").json["items"]}
        for name in listed:
            assert name in self.volumes, "a volume that nobody made"
            found = self.service.state_dir / "volumes/default" / name / "files/word"
            word = found.read_text().strip() if found.exists() else None
            assert word in self.volumes[name] or (word is None and len(self.volumes[name]) > 0), f"{name}: {word} of {self.volumes[name]}"

    def end(self):
        if self.api.call("GET", "/pools/p").status == 200:
            pools.delete(self.api)
        for item in self.api.call("GET", "/volumes").json["items"]:
            assert self.api.call("DELETE", f"/volumes/{item['name']}").status == 204
        if self.snapshot:
            assert self.api.call("DELETE", f"/snapshots/{self.snapshot}").status == 204
            wait_for(lambda: of.nothing_on_disk(self.service), 20, "the snapshot's layers go")
        wait_for(lambda: not keepers(self.service), 20, "every keeper ends")
        for name in self.images.names():
            assert self.images.run("rm", name).returncode == 0
        assert self.api.call("POST", "/images/prune").status == 200
        assert self.images.contents() == ([[], [], []], [])
        store = self.service.state_dir / "images/store"
        assert list((store / "blobs").iterdir()) == [] if (store / "blobs").exists() else True
        assert sum(path.stat().st_blocks * 512 for path in store.rglob("*") if path.is_file()) < 64 << 10, "the store has more than its lock"
        volumes = self.service.state_dir / "volumes"
        assert [path for path in volumes.rglob("*") if path.is_file() and path.stat().st_size > 64 << 10] == []


def test_random_kills(new_service, request):
    seed = int(os.environ.get("OSB_SEED", 0)) or random.randrange(1 << 32)
    print(f"seed {seed}")
    registry = DebianRegistry()
    request.addfinalizer(registry.close)
    service = new_service(registry={})
    turns = Turns(service, registry, seed)
    turns.begin()
    baseline = leaks.snapshot(service)
    kinds = {"pull": 5, "remove": 2, "prune": 1, "import_": 2, "push": 4, "snapshots": 1, "volume": 3, "pool": 4}
    done, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        kind = turns.chance.choices(list(kinds), list(kinds.values()))[0]
        try:
            getattr(turns, kind)()
            turns.check()
        except BaseException:
            print(f"turn {done}, {kind}, seed {seed}")
            raise
        done += 1
    assert done > 20, f"{done} turns are too few to mean anything"
    print(f"{done} turns, {turns.pushes} pushes")
    turns.end()
    leaks.assert_nothing_leaked(service, baseline)
