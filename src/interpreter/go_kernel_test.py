"""The Go kernel alone."""

import os
import select
import tempfile
import time
import unittest

from kernel_case import Kernel, KernelTest, main


class Go(KernelTest):
    language = "go"

    def test_ready(self):
        self.assertEqual(self.kernel.ready["language"], "go")
        self.assertRegex(self.kernel.ready["version"], r"^\d+\.\d+")

    def test_values(self):
        for code, text in {
            "2 + 2": "4", "x := 6\nx * 7": "42", '"a" + "b"': '"ab"', "[]int{1, 2}": "[]int{1, 2}", "y := 3": None, "// only a comment": None,
            "func() (int, string) { return 1, \"b\" }()": '1 "b"', 'fmt.Println("printed")': None, 'errors.New("text")': "text",
            '"ünïcode 🎉"': '"ünïcode 🎉"', "time.Duration(90) * time.Second": "1m30s",
        }.items():  # fmt: skip
            with self.subTest(code):
                self.assertEqual(self.value(code), text)

    def test_a_whole_program(self):
        code = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello from a program")\n}\n'
        self.assertEqual(self.kernel.run(code).stdout, "hello from a program\n")
        self.fails('package main\n\nimport "os"\n\nfunc main() { os.Exit(3) }\n', "ExitError", "exit status 3")
        run = self.fails("package main\n\nfunc main() { undefined_name() }\n", "CompileError", "undefined: undefined_name")
        self.assertIn("cell_", run.error["traceback"][0])

    def test_declarations_accumulate(self):
        self.value('import (\n\t"fmt"\n\tstr "strings"\n)')
        self.value("type Point struct {\n\tx, y int\n}\n\nfunc (p *Point) Sum() int { return p.x + p.y }\n\nconst (\n\tA = iota\n\tB\n)\n\nvar scale, shift = 10, 1")
        self.value("func make_point(x int) *Point {\n\treturn &Point{x, B * scale}\n}\np := make_point(5)")
        self.assertEqual(self.value("p.Sum() + shift"), "16")
        self.value("func make_point(x int) *Point { return &Point{x, x} }")
        self.assertEqual(self.value("make_point(2).Sum()"), "4")
        self.assertEqual(self.kernel.run('fmt.Println(str.ToUpper("up"), p.x)').stdout, "UP 5\n")
        self.value("n, err := strconv.Atoi(\"12\")")
        self.value("m, err := strconv.Atoi(\"no\")")
        self.assertEqual(self.value("err"), 'strconv.Atoi: parsing "no": invalid syntax')
        self.assertEqual(self.value("n"), "12")

    def test_a_cell_uses_its_own_variables_in_functions(self):
        self.assertEqual(self.value("base := 20\nfunc plus(n int) int { return base + n }\nplus(1)"), "21")

    def test_func_main_and_statements(self):
        self.assertEqual(self.kernel.run('func main() {\n\tfmt.Println("in main")\n}').stdout, "in main\n")
        run = self.kernel.run('sum := 0\nfor i := 0; i < 4; i++ {\n\tsum += i\n}\nif sum > 0 {\n\tfmt.Println("sum", sum)\n} else {\n\tfmt.Println("none")\n}\nsum')
        self.assertEqual((run.stdout, run.text), ("sum 6\n", "6"))
        self.assertEqual(self.kernel.run("func quiet() { fmt.Print(\"called\") }\nquiet()").stdout, "called")

    def test_errors(self):
        run = self.fails("a := 1\nb := missing + a", "CompileError", "undefined: missing")
        self.assertRegex(run.error["traceback"][0], r"^cell_\d+\.go:2:")
        self.fails("x = := 2", "CompileError")
        self.fails("func broken( {", "CompileError")
        self.fails("}", "CompileError")
        self.fails("var wrong int = \"text\"", "CompileError", "cannot use")
        run = self.fails('list := []int{1}\nfmt.Println("before")\nindex := 5\nfmt.Println(list[index])', "panic", "index out of range [5] with length 1")
        self.assertEqual(run.stdout, "before\n")
        text = "\n".join(run.error["traceback"])
        self.assertRegex(text, r"cell_\d+\.go:4")
        self.assertNotIn("kernelPanic", text)
        self.fails("panic(\"my own\")", "panic", "my own")

    def test_output(self):
        run = self.kernel.run('fmt.Print("no newline")\nfmt.Fprintln(os.Stderr, "to err")\n1')
        self.assertEqual((run.stdout, run.stderr, run.text), ("no newline", "to err\n", "1"))

    def test_interrupt(self):
        self.value('const kept = "state"')
        self.interrupted('fmt.Println("begun")\nfor {\n}')
        self.interrupted('fmt.Println("begun")\ntime.Sleep(time.Minute)')
        self.interrupted_early("for {\n}")
        self.assertEqual(self.value("kept"), '"state"')

    def test_counts(self):
        first = self.kernel.run("1").count
        self.assertEqual(self.kernel.run("panic(1)").count, first + 1)


class Leaving(unittest.TestCase):
    def test_no_files_are_left(self):
        with tempfile.TemporaryDirectory() as folder:
            kernel = Kernel("go", env={**os.environ, "TMPDIR": folder})
            self.assertEqual(kernel.run("1").text, "1")
            self.assertEqual(kernel.leave(), 0)
            self.assertEqual(os.listdir(folder), [])

    def test_nothing_is_left_of_a_kernel_that_is_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            kernel = Kernel("go", env={**os.environ, "TMPDIR": folder})
            cell = kernel.start("fmt.Println(os.Getpid())\nfor {\n}")
            kernel.wait_output(cell, b"\n")
            running = os.pidfd_open(int(cell.stdout))
            deadline = time.monotonic() + 10
            while os.listdir(folder) and time.monotonic() < deadline:  # removed as soon as the cell has been started
                time.sleep(0.01)
            kernel.process.kill()
            self.assertTrue(select.select([running], [], [], 10)[0], "the cell goes on without its kernel")
            os.close(running)
            self.assertEqual(os.listdir(folder), [])
            kernel.close()

    def test_places_in_errors(self):
        kernel = Kernel("go")
        self.assertEqual(kernel.run("undefinedThing").error["traceback"], ["cell_1.go:1:1: undefined: undefinedThing"])
        kernel.leave()


if __name__ == "__main__":
    main("go")
