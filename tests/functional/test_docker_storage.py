"""What containers are made of and keep: images, snapshots, pools, volumes, directories of the host."""

import os
import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from lib import images as make
from lib import pools as of
from lib import snapshots
from lib.api import Api, assert_envelope
from lib.docker_engine import GROUP
from lib.dockerd import IMAGE, PLAIN_USER, SLEEPER, EngineRegistry, create, nothing_left, ours, service_on, state
from lib.waiting import wait_for


@pytest.fixture
def api(docker, engine):
    """Every test leaves nothing behind."""
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


# Snapshots


def test_a_snapshot_and_what_is_made_of_it(api, engine):
    source = create(api, image={"uri": PLAIN_USER}, env={"SECRET": "s3cr3t"}, metadata={"team": "red"})
    api.run(source, "echo one > /tmp/one")
    made = snapshots.make(api, source, "first")
    api.run(source, "echo later > /tmp/later")
    restored = snapshots.restore(api, made["id"], entrypoint=SLEEPER)
    assert api.run(restored, "cat /tmp/one; ls /tmp/later; id -u; echo $SECRET.$OF_IMAGE").stdout.split() == ["one", "1000", ".yes"]
    assert api.get(restored).get("metadata") in (None, {}), "what its source had is not its own"
    image = engine.inspect(f"opensandbox-snapshots:{made['id']}")
    assert "s3cr3t" not in str(image) and source not in str(image["Config"]), "the image has nothing of the sandbox but its files"
    assert image["Config"]["Labels"]["team"] == "" and image["Config"]["Labels"]["opensandbox.io/owner"] == ""
    assert api.run(source, "echo on").stdout == "on", "it goes on"
    used = api.call("DELETE", f"/snapshots/{made['id']}")
    assert used.status == 409, used
    # A snapshot of what was made from one, which then goes first.
    api.run(restored, "echo two > /tmp/two")
    second = snapshots.make(api, restored)
    last = snapshots.restore(api, second["id"], entrypoint=SLEEPER)
    assert api.delete(restored).status == 204
    assert api.call("DELETE", f"/snapshots/{made['id']}").status == 204
    assert api.run(last, "cat /tmp/one /tmp/two").stdout.split() == ["one", "two"]


def test_a_snapshot_of_one_that_is_paused(api, engine):
    source = create(api)
    api.run(source, "echo kept > /tmp/file")
    assert api.call("POST", f"/sandboxes/{source}/pause").status == 202
    state(api, source, "Paused")
    made = snapshots.make(api, source)
    assert api.status(source)["state"] == "Paused" and engine.inspect(ours(engine)[0])["State"]["Paused"]
    assert api.run(snapshots.restore(api, made["id"], entrypoint=SLEEPER), "cat /tmp/file").stdout == "kept"


def test_forks_changes_and_back_again(api):
    source = create(api, env={"COLOUR": "blue"})
    api.run(source, "echo kept > /tmp/file; rm /etc/passwd")
    changes = {(change["path"], change["kind"]) for change in changes_of(api, source)}
    assert {("/tmp/file", "Added"), ("/etc/passwd", "Deleted")} <= changes
    assert not any(path.startswith("/opt/opensandbox") for path, _ in changes), changes
    first, second = snapshots.fork(api, source, 2)
    for fork in (first, second):
        assert api.run(fork, "cat /tmp/file; echo $COLOUR").stdout.split() == ["kept", "blue"]
    assert api.delete(first).status == 204
    assert api.run(second, "cat /tmp/file").stdout == "kept", "what they share goes with the last of them"
    made = snapshots.make(api, source)
    api.run(source, "echo changed > /tmp/file")
    back = snapshots.rollback(api, source, made["id"])
    assert back.status in (200, 202), back
    wait_for(lambda: api.run(source, "cat /tmp/file").stdout == "kept", 10, "it is as it was")


def changes_of(api, sandbox):
    reply = api.call("GET", f"/sandboxes/{sandbox}/diff")
    assert reply.status == 200, reply
    return reply.json["changes"]


# Pools


