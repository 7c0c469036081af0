"""execd in front of a real notebook server: JUPYTER_HOST is set, as in the images that run one."""

import json
import os
import re
import socket
import subprocess
import threading
import time

import pytest
from lib import rawhttp
from lib.venvs import ensure_venv

TOKEN = "sesame"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bridge:
    """A notebook server and an execd that was told of it."""

    def __init__(self, bin_dir, directory, token=TOKEN):
        self.directory = directory
        python = ensure_venv("jupyter")
        self.server_port, self.port = free_port(), free_port()
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "JUPYTER_RUNTIME_DIR": str(directory / "runtime")}
        options = {"ServerApp.ip": "127.0.0.1", "ServerApp.port": self.server_port, "ServerApp.port_retries": 0,
                   "IdentityProvider.token": TOKEN, "ServerApp.root_dir": str(directory)}  # fmt: skip
        with open(directory / "server.log", "wb") as log:
            self.server = subprocess.Popen([python, "-m", "jupyter_server", "--allow-root", *[f"--{k}={v}" for k, v in options.items()]],
                                           env=environment, cwd=directory, stdout=log, stderr=log)  # fmt: skip
        environment.update({"JUPYTER_HOST": f"http://127.0.0.1:{self.server_port}", "JUPYTER_TOKEN": token})
        self.execd = subprocess.Popen([bin_dir / "execd", "--port", str(self.port), "--log-level", "4"], env=environment, cwd=directory)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                time.sleep(0.01)

    def call(self, method, path, **more):
        return rawhttp.request(("127.0.0.1", self.port), method, path, timeout=60, **more)

    def run(self, code, **context):
        reply = self.call("POST", "/code", json={"code": code, "context": context or {"language": "python"}})
        assert reply.status == 200, reply
        return [json.loads(part) for part in reply.body.decode().split("\n\n") if part]

    def close(self):
        for process in (self.execd, self.server):
            process.terminate()
        for process in (self.execd, self.server):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def bridge(request, tmp_path_factory):
    from pathlib import Path

    made = Bridge(Path(request.config.getoption("--bin")), tmp_path_factory.mktemp("jupyter"))
    yield made
    made.close()


def of(events, kind):
    return [event for event in events if event["type"] == kind]


def result(events):
    assert not of(events, "error"), of(events, "error")
    return of(events, "result")[-1]["results"]["text"]


def test_cells_share_state(bridge):
    """The first cell waits for the server, which is still starting."""
    events = bridge.run("print('hello')\nkept = 2 + 2\nkept")
    assert [event["type"] for event in events if event["type"] != "ping"] == ["init", "stdout", "execution_count", "result", "execution_complete"]
    assert (of(events, "stdout")[0]["text"], result(events)) == ("hello\n", "4")
    assert result(bridge.run("kept + 1")) == "5"


def test_errors(bridge):
    events = bridge.run("1 / 0")
    assert of(events, "error")[0]["error"]["ename"] == "ZeroDivisionError"
    assert not of(events, "execution_complete")


def test_displays_are_results(bridge):
    events = bridge.run("from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\n3")
    assert [event["results"].get("text/html") for event in of(events, "result")] == ["<b>x</b>", None]


def test_contexts_have_directories_and_end(bridge):
    made = bridge.call("POST", "/code/context", json={"language": "python", "cwd": str(bridge.directory / "work here")}).json
    assert result(bridge.run("import os\nos.getcwd()", id=made["id"])).strip("'") == str(bridge.directory / "work here")
    assert bridge.call("DELETE", f"/code/contexts/{made['id']}").status == 200
    assert made["id"] not in bridge.call("GET", "/code/contexts").body.decode()


def test_interrupt(bridge):
    made = bridge.call("POST", "/code/context", json={"language": "python"}).json
    flag = bridge.directory / "running"
    box = []
    thread = threading.Thread(target=lambda: box.extend(bridge.run(f"kept = 1\nopen({str(flag)!r}, 'w').close()\nimport time\ntime.sleep(60)", id=made["id"])))
    thread.start()
    for _ in range(1500):
        if flag.exists():
            break
        time.sleep(0.02)
    assert bridge.call("DELETE", f"/code?id={made['id']}").status == 200
    thread.join(30)
    assert of(box, "error")[0]["error"]["ename"] == "KeyboardInterrupt"
    assert result(bridge.run("kept", id=made["id"])) == "1"


def test_a_dead_kernel_is_an_error(bridge):
    made = bridge.call("POST", "/code/context", json={"language": "python"}).json
    events = bridge.run("import os\nos.kill(os.getpid(), 9)", id=made["id"])
    assert "ended" in of(events, "error")[0]["error"]["evalue"]
    assert bridge.call("GET", f"/code/contexts/{made['id']}").json["status"] == "dead"


def test_an_unknown_language_names_those_that_are(bridge):
    error = of(bridge.run("1", language="cobol"), "error")[0]["error"]
    assert re.search("unknown language: cobol; the notebook server has .*python", error["evalue"])


def test_a_wrong_token_is_explained(request, tmp_path):
    from pathlib import Path

    wrong = Bridge(Path(request.config.getoption("--bin")), tmp_path, token="wrong")
    try:
        error = of(wrong.run("1"), "error")[0]["error"]
        assert "JUPYTER_TOKEN" in error["evalue"]
    finally:
        wrong.close()
