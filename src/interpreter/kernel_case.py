"""A test case around one kernel, for the tests of the kernels."""

import shutil
import sys
import time
import unittest

import kernel_driver

DEADLINE = 90  # for kernels that compile, on a machine that does other things as well


class Run:
    """A cell that is over, as tests like to see it."""

    def __init__(self, cell):
        self.out, self.err, self.text, self.error, self.count = cell.stdout, cell.stderr, cell.text, cell.error, cell.done["count"]
        self.displays = [frame["data"] for frame in cell.of("display")]
        self.frames = cell.frames
        assert len(cell.of("error")) <= 1, cell.frames

    @property
    def stdout(self):
        return self.out.decode()

    @property
    def stderr(self):
        return self.err.decode()

    def __repr__(self):
        return f"<run out={self.out[:500]!r} err={self.err[:500]!r} frames={self.frames}>"


class Kernel(kernel_driver.Kernel):
    def run(self, code, timeout=DEADLINE):
        return Run(super().run(code, timeout))

    def leave(self):
        """Ends it as execd does, by closing the socket; the status with which it left."""
        self.close()
        return self.process.returncode


class KernelTest(unittest.TestCase):
    """One kernel for all tests of a class; they know that state is shared."""

    language = None

    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel(cls.language)

    @classmethod
    def tearDownClass(cls):
        status = cls.kernel.leave()
        assert status == 0, f"the kernel left with {status}"

    def value(self, code):
        run = self.kernel.run(code)
        self.assertIsNone(run.error, run)
        return run.text

    def fails(self, code, ename, evalue=""):
        run = self.kernel.run(code)
        self.assertIsNotNone(run.error, run)
        self.assertEqual(run.error["ename"], ename, run)
        self.assertIn(evalue, run.error["evalue"])
        return run

    def interrupted(self, code):
        cell = self.kernel.start(code)
        self.kernel.wait_output(cell, b"begun", DEADLINE)
        self.kernel.interrupt()
        run = Run(self.kernel.finish(cell))
        self.assertIsNotNone(run.error, run)
        self.assertEqual(run.error["ename"], "KeyboardInterrupt", run)


    def interrupted_early(self, code):
        """Whenever after the cell was sent: before the kernel has it, while it is made ready, when it runs."""
        for delay in (0, 0, 0, 0.0003, 0.001, 0.003, 0.01, 0.03):
            cell = self.kernel.start(code)
            time.sleep(delay)
            self.kernel.interrupt()
            run = Run(self.kernel.finish(cell))
            self.assertEqual(run.error and run.error["ename"], "KeyboardInterrupt", (delay, run))


def main(program):
    """Runs the tests of the calling file; 77, which ctest knows as skipped, when the interpreter is missing."""
    if not shutil.which(program):
        print(f"skipped: {program} is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
