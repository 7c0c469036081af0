"""The configuration as people write it: mistakes end the start with their place, and files of other OpenSandbox servers start."""

import os
import signal
import socket
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from lib import rawhttp
from lib.api import Api, assert_envelope
from lib.service import CANNOT_START
from lib.waiting import process_gone, wait_for

# What users of other OpenSandbox servers have on their disks, but for address, port and runtime.
OTHERS = """
[server]
host = "127.0.0.1"
port = PORT
timeout_keep_alive = 30
thread_pool_size = 200
loop = "auto"
http = "auto"
max_sandbox_timeout_seconds = 86400

[log]
level = "INFO"
file_enabled = false

[runtime]
type = "RUNTIME"
execd_image = "opensandbox/execd:v1.1.0"

[docker]
network_mode = "bridge"
api_timeout = 180
drop_capabilities = ["AUDIT_WRITE", "MKNOD", "NET_ADMIN"]
no_new_privileges = true
apparmor_profile = ""
pids_limit = 4096
seccomp_profile = ""
sandbox_env = { TZ = "UTC" }

[egress]
image = "opensandbox/egress:v1.1.7"
mode = "dns"

[ingress]
mode = "direct"

[storage]
allowed_host_paths = []

[store]
type = "sqlite"
path = "~/.opensandbox/opensandbox.db"

[renew_intent]
enabled = false
redis.enabled = false

[secure_runtime]
type = ""
"""


def is_open(address):
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(address) == 0


def unhealthy(service):
    reply = rawhttp.request(service.address, "GET", "/health", timeout=5)
    return reply if reply.status == 503 else None


def add(service, text):
    """From line 2 on: a section of its own, or below [server]."""
    before = service.config_path.read_text()
    assert before.startswith("[server]\n")
    below = text if not text.startswith("[") else ""
    service.config_path.write_text(f"[server]\n{below}\n{before[9:]}" if below else f"\n{text}\n{before}")


def others(service, runtime):
    text = OTHERS.replace("PORT", str(service.address[1])).replace("RUNTIME", runtime)
    service.config_path.write_text(text + f'\n[native]\nstate_dir = "{service.state_dir}"\n')


class TestMistakes:
    @pytest.mark.parametrize("text, said", [
        ('apikey = "secret"', ":2: unknown key `apikey` in [server]; did you mean `api_key`?"),
        ("[sever]", ":2: unknown section [sever]; did you mean [server]?"),
        ('[log]\nlevel = "verbose"', ":3: log.level: must be DEBUG, INFO, WARNING or ERROR"),
        ('[log]\nlevl = "INFO"', ":3: unknown key `levl` in [log]; did you mean `level`?"),
        ('[docker]\nnetwork_modus = "x"', ":3: unknown key `network_modus` in [docker]; did you mean `network_mode`?"),
        ("[tenants]", "tenants: this build has one key and no tenants"),
        ('[secure_runtime]\ntype = "kata"', ":3: secure_runtime.type: the native runtime boots no virtual machines"),
        ('[secure_runtime]\ntype = "gvisor"\nrunsc = "/nowhere/runsc"', ":4: secure_runtime.runsc: "),
    ])  # fmt: skip
    def test_names_and_values(self, new_service, text, said):
        service = new_service(start=False)
        add(service, text)
        assert service.ends() == CANNOT_START
        assert f"{service.config_path}" in service.log_tail() and said in service.log_tail(), service.log_tail()
        assert "secret" not in service.log_tail()
        assert not is_open(service.address) and not service.state_dir.exists(), "nothing was begun"

    def test_an_account_that_does_not_exist(self, new_service):
        service = new_service(start=False, native={"user": "nosuchuser"})
        assert service.ends() == CANNOT_START
        assert 'native.user: this host has no account "nosuchuser"' in service.log_tail()

    def test_an_image_without_its_directory(self, new_service):
        service = new_service(start=False, images={"python": "/no/such/directory"})
        assert service.ends() == CANNOT_START
        assert "native.images.python: /no/such/directory is not a directory" in service.log_tail()

    def test_osb_images_says_the_same(self, new_service, bin_dir):
        service = new_service(start=False)
        add(service, 'apikey = "x"')
        done = subprocess.run([bin_dir / "osb", "images", "ls", "--config", service.config_path], capture_output=True, text=True)
        assert done.returncode == 1 and "did you mean `api_key`?" in done.stderr, done