def test_a_pool(api, engine):
    of.make(api, shape=of.template(image={"uri": IMAGE}, env={"A": "pool"}), least=1, most=1)
    of.filled(api)
    (waiting,) = ours(engine)
    claimed = of.claim(api, entrypoint=["sh", "-c", "echo entry $A $B > /tmp/e; exec sleep 1000"], env={"B": "mine"})
    assert waiting in ours(engine)
    wait_for(lambda: api.run(claimed, "cat /tmp/e").stdout == "entry pool mine", 5, "the entry process has the claim's environment")
    assert api.run(claimed, "echo $OPENSANDBOX_ID").stdout == claimed
    of.filled(api)
    # One that dies while it waits is nobody's, and another takes its place.
    (name,) = [name for name in ours(engine) if name != waiting]
    engine.docker("rm", "-f", name)
    wait_for(lambda: name not in ours(engine) and len(ours(engine)) == 2, 20, "another one is made")
    of.filled(api)
    assert api.run(of.claim(api, entrypoint=SLEEPER), "echo on").stdout == "on"
    of.delete(api)


def test_ready_sandboxes(bin_dir, engine):
    """[sandbox] pool_size."""
    service = service_on(bin_dir, engine, sections={"sandbox": {"pool_size": 1, "pool_image": IMAGE}})
    try:
        api = Api(service.start())
        wait_for(lambda: ours(engine), 20, "one is made")
        (waiting,) = ours(engine)

        def is_taken():
            """Nothing says when it is ready but that it is given away."""
            sandbox = create(api)
            taken = "taken ready" in api.call("GET", f"/sandboxes/{sandbox}/diagnostics/events").body.decode()
            assert api.delete(sandbox).status == 204
            return taken

        wait_for(is_taken, 20, "a create takes it")
        assert waiting not in ours(engine), "it went with its sandbox"
    finally:
        service.destroy()
        engine.docker("rm", "-f", *ours(engine), check=False)


# Volumes


def volume(name, path, **more):
    return {"name": "v", "mountPath": path, "pvc": {"claimName": name, **more}}


def test_named_volumes(api, engine):
    writer = create(api, volumes=[volume("cache", "/data")])
    api.run(writer, "echo kept > /data/file")
    reader = create(api, volumes=[{**volume("cache", "/data"), "readOnly": True}])
    assert api.run(reader, "cat /data/file").stdout == "kept"
    assert "Read-only" in api.run(reader, "touch /data/x").stderr
    (listed,) = api.call("GET", "/volumes").json["items"]
    assert (listed["name"], listed["sandboxes"]) == ("cache", 2), listed
    assert_envelope(api.call("DELETE", "/volumes/cache"), 409)
    for sandbox in (writer, reader):
        assert api.delete(sandbox).status == 204
    assert "cache" in engine.volumes(), "it outlives them"
    assert api.call("DELETE", "/volumes/cache").status == 204
    assert_envelope(api.call("DELETE", "/volumes/cache"), 404)


def test_volumes_that_go_with_the_last_sandbox(api, engine):
    fleeting = {"deleteOnSandboxTermination": True}
    first, second = create(api, volumes=[volume("passing", "/data", **fleeting)]), create(api, volumes=[volume("passing", "/data")])
    assert api.delete(first).status == 204
    assert "passing" in engine.volumes(), "another has it"
    assert api.delete(second).status == 204
    wait_for(lambda: "passing" not in engine.volumes(), 10, "it has gone")


def test_volumes_that_are_refused(api, engine):
    missing = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[volume("none", "/data", createIfNotExists=False)])
    assert missing.status in (400, 404) and "no such volume" in missing.json["message"], missing
    sized = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[volume("sized", "/data", storage="1Gi")])
    assert sized.status == 400 and "size" in sized.json["message"], sized
    # An engine makes volumes before it sees that the rest cannot be: they do not stay.
    wrong = api.post_create(image={"uri": IMAGE}, entrypoint=["/no/program"], volumes=[volume("half", "/data")])
    assert wrong.status == 400, wrong


@contextmanager
def volume_of_others(engine, name, *labels):
    engine.docker("volume", "create", *(word for label in labels for word in ("--label", label)), name)
    try:
        yield name
    finally:
        engine.docker("volume", "rm", name)


