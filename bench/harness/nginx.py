"""The yardsticks of HTTP, each with one worker: an nginx that proxies, over a unix socket, another that serves a static file; and one
that does what is wanted of it."""

import os
import shutil
import subprocess
import time

from . import BenchError
from .service import free_port

CONFIG = """
worker_processes 1;
daemon off;
master_process off;
pid {directory}/{name}.pid;
error_log {directory}/{name}.log crit;
events {{ worker_connections 256; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {directory}/body-{name};
  proxy_temp_path {directory}/proxy-{name};
  fastcgi_temp_path {directory}/fastcgi-{name};
  uwsgi_temp_path {directory}/uwsgi-{name};
  scgi_temp_path {directory}/scgi-{name};
  {before}
  server {{ {server} }}
}}
"""


def program():
    found = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if found is None:
        raise BenchError("nginx is not installed")
    return found


def start(directory, name, server, before=""):
    """One process. Its worker is not the service: it may read a directory of root's."""
    config = os.path.join(directory, name + ".conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("user root;\n" + CONFIG.format(directory=directory, name=name, server=server, before=before))
    return subprocess.Popen([program(), "-p", directory, "-c", config], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(processes, paths):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if any(process.poll() is not None for process in processes):
            break
        if all(os.path.exists(path) for path in paths):
            return
        time.sleep(0.02)
    raise BenchError("nginx did not start")


class OneNginx:
    """A single process on a port of its own."""

    def __init__(self, directory, name, locations, before=""):
        self.port = free_port()
        self._process = start(directory, name, f"listen 127.0.0.1:{self.port}; {locations}", before)
        try:
            wait_for([self._process], [os.path.join(directory, name + ".pid")])
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        return self._process.pid

    def close(self):
        self._process.terminate()
        self._process.wait()


class Nginx:
    def __init__(self, directory):
        self._processes = []
        self.port = free_port()
        back = f"listen unix:{directory}/back.sock; root {directory}; sendfile on;"
        # Without buffering on disk: a client that keeps up needs none, and one that does not would measure the disk.
        front = (f"listen 127.0.0.1:{self.port}; location / {{ proxy_pass http://unix:{directory}/back.sock:; "
                 "proxy_max_temp_file_size 0; proxy_http_version 1.1; proxy_set_header Connection ''; }")
        try:
            for name, server in (("back", back), ("front", front)):
                self._processes.append(start(directory, name, server))
            wait_for(self._processes, [os.path.join(directory, "back.sock"), os.path.join(directory, "front.pid")])
        except BaseException:
            self.close()
            raise

    def close(self):
        for process in self._processes:
            process.terminate()
            process.wait()
        self._processes = []
