"""Who includes whom. The table of folders is src/CMakeLists.txt (USES), in the order of cmake/layers.cmake; CMake refuses what is
not in it. Here is what CMake does not see: libraries that stay in one folder, folders with a narrow face, and the same table in
docs/architecture.md.
"""

import re

from . import sources

# What only one folder may include, so that it can be replaced there.
LIBRARIES = {
    "sqlite3.h": ("src/store/",),
    "toml++/": ("src/server/",),
    "CLI/": ("src/cli/",),
    "archive.h": ("src/image/",),
    "archive_entry.h": ("src/image/",),
    "openssl/": ("src/image/", "src/tls/"),
    "seccomp.h": ("src/main/build/", "src/launcher/seccomp_program_test.cc"),
    "boost/beast/": ("src/http/",),
}
# What others may include of a folder: the contract, and what opens an implementation. Tests may look behind it.
FACES = {
    "src/store/": ("src/store/repository.h", "src/store/open_repository.h", "src/store/change.h"),
}
# Folders that know a contract and not who fulfils it; `cli` puts the two together.
STRANGERS = {
    "src/server/": ("src/runtime/native/", "src/launcher/"),
    "src/runtime/native/": ("src/server/", "src/store/"),
}
SYSTEM_INCLUDE = re.compile(r"^#include <([^>]+)>", re.MULTILINE)


def check():
    yield from documented()
    for name in sources.files():
        if not name.startswith("src/"):
            continue
        for header in SYSTEM_INCLUDE.findall(sources.text(name)):
            for library, homes in LIBRARIES.items():
                if (header == library or library.endswith("/") and header.startswith(library)) and not name.startswith(homes):
                    yield f"{name}: includes <{header}>, which belongs to {homes[0]} alone"
        if sources.is_test(name):
            continue
        for include in sources.includes(name):
            for folder, face in FACES.items():
                if include.startswith(folder) and not name.startswith(folder) and include not in face:
                    yield f"{name}: includes {include}; others see only {', '.join(face)}"
            for folder, strange in STRANGERS.items():
                if name.startswith(folder) and include.startswith(strange):
                    yield f"{name}: includes {include}; {folder} knows the contract alone"


def documented():
    layers = re.search(r"^set\(OSB_LAYERS ([^)]*)\)", sources.text("cmake/layers.cmake"), re.MULTILINE).group(1).split()
    section = sources.text("docs/architecture.md").split("## Folders")[1].split("\n## ")[0]
    shown = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    if shown != layers:
        yield f"docs/architecture.md: the table of folders is {shown}, cmake/layers.cmake has {layers}"
    folders = {path.name for path in (sources.ROOT / "src").iterdir() if path.is_dir() and any(path.rglob("*.cc"))}
    for folder in sorted(folders ^ set(layers)):
        yield f"src/{folder}: is either a folder or a layer of cmake/layers.cmake, but not both"
