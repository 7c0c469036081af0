"""The Python kernel: executes cells for execd (see README.md). Standard library only, Python 3.8 and later.

This file is compiled at every start, so it holds what every cell needs and imports C modules only: json, ast, asyncio or
traceback would each cost as much as starting Python. The other python_*.py files are compiled into this same namespace when
something first needs them. `parts` holds the sources; the bootstrap in kernels.inc puts it here.
"""

import builtins
import os
import sys
from _ast import PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST, Expr, Expression, Module

import _signal
from _json import encode_basestring, scanstring
from _thread import RLock, get_ident

CHANNEL = 3
MAX_FRAME = 64 << 20
MAX_KEPT_SOURCE = 4 << 20
COROUTINE = 0x80 | 0x200  # of code objects: a coroutine or an asynchronous generator
PLAIN = (int, float, str, bool, bytes, complex, list, tuple, dict, set, frozenset, range)

run_id = ""
count = 0
running = False  # a cell is being executed: SIGINT is for it
sending = False  # the main thread is amid a frame, which must be whole: SIGINT waits
interrupted = False  # meanwhile
early = False  # SIGINT came while no cell was executed: perhaps it was for the one that comes next
alone = False  # a forked child of the kernel: nobody reads its frames
loop = None  # asyncio's, once a cell has awaited something
future_flags = 0
known_modules = 0  # how many modules execd has been told of
namespace = {}
cells = {}  # file name -> source, for tracebacks
kept_source = 0
channel = RLock()  # threads of a cell may show something at the same time
main_thread = None
last_value = None  # what `_` was set to; a `_` of the user's own stays


def load(name):
    """Adds the functions of another file of the kernel to this namespace, once."""
    head = name.encode() + b".py\n"
    for i, part in enumerate(parts):
        if part.startswith(head):
            parts[i] = b""
            exec(compile(b"#" + part, "<kernel %s>" % name, "exec"), globals())


# ---- Frames ----


def encode(value):
    if isinstance(value, str):
        return encode_basestring(str(value))
    if value is True or value is False or value is None:
        return "true" if value else "null" if value is None else "false"
    if type(value) is int:
        return str(value)
    if type(value) is dict:
        return "{%s}" % ",".join(["%s:%s" % (encode(str(k)), encode(v)) for k, v in value.items()])
    if type(value) in (list, tuple):
        return "[%s]" % ",".join([encode(v) for v in value])
    import json

    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return encode(repr(value))


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # closed or replaced by the user


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(CHANNEL, view) :]


def send(op, wait=False, **members):
    """With `wait` it goes on when execd has the frame, so that what the cell prints next cannot overtake it."""
    global sending, interrupted
    flush()
    if alone:
        return
    main = get_ident() == main_thread
    members["op"] = op
    if wait and running and main:  # between cells somebody else reads the answer
        members["wait"] = True
    body = encode(members).encode("utf-8", "replace")
    if len(body) > MAX_FRAME:
        raise ValueError("%d bytes are too many to be shown; at most %d can be" % (len(body), MAX_FRAME))
    if main:
        sending, interrupted = True, False
    try:
        with channel:
            write_all(len(body).to_bytes(4, "big") + body)
        while "wait" in members and (receive() or {"op": "shown"})["op"] != "shown":
            pass
    finally:
        if main:
            sending = False
    if main and interrupted and running:
        raise KeyboardInterrupt


def read_exactly(size):
    data = os.read(CHANNEL, size)
    while data and len(data) < size:
        more = os.read(CHANNEL, size - len(data))
        if not more:
            return b""
        data += more
    return data


def receive():
    """The next request, or None at the end."""
    head = read_exactly(4)
    body = head and read_exactly(int.from_bytes(head, "big"))
    return decode(body) if body else None


def decode(body):
    """execd writes compact objects whose values are strings."""
    text, at, out = body.decode(), 1, {}
    while text[at] == '"':
        key, at = scanstring(text, at + 1)
        out[key], at = scanstring(text, at + 2)
        at += text[at] == ","
    return out


