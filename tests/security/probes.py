"""Running osb-probe: inside a sandbox, and without protection to prove that each probe can succeed at all."""

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "probes"
SHARED_FILES = {"attempts", "main", "table", "tools"}

REFUSED, SUCCEEDED, NOT_APPLICABLE = 0, 10, 20


def names():
    """One file per probe: known without a build, so that a missing build is not a missing test."""
    return sorted(path.stem for path in SOURCES.glob("*.cc") if path.stem not in SHARED_FILES)


@dataclass
class Verdict:
    name: str
    status: int
    line: str

    def assert_refused(self):
        assert self.status == REFUSED, f"{self.name}: {WORDS.get(self.status, self.status)}: {self.line}"
        assert self.line and "\n" not in self.line, f"{self.name} must say what stopped it, in one line: {self.line!r}"

    def assert_succeeded(self):
        assert self.status == SUCCEEDED, f"{self.name}: {WORDS.get(self.status, self.status)}: {self.line}"

    @property
    def only_unimplemented(self):
        """Refused by a kernel that does not have the thing at all."""
        reasons = [reason for part in self.line.split("; ") for reason in [part.split(" from ")[0]]]
        return self.status == REFUSED and all(reason in ("ENOSYS", "EAFNOSUPPORT") for reason in reasons)


WORDS = {REFUSED: "refused", SUCCEEDED: "SUCCEEDED, a breach", NOT_APPLICABLE: "not applicable"}


class Armed:
    PATH = "/tmp/osb-probe"

    def __init__(self, api, sandbox_id, probe_path):
        self.api = api
        self.sandbox_id = sandbox_id
        api.upload(sandbox_id, self.PATH, probe_path.read_bytes(), mode=755)

    def run(self, name, *arguments, **members):
        command = shlex.join([self.PATH, "run", name, *map(str, arguments)])
        result = self.api.run(self.sandbox_id, command, **members)
        return Verdict(name, result.exit_code, (result.stdout + result.stderr).strip())


# A set of namespaces that ends with the run, the shell as its process 1. They keep what works from reaching the machine's
# own mounts, network, processes and names; nothing else is taken away: root stays root.
NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "--net", "--mount-proc"]


def unprotected(probe_path, name, *arguments, setup="", pass_fds=(), stdin=subprocess.DEVNULL):
    """As root in throw-away namespaces, without anything of ours."""
    script = ["sh", "-c", f'set -e\n{setup}\nset +e\n"$@"; exit $?', "sh"]
    return execute(name, [*NAMESPACES, *script, probe_path, "run", name, *arguments], pass_fds=pass_fds, stdin=stdin)


def unprotected_on_host(probe_path, name, *arguments):
    """For probes that only look at, or talk to, what the test itself has put on the host."""
    return execute(name, [probe_path, "run", name, *arguments])


def unprotected_in_jail(probe_path, jail, name, *, pass_fds=()):
    """In a plain chroot: no boundary for root, which is what these probes show."""
    inside = jail / "osb-probe"
    inside.write_bytes(probe_path.read_bytes())
    inside.chmod(0o755)
    return execute(name, ["chroot", jail, "/osb-probe", "run", name], pass_fds=pass_fds)


def execute(name, command, pass_fds=(), stdin=subprocess.DEVNULL):
    done = subprocess.run(
        [str(word) for word in command], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        pass_fds=pass_fds, timeout=60, check=False, cwd="/",
    )  # fmt: skip
    return Verdict(name, done.returncode, done.stdout.decode(errors="replace").strip())
