"""One script of commands, by the published command line on one sandbox and by ours on its twin: the same exit status after each, and
the same results; JSON and YAML as values, tables by their cells. What standard error says is each one's own.

Where the published one is known to be wrong (the defects of the contract), a test below has its name."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from clients import Ours, Published
from lib.api import Api
from lib.waiting import wait_for

NOBODY = "01980000-0000-7000-8000-000000000000"

# Words in braces are of the sandbox, or were taken from an earlier answer (KEEP).
SCRIPT = {
    # configuration
    "config show": "config show -o json",
    "config init": "config init -o json",
    "config init again": "config init -o json",
    "config set": "config set connection.protocol http -o json",
    "config set a switch": "config set output.color false",
    "config set what is no key": "config set nonsense x",
    "config show what was set": "config show -o yaml",
    # sandboxes
    "list": "sandbox list -m twin={twin} -o json",
    "list as yaml": "sandbox list -m twin={twin} -o yaml",
    "list as a table": "sandbox list -m twin={twin}",
    "list by state": "sandbox list -m twin={twin} -s running -o json",
    "list by a state that is none": "sandbox list -s Bogus",
    "list page 0": "sandbox list --page 0",
    "list page 2": "sandbox list -m twin={twin} --page 2 --page-size 1 -o json",
    "get": "sandbox get {id} -o json",
    "get as a table": "sandbox get {id}",
    "get nobody": f"sandbox get {NOBODY}",
    "get without id": "sandbox get",
    "renew": "sandbox renew {id} -t 20m -o json",
    "renew by nonsense": "sandbox renew {id} -t soon",
    "renew without a time": "sandbox renew {id}",
    "endpoint": "sandbox endpoint {id} -p 8000 -o json",
    "endpoint of no port": "sandbox endpoint {id} -p 0",
    "health": "sandbox health {id} -o json",
    "health in words": "sandbox health {id}",
    "metrics": "sandbox metrics {id} -o json",
    "pause": "sandbox pause {id}",
    "pause again": "sandbox pause {id} -o json",
    "resume": "sandbox resume {id} -o json",
    # commands
    "run": "command run {id} -- echo one word",
    "run without dashes": "command run {id} echo one",
    "run words with blanks": ["command", "run", "{id}", "--", "printf", "%s", "a  b'c"],
    "run in a directory": "command run {id} -w /usr -- pwd",
    "run what is a builtin": "command run {id} -- exit 3",
    "run what fails": "command run {id} -- false",
    "run what is not there": "command run {id} -- /nonsense",
    "run too long": "command run {id} -t 1s -- sleep 30",
    "run by words": "command run {id} --argv -- echo argv",
    "run as json": "command run {id} -o json -- echo one",
    "run without a command": "command run {id}",
    "background": ["command", "run", "{id}", "-d", "-o", "json", "--", "sh", "-c", "echo x; sleep 100"],
    "status": "command status {id} {execution_id} -o json",
    "status as a table": "command status {id} {execution_id}",
    "logs": "command logs {id} {execution_id} -o json",
    "interrupt": "command interrupt {id} {execution_id}",
    "interrupt again": "command interrupt {id} {execution_id}",
    "status of nothing": "command status {id} nothing",
    "session": "command session create {id} -w /tmp -o json",
    "session keeps its state": "command session run {id} {session_id} -- cd /usr",
    "session has kept it": "command session run {id} {session_id} -- pwd",
    "session fails": "command session run {id} {session_id} -- false",
    "session delete": "command session delete {id} {session_id}",
    "session delete again": "command session delete {id} {session_id}",
    # files
    "write": "file write {id} /tmp/a.txt -c hello",
    "write stdin": ("file write {id} /tmp/b.txt --mode 0600 -o json", "from standard input\n"),
    "cat": "file cat {id} /tmp/a.txt",
    "cat what came from stdin": "file cat {id} /tmp/b.txt",
    "cat nothing": "file cat {id} /tmp/nothing",
    "upload": "file upload {id} given.txt /tmp/up.txt",
    "upload nothing": "file upload {id} nothing.txt /tmp/up.txt",
    "download": "file download {id} /tmp/up.txt made/here.txt -o json",
    "mkdir": "file mkdir {id} /tmp/d1 /tmp/d2 --mode 0700",
    "mkdir as json": "file mkdir {id} /tmp/d3 -o json",
    "mv": "file mv {id} /tmp/up.txt /tmp/d1/moved.txt -o json",
    "mv nothing": "file mv {id} /tmp/up.txt /tmp/d1/moved.txt",
    "chmod": "file chmod {id} /tmp/d1/moved.txt --mode 0640",
    "chmod without mode": "file chmod {id} /tmp/d1/moved.txt",
    "replace": "file replace {id} /tmp/a.txt --old hello --new bye",
    "cat what was replaced": "file cat {id} /tmp/a.txt",
    "search": "file search {id} /tmp -p *.txt -o json",
    "search as a table": "file search {id} /tmp -p *.txt",
    "info": "file info {id} /tmp/d1/moved.txt /tmp/d1 -o json",
    "info as a table": "file info {id} /tmp/a.txt",
    "rm": "file rm {id} /tmp/a.txt /tmp/b.txt",
    "rmdir": "file rmdir {id} /tmp/d1 -o json",
    "rm nothing": "file rm {id} /tmp/nothing",
    # network, diagnostics, snapshots
    "egress": "egress get {id} -o json",
    "egress patch": "egress patch {id} --rule allow=registry.example -o json",
    "egress after it": "egress get {id} -o json",
    "egress wrong rule": "egress patch {id} --rule maybe=registry.example",
    "diagnostics logs": "diagnostics logs {id} -s container",
    "diagnostics logs as json": "diagnostics logs {id} -s container -o json",
    "diagnostics events": "diagnostics events {id} -s runtime -o yaml",
    "diagnostics without scope": "diagnostics logs {id}",
    "devops inspect": "devops inspect {id}",
    "devops logs": "devops logs {id}",
    "devops nobody": f"devops inspect {NOBODY}",
    "snapshot": "snapshot create {id} --name twin -o json",
    "snapshot get": "snapshot get {snapshot_id} -o json",
    "snapshot list": "snapshot list --sandbox-id {id} -o json",
    "snapshot list as a table": "snapshot list --sandbox-id {id}",
    "snapshot delete": "snapshot delete {snapshot_id}",
    "templates are not there": "template list",
    "the vault is not there": "credential-vault get {id}",
    # the end, and what is no command
    "kill": "sandbox kill {id} -o json",
    "kill again": "sandbox kill {id}",
    "create": "sandbox create -i host -t 10m -m twin={twin} -e A=b --resource cpu=1 --resource memory=512Mi -o json",
    "kill what was created": "sandbox kill {created}",
    "create for ever": "sandbox create -i host -t none -o json",
    "kill that, too": "sandbox kill {created} -o yaml",
    "create for a time that is none": "sandbox create -i host -t soon",
    "create as usual": "sandbox create -i host",
    "create from nothing": "sandbox create",
    "create with half a password": "sandbox create -i host --image-auth-username me",
    "create with a wrong pair": "sandbox create -i host -e A",
    "create without such an image": "sandbox create -i registry.example/nothing:1",
    "group": "sandbox",
    "group in a group": "command session",
    "no command": "nonsense",
    "no command in a group": "sandbox nonsense",
    "unknown option": "sandbox list --nonsense",
    "unknown format": "sandbox list -o xml",
}
# Which member of an answer later commands need.
KEEP = {"background": "execution_id", "session": "session_id", "snapshot": ("id", "snapshot_id"), "create": ("id", "created"), "create for ever": ("id", "created")}
# Only the exit status: help is each one's own, and so is the time of a sample.
ONLY_STATUS = {"group", "group in a group", "metrics", "create as usual"}
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")
NAME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")


def play(client, values):
    """Everything that the script's commands ended with, by name."""
    values = dict(values)
    ends = {}
    for name, words in SCRIPT.items():
        given = b""
        if isinstance(words, tuple):
            words, given = words[0], words[1].encode()
        words = [word.format(**values) for word in (words.split() if isinstance(words, str) else words)]
        end = ends[name] = client.run(*words, input=given)
        if name == "snapshot":  # which is copied meanwhile
            wait_for(lambda: '"Ready"' in client.run("snapshot", "list", "--sandbox-id", values["id"], "-o", "json").out, 20, "the snapshot is ready")
        if name in KEEP and end.status == 0:
            member, key = KEEP[name] if isinstance(KEEP[name], tuple) else (KEEP[name], KEEP[name])
            values[key] = json.loads(end.out)[member]
        elif name in KEEP:
            values[KEEP[name][1] if isinstance(KEEP[name], tuple) else KEEP[name]] = NOBODY
    return ends


