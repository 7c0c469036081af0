"""Variables of the original's bootstrap script, in an image or a request, as its users know them. Skipped where no engine can be had."""

import shutil
import subprocess

import pytest
from lib.api import Api
from lib.dockerd import IMAGE, PLAIN_USER, SLEEPER, create, nothing_left, state

HABITS, BARE = "habits:1", "bare:1"


@pytest.fixture(scope="module", autouse=True)
def images(engine, tmp_path_factory):
    """One with a script of its own and variables that name it, and one in which nothing but a program is."""
    root = tmp_path_factory.mktemp("bare")
    shutil.copy(shutil.which("busybox"), root / "sleep")
    tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
    engine.docker("import", "-", BARE, input=tar)
    engine.docker("run", "--name", "habits", "--network", "none", IMAGE, "sh", "-c", "echo 'export SEEN=by-script; echo script > /tmp/order' > /prepare; echo OF_FILE=yes > /vars")
    changes = ["ENV EXECD_BOOTSTRAP_PRE_SCRIPT=/prepare", "ENV EXECD_ENVS=/vars"]
    engine.docker("commit", *(word for change in changes for word in ("-c", change)), "habits", HABITS)
    engine.docker("rm", "habits")
    yield
    engine.docker("rmi", HABITS, BARE)


@pytest.fixture
def api(docker, engine):
    api = Api(docker)
    with nothing_left(api, engine):
        yield api


def output(api, sandbox):
    """What the entry process wrote, without the times."""
    lines = api.call("GET", f"/sandboxes/{sandbox}/diagnostics/logs").body.decode().splitlines()
    return "\n".join(line.partition(" ")[2] for line in lines)


# What ends at once would be a refused create.
UNTIL_TOLD = "until [ -e /tmp/go ]; do sleep 0.05; done"


def end_of(api, sandbox, wanted):
    assert api.run(sandbox, "touch /tmp/go").exit_code == 0
    return state(api, sandbox, wanted)["message"]


def test_a_script_of_the_image(api):
    """It comes before the entry command and in its process; words with blanks arrive as they are."""
    entry = f'echo "$0" $SEEN >> /tmp/order; touch /tmp/done; {UNTIL_TOLD}; exit 3'
    sandbox = create(api, image={"uri": HABITS}, entrypoint=["sh", "-c", entry, "two  words"])
    assert api.run(sandbox, "until [ -e /tmp/done ]; do sleep 0.05; done; cat /tmp/order").stdout.splitlines() == ["script", "two  words by-script"]
    assert api.run(sandbox, "echo $OF_FILE").stdout == "yes", "the image says where variables of commands are"
    assert "code 3" in end_of(api, sandbox, "Failed")


def test_a_line_instead_of_the_command(api):
    line = f"echo first && echo second; {UNTIL_TOLD}; exit 5"
    for fields in ({"entrypoint": ["no-such-program"], "env": {"BOOTSTRAP_CMD": line}}, {"entrypoint": ["-c", line]}):
        sandbox = create(api, **fields)
        assert "code 5" in end_of(api, sandbox, "Failed")
        assert output(api, sandbox).split() == ["first", "second"]


def test_the_shell(api):
    env = {"BOOTSTRAP_CMD": f"echo $0 is $SEEN; {UNTIL_TOLD}", "BOOTSTRAP_SHELL": "/bin/ash"}
    sandbox = create(api, image={"uri": HABITS}, env=env)
    end_of(api, sandbox, "Terminated")
    assert output(api, sandbox).split() == ["/bin/ash", "is", "by-script"]


def test_a_script_that_is_not_there(api):
    reply = api.post_create(image={"uri": IMAGE}, entrypoint=SLEEPER, env={"EXECD_BOOTSTRAP_PRE_SCRIPT": "nowhere.sh"})
    if reply.status == 202:
        state(api, reply.json["id"], "Failed")
    said = output(api, reply.json["id"]) if reply.status == 202 else reply.json["message"]
    assert "./nowhere.sh cannot be read" in said, reply


def test_an_image_without_a_shell(api):
    sandbox = create(api, image={"uri": BARE}, entrypoint=["/sleep", "1000"])
    state(api, sandbox, "Running")
    refused = api.post_create(image={"uri": BARE}, entrypoint=SLEEPER, env={"BOOTSTRAP_CMD": "echo"})
    assert refused.status == 400 and "BOOTSTRAP_SHELL" in refused.json["message"], refused


def test_it_may_do_what_the_entry_command_may(api):
    """As the image's user, and not as execd."""
    sandbox = create(api, image={"uri": PLAIN_USER}, env={"BOOTSTRAP_CMD": f"id -u; pwd; {UNTIL_TOLD}"})
    end_of(api, sandbox, "Terminated")
    assert output(api, sandbox).split() == ["1000", "/home/plain"]
