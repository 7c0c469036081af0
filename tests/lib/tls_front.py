"""nginx from Debian before a service: TLS with an authority of the test's own, and, on a second port, for clients that show a certificate."""

import os
import shutil
import subprocess

from .service import free_port
from .waiting import wait_for

CONFIG = """
daemon off; pid {directory}/nginx.pid; error_log {directory}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {directory}; proxy_temp_path {directory};
  fastcgi_temp_path {directory}; uwsgi_temp_path {directory}; scgi_temp_path {directory};
  map $http_upgrade $kept {{ default upgrade; '' ''; }}
  proxy_http_version 1.1; proxy_buffering off; proxy_request_buffering off; proxy_read_timeout 600s;
  proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $kept;
  ssl_certificate {directory}/server.pem; ssl_certificate_key {directory}/server.key;
  server {{ listen 127.0.0.1:{port} ssl; location / {{ proxy_pass http://{upstream}; }} }}
  server {{ listen 127.0.0.1:{asking} ssl; ssl_client_certificate {directory}/ca.pem; ssl_verify_client on;
           location / {{ proxy_pass http://{upstream}; }} }}
}}
"""


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class TlsFront:
    """`name` is what the certificate is for, and what has to be asked for; it leads to 127.0.0.1."""

    def __init__(self, directory, upstream, name="localhost"):
        self.directory = directory
        self.port, self.asking = free_port(), free_port()
        self.ca = directory / "ca.pem"
        self.certificate, self.key = directory / "client.pem", directory / "client.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj", "/CN=test authority",
                "-keyout", directory / "ca.key", "-out", self.ca)  # fmt: skip
        self.sign("server", f"subjectAltName=DNS:{name}")
        self.sign("client", "extendedKeyUsage=clientAuth")
        (directory / "nginx.conf").write_text(CONFIG.format(directory=directory, port=self.port, asking=self.asking, upstream=upstream))
        if os.geteuid() == 0:
            directory.chmod(0o755)  # its worker is nobody
        self.process = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", directory / "nginx.conf", "-g", "user root;"], stderr=subprocess.DEVNULL)
        wait_for(lambda: (directory / "nginx.pid").exists(), 10, "nginx runs")

    def sign(self, name, extension):
        directory = self.directory
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", directory / f"{name}.key",
                "-out", directory / f"{name}.csr")  # fmt: skip
        (directory / f"{name}.ext").write_text(extension + "\n")
        openssl("x509", "-req", "-in", directory / f"{name}.csr", "-CA", self.ca, "-CAkey", directory / "ca.key", "-CAcreateserial", "-days", 2,
                "-extfile", directory / f"{name}.ext", "-out", directory / f"{name}.pem")  # fmt: skip

    def close(self):
        self.process.terminate()
        self.process.wait(10)
