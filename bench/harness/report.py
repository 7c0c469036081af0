"""Words for people: the table of a run, and the verdicts of a check."""

TITLES = [
    ("create.first_output", "create → first output (HTTP, cold)", "f1", "first_output"),
    ("create.beside_bubblewrap", "  the same beside bubblewrap", "bubblewrap.first_output", None),
    ("create.call", "  of which POST /v1/sandboxes", None, None),
    ("create.network", "  beside a service without a network", "create.closed", None),
    ("runsc.first_output", "create → first output under runsc", "runsc.run", None),
    ("delete.call", "  DELETE of it", None, None),
    ("command.round_trip", "command round trip (`true`)", "f2", "exec"),
    ("ping.round_trip", "GET /ping of execd through the server", None, None),
    ("run.python", "`osb run host -- python3 -c 'print(2+2)'`", "python.print", None),
    ("run.alone", "  where no server runs", "python.print", None),
    ("pool.first_output", "claim from a pool → first output", "command.call", None),
    ("pool.claim", "  of which POST /v1/sandboxes", None, None),
    ("pause", "pause (until every process is stopped)", "pause.floor", None),
    ("resume", "resume", "resume.floor", None),
    ("code.first", "first Python cell of a fresh sandbox", "python.pass", None),
    ("code.context", "a later context and its first cell", "python.pass", None),
    ("code.warm", "`1+1` in a context that exists", "code.warm_floor", None),
    ("code.warm_peer", "  the same beside ipykernel", "ipykernel.warm", None),
    ("code.pandas", "a later context: `import pandas`", "python.pandas", None),
    ("code.node_first", "first JavaScript cell of a fresh sandbox", "node.start", None),
    ("code.node_spare", "a later JavaScript context", "node.start", None),
    ("code.memory.10", "ten idle Python contexts, together", None, None),
    ("throughput.1", "create+run+delete, 1 client", "f3.1", "throughput.1"),
    ("throughput.4", "create+run+delete, 4 clients", "f3.4", "throughput.4"),
    ("throughput.16", "create+run+delete, 16 clients", "f3.16", "throughput.16"),
    ("output.stream", "1 KiB lines through the server", "output.cat", None),
    ("output.lines", "10-byte lines that arrived, share", None, None),
    ("output.lines_rate", "  per second", None, None),
    ("file.download", "download through the server", "nginx.download", None),
    ("file.upload", "upload through the server", "bare.upload", None),
    ("get.1000", "GET of one of 1,000 sandboxes, per second of processor time", "nginx.get", None),
    ("list.200", "a page of 200 of 1,000 again, processor time", "nginx.list", None),
    ("list.200_anew", "  one that is not kept ready", "nginx.list", None),
    ("list.200.changed", "  after a change of one of them", "nginx.list", None),
    ("proxy.request", "a proxied request, processor time", "nginx.proxy", None),
    ("proxy.stream", "a proxied download", "nginx.stream", None),
    ("relay.first_byte", "out of a sandbox: connect → first byte", "nginx.first_byte", None),
    ("relay.stream", "out of a sandbox: one stream of 1 GiB", "nginx.relay", None),
    ("command.concurrent", "of 200 commands at once, correct", None, None),
    ("execd.memory_peak", "execd memory after all of this (peak)", None, None),
    ("execd.memory", "execd memory, idle (private)", None, None),
    ("execd.binary", "execd executable", None, None),
    ("execd.ready", "execd start → first answer", "static.true", None),
    ("service.ready", "service start → first answer, empty state", "python.start", None),
    ("service.ready_again", "  on a state directory used before", "python.start", None),
    ("service.memory_fresh", "service memory, fresh (RSS)", None, None),
    ("service.memory", "service memory, after the load (RSS)", None, None),
    ("service.memory_pss", "service memory, after the load (PSS)", None, None),
    ("snapshot.10m", "snapshot of 10 MB, until it is on the disk", "cp.10m", None),
    ("snapshot.10m.frozen", "  the sandbox stands still", "cp.10m.copy", None),
    ("docker.commit.10m", "  Docker's commit of 10 MB, which need not be on the disk", None, None),
    ("snapshot.1g", "snapshot of 1 GB", "cp.1g", None),
    ("snapshot.1g.frozen", "  the sandbox stands still", "cp.1g.copy", None),
    ("restore", "create from a snapshot of 10 MB", "create.cold", None),
    ("fork", "fork of a sandbox with 10 MB", "snapshot.and_restore", None),
    ("fork.100", "a hundred forks from one call", "create.100", None),
    ("unpack.plain", "import of a tar archive, 96 MB, 4,000 files", "tar.plain", None),
    ("unpack.gzip", "  the same, gzip", "tar.gzip", None),
    ("pull.200m", "pull of an image of 200 MB in 5 layers", "skopeo.200m", None),
    ("docker.pull.200m", "  Docker's pull of the same", None, None),
    ("sandbox.memory.10", "idle sandbox, at 10", None, None),
    ("sandbox.memory.100", "idle sandbox, per 100 more", None, None),
    ("container.first_output", "container to first output, beside the engine's API", "engine.first_output", None),
    ("container.claim", "claim of a container to first output, beside a native command", "container.native_command", None),
    ("container.command", "command in a container", "container.f2", None),
    ("container.memory", "service, 20 idle containers", None, None),
    ("sandbox.memory.1000", "idle sandbox, up to 1,000", None, None),
    ("sandbox.live.1000", "answering /ping of 1,000", None, None),
    ("create.1000th", "POST /v1/sandboxes, the 1,000th", "create.10th", None),
    ("create.beside_1000", "POST /v1/sandboxes beside 1,000 others", "create.call", None),
]