def test_a_volume_that_somebody_else_has_made(api, engine):
    """It is used and left as it is, whatever the request says."""
    with volume_of_others(engine, "theirs") as name:
        engine.docker("run", "--rm", "-v", "theirs:/d", IMAGE, "sh", "-c", "echo kept > /d/file")
        before = engine.docker("volume", "inspect", name).stdout
        sandbox = create(api, volumes=[volume(name, "/data", deleteOnSandboxTermination=True)])
        assert api.run(sandbox, "cat /data/file; echo more >> /data/file").stdout == "kept"
        assert api.call("GET", "/volumes").json["items"] == []
        assert_envelope(api.call("DELETE", f"/volumes/{name}"), 404)
        assert api.delete(sandbox).status == 204
        again = create(api, volumes=[volume(name, "/data", createIfNotExists=False)])
        assert api.run(again, "cat /data/file").stdout.split() == ["kept", "more"]
        assert api.delete(again).status == 204
        assert engine.docker("volume", "inspect", name).stdout == before, "nothing has marked it"


@pytest.mark.parametrize("name, labels", [
    ("boot", ["opensandbox.io/boot-of=x"]),
    ("going", ["opensandbox.io/volume-goes-with=x"]),
    ("tenants", ["opensandbox.io/volume-managed-by=server", "opensandbox.io/volume-of=somebody"]),
    ("opensandbox-runtime-x", []),
])  # fmt: skip
def test_volumes_that_servers_keep_for_themselves(api, engine, name, labels):
    with volume_of_others(engine, name, *labels):
        refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[volume(name, "/data")])
        assert_envelope(refused, 400, "VOLUME::PVC_NOT_FOUND")
        assert "not made for these sandboxes" in refused.json["message"], refused


def test_volumes_of_others_can_be_kept_away(bin_dir, engine):
    service = service_on(bin_dir, engine, docker={"foreign_volumes": False})
    try:
        with volume_of_others(engine, "theirs"):
            refused = Api(service.start()).post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[volume("theirs", "/data")])
            assert_envelope(refused, 400, "VOLUME::PVC_NOT_FOUND")
            assert "opensandbox.io/volume-managed-by" in refused.json["message"], refused
    finally:
        service.destroy()


def test_a_volume_that_its_owner_has_marked(api, engine):
    engine.docker("volume", "create", "--label", "opensandbox.io/volume-managed-by=me", "marked")
    try:
        sandbox = create(api, volumes=[volume("marked", "/data")])
        api.run(sandbox, "echo kept > /data/file")
        assert api.delete(sandbox).status == 204
        assert_envelope(api.call("DELETE", "/volumes/marked"), 404)
    finally:
        engine.docker("volume", "rm", "marked")


# Directories of volumes, with an engine that shows volumes as a whole only


def part(name, path, below, **more):
    return {**volume(name, path, **more), "subPath": below}


def holders(engine):
    return [name for name in engine.containers() if name.startswith("opensandbox-volumes-")]


@pytest.fixture
def holding(engine):
    if engine.kind == "newer":
        pytest.skip("this engine shows directories of volumes by itself: test_docker_newer.py")
    return engine


def test_a_volume_of_which_a_sandbox_has_a_part(api, docker, holding):
    """The engine does not know that it is in use, so a container beside it says so: until the last one goes, and over a restart."""
    fleeting = {"deleteOnSandboxTermination": True}
    whole = create(api, volumes=[volume("shared", "/data", **fleeting)])
    api.run(whole, "mkdir -p /data/a/b; echo yes > /data/a/b/file; chmod 700 /data/a; chown 1234 /data/a")
    sandbox = create(api, volumes=[part("shared", "/part", "a/b", **fleeting), {**part("shared", "/new", "made/here"), "name": "w", "readOnly": True}])
    assert api.run(sandbox, "cat /part/file; ls /part; echo more > /part/written; touch /new/x 2>&1").stdout.split()[:2] == ["yes", "file"]
    assert api.run(whole, "cat /data/a/b/written; stat -c %u /data/made/here; ls -A /data/made/here").stdout.split() == ["more", "0"]
    assert len(holders(holding)) == 1
    assert api.delete(whole).status == 204
    (listed,) = api.call("GET", "/volumes").json["items"]
    assert (listed["name"], listed["sandboxes"]) == ("shared", 1)
    assert_envelope(api.call("DELETE", "/volumes/shared"), 409, "VOLUME::IN_USE")
    docker.restart()
    wait_for(lambda: api.run(sandbox, "cat /part/written").stdout == "more", 20, "it is taken up, with its volume")
    assert "shared" in holding.volumes()
    assert api.delete(sandbox).status == 204
    wait_for(lambda: "shared" not in holding.volumes(), 10, "it goes with the last one")
    assert not holders(holding)


