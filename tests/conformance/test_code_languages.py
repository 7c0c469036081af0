"""Every rule of the code interpreter in every language of its image, through the published packages.

The newest package is tried with its asynchronous flavour, the oldest with its synchronous one and two languages; --long adds the rest."""

import json
import time
import uuid
from importlib.metadata import version

import pytest
from conftest import Sdk
from interpreters import Interpreter, err, out, text
from languages import BASH, GO, JAVASCRIPT, LANGUAGES, PYTHON, TYPESCRIPT, WORD, filled
from lib.interpreter import NAME
from lib.waiting import wait_for

NEWEST = int(version("opensandbox").split(".")[0]) >= 1
USUAL, OTHER = ("async", "sync") if NEWEST else ("sync", "async")
ENTRYPOINT = ["/opt/opensandbox/code-interpreter.sh"]


def pytest_generate_tests(metafunc):
    if "client" in metafunc.fixturenames:
        metafunc.parametrize("client", [USUAL, OTHER] if metafunc.config.getoption("--long") else [USUAL], indirect=True, scope="module")


@pytest.fixture(scope="module")
def client(request, interpreter_service):
    made = Sdk(request.param, interpreter_service)
    made.sandbox = made.create(NAME, entrypoint=ENTRYPOINT, env={"COLOUR": "blue"})
    made.standing = {}
    yield made
    made.finish()


@pytest.fixture
def interpreter(client):
    return Interpreter(client, client.sandbox)


@pytest.fixture
def context(interpreter, language):
    made = interpreter.context(language)
    yield made
    if made.id in [each.id for each in interpreter.call("list_contexts", str(language))]:
        interpreter.call("delete_context", made.id)


@pytest.fixture
def standing(client, interpreter, language):
    """A context for tests that do not harm it; new ones take their time, of Java above all."""
    there = [each.id for each in interpreter.call("list_contexts", str(language))]
    if getattr(client.standing.get(language), "id", None) not in there:
        client.standing[language] = interpreter.context(language)
    return client.standing[language]


# What runs the code is the same for every package: the oldest one has to show only that it reads the answers.
def usual(language):
    return NEWEST or language in (PYTHON, BASH)


@pytest.fixture(params=[pytest.param(each, marks=() if usual(each) else pytest.mark.long, id=str(each)) for each in LANGUAGES])
def language(request):
    return request.param


@pytest.fixture
def flag():
    return f"/tmp/flag-{uuid.uuid4().hex}"


@pytest.fixture
def begun(interpreter, interpreter_api, flag):
    """Waits until the cell that makes the flag has made it, while the client goes on."""

    def made():
        if interpreter.sdk.flavour == "async":
            interpreter.sdk.breathe()
        return interpreter_api.execd(interpreter.sandbox.id, "GET", f"/files/info?path={flag}").status == 200

    return lambda: wait_for(made, 30, "the cell begins")


@pytest.fixture
def alive(interpreter, interpreter_api):
    """Whether a process of the sandbox runs, by its number there."""
    return lambda pid: interpreter_api.run(interpreter.sandbox.id, f"grep -q '^State:.[^ZX]' /proc/{pid}/status 2>/dev/null").exit_code == 0


def given(language, ran):
    """What a cell gave: its value, or where there are no values what it printed."""
    return text(ran) if language.shows_values else (text(ran), out(ran).rstrip("\n"))[1]


def events(api, sandbox, code, **context):
    reply = api.execd(sandbox.id, "POST", "/code", json={"code": code, "context": context})
    assert reply.status == 200, reply
    all_of_them = [json.loads(part) for part in reply.body.decode().split("\n\n") if part]
    return [event for event in all_of_them if event["type"] != "ping"]  # they come whenever it takes long


def test_state(interpreter, language, context):
    assert context.language == str(language)
    assert given(language, interpreter.run(language.sets, context)) in (None, "")
    assert given(language, interpreter.run(language.gives, context)) == "42"
    interpreter.run(language.declares, context)
    assert given(language, interpreter.run(language.calls, context)) == "82"


