"""The Python kernel alone, over a socket pair. Run by ctest; no root, no network."""

import os
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from kernel_driver import Kernel  # noqa: E402


class PythonKernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.kernel = Kernel("python", cwd=cls.directory.name)

    @classmethod
    def tearDownClass(cls):
        cls.kernel.close()
        cls.directory.cleanup()

    def run_cell(self, code, **options):
        return self.kernel.run(code, **options)

    def value(self, code):
        cell = self.run_cell(code)
        self.assertIsNone(cell.error, cell.error)
        return cell.text

    def fails(self, code, name):
        cell = self.run_cell(code)
        self.assertIsNotNone(cell.error, f"{code!r} did not fail")
        self.assertEqual(cell.error["ename"], name)
        return cell.error

    def test_ready_says_what_it_is(self):
        self.assertEqual((self.kernel.ready["op"], self.kernel.ready["language"]), ("ready", "python"))
        self.assertRegex(self.kernel.ready["version"], r"^3\.\d+\.\d+$")

    def test_values(self):
        for code, text in [("1+1", "2"), ("x = 1", None), ("None", None), ("'a'", "'a'"), ("1; 2", "2"), ("1;", None), ("a = b = 3\na", "3"),
                           ("[i for i in range(3)]", "[0, 1, 2]"), ("def f(): pass", None), ("# nothing", None), ("", None), ("'ü☃'", "'ü☃'")]:
            with self.subTest(code=code):
                self.assertEqual(self.value(code), text)

    def test_state_is_kept(self):
        self.run_cell("kept = {'a': 1}")
        self.assertEqual(self.value("kept['a'] + 1"), "2")

    def test_counts_every_cell(self):
        first = self.run_cell("1").done["count"]
        self.assertEqual(self.run_cell("1/0").done["count"], first + 1)
        self.assertEqual(self.run_cell("2").of("result")[0]["count"], first + 2)

    def test_indentation_is_removed(self):
        self.assertEqual(self.value("\n\n    import sys\n    if True:\n        r = 2 + 2\n    r\n    "), "4")
        self.assertEqual(self.value("\tz = 5\n\tz"), "5")
        self.assertEqual(self.value("    s = '''\nleft'''\n    s"), "'\\nleft'")

    def test_last_results(self):
        self.run_cell("41")
        self.run_cell("42")
        self.assertEqual(self.value("(_, __)"), "(42, 41)")

    def test_output_comes_before_the_result(self):
        cell = self.run_cell("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.write('no newline')\n5")
        self.assertEqual((cell.stdout, cell.stderr, cell.text), (b"out\nno newline", b"err\n", "5"))

    def test_main_module(self):
        self.assertEqual(self.value("__name__"), "'__main__'")
        self.assertEqual(self.value("import pickle\nclass P:\n    v = 3\npickle.loads(pickle.dumps(P())).v"), "3")

    def test_multiprocessing(self):
        self.assertEqual(self.value("import multiprocessing\ndef sq(n): return n * n\nwith multiprocessing.get_context('fork').Pool(2) as p: r = p.map(sq, [1, 2, 3])\nr"), "[1, 4, 9]")

    def test_tracebacks_show_cells_only(self):
        error = self.fails("def inner():\n    return 1 / 0\ninner()", "ZeroDivisionError")
        text = "\n".join(error["traceback"])
        self.assertIn("return 1 / 0", text)
        self.assertIn("inner()", text)
        self.assertNotIn("<kernel", text)
        self.assertEqual(error["evalue"], "division by zero")

    def test_errors(self):
        for code, name in [("x ==", "SyntaxError"), ("nope", "NameError"), ("raise ValueError('a')", "ValueError"), ("  x\n y", "IndentationError"),
                           ("import sys; sys.exit(3)", "SystemExit"), ("raise KeyboardInterrupt", "KeyboardInterrupt"), ("def f(): f()\nf()", "RecursionError"),
                           ("yield 1", "SyntaxError"), ("return", "SyntaxError"), ("assert False, 'x'", "AssertionError"), ("import no_such", "ModuleNotFoundError"),
                           ("class E(Exception):\n    def __str__(self): raise TypeError\nraise E", "E")]:
            with self.subTest(code=code):
                self.fails(code, name)
        self.assertEqual(self.value("1+1"), "2")

    def test_a_failing_repr_is_an_error(self):
        self.fails("class R:\n    def __repr__(self): raise ValueError('r')\nR()", "ValueError")

    def test_exit_zero_is_no_error(self):
        self.assertIsNone(self.value("import sys; sys.exit(0)"))
        self.assertIsNone(self.value("exit()"))

    def test_input_is_refused(self):
        self.assertIn("input() is not available", self.fails("input('name? ')", "StdinNotImplementedError")["evalue"])

    def test_await(self):
        self.assertEqual(self.value("import asyncio\nasync def a(n):\n    await asyncio.sleep(0)\n    return n\nawait a(3)"), "3")
        self.assertEqual(self.value("v = await a(4)\nv"), "4")
        self.assertEqual(self.value("[await a(i) for i in range(2)]"), "[0, 1]")
        self.assertEqual(self.value("async with asyncio.Lock(): w = 1\nw"), "1")
        self.assertEqual(self.value("asyncio.run(a(5))"), "5")
        self.fails("await asyncio.wait_for(asyncio.sleep(5), 0.01)", "TimeoutError")

    def test_tasks_go_on_between_cells(self):
        self.run_cell("import asyncio\nhits = []\nasync def tick():\n    for i in range(3):\n        await asyncio.sleep(0.01)\n        hits.append(i)\nt = asyncio.get_event_loop().create_task(tick()) if False else None\nasync def go(): return asyncio.ensure_future(tick())\nt = await go()")
        self.assertEqual(self.value("import time\nfor _ in range(300):\n    await asyncio.sleep(0.01)\n    if t.done(): break\nhits"), "[0, 1, 2]")

    def test_asyncio_is_not_imported_at_start(self):
        fresh = Kernel("python")
        try:
            loaded = fresh.run("import sys\nsorted(m for m in ('asyncio', 'json', 'ast', 'traceback', 're') if m in sys.modules)").text
            self.assertEqual(loaded, "[]")
        finally:
            fresh.close()

    def test_interrupt(self):
        for code in ("print('go')\nwhile True: pass", "import time\nprint('go')\ntime.sleep(60)", "print('go')\n!sleep 60", "import asyncio\nprint('go')\nawait asyncio.sleep(60)"):
            with self.subTest(code=code):
                cell = self.kernel.start(code)
                self.kernel.wait_output(cell, b"go")
                self.kernel.interrupt()
                self.kernel.finish(cell, 10)
                self.assertEqual(cell.error["ename"], "KeyboardInterrupt")
        for delay in (0, 0, 0, 0.0003, 0.001, 0.003):  # whenever after the cell was sent
            cell = self.kernel.start("while True: pass")
            time.sleep(delay)
            self.kernel.interrupt()
            self.kernel.finish(cell, 10)
            self.assertEqual(cell.error["ename"], "KeyboardInterrupt")
        self.kernel.interrupt()  # no cell runs: ignored
        self.assertEqual(self.value("1+1"), "2")

    def test_shell_and_magics(self):
        self.assertEqual(self.run_cell("!echo hi; echo err >&2").stdout, b"hi\n")
        self.assertEqual(self.run_cell("n = 3\nif n:\n    !echo {n + 1}").stdout, b"4\n")
        self.assertEqual(self.value("lines = !printf 'a\\nb'\nlines"), "['a', 'b']")
        self.assertEqual(self.run_cell("%%bash\nx=5\necho $x").stdout, b"5\n")
        self.fails("%%bash\nexit 3", "CalledProcessError")
        self.assertEqual(self.value("%%time\n3 + 4"), "7")
        self.assertIn(b"Wall time", self.run_cell("%time 1 + 1").stdout)
        self.assertEqual(self.value("%env KERNEL_TEST=x\nimport os\nos.environ['KERNEL_TEST']"), "'x'")
        self.assertIsNone(self.value("%matplotlib inline"))
        self.fails("%no_such_magic", "NameError")
        self.assertEqual(self.run_cell("%%writefile cell.txt\nhello").stdout, b"Wrote cell.txt\n")
        self.assertEqual(self.value("open('cell.txt').read()"), "'hello'")
        self.assertIn(b"Return the number", self.run_cell("len?").stdout)

    def test_percent_and_bang_in_python_stay_python(self):
        self.assertEqual(self.value("'''\n%pip\n!ls\n''' and 7 % 4"), "3")
        self.assertEqual(self.value("x = '%d!' % 3\nx != 'a'"), "True")

    def test_pip(self):
        cell = self.run_cell("%pip --version")
        if b"No module named pip" in cell.stderr:
            self.skipTest("this Python has no pip")
        self.assertTrue(cell.stdout.startswith(b"pip "), cell.stdout)

    def test_rich_values(self):
        cell = self.run_cell("class H:\n    def _repr_html_(self): return '<b>h</b>'\n    def _repr_png_(self): return b'\\x89PNG'\n    def _repr_json_(self): return {'a': 1}\n    def __repr__(self): return 'H!'\nH()")
        data = cell.of("result")[0]["data"]
        self.assertEqual((data["text/html"], data["image/png"], data["text/plain"]), ("<b>h</b>", "iVBORw==", "H!"))
        self.assertEqual(data["application/json"], '{"a": 1}')
        cell = self.run_cell("class M:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/latex': '$x$'}\nM()")
        self.assertEqual(cell.of("result")[0]["data"]["text/latex"], "$x$")
        self.assertEqual(self.run_cell("H").of("result")[0]["data"], {"text/plain": "<class '__main__.H'>"})

    def test_display_and_updates(self):
        cell = self.run_cell("h = display('one', display_id=True)\nh.update('two')\ndisplay(1, 2)")
        shown = cell.of("display")
        self.assertEqual([s["data"]["text/plain"] for s in shown], ["'one'", "'two'", "1", "2"])
        self.assertEqual(shown[0]["display_id"], shown[1]["display_id"])
        self.assertTrue(shown[1]["update"])
        cell = self.run_cell("for n in range(3):\n    print(n)\n    display(n)\nprint('end')")
        self.assertEqual([frame["written"] for frame in cell.of("display")], [b"0\n", b"0\n1\n", b"0\n1\n2\n"])
        code = "import threading\nthreads = [threading.Thread(target=display, args=('x' * 100_000,)) for _ in range(8)]\n"
        cell = self.run_cell(code + "for each in threads: each.start()\ndisplay('y')\nfor each in threads: each.join()\n5")
        self.assertEqual((len(cell.of("display")), cell.text), (9, "5"))

    def test_ipython_display(self):
        cell = self.run_cell("from IPython.display import display, HTML\ndisplay(HTML('<i>x</i>'))")
        self.assertIsNone(cell.error, cell.error)
        self.assertEqual(cell.of("display")[0]["data"]["text/html"], "<i>x</i>")

    def test_figures(self):
        cell = self.run_cell("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.plot([3])\nNone")
        if cell.error and cell.error["ename"] == "ModuleNotFoundError":
            self.skipTest("matplotlib is not installed")
        self.assertIsNone(cell.error, cell.error)
        self.assertEqual([s["data"]["image/png"][:8] for s in cell.of("display")], ["iVBORw0K", "iVBORw0K"])

    def test_bytes_that_are_no_text(self):
        cell = self.run_cell("import os\nos.write(1, bytes(range(256)))\nprint('\\ud800ü')")
        self.assertEqual(cell.stdout[:256], bytes(range(256)))
        self.assertIsNone(cell.error)
        self.assertEqual(self.value("'\\ud800'"), "'\\ud800'")

    def test_much_output(self):
        cell = self.run_cell("for i in range(100000): print('x' * 99)", timeout=60)
        self.assertEqual(len(cell.stdout), 10_000_000)

    def test_a_forked_child_neither_delays_nor_speaks(self):
        cell = self.run_cell("import os, time\npid = os.fork()\nif pid == 0:\n    time.sleep(30)\n    display('child')\n'parent'", timeout=10)
        self.assertEqual((cell.text, cell.error), ("'parent'", None))
        self.assertEqual(self.value("os.kill(pid, 9)\nos.waitpid(pid, 0)[0] == pid"), "True")

    def test_a_closed_stdout_comes_back(self):
        self.run_cell("import sys\nsys.stdout = None")
        self.assertEqual(self.run_cell("print('again')").stdout, b"again\n")

    def test_future_statements_last(self):
        self.run_cell("from __future__ import annotations")
        self.assertEqual(self.value("def g(a: undefined_name): pass\ng.__annotations__['a']"), "'undefined_name'")

    def test_sources_are_not_kept_for_ever(self):
        fresh = Kernel("python")
        try:
            fresh.run("import linecache\nbefore = len(linecache.cache)")
            for _ in range(6):
                fresh.run("'" + "x" * 1_000_000 + "';")
            self.assertLess(int(fresh.run("sum(size for size, *_ in linecache.cache.values())").text), 5_000_000)
            self.assertIn("1 / 0", "".join(fresh.run("1 / 0").error["traceback"]))
        finally:
            fresh.close()

    def test_tells_what_was_imported(self):
        fresh = Kernel("python", cwd=self.directory.name)
        try:
            with open(os.path.join(self.directory.name, "mine.py"), "w") as file:
                file.write("x = 1")
            fresh.run("import fractions, mine")
            fresh.run("1")
            self.assertIn("fractions", fresh.modules)
            self.assertNotIn("mine", fresh.modules)
        finally:
            fresh.close()

    def test_ends_with_its_channel(self):
        fresh = Kernel("python")
        fresh.socket.close()
        self.assertEqual(fresh.process.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
