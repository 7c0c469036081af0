"""Cells in several languages, one sandbox."""

import asyncio
from datetime import timedelta

from code_interpreter import CodeInterpreter, SupportedLanguage
from opensandbox import Sandbox

CELLS = {
    SupportedLanguage.PYTHON: "words = ['a', 'b']\nlen(words) + 40",
    SupportedLanguage.JAVASCRIPT: "const answer = await Promise.resolve(42)\nanswer",
    SupportedLanguage.TYPESCRIPT: "const double = (n: number): number => 2 * n\ndouble(21)",
    SupportedLanguage.JAVA: "import java.util.stream.*;\nIntStream.range(0, 4).sum() * 7",
    SupportedLanguage.GO: "func double(n int) int { return 2 * n }\ndouble(21)",
}


async def main():
    sandbox = await Sandbox.create(
        "opensandbox/code-interpreter:latest",
        entrypoint=["/opt/code-interpreter/code-interpreter.sh"],
        timeout=timedelta(minutes=10),
    )
    async with sandbox:
        interpreter = await CodeInterpreter.create(sandbox)
        codes = interpreter.codes

        for language, cell in CELLS.items():
            run = await codes.run(cell, language=language)
            print(f"{language}: {run.result[0].text}")

        # The first cell's variables are still there; a context of its own does not have them.
        run = await codes.run("words")
        print("kept:", run.result[0].text)
        context = await codes.create_context(SupportedLanguage.PYTHON)
        run = await codes.run("words", context=context)
        print("elsewhere:", run.error.name)

        # An interrupt ends the cell, not the context. The id to interrupt comes first in the stream.
        async def interrupt():
            await asyncio.sleep(1)
            await codes.interrupt(context.id)

        busy, _ = await asyncio.gather(codes.run("while True: pass", context=context), interrupt())
        print("interrupted:", busy.error.name)
        run = await codes.run("'alive'", context=context)
        print("still", run.result[0].text)

        await sandbox.kill()


asyncio.run(main())
