"""Stateful code through the published interpreter packages, old and new: what the other languages have no word for, and Python in
depth. In the code interpreter image when it was built, else in `host`; test_code_languages.py has the rules for all languages."""

import json
import threading
import time

import pytest
from code_interpreter.models.code import SupportedLanguage
from conftest import Sdk
from interpreters import Interpreter, err, out, text
from lib.api import Api
from lib.interpreter import NAME, image_is_built
from lib.waiting import wait_for
from opensandbox.models.execd import ExecutionHandlers
from opensandbox.models.execd_sync import ExecutionHandlersSync


@pytest.fixture(scope="module")
def place(request):
    """(a service, an image of it)"""
    if image_is_built():
        return request.getfixturevalue("interpreter_service"), NAME
    return request.getfixturevalue("service"), "host"


@pytest.fixture(scope="module")
def api(place):
    return Api(place[0])


@pytest.fixture(params=["sync", "async"], scope="module")
def shared(request, place):
    service, image = place
    made = Sdk(request.param, service)
    made.sandbox = made.create(image, env={"COLOUR": "blue"})
    yield made
    made.finish()


@pytest.fixture
def interpreter(shared):
    made = Interpreter(shared, shared.sandbox)
    yield made
    for context in made.call("list_contexts", "python"):
        made.call("delete_context", context.id)


def test_the_first_cell(interpreter):
    ran = interpreter.run(
        """
        import sys
        print(sys.version)
        result = 2 + 2
        result
        """
    )
    assert text(ran) == "4"
    assert out(ran).startswith("3.")
    assert ran.id
    assert ran.complete is not None


def test_state_is_kept_in_the_default_context(interpreter):
    first = interpreter.run("kept = [1]")
    second = interpreter.run("kept.append(2)\nkept")
    assert text(second) == "[1, 2]"
    assert first.id == second.id
    assert second.execution_count == first.execution_count + 1


def test_contexts_are_isolated(interpreter):
    one, other = interpreter.context(), interpreter.context()
    assert one.id != other.id and one.language == "python"
    interpreter.run("mine = 1", one)
    assert interpreter.run("mine", other).error.name == "NameError"
    assert interpreter.run("mine", one).result[0].text == "1"


def test_list_get_delete(interpreter):
    one, other = interpreter.context(), interpreter.context()
    listed = [context.id for context in interpreter.call("list_contexts", "python")]
    assert one.id in listed and other.id in listed
    assert interpreter.call("get_context", one.id).language == "python"
    interpreter.call("delete_context", one.id)
    assert one.id not in [context.id for context in interpreter.call("list_contexts", "python")]
    with pytest.raises(Exception) as error:
        interpreter.call("get_context", one.id)
    assert one.id in str(error.value) or "404" in str(error.value)
    interpreter.call("delete_contexts", "python")
    assert interpreter.call("list_contexts", "python") == []


def test_errors(interpreter):
    ran = interpreter.run("def f():\n    return undefined\nprint('before')\nf()")
    assert (ran.error.name, ran.error.value) == ("NameError", "name 'undefined' is not defined")
    shown = "\n".join(ran.error.traceback)
    assert "return undefined" in shown and "kernel" not in shown
    assert out(ran) == "before\n"
    assert ran.complete is None
    assert text(interpreter.run("1 + 1")) == "2"


def test_output_of_both_streams(interpreter):
    ran = interpreter.run("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c', end='')")
    assert out(ran) == "a\nc"
    assert err(ran) == "b\n"


def test_unicode_and_bytes(interpreter):
    ran = interpreter.run("print('ünï ☃ 🦊 \\u2028 \\u0085 end')\n'ü🦊'")
    assert out(ran) == "ünï ☃ 🦊 \u2028 \u0085 end\n"
    assert text(ran) == "'ü🦊'"
    ran = interpreter.run("import os\nos.write(1, b'a\\xff\\xfeb\\n'); None")
    assert out(ran) == "a\ufffd\ufffdb\n"


def test_rich_results(interpreter, api):
    code = "class H:\n    def _repr_html_(self): return '<b>x</b>'\n    def __repr__(self): return 'H'\ndisplay(H())\nH()"
    ran = interpreter.run(code)
    assert [shown.text for shown in ran.result] == ["H", "H"]
    reply = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": "H()", "context": {"language": "python"}})
    assert rb'"results":{"text/html":"\u003cb\u003ex\u003c/b\u003e","text":"H","text/plain":"H"}' in reply.body


def test_handlers_see_output_as_it_happens(shared, interpreter):
    seen = []
    started = time.monotonic()

    if shared.flavour == "async":

        async def on_stdout(message):
            seen.append((message.text, time.monotonic() - started))

        handlers = ExecutionHandlers(on_stdout=on_stdout)
    else:
        handlers = ExecutionHandlersSync(on_stdout=lambda message: seen.append((message.text, time.monotonic() - started)))
    interpreter.run("import time\nprint('first')\ntime.sleep(1)\nprint('second')", handlers=handlers)
    assert [line for line, _ in seen] == ["first\n", "second\n"]
    assert seen[1][1] - seen[0][1] > 0.5


