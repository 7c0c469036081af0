"""osb and servers elsewhere: TLS with the system's or one's own authority, a name that is checked, and contexts."""

import hashlib
import json
import os
import pty
import select
import socket
import subprocess

import pytest
from lib.api import Api
from lib.tls_front import TlsFront
from lib.venvs import ensure_venv

pytestmark = pytest.mark.skipif(not os.path.exists("/usr/sbin/nginx"), reason="no nginx here")


@pytest.fixture(scope="module")
def api(keyed_service):
    return Api(keyed_service)


@pytest.fixture(scope="module")
def front(api, tmp_path_factory):
    made = TlsFront(tmp_path_factory.mktemp("front"), "%s:%d" % api.address)
    yield made
    made.close()


@pytest.fixture(scope="module")
def made(api):
    name = api.create(metadata={"name": "far"})["id"]
    yield name
    api.delete(name)


class Person:
    """Somebody with a home, and no server near."""

    def __init__(self, bin_dir, home):
        self.program, self.home = bin_dir / "osb", home
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "OPEN_SANDBOX_START_SERVER": "0"}

    def start(self, *words, env={}, **more):
        return subprocess.Popen([self.program, *map(str, words)], env={**self.environment, **env}, **more)

    def osb(self, *words, env={}, input=b"", status=0):
        process = self.start(*words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(input, 60)
        assert process.returncode == status, (words, process.returncode, out, err)
        return out if status == 0 else err.decode()

    def json(self, *words, **more):
        return json.loads(self.osb(*words, "-o", "json", **more))


@pytest.fixture
def person(bin_dir, tmp_path):
    return Person(bin_dir, tmp_path)


@pytest.fixture
def far(person, front, api):
    """The same with a context for the server behind TLS, in use."""
    person.osb("context", "add", "far", f"https://localhost:{front.port}", "--api-key", "-", "--ca-file", front.ca, "--use", input=api.key.encode() + b"\n")
    return person


class TestTrust:
    def test_an_unknown_authority_is_refused(self, person, front):
        said = person.osb("--domain", f"https://localhost:{front.port}", "ls", status=1)
        assert "SERVER::UNTRUSTED" in said and "--ca-file" in said and "certificate" in said

    def test_ones_own_authority(self, person, front, api, made):
        words = ["--domain", f"localhost:{front.port}", "--protocol", "https", "--ca-file", front.ca, "--api-key", api.key]
        assert made in person.osb(*words, "ls", "-q").decode().split()

    def test_the_systems_trust_store(self, person, front, api, made):
        environment = {"SSL_CERT_FILE": str(front.ca), "OPEN_SANDBOX_DOMAIN": f"https://localhost:{front.port}", "OPEN_SANDBOX_API_KEY": api.key}
        assert made in person.osb("ls", "-q", env=environment).decode().split()

    def test_a_certificate_for_another_host(self, person, front, api):
        """The address is the same; the name that was asked for is not in the certificate."""
        said = person.osb("--domain", f"https://127.0.0.1:{front.port}", "--ca-file", front.ca, "--api-key", api.key, "ls", status=1)
        assert "SERVER::UNTRUSTED" in said and "mismatch" in said

    def test_what_speaks_no_tls(self, person, api, front):
        assert "SERVER::UNTRUSTED" in person.osb("--domain", "https://%s:%d" % api.address, "ls", status=1)
        assert person.osb("--domain", f"http://localhost:{front.port}", "--api-key", api.key, "ls", status=1)

    def test_one_that_says_nothing(self, person):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            said = person.osb("--domain", "https://127.0.0.1:%d" % silent.getsockname()[1], "ls", status=1)
        assert "SERVER::UNTRUSTED" in said and "no answer within" in said

    def test_a_server_that_asks_who_we_are(self, person, front, api, made):
        words = ["--domain", f"https://localhost:{front.asking}", "--ca-file", front.ca, "--api-key", api.key]
        person.osb(*words, "ls", status=1)
        assert made in person.osb(*words, "--client-cert", front.certificate, "--client-key", front.key, "ls", "-q").decode().split()
        said = person.osb(*words, "--client-cert", front.certificate, "--client-key", front.ca, "ls", status=1)
        assert "key of the client certificate" in said
        assert "go together" in person.osb(*words, "--client-cert", front.certificate, "ls", status=1)


class TestOverTls:
    def test_run_with_bytes_both_ways(self, far):
        given = os.urandom(20 << 20)
        assert far.osb("run", "-i", "host", "--", "sha256sum", input=given).split()[0].decode() == hashlib.sha256(given).hexdigest()
        assert far.osb("run", "-i", "host", "--", "cat", input=given) == given

    def test_exec_and_its_status(self, far, made):
        far.osb("exec", "far", "--", "sh", "-c", "exit 7", status=7)

    def test_copy(self, far, made, tmp_path):
        (tmp_path / "given").write_bytes(os.urandom(1 << 20))
        far.osb("cp", tmp_path / "given", f"{made}:/tmp/there")
        far.osb("cp", f"{made}:/tmp/there", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / "given").read_bytes()

    def test_a_shell(self, far, made):
        ours, theirs = pty.openpty()
        process = far.start("shell", made, env={"TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        os.write(ours, b"echo $((40+2)) from afar; exit 5\r")
        seen = b""
        while process.poll() is None or select.select([ours], [], [], 0.2)[0]:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    seen += os.read(ours, 4096)
                except OSError:
                    break
        os.close(ours)
        assert process.wait(20) == 5 and b"42 from afar" in seen, seen

    def test_forward(self, far, made):
        serve = "import socket; s = socket.create_server(('127.0.0.1', 7777)); print('listens', flush=True); c, _ = s.accept(); d = c.recv(100); c.sendall(d.upper()); c.close()"
        inside = far.start("exec", made, "--", "python3", "-c", serve, stdout=subprocess.PIPE)
        process = far.start("forward", f"0:{made}:7777", stdout=subprocess.PIPE)
        try:
            port = int(process.stdout.readline().split()[0].rpartition(b":")[2])
            assert inside.stdout.readline() == b"listens\n"
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.sendall(b"through tls")
                assert client.recv(100) == b"THROUGH TLS"
            assert inside.wait(20) == 0
        finally:
            process.terminate()
            process.wait(10)
            inside.poll() is None and inside.kill()
            inside.wait(10)


class TestContexts:
    def test_a_life(self, person):
        assert person.json("context", "ls") == []
        person.osb("context", "add", "a", "https://a.example:1", "--api-key", "secret-of-a")
        person.osb("context", "add", "b", "b.example:2")
        assert [(one["name"], one["address"], one["key"], one["in_use"]) for one in person.json("context", "ls")] == [
            ("a", "https://a.example:1", True, False), ("b", "http://b.example:2", False, False)]  # fmt: skip
        person.osb("context", "use", "b")
        assert person.json("context", "show")["name"] == "b"
        assert person.json("context", "show", "a")["api_key"] == "se*******-a"
        assert person.json("config", "show")["domain"] == "b.example:2"
        person.osb("context", "add", "b", "c.example:3")
        assert person.json("config", "show")["domain"] == "c.example:3", "one of the same name is replaced"
        person.osb("context", "use", "--none")
        assert person.json("config", "show")["domain"] == "localhost:8080"
        person.osb("context", "rm", "a")
        assert [one["name"] for one in person.json("context", "ls")] == ["b"]
        path = person.home / ".opensandbox" / "config.toml"
        assert path.stat().st_mode & 0o777 == 0o600 and "secret" not in path.read_text()

    def test_who_counts_first(self, person, front, api, made):
        add = ["context", "add", "--ca-file", front.ca]
        person.osb(*add, "good", f"https://localhost:{front.port}", "--api-key", api.key)
        person.osb(*add, "bad", "https://localhost:1", "--use")
        assert made in person.osb("--context", "good", "ls", "-q").decode()
        assert made in person.osb("ls", "-q", env={"OPEN_SANDBOX_CONTEXT": "good"}).decode()
        assert "SERVER::UNREACHABLE" in person.osb("ls", status=1)
        direct = {"OPEN_SANDBOX_DOMAIN": "%s:%d" % api.address, "OPEN_SANDBOX_API_KEY": api.key}
        assert made in person.osb("ls", "-q", env=direct).decode(), "the variable goes before the file"
        assert made in person.osb("ls", "-q", "--server", "%s:%d" % api.address, "--api-key", api.key, env={"OPEN_SANDBOX_CONTEXT": "bad"}).decode()
        assert "already" in person.osb("--context", "good", "--domain", "x:1", "ls", status=1)
        assert "no context of this name" in person.osb("--context", "none", "ls", status=1)

    def test_its_key_goes_nowhere_else(self, person):
        """A key of a context is for its server, not for another address that is named on the way."""
        person.osb("context", "add", "a", "a.example:1", "--api-key", "secret-of-a", "--use")
        with socket.create_server(("127.0.0.1", 0)) as other:
            process = person.start("--domain", "127.0.0.1:%d" % other.getsockname()[1], "ls", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            connection = other.accept()[0]
            asked = connection.recv(65536)
            connection.close()
            process.wait(20)
        assert asked.startswith(b"GET /v1/sandboxes") and b"secret" not in asked

    def test_one_that_is_gone_can_be_left(self, person):
        person.osb("context", "add", "a", "a.example:1", "--use")
        path = person.home / ".opensandbox" / "config.toml"
        path.write_text(path.read_text().replace("[contexts.a]", "[contexts.z]"))
        assert "no context" in person.osb("ls", status=1)
        assert [one["name"] for one in person.json("context", "ls")] == ["z"]
        person.osb("context", "use", "z")
        assert person.json("config", "show")["domain"] == "a.example:1"

    @pytest.mark.parametrize("words", [
        ["a b", "h:1"], ["a.b", "h:1"], ["", "h:1"], ["a", "ftp://h"], ["a", "h:0"], ["a", "h:1", "--ca-file", "/nowhere"], ["a", "https://h", "--ca-file", "/nowhere"],
        ["a", "https://h", "--client-cert", "/etc/hostname"], ["a" * 65, "h:1"],
    ])  # fmt: skip
    def test_what_cannot_be_one(self, person, words):
        process = person.start("context", "add", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.communicate(timeout=20)
        assert process.returncode in (1, 2)
        assert not (person.home / ".opensandbox" / "config.toml").exists()


def test_the_published_client_reads_the_same_file(person, api):
    """Contexts are nothing to it; what it knows stays where it was, and ours stay when it writes."""
    published = ensure_venv("cli").parent / "osb"
    person.osb("config", "init")
    person.osb("config", "set", "connection.domain", "%s:%d" % api.address)
    person.osb("config", "set", "connection.api_key", api.key)
    person.osb("context", "add", "far", "https://far.example", "--api-key", "k", "--use")

    def theirs(*words):
        return subprocess.run([published, *words], env=person.environment, capture_output=True, text=True, timeout=60)

    shown = theirs("config", "show", "-o", "json")
    assert shown.returncode == 0 and json.loads(shown.stdout)["domain"] == "%s:%d" % api.address, shown
    assert theirs("sandbox", "list", "-o", "json").returncode == 0
    assert theirs("config", "set", "connection.request_timeout", "60").returncode == 0
    assert person.json("context", "show")["address"] == "https://far.example"
