"""What a network costs those who do not use it: creates of a service whose sandboxes have one, beside a service without."""

import time

from . import BenchError
from .service import Service

WITHOUT = "[egress]\nenabled = false\n"


def connect_somewhere(service, load):
    """One sandbox tries to leave, so that the egress process runs from now on: what is measured later is the whole service."""
    sandbox = load.ask("create")[1]
    try:
        service.stream(f"{service.prefix}{sandbox}{service.suffix}/command",
                       {"command": "exec 3<>/dev/tcp/10.255.255.1/80"})  # private: refused by the egress process itself
    finally:
        load.ask("delete", sandbox)
    end = time.monotonic() + 10
    while "osb-egress" not in service.programs():
        if time.monotonic() > end:
            raise BenchError("a sandbox sent something, and no egress process runs")
        time.sleep(0.02)


def creates(measurement, bin_dir, parent, rounds, samples):
    """One create of each service per turn, each after one sample of the bare kernel as in all latencies: what is made ahead of
    need is there again. Their deletes are not timed."""
    load, results, service = measurement.load, measurement.results, measurement.service
    connect_somewhere(service, load)
    closed = Service(load, bin_dir, parent, more=WITHOUT)
    try:
        closed.start()
        closed.connect()
        for _ in range(rounds):
            taken = {"create.network": [], "create.closed": []}
            for _ in range(samples):
                for name, one in (("create.closed", closed), ("create.network", service)):
                    one.point()
                    measurement.floor.sample("f1")
                    took, sandbox = load.ask("create")[:2]
                    load.ask("delete", sandbox)
                    taken[name].append(took)
            for name, values in taken.items():
                results.add_round(name, values)
    finally:
        service.point()
        closed.remove()
