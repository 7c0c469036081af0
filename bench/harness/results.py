"""What was measured: per measurement a list of rounds, per round the samples. Microseconds, bytes, per second or a count."""

import statistics


def percentile(values, share):
    ordered = sorted(values)
    return ordered[round(share * (len(ordered) - 1))]


class Results:
    def __init__(self, only=None):
        self.only = only    # ids; None: all
        self.rounds = {}    # id -> [[sample, ...], ...]
        self.problems = {}  # id -> why it could not be measured
        self.left_out = {}  # id -> what this machine lacks for it

    def wants(self, names):
        return self.only is None or bool(self.only.intersection(names))

    def has(self, promise):
        return all(name in self.rounds and name not in self.problems for name in (promise.id, promise.reference))

    def joined(self, more, promise):
        """All rounds of both, of what this promise compares."""
        out = Results()
        for part in (self, more):
            for name in (promise.id, promise.reference):
                out.rounds.setdefault(name, []).extend(part.rounds.get(name, []))
                if name in part.problems:
                    out.fail([name], part.problems[name])
        return out

    def add_round(self, name, samples):
        self.rounds.setdefault(name, []).append(list(samples))

    def fail(self, names, why):
        for name in names:
            self.problems.setdefault(name, str(why))

    def round_values(self, name):
        return [statistics.median(samples) for samples in self.rounds.get(name, [])]

    def median(self, name):
        values = [sample for samples in self.rounds.get(name, []) for sample in samples]
        return statistics.median(values) if values else None

    def p99(self, name):
        values = [sample for samples in self.rounds.get(name, []) for sample in samples]
        return percentile(values, 0.99) if values else None

    def to_json(self):
        out = {}
        for name, rounds in sorted(self.rounds.items()):
            values = [sample for samples in rounds for sample in samples]
            out[name] = {"count": len(values), "median": statistics.median(values), "p99": percentile(values, 0.99),
                         "min": min(values), "rounds": [statistics.median(samples) for samples in rounds]}
        for name, why in sorted(self.problems.items()):
            out.setdefault(name, {})["problem"] = why
        return out