def test_the_default_context(interpreter, language):
    first = interpreter.run(language.sets, language=str(language))
    second = interpreter.run(language.gives, language=str(language))
    assert given(language, second) == "42"
    assert first.id == second.id
    assert first.id in [each.id for each in interpreter.call("list_contexts", str(language))]
    assert second.execution_count == first.execution_count + 1
    interpreter.call("delete_context", first.id)
    again = interpreter.run(language.gives, language=str(language))
    assert again.id != first.id and again.execution_count == 1
    if language.absent:
        assert again.error.name == language.absent
    else:
        assert given(language, again) == "1"


def test_isolation(interpreter, language, context):
    other = interpreter.context(language)
    interpreter.run(language.sets, context)
    ran = interpreter.run(language.gives, other)
    assert ran.error.name == language.absent if language.absent else given(language, ran) == "1"
    assert given(language, interpreter.run(language.gives, context)) == "42"


def test_list_get_delete(interpreter, language, context, alive):
    other = interpreter.context(language)
    foreign = interpreter.context(BASH if language is PYTHON else PYTHON)
    listed = interpreter.call("list_contexts", str(language))
    assert {each.language for each in listed} == {str(language)}
    assert {context.id, other.id} <= {each.id for each in listed} and foreign.id not in {each.id for each in listed}
    assert interpreter.call("get_context", other.id).language == str(language)
    pid = given(language, interpreter.run(language.pid, other))
    assert alive(pid)
    interpreter.call("delete_context", other.id)
    wait_for(lambda: not alive(pid), 10, "the kernel of a deleted context ends")
    assert other.id not in [each.id for each in interpreter.call("list_contexts", str(language))]
    with pytest.raises(Exception) as error:
        interpreter.call("get_context", other.id)
    assert other.id in str(error.value) or "404" in str(error.value)
    interpreter.call("delete_contexts", str(language))
    assert interpreter.call("list_contexts", str(language)) == []
    assert interpreter.call("get_context", foreign.id).language == foreign.language
    interpreter.call("delete_context", foreign.id)


def test_events(interpreter, interpreter_api, language, context):
    events_of = [event["type"] for event in events(interpreter_api, interpreter.sandbox, language.silent, id=context.id)]
    assert events_of == ["init", "execution_count", "execution_complete"]
    cell = f"{filled(language.prints)}\n{language.sets}\n{language.gives}"
    all_of_it = events(interpreter_api, interpreter.sandbox, cell, id=context.id)
    assert "".join(event["text"] for event in all_of_it if event["type"] == "stdout").startswith(f"{WORD}\n")
    while all_of_it[2]["type"] == "stdout":  # one text or several
        del all_of_it[2]
    value = ["execution_count", "result"] if language.shows_values else ["execution_count"]
    assert [event["type"] for event in all_of_it] == ["init", "stdout", *value, "execution_complete"]
    assert all_of_it[0]["text"] == context.id
    assert all_of_it[2]["execution_count"] == 2
    assert all(isinstance(event["timestamp"], int) for event in all_of_it)
    if language.shows_values:
        assert all_of_it[3]["results"] == {"text": "42", "text/plain": "42"}


def test_counts(interpreter, language, context):
    cells = [language.sets, language.misspelt, language.gives, language.silent]
    assert [interpreter.run(cell, context).execution_count for cell in cells] == [1, 2, 3, 4]


def test_errors(interpreter, language, standing):
    ran = interpreter.run(language.fails, standing)
    name, value, shown = language.failure
    assert (ran.error.name, ran.error.value) == (name, value)
    assert any(shown.replace("{n}", str(ran.execution_count)) in line for line in ran.error.traceback), ran.error.traceback
    assert not any("kernel" in line.lower() or "/proc/" in line or "node:" in line for line in ran.error.traceback), ran.error.traceback
    assert out(ran) == "before\n" and err(ran) == ""
    assert ran.complete is None and ran.result == []
    interpreter.run(language.sets, standing)
    assert given(language, interpreter.run(language.gives, standing)) == "42"


