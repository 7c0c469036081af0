"""Every page for users is followed from its first block to its last, against a real service, and shows what it says it shows."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from lib import interpreter
from lib.pages import REPOSITORY, blocks, matches, pages
from lib.scope import cgroup_mounts
from lib.service import Service

from stage import STATE, Stage
from terminal import Terminal

# Pages that start and stop the service themselves.
OWN_SERVICE = {"docs/operations.md"}


def name_of(page):
    return str(page.relative_to(REPOSITORY))


FOLLOWED = [page for page in pages() if any(block.runs for block in blocks(page))]


@pytest.fixture(scope="module")
def stage():
    for tool in ("ip", "openssl", "unshare", "nsenter", "busybox", "docker-registry", "curl"):
        if not shutil.which(tool):
            pytest.skip(f"the stage needs {tool}")
    made = Stage()
    try:
        yield made.enter()
    finally:
        made.close()


@pytest.fixture
def place(stage, bin_dir, request):
    """A service at 127.0.0.1:8080 with /var/lib/opensandbox as its state directory, and a terminal beside it."""
    page = request.getfixturevalue("page")
    images = {interpreter.NAME: str(interpreter.ROOT)} if interpreter.image_is_built() else {}
    service = Service(bin_dir, images=images, **stage.settings())
    service.address = ("127.0.0.1", 8080)
    service.state_dir.mkdir(mode=0o711)
    made = not STATE.exists()
    STATE.mkdir(exist_ok=True)
    stage.bind(service.state_dir, STATE)
    service.config_path.write_text(service.config_path.read_text().replace(str(service.state_dir), str(STATE)))
    home = service.directory / "home"
    terminal = Terminal(home, service.bin_dir)
    try:
        if name_of(page) not in OWN_SERVICE:
            (home / ".sandbox.toml").symlink_to(service.config_path)
            service.start()
        yield service, terminal
    finally:
        terminal.close()
        if service.process is None:
            service.start()
        subprocess.run([service.bin_dir / "osb", "rm", "--all", "--server", "127.0.0.1:8080"], capture_output=True, timeout=30)
        service.stop()
        group = (service.state_dir / "identity").read_text().split()[1]
        left = {(mount, f"/{group}") for mount in cgroup_mounts().values() if Path(mount, group).exists()}
        service.scope.cgroup_roots |= left
        service.destroy()
        subprocess.run(["umount", STATE], check=False)
        if made:
            STATE.rmdir()
    assert not left, f"docs/operations.md says that nothing is left after the last sandbox and a stop; there is {left}"


@pytest.mark.parametrize("page", FOLLOWED, ids=name_of)
def test_page(page, place):
    service, terminal = place
    for number, block in enumerate(blocks(page)):
        if not block.runs:
            continue
        if interpreter.NAME in block.text and not interpreter.image_is_built():
            print(f"{name_of(page)}:{block.line}: not run: the code interpreter image is not built")
            continue
        printed, status, failed = terminal.run(number, block)
        where = f"{name_of(page)}:{block.line}:\n{block.text}\nprinted\n{printed}\n"
        assert status is not None, f"{where}{failed}"
        if block.marker == "exit":
            assert status == int(block.value), f"{where}ended with {status}, the page says {block.value}"
        else:
            assert status == 0 and not failed, f"{where}ended with {status}; failed: {failed}"
        if block.expected is not None:
            assert matches(block.expected, printed, block.marker != "anywhere"), f"{where}instead of\n{block.expected}"


def test_a_page_that_lies_is_found(stage, bin_dir, tmp_path):
    """The test of the test: another output, another status, a command in the middle that fails, a block that does not end."""
    from lib.pages import Block

    terminal = Terminal(tmp_path / "home", bin_dir)
    try:
        printed, status, failed = terminal.run(1, Block("sh", "echo one\nfalse\necho two\n", 1))
        assert (printed, status) == ("one\ntwo\n", 0) and failed == "1 of: false"
        assert terminal.run(2, Block("sh", "x=5; (exit 7)\n", 1))[1] == 7
        assert terminal.run(3, Block("sh", "echo $x\n", 1)) == ("5\n", 0, "")
        assert terminal.run(4, Block("python", "print(6 * 7)\n", 1)) == ("42\n", 0, "")
        assert terminal.run(5, replace(Block("sh", "sleep 60\n", 1)), timeout=0.2)[1] is None
    finally:
        terminal.close()
    assert matches("a …\n…\nz\n", "a b\nc\nd\nz\n") and matches("a\n…\nz\n", "a\nz\n")
    assert not matches("a\nz\n", "a\nb\nz\n") and not matches("4\n", "42\n") and not matches("a\n", "")
    assert matches("b\na\n", "a\nb\n", in_order=False) and not matches("b\nc\n", "a\nb\n", in_order=False)