@pytest.fixture(scope="module")
def ends(keyed_service, bin_dir, tmp_path_factory):
    api = Api(keyed_service)
    played = []
    for client, twin in ((Published, "published"), (Ours, "ours")):
        home = tmp_path_factory.mktemp(twin)
        (home / "given.txt").write_text("given\n")
        made = api.create(entrypoint=["tail", "-f", "/dev/null"], metadata={"twin": twin}, timeout=600)["id"]
        one = client(home, keyed_service, *([bin_dir / "osb"] if client is Ours else []))
        played.append((one, {"id": made, "twin": twin}))
    with ThreadPoolExecutor() as pool:
        published, ours = pool.map(lambda pair: play(*pair), played)
    yield {name: (published[name], ours[name]) for name in SCRIPT}
    for left in api.list_all():
        api.delete(left["id"])


def plain(text):
    """Without what differs between twins: times, ids, names."""
    text = re.sub(r"/v1/t/[^/]+/", "/v1/t/SIGNED/", TIME.sub("TIME", NAME.sub("X", text)))
    return re.sub(r"127\.0\.0\.1:\d+", "SERVER", re.sub(r"\b(published|ours)\d*\b", "TWIN", text))


def values_of(text, words):
    words = words[0] if isinstance(words, tuple) else words
    words = words.split() if isinstance(words, str) else words
    form = words[words.index("-o") + 1] if "-o" in words else ""
    if form == "json":
        return json.loads(text)
    if form == "yaml":
        return yaml.safe_load(text)
    if "│" in text:
        return [[cell.strip() for cell in line.strip().strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    return text.strip().splitlines()


@pytest.mark.parametrize("name", SCRIPT)
def test_same(ends, name):
    published, ours = ends[name]
    report = f"published: {published.status} {published.out}\n{published.err}\nours: {ours.status} {ours.out}\n{ours.err}"
    assert published.status != 70, "the published client could not be run: " + published.err
    assert ours.status == published.status, report
    if name in ONLY_STATUS or (ours.status != 0 and not published.out.strip()):
        return
    assert values_of(plain(ours.out), SCRIPT[name]) == values_of(plain(published.out), SCRIPT[name]), report


class TestDefects:
    """What the contract calls defects of the published client: there ours is right, and the published one still as described."""

    @pytest.fixture(scope="class")
    def pair(self, keyed_service, bin_dir, tmp_path_factory):
        api = Api(keyed_service)
        made = api.create(entrypoint=["tail", "-f", "/dev/null"])["id"]
        home = tmp_path_factory.mktemp("defects")
        yield made, Published(home, keyed_service), Ours(home, keyed_service, bin_dir / "osb")
        api.delete(made)

    def test_9_and_21_lines_are_glued_together(self, pair):
        made, published, ours = pair
        words = ("command", "run", made, "--", "printf", "a\\nb\\n")
        assert ours.run(*words).out == "a\nb\n"
        assert published.run(*words).out.strip() == "ab"

    def test_11_the_exit_status_is_always_1(self, pair):
        made, published, ours = pair
        assert published.run("command", "run", made, "--", "exit", "7").status == 1
        assert ours.run("command", "run", made, "--", "exit", "7").status == 1
        assert ours.run("command", "run", made, "--exit-code", "--", "exit", "7").status == 7
