"""The code interpreter image: its names, entrypoints and version variables."""

import pytest
from lib.api import Command
from lib.interpreter import NAME, REPOSITORY, installed_versions
from lib.waiting import wait_for

ENTRYPOINTS = ["/opt/code-interpreter/code-interpreter.sh", "/opt/opensandbox/code-interpreter.sh"]
KERNEL = REPOSITORY / "src" / "interpreter" / "kernels" / "go.go"
PROGRAMS = {"python": "python3 --version", "java": "java -version 2>&1", "node": "node --version", "go": "go version"}


@pytest.fixture
def make(interpreter_api):
    made = []

    def create(entrypoint=ENTRYPOINTS[0], image=NAME, **env):
        made.append(interpreter_api.create(image={"uri": image}, entrypoint=[entrypoint], env=env)["id"])
        return made[-1]

    yield create
    for sandbox in made:
        interpreter_api.delete(sandbox)


def wait_until_chosen(api, sandbox):
    """The entry process waits with tail when it has chosen all versions and written them down."""
    wait_for(lambda: "tail" in output(api, sandbox, "cat /proc/[0-9]*/comm 2>/dev/null || true").split(), 10, "the entrypoint is through")


def output(api, sandbox, command):
    ran = api.run(sandbox, command)
    assert ran.exit_code == 0, ran.reply.body
    return ran.stdout


@pytest.mark.parametrize("host", ["", "registry.example/", "registry.example:5000/"])
@pytest.mark.parametrize("tag", ["", ":latest", ":v1.0.1", ":v1.0.2", ":v1.1.0"])
def test_names(interpreter_api, make, host, tag):
    assert output(interpreter_api, make(image=f"{host}{NAME}{tag}"), "cat /opt/code-interpreter/versions").startswith("python 3.11")


@pytest.mark.parametrize("entrypoint", ENTRYPOINTS)
def test_all_languages_are_there(interpreter_api, make, entrypoint):
    sandbox = make(entrypoint)
    for language, command in PROGRAMS.items():
        assert installed_versions()[language] in output(interpreter_api, sandbox, command)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_prefix_selects(interpreter_api, make, parts):
    wanted = {f"{language.upper()}_VERSION": ".".join(version.split(".")[:parts]) for language, version in installed_versions().items()}
    sandbox = make(**wanted)
    exported = "test -x $JAVA_HOME/bin/javac && test -x $GOROOT/bin/go"
    wait_for(lambda: interpreter_api.run(sandbox, exported).exit_code == 0, 10, "the entrypoint exported its choice")
    text = output(interpreter_api, sandbox, "; ".join(PROGRAMS.values()))
    for version in installed_versions().values():
        assert version in text


def test_a_version_that_is_not_there_is_refused_with_the_list(interpreter_api, make):
    sandbox = make()
    for language, there in installed_versions().items():
        major, rest = there.split(".", 1)
        select = f"bash -c '. /opt/code-interpreter/code-interpreter-env.sh {language} \"$1\"' -"
        for version in ("99", f"{major}0", f"{major}.{rest}9", f"{there}.1", f"{major}.99", "latest", "*", "$(echo 3)", "3 3"):
            ran = interpreter_api.run(sandbox, f"{select} '{version}'")
            assert ran.exit_code == 1, (language, version, ran.reply.body)
            assert ran.stderr == (
                f"code-interpreter: {language.upper()}_VERSION={version} is not in this image; there are: {there}. "
                "Choose one of them or a prefix of one."
            )
        for version in (there, major, there.rsplit(".", 1)[0], f"v{there}", ""):
            assert output(interpreter_api, sandbox, f"{select} '{version}'") == "", (language, version)
    ran = interpreter_api.run(sandbox, "bash -c '. /opt/code-interpreter/code-interpreter-env.sh cobol'")
    assert ran.exit_code == 2 and "python, java, node and go" in ran.stderr


def cell(api, sandbox, code, language="python"):
    return Command(api.execd(sandbox, "POST", "/code", json={"code": code, "context": {"language": language}}))