def run_aside(interpreter, api, code, context):
    """Runs a cell over a raw connection while the client does something else; gives a function that waits for the stream."""
    box = {}

    def work():
        box["reply"] = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": code, "context": {"id": context.id}})

    thread = threading.Thread(target=work)
    thread.start()

    def finish():
        thread.join(30)
        assert not thread.is_alive(), "the run hangs"
        return box["reply"].body.decode()

    finish.over = lambda: not thread.is_alive()
    return finish


def wait_for_file(api, sandbox, path):
    wait_for(lambda: api.execd(sandbox.id, "GET", f"/files/info?path={path}").status == 200, 20, f"{path} appears")


@pytest.mark.parametrize("kind, loop", [("busy", "while True: pass"), ("sleep", "import time\ntime.sleep(60)")])
def test_interrupt(interpreter, api, kind, loop):
    context = interpreter.context()
    flag = f"/tmp/interrupt-{context.id}"
    finish = run_aside(interpreter, api, f"kept = 1\nopen('{flag}', 'w').close()\n{loop}", context)
    wait_for_file(api, interpreter.sandbox, flag)
    interpreter.call("interrupt", context.id)
    stream = finish()
    assert '"ename":"KeyboardInterrupt"' in stream
    assert "execution_complete" not in stream
    assert text(interpreter.run("kept", context)) == "1"


def test_runs_of_one_context_queue(interpreter, api):
    context = interpreter.context()
    finishers = [run_aside(interpreter, api, f"import time\ntime.sleep(0.05)\n{n}", context) for n in range(5)]
    streams = [finish() for finish in finishers]
    assert all("execution_complete" in stream for stream in streams)
    counts = sorted(stream.split('"execution_count":')[1].split(",")[0] for stream in streams)
    assert counts == ["1", "2", "3", "4", "5"]


def test_too_many_cells_for_one_context(interpreter, api):
    context = interpreter.context()
    flag = f"/tmp/full-{context.id}"
    first = run_aside(interpreter, api, f"open('{flag}', 'w').close()\nimport time\ntime.sleep(60)", context)
    wait_for_file(api, interpreter.sandbox, flag)
    waiting = [run_aside(interpreter, api, "1", context) for _ in range(70)]
    wait_for(lambda: sum(each.over() for each in waiting) == 6, 20, "those that find no place are refused")
    assert "session is busy" in interpreter.run("1", context).error.value
    interpreter.call("interrupt", context.id)
    assert "KeyboardInterrupt" in first()
    streams = [finish() for finish in waiting]
    assert sum("execution_complete" in stream for stream in streams) == 64
    assert sum("session is busy" in stream for stream in streams) == 6
    assert text(interpreter.run("1 + 1", context)) == "2"


def test_ten_contexts_at_once(interpreter, api):
    contexts = [interpreter.context() for _ in range(10)]
    finishers = [run_aside(interpreter, api, f"import time\ntime.sleep(0.2)\n{n} * 11", context) for n, context in enumerate(contexts)]
    for n, finish in enumerate(finishers):
        assert f'"text":"{n * 11}"' in finish()


def test_a_hundred_megabytes(interpreter, api):
    """Read over a raw connection: the clients take half a minute to make objects of a million lines."""
    stream = run_aside(interpreter, api, "line = 'x' * 99\nfor _ in range(1_000_000): print(line)\n'end'", interpreter.context())()
    assert "\"text\":\"'end'\"" in stream
    assert stream.count("x" * 99) == 1_000_000
    status = api.run(interpreter.sandbox.id, "awk '/^VmHWM/ {print $2}' /proc/1/status").stdout
    assert int(status) < 40_000, status


def test_a_killed_kernel(interpreter):
    context = interpreter.context()
    ran = interpreter.run("print('last words')\nimport os\nos.kill(os.getpid(), 9)", context)
    assert "ended" in ran.error.value
    assert out(ran) == "last words\n"
    again = interpreter.run("1", context)
    assert "ended" in again.error.value and "create another" in again.error.value
    assert text(interpreter.run("1 + 1", interpreter.context())) == "2"
    interpreter.run("import os\nos._exit(3)")
    assert text(interpreter.run("2 + 2")) == "4"  # the default context is made anew


def test_killed_from_outside(interpreter, api):
    context = interpreter.context()
    pid = text(interpreter.run("import os\nos.getpid()", context))
    finish = run_aside(interpreter, api, "import time\nopen('/tmp/outside', 'w').close()\ntime.sleep(60)", context)
    wait_for_file(api, interpreter.sandbox, "/tmp/outside")
    api.execd(interpreter.sandbox.id, "POST", "/command", json={"command": f"kill -9 {pid}"})
    assert '"ename":"KernelError"' in finish()
    shown = api.execd(interpreter.sandbox.id, "GET", f"/code/contexts/{context.id}").json
    assert shown["status"] == "dead" and "ended" in shown["reason"]


