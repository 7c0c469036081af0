"""Pays once, while the image is made, for what first uses cost: warm.py INTERPRETER-FOLDER, inside the new root directory.

Drives the kernels as execd will, so that what they load and compile is what is prepared."""

import os
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

source = Path(sys.argv[1])
sys.path.insert(0, str(source))
from kernel_driver import Kernel  # noqa: E402


def run(language, *cells, env=None):
    kernel = Kernel(language, cwd="/tmp", env={**os.environ, **(env or {})})
    for cell in cells:
        done = kernel.run(cell, timeout=300)
        if done.error:
            sys.exit(f"{language}: {done.error}")
    kernel.close()


def python():
    import matplotlib.pyplot  # noqa: F401  its list of fonts


def java():
    """The classes that the compiler and JShell need, mapped instead of loaded: they become part of Java's own shared archive."""
    home = Path(glob("/usr/lib/jvm/java-*-openjdk-*")[0])
    listed = Path("/tmp/classes")
    run("java", "import java.util.*;\nclass A { int x = 1; }\nSystem.out.println(new A().x);\nint y = 2 + 2;\ny", "List.of(1, 2)",
        env={"JDK_JAVA_OPTIONS": f"-XX:DumpLoadedClassList={listed}"})  # fmt: skip
    wanted = set((home / "lib/classlist").read_text().splitlines()) | set(listed.read_text().splitlines())
    listed.write_text("\n".join(sorted(line for line in wanted if "source:" not in line and not line.startswith("#"))) + "\n")
    archive = home / "lib/server/classes.jsa"
    subprocess.run([home / "bin/java", "-Xshare:dump", f"-XX:SharedClassListFile={listed}", "-XX:SharedArchiveFile=/tmp/classes.jsa"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    shutil.move("/tmp/classes.jsa", archive)
    listed.unlink()


def go():
    """The kernel ready to run, beside the source that says whether it is the right one; and what cells usually import."""
    ready = Path("/opt/code-interpreter/kernels")
    ready.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "kernels" / "go.go", ready / "go.go")
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", ready / "go", ready / "go.go"], check=True)
    run("go", "2 + 2", 'fmt.Println(strings.ToUpper("x"), time.Now().Year(), math.Pi, strconv.Itoa(1), len(os.Args), errors.New("e"))',
        'json.Marshal(1)', 'http.StatusText(200)')  # fmt: skip


for step in (python, java, go):
    step()
