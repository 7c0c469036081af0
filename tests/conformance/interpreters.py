"""The published interpreter packages as the tests use them: both flavours look alike."""

import asyncio
import threading

from code_interpreter import CodeInterpreter, CodeInterpreterSync
from opensandbox.models.execd import ExecutionHandlers
from opensandbox.models.execd_sync import ExecutionHandlersSync


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

    def aside(self, code, context=None, language="python", on_init=False):
        """Runs a cell while the client does something else."""
        kind = TaskAside if self.sdk.flavour == "async" else ThreadAside
        return kind(self, on_init, code, context, language)

    def handlers(self, **functions):
        if self.sdk.flavour == "sync":
            return ExecutionHandlersSync(**functions)

        def awaitable(function):
            async def call(value):
                function(value)

            return call

        return ExecutionHandlers(**{name: awaitable(function) for name, function in functions.items()})

    def run_seen(self, code, context):
        """Also what the handlers saw, in their order: lines that were printed and texts that were shown."""
        seen = []
        handlers = self.handlers(
            on_stdout=lambda message: seen.extend(f"printed {line}" for line in message.text.splitlines()),
            on_result=lambda result: seen.append(f"shown {result.text}"),
        )
        return self.run(code, context, handlers=handlers), seen

    def context(self, language="python"):
        return self.sdk.go(self.codes.create_context(str(language)))

    def call(self, name, *arguments):
        return self.sdk.go(getattr(self.codes, name)(*arguments))


class TaskAside:
    def __init__(self, interpreter, on_init, *cell):
        self.loop = interpreter.sdk.loop
        self.seen = asyncio.Event()
        options = {"handlers": interpreter.handlers(on_init=lambda _: self.seen.set())} if on_init else {}
        self.task = self.loop.create_task(interpreter.start(*cell, **options))

    def begun(self):
        """Waits until the client has heard of the run."""
        self.loop.run_until_complete(asyncio.wait_for(self.seen.wait(), 30))

    def finish(self, seconds=30):
        return self.loop.run_until_complete(asyncio.wait_for(self.task, seconds))


class ThreadAside:
    def __init__(self, interpreter, on_init, *cell):
        self.box = {}
        self.seen = threading.Event()
        options = {"handlers": interpreter.handlers(on_init=lambda _: self.seen.set())} if on_init else {}
        self.thread = threading.Thread(target=self.work, args=(interpreter, cell, options), daemon=True)
        self.thread.start()

    def begun(self):
        assert self.seen.wait(30), "the client hears nothing of the run"

    def work(self, interpreter, cell, options):
        try:
            self.box["ran"] = interpreter.start(*cell, **options)
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
