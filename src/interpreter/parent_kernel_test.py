"""The parent of Python kernels alone: forks, shared modules, modules that cannot be shared, changed packages."""

import array
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from kernel_driver import table  # noqa: E402

PYTHON = os.environ.get("KERNEL_PYTHON") or next(filter(os.path.exists, ["/usr/bin/python3"]), shutil.which("python3"))


def read_exactly(channel, size):
    data = b""
    while len(data) < size:
        more = channel.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read(channel):
    return json.loads(read_exactly(channel, struct.unpack(">I", read_exactly(channel, 4))[0]))


def frame(**members):
    body = json.dumps(members, separators=(",", ":")).encode()
    return struct.pack(">I", len(body)) + body


class Forked:
    """A kernel that the parent forked, as execd sees it."""

    def __init__(self, parent, cwd="/"):
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.channel, theirs = socket.socketpair()
        self.channel.settimeout(30)
        fds = array.array("i", [out, err, theirs.fileno()])
        parent.sendmsg([frame(op="fork", cwd=cwd)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        for fd in (out, err):
            os.close(fd)
        theirs.close()

    def run(self, code):
        self.channel.sendall(frame(op="run", id="r", code=code))
        value = None
        self.shown = []
        while True:
            said = read(self.channel)
            if said["op"] == "result":
                value = said["data"]["text/plain"]
            if said["op"] == "display":
                self.shown.append(said["data"])
                self.channel.sendall(frame(op="shown"))
            if said["op"] == "error":
                raise AssertionError(said)
            if said["op"] == "done":
                return value

    def close(self):
        self.channel.close()
        os.close(self.out)
        os.close(self.err)


class PythonParent(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def start(self, modules=""):
        _, arguments, sources = table()["python"]
        source = os.memfd_create("kernel")
        os.write(source, b"".join(b"\n#%% " + path.name.encode() + b"\n" + path.read_bytes() for path in sources))
        ours, theirs = socket.socketpair()
        ours.settimeout(60)
        moved = [os.dup2(theirs.fileno(), 203), os.dup2(source, 204)]

        def arrange():
            os.dup2(203, 3)
            os.dup2(204, 4)

        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": self.directory.name}
        process = subprocess.Popen([PYTHON, *arguments, "parent"], preexec_fn=arrange, pass_fds=(3, 4), env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
        for fd in (*moved, source):
            os.close(fd)
        theirs.close()
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(ours.close)
        ours.sendall(frame(op="start", modules=modules))
        return ours

    def fork(self, parent, **options):
        kernel = Forked(parent, **options)
        self.addCleanup(kernel.close)
        self.assertGreater(read(parent)["pid"], 1)
        self.assertEqual(read(kernel.channel)["op"], "ready")
        return kernel

    def module(self, name, text):
        with open(os.path.join(self.directory.name, name + ".py"), "w") as file:
            file.write(text)

    def test_kernels_are_apart(self):
        parent = self.start()
        self.assertEqual(read(parent)["op"], "ready")
        one, other = self.fork(parent), self.fork(parent)
        one.run("mine = 1")
        self.assertEqual(other.run("'mine' in globals()"), "False")
        self.assertNotEqual(one.run("import os\nos.getpid()"), other.run("import os\nos.getpid()"))
        self.assertEqual(one.run("os.getpgid(0) == os.getpid()"), "True")
        one.run("print('to its own pipe')")
        self.assertEqual(os.read(one.out, 100), b"to its own pipe\n")

    def test_a_kernel_works_where_it_is_told(self):
        parent = self.start()
        read(parent)
        self.assertEqual(self.fork(parent, cwd=self.directory.name).run("import os\nos.getcwd()"), repr(os.path.realpath(self.directory.name)))

    def test_modules_are_there_before_the_first_cell(self):
        self.module("counted", "print('importing')\nvalue = []")
        parent = self.start("counted fractions no_such_module")
        self.assertEqual(read(parent)["op"], "ready")
        kernel = self.fork(parent)
        self.assertEqual(kernel.run("import sys\n'counted' in sys.modules, 'fractions' in sys.modules"), "(True, True)")
        kernel.run("import counted\ncounted.value.append(1)")
        self.assertEqual(self.fork(parent).run("import counted\ncounted.value"), "[]")

    def test_random_numbers_differ(self):
        parent = self.start("random numpy.random")
        self.assertEqual(read(parent)["op"], "ready")
        code = "import random\ndrawn = [random.random()]\ntry:\n    import numpy\n    drawn.append(numpy.random.rand())\nexcept ImportError: pass\ndrawn"
        first, second = (json.loads(self.fork(parent).run(code)) for _ in range(2))
        for one, other in zip(first, second):
            self.assertNotEqual(one, other)

    def test_a_module_with_a_thread_is_not_shared(self):
        self.module("threaded", "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()")
        parent = self.start("fractions threaded json")
        said = read(parent)
        self.assertEqual((said["op"], said["names"]), ("stale", ["threaded"]))
        self.assertEqual(parent.recv(1), b"")

    def test_libraries_that_are_prepared_for_a_fork_are_shared(self):
        parent = self.start("numpy")
        self.assertEqual(read(parent)["op"], "ready")
        kernel = self.fork(parent)
        if kernel.run("import sys\n'numpy' in sys.modules") == "False":
            self.skipTest("numpy is not installed")
        self.assertEqual(kernel.run("import numpy\na = numpy.ones((400, 400))\nfloat((a @ a)[0, 0])"), "400.0")

    def test_figures_of_a_shared_matplotlib_are_shown(self):
        parent = self.start("matplotlib.pyplot")
        self.assertEqual(read(parent)["op"], "ready")
        kernel = self.fork(parent)
        if kernel.run("import sys\n'matplotlib.pyplot' in sys.modules") == "False":
            self.skipTest("matplotlib is not installed")
        kernel.run("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nopen_figures = plt.get_fignums()")
        self.assertEqual([data["image/png"][:8] for data in kernel.shown], ["iVBORw0K"])
        self.assertEqual(kernel.run("open_figures"), "[]")

    def test_changed_packages_make_it_stale(self):
        parent = self.start()
        read(parent)
        self.fork(parent)
        self.module("installed_now", "")
        kernel = Forked(parent)
        self.addCleanup(kernel.close)
        self.assertEqual(read(parent)["op"], "stale")
        self.assertEqual(parent.recv(1), b"")

    def test_ends_with_its_channel(self):
        parent = self.start()
        read(parent)
        kernel = self.fork(parent)
        parent.shutdown(socket.SHUT_RDWR)
        self.assertEqual(kernel.run("1 + 1"), "2")  # kernels live on


if __name__ == "__main__":
    unittest.main()