def test_what_is_no_program(interpreter, language, standing):
    ran = interpreter.run(language.misspelt, standing)
    assert ran.error.name == language.refusal and ran.error.value and ran.error.traceback
    assert ran.complete is None
    interpreter.run(language.sets, standing)
    assert given(language, interpreter.run(language.gives, standing)) == "42"


def test_both_streams(interpreter, language, standing):
    ran = interpreter.run(f"{filled(language.prints)}\n{language.complains}", standing)
    assert ran.error is None, ran.error
    streams = (out(ran), err(ran))
    assert streams == (f"{WORD}\n", "wrong\n") if language.tells_errors_apart else (f"{WORD}\nwrong\n", "")


def test_unicode(interpreter, language, standing):
    assert out(interpreter.run(filled(language.prints), standing)) == f"{WORD}\n"
    assert given(language, interpreter.run(filled(language.quotes), standing)) == language.quoted


def test_bytes(interpreter, language, standing):
    ran = interpreter.run(language.writes_bytes, standing)
    assert ran.error is None, ran.error
    assert out(ran) == "a\0\ufffd\ufffdb\n"


def test_ten_megabytes(interpreter, language, standing):
    ran = interpreter.run(language.floods, standing)
    assert ran.error is None, ran.error
    assert sum(len(message.text) for message in ran.logs.stdout) == 10_000_000
    assert all(message.text.endswith("\n") for message in ran.logs.stdout)


@pytest.mark.parametrize("kind", ["spins", "sleeps"])
def test_interrupt(interpreter, language, context, flag, begun, kind):
    interpreter.run(language.sets, context)
    running = interpreter.aside(filled(getattr(language, kind), flag), context)
    begun()
    asked = time.monotonic()
    interpreter.call("interrupt", context.id)
    ran = running.finish()
    assert time.monotonic() - asked < 10
    assert ran.error.name == "KeyboardInterrupt" and ran.complete is None
    interpreter.call("interrupt", context.id)  # nobody runs: nothing happens
    assert given(language, interpreter.run(language.gives, context)) == "42"


def test_interrupt_at_once(interpreter, language, context):
    """As soon as the client knows what to interrupt; the kernel may not even have the cell."""
    interpreter.run(language.sets, context)
    for _ in range(3):
        running = interpreter.aside(filled(language.spins, f"/tmp/once-{uuid.uuid4().hex}"), context, on_init=True)
        running.begun()
        interpreter.call("interrupt", context.id)
        ran = running.finish()
        assert ran.error.name == "KeyboardInterrupt" and ran.complete is None
    assert given(language, interpreter.run(language.gives, context)) == "42"


def test_cells_queue(interpreter, language, context):
    interpreter.run(language.sets, context)
    running = [interpreter.aside(language.gives, context) for _ in range(4)]
    ran = [each.finish() for each in running]
    assert [given(language, each) for each in ran] == ["42"] * 4
    assert sorted(each.execution_count for each in ran) == [2, 3, 4, 5]


def test_killed_from_outside(interpreter, interpreter_api, language, context, flag, begun, alive):
    interpreter.run(language.sets, context)
    pid = given(language, interpreter.run(language.pid, context))
    running = interpreter.aside(filled(language.sleeps, flag), context)
    begun()
    assert interpreter_api.run(interpreter.sandbox.id, f"kill -9 {pid}").exit_code == 0
    ran = running.finish()
    assert ran.error is not None and ran.complete is None
    shown = interpreter_api.execd(interpreter.sandbox.id, "GET", f"/code/contexts/{context.id}").json
    if language is BASH:  # a shell that ends is replaced, with the state from before the cell
        assert "status" not in shown
        assert given(language, interpreter.run(language.gives, context)) == "42"
    else:
        assert (ran.error.name, ran.error.value) == ("KernelError", "the kernel process has ended: signal: killed")
        assert (shown["status"], shown["reason"]) == ("dead", ran.error.value)
        again = interpreter.run(language.gives, context)
        assert again.error.name == "KernelError" and "create another" in again.error.value
    new = interpreter.context(language)
    interpreter.run(language.sets, new)
    assert given(language, interpreter.run(language.gives, new)) == "42"


