"""One fuzz target per parser of outside bytes: fuzz/parsers says which. A header that declares a parser and is not in that list, a
target that does not reach its parser, and a target without seeds are mistakes.
"""

import re

from . import sources

LIST = "fuzz/parsers"
# parse_x(text), decode_x(bytes), from_record(text), Type::parse(text), feed(bytes): functions that are given bytes.
PARSER = re.compile(r"^[^/\n]*\b((?:parse|decode|from_record)\w*|feed)\((?:const )?(?:std::string_view|std::string|http::Query|boost::json|"
                    r"json::Field|std::map|std::optional<std::string>)\b", re.MULTILINE)


def entries():
    """Header -> target, or "-" with the reason why its bytes do not come from outside."""
    found = {}
    for line in sources.text(LIST).splitlines():
        if line and not line.startswith("#"):
            header, target, *why = line.split(None, 2)
            found[header] = (target, why)
    return found


def reach(target):
    """Everything that a target includes, and what the sources of those headers include: what it links."""
    seen, waiting = set(), [f"fuzz/{target}.cc"]
    while waiting:
        for name in sources.closure(waiting.pop()):
            if name not in seen:
                seen.add(name)
                source = re.sub(r"\.h$", ".cc", name)
                if source not in seen and (sources.ROOT / source).is_file():
                    waiting.append(source)
    return seen


def check():
    listed = entries()
    for name in sources.files():
        if name.startswith("src/") and name.endswith(".h") and not sources.is_test(name) and name not in listed:
            for function in PARSER.findall(sources.text(name)):
                yield f"{name}: {function}() is in no line of {LIST}: name its fuzz target, or - and why it needs none"
    cmake = sources.text("fuzz/CMakeLists.txt").split("foreach(target")[1].split(")")[0].split()
    for header, (target, why) in listed.items():
        if not (sources.ROOT / header).is_file():
            yield f"{LIST}: {header} does not exist"
        elif target == "-":
            if not why:
                yield f"{LIST}: {header}: say why it needs no target"
        elif target not in cmake:
            yield f"{LIST}: {header}: fuzz/CMakeLists.txt has no target {target}"
        elif header not in reach(target):
            yield f"{LIST}: {header}: the target {target} does not use it"
    for target in sorted({path.stem for path in (sources.ROOT / "fuzz").glob("*.cc")} ^ set(cmake)):
        yield f"fuzz/{target}.cc: is either a file or a target of fuzz/CMakeLists.txt, but not both"
    for target in cmake:
        if not any((sources.ROOT / "fuzz/corpus" / target).glob("*")):
            yield f"fuzz/corpus/{target}: no seeds"