def test_creates_with_a_part_that_fail_leave_nothing(api, holding):
    for fields in ({"entrypoint": ["/no/program"]}, {"volumes": [part("half", "/data", "a"), {**volume("none", "/b", createIfNotExists=False), "name": "n"}]}):
        wrong = api.post_create(**{"image": {"uri": IMAGE}, "entrypoint": SLEEPER, "volumes": [part("half", "/data", "a")], **fields})
        assert wrong.status == 400, wrong
    assert not holders(holding)
    whole = create(api, volumes=[volume("half", "/data", deleteOnSandboxTermination=True)])
    api.run(whole, "ln -s /etc /data/out; ln -s . /data/in; echo x > /data/file")
    for below in ("out", "out/x", "in", "file", "file/x"):
        refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[part("half", "/data", below)])
        assert_envelope(refused, 400, "VOLUME::INVALID_SUB_PATH")
        assert "volumes[0].subPath" in refused.json["message"] and str(holding.directory) not in refused.body.decode(), refused
    assert not holders(holding)


def test_a_volume_that_is_mounted_when_it_is_used_has_no_parts(api, holding):
    holding.docker("volume", "create", "--opt", "type=tmpfs", "--opt", "device=tmpfs", "mounted")
    try:
        refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[part("mounted", "/data", "a")])
        assert_envelope(refused, 400, "VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER")
    finally:
        holding.docker("volume", "rm", "mounted")


def test_a_part_that_is_swapped_for_a_link(bin_dir, holding):
    """By a sandbox that has the whole volume, after the server has had a look: the engine follows the link, and nothing of the image runs there."""
    writer = {}

    def swap():
        if writer:
            api.run(writer["id"], "mv /data/a /data/real; ln -s /etc /data/a")
            writer["done"] = True

    with engine_with_a_moment(holding, swap, b"name=sandbox-") as path:
        service = service_on(bin_dir, holding)
        try:
            api = Api(service.start())
            writer["id"] = create(api, volumes=[volume("swapped", "/data", deleteOnSandboxTermination=True)])
            api.run(writer["id"], "mkdir /data/a")
            service.stop()
            service.config_path.write_text(service.config_path.read_text().replace(str(holding.socket), str(path)))
            api = Api(service.start())
            wait_for(lambda: api.run(writer["id"], "true").exit_code == 0, 20, "it is taken up")
            reply = api.post_create(image={"uri": LOGGING}, entrypoint=SLEEPER, volumes=[part("swapped", "/data", "a")])
            assert writer.get("done") and reply.status == 400, reply
            assert_envelope(reply, 400, "VOLUME::INVALID_SUB_PATH")
            assert "another directory was in its place" in reply.json["message"], reply
            assert not os.path.exists("/etc/log"), "nothing of the image did anything there"
            assert len(ours(holding)) == 1 and not holders(holding)
            assert api.delete(writer["id"]).status == 204
        finally:
            service.destroy()
            holding.docker("volume", "rm", "-f", "swapped", check=False)


def host(path, inside="/data", **more):
    return {"name": "h" + inside.replace("/", ""), "mountPath": inside, "host": {"path": str(path)}, **more}


def test_directories_of_the_host(api, docker):
    place = docker.shared / "place"
    (place / "sub").mkdir(parents=True)
    (place / "sub/file").write_text("from the host")
    sandbox = create(api, volumes=[host(place, subPath="sub"), host(place, "/ro", readOnly=True)])
    assert api.run(sandbox, "cat /data/file").stdout == "from the host"
    api.run(sandbox, "echo from inside > /data/new")
    assert (place / "sub/new").read_text() == "from inside\n"
    assert "Read-only" in api.run(sandbox, "touch /ro/x").stderr


def test_files_of_the_host(api, docker):
    place = docker.shared / "files"
    place.mkdir()
    (place / "one").write_text("from the host\n")
    sandbox = create(api, volumes=[host(place / "one", "/data/one"), host(place, "/etc/two", subPath="one", readOnly=True)])
    assert api.run(sandbox, "cat /data/one /etc/two; echo more >> /data/one").stdout.split("\n") == ["from the host", "from the host"]
    assert (place / "one").read_text() == "from the host\nmore\n"
    assert "Read-only" in api.run(sandbox, "echo x >> /etc/two").stderr
    os.mkfifo(place / "pipe")
    refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[host(place / "pipe")])
    assert refused.status == 400 and "neither a directory nor an ordinary file" in refused.json["message"], refused