def test_a_cell_that_ends_its_process(interpreter, language):
    """In the default context, which is there again for the next cell, dead or not."""
    interpreter.run(language.sets, language=str(language))
    ran = interpreter.run(language.leaves, language=str(language))
    assert ran.error is not None and "3" in ran.error.value and ran.complete is None, ran.error
    after = interpreter.run(language.sets, language=str(language))
    assert (after.id == ran.id) == language.survives
    assert given(language, interpreter.run(language.gives, language=str(language))) == "42"


@pytest.mark.parametrize("language", [PYTHON, JAVASCRIPT, TYPESCRIPT], ids=str)
def test_displays_and_output_keep_their_order(interpreter, language, standing):
    ran, seen = interpreter.run_seen(language.displays, standing)
    assert ran.error is None, ran.error
    assert seen == [kind for n in range(5) for kind in (f"printed {n}", f"shown {n}")] + ["printed end"]


def test_nothing_is_left_of_a_go_cell_whose_kernel_is_killed(interpreter, interpreter_api, flag, begun, alive):
    context = interpreter.context(GO)
    kernel = text(interpreter.run(GO.pid, context))
    running = interpreter.aside(filled(GO.spins, flag), context)
    begun()
    cell = interpreter_api.run(interpreter.sandbox.id, f"cat /proc/{kernel}/task/*/children").stdout.split()[0]
    assert alive(cell)
    interpreter_api.run(interpreter.sandbox.id, f"kill -9 {kernel}")
    assert running.finish().error.name == "KernelError"
    wait_for(lambda: not alive(cell), 10, "the cell's process ends")
    interpreter.call("delete_contexts", "go")
    assert "go-" not in interpreter_api.run(interpreter.sandbox.id, "ls /tmp").stdout


def test_a_child_that_outlives_its_cell(interpreter, interpreter_api, language, context, alive):
    started = time.monotonic()
    pid = given(language, interpreter.run(language.leaves_child, context))
    assert time.monotonic() - started < 20
    assert alive(pid)
    interpreter.run(language.sets, context)
    assert given(language, interpreter.run(language.gives, context)) == "42"
    assert alive(pid)
    interpreter_api.run(interpreter.sandbox.id, f"kill -9 {pid}")


def test_delete_ends_what_runs(interpreter, language, context, flag, begun):
    running = interpreter.aside(filled(language.spins, flag), context)
    begun()
    interpreter.call("delete_context", context.id)
    ran = running.finish()
    assert ran.error.name == "KernelError" and "deleted" in ran.error.value and ran.complete is None


def test_directories(interpreter, interpreter_api, language):
    usual = interpreter_api.run(interpreter.sandbox.id, "pwd").stdout
    assert out(interpreter.run(language.directory, language=str(language))) == f"{usual}\n"
    wanted = f"/tmp/made {language}/for it"
    reply = interpreter_api.execd(interpreter.sandbox.id, "POST", "/code/context", json={"language": str(language), "cwd": wanted})
    assert reply.status == 200 and reply.json["cwd"] == wanted
    made = interpreter.call("get_context", reply.json["id"])
    assert out(interpreter.run(language.directory, made)) == f"{wanted}\n"
    interpreter.call("delete_context", made.id)


def test_environment(interpreter, language, standing):
    assert out(interpreter.run(language.colour, standing)) == "blue\n"


def test_ten_contexts_at_once(interpreter):
    mixed = [*LANGUAGES, PYTHON, PYTHON, GO, BASH]
    contexts = [interpreter.context(each) for each in mixed]
    for cell, wanted in (("sets", None), ("gives", "42")):
        running = [interpreter.aside(getattr(each, cell), context) for each, context in zip(mixed, contexts)]
        for each, aside in zip(mixed, running):
            value = given(each, aside.finish(60))
            assert value == wanted or not wanted, each
    for context in contexts:
        interpreter.call("delete_context", context.id)