class TestFilesOfOtherServers:
    def test_with_docker_it_says_that_the_engine_is_away(self, new_service):
        service = new_service(start=False)
        others(service, "docker")
        text = service.config_path.read_text()
        service.config_path.write_text(text.replace("[docker]\n", '[docker]\nsocket = "/nonexistent/docker.sock"\n'))
        service.spawn()
        wait_for(lambda: is_open(service.address), 10, "the port is open")
        health = wait_for(lambda: unhealthy(service), 15, "the service answers, and is not healthy")
        assert b"the Docker engine does not answer" in health.body, health

    def test_with_kubernetes_it_says_what_to_change(self, new_service):
        service = new_service(start=False)
        others(service, "kubernetes")
        assert service.ends() == CANNOT_START
        said = service.log_tail()
        assert "runtime.type: this build has no kubernetes runtime" in said and 'write type = "native"' in said

    @pytest.mark.parametrize(("key", "cause"), [('host = "tcp://192.0.2.1:2375"', "without TLS"), ('seccomp_profile = "x"', "absolute path of a profile")])
    def test_what_the_docker_runtime_does_not_do_is_refused(self, new_service, key, cause):
        service = new_service(start=False)
        text = service.config_path.read_text().replace('"type" = "native"', '"type" = "docker"')
        service.config_path.write_text(f"{text}\n[docker]\n{key}\n")
        assert service.ends() == CANNOT_START
        assert cause in service.log_tail()

    def test_with_native_it_starts_with_a_warning_for_each_key(self, new_service):
        service = new_service(start=False)
        others(service, "native")
        service.start()
        api = Api(service)
        made = api.create(timeout=120)
        assert api.run(made["id"], "echo here").stdout == "here"
        assert api.delete(made["id"]).status == 204
        warned = [line for line in service.log_tail(200).splitlines() if "no effect here" in line]
        for key in ("server.loop", "runtime.execd_image", "docker.network_mode", "docker.sandbox_env", "egress.image"):
            assert sum(f" {key}: " in line or f": {key}: " in line for line in warned) == 1, (key, warned)
        assert all(" WARN " in line for line in warned) and len(warned) == 15, warned
        assert (service.state_dir / "db" / "opensandbox.db").exists()
        assert "store.path: this is where other OpenSandbox servers keep their database" in service.log_tail(200)
        service.kill_server()
        again = [line for line in service.log_tail(200).splitlines() if "no effect here" in line]
        assert again == warned, "a server that is started again does not repeat them"

    def test_an_unreachable_database_ends_the_start(self, new_service):
        """As ~/.opensandbox/... is for whoever keeps it elsewhere: in a home that the service's user cannot enter."""
        service = new_service(start=False)
        home = service.directory / "home"
        (home / ".opensandbox").mkdir(parents=True)
        home.chmod(0o700)
        with open(service.config_path, "a", encoding="utf-8") as file:
            file.write(f'\n[store]\npath = "{home}/.opensandbox/state.db"\n')
        assert service.ends() == CANNOT_START
        said = service.log_tail()
        assert "store.path: the user of the service" in said and "remove path" in said, said
        assert not is_open(service.address) and not service.state_dir.exists()

    def test_a_directory_that_is_not_there_ends_the_start(self, new_service):
        service = new_service(start=False)
        with open(service.config_path, "a", encoding="utf-8") as file:
            file.write(f'\n[store]\npath = "{service.directory}/missing/state.db"\n')
        assert service.ends() == CANNOT_START
        assert "does not exist" in service.log_tail() and "remove path" in service.log_tail()