def test_a_missing_version_does_not_end_the_sandbox(interpreter_api, make):
    there = installed_versions()["python"]
    sandbox = make(PYTHON_VERSION="3.12")
    complaint = f"PYTHON_VERSION=3.12 is not in this image; there are: {there}."
    logs = f"/sandboxes/{sandbox}/diagnostics/logs"
    wait_for(lambda: f"Going on with python {there}" in interpreter_api.call("GET", logs).body.decode(), 10, "the entrypoint says what it does")
    wait_until_chosen(interpreter_api, sandbox)
    assert complaint in interpreter_api.call("GET", logs).body.decode()
    assert interpreter_api.status(sandbox)["state"] == "Running"
    first = cell(interpreter_api, sandbox, "import sys; print(sys.version)")
    assert first.stderr == f"code-interpreter: {complaint} Going on with python {there}." and there in first.stdout
    again = cell(interpreter_api, sandbox, "6 * 7")
    assert again.stderr == "" and again.error is None, "once is enough"
    assert cell(interpreter_api, sandbox, "1", "javascript").stderr == ""
    assert "Going on" in output(interpreter_api, sandbox, 'echo "$CODE_INTERPRETER_NOTICE"')


def test_strange_versions_change_nothing_else(interpreter_api, make):
    odd = "9'\nPATH=/nowhere\n$(touch /tmp/odd)"
    sandbox = make(GO_VERSION=odd, JAVA_VERSION="99")
    wait_until_chosen(interpreter_api, sandbox)
    assert "Going on with go" in interpreter_api.call("GET", f"/sandboxes/{sandbox}/diagnostics/logs").body.decode()
    assert "99 is not" in (said := cell(interpreter_api, sandbox, "1").stderr) and "GO_VERSION=9?" in said
    output(interpreter_api, sandbox, "test ! -e /tmp/odd && go version && java -version")


def test_added_versions_count(interpreter_api, make):
    sandbox = make()
    wait_until_chosen(interpreter_api, sandbox)  # among what it finds: before there is more
    folder = "/opt/python/versions/cpython-3.13.1-linux-x86_64-gnu/bin"
    output(interpreter_api, sandbox, f"mkdir -p {folder} && printf '#!/bin/sh\\necho added' >{folder}/python3 && chmod +x {folder}/python3")
    select = ". /opt/code-interpreter/code-interpreter-env.sh python"
    assert output(interpreter_api, sandbox, f"EXECD_ENVS=; {select} 3.13 && python3") == "added"
    assert output(interpreter_api, sandbox, f"EXECD_ENVS=; {select} 3.11 && python3 --version") == f"Python {installed_versions()['python']}"
    assert "3.11.2, 3.13.1" in interpreter_api.run(sandbox, f"{select} 3.12").stderr.replace(installed_versions()["python"], "3.11.2")
    # Written down, the choice holds for the next command.
    output(interpreter_api, sandbox, f"{select} 3")
    assert output(interpreter_api, sandbox, "python3") == "added"
    output(interpreter_api, sandbox, f"{select} 3.11")
    assert output(interpreter_api, sandbox, "python3 --version") == f"Python {installed_versions()['python']}", "an older one after it"


def test_first_uses_are_prepared(interpreter_api, make):
    sandbox = make()
    assert output(interpreter_api, sandbox, "ls /root/.cache/matplotlib/fontlist-*.json /usr/lib/python3/dist-packages/pandas/__pycache__/__init__.cpython-311.pyc")
    assert output(interpreter_api, sandbox, "cat /opt/code-interpreter/kernels/go.go") == KERNEL.read_text().rstrip("\n")
    output(interpreter_api, sandbox, "test -x /opt/code-interpreter/kernels/go")
    modules = "numpy, pandas, matplotlib, scipy.stats, sklearn.linear_model, requests, pip"
    output(interpreter_api, sandbox, f"python3 -c 'import {modules}'")
    for program in ("git --version", "curl --version", "tsc --version", "javac -version", "pip --version", "gcc --version"):
        output(interpreter_api, sandbox, program)