def show(name, value):
    if value is None:
        return "–"
    if name in ("get.1000", "nginx.get"):
        return f"{value:.0f} /s"
    if name in ("list.200", "list.200_anew", "list.200.changed", "nginx.list", "proxy.request", "nginx.proxy"):
        return f"{value:.1f} us"
    if name in ("relay.first_byte", "nginx.first_byte"):
        return f"{value:.0f} us"
    if name.startswith(("output.", "file.", "nginx.", "bare.", "proxy.", "relay.")):
        return f"{value:.4f}" if name == "output.lines" else f"{value / 1e6:.{2 if 'lines' in name else 0}f} M{'' if 'lines' in name else 'B'}/s"
    if name == "command.concurrent":
        return f"{value:.0f}"
    if name.startswith(("service.memory", "container.memory")) or name in ("execd.memory_peak", "execd.memory", "execd.binary"):
        return f"{value / 1e6:.1f} MB"
    if ".memory" in name:
        return f"{value / (1 << 20):.2f} MiB"
    if "throughput" in name or name.startswith("f3"):
        return f"{value:.0f} /s"
    if ".live" in name:
        return f"{value:.0f}"
    return f"{value / 1000:.2f} ms"


def cell(results, name):
    median = results.median(name)
    if median is None:
        return "failed" if name in results.problems else "–"
    text = show(name, median)
    if text.endswith("ms"):
        text += f" ({results.p99(name) / 1000:.1f})"
    return text


def table(results, peers):
    rows = [["median (p99)", "ours", "floor", "ratio"] + peers]
    for name, title, floor, kind in TITLES:
        if name not in results.rounds and name not in results.problems:
            continue
        ours, bare = results.median(name), results.median(floor) if floor else None
        rows.append([title, cell(results, name), cell(results, floor) if floor else "–",
                     f"{ours / bare:.2f}" if ours and bare else "–"]
                    + [cell(results, f"{peer}.{kind}") if kind else "–" for peer in peers])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def judge(promise, results, long_run, docker=False):
    """(verdict, line). A promise is broken when two rounds of three break it; one bad round is the machine's."""
    if promise.long and not long_run:
        return "skip", f"skip  {promise.id:22} {promise.bound:20} only with --long"
    if promise.docker and not docker:
        return "skip", f"skip  {promise.id:22} {promise.bound:20} only with --docker"
    if promise.id in results.left_out:
        return "skip", f"skip  {promise.id:22} {promise.bound:20} {results.left_out[promise.id]}"
    values = results.round_values(promise.id)
    references = results.round_values(promise.reference) if promise.reference else [0] * len(values)
    rounds = list(zip(values, references))
    if not rounds or len(values) != len(references) or promise.id in results.problems:
        why = results.problems.get(promise.id) or results.problems.get(promise.reference) or "nothing measures this id"
        return "FAIL", f"FAIL  {promise.id:22} {promise.bound:20} not measured: {why}"
    broken = sum(not promise.holds(value, reference) for value, reference in rounds)
    allowed = len(rounds) // 3
    measured = ", ".join(
        f"{value / reference:.2f} x ({show(promise.id, value)})" if promise.reference else show(promise.id, value)
        for value, reference in rounds)
    verdict = "FAIL" if broken > allowed else "pass"
    return verdict, f"{verdict}  {promise.id:22} {promise.bound:20} {measured}"
