"""Other ways to get a command into a fresh sandbox on this machine, as far as they are installed and work.

A peer has `first` (argv: make a sandbox, run `echo x` in it) and perhaps `exec` (argv: run `true` in a running one). {} in a
word becomes unique per call. A peer that does not work is left out with its own words as the reason.
"""

import io
import itertools
import json
import os
import shutil
import subprocess
import tarfile

from . import BenchError

_counter = itertools.count()


class Peer:
    def __init__(self, name, first, exec_argv=None, close=None):
        self.name = name
        self._first = first
        self.exec_argv = exec_argv
        self._close = close

    def first(self):
        return [word.replace("{}", f"{os.getpid()}-{next(_counter)}") for word in self._first]

    @property
    def template(self):
        return self._first

    def close(self):
        if self._close:
            self._close()


def _run(argv):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(str(error)) from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise BenchError(lines[0] if lines else f"exit code {done.returncode}")
    return done.stdout


def bubblewrap(_directory):
    argv = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            "/usr/bin/bash", "-c", "echo x"]
    _run(argv)
    return Peer("bubblewrap", argv)


def _make_root(root):
    """The host's /usr shown in an otherwise empty root; the bundle binds it."""
    for name in ("usr", "proc", "dev", "sys", "etc", "tmp", "run", "root"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + name):
            os.symlink(os.readlink("/" + name), os.path.join(root, name))


def _bundle(program, directory, args):
    os.makedirs(directory)
    _make_root(os.path.join(directory, "rootfs"))
    _run([program, "spec", "--bundle", directory] if program == "runc" else ["sh", "-c", f"cd '{directory}' && {program} spec"])
    path = os.path.join(directory, "config.json")
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    spec["process"]["args"] = args
    spec["process"]["terminal"] = False
    # What the machine's own limits may forbid has nothing to do with the time measured.
    spec["process"].pop("rlimits", None)
    spec["mounts"].append({"destination": "/usr", "source": "/usr", "type": "bind", "options": ["rbind", "ro"]})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
    return directory


def _oci(program, directory):
    base = os.path.join(directory, program)
    state = ["--root", os.path.join(base, "state")]
    short = _bundle(program, os.path.join(base, "short"), ["/usr/bin/bash", "-c", "echo x"])
    first = [program, *state, "run", "--bundle", short, program + "-bench-{}"]
    _run([word.replace("{}", "try") for word in first])
    running = f"{program}-bench-running-{os.getpid()}"
    long = _bundle(program, os.path.join(base, "long"), ["/usr/bin/sleep", "infinity"])
    # Detached, it inherits our descriptors: a pipe would never see its end.
    subprocess.run([program, *state, "run", "--detach", "--bundle", long, running], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=True)

    def close():
        subprocess.run([program, *state, "delete", "--force", running], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)

    return Peer(program, first, [program, *state, "exec", running, "/usr/bin/bash", "-c", "true"], close)


def runc(directory):
    return _oci("runc", directory)


def crun(directory):
    return _oci("crun", directory)


def small_image():
    """bash, true and what they load, as a tar: no registry is needed."""
    files = set()
    for program in ("/usr/bin/bash", "/usr/bin/sleep"):
        files.add(program)
        for line in _run(["ldd", program]).splitlines():
            files.update(word for word in line.split() if word.startswith("/"))
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in sorted(files):
            archive.add(os.path.realpath(name), arcname=name.lstrip("/"))
    return data.getvalue()


def docker(_directory):
    _run(["docker", "version", "--format", "{{.Server.Version}}"])
    image = f"osb-bench:{os.getpid()}"
    imported = subprocess.run(["docker", "import", "-", image], input=small_image(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)
    if imported.returncode != 0:
        raise BenchError(imported.stderr.decode(errors="replace").strip())
    running = f"osb-bench-running-{os.getpid()}"
    _run(["docker", "run", "--detach", "--name", running, image, "/usr/bin/sleep", "infinity"])

    def close():
        for argv in (["docker", "rm", "--force", running], ["docker", "rmi", "--force", image]):
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    return Peer("docker", ["docker", "run", "--rm", image, "/usr/bin/bash", "-c", "echo x"],
                ["docker", "exec", running, "/usr/bin/bash", "-c", "true"], close)


PROGRAMS = {"bubblewrap": ("bwrap", bubblewrap), "runc": ("runc", runc), "crun": ("crun", crun), "docker": ("docker", docker)}


def find(directory):
    """(peers that work, {name: reason} of those that do not)."""
    found, missing = [], {}
    for name, (program, make) in PROGRAMS.items():
        if shutil.which(program) is None:
            missing[name] = "not installed"
            continue
        try:
            found.append(make(directory))
        except (BenchError, subprocess.SubprocessError) as error:
            missing[name] = str(error)
    return found, missing
