"""The JavaScript and TypeScript kernel alone."""

import os
import tempfile
import unittest
from pathlib import Path

from kernel_case import Kernel, KernelTest, main


class JavaScript(KernelTest):
    language = "javascript"

    def test_ready(self):
        self.assertEqual(self.kernel.ready["language"], "javascript")
        self.assertRegex(self.kernel.ready["version"], r"^\d+\.\d+\.\d+$")

    def test_values(self):
        for code, text in {
            "2 + 2": "4", "2 + 2;": "4", "(1, 2)": "2", "'a' + 'b'": "'ab'", "null": "null", "({a: 1})": "{ a: 1 }", "{a: 1}": "{ a: 1 }",
            "[1, 2]": "[ 1, 2 ]", "undefined": None, "const quiet = 1": None, "if (true) { 5 }": None, "1; let other = 2": None,
            "// only a comment": None, "x1 = 7": "7", "async () => 1": "[AsyncFunction (anonymous)]", "((3))": "3",
            "`a\n${1 + 1}`": "'a\\n2'", "/[/]'/.test(\"/'\")": "true", "'ünïcode 🎉'": "'ünïcode 🎉'", "0n + 1n": "1n",
        }.items():  # fmt: skip
            with self.subTest(code):
                self.assertEqual(self.value(code), text)

    def test_state_and_declaring_again(self):
        self.value("const a = 1; let b = 2; class C { m() { return 'first' } } function f() { return 'one' } var v = 3")
        self.assertEqual(self.value("[a, b, new C().m(), f(), v]"), "[ 1, 2, 'first', 'one', 3 ]")
        self.value("const a = 10; let {b, ...rest} = {b: 20, z: 1}; class C { m() { return 'second' } } function f() { return 'two' }")
        self.assertEqual(self.value("[a, b, new C().m(), f(), rest]"), "[ 10, 20, 'second', 'two', { z: 1 } ]")
        self.fails("const broken = (() => { throw new Error('no') })()", "Error", "no")
        self.assertEqual(self.value("const broken = 'whole'; broken"), "'whole'")
        self.assertEqual(self.value("const crypto = require('crypto'); typeof crypto.createHash"), "'function'")

    def test_await(self):
        self.assertEqual(self.value("const w = await Promise.resolve(5); w + 1"), "6")
        self.assertEqual(self.value("w"), "5")
        self.assertEqual(self.value("function af() { return await_me } const await_me = await 3; af()"), "3")
        self.assertEqual(self.value("af() + 1"), "4")
        self.assertEqual(self.value("const [p, {q}] = await Promise.all([1, {q: 2}]), r = 3; [p, q, r]"), "[ 1, 2, 3 ]")
        self.assertEqual(self.value("let sum = 0; for (var i = 0; i < 3; i++) sum += await i; sum"), "3")
        self.assertEqual(self.value("i"), "3")
        self.assertEqual(self.value("for await (const each of [1, 2]) { sum += each }\nsum"), "6")
        self.assertEqual(self.value("class D { x = 4 }\nnew D().x + await 1"), "5")
        self.assertEqual(self.value("let later; await null; later = 1; typeof later"), "'number'")
        self.assertEqual(self.value("async function work() { await new Promise(r => setTimeout(r, 20)); console.log('worked'); return 9 }\nwork()"), "9")
        self.assertEqual(self.value("await (async () => { for (const k of [1]) { var inner = k } return inner })()"), "1")
        self.assertEqual(self.value("var left = 1; await 0; if (left === 2) var other = await 5\nelse var other = await 6\nvar left\n;[left, other]"), "[ 1, 6 ]")
        self.assertEqual(self.value("{ let a = 1\nvar nested = await 2 }\nfor (var k of [await 7]) var seen = k\n;[nested, k, seen]"), "[ 2, 7, 7 ]")
        self.assertEqual(self.value("let {u = 3, v: [z]} = await {v: [4]}, none\n;[u, z, none]"), "[ 3, 4, undefined ]")
        self.fails("await Promise.reject(new TypeError('late'))", "TypeError", "late")
        self.fails("await new Promise(() => setTimeout(() => { throw new RangeError('stray') }, 5))", "RangeError", "stray")

    def test_imports(self):
        self.assertEqual(self.value("import fs from 'fs'\nimport * as p from 'node:path'\nimport {sep, join as j} from 'path';\n[typeof fs.readFileSync, p.sep === sep, j('a', 'b')]"), "[ 'function', true, 'a/b' ]")  # fmt: skip
        self.assertEqual(self.value("typeof fs.readFileSync"), "'function'")
        self.assertEqual(self.value("(await import('os')).EOL"), "'\\n'")
        self.assertEqual(self.value("typeof require('util').inspect"), "'function'")
        self.fails("import {nothing} from 'fs'", "SyntaxError", "nothing")
        self.fails("import x from 'no-such-package'", "Error", "no-such-package")
        self.assertEqual(self.value("export const exported = 4\nexport default exported"), "4")

    def test_imports_from_the_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "m.mjs").write_text("export const here = 1; export default 'd'")
            Path(folder, "c.js").write_text("module.exports = {common: 2}")
            package = Path(folder, "node_modules", "esm-only")
            package.mkdir(parents=True)
            package.joinpath("package.json").write_text('{"name": "esm-only", "type": "module", "exports": {"import": "./i.js"}}')
            package.joinpath("i.js").write_text("export const only = 3")
            before = os.getcwd()
            self.value(f"process.chdir({folder!r})")
            code = "import d, {here} from './m.mjs'\nimport {only} from 'esm-only'\nconst {common} = require('./c.js');\n[d, here, only, common]"
            self.assertEqual(self.value(code), "[ 'd', 1, 3, 2 ]")
            self.value(f"process.chdir({before!r})")

    def test_output(self):
        run = self.kernel.run("console.log('to out', {a: 1}); console.error('to err'); process.stdout.write('no newline'); 1")
        self.assertEqual((run.stdout, run.stderr, run.text), ("to out { a: 1 }\nno newline", "to err\n", "1"))
        run = self.kernel.run("for (let i = 0; i < 20000; i++) console.log('x'.repeat(99))")
        self.assertEqual(len(run.out), 2_000_000)
        run = self.kernel.run("require('child_process').execFileSync('echo', ['from a child'], {stdio: 'inherit'}); 0")
        self.assertEqual(run.stdout, "from a child\n")

    def test_children_do_not_get_the_socket(self):
        self.assertEqual(self.value("require('child_process').execSync('ls /proc/self/fd').toString().includes('\\n9') || require('fs').existsSync('/x')"), "false")  # fmt: skip
        run = self.kernel.run("require('child_process').execSync('readlink /proc/self/fd/3 || echo none').toString().trim()")
        self.assertNotIn("socket", run.text)

    def test_errors(self):
        run = self.fails("function inner() { missing.thing }\n\ninner()", "ReferenceError", "missing is not defined")
        text = "\n".join(run.error["traceback"])
        self.assertIn("cell_", text)
        self.assertIn(".js:1:20", text)
        for ours in ("/proc/self/fd", "node:vm", "node:internal", "$kernel"):
            self.assertNotIn(ours, text)
        run = self.fails("1\n  nowhere.at.all()", "ReferenceError")
        name = f"cell_{run.count}.js:2"
        self.assertEqual(run.error["traceback"], [name, "  nowhere.at.all()", "  ^", "", "ReferenceError: nowhere is not defined", f"    at {name}:3"])
        run = self.fails("const = 3", "SyntaxError")
        self.assertIn("const = 3", "\n".join(run.error["traceback"]))
        self.fails("throw new TypeError('wrong')", "TypeError", "wrong")
        self.fails("throw 'text'", "Thrown", "'text'")
        self.fails("throw null", "Thrown", "null")
        self.fails("class Own extends Error { constructor(m) { super(m); this.name = 'Own' } }\nthrow new Own('mine')", "Own", "mine")
        run = self.fails("throw new Error('outer', {cause: new Error('the cause')})", "Error", "outer")
        self.assertIn("the cause", "\n".join(run.error["traceback"]))
        run = self.kernel.run("console.log('before'); undefined.x")
        self.assertEqual((run.stdout, run.error["ename"]), ("before\n", "TypeError"))

    def test_interrupt(self):
        self.value("let kept = 'state'")
        self.interrupted("console.log('begun'); while (true) {}")
        self.interrupted("console.log('begun'); await new Promise(() => {})")
        self.interrupted("await null; console.log('begun'); for (;;) {}")
        self.interrupted("await new Promise(r => setTimeout(r, 300)); console.log('begun'); for (;;) {}")
        self.interrupted_early("for (;;) {}")
        self.interrupted_early("await null; for (;;) {}")
        self.interrupted_early("await new Promise(() => {})")
        self.interrupted("console.log('begun'); try { while (true) {} } catch (e) { console.log('caught') }")
        self.kernel.interrupt()  # between runs it means nothing; the next one it may hit
        self.kernel.run("1")
        self.assertEqual(self.value("kept"), "'state'")

    def test_display(self):
        run = self.kernel.run("await display({[Symbol.for('Jupyter.display')]: () => ({'text/html': '<b>x</b>', 'text/plain': 'x'})}); 1")
        self.assertEqual(run.displays, [{"text/html": "<b>x</b>", "text/plain": "x"}])
        self.assertEqual(run.text, "1")
        run = self.kernel.run("for (const n of [1, 2, 3]) { console.log(n); display(n) }\nconsole.log('end')")
        self.assertEqual([frame["written"] for frame in run.frames], [b"1\n", b"1\n2\n", b"1\n2\n3\n"])
        self.assertEqual([data["text/plain"] for data in run.displays], ["1", "2", "3"])
        run = self.kernel.run("display({[Symbol.for('Jupyter.display')]: async () => ({'text/plain': 'later'})}); undefined")
        self.assertEqual(run.displays, [{"text/plain": "later"}])

    def test_counts(self):
        first = self.kernel.run("1").count
        self.assertEqual(self.kernel.run("throw 1").count, first + 1)
        self.assertEqual(self.kernel.run("1").count, first + 2)

    def test_large_cell_and_result(self):
        self.assertEqual(self.value("'" + "y" * 3_000_000 + "'.length"), "3000000")

    def test_process_arguments_are_plain(self):
        self.assertEqual(self.value("[process.execArgv.length, process.argv.length]"), "[ 0, 1 ]")


