"""The bar of a pull, seen in a real terminal: a registry that sends a piece at a time makes it move."""

import os
import re
import shutil
import threading

import pytest
from lib import images as make
from lib.plugin import shared_service
from lib.registries import Made, fake_registry
from lib.terminal import Screen

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


def test_the_bar_grows_in_its_line_and_goes(service, screen):
    with fake_registry() as registry:
        layer = make.tar_bytes(lambda tar: make.add(tar, "big", os.urandom(8 * MEGABYTE)))
        image = Made([make.root_tar(), layer], compression="plain")
        name = registry.add("slow", image)
        slow = Slow(registry, f"/v2/slow/blobs/sha256:{image.layers[1]}")
        screen.type(f"osb images pull {name}")
        widths, words = [], []
        for _ in range(3):
            slow.pieces.release()
            slow.pieces.release()
            seen = screen.expect(lambda seen: bars(seen) and bars(seen)[-1][0] > max(widths, default=0))
            assert len(bars(seen)) == 1, "one line that is written over:\n" + seen
            done, left, said = bars(seen)[0]
            assert left > 0
            widths.append(done)
            words.append(said)
        assert widths == sorted(set(widths)), widths
        if screen.columns >= 80:
            told = [float(re.match(r"([0-9.]+) of [0-9.]+ MB downloaded", said)[1]) for said in words]
            assert told == sorted(set(told)), words
        for _ in range(8):
            slow.pieces.release()
        seen = screen.expect(lambda seen: "pulled " in seen and seen.rstrip().endswith("$"))
        assert bars(seen) == [], "the bar goes when it is done:\n" + seen