class TestLogFile:
    def test_lines_go_there_and_it_turns_over(self, new_service):
        path = "logs/server.log"
        service = new_service(start=False, sections={"log": {"level": "DEBUG", "file_enabled": True, "file_path": f"~/{path}", "file_max_bytes": 1000, "file_backup_count": 2}})
        service.start()
        api = Api(service)
        file = home_of(service) / path
        names = [api.create()["id"] for _ in range(30)]
        assert "from here on the log is in a file" in service.log_tail()
        assert names[0] not in service.log_tail(500), "and not to standard error"
        wait_for(lambda: names[-1] in everything(file.parent), 5, "the last create is in the file")
        found = sorted(entry.name for entry in file.parent.iterdir())
        assert found == ["server.log", "server.log.1", "server.log.2"], found
        assert all(entry.stat().st_size <= 1000 for entry in file.parent.iterdir())
        text = (file.parent / "server.log.1").read_text()
        assert text.endswith("\n") and all(line[:4].isdigit() for line in text.splitlines()), "whole lines"
        assert service.stop() == 0
        wait_for(lambda: "stopped, sandboxes keep running" in everything(file.parent), 5, "the last line is kept")
        service.start()
        for name in names:
            assert api.delete(name).status == 204

    def test_the_writer_ends_with_the_service_and_not_before(self, new_service):
        service = new_service(start=False, sections={"log": {"file_enabled": True, "file_path": "~/server.log"}})
        service.start()
        name = Api(service).create()["id"]
        writers = [pid for pid in os.listdir("/proc") if pid.isdigit() and writes(pid, home_of(service) / "server.log")]
        assert len(writers) == 1
        assert len(os.listdir(f"/proc/{writers[0]}/fd")) == 5, "nothing of the service: the port, its sockets"
        os.kill(int(writers[0]), signal.SIGTERM)
        service.kill_both()
        wait_for(lambda: process_gone(int(writers[0])), 5, "the writer ends with the last process of the service")
        service.start()
        assert Api(service).delete(name).status == 204

    def test_without_its_writer_the_service_goes_on(self, new_service):
        service = new_service(start=False, sections={"log": {"file_enabled": True, "file_path": "~/server.log"}})
        service.start()
        (writer,) = [pid for pid in os.listdir("/proc") if pid.isdigit() and writes(pid, home_of(service) / "server.log")]
        os.kill(int(writer), signal.SIGKILL)
        wait_for(lambda: process_gone(int(writer)), 5, "it is gone")
        api = Api(service)
        server = service.server_pid()
        for _ in range(3):
            assert api.delete(api.create()["id"]).status == 204
        assert service.server_pid() == server and service.launcher_pid
        service.kill_server()
        assert api.delete(api.create()["id"]).status == 204
        assert service.stop() == 0

    def test_a_place_that_cannot_be_written_ends_the_start(self, new_service):
        service = new_service(start=False, sections={"log": {"file_enabled": True, "file_path": "/proc/none/server.log"}})
        assert service.ends() == CANNOT_START
        assert "log.file_path: " in service.log_tail() and "remove file_enabled" in service.log_tail()
        assert not is_open(service.address) and not service.state_dir.exists()


def home_of(service):
    return Path(service.env.get("HOME", service.directory))


def everything(directory):
    """Oldest first; a file may be turned over while it is looked at."""
    text = ""
    for name in ("server.log.2", "server.log.1", "server.log"):
        if (directory / name).exists():
            text += (directory / name).read_text()
    return text


def writes(pid, path):
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{fd}") == str(path) for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


class TestSandboxDefaults:
    def test_a_create_that_says_nothing_gets_the_default(self, new_service):
        api = Api(new_service(sections={"sandbox": {"timeout_seconds": 120, "max_lifetime": 600}}))
        for timeout in (..., None):
            made = api.create(timeout=timeout)
            assert 115 <= lasts(made) <= 125
            assert api.delete(made["id"]).status == 204
        made = api.create(timeout=300)
        assert 295 <= lasts(made) <= 305
        assert_envelope(api.post_create(timeout=601), 400, "SANDBOX::INVALID_PARAMETER")
        api.renew(made["id"], 500)
        late = api.call("POST", f"/sandboxes/{made['id']}/renew-expiration", json={"expiresAt": "2099-01-01T00:00:00Z"})
        assert "lives longer" in assert_envelope(late, 400, "SANDBOX::INVALID_EXPIRATION")["message"]
        assert api.delete(made["id"]).status == 204

    def test_the_longest_life_is_the_default_of_what_would_never_end(self, new_service):
        api = Api(new_service(sections={"sandbox": {"max_lifetime": 600}}))
        made = api.create(timeout=...)
        assert 595 <= lasts(made) <= 605
        assert api.delete(made["id"]).status == 204

    def test_what_cannot_hold_together_ends_the_start(self, new_service):
        service = new_service(start=False, sections={"sandbox": {"timeout_seconds": 601, "max_lifetime": 600}})
        assert service.ends() == CANNOT_START
        assert "sandbox.timeout_seconds: must be at most sandbox.max_lifetime" in service.log_tail()

    @pytest.mark.parametrize("wrong, words", [({"pool_size": -1}, "sandbox.pool_size: must be"), ({"pool_image": ""}, "sandbox.pool_image: must name an image")])
    def test_a_pool_that_cannot_be_ends_the_start(self, new_service, wrong, words):
        service = new_service(start=False, sections={"sandbox": wrong})
        assert service.ends() == CANNOT_START
        assert words in service.log_tail()


