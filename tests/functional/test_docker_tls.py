"""An engine behind TCP and TLS: a whole life through it, and every way in which the two do not get together."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from lib import engine_tls, rawhttp
from lib.api import Api
from lib.dockerd import IMAGE, SLEEPER, create, handles, ours, state
from lib.waiting import wait_for


@pytest.fixture(scope="module")
def place():
    made = Path(tempfile.mkdtemp(prefix="osb-tls-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def secured(place):
    """The engine and its certificates; the tests of this file are in its network."""
    with engine_tls.engine(place / "right") as (engine, certificates), engine.network():
        yield engine, certificates


def address(port=engine_tls.PORT, host="127.0.0.1"):
    return {"host": f"tcp://{host}:{port}"}


def test_a_life_through_tls(bin_dir, secured):
    engine, certificates = secured
    with engine_tls.service(bin_dir, {**address(), **certificates.keys()}) as service:
        api = Api(service.start())
        groups = Path(f"/proc/{service.server_pid()}/status").read_text()
        assert "64123" not in groups, "the socket's group is not given away where TLS is spoken"
        sandbox = create(api, env={"GIVEN": "here"})
        assert api.run(sandbox, "echo hello $GIVEN").stdout == "hello here"
        assert api.call("POST", f"/sandboxes/{sandbox}/pause").status == 202
        state(api, sandbox, "Paused")
        assert api.call("POST", f"/sandboxes/{sandbox}/resume").status == 202
        state(api, sandbox, "Running")
        service.kill_server()
        assert api.run(sandbox, "echo on").stdout == "on"
        ended = create(api, entrypoint=["sh", "-c", "sleep 1; exit 3"])
        assert "code 3" in state(api, ended, "Failed")["message"]
        for one in (sandbox, ended):
            assert api.delete(one).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")
        wait_for(lambda: not handles(service), 10, "no directory is left")


def test_the_variables_of_dockers_client(bin_dir, secured):
    engine, certificates = secured
    env = {"DOCKER_HOST": address()["host"], "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(certificates.directory)}
    with engine_tls.service(bin_dir, {}, env=env) as service:
        api = Api(service.start())
        sandbox = create(api)
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.delete(sandbox).status == 204
        wait_for(lambda: not ours(engine), 20, "no container is left")


def test_doctor_asks_through_tls(bin_dir, secured, place):
    """With the files that are named, or those of Docker's own client; what is wrong with them is said."""
    _, certificates = secured
    config = place / "config.toml"

    def line(docker, **environment):
        keys = "".join(f'{key} = "{value}"\n' for key, value in docker.items())
        config.write_text(f'[runtime]\ntype = "docker"\n[docker]\n{keys}')
        done = subprocess.run([bin_dir / "osb", "doctor", "--config", config], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "OPEN_SANDBOX_DOMAIN": "127.0.0.1:1", **environment})
        return next(one for one in done.stdout.splitlines() if one[9:].startswith("Docker engine "))

    found = line({**address(), **certificates.keys()})
    assert found.startswith("ok ") and "with TLS" in found, found
    found = line({}, DOCKER_HOST=address()["host"], DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(certificates.directory))
    assert found.startswith("ok ") and "with TLS" in found, found
    found = line({**address(), **certificates.keys(), "tls_key": "/nonexistent/key.pem"})
    assert found.startswith("MISSING") and "docker.tls_key" in found and "; fix: " in found, found
    found = line({**address(), "tls_ca": certificates.keys()["tls_ca"]})
    assert found.startswith("MISSING") and "certificate" in found, found


def refused(bin_dir, docker):
    """The cause in /health of a service that cannot use its engine, which takes no time; creates say it, too."""
    with engine_tls.service(bin_dir, docker) as service:
        service.spawn()
        began = time.monotonic()
        health = wait_for(lambda: answer(service), 20, "the service answers")
        assert health.status == 503, health
        create = Api(service).post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
        assert create.status == 503, create
        assert time.monotonic() - began < 20, "nothing hangs"
        (check,) = [one for one in health.json["checks"] if "engine" in one["cause"]]
        return check["cause"]


def answer(service):
    try:
        return rawhttp.request(service.address, "GET", "/health", timeout=10)
    except (OSError, rawhttp.Closed):
        return None


def test_an_authority_that_did_not_sign(bin_dir, secured, place):
    _, certificates = secured
    other = engine_tls.Certificates(place / "other")
    cause = refused(bin_dir, {**address(), **certificates.keys(), "tls_ca": other.keys()["tls_ca"]})
    assert "the certificate is not accepted" in cause and "docker.tls_ca" in cause, cause


def test_a_name_that_the_certificate_does_not_have(bin_dir, secured):
    _, certificates = secured
    cause = refused(bin_dir, {**address(host="localhost"), **certificates.keys()})
    assert "hostname mismatch" in cause and "docker.host" in cause, cause


def test_no_certificate_of_ours(bin_dir, secured):
    _, certificates = secured
    cause = refused(bin_dir, {**address(), "tls_ca": certificates.keys()["tls_ca"]})
    assert "does not accept this server's certificate" in cause and "docker.tls_cert" in cause, cause


