"""The Java kernel alone."""

import os
import shutil

from kernel_case import KernelTest, main


class Java(KernelTest):
    language = "java"

    def test_ready(self):
        self.assertEqual(self.kernel.ready["language"], "java")
        self.assertRegex(self.kernel.ready["version"], r"^\d+")

    def test_values(self):
        for code, text in {
            "2 + 2": "4", "2 + 2;": "4", '"a" + "b"': '"ab"', "int quiet = 3;": None, "List.of(1, 2)": "[1, 2]", "1; int other = 2;": None,
            "// only a comment": None, "int made = 4; made * 2": "8", "Math.max(1, 2)": "2", 'System.out.print("")': None,
            '"ünïcode 🎉"': '"ünïcode 🎉"', "": None,
        }.items():  # fmt: skip
            with self.subTest(code):
                self.assertEqual(self.value(code), text)

    def test_the_samples_of_the_clients(self):
        run = self.kernel.run('System.out.println("Hello from Java!");\nint result = 2 + 2;\nSystem.out.println("2 + 2 = " + result);\nresult')
        self.assertEqual((run.stdout, run.text), ("Hello from Java!\n2 + 2 = 4\n", "4"))
        run = self.fails("int x = 10 / 0;", "EvalException", "/ by zero")
        self.assertIn("java.lang.ArithmeticException: / by zero", run.error["traceback"][0])
        self.assertNotIn("jdk.jshell", "\n".join(run.error["traceback"]))

    def test_state_classes_and_imports(self):
        self.value("import java.time.Duration;\nimport java.util.stream.*;")
        self.assertEqual(self.value("Duration.ofMinutes(2).toSeconds()"), "120")
        self.value("class Point {\n  final int x, y;\n  Point(int x, int y) { this.x = x; this.y = y; }\n  int sum() { return x + y; }\n}\nPoint p = new Point(3, 4);")
        self.assertEqual(self.value("p.sum()"), "7")
        self.value("record Pair(String a, int b) {}\nint twice(int n) {\n  return 2 * n;\n}")
        self.assertEqual(self.value('new Pair("k", twice(21))'), "Pair[a=k, b=42]")
        self.value("int twice(int n) { return n + n + 1; }")
        self.assertEqual(self.value("twice(1)"), "3")
        self.assertEqual(self.value("for (int i = 0; i < 3; i++) {\n  System.out.println(i);\n}\nIntStream.range(0, 4).sum()"), "6")
        self.value("String p = \"declared again\";")
        self.assertEqual(self.value("p"), '"declared again"')

    def test_errors(self):
        run = self.fails("int wrong = \"text\";", "CompilationException", "incompatible types")
        self.assertIn("^", "\n".join(run.error["traceback"]))
        self.fails("nowhere.call()", "CompilationException", "cannot find symbol")
        self.fails("int open = (", "CompilationException")
        self.fails("class Half {", "CompilationException")
        self.fails("int f2() { return missing(); }\nf2()", "UnresolvedReferenceException", "missing")
        run = self.fails('void deep() { throw new IllegalStateException("outer", new RuntimeException("inner")); }\ndeep();', "EvalException", "java.lang.IllegalStateException: outer")  # fmt: skip
        text = "\n".join(run.error["traceback"])
        self.assertIn("Caused by: java.lang.RuntimeException: inner", text)
        self.assertIn("at deep (#", text)
        run = self.kernel.run('System.out.println("before"); Integer.parseInt("x"); System.out.println("after");')
        self.assertEqual((run.stdout, run.error["ename"]), ("before\n", "EvalException"))

    def test_output(self):
        run = self.kernel.run('System.out.print("no newline"); System.err.println("to err"); 1')
        self.assertEqual((run.stdout, run.stderr, run.text), ("no newline", "to err\n", "1"))
        run = self.kernel.run('for (int i = 0; i < 20000; i++) System.out.println("x".repeat(99));')
        self.assertEqual(len(run.out), 2_000_000)

    def test_interrupt(self):
        self.value('String kept = "state";')
        self.interrupted('System.out.println("begun"); while (true) {}')
        self.interrupted('System.out.println("begun"); Thread.sleep(60_000);')
        self.interrupted('System.out.println("begun"); try { while (true) {} } finally { System.out.println("finally"); }')
        self.interrupted_early("while (true) {}")
        self.kernel.interrupt()  # between runs it means nothing; the next one it may hit
        self.kernel.run("1")
        self.assertEqual(self.value("kept"), '"state"')

    def test_counts(self):
        first = self.kernel.run("1").count
        self.assertEqual(self.kernel.run("1 / 0").count, first + 1)

    def test_no_files_are_left(self):
        self.assertFalse([name for name in os.listdir("/tmp") if name == f"hsperfdata_{self.kernel.process.pid}"])


if __name__ == "__main__":
    # A runtime without the compiler cannot start it.
    if shutil.which("java") and not shutil.which("javac"):
        print("skipped: java is a runtime without a compiler (no javac)")
        raise SystemExit(77)
    main("java")
