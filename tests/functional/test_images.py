"""Local images: import, what their configuration says, names and aliases, removal, kill -9."""

import os
import random
import signal
import subprocess
import tarfile
import time

import pytest
from lib import images as make
from lib.api import Api, assert_envelope
from lib.plugin import shared_service
from lib.waiting import wait_for


@pytest.fixture(scope="module")
def host(bin_dir, request):
    """A service of this module's own, and the store it uses."""
    aliases = {"python:*": "plain", "exact:1": "host"}
    return shared_service(request, bin_dir, aliases=aliases)


@pytest.fixture(scope="module")
def images(host):
    return host.images()


@pytest.fixture(scope="module")
def api(host):
    return Api(host)


@pytest.fixture
def run(api):
    """run(image, command) in a sandbox of its own; the finished command."""
    made = []

    def go(image, command, **fields):
        made.append(api.create(image={"uri": image}, entrypoint=["sleep", "600"], **fields)["id"])
        return api.run(made[-1], command)

    yield go
    for sandbox_id in made:
        api.delete(sandbox_id)


@pytest.fixture
def archive(tmp_path):
    def write(data, name="archive.tar"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture(scope="module")
def plain(images, tmp_path_factory):
    """The image `plain`: a root tarball with a configuration given on the command line."""
    path = tmp_path_factory.mktemp("plain") / "root.tar.gz"
    path.write_bytes(make.COMPRESSIONS["gzip"](make.root_tar()))
    images.import_(path, "--name", "plain", "--env", "GREETING=hello", "--user", "app", "--workdir", "/home/app")
    return "plain"


def test_a_running_server_sees_an_import(api, images, archive, run):
    assert_envelope(api.post_create(image={"uri": "fresh"}), 400, "IMAGE::NOT_FOUND")
    images.import_(archive(make.root_tar(), "fresh.tar"))
    assert run("fresh", "echo it runs").stdout == "it runs"


def test_user_environment_and_directory(plain, run):
    done = run(plain, "id; echo $PWD $GREETING $HOME $USER; touch here; stat -c %U:%G here /etc/passwd")
    assert done.stdout.split("\n") == [
        "uid=1000(app) gid=1001(app) groups=1001(app),50(staff)", "/home/app hello /home/app app", "app:app", "root:root",
    ]  # fmt: skip


def test_the_request_wins_over_the_image(plain, run):
    done = run(plain, "echo $GREETING $HOME", env={"GREETING": "bye", "HOME": "/tmp"})
    assert done.stdout == "bye /tmp"


def test_the_record_keeps_what_was_asked_for(plain, api, run):
    run("python:3.11", "true")
    assert "python:3.11" in [item["image"]["uri"] for item in api.list_all()]


@pytest.mark.parametrize("asked", ["python:3.11", "python:", "plain", "plain:latest"])
def test_aliases(plain, run, asked):
    assert run(asked, "echo $GREETING").stdout == "hello"


def test_alias_of_the_host(run):
    assert run("exact:1", "python3 -c 'print(1)' || true; echo $USER").exit_code == 0


@pytest.mark.parametrize("asked", [
    "opensandbox/code-interpreter:v1.0.2", "registry.example/opensandbox/code-interpreter:latest",
    "registry.example:5000/opensandbox/code-interpreter", "opensandbox/code-interpreter@sha256:" + "0" * 64,
])  # fmt: skip
def test_the_interpreter_of_any_host(images, archive, api, run, asked):
    if "opensandbox/code-interpreter" not in images.names():
        assert_envelope(api.post_create(image={"uri": asked}), 400, "IMAGE::NOT_FOUND")
        images.import_(archive(make.root_tar()), "--name", "opensandbox/code-interpreter")
    assert run(asked, "echo ok").stdout == "ok"


def test_not_found_says_what_there_is(api, plain):
    body = assert_envelope(api.post_create(image={"uri": "registry.example/nope:1"}), 400, "IMAGE::NOT_FOUND")
    assert "plain" in body["message"], body


def test_not_found_says_what_to_do(api):
    body = assert_envelope(api.post_create(image={"uri": "registry.example/nope:1"}), 400, "IMAGE::NOT_FOUND")
    assert f"{api.service.bring_image} " in body["message"] and "nope:1" in body["message"], body


def upper_layer(tar):
    make.add(tar, "etc/motd", "from above")
    make.add(tar, "etc/.wh.gone")
    make.add(tar, "data/.wh..wh..opq")
    make.add(tar, "data/new", "n")
    make.add(tar, "again/.wh.x")
    make.add(tar, "srv", kind=tarfile.DIRTYPE, mode=0o2775, gid=50)


def lower_layer(tar):
    make.fill_root(tar)
    make.add(tar, "etc/motd", "from below")
    make.add(tar, "etc/gone", "x")
    make.add(tar, "etc/stays", "s", pax={"SCHILY.xattr.user.note": "kept"})
    make.add(tar, "data/old", "o")
    make.add(tar, "again/x", "x")
    make.add(tar, "again/y", "y")
    make.add(tar, "bin/sudo", "#!/bin/sh\nid -u\n", mode=0o4755)
    make.add(tar, "etc/hard", kind=tarfile.LNKTYPE, link="etc/stays")
    make.add(tar, "etc/soft", kind=tarfile.SYMTYPE, link="/etc/stays")


LAYERS = [make.tar_bytes(lower_layer), make.tar_bytes(upper_layer)]
CONFIG = {"Env": ["A=1", "PATH=/bin"], "User": "app:staff", "WorkingDir": "/work/here", "Labels": {"k": "v"}, "Cmd": ["sh"]}


def check_layers(run, image):
    done = run(image, "cat /etc/motd; echo; ls /data /again; cat /etc/hard /etc/soft; echo; stat -c '%a %G' /srv; stat -c %a /bin/sudo; "
                      "test -e /etc/gone || echo gone; echo $A $PATH; id -u; id -g; echo $PWD")  # fmt: skip
    assert [line for line in done.stdout.split("\n") if line] == [
        "from above", "/again:", "y", "/data:", "new", "ss", "2775 staff", "4755", "gone", "1 /bin", "1000", "50", "/work/here",
    ], done.stdout + done.stderr  # fmt: skip


@pytest.mark.parametrize("compression", make.COMPRESSIONS)
def test_docker_archive(images, archive, run, compression):
    data = make.docker_archive(LAYERS, CONFIG, tags=[f"app:{compression}", f"registry.example/app:{compression}"], compression=compression)
    images.import_(archive(data))
    check_layers(run, f"app:{compression}")
    check_layers(run, f"registry.example/app:{compression}")


@pytest.mark.parametrize("compression", make.COMPRESSIONS)
@pytest.mark.parametrize("nested", [False, True])
def test_oci_archive(images, archive, run, compression, nested):
    name = f"oci-{compression}-{nested}".lower()
    images.import_(archive(make.files_tar(make.oci_files(LAYERS, CONFIG, name=name, compression=compression, nested=nested))))
    check_layers(run, name)


def test_oci_directory(images, tmp_path, run):
    for name, data in make.oci_files(LAYERS, CONFIG, name="").items():
        path = tmp_path / "layout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    images.import_(tmp_path / "layout", "--name", "oci-directory")
    check_layers(run, "oci-directory")


def test_compressed_docker_archive_from_standard_input(images, run):
    data = make.COMPRESSIONS["gzip"](make.docker_archive(LAYERS, CONFIG, tags=["piped:1"]))
    done = subprocess.run(images.command("import", "-"), input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    check_layers(run, "piped:1")


def test_layers_are_stored_once(images, archive, run):
    empty = make.tar_bytes(lambda tar: None)
    data = make.docker_archive([LAYERS[0], empty, LAYERS[1], empty, LAYERS[1]], CONFIG, tags=["again:1"])
    before = images.contents()[0][0]
    said = images.import_(archive(data))
    assert "known" in said, said
    assert len(set(images.contents()[0][0]) - set(before)) <= 3
    image = next(image for image in images.list() if "again:1" in image["names"])
    assert len(image["layers"]) == 3, "a layer that comes again counts once, where it comes last"
    assert image["config"]["labels"] == {"k": "v"}
    check_layers(run, "again:1")


def test_many_layers(images, archive, run):
    layers = [LAYERS[0]] + [make.tar_bytes(lambda tar, i=i: (make.add(tar, f"n/{i}", str(i)), make.add(tar, "last", str(i)))) for i in range(100)]
    images.import_(archive(make.docker_archive(layers, tags=["many:1"])))
    assert run("many:1", "cat /last; echo; ls /n | cat").stdout.split() == ["99", *sorted(str(i) for i in range(100))]
    too_many = make.docker_archive([make.tar_bytes(lambda tar, i=i: make.add(tar, f"n{i}", "")) for i in range(260)], tags=["more:1"])
    assert "250 layers" in images.refuse(archive(too_many))


def test_plain_directory(images, tmp_path, run):
    root = make.write_root(tmp_path / "root")
    os.mkfifo(root / "pipe")
    os.mknod(root / "null", 0o666 | 0o020000, os.makedev(1, 3))
    os.link(root / "etc/passwd", root / "etc/same")
    os.setxattr(root / "etc/passwd", "user.note", b"kept")
    said = images.import_(root, "--name", "from-directory", "--user", "1000:50")
    assert "1 device" in said, said
    done = run("from-directory", "id; stat -c %h /etc/same; stat -c %F /pipe; ls /null")
    assert done.stdout.split("\n")[0].startswith("uid=1000(app) gid=50(staff)"), done.stdout
    assert done.stdout.split("\n")[1:] == ["2", "fifo"]
    assert "/null" in done.stderr
    layer = next(image for image in images.list() if "from-directory" in image["names"])["layers"][0]
    stored = images.state_dir / "images/store/layers" / layer
    assert os.getxattr(stored / "etc/passwd", "user.note") == b"kept"
    assert (stored / "home/app").stat().st_uid == 1000, "owners are kept as the image has them"


def test_writes_do_not_reach_the_image(plain, run):
    assert run(plain, "echo changed > /home/app/x; cat /home/app/x").stdout == "changed"
    assert run(plain, "ls -a /home/app").stdout.split() == [".", ".."]


def test_an_image_in_use_is_not_removed(images, archive, api, run):
    images.import_(archive(make.root_tar(lambda tar: make.add(tar, "mark", "1"))), "--name", "busy")
    sandbox_id = api.create(image={"uri": "busy"}, entrypoint=["sleep", "600"])["id"]
    refused = images.run("rm", "busy")
    assert refused.returncode == 1 and sandbox_id in refused.stderr, refused
    assert "busy" in images.names()
    # A second import takes the name; the files of the first stay for its sandbox.
    images.import_(archive(make.root_tar(lambda tar: make.add(tar, "mark", "2"))), "--name", "busy")
    assert run("busy", "cat /mark").stdout == "2"
    assert api.run(sandbox_id, "cat /mark; echo; ls /bin/ls").stdout.split() == ["1", "/bin/ls"]
    before = len(images.contents()[0][0])
    assert images.run("rm", "--force", "busy").returncode == 0
    assert api.run(sandbox_id, "cat /etc/group; ls /bin/cat").exit_code == 0
    api.delete(sandbox_id)
    images.import_(archive(make.root_tar()), "--name", "other")  # the next writer collects what nobody uses
    assert len(images.contents()[0][0]) < before
    assert images.contents()[0][1:] == [[], []]


def test_removed_images_are_gone(images, archive, api):
    images.import_(archive(make.root_tar(lambda tar: make.add(tar, "only-here", "x"))), "--name", "short-lived", "--name", "second-name")
    layers = images.contents()[0][0]
    assert images.run("rm", "short-lived").returncode == 0
    assert images.contents()[0][0] == layers, "it has another name"
    assert images.run("rm", "second-name").returncode == 0
    assert len(images.contents()[0][0]) == len(layers) - 1
    assert_envelope(api.post_create(image={"uri": "short-lived"}), 400, "IMAGE::NOT_FOUND")
    gone = images.run("rm", "short-lived")
    assert gone.returncode == 1 and "osb images ls" in gone.stderr


def test_the_store_survives_a_restart(host, plain, api):
    host.restart()
    sandbox_id = api.create(image={"uri": plain}, entrypoint=["sleep", "600"])["id"]
    assert api.run(sandbox_id, "echo $GREETING").stdout == "hello"
    api.delete(sandbox_id)


def test_a_crash_of_the_host_costs_at_most_unwritten_images(host, images, archive, plain, api, run):
    """A layer that carries an earlier boot was never seen on disk: the image is given up, not served in pieces."""
    images.import_(archive(make.root_tar(lambda tar: make.add(tar, "unlucky", "x"))), "--name", "unlucky")
    layer = next(image for image in images.list() if "unlucky" in image["names"])["layers"][0]
    path = images.state_dir / "images/store/layers" / layer
    marks = lambda: [name for name in os.listxattr(path) if name == "trusted.opensandbox.boot"]  # noqa: E731
    wait_for(lambda: not marks(), 60, "the layer is known to be on disk")
    os.setxattr(path, "trusted.opensandbox.boot", b"00000000-0000-0000-0000-000000000000")
    host.restart()
    assert_envelope(api.post_create(image={"uri": "unlucky"}), 400, "IMAGE::NOT_FOUND")
    assert "import it again" in host.log_tail()
    assert not path.exists() and "unlucky" not in images.names()
    assert run(plain, "echo $GREETING").stdout == "hello"


class TestUsage:
    @pytest.mark.parametrize("words, status, said", [
        (["import"], 2, "SOURCE"), (["import", "/no/such/file"], 1, "No such file"), (["import", "/dev/null"], 1, "neither"),
        (["import", "/", "--name", "host"], 1, "host"), (["import", "x", "--max-size", "much"], 2, "bytes"), (["rm"], 2, "NAME"),
        (["import", "x", "--workdir", "relative"], 2, "absolute"), ([], 2, "subcommand"),
    ])  # fmt: skip
    def test_mistakes(self, images, words, status, said):
        done = images.run(*words) if words else subprocess.run([images.osb, "images"], capture_output=True, text=True)
        assert done.returncode == status, done
        assert said in done.stderr, done.stderr

    def test_unknown_user_of_the_image(self, images, archive):
        assert "not in its /etc/passwd" in images.refuse(archive(make.root_tar()), "--name", "x", "--user", "nobody-here")

    def test_list(self, images, plain):
        done = images.run("ls")
        assert done.stdout.splitlines()[0].split() == ["NAME", "ID", "LAYERS", "SIZE", "AGE"]
        assert any(line.split()[0] == plain for line in done.stdout.splitlines())

    def test_needs_root(self, images, archive):
        path = archive(make.root_tar())
        done = subprocess.run(images.command("import", path), capture_output=True, text=True, user=65534, group=65534, extra_groups=[])
        assert done.returncode == 1, done


def big_archive(path, megabytes=48, files=1500):
    """Large enough that an import takes a while."""
    block = random.Random(7).randbytes(megabytes * 1024 * 1024 // files)
    with tarfile.open(path, "w") as tar:
        make.fill_root(tar)
        for i in range(files):
            make.add(tar, f"data/{i % 40}/{i}", block)
    return path


def test_interrupted_imports_leave_nothing(images, tmp_path):
    path = big_archive(tmp_path / "big.tar")
    before = images.contents()
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(images.command("import", path, "--name", "never"), stderr=subprocess.PIPE, text=True)
        staging = images.state_dir / "images/store/staging"
        end = time.monotonic() + 20
        while not any(p for p in staging.iterdir() if (p / "data").exists()) and process.poll() is None:
            assert time.monotonic() < end
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130, said
        assert "interrupted" in said
        assert images.contents() == before


def test_kill_9_at_any_moment_leaves_a_usable_store(images, tmp_path, run):
    path = big_archive(tmp_path / "big.tar")
    began = time.monotonic()
    images.import_(path, "--name", "measured")
    usual = time.monotonic() - began
    assert images.run("rm", "measured").returncode == 0
    before = images.contents()
    chance = random.Random(20)
    for _ in range(12):
        process = subprocess.Popen(images.command("import", path, "--name", "killed", "-q"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, usual * 1.1))
        process.kill()
        process.wait(10)
        # Whatever is named is whole; what is not named is swept by the next writer.
        if "killed" in images.names():
            assert run("killed", "ls /data/0 | cat | tail -n 1; cat /etc/group").exit_code == 0
        assert images.run("rm", "--force", "killed").returncode in (0, 1)
    images.import_(path, "--name", "after")
    assert run("after", "ls /data").stdout.split()[0] == "0"
    assert images.run("rm", "--force", "after").returncode == 0
    left = images.contents()
    assert left[0][1:] == [[], []] and left[1] == before[1]
