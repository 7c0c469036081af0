"""The promises of SPECIFICATION.md, read from the file itself: what is promised and what is checked are one thing.

A promise is a table row whose first cell is an id in backticks and which has a cell with a bound in backticks:

    <= 4 x f1        at most four times what `f1` measured in the same round
    >= 0.35 x f3.16
    <= 2.5 MiB       an absolute bound, in a unit

The word `--long` in the last cell marks a promise that only a long run checks, `--docker` one that needs an engine.
"""

import re
from dataclasses import dataclass

from . import BenchError

UNITS = {"us": 1, "ms": 1000, "MB": 1_000_000, "MiB": 1 << 20, "/s": 1, "sandboxes": 1, "commands": 1, "share": 1}

_BOUND = re.compile(r"^(<=|>=) ([0-9.]+) (?:x ([a-z0-9_.]+)|(\S+))$")


@dataclass(frozen=True)
class Promise:
    id: str
    text: str
    relation: str   # "<=" or ">="
    number: float
    reference: str  # the measurement that the number multiplies, or ""
    unit: str       # or ""
    long: bool
    docker: bool = False

    @property
    def bound(self):
        return f"{self.relation} {self.number:g} " + (f"x {self.reference}" if self.reference else self.unit)

    def limit(self, reference_value):
        return self.number * (reference_value if self.reference else UNITS[self.unit])

    def holds(self, value, reference_value):
        limit = self.limit(reference_value)
        return value <= limit if self.relation == "<=" else value >= limit


def parse(text):
    promises = []
    for line in text.splitlines():
        if not line.startswith("| `"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        bounds = [match for cell in cells[1:] if (match := _BOUND.match(cell.strip("`")))]
        if not bounds:
            if any(cell.startswith(("`<=", "`>=")) for cell in cells):
                raise BenchError(f"SPECIFICATION.md: cannot read the bound in: {line}")
            continue
        relation, number, reference, unit = bounds[0].groups()
        if unit and unit not in UNITS:
            raise BenchError(f"SPECIFICATION.md: unknown unit {unit!r} in: {line}")
        promises.append(Promise(cells[0].strip("`"), cells[1], relation, float(number), reference or "", unit or "",
                                "--long" in cells[-1], "--docker" in cells[-1]))
    if not promises:
        raise BenchError("SPECIFICATION.md promises nothing that can be measured")
    ids = [promise.id for promise in promises]
    if len(set(ids)) != len(ids):
        raise BenchError("SPECIFICATION.md: an id is promised twice")
    return promises


def read(path):
    with open(path, encoding="utf-8") as file:
        return parse(file.read())
