"""What a download is compared with: one nginx that proxies, over a unix socket, another that serves a static file."""

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
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body-{name};
  proxy_temp_path {directory}/proxy-{name};
  fastcgi_temp_path {directory}/fastcgi-{name};
  uwsgi_temp_path {directory}/uwsgi-{name};
  scgi_temp_path {directory}/scgi-{name};
  server {{ {server} }}
}}
"""


class Nginx:
    def __init__(self, directory):
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise BenchError("nginx is not installed")
        self._processes = []
        self.port = free_port()
        # Its worker is not the service: it may read a directory of root's.
        back = f"listen unix:{directory}/back.sock; root {directory}; sendfile on;"
        # Without buffering on disk: a client that keeps up needs none, and one that does not would measure the disk.
        front = (f"listen 127.0.0.1:{self.port}; location / {{ proxy_pass http://unix:{directory}/back.sock:; "
                 "proxy_max_temp_file_size 0; proxy_http_version 1.1; proxy_set_header Connection ''; }")
        try:
            for name, server in (("back", back), ("front", front)):
                config = os.path.join(directory, name + ".conf")
                with open(config, "w", encoding="utf-8") as file:
                    file.write("user root;\n" + CONFIG.format(directory=directory, name=name, server=server))
                self._processes.append(subprocess.Popen([program, "-p", directory, "-c", config],
                                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self._wait(os.path.join(directory, "back.sock"))
        except BaseException:
            self.close()
            raise

    def _wait(self, path):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if any(process.poll() is not None for process in self._processes):
                break
            if os.path.exists(path) and os.path.exists(path.replace("back.sock", "front.pid")):
                return
            time.sleep(0.02)
        raise BenchError("nginx did not start")

    def close(self):
        for process in self._processes:
            process.terminate()
            process.wait()
        self._processes = []
