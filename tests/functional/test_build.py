"""`osb images build`: every instruction, stages, the cache, the context, what is refused, and what a Ctrl-C leaves."""

import json
import os
import re
import signal
import subprocess
import time

import pytest
from lib import images as make
from lib.api import Api
from lib.images import Images
from lib.plugin import shared_service
from lib.waiting import wait_for


@pytest.fixture(scope="module")
def service(bin_dir, request):
    return shared_service(request, bin_dir)


@pytest.fixture(scope="module")
def api(service):
    return Api(service)


@pytest.fixture
def osb(bin_dir, api):
    def run(*words, **more):
        env = {**os.environ, "OPEN_SANDBOX_DOMAIN": f"{api.address[0]}:{api.address[1]}"}
        return subprocess.run([bin_dir / "osb", *map(str, words)], capture_output=True, text=True, timeout=120, env=env, **more)

    return run


@pytest.fixture
def build(osb, tmp_path):
    """build(dockerfile, *words, files={...}) in a context of its own; the finished command."""

    def go(dockerfile, *words, files=None):
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "Dockerfile").write_text(dockerfile)
        return osb("images", "build", tmp_path, *words)

    return go


def built(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_image(osb, image, *command):
    done = osb("run", image, "--", *command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def inspected(osb, image):
    done = osb("images", "inspect", image)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_instruction(build, osb):
    files = {"a.txt": "a\n", "b.txt": "b\n", "dir/sub/c.txt": "c\n", "run.sh": "#!/bin/sh\necho ran $1\n"}
    out = built(
        build(
            r"""# syntax=docker/dockerfile:1
# a comment
ARG BASE=host
FROM ${BASE} AS base
ARG GREETING=hello
ENV NAME=world  PAIR="two words" LAST=${NAME:-none}
LABEL maker="me" purpose=test
WORKDIR /srv/app
WORKDIR sub
RUN echo "$GREETING $NAME" > out; pwd > where; \
    # a comment between
    echo more >> out
RUN ["/bin/sh", "-c", "echo list > list"]
COPY *.txt ./
COPY --chown=user:user --chmod=640 a.txt /srv/mine
COPY dir /srv/dir
COPY ["a.txt", "/srv/with blank/"]
ADD b.txt /srv/added
COPY --chmod=0755 run.sh /usr/local/bin/run
RUN chown user /srv/app/sub
USER user
RUN id -u > whoami; echo $HOME > home
SHELL ["/bin/bash", "-c"]
RUN [[ 1 == 1 ]] && echo bash > bash
EXPOSE 8080 53/udp
ENTRYPOINT ["/usr/local/bin/run"]
CMD ["x"]
""",
            "-t", "every:1", files=files,
        )
    )  # fmt: skip
    assert re.search(r"^built every:1 [0-9a-f]{12}$", out, re.M)
    script = "cat out where list whoami home bash; ls *.txt; find /srv/dir '/srv/with blank' -type f; cat /srv/added; stat -c '%U:%G %a' /srv/mine; run 1; echo $PAIR-$LAST-$GREETING-"
    assert in_image(osb, "every:1", "sh", "-c", script).splitlines() == [
        "hello world", "more", "/srv/app/sub", "list", "1000", "/home/user", "bash",
        "a.txt", "b.txt", "/srv/dir/sub/c.txt", "/srv/with blank/a.txt",
        "b", "user:user 640", "ran 1", "two words-none--",
    ]  # fmt: skip
    record = inspected(osb, "every:1")
    assert record["entrypoint"] == ["/usr/local/bin/run"] and record["cmd"] == ["x"] and record["user"] == "user"
    assert record["workdir"] == "/srv/app/sub" and record["exposedPorts"] == ["53/udp", "8080/tcp"]
    assert record["labels"] == {"maker": "me", "purpose": "test"} and "NAME=world" in record["env"]
    assert not any(text.startswith("GREETING=") for text in record["env"]), "an ARG is not part of the image"


def test_what_a_build_knows_of_its_platform(build, osb):
    names = [side + part for side in ("TARGET", "BUILD") for part in ("PLATFORM", "OS", "ARCH", "VARIANT")]
    declared = "".join(f"ARG {name}\n" for name in names)
    show = "RUN echo " + " ".join(f"$%s," % name for name in names) + " > /srv/out\n"
    values = f"linux/{make.MACHINE}, linux, {make.MACHINE}, ,"
    built(build(f"FROM host\nRUN echo $TARGETARCH, > /srv/undeclared\n{declared}{show}", "-t", "platform"))
    assert in_image(osb, "platform", "cat", "/srv/undeclared", "/srv/out").splitlines() == [",", f"{values} {values}"]
    # In FROM without an ARG; what is written comes first, and a --build-arg before that.
    dockerfile = """FROM host AS build-%s
ARG TARGETARCH=mine TARGETOS
RUN echo $TARGETARCH $TARGETOS > /srv/out
FROM build-$TARGETARCH
"""
    built(build(dockerfile % make.MACHINE, "-t", "platform"))
    assert in_image(osb, "platform", "cat", "/srv/out") == "mine linux\n"
    built(build(dockerfile % "other", "-t", "platform", "--build-arg", "TARGETARCH=other"))
    assert in_image(osb, "platform", "cat", "/srv/out") == "other linux\n"


def test_stages(build, osb):
    dockerfile = """FROM host AS made
RUN mkdir -p /out/d && echo one > /out/d/f && chmod 750 /out/d/f && ln -s d/f /out/link
FROM made AS unused
RUN false
FROM host
COPY --from=made /out /in
COPY --from=0 /out/d/* /single
"""
    built(build(dockerfile, "-t", "staged"))
    assert in_image(osb, "staged", "sh", "-c", "cat /in/link /single; readlink /in/link; stat -c %a /in/d/f; ls /out 2>&1 | wc -l").split() == ["one", "one", "d/f", "750", "1"]
    built(build(dockerfile, "-t", "first", "--target", "MADE"))
    assert in_image(osb, "first", "cat", "/out/d/f") == "one\n"
    missing = build(dockerfile, "--target", "nope")
    assert missing.returncode == 1 and "--target" in missing.stderr
    failed = build(dockerfile, "--target", "unused")
    assert failed.returncode == 1 and "line 4: the command ended with 1" in failed.stderr


def test_the_cache(build, osb, api):
    dockerfile = """FROM host
ARG WHICH=1
RUN sleep 2; date +%s%N > /srv/when
COPY f /srv/f
RUN cat /srv/f > /srv/g; date +%s%N > /srv/later
"""
    built(build(dockerfile, "-t", "cached", files={"f": "one"}))
    stamps = in_image(osb, "cached", "cat", "/srv/when", "/srv/later").split()
    started = time.monotonic()
    out = built(build(dockerfile, "-t", "cached"))
    assert time.monotonic() - started < 2 and out.count("  cached") == 3
    assert in_image(osb, "cached", "cat", "/srv/when", "/srv/later").split() == stamps, "nothing ran again"
    # Another content: the steps from there on.
    out = built(build(dockerfile, "-t", "cached", files={"f": "two"}))
    assert out.count("  cached") == 1
    again = in_image(osb, "cached", "cat", "/srv/when", "/srv/later", "/srv/g").split()
    assert again[0] == stamps[0] and again[1] != stamps[1] and again[2] == "two"
    # Another argument, and no cache at all.
    assert built(build(dockerfile, "-t", "cached", "--build-arg", "WHICH=2")).count("  cached") == 0
    assert built(build(dockerfile, "-t", "cached", "--no-cache")).count("  cached") == 0
    # A restart forgets nothing; prune does.
    api.service.kill_server()
    assert built(build(dockerfile, "-t", "cached")).count("  cached") == 3
    pruned = osb("images", "prune")
    assert pruned.returncode == 0 and "kept steps of builds" in pruned.stdout
    assert api.call("GET", "/snapshots").json["items"] == []
    assert in_image(osb, "cached", "cat", "/srv/g").strip() == "two", "the image has its own hold on its layers"
    assert built(build(dockerfile, "-t", "cached")).count("  cached") == 0


def test_what_is_ignored(build, osb):
    files = {".dockerignore": "# comment\n*.log\nsecret\n!keep.log\n**/deep.tmp\n", "a.log": "x", "keep.log": "k", "secret/s": "s", "in/x/deep.tmp": "d", "in/x/y": "y"}
    built(build("FROM host\nCOPY . /ctx\n", "-t", "ignored", files=files))
    assert in_image(osb, "ignored", "sh", "-c", "cd /ctx; find . -type f | sort").split() == ["./.dockerignore", "./Dockerfile", "./in/x/y", "./keep.log"]
    hidden = build("FROM host\nCOPY a.log /x\n")
    assert hidden.returncode == 1 and "line 2: a.log is hidden by .dockerignore" in hidden.stderr


def test_the_context_has_no_way_out(build, osb, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("outside")
    (tmp_path / "up").symlink_to(f"../{outside.name}")
    (tmp_path / "absolute").symlink_to("/etc/hostname")
    (tmp_path / "inside").symlink_to("real")
    (tmp_path / "real").write_text("real")
    for source in ("up", "absolute", f"../{outside.name}", "/etc/hostname"):
        refused = build(f"FROM host\nCOPY {source} /x\n")
        assert refused.returncode == 1 and "line 2: " in refused.stderr and "is not there" in refused.stderr, source
    built(build("FROM host\nCOPY inside /x\nCOPY . /all\n", "-t", "links"))
    # In a directory a link stays what it is.
    assert in_image(osb, "links", "sh", "-c", "cat /x; echo; readlink /all/up /all/absolute /all/inside").split() == ["real", f"../{outside.name}", "/etc/hostname", "real"]
    os.mkfifo(tmp_path / "pipe")
    refused = build("FROM host\nCOPY . /all\n")
    assert refused.returncode == 1 and "pipe is neither" in refused.stderr


@pytest.mark.parametrize(
    "dockerfile, words",
    [
        ("FROM host\nHEALTHCHECK CMD x\n", "line 2: HEALTHCHECK is not supported"),
        ("FROM host\n\nVOLUME /x\n", "line 3: VOLUME is not supported"),
        ("FROM host\nONBUILD RUN x\n", "line 2: ONBUILD is not supported"),
        ("FROM host\nFETCH x\n", "line 2: FETCH is no instruction that is known"),
        ("FROM scratch\n", "line 1: FROM scratch is not supported"),
        ("FROM --platform=linux/arm64 host\n", "line 1: FROM --platform is not supported"),
        ("FROM host\nRUN --mount=type=cache,target=/x true\n", "line 2: RUN --mount is not supported"),
        ("FROM host\nCOPY --link a b\n", "line 2: COPY --link is not supported"),
        ("FROM host\nRUN cat <<EOF\nEOF\n", "line 2: here-documents (<<) are not supported"),
        ("FROM host\nADD https://registry.example/x /x\n", "line 2: ADD of a URL is not supported"),
        ("FROM host\nADD x.tar.gz /x\n", "line 2: ADD does not unpack archives"),
        ("FROM host\nCOPY --chmod=u+x x.tar.gz /x\n", "line 2: --chmod takes an octal number"),
        ("FROM host\nCOPY --chmod=4755 x.tar.gz /x\n", "line 2: --chmod=4755: files arrive without set-id and sticky bits; write --chmod=755 and RUN chmod 4755"),
        ("FROM host\nCOPY --chmod=1777 x.tar.gz /x\n", "line 2: --chmod=1777: "),
        ("FROM host\nENV A=${B#x}\n", "line 2: ${B...}: only"),
        ("RUN x\n", "line 1: RUN before the first FROM"),
        ("# nothing\n", "the file has no FROM"),
        ("FROM host\nRUN exit 7\n", "line 2: the command ended with 7"),
        ("FROM host\nUSER nobody-knows\nRUN true\n", "line 3: "),
        ("FROM host\nCOPY missing /x\n", "line 2: missing is not there"),
        ("FROM host\nCOPY --from=nope/nothing:here /x /x\n", "line 2: "),
    ],
)
def test_what_is_refused_is_named(build, api, dockerfile, words):
    done = build(dockerfile, files={"x.tar.gz": "x"})
    assert done.returncode == 1 and "Dockerfile: " in done.stderr and words in done.stderr, done.stderr
    assert api.call("GET", "/sandboxes").json["items"] == []


def test_without_a_step_and_without_a_name(build, osb, api):
    out = built(build("FROM host\nENV ONLY=this\nCMD echo hi\n"))
    name = re.search(r"^built (build/[0-9a-f]{12}) ", out, re.M)[1]
    assert in_image(osb, name, "sh", "-c", "echo $ONLY") == "this\n"
    assert inspected(osb, name)["cmd"] == ["/bin/sh", "-c", "echo hi"]
    # Upon an image that was built: its variables are there.
    quiet = built(build(f"FROM {name}\nENV MORE=$ONLY-more\nRUN echo $MORE > /srv/f\n", "-t", "upon", "-q"))
    assert re.fullmatch(r"[0-9a-f]{64}\n", quiet)
    assert in_image(osb, "upon", "sh", "-c", "cat /srv/f; echo $ONLY") == "this-more\nthis\n"


def test_upon_a_small_image(build, osb, service, bin_dir, tmp_path):
    """One that has hardly any program: files come and go without the help of any."""
    images = Images(bin_dir, service.config_path, service.state_dir)
    archive = tmp_path / "root.tar"
    archive.write_bytes(make.root_tar())
    images.import_(archive, "--name", "small", "--env", "FROM_BASE=yes", "--user", "app", "--workdir", "/home/app")
    (tmp_path / ".dockerignore").write_text("root.tar")
    dockerfile = """FROM small AS one
COPY --chown=app dir mine/
USER root
RUN echo $FROM_BASE > /kept && test -e mine/f
USER app:staff
RUN id -u > made; id -g >> made
FROM small
COPY --from=one /kept /home/app/m* /copied/
CMD ["cat", "/copied/made"]
"""
    built(build(dockerfile, "-t", "small/built", files={"dir/f": "f\n", "dir/g/h": "h\n"}))
    out = in_image(osb, "small/built", "sh", "-c", "cat /copied/kept /copied/made /copied/f /copied/g/h; stat -c %u:%g /copied/made; id -u")
    assert out.split() == ["yes", "1000", "50", "f", "h", "0:0", "1000"]
    assert inspected(osb, "small/built")["layers"] == 2
    # The base is held by the steps, and by the image when those are gone.
    refused = images.run("rm", "small")
    assert refused.returncode == 1 and "snapshot" in refused.stderr
    assert osb("images", "prune").returncode == 0
    assert images.run("rm", "small").returncode == 0
    assert in_image(osb, "small/built", "cat", "/copied/f") == "f\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_sandbox(bin_dir, api, tmp_path, number):
    (tmp_path / "Dockerfile").write_text("FROM host\nRUN echo ready; sleep 60\n")
    env = {**os.environ, "OPEN_SANDBOX_DOMAIN": f"{api.address[0]}:{api.address[1]}"}
    with subprocess.Popen([bin_dir / "osb", "images", "build", tmp_path], stdout=subprocess.PIPE, text=True, env=env) as running:
        for line in running.stdout:
            if line.strip() == "ready":
                break
        assert len(api.call("GET", "/sandboxes").json["items"]) == 1
        running.send_signal(number)
        assert running.wait(20) == 128 + number
    assert api.call("GET", "/sandboxes").json["items"] == []


def test_commit_by_command(osb, api):
    sandbox = api.create(metadata={"name": "workshop"})["id"]
    api.run(sandbox, "echo here > /srv/f")
    done = osb("commit", sandbox, "by/command", "--env", "A=b", "--workdir", "/srv", "--expose", "80")
    assert done.returncode == 0 and re.fullmatch(r"[0-9a-f]{64}\n", done.stdout), done.stderr
    for called in ("workshop", sandbox[:23]):
        assert osb("commit", called, "by/name").returncode == 0, "as other commands take it"
        assert in_image(osb, "by/name", "cat", "/srv/f") == "here\n"
    unknown = osb("commit", "nobody", "by/name")
    assert unknown.returncode == 1 and "no sandbox has an id that begins so, or this name" in unknown.stderr
    assert api.delete(sandbox).status == 204
    assert in_image(osb, "by/command", "sh", "-c", "cat f; echo $A") == "here\nb\n"
    refused = osb("images", "commit", sandbox, "by/command")
    assert refused.returncode == 1 and "SANDBOX::NOT_FOUND" in refused.stderr
    wait_for(lambda: api.call("GET", "/sandboxes").json["items"] == [], 10, "nothing is left")