class TestVariables:
    @pytest.mark.parametrize("name, value", [("SANDBOX_POOL_SIZE", "many"), ("SANDBOX_CPU_QUOTA", "-5"), ("SANDBOX_MEMORY_LIMIT", "1G"), ("SANDBOX_ALLOW_NETWORK", "perhaps")])
    def test_one_that_cannot_be_read_ends_the_start(self, new_service, name, value):
        service = new_service(start=False, env={name: value})
        assert service.ends() == CANNOT_START
        assert f"environment: {name}: must be" in service.log_tail() and "unset it" in service.log_tail()
        assert not is_open(service.address) and not service.state_dir.exists()

    @pytest.mark.parametrize("file, answer", [(None, False), (True, True), (False, False)])
    def test_the_file_wins(self, new_service, file, answer):
        sections = {} if file is None else {"sandbox": {"allow_network": file}}
        api = Api(new_service(env={"SANDBOX_ALLOW_NETWORK": "off"}, sections=sections))
        made = api.create()
        policy = api.call("GET", f"/sandboxes/{made['id']}/networkpolicy")
        has = policy.status == 200 and policy.json["policy"].get("defaultAction") == "allow"
        assert has == answer, policy
        assert api.delete(made["id"]).status == 204

    def test_what_only_other_servers_read_is_warned_of_without_its_value(self, new_service):
        service = new_service(env={"OPENSANDBOX_STORE_POSTGRESQL_DSN": "postgresql://user:secret-x@db.example/d"})
        assert "environment: OPENSANDBOX_STORE_POSTGRESQL_DSN: other OpenSandbox servers know it" in service.log_tail(200)
        assert "secret-x" not in service.log_tail(200)

    def test_where_the_file_is(self, new_service):
        service = new_service(start=False, env={"SANDBOX_CONFIG_PATH": "/no/such/file.toml"})
        service.command = lambda: [service.bin_dir / "opensandbox-server"]
        assert service.ends() == CANNOT_START
        assert "/no/such/file.toml does not exist" in service.log_tail() and "init-config" in service.log_tail()


def lasts(made):
    created, expires = (datetime.fromisoformat(made[name].replace("Z", "+00:00")) for name in ("createdAt", "expiresAt"))
    return (expires - created).total_seconds()


def test_renewal_on_access_is_refused(api):
    reply = api.post_create(extensions={"access.renew.extend.seconds": "600"})
    assert (reply.status, reply.json["code"]) == (400, "SANDBOX::UNSUPPORTED"), reply
    assert "access.renew.extend.seconds" in reply.json["message"] and "renew-expiration" in reply.json["remedy"]


class TestSignals:
    def test_a_clean_stop_is_no_error(self, new_service):
        service = new_service()
        api = Api(service)
        name = api.create()["id"]
        assert service.stop() == 0
        assert "stopped, sandboxes keep running" in service.log_tail()
        assert " ERROR " not in service.log_tail(), service.log_tail()
        assert "starting it again" not in service.log_tail(), service.log_tail()
        service.start()
        assert api.delete(name).status == 204

    def test_a_hangup_changes_nothing_and_says_so(self, new_service):
        service = new_service()
        server = service.server_pid()
        # As a terminal that goes away tells both.
        os.kill(server, signal.SIGHUP)
        os.kill(service.launcher_pid, signal.SIGHUP)
        wait_for(lambda: "SIGHUP: going on" in service.log_tail(), 5, "the log says what a hangup means")
        assert service.is_healthy() and service.server_pid() == server
        assert service.stop() == 0
        assert process_gone(server)