def test_links_that_stay_within(api, docker):
    """Current releases and the like: what they lead to may be named itself."""
    place = docker.shared / "releases"
    (place / "v1").mkdir(parents=True)
    (place / "v1").chmod(0o777)  # the launcher follows no link, so the server's user makes what is missing below one
    (place / "v1/file").write_text("first\n")
    (place / "current").symlink_to("v1")
    (place / "absolute").symlink_to(place / "v1")
    sandbox = create(api, volumes=[host(place / "current", "/a"), host(place, "/b", subPath="absolute/made/here")])
    assert api.run(sandbox, "cat /a/file; ls -d /a/made/here").stdout.split() == ["first", "/a/made/here"]


def test_a_missing_directory_where_only_root_may_write(api, docker):
    """The server's user may not make it, and the launcher does, as in native volumes."""
    place = docker.shared / "roots"
    place.mkdir(mode=0o755)
    os.chown(place, 0, 0)
    sandbox = create(api, volumes=[host(place / "made/here")])
    api.run(sandbox, "echo yes > /data/file")
    assert (place / "made/here/file").read_text() == "yes\n" and (place / "made").stat().st_uid != 0, "nothing is made for root"


def test_links_on_the_way_lead_nowhere(api, docker, engine):
    place = docker.shared / "links"
    place.mkdir()
    (place / "out").symlink_to("/etc")
    refused = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[host(place / "out")])
    assert refused.status in (400, 403) and "link" in refused.json["message"], refused
    outside = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, volumes=[host("/etc")])
    assert outside.status in (400, 403), outside
    assert not ours(engine)


