"""Certificates for an engine behind TLS, and a service that speaks to it. Both are in the engine's network: its loopback is nobody else's."""

import os
import subprocess
from contextlib import contextmanager

from . import dockerd
from .service import Service

PORT = 2376


def openssl(directory, *words):
    subprocess.run(["openssl", *map(str, words)], cwd=directory, check=True, capture_output=True)


class Certificates:
    """An authority, an engine's certificate for 127.0.0.1, and a client's; `days` may be over already."""

    def __init__(self, directory, days=2, address="127.0.0.1"):
        directory.mkdir()
        directory.chmod(0o700)  # root's alone: the server is not root
        self.directory = directory
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl(directory, "req", "-x509", *key, "-days", 2, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
        for name, extension in (("engine", f"subjectAltName=IP:{address}"), ("client", "extendedKeyUsage=clientAuth")):
            (directory / "extension").write_text(extension + "\n")
            openssl(directory, "req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", days,
                    "-extfile", "extension", "-out", f"{name}.pem")  # fmt: skip
        # As Docker's client has them, for DOCKER_CERT_PATH.
        os.link(directory / "client.pem", directory / "cert.pem")
        os.link(directory / "client.key", directory / "key.pem")

    def engine_options(self, address="127.0.0.1"):
        at = self.directory
        return ("-H", f"tcp://{address}:{PORT}", "--tlsverify", "--tlscacert", str(at / "ca.pem"), "--tlscert", str(at / "engine.pem"), "--tlskey", str(at / "engine.key"))

    def keys(self):
        """Of [docker]."""
        at = self.directory
        return {"tls_ca": str(at / "ca.pem"), "tls_cert": str(at / "client.pem"), "tls_key": str(at / "client.key")}


@contextmanager
def service(bin_dir, docker, env=None, sections=None):
    made = Service(bin_dir, sections={"runtime": {"type": "docker"}, "docker": docker, **(sections or {})}, registry={"pull_policy": "never"}, env=env)
    try:
        yield made
    finally:
        made.destroy()


@contextmanager
def engine(directory, **certificates):
    """One behind TLS, with its certificates."""
    made = Certificates(directory, **certificates)
    with dockerd.engine(*made.engine_options()) as running:
        yield running, made