def test_a_certificate_of_another_authority(bin_dir, secured, place):
    _, certificates = secured
    other = engine_tls.Certificates(place / "foreign")
    cause = refused(bin_dir, {**address(), **other.keys(), "tls_ca": certificates.keys()["tls_ca"]})
    assert "does not accept this server's certificate" in cause, cause


def test_in_the_clear_to_a_port_with_tls(bin_dir, secured):
    cause = refused(bin_dir, address())
    assert "it speaks TLS at this address" in cause and "docker.tls_ca" in cause, cause


def test_a_file_that_is_missing(bin_dir, secured):
    _, certificates = secured
    with engine_tls.service(bin_dir, {**address(), **certificates.keys(), "tls_key": "/nonexistent/key.pem"}) as service:
        assert service.ends() == 78
        assert "docker.tls_key" in service.log_tail(), service.log_tail()


def test_a_key_of_another_certificate(bin_dir, secured):
    _, certificates = secured
    keys = {**certificates.keys(), "tls_key": str(certificates.directory / "engine.key")}
    with engine_tls.service(bin_dir, {**address(), **keys}) as service:
        assert service.ends() == 78
        assert "the key of the client certificate" in service.log_tail(), service.log_tail()


def test_certificates_that_are_over(bin_dir, place):
    """The engine's: this server says so."""
    with engine_tls.engine(place / "over", days=-1) as (engine, certificates), engine.network():
        cause = refused(bin_dir, {**address(), **certificates.keys()})
        assert "certificate has expired" in cause, cause


def test_kill_of_the_engine_and_its_return(bin_dir, place):
    with engine_tls.engine(place / "killed") as (engine, certificates), engine.network():
        with engine_tls.service(bin_dir, {**address(), **certificates.keys()}) as service:
            api = Api(service.start())
            sandbox = create(api)
            engine.kill()
            assert api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER).status == 503
            wait_for(lambda: not service.is_healthy(), 10, "the health check says so")
            assert api.run(sandbox, "echo on").stdout == "on", "its container needs no engine to be reached"
            engine.start()  # which ends the containers of the one before
            wait_for(service.is_healthy, 30, "the service is healthy again")
            # Terminated by its signal, or killed when that came to nothing.
            wait_for(lambda: api.status(sandbox)["state"] in ("Terminated", "Failed"), 40, "it has ended")
            assert api.status(sandbox)["reason"] != "LOST"
            again = create(api)
            assert api.run(again, "echo on").stdout == "on"
            for one in (sandbox, again):
                assert api.delete(one).status == 204
            wait_for(lambda: not ours(engine), 20, "no container is left")


def test_an_engine_with_other_files(bin_dir, secured):
    """It sees another directory where the state is, and was said to see this one: the create says so at once."""
    engine, certificates = secured
    with engine_tls.service(bin_dir, {**address(), **certificates.keys(), "remote": False}) as service:
        api = Api(service.start())
        hide = ["mount", "-t", "tmpfs", "tmpfs", str(service.directory)]
        engine.run_inside(*hide)
        try:
            reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER)
            assert reply.status == 500 and "does not see the files of this host" in reply.json["message"], reply
            assert not ours(engine)
        finally:
            engine.run_inside("umount", str(service.directory))


def test_an_engine_that_turns_out_to_have_other_files(bin_dir, secured):
    """Where nobody has said what it sees, it is used as one on another host from then on, by this server and by the next."""
    engine, certificates = secured
    with engine_tls.service(bin_dir, {**address(), **certificates.keys()}, sections={"storage": {"allowed_host_paths": ["/srv"]}}) as service:
        api = Api(service.start())
        engine.run_inside("mount", "-t", "tmpfs", "tmpfs", str(service.directory))
        try:
            policed = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, networkPolicy={"defaultAction": "deny"})
            assert policed.status == 400 and "egress.image" in policed.json["message"], policed
            sandbox = api.create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[{"name": "v", "mountPath": "/v", "pvc": {"claimName": "kept", "deleteOnSandboxTermination": True}}])["id"]
            assert api.run(sandbox, "echo on").stdout == "on"
            assert service.log_tail().count("does not see the files of this service") == 1, service.log_tail()
            host = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[{"name": "v", "host": {"path": "/srv"}, "mountPath": "/v"}])
            assert host.status == 400 and "another host" in host.json["message"], host
            service.restart()
            again = api.create(image={"uri": IMAGE}, entrypoint=SLEEPER)["id"]
            wait_for(lambda: api.run(sandbox, "echo on").stdout == api.run(again, "echo on").stdout == "on", 20, "both are there")
            for one in (sandbox, again):
                assert api.delete(one).status == 204
            wait_for(lambda: not ours(engine), 20, "no container is left")
        finally:
            engine.run_inside("umount", str(service.directory))
            engine.docker("volume", "rm", *[name for name in engine.volumes() if name.startswith("opensandbox-execd-")], check=False)
