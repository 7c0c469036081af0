"""Compose files as `docker run` would have them: a reader of the few forms that ours use. What it does not know fails a test, so that
nothing of a file is silently left out."""

import os
import re
from pathlib import Path

# Without an effect on what one start does.
IGNORED = {"restart"}


def read(path):
    """Mappings, lists of texts and texts, by indentation."""
    lines = []
    for line in Path(path).read_text().splitlines():
        text = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if text:
            lines.append((len(text) - len(text.lstrip()), text.strip()))

    def block(depth):
        if lines and lines[0][1].startswith("- "):
            out = []
            while lines and lines[0][0] == depth:
                out.append(scalar(lines.pop(0)[1][2:]))
            return out
        out = {}
        while lines and lines[0][0] == depth:
            key, _, value = lines.pop(0)[1].partition(":")
            if value.strip():
                out[key] = scalar(value)
            else:
                out[key] = block(lines[0][0]) if lines and lines[0][0] > depth else None
        return out

    return block(0)


def scalar(text):
    text = text.strip()
    if text[:1] == '"':
        assert text.endswith('"'), text
        text = text[1:-1]
    return text


def run_words(path, environment):
    """The words behind `docker`, for the only service of a file."""
    path = Path(path)
    document = read(path)
    assert set(document) <= {"services", "volumes"}, document
    (service,) = document["services"].values()

    def filled(text):
        return re.sub(r"\$\{(\w+)\}", lambda name: environment[name[1]], text)

    words = ["run", "-d"]
    for key, value in service.items():
        if key in IGNORED or key == "image":
            continue
        if key == "container_name":
            words += ["--name", value]
        elif key == "pid":
            words += ["--pid", value]
        elif key == "environment":
            for name, one in value.items():
                words += ["-e", f"{name}={filled(one)}"]
        elif key == "ports":
            for one in value:
                words += ["-p", one]
        elif key == "volumes":
            for one in value:
                source, rest = one.split(":", 1)
                assert source.startswith(("/", "./")) or source in document.get("volumes", {}), source
                words += ["-v", f"{os.path.normpath(path.parent / source) if source.startswith('.') else source}:{rest}"]
        elif key == "cap_add":
            for one in value:
                words += ["--cap-add", one]
        elif key == "security_opt":
            for one in value:
                words += ["--security-opt", one.replace(":", "=", 1)]
        else:
            raise AssertionError(f"{path.name} has {key}, which this reader does not know")
    return [*words, service["image"]]
