"""The check must be able to fail: what a row means, which rows are refused, and when rounds break a promise."""

import os
import unittest

from harness import BenchError, promises, report
from harness.results import Results

ROW = "| `a.b` | words | `{}` | `bench/bench --check` |"


def one(bound, tail=""):
    return promises.parse(ROW.format(bound) + tail)[0]


class Parsing(unittest.TestCase):
    def test_ratio(self):
        promise = one("<= 4 x f1")
        self.assertTrue(promise.holds(8000, 2000))
        self.assertFalse(promise.holds(8001, 2000))

    def test_at_least(self):
        promise = one(">= 0.35 x f3.16")
        self.assertEqual(promise.reference, "f3.16")
        self.assertTrue(promise.holds(35, 100))
        self.assertFalse(promise.holds(34, 100))

    def test_units(self):
        self.assertTrue(one("<= 2.5 MiB").holds(2.5 * 1024 * 1024, 0))
        self.assertFalse(one("<= 25 MB").holds(25_000_001, 0))

    def test_refused(self):
        for bound in ("<= f1", "<= 4 f1", "<= 3 parsecs", "<= x f1", ">= -1 x f1", "<= 4x f1"):
            with self.subTest(bound), self.assertRaises(BenchError):
                one(bound)

    def test_nothing_promised(self):
        with self.assertRaises(BenchError):
            promises.parse("| id | promise |\n| `x` | no bound |\n")

    def test_twice(self):
        with self.assertRaises(BenchError):
            promises.parse(ROW.format("<= 1 ms") + "\n" + ROW.format("<= 2 ms"))

    def test_our_specification(self):
        path = os.path.join(os.path.dirname(__file__), "..", "..", "SPECIFICATION.md")
        known = {title[0] for title in report.TITLES}
        for promise in promises.read(path):
            self.assertIn(promise.id, known, "promised, but nothing reports it")


class Judging(unittest.TestCase):
    def verdict(self, values, references, bound="<= 2 x f2", long_run=False, tail=""):
        results = Results()
        for value in values:
            results.add_round("a.b", [value])
        for reference in references:
            results.add_round("f2", [reference])
        return report.judge(one(bound, tail), results, long_run)[0]

    def test_one_bad_round_is_the_machine(self):
        self.assertEqual(self.verdict([3, 1, 1], [1, 1, 1]), "pass")

    def test_two_bad_rounds_are_ours(self):
        self.assertEqual(self.verdict([3, 3, 1], [1, 1, 1]), "FAIL")

    def test_more_rounds_have_the_same_share(self):
        self.assertEqual(self.verdict([3, 3, 1, 1, 1, 1], [1] * 6), "pass")
        self.assertEqual(self.verdict([3, 3, 3, 1, 1, 1], [1] * 6), "FAIL")

    def test_the_only_round(self):
        self.assertEqual(self.verdict([3], [1]), "FAIL")

    def test_unmeasured_fails(self):
        self.assertEqual(self.verdict([], []), "FAIL")
        self.assertEqual(self.verdict([1, 1, 1], []), "FAIL")

    def test_what_needs_an_engine(self):
        promise = promises.parse("| `a.b` | words | `<= 1 ms` | `bench/bench --check --docker` |")[0]
        results = Results()
        results.add_round("a.b", [2000])
        self.assertEqual(report.judge(promise, results, False)[0], "skip")
        self.assertEqual(report.judge(promise, results, False, docker=True)[0], "FAIL")

    def test_problem_fails(self):
        results = Results()
        results.add_round("a.b", [1])
        results.fail(["a.b"], "no answer")
        self.assertEqual(report.judge(one("<= 1 ms"), results, False)[0], "FAIL")


if __name__ == "__main__":
    unittest.main()
