"""The parts of bench/bench. Standard library only."""


class BenchError(Exception):
    """A measurement that could not be made; the message says why."""
