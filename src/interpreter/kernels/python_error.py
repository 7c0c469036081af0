"""How a cell's exception is told: the frames of the kernel itself are left out."""

import traceback


def without_kernel(tb):
    """The same frames, but for the kernel's own: at the beginning, and where a cell called something of it."""
    kept = []
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith("<kernel"):
            kept.append(tb)
        tb = tb.tb_next
    for this, following in zip(kept, kept[1:] + [None]):
        this.tb_next = following
    return kept[0] if kept else None


def clean(error, seen):
    """Removes the kernel's frames from an exception and from all that led to it."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = without_kernel(error.__traceback__)
    clean(error.__cause__, seen)
    clean(error.__context__, seen)
    for inner in getattr(error, "exceptions", ()) if type(error).__name__.endswith("ExceptionGroup") else ():
        clean(inner, seen)


def lines_of(error):
    try:
        text = traceback.format_exception(type(error), error, error.__traceback__)
        return [line.rstrip("\n") for line in text]
    except BaseException as second:  # its own __str__ fails, or the recursion is still too deep
        return ["%s (and showing it failed: %s)" % (type(error).__name__, type(second).__name__)]


def report_error(error):
    clean(error, set())
    namespace["__exception__"] = error
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    try:
        value = str(error)
    except BaseException:
        value = "<the exception cannot be shown as text>"
    send("error", id=run_id, ename=type(error).__name__, evalue=value, traceback=lines_of(error))
