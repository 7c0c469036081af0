"""Pulling an image beside `skopeo copy` of it to a directory and `tar -x` of its layers, from a docker-registry on loopback."""

import hashlib
import http.client
import io
import json
import os
import platform
import random
import shutil
import subprocess
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from . import BenchError
from .service import free_port

LAYERS = 5
LAYER_BYTES = 40_000_000
FILE_BYTES = 100_000
TOOLS = ("docker-registry", "skopeo", "gzip", "tar")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
REPOSITORY = "bench/200m"


def layer(seed):
    """Files of which one half compresses well and the other not at all."""
    chance = random.Random(seed)
    words = [chance.randbytes(chance.randrange(2, 9)).hex() for _ in range(2000)]
    text = " ".join(chance.choices(words, k=40_000)).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(LAYER_BYTES // FILE_BYTES):
            info = tarfile.TarInfo(f"usr/layer{seed}/d{i % 20}/file{i}")
            info.size, info.mode, info.mtime = FILE_BYTES, 0o644, 1_600_000_000
            start = chance.randrange(len(text) - FILE_BYTES // 2)
            tar.addfile(info, io.BytesIO(chance.randbytes(FILE_BYTES // 2) + text[start : start + FILE_BYTES // 2]))
    return out.getvalue()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Registry:
    def __init__(self, directory):
        missing = [name for name in TOOLS if not shutil.which(name)]
        if missing:
            raise BenchError(f"not installed: {', '.join(missing)}")
        self.host = f"127.0.0.1:{free_port()}"
        config = os.path.join(directory, "registry.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
                       f"storage: {{filesystem: {{rootdirectory: {directory}/registry}}}}\nhttp: {{addr: {self.host}}}\n")
        self._process = subprocess.Popen(["docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 15
        while True:
            try:
                self._call("GET", "/v2/")
                break
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    self.close()
                    raise BenchError("docker-registry does not answer") from None
                time.sleep(0.02)

    def _call(self, method, target, body=None, content_type="application/octet-stream"):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, target, body, {"Content-Type": content_type})
            answer = connection.getresponse()
            answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise BenchError(f"docker-registry: {method} {target}: {answer.status}")
        return answer

    def _blob(self, data):
        place = self._call("POST", f"/v2/{REPOSITORY}/blobs/uploads/").headers["Location"].split(self.host, 1)[-1]
        self._call("PUT", place + ("&" if "?" in place else "?") + "digest=sha256:" + sha256(data), data)
        return {"digest": "sha256:" + sha256(data), "size": len(data)}

    def fill(self):
        """The name of an image of 200 MB in five gzip layers."""
        tars = [layer(seed) for seed in range(LAYERS)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            packed = list(pool.map(lambda data: subprocess.run(["gzip", "-1", "-n"], input=data, stdout=subprocess.PIPE, check=True).stdout, tars))
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
        config = json.dumps({"architecture": machine, "os": "linux", "config": {},
                             "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(data) for data in tars]}}).encode()
        layers = [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **self._blob(data)} for data in packed]
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "layers": layers,
                    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **self._blob(config)}}
        self._call("PUT", f"/v2/{REPOSITORY}/manifests/1", json.dumps(manifest).encode(), MANIFEST)
        return f"{self.host}/{REPOSITORY}:1"

    def close(self):
        self._process.kill()
        self._process.wait()


class Pulls:
    def __init__(self, load, service, bin_dir, parent):
        self._load = load
        self._service = service
        self._osb = os.path.join(bin_dir, "osb")
        self._directory = tempfile.mkdtemp(prefix="osb-bench-pulls-", dir=parent)
        self._registry = None
        self._count = 0
        try:
            self._registry = Registry(self._directory)
            self.name = self._registry.fill()
        except BaseException:
            self.close()
            raise

    def _by_hand(self):
        """What somebody does without us: the layers to a directory, then each of them unpacked over the ones before."""
        self._count += 1
        copy, root = (os.path.join(self._directory, f"{kind}{self._count}") for kind in ("copy", "root"))
        os.mkdir(root)
        script = ('set -e; skopeo copy -q --src-tls-verify=false "docker://$1" "dir:$2"; '
                  'for layer in $3; do tar -xf "$2/$layer" -C "$4"; done')
        digests = " ".join(self._layers())
        return self._load.program_time("exit", ["sh", "-c", script, "sh", self.name, copy, digests, root])

    def _layers(self):
        connection = http.client.HTTPConnection(self._registry.host, timeout=60)
        try:
            connection.request("GET", f"/v2/{REPOSITORY}/manifests/1", headers={"Accept": MANIFEST})
            manifest = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return [one["digest"].split(":")[1] for one in manifest["layers"]]

    def measure(self, results):
        results.add_round("skopeo.200m", [self._by_hand()])
        command = [self._osb, "images", "pull", self.name, "--quiet", "--server", f"127.0.0.1:{self._service.port}"]
        results.add_round("pull.200m", [self._load.program_time("exit", command)])
        self._service.call("DELETE", f"/v1/images?name={self.name}")

    def close(self):
        if self._registry is not None:
            self._registry.close()
        shutil.rmtree(self._directory, ignore_errors=True)
