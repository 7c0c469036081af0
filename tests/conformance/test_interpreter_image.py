"""The image's entrypoints and version variables."""

import pytest
from lib.interpreter import NAME, installed_versions
from lib.waiting import wait_for

ENTRYPOINTS = ["/opt/code-interpreter/code-interpreter.sh", "/opt/opensandbox/code-interpreter.sh"]
PROGRAMS = {"python": "python3 --version", "java": "java -version 2>&1", "node": "node --version", "go": "go version"}


@pytest.fixture
def image(interpreter_sdk):
    def make(entrypoint=ENTRYPOINTS[0], **env):
        return interpreter_sdk.create(NAME, entrypoint=[entrypoint], env=env)

    return make


def output(sdk, sandbox, command):
    return "\n".join(message.text for message in sdk.run(sandbox, command).logs.stdout)


@pytest.mark.parametrize("entrypoint", ENTRYPOINTS)
def test_all_languages_are_there(interpreter_sdk, image, entrypoint):
    sandbox = image(entrypoint)
    for language, command in PROGRAMS.items():
        assert installed_versions()[language] in output(interpreter_sdk, sandbox, command)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_prefix_selects(interpreter_sdk, image, parts):
    wanted = {f"{language.upper()}_VERSION": ".".join(version.split(".")[:parts]) for language, version in installed_versions().items()}
    sandbox = image(**wanted)
    text = output(interpreter_sdk, sandbox, "; ".join(PROGRAMS.values()))
    for version in installed_versions().values():
        assert version in text
    assert output(interpreter_sdk, sandbox, "test -x $JAVA_HOME/bin/javac && test -x $GOROOT/bin/go && echo both") == "both"


def refusal(sdk, sandbox, **env):
    """What the entrypoint says and how it ends, run by hand."""
    assignments = " ".join(f"{name}={value}" for name, value in env.items())
    execution = sdk.run(sandbox, f"{assignments} timeout 5 {ENTRYPOINTS[0]} 2>&1; echo status $?")
    *said, status = [message.text for message in execution.logs.stdout]
    return " ".join(said), status


def test_a_version_that_is_not_there_is_refused_with_the_list(interpreter_sdk, image):
    sandbox = image()
    for language, there in installed_versions().items():
        major, rest = there.split(".", 1)
        variable = f"{language.upper()}_VERSION"
        for version in ("99", f"{major}0", f"{major}.{rest}9", f"{there}.1", f"{major}.99", "latest", "'*'", "'$(echo 3)'"):
            said, status = refusal(interpreter_sdk, sandbox, **{variable: version})
            assert status == "status 1", (language, version, said, status)
            plain = version.strip("'")
            assert said == f"code-interpreter: {variable}={plain} is not in this image; there are: {there}. Choose one of them or a prefix of one."
        for version in (there, major, f"v{there}", "''"):
            assert refusal(interpreter_sdk, sandbox, **{variable: version}) == ("", "status 124"), (language, version)


def test_a_refusal_ends_the_sandbox(interpreter_api):
    made = interpreter_api.create(image={"uri": NAME}, entrypoint=[ENTRYPOINTS[0]], env={"PYTHON_VERSION": "2.7"})
    try:
        status = wait_for(
            lambda: (now := interpreter_api.status(made["id"]))["state"] in ("Failed", "Terminated") and now, 15, "the entrypoint ended"
        )
        assert (status["state"], status["reason"]) == ("Failed", "ENTRYPOINT_FAILED"), status
    finally:
        interpreter_api.delete(made["id"])
