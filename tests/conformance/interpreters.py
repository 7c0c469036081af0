"""The published interpreter packages as the tests use them: both flavours look alike."""

import asyncio
import threading

from code_interpreter import CodeInterpreter, CodeInterpreterSync


class Interpreter:
    def __init__(self, sdk, sandbox):
        self.sdk = sdk
        self.sandbox = sandbox
        kind = CodeInterpreter if sdk.flavour == "async" else CodeInterpreterSync
        self.codes = sdk.go(kind.create(sandbox)).codes

    def run(self, code, context=None, language="python", **options):
        return self.sdk.go(self.start(code, context, language, **options))

    def start(self, code, context=None, language="python", **options):
        where = {"context": context} if context else {"language": language}
        return self.codes.run(code, **where, **options)

    def aside(self, code, context=None, language="python"):
        """Runs a cell while the client does something else."""
        kind = TaskAside if self.sdk.flavour == "async" else ThreadAside
        return kind(self, code, context, language)

    def context(self, language="python"):
        return self.sdk.go(self.codes.create_context(str(language)))

    def call(self, name, *arguments):
        return self.sdk.go(getattr(self.codes, name)(*arguments))


class TaskAside:
    def __init__(self, interpreter, *cell):
        self.loop = interpreter.sdk.loop
        self.task = self.loop.create_task(interpreter.start(*cell))

    def finish(self, seconds=30):
        return self.loop.run_until_complete(asyncio.wait_for(self.task, seconds))


class ThreadAside:
    def __init__(self, interpreter, *cell):
        self.box = {}
        self.thread = threading.Thread(target=self.work, args=(interpreter, cell), daemon=True)
        self.thread.start()

    def work(self, interpreter, cell):
        try:
            self.box["ran"] = interpreter.start(*cell)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
            self.box["error"] = error

    def finish(self, seconds=30):
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the run hangs"
        if "error" in self.box:
            raise self.box["error"]
        return self.box["ran"]


def out(ran):
    return "".join(message.text for message in ran.logs.stdout)


def err(ran):
    return "".join(message.text for message in ran.logs.stderr)


def text(ran):
    assert ran.error is None, ran.error
    return ran.result[0].text if ran.result else None