# ---- Cells ----


def dedent(source):
    """Without leading blank lines, and without the indentation of the first line on every line that has it."""
    lines = source.split("\n")
    while len(lines) > 1 and not lines[0].strip():
        del lines[0]
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]
    if margin:
        lines = [line[len(margin) :] if line.startswith(margin) else line for line in lines]
    return "\n".join(lines)


def parse(source, name):
    try:
        return compile(source, name, "exec", PyCF_ONLY_AST | future_flags, True)
    except SyntaxError:
        if not any(sign in source for sign in "%!?"):
            raise
    load("python_magic")
    return parse_magic(source, name)


def remember_futures(source):
    global future_flags
    if "__future__" in source:
        import __future__

        for feature in __future__.all_feature_names:
            future_flags |= namespace.get(feature) is getattr(__future__, feature) and getattr(__future__, feature).compiler_flag


def evaluate(code):
    value = eval(code, namespace)
    if code.co_flags & COROUTINE:
        load("python_async")
        value = run_coroutine(value)
    return value


def execute(source, name):
    """Executes all statements; gives the value of the last one if it is an expression."""
    body = parse(source, name).body
    silent = source.rstrip().endswith(";")
    last = body.pop() if body and isinstance(body[-1], Expr) and not silent else None
    flags = PyCF_ALLOW_TOP_LEVEL_AWAIT
    if body:
        evaluate(compile(Module(body, []), name, "exec", flags | future_flags, True))
        remember_futures(source)
    return evaluate(compile(Expression(last.value), name, "eval", flags | future_flags, True)) if last else None


def show_result(value):
    global last_value
    if value is None:
        return
    if type(value) in PLAIN and type(value).__repr__ is not object.__repr__:
        data = {"text/plain": repr(value)}
    else:
        load("python_display")
        data = mime_bundle(value)
    if data:
        send("result", id=run_id, count=count, data=data)
    if namespace.get("_") is last_value:
        namespace["___"], namespace["__"], namespace["_"] = namespace.get("__"), last_value, value
        last_value = value


def remember_source(name, source):
    """For tracebacks. The oldest go when there is too much of them."""
    global kept_source
    cells[name] = source
    kept_source += len(source)
    linecache = sys.modules.get("linecache")
    while (kept_source > MAX_KEPT_SOURCE or len(cells) > 1000) and len(cells) > 1:
        oldest = next(iter(cells))
        kept_source -= len(cells.pop(oldest))
        if linecache:
            linecache.cache.pop(oldest, None)
    if linecache:
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)


def fill_linecache(linecache):
    for name, source in cells.items():
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)


def run_cell(source):
    global running
    name = "<cell %d>" % count
    _signal.signal(_signal.SIGINT, on_interrupt)
    if sys.stdout is None or getattr(sys.stdout, "closed", False):
        sys.stdout = sys.__stdout__
    try:
        try:
            running = True
            if early:
                heed_early_interrupt()
            source = dedent(source)
            remember_source(name, source)
            show_result(execute(source, name))
            if "matplotlib.pyplot" in sys.modules:
                load("python_display")
                show_figures()
        finally:
            running = False
    except SystemExit as end:
        if end.code not in (None, 0):
            report(end)
    except BaseException as error:
        report(error)


def report(error):
    load("python_error")
    report_error(error)


def on_interrupt(number, frame):
    global interrupted, early
    if not running:
        early = True
    elif sending:
        interrupted = True
    else:
        raise KeyboardInterrupt


def heed_early_interrupt():
    """Whoever interrupts a cell says so behind the cell's own frame, before the signal."""
    global early, sending, interrupted
    import select

    early, sending, interrupted = False, True, False
    try:
        while select.select([CHANNEL], [], [], 0)[0]:
            request = receive()
            if request is None:
                return
            if request == {"op": "interrupt", "id": run_id}:
                raise KeyboardInterrupt
    finally:
        sending = False
    if interrupted:
        raise KeyboardInterrupt