def test_a_child_that_outlives_its_cell(interpreter):
    context = interpreter.context()
    started = time.monotonic()
    ran = interpreter.run("import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nimport os\npid = os.fork()\nif pid == 0:\n    import time\n    time.sleep(60)\n'over'", context)
    assert text(ran) == "'over'"
    assert time.monotonic() - started < 20
    assert text(interpreter.run("child.poll() is None", context)) == "True"


def test_delete_ends_what_runs(interpreter, api):
    context = interpreter.context()
    flag = f"/tmp/delete-{context.id}"
    finish = run_aside(interpreter, api, f"open('{flag}', 'w').close()\nwhile True: pass", context)
    wait_for_file(api, interpreter.sandbox, flag)
    interpreter.call("delete_context", context.id)
    assert "deleted" in finish()


def test_working_directory(interpreter, api):
    made = api.execd(interpreter.sandbox.id, "POST", "/code/context", json={"language": "python", "cwd": "/tmp/made/for it"}).json
    assert made["cwd"] == "/tmp/made/for it"
    reply = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": "import os\nos.getcwd()", "context": {"id": made["id"]}})
    assert b"'/tmp/made/for it'" in reply.body


def test_environment_of_commands(interpreter):
    assert text(interpreter.run("import os\nos.environ['COLOUR']", interpreter.context())) == "'blue'"


def test_an_unknown_language(api, interpreter):
    reply = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": "1", "context": {"language": "cobol"}})
    assert reply.status == 500 and "unknown language: cobol" in reply.json["message"]
    reply = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": "1", "context": {"id": "no-such", "language": "python"}})
    assert reply.status == 500 and reply.json["code"] == "CONTEXT_NOT_FOUND"
    assert api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": ""}).status == 400


def test_no_language_is_a_shell(api, interpreter):
    reply = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": "echo $COLOUR"})
    assert b'"type":"stdout","text":"blue"' in reply.body


def test_supported_languages_are_known(api, interpreter):
    """What the package names as a language must not be unknown here."""
    names = [value for key, value in vars(SupportedLanguage).items() if key.isupper() and isinstance(value, str)]
    assert "python" in names
    for name in names:
        reply = api.execd(interpreter.sandbox.id, "GET", f"/code/contexts?language={name}")
        assert reply.status == 200 and reply.json == [context for context in reply.json if context["language"] == name]


def test_event_order(api, interpreter):
    reply = api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": "print('o')\n5", "context": {"language": "python"}})
    events = [json.loads(part) for part in reply.body.decode().split("\n\n") if part]
    assert [event["type"] for event in events] == ["init", "ping", "stdout", "execution_count", "result", "execution_complete"]
    assert all(isinstance(event["timestamp"], int) for event in events)
    assert events[4]["results"] == {"text": "5", "text/plain": "5"}


def test_many_clients_at_once(interpreter):
    contexts = [interpreter.context() for _ in range(5)]
    running = [interpreter.aside(f"{n} ** 2", context) for n, context in enumerate(contexts)]
    assert [text(each.finish()) for each in running] == ["0", "1", "4", "9", "16"]


def test_nothing_is_left_of_a_sandbox_with_contexts(no_leaks, sdk):
    interpreter = Interpreter(sdk, sdk.create())
    contexts = [interpreter.context() for _ in range(3)]
    assert text(interpreter.run("import fractions\n6 * 7", contexts[0])) == "42"
    interpreter.run("import os\nif os.fork() == 0:\n    import time\n    time.sleep(60)", contexts[1])
    sdk.kill(interpreter.sandbox)


def test_bash_keeps_its_state_whatever_a_cell_does(interpreter, api):
    made = api.execd(interpreter.sandbox.id, "POST", "/code/context", json={"language": "bash", "cwd": "/tmp"}).json

    def run(code):
        return api.execd(interpreter.sandbox.id, "POST", "/code", json={"code": code, "context": {"id": made["id"]}}).body.decode()

    assert "execution_complete" in run("x=1; f() { echo f$x; }; cd /var")
    left = run("x=2; exit 7")
    assert '"evalue":"7"' in left and "execution_complete" not in left
    after = run("f; pwd")
    assert '"text":"f1' in after and "/var" in after, after
    finish = run_aside(interpreter, api, "touch /tmp/bash-runs; sleep 60", type("Context", (), {"id": made["id"]}))
    wait_for_file(api, interpreter.sandbox, "/tmp/bash-runs")
    assert api.execd(interpreter.sandbox.id, "DELETE", f"/code?id={made['id']}").status == 200
    assert "KeyboardInterrupt" in finish()
    assert '"text":"f1' in run("f")
    api.execd(interpreter.sandbox.id, "DELETE", f"/code/contexts/{made['id']}")
