"""Start and stop of the service: who may listen where, what a broken configuration says, who runs as whom."""

import os
import socket
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api
from lib.service import CANNOT_START
from lib.waiting import wait_for


def rewrite(service, old, new):
    text = service.config_path.read_text()
    assert old in text
    service.config_path.write_text(text.replace(old, new))


class TestGuard:
    def test_no_key_and_every_address_is_refused(self, new_service):
        service = new_service(start=False, server={"host": "0.0.0.0"})
        assert service.ends() == CANNOT_START
        assert "key" in service.log_tail().lower()
        assert not service.state_dir.exists() or not any(service.state_dir.iterdir()), "refused before anything is made"

    def test_it_can_be_acknowledged(self, new_service):
        service = new_service(start=False, server={"host": "0.0.0.0"}, env={"OPENSANDBOX_INSECURE_SERVER": "YES"})
        service.start()
        assert service.is_healthy()

    @pytest.mark.parametrize("word", ["yes", "1", "true", ""])
    def test_only_by_the_exact_word(self, new_service, word):
        assert new_service(start=False, server={"host": "0.0.0.0"}, env={"OPENSANDBOX_INSECURE_SERVER": word}).ends() == CANNOT_START

    def test_a_key_opens_every_address(self, new_service):
        new_service(start=False, server={"host": "0.0.0.0"}, api_key="k").start()

    def test_blank_key_is_no_key(self, new_service):
        assert new_service(start=False, server={"host": "0.0.0.0"}, api_key="   ").ends() == CANNOT_START


class TestConfiguration:
    @pytest.mark.parametrize(
        "old, new",
        [
            ("[server]", "[server"),
            ('"port" = ', '"port" = 99999 # '),
            ('"port" = ', '"port" = "x" # '),
            ('"type" = "native"', '"type" = "vmware"'),
            ('"state_dir" = ', '"state_dir" = "relative/path" # '),
            ("[server]", "[server]\nmax_sandbox_timeout_seconds = 59"),
        ],
    )
    def test_broken(self, new_service, old, new):
        service = new_service(start=False)
        rewrite(service, old, new)
        assert service.ends() == CANNOT_START
        assert service.log_tail().strip(), "a refusal has to say why"

    def test_maximum_timeout(self, new_service):
        api = Api(new_service(server={"max_sandbox_timeout_seconds": 120}))
        reply = api.post_create(timeout=121)
        assert (reply.status, reply.json["code"]) == (400, "SANDBOX::INVALID_PARAMETER")
        made = api.create(timeout=120)
        assert api.delete(made["id"]).status == 204

    def test_public_address_replaces_the_host_part(self, new_service):
        api = Api(new_service(server={"eip": "https://sandboxes.example/base/"}))
        made = api.create()
        found = api.call("GET", f"/sandboxes/{made['id']}/endpoints/8080").json["endpoint"]
        assert found.startswith("sandboxes.example/base") and found.endswith(f"/sandboxes/{made['id']}/proxy/8080")
        api.delete(made["id"])

    def test_state_that_the_server_cannot_reach(self, new_service):
        service = new_service(start=False)
        service.directory.chmod(0o700)
        assert service.ends() == 1
        assert "state_dir" in service.log_tail() and "chmod" in service.log_tail()

    def test_taken_port(self, new_service):
        service = new_service(start=False)
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a connection of another suite may have had it a moment ago
            other.bind(service.address)
            other.listen()
            assert service.ends() not in (0, None)
        assert str(service.address[1]) in service.log_tail()


class TestProcesses:
    def test_server_is_not_root_and_holds_no_capability(self, service):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{service.server_pid()}/status").read_text().splitlines())
        assert "0" not in status["Uid"].split(), status["Uid"]
        assert "0" not in status["Gid"].split(), status["Gid"]
        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            assert int(status[kind], 16) == 0, (kind, status[kind])
        assert status["NoNewPrivs"].strip() == "1"

    def test_launcher_is_single_threaded(self, service):
        assert len(os.listdir(f"/proc/{service.launcher_pid}/task")) == 1

    def test_configuration_with_the_key_is_not_readable_from_a_sandbox(self, service, api, sandbox):
        assert api.run(sandbox, f"cat {service.config_path}").exit_code != 0
        assert api.run(sandbox, f"ls {service.state_dir}").exit_code != 0


class TestStop:
    def test_term_ends_quickly_and_sandboxes_live_on(self, new_service):
        service = new_service()
        api = Api(service)
        made = api.create()
        init = service.scope.sandbox_pids(made["id"])[0]
        assert service.stop() in (0, -15)
        assert Path(f"/proc/{init}").exists()
        with pytest.raises(OSError):
            rawhttp.request(service.address, "GET", "/health", timeout=2)
        service.start()
        assert api.status(made["id"])["state"] == "Running"
        assert service.scope.sandbox_pids(made["id"])[0] == init
        assert api.run(made["id"], "echo back").stdout == "back"
        assert api.delete(made["id"]).status == 204
        wait_for(lambda: not Path(f"/proc/{init}").exists(), 5, "the sandbox's init is gone after delete")

    def test_restart_does_not_lose_the_port_to_its_own_old_connections(self, new_service):
        service = new_service()
        with rawhttp.Connection(service.address) as held:
            held.send_request("GET", "/health")
            assert held.read_response().status == 200
            service.restart()
        assert service.is_healthy()
