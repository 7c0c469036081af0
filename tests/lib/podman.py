"""Debian's Podman behind the API of Docker, in namespaces and with settings of its own; used like the engine of docker_engine.py.

Defaults of it do not work everywhere: crun wants one kind of control groups, and limits above those of the machine are refused.
"""

import os
import subprocess

from .docker_engine import GROUP, REPOSITORY, Dockerd
from .waiting import wait_for

PROGRAMS = REPOSITORY / "build/environments/docker-podman/root"

SETTINGS = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
conmon_path = ["{programs}/usr/bin/conmon"]
helper_binaries_dir = ["{programs}/usr/lib/podman"]
[engine.runtimes]
runc = ["{programs}/usr/sbin/runc", "{programs}/usr/bin/runc"]
[network]
network_backend = "netavark"
network_config_dir = "{directory}/networks"
"""


class Podman(Dockerd):
    takes_port_ranges = False
    tells_image_ids = False
    takes_variables_away = False
    commits_stop_signals = False

    def start(self):
        (self.directory / "containers.conf").write_text(SETTINGS.format(programs=PROGRAMS, directory=self.directory))
        (self.directory / "storage.conf").write_text(f'[storage]\ndriver = "overlay"\nrunroot = "{self.directory}/run"\ngraphroot = "{self.directory}/data"\n')
        if self.process is None:  # where it keeps locks, whatever its settings say
            self.run_inside("mount", "-t", "tmpfs", "tmpfs", "/run")
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.inside(), "podman", "system", "service", "--time", "0", f"unix://{self.socket}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(),
            )  # fmt: skip
        wait_for(self.answers, 60, "podman answers", interval=0.1)
        os.chown(self.socket, 0, GROUP)
        self.socket.chmod(0o660)
        return self

    def environment(self):
        libraries = [str(path) for part in ("usr/lib", "lib") for path in (PROGRAMS / part).glob("*-linux-gnu")]
        return {
            "PATH": f"{PROGRAMS}/usr/bin:{PROGRAMS}/usr/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_LIBRARY_PATH": ":".join(libraries),
            "XTABLES_LIBDIR": str(next((PROGRAMS / "usr/lib").glob("*-linux-gnu/xtables"), PROGRAMS)),
            "CONTAINERS_CONF": str(self.directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.directory / "storage.conf"),
            "HOME": str(self.directory),
        }
