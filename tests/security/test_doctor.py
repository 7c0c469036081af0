"""`osb doctor --attack` is the same set of probes for an operator: one line each, status 0 when all are refused."""

import subprocess

import probes
from lib.api import Api
from test_probes import MAY_BE_NOT_APPLICABLE


def doctor(bin_dir, service, *more):
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "OPEN_SANDBOX_DOMAIN": f"{service.address[0]}:{service.address[1]}",
        "OPEN_SANDBOX_API_KEY": service.api_key,
    }
    return subprocess.run(
        [bin_dir / "osb", "doctor", "--attack", *more], env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_attack(bin_dir, keyed_service):
    done = doctor(bin_dir, keyed_service)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for name in probes.names():
        about = [line for line in lines if name in line.split()[:2]]
        assert len(about) == 1, f"{name}: {about}"
        # Nothing is left out: doctor has a target for whatever needs one.
        assert about[0].split()[0] == "refused" or name in MAY_BE_NOT_APPLICABLE, about[0]


def test_attack_leaves_no_sandbox(bin_dir, keyed_service):
    before = {item["id"] for item in Api(keyed_service).list_all()}
    doctor(bin_dir, keyed_service)
    assert {item["id"] for item in Api(keyed_service).list_all()} == before


def test_attack_without_a_server(bin_dir, keyed_service):
    """No server is no pass."""
    done = subprocess.run(
        [bin_dir / "osb", "doctor", "--attack"], capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "OPEN_SANDBOX_DOMAIN": "127.0.0.1:9"},
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.strip(), "it says why"
