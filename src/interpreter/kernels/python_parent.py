"""The parent of Python kernels: a process that has the kernel and the modules of earlier contexts loaded, and forks.

execd starts it with the word "parent" and then sends, as frames on descriptor 3:
    {"op":"start","modules":"numpy pandas …"}    once: import these; answered by ready, or by stale with the module that cannot
                                                 be shared, after which the parent ends
    {"op":"fork","cwd":"…"}                      with three descriptors (output, errors, socket): answered by forked with the
                                                 pid, or by stale when packages have changed since the start
"""

import gc

import _socket

MAX_MEMORY = 400 << 20


def thread_count():
    return len(os.listdir("/proc/self/task"))


def unshared_threads():
    """True when threads run that a forked child would miss. Libraries that are prepared for a fork (OpenBLAS) end theirs before it
    and start them again when they need them: one fork shows whether these are such."""
    if thread_count() == 1:
        return False
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return thread_count() > 1


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def import_modules(names):
    """Imports what can be; gives the module after which this process cannot be forked any more, or None."""
    first = sys.path[0] if sys.path else None
    if first == "":
        del sys.path[0]  # what lies in some working directory is nobody else's
    try:
        for name in names:
            if name in sys.modules or resident() > MAX_MEMORY:
                continue
            try:
                __import__(name)
            except BaseException:
                continue
            if unshared_threads():
                return name
    finally:
        if first == "":
            sys.path.insert(0, "")
    return None


def package_times():
    """Changes when packages are installed, upgraded or removed."""
    times = []
    for path in [sys.executable] + sys.path:
        try:
            times.append(os.stat(path).st_mtime_ns if path else 0)
        except OSError:
            times.append(0)
    return times


def receive_fork(control):
    head, ancillary, _, _ = control.recvmsg(4, _socket.CMSG_SPACE(12), _socket.MSG_CMSG_CLOEXEC)
    fds = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [int.from_bytes(data[i : i + 4], sys.byteorder) for i in range(0, len(data) - 3, 4)]
    if head and len(head) < 4:
        head += read_exactly(4 - len(head))
    return decode(read_exactly(int.from_bytes(head, "big"))) if head else None, fds


def become_kernel(control, fds, cwd):
    os.setpgid(0, 0)
    control.detach()
    for target, fd in enumerate(fds, 1):
        os.dup2(fd, target)
        os.close(fd)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        # The same object, because modules may hold it; but it must learn that this is a pipe now.
        stream.__init__(open(number, "wb", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True)
    try:
        os.chdir(cwd)
    except OSError as error:
        print("cannot enter %s: %s" % (cwd, error), file=sys.stderr)
        flush()
        os._exit(1)
    numpy = sys.modules.get("numpy")
    if "numpy.random" in sys.modules and hasattr(numpy, "random"):
        numpy.random.seed()  # Python's own generator does so by itself


def be_parent():
    """Returns in the children."""
    os.set_inheritable(CHANNEL, False)
    os.environ.setdefault("MPLBACKEND", "agg")  # as in kernels, but before modules look at it
    control = _socket.socket(fileno=CHANNEL)
    request, _ = receive_fork(control)
    wrong = import_modules((request or {}).get("modules", "").split())
    if wrong:
        send("stale", names=[wrong])
        os._exit(0)
    times = package_times()  # only now: importing may have left bytecode there
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # execd watches the kernels
    send("ready", language="python", version="%d.%d.%d" % sys.version_info[:3])
    tidy = False
    while True:
        request, fds = receive_fork(control)
        if request is None:
            os._exit(0)
        if len(fds) != 3 or package_times() != times:
            send("stale")
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            become_kernel(control, fds, request["cwd"])
            return
        try:
            os.setpgid(pid, pid)  # both do it, so that it is done before anybody uses it
        except OSError:
            pass
        for fd in fds:
            os.close(fd)
        send("forked", pid=pid)
        if not tidy:  # after the first one, which somebody waits for; later ones then share more
            tidy = True
            gc.collect()
            gc.freeze()
