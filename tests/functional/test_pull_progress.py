"""The bars of a pull, of a run that waits for one, and of a push, seen in a real terminal: a registry that sends or takes a piece at a time makes them move."""

import io
import os
import re
import shutil
import subprocess
import threading
import time

import pytest
from lib import images as make
from lib.api import Api, assert_envelope
from lib.plugin import shared_service
from lib.registries import Made, fake_registry, fake_registry_for_pushes
from lib.terminal import Screen
from lib.waiting import wait_for

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux here")
BAR = re.compile(r"^\[(#*)( *)\] (.*)$", re.MULTILINE)
MEGABYTE = 1_000_000


class Slow:
    """Sends the second layer in pieces, each when it is told to."""

    def __init__(self, registry, path):
        self.data, self.path, self.pieces = registry.blobs[path], path, threading.Semaphore(0)
        registry.before = self.answer

    def answer(self, handler, path):
        if path != self.path:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(self.data)))
        handler.end_headers()
        for start in range(0, len(self.data), MEGABYTE):
            assert self.pieces.acquire(timeout=60)
            handler.wfile.write(self.data[start : start + MEGABYTE])
            handler.wfile.flush()
        return True


@pytest.fixture
def service(bin_dir, request):
    return shared_service(request, bin_dir, registry={})


@pytest.fixture(params=[100, 40])
def screen(service, bin_dir, tmp_path, request):
    environment = {"PATH": f"{bin_dir}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    made = Screen(tmp_path, environment, columns=request.param)
    made.columns = request.param
    made.type(f"export OPEN_SANDBOX_DOMAIN={service.address[0]}:{service.address[1]}; clear")
    yield made
    made.close()


def bars(seen):
    return [(len(done), len(left), words) for done, left, words in BAR.findall(seen)]


def slow_image(registry, name="slow"):
    """An image whose second layer comes a piece at a time; its name, and who has the pieces."""
    layer = make.tar_bytes(lambda tar: make.add(tar, "big", os.urandom(8 * MEGABYTE)))
    image = Made([make.root_tar(), layer], compression="plain")
    return registry.add(name, image), Slow(registry, f"/v2/{name}/blobs/sha256:{image.layers[1]}")


def watch_it_grow(screen, more, words):
    """Lets `more` come three times; the bar is one line, and longer each time."""
    widths, told = [], []
    for _ in range(3):
        more()
        seen = screen.expect(lambda seen: bars(seen) and bars(seen)[-1][0] > max(widths, default=0))
        assert len(bars(seen)) == 1, "one line that is written over:\n" + seen
        done, left, said = bars(seen)[0]
        assert left > 0
        widths.append(done)
        told.append(said)
    assert widths == sorted(set(widths)), widths
    if screen.columns >= 80:
        numbers = [float(re.match(rf"([0-9.]+) of [0-9.]+ MB {words}", said)[1]) for said in told]
        assert numbers == sorted(set(numbers)), told


@pytest.mark.parametrize("command, end", [("images pull {}", "pulled "), ("run {} -- /bin/sh -c 'echo -n it-; echo runs'", "it-runs"), ("run -d {} -- /bin/sleep 600", "-7")])
def test_the_bar_grows_in_its_line_and_goes(service, screen, command, end):
    with fake_registry() as registry:
        name, slow = slow_image(registry)
        screen.type("osb " + command.format(name))
        watch_it_grow(screen, lambda: slow.pieces.release(2), "downloaded")
        slow.pieces.release(8)
        seen = screen.expect(lambda seen: end in seen.split(name, 1)[-1] and seen.rstrip().endswith("$"))
        assert bars(seen) == [], "the bar goes when it is done:\n" + seen
    api = Api(service)
    for sandbox in api.list_all():
        assert api.delete(sandbox["id"]).status == 204


def test_who_is_no_terminal_is_told_nothing(service, bin_dir, tmp_path):
    with fake_registry() as registry:
        name, slow = slow_image(registry)
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPEN_SANDBOX_DOMAIN": "%s:%d" % service.address}
        with subprocess.Popen([bin_dir / "osb", "run", name, "--", "/bin/sh", "-c", "echo runs"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            state = lambda: Api(service).call("GET", f"/images/pull?name={name}")  # noqa: E731
            wait_for(lambda: state().status == 200 and state().json["total"] > 0, 20, "it is under way")
            slow.pieces.release(12)
            assert running.communicate(timeout=60) == ("runs\n", "") and running.returncode == 0
        assert_envelope(state(), 404, "IMAGE::NOT_FOUND")


class SlowUpload:
    """Takes the body of a layer in pieces, each when it is told to."""

    def __init__(self, registry):
        self.registry, self.pieces = registry, threading.Semaphore(0)
        registry.before_write = self.answer

    def answer(self, handler, method, path):
        size = int(handler.headers.get("Content-Length") or 0)
        if size < 16 * MEGABYTE:
            return False
        data = b""
        while len(data) < size:
            assert self.pieces.acquire(timeout=60)
            data += handler.rfile.read(min(MEGABYTE, size - len(data)))
        handler.rfile = io.BytesIO(data)
        self.registry.before_write = lambda *_: False
        return self.registry.write(handler, method) or True


def test_the_bar_of_a_push(service, screen, bin_dir, tmp_path):
    archive = tmp_path / "large.tar"
    layer = make.tar_bytes(lambda tar: make.add(tar, "big", os.urandom(48 * MEGABYTE)))
    archive.write_bytes(make.docker_archive([make.root_tar(), layer], tags=("large:1",)))
    service.images().import_(archive)
    with fake_registry_for_pushes() as registry:
        slow = SlowUpload(registry)
        screen.type(f"osb images push large:1 {registry.host}/large:1")
        watch_it_grow(screen, lambda: slow.pieces.release(8), "uploaded")
        slow.pieces.release(64)
        seen = screen.expect(lambda seen: "pushed " in seen and seen.rstrip().endswith("$"))
        assert bars(seen) == [], "the bar goes when it is done:\n" + seen


@pytest.mark.long
@pytest.mark.parametrize("screen", [100], indirect=True)
def test_an_image_that_takes_longer_than_a_lease(service, screen):
    """The answer to the create comes after 25 seconds, the sandbox would end after 60. Ctrl-C is heard at once."""
    api = Api(service)
    with fake_registry() as registry:
        name, slow = slow_image(registry)
        screen.type(f"osb run {name} -- /bin/sh -c 'echo -n it-; echo runs'")
        pending = lambda: [one for one in api.list_all() if one["status"]["state"] == "Pending"]  # noqa: E731
        # A silence of half a minute would be a registry that is away.
        for _ in range(6):
            time.sleep(12)
            slow.pieces.release()
        assert pending() and bars(screen.shows())[0][0] > 15
        slow.pieces.release(8)
        screen.expect(lambda seen: "it-runs" in seen and seen.rstrip().endswith("$"))
        name, slow = slow_image(registry, "slower")
        screen.type(f"clear; osb run {name} -- /bin/sh -c 'echo -n it-; echo runs'; echo ended: $?")
        wait_for(pending, 40, "the create has been answered")
        screen.keys("C-c")
        screen.expect(lambda seen: "ended: 130" in seen)
        assert api.list_all() == []
        slow.pieces.release(8)