@contextmanager
def engine_with_a_moment(engine, moment, call=b"/start"):
    """The engine through a socket of the test's own: `moment` is called, once, when a container is about to be started, or before another call."""
    once = threading.Lock()
    path = engine.directory / "between.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    os.chown(path, 0, GROUP)
    path.chmod(0o660)
    listener.listen(64)

    def copy(source, target, watch):
        with suppress(OSError):
            while piece := source.recv(65536):
                if watch and call in piece.split(b"\r\n", 1)[0] and once.acquire(blocking=False):
                    moment()
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def serve():
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                there = socket.socket(socket.AF_UNIX)
                there.connect(str(engine.socket))
                for pair in ((client, there, True), (there, client, False)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield path
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        path.unlink()


def test_a_directory_that_is_swapped_for_a_link(bin_dir, docker, engine):
    """Who may write beside it cannot make the engine mount something else: the server has looked, and execd looks before anything runs."""
    place = docker.shared / "swapped"
    (place / "target").mkdir(parents=True)
    (place / "link").symlink_to(place / "other")
    (place / "other").mkdir()

    def swap():
        (place / "target").rename(place / "real")
        (place / "link").rename(place / "target")

    with engine_with_a_moment(engine, swap) as path:
        service = service_on(bin_dir, engine, docker={"socket": str(path)}, sections={"storage": {"allowed_host_paths": [str(docker.shared)]}})
        try:
            reply = Api(service.start()).post_create(image={"uri": LOGGING}, entrypoint=SLEEPER, volumes=[host(place / "target")])
            assert reply.status == 403 or reply.status == 400, reply
            assert "another directory was in its place" in reply.json["message"], reply
            assert (place / "real").is_dir() and not list((place / "other").iterdir()), "nothing of the image did anything there"
            assert not ours(engine)
        finally:
            service.destroy()


def test_a_create_that_fails_leaves_what_others_have_put_into_its_volume(bin_dir, engine):
    """Both ask for a new volume. One has come, written and gone before the other fails."""
    other = {}

    def come_and_go():
        other["id"] = create(api, volumes=[volume("met", "/data")])
        api.run(other["id"], "echo precious > /data/file")
        assert api.delete(other["id"]).status == 204
        other["done"] = True

    with engine_with_a_moment(engine, come_and_go) as path:
        service = service_on(bin_dir, engine, docker={"socket": str(path)})
        try:
            api = Api(service.start())
            failed = api.post_create(image={"uri": IMAGE}, entrypoint=["/no/program"], volumes=[volume("met", "/data")])
            assert failed.status == 400 and other.get("done"), (failed, other)
            last = create(api, volumes=[volume("met", "/data")])
            assert api.run(last, "cat /data/file").stdout == "precious"
            assert api.delete(last).status == 204
            assert api.call("DELETE", "/volumes/met").status == 204
        finally:
            service.destroy()
            engine.docker("volume", "rm", "-f", "met", check=False)


def test_a_volume_that_goes_while_another_create_comes(bin_dir, engine):
    """It was there when the server looked, and the engine makes it again: for this sandbox, with its labels."""
    first = {}

    def go():
        assert api.delete(first["id"]).status == 204
        first["gone"] = "passing" not in engine.volumes()

    with engine_with_a_moment(engine, lambda: first and go(), b"/containers/create") as path:
        service = service_on(bin_dir, engine, docker={"socket": str(engine.socket)})
        try:
            api = Api(service.start())
            first["id"] = create(api, volumes=[volume("passing", "/data", deleteOnSandboxTermination=True)])
            service.stop()
            service.config_path.write_text(service.config_path.read_text().replace(str(engine.socket), str(path)))
            api = Api(service.start())
            second = create(api, volumes=[volume("passing", "/data", deleteOnSandboxTermination=True)])
            assert first.get("gone"), first
            assert [one["name"] for one in api.call("GET", "/volumes").json["items"]] == ["passing"]
            assert api.delete(second).status == 204
            wait_for(lambda: "passing" not in engine.volumes(), 10, "it goes with its last sandbox")
        finally:
            service.destroy()
            engine.docker("volume", "rm", "-f", "passing", check=False)


# Images that name files and programs


LOGGING, LINKED, CHECKED, LABELLED = "logging:1", "linked:1", "checked:1", "labelled:1"


@pytest.fixture(scope="module", autouse=True)
def odd_images(engine):
    made = {
        LOGGING: ["ENV EXECD_LOG_FILE=/data/log", "ENV EXECD_CLONE3_COMPAT=nonsense"],
        LINKED: ["ENV EXECD_LOG_FILE=/m1/log"],
        CHECKED: ["HEALTHCHECK --interval=1ms --timeout=1s CMD touch /tmp/checked"],
        LABELLED: ["LABEL opensandbox.io/egress=policy", 'LABEL opensandbox.io/volumes=["theirs"]'],
    }
    for name, changes in made.items():
        engine.docker("run", "--name", "odd", IMAGE, "sh", "-c", "mkdir /x && ln -s /m1/inside /x/b")
        # Podman knows no such change as the one with the check.
        engine.docker("commit", *(word for change in changes for word in ("-c", change)), "odd", name, check=name != CHECKED)
        engine.docker("rm", "odd")
    yield
    engine.docker("rmi", *made, check=False)


def test_links_of_an_image_lead_nowhere_either(api, docker):
    """What is at a mountPath is the mount itself: through a link one would see another volume's files in its place."""
    place = docker.shared / "led"
    for name in ("one/inside", "two"):
        (place / name).mkdir(parents=True)
    reply = api.post_create(image={"uri": LINKED}, entrypoint=SLEEPER, volumes=[host(place / "one", "/m1"), host(place / "two", "/x/b")])
    assert reply.status in (400, 403) and "symbolic link of the image" in reply.json["message"], reply
    assert [path.name for path in (place / "one").iterdir()] == ["inside"], "execd's log, which the image has chosen, was not begun"


def test_a_mount_that_the_images_user_cannot_see(api, docker):
    """It is said what is wrong."""
    place = docker.shared / "unseen"
    place.mkdir()
    refused = api.post_create(image={"uri": PLAIN_USER}, entrypoint=SLEEPER, volumes=[host(place, "/root/data")])
    assert refused.status == 400 and "image's user may not look" in refused.json["message"], refused


def test_an_images_health_check_does_not_run(api, engine):
    if engine.docker("image", "inspect", CHECKED, check=False).returncode != 0:
        pytest.skip("this engine commits no image with a check")
    """It would run beside execd, and before it."""
    sandbox = create(api, image={"uri": CHECKED})
    (name,) = ours(engine)
    shown = engine.inspect(name)
    assert shown["Config"]["Healthcheck"]["Test"] == ["NONE"] and "Health" not in shown["State"], shown["State"]
    assert api.run(sandbox, "ls /tmp").stdout == ""


def test_labels_of_an_image_are_not_believed(api, docker, engine):
    sandbox = create(api, image={"uri": LABELLED})
    (name,) = ours(engine)
    labels = engine.inspect(name)["Config"]["Labels"]
    assert labels["opensandbox.io/egress"] == "none" and labels["opensandbox.io/volumes"] == "[]"
    docker.restart()
    wait_for(lambda: api.run(sandbox, "true").exit_code == 0, 20, "it is taken up")
    assert snapshots.make(api, sandbox)["status"]["state"] == "Ready", "it has no policy that somebody would have to know"


def test_a_snapshot_has_no_other_name(api, engine):
    made = snapshots.make(api, create(api))
    known = engine.inspect(f"opensandbox-snapshots:{made['id']}")["Id"]
    for name in (f"docker.io/library/opensandbox-snapshots:{made['id']}", known, known.removeprefix("sha256:")):
        reply = api.post_create(image={"uri": name}, entrypoint=SLEEPER)
        assert reply.status in (400, 404) and "Id" not in reply.json, (name, reply)
    assert len(ours(engine)) == 1


# Pulls


@pytest.fixture
def registry(engine):
    """Debian's registry, where the engine sees it: on loopback of its own network."""
    with EngineRegistry(engine) as made:
        yield made


def test_an_image_for_another_machine(bin_dir, engine, registry):
    """What is here under this name does not run here: the right one is pulled, or the create says why not."""
    service = service_on(bin_dir, engine, registry={"pull_policy": "if-not-present"})
    name = registry.push("private/two", IMAGE)
    other = make.docker_archive([make.tar_bytes(lambda tar: make.add(tar, "elsewhere", "here"))], tags=[name], machine="s390x")
    engine.docker("load", input=other)
    try:
        api = Api(service.start())
        never = {"opensandbox.extensions.image-pull-policy": "never"}
        refused = api.post_create(image={"uri": name}, entrypoint=SLEEPER, extensions=never)
        assert refused.status == 400 and refused.json["code"] == "IMAGE::NOT_FOUND" and "for linux/s390x" in refused.json["message"], refused
        sandbox = create(api, image={"uri": name, "auth": registry.auth})
        assert api.run(sandbox, "echo on").stdout == "on"
        assert api.delete(sandbox).status == 204
    finally:
        service.destroy()
        engine.docker("rmi", name, check=False)


def test_pulls(bin_dir, engine, registry):
    service = service_on(bin_dir, engine, registry={"pull_policy": "if-not-present"})
    try:
        api = Api(service.start())
        name = registry.push("private/small", IMAGE)
        refused = api.post_create(image={"uri": name}, entrypoint=SLEEPER)
        assert refused.status in (400, 401, 403) and "IMAGE" in refused.json["code"], refused.json
        wrong = api.post_create(image={"uri": name, "auth": {"username": "me", "password": "wrong"}}, entrypoint=SLEEPER)
        assert wrong.status in (400, 401, 403), wrong
        missing = api.post_create(image={"uri": name + "x", "auth": registry.auth}, entrypoint=SLEEPER)
        assert missing.status in (400, 404) and "IMAGE" in missing.json["code"], missing
        # Several at once are one pull.
        before = registry.count("manifests/1")
        results = []
        threads = [threading.Thread(target=lambda: results.append(api.post_create(image={"uri": name, "auth": registry.auth}, entrypoint=SLEEPER))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [reply.status for reply in results] == [202] * 3, results
        assert registry.count("manifests/1") - before <= 3, "one pull: a HEAD, a GET, and what the engine asks besides"
        for reply in results:
            wait_for(lambda: api.run(reply.json["id"], "echo on").stdout == "on", 20, "it runs")
        never = api.post_create(image={"uri": name + "2"}, entrypoint=SLEEPER, extensions={"opensandbox.extensions.image-pull-policy": "never"})
        assert never.status in (400, 404), never
        for sandbox in api.list_all():
            assert api.delete(sandbox["id"]).status == 204
        engine.docker("rmi", name)
    finally:
        service.destroy()