class TypeScript(KernelTest):
    language = "typescript"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.compiles = cls.kernel.run("const probe: number = 1; probe").error is None

    def setUp(self):
        if not self.compiles and self.id().split(".")[-1] != "test_without_types":
            self.skipTest("this Node does not strip types, and no typescript package was found")

    def test_without_types(self):
        self.assertEqual(self.kernel.ready["language"], "typescript")
        self.assertEqual(self.value("2 + 2"), "4")
        self.assertEqual(self.value("const a = await 3\na"), "3")

    def test_types(self):
        self.assertEqual(self.value("interface P { x: number }\nconst p: P = {x: 3}\nfunction id<T>(v: T): T { return v }\nid<number>(p.x)"), "3")
        self.assertEqual(self.value("enum Colour { Red, Green }\nColour.Green"), "1")
        self.assertEqual(self.value("type N = number\nlet n = (5 as N)!\nn"), "5")
        self.assertEqual(self.value("class Q { constructor(private readonly y: string) {} get() { return this.y } }\nnew Q('made').get()"), "'made'")
        self.assertEqual(self.value("const n: string = await Promise.resolve('again')\nn"), "'again'")

    def test_imports_stay_for_later_cells(self):
        self.value("import * as os from 'os'\nimport type {Stats} from 'fs'\nlet s: Stats | undefined")
        self.assertEqual(self.value("os.EOL as string"), "'\\n'")

    def test_errors(self):
        self.fails("const x: number = ;", "SyntaxError")
        run = self.fails("\nconst y: number = 1\nfunction bad(): never { throw new Error('typed') }\nbad()", "Error", "typed")
        self.assertIn(".ts:3", "\n".join(run.error["traceback"]))
        # What the compiler takes away does not move what is left.
        run = self.fails("interface Gone {\n  a: string\n}\ntype Also =\n  | 1\nfunction bad(): never {\n  throw new Error('typed')\n}\nbad()", "Error")
        self.assertEqual(run.error["traceback"][1], "  throw new Error('typed')")
        self.assertRegex("\n".join(run.error["traceback"]), r"(?s)^cell_\d+\.ts:7\n.*at bad \(cell_\d+\.ts:7.*at cell_\d+\.ts:9")


class Leaving(unittest.TestCase):
    def test_exit_in_a_cell_ends_the_kernel(self):
        kernel = Kernel("javascript")
        with self.assertRaises(EOFError):
            kernel.run("process.exit(3)")
        self.assertEqual(kernel.leave(), 3)

    def test_a_timer_does_not_keep_it(self):
        kernel = Kernel("javascript")
        kernel.run("setInterval(() => {}, 1000); 0")
        self.assertEqual(kernel.leave(), 0)


if __name__ == "__main__":
    main("node")