# ---- What cells find in their world ----


class StdinNotImplementedError(RuntimeError):
    __module__ = "builtins"  # tracebacks name it without the kernel


def refuse_input(prompt="", *more):
    raise StdinNotImplementedError("input() is not available: nobody can type into this cell; assign the value in code instead")


def display(*values, **options):
    """Shows values richly. display_id=True gives a handle whose update() shows another value in its place."""
    load("python_display")
    return show_values(values, **options)


class ImportHooks:
    """Calls a function right after a module was imported for the first time."""

    def __init__(self):
        self.hooks = {"linecache": fill_linecache}
        for name in ("matplotlib", "matplotlib.pyplot", "IPython.display", "IPython"):
            self.hooks[name] = self.use_display
        self.busy = False

    def use_display(self, module):
        load("python_display")
        adapt_module(module)

    def find_spec(self, name, path=None, target=None):
        hook = None if self.busy else self.hooks.get(name)
        if not hook:
            return None
        import importlib._bootstrap as bootstrap

        self.busy = True
        try:
            spec = bootstrap._find_spec(name, path, target)
        finally:
            self.busy = False
        if spec is None and name.startswith("IPython"):
            load("python_display")
            return ipython_spec(name, bootstrap)
        execute = getattr(spec, "loader", None) and getattr(spec.loader, "exec_module", None)
        if execute:

            def exec_module(module):
                execute(module)
                hook(module)

            try:
                spec.loader.exec_module = exec_module
            except AttributeError:
                pass  # a built-in loader: its module stays as it is
        return spec


def become_alone():
    """In a forked child: its cell goes on, but its frames would mix with its parent's."""
    global alone
    alone = True
    try:
        os.close(CHANNEL)
    except OSError:
        pass


def set_up():
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    os.set_inheritable(CHANNEL, False)
    os.register_at_fork(after_in_child=become_alone)
    os.environ.setdefault("MPLBACKEND", "agg")  # windows have no place here
    main = type(sys)("__main__")
    main.__builtins__ = builtins
    namespace.update(main.__dict__)
    globals()["namespace"] = main.__dict__
    sys.modules["__main__"] = main
    sys.argv = [""]
    builtins.input = refuse_input
    builtins.display = display
    hooks = ImportHooks()
    sys.meta_path.insert(0, hooks)
    for name, hook in hooks.hooks.items():  # what the parent has imported already
        if name in sys.modules:
            hook(sys.modules[name])
    _signal.signal(_signal.SIGINT, on_interrupt)


def shareable(name):
    """True for modules of Python and of installed packages, not for files of the user's own."""
    module = sys.modules[name]
    path = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    installed = "/site-packages/" in path or "/dist-packages/" in path or path.startswith(os.path.dirname(os.__file__) + "/")
    return installed and not name.startswith("__") and " " not in name


def tell_modules():
    """Says what has been imported since the last time, in that order: later contexts may start with it."""
    global known_modules
    if len(sys.modules) == known_modules:
        return
    names = [name for name in list(sys.modules)[known_modules:] if shareable(name)]
    known_modules = len(sys.modules)
    if names:
        send("modules", names=names)


def next_request():
    if loop is not None:
        keep_loop_running()
    return receive()


def serve():
    global count, run_id, known_modules, main_thread
    main_thread = get_ident()
    set_up()
    known_modules = len(sys.modules)
    send("ready", language="python", version="%d.%d.%d" % sys.version_info[:3])
    while True:
        request = next_request()
        if request is None:
            break
        if request.get("op") != "run":
            continue
        count += 1
        run_id = request["id"]
        run_cell(request["code"])
        if alone:
            break
        send("done", id=run_id, count=count)
        tell_modules()
    flush()
    os._exit(0)


if sys.argv[1:] == ["parent"]:
    load("python_parent")
    be_parent()
serve()
