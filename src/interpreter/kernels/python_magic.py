"""The lines that are no Python: !command, %magic, %%magic, name? — as far as notebooks really use them."""

NOTHING = ("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "precision", "colors", "xmode", "pdb")


def parse_magic(source, name):
    """The syntax tree of a cell with such lines. Only lines at which Python itself finds a mistake are looked at, so that a
    '%' or '!' inside a string or an expression means what it means in Python."""
    builtins.__magic__ = run_magic
    if source.startswith("%%"):
        head, _, body = source.partition("\n")
        source = "__magic__('cell', %r, %r)" % (head[2:], body)
    lines = source.split("\n")
    while True:
        try:
            return compile("\n".join(lines), name, "exec", PyCF_ONLY_AST | future_flags, True)
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
            wrong = [at] if 0 <= at < len(lines) and translate(lines[at]) else [i for i, line in enumerate(lines) if translate(line)]
            if not wrong:
                raise
            for i in wrong:
                lines[i] = translate(lines[i])


def translate(line):
    """The same line as Python, or None."""
    body = line.lstrip()
    margin = line[: len(line) - len(body)]
    if body.startswith("__magic__("):
        return None
    if body[:1] == "!":
        return "%s__magic__('shell', %r)" % (margin, body[1:].lstrip("!"))
    if body[:1] == "%":
        return "%s__magic__('line', %r)" % (margin, body[1:])
    target, equals, rest = body.partition("=")
    if equals and rest.lstrip()[:1] in ("!", "%") and rest.lstrip()[1:] and not target.strip().startswith("__magic__"):
        rest = rest.lstrip()
        return "%s%s= __magic__(%r, %r)" % (margin, target, "capture" if rest[0] == "!" else "line", rest[1:])
    if body.strip("?").replace(".", "").replace("_", "").isalnum() and (body.endswith("?") or body.startswith("?")):
        return "%s__magic__('help', %r)" % (margin, body.strip("?"))
    return None


def fill_in(text):
    """{expression} replaced by its value, as IPython does; braces that are none stay."""
    import re

    def value(match):
        try:
            return str(eval(match.group(1), namespace))
        except Exception:
            return match.group(0)

    return re.sub(r"\{([^{}\n]+)\}", value, text)


def shell(command, capture=False, program=None):
    """Runs a command with the cell's own output; its exit code is left in _exit_code."""
    import subprocess

    flush()
    words = (program or ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c"]) + [command]
    if capture:
        done = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        namespace["_exit_code"] = done.returncode
        return done.stdout.decode("utf-8", "replace").splitlines()
    namespace["_exit_code"] = subprocess.run(words, stdin=subprocess.DEVNULL).returncode
    return None


def run_magic(kind, text, body=""):
    if kind == "shell":
        return shell(fill_in(text))
    if kind == "capture":
        return shell(fill_in(text), capture=True)
    if kind == "help":
        return help_about(text)
    name, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    found = globals().get(("cell_" if kind == "cell" else "magic_") + name)
    if found:
        return found(rest, body) if kind == "cell" else found(rest)
    if kind == "line" and name in NOTHING:
        return None
    known = sorted(n[5:] for n in globals() if n.startswith("cell_" if kind == "cell" else "magic"))
    raise NameError("there is no magic '%s%s' here; there are: %s" % ("%%" if kind == "cell" else "%", name, " ".join(k.strip("_") for k in known)))


def inner(source):
    return execute(source, "<cell %d>" % count)


def help_about(text):
    value = eval(text, namespace)
    print("%s: %s" % (type(value).__name__, getattr(value, "__doc__", None) or "no documentation"))


def magic_pip(rest):
    shell(fill_in(rest), program=[sys.executable, "-c", PIP])
    import importlib

    importlib.invalidate_caches()


PIP = "import runpy,shlex,sys;sys.argv=['pip']+shlex.split(sys.argv[1]);runpy.run_module('pip',run_name='__main__',alter_sys=True)"


def magic_cd(rest):
    os.chdir(os.path.expanduser(fill_in(rest) or "~"))
    print(os.getcwd())


def magic_pwd(rest):
    return os.getcwd()


def magic_ls(rest):
    return shell("ls " + fill_in(rest))


def magic_env(rest):
    if not rest:
        return dict(os.environ)
    name, equals, value = rest.partition("=")
    if not equals:
        return os.environ.get(name.strip())
    os.environ[name.strip()] = fill_in(value.strip())
    return None


def magic_run(rest):
    import runpy
    import shlex

    words, before = shlex.split(fill_in(rest)), sys.argv
    sys.argv = words
    try:
        namespace.update((k, v) for k, v in runpy.run_path(words[0], run_name="__main__").items() if not k.startswith("__"))
    finally:
        sys.argv = before


def timed(action):
    import time

    wall, cpu = time.perf_counter(), time.process_time()
    try:
        return action()
    finally:
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print("CPU time: %.3g s\nWall time: %.3g s" % (cpu, wall))


def magic_time(rest):
    return timed(lambda: inner(rest))


def cell_time(rest, body):
    return timed(lambda: inner(body))


def magic_timeit(rest, body=None):
    import timeit

    timer = timeit.Timer(body or rest, rest if body else "pass", globals=namespace)
    number, _ = timer.autorange()
    best = min(timer.repeat(3, number)) / number
    print("%d loops, best of 3: %.3g us per loop" % (number, best * 1e6))


cell_timeit = magic_timeit


def magic_who(rest):
    print("  ".join(sorted(n for n in namespace if not n.startswith("_"))) or "no names yet")


def script(program):
    def cell(rest, body):
        import subprocess

        flush()
        done = subprocess.run([program] + rest.split(), input=body.encode())
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, program)

    return cell


cell_bash, cell_sh = script("bash"), script("sh")
cell_script = lambda rest, body: script(rest.split()[0])(" ".join(rest.split()[1:]), body)  # noqa: E731


def cell_writefile(rest, body):
    words = rest.split()
    path = os.path.expanduser(words[-1])
    with open(path, "a" if "-a" in words else "w") as file:
        file.write(body)
    print("Wrote %s" % path)


def cell_capture(rest, body):
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        inner(body)
    if rest:
        namespace[rest.split()[-1]] = type("Captured", (), {"stdout": out.getvalue(), "stderr": err.getvalue()})()


def cell_html(rest, body):
    load("python_display")
    show_values(({"text/html": body, "text/plain": body},), raw=True)