class TestCommandLine:
    def osb(self, bin_dir, *words, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
        return subprocess.run([bin_dir / "osb", *words], capture_output=True, text=True, env=environment)

    def test_version(self, bin_dir):
        done = subprocess.run([bin_dir / "opensandbox-server", "--version"], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith("opensandbox-server, version "), done

    @pytest.mark.parametrize("kind", ["", "native", "docker", "docker-zh", "k8s", "k8s-zh"])
    def test_every_example_starts_the_service(self, new_service, bin_dir, kind):
        service = new_service(start=False)
        words = ["init-config", service.directory / "made" / "config.toml", *(["--example", kind] if kind else [])]
        done = subprocess.run([bin_dir / "opensandbox-server", *words], capture_output=True, text=True, env={"HOME": str(service.directory)})
        assert (done.returncode, done.stdout) == (0, f"{words[1]}\n"), done
        text = words[1].read_text(encoding="utf-8")
        for old, new in (('host = "0.0.0.0"', 'host = "127.0.0.1"'), ("# port = 8080", "port = 8080"), ("port = 8080", f"port = {service.address[1]}")):
            text = text.replace(old, new)
        if kind == "native":
            text = text.replace('state_dir = "/var/lib/opensandbox"', f'state_dir = "{service.state_dir}"')
        elif kind == "":
            text = text.replace('# state_dir = "/var/lib/opensandbox"', f'state_dir = "{service.state_dir}"')
        else:
            text += f'\n[native]\nstate_dir = "{service.state_dir}"\n'
        service.config_path.write_text(text, encoding="utf-8")
        service.start()
        fell_back = "the native runtime serves instead of the configured one" in service.log_tail(200)
        assert fell_back == (kind not in ("", "native")), service.log_tail(200)
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text) == kind.endswith("-zh")

    def test_an_example_is_not_overwritten(self, bin_dir, tmp_path):
        def init(*words):
            return subprocess.run([bin_dir / "opensandbox-server", "init-config", tmp_path / "c.toml", *words], capture_output=True, text=True)

        assert init().returncode == 0
        before = (tmp_path / "c.toml").read_text()
        done = init("--example", "docker")
        assert done.returncode == 1 and "exists already" in done.stdout and (tmp_path / "c.toml").read_text() == before
        assert init("--example", "docker", "--force").returncode == 0 and (tmp_path / "c.toml").read_text() != before
        assert init("--example", "podman").returncode == 2

    def test_what_only_other_servers_do_is_said_in_words(self, bin_dir):
        words = ["migrate-snapshots", "--to", "postgresql://db.example/d", "--dry-run"]
        done = subprocess.run([bin_dir / "opensandbox-server", *words], capture_output=True, text=True)
        assert done.returncode == 2 and "SQLite only" in done.stderr, done

    def test_a_wrong_key_is_told_in_words_of_the_command_line(self, keyed_service, bin_dir):
        for key in ("", "wrong"):
            done = self.osb(bin_dir, "ls", OPEN_SANDBOX_DOMAIN="%s:%d" % keyed_service.address, OPEN_SANDBOX_API_KEY=key)
            assert done.returncode == 1
            assert "--api-key" in done.stderr and "OPEN_SANDBOX_API_KEY" in done.stderr, done.stderr
            assert "header" not in done.stderr and "server.api_key" not in done.stderr, done.stderr

    @pytest.mark.parametrize("key, word", [("", "no"), ("wrong", "no"), (None, "ok")])
    def test_doctor_tries_the_key(self, keyed_service, bin_dir, key, word):
        key = keyed_service.api_key if key is None else key
        done = self.osb(bin_dir, "doctor", OPEN_SANDBOX_DOMAIN="%s:%d" % keyed_service.address, OPEN_SANDBOX_API_KEY=key)
        line = next(line for line in done.stdout.splitlines() if line.split()[1] == "server")
        assert line.split()[0] == word, line
        assert word == "ok" or "OPEN_SANDBOX_API_KEY" in line

    def test_doctor_says_what_is_not_there(self, service, bin_dir):
        said = self.osb(bin_dir, "doctor", OPEN_SANDBOX_DOMAIN="%s:%d" % service.address).stdout
        for part in ("templates", "vaults", "GPUs"):
            assert part in said, (part, said)

    def test_an_empty_directory_is_no_image(self, service, bin_dir, tmp_path):
        (tmp_path / "empty").mkdir()
        done = self.osb(bin_dir, "images", "import", tmp_path / "empty", "--name", "empty", "--config", service.config_path)
        assert done.returncode == 1 and "the directory is empty" in done.stderr, done
        assert "empty" not in self.osb(bin_dir, "images", "ls", "--config", service.config_path).stdout

    def test_images_lists_host_and_says_whose_they_are(self, service, bin_dir):
        done = self.osb(bin_dir, "images", "ls", "--config", service.config_path)
        assert done.returncode == 0 and done.stderr == "", done
        assert any(line.split()[0] == "host" for line in done.stdout.splitlines()), done.stdout
        done = self.osb(bin_dir, "images", "ls", "--config", service.config_path, OPEN_SANDBOX_DOMAIN="elsewhere.example:8080")
        assert str(service.state_dir) in done.stderr and "elsewhere.example:8080" in done.stderr, done

    def test_what_is_kept_says_that_it_never_expires(self, service, api, bin_dir):
        done = self.osb(bin_dir, "run", "--keep", "host", "--", "true", OPEN_SANDBOX_DOMAIN="%s:%d" % service.address)
        assert done.returncode == 0 and "never expires" in done.stderr, done
        name = done.stderr.split()[2]
        assert f"osb rm {name}" in done.stderr and api.get(name).get("expiresAt") is None
        assert api.delete(name).status == 204

    def test_a_wrong_state_directory_is_no_empty_table(self, bin_dir, tmp_path):
        for place in (tmp_path, tmp_path / "missing"):
            done = self.osb(bin_dir, "images", "ls", "--state-dir", place)
            assert done.returncode == 1 and "is not the state directory of a service" in done.stderr, done
