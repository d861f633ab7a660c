#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the structure of the sources: which folder of C may include which, that one file knows the frequency of the
TSC, and how large the harness is.

Exit code 1 with one sentence for each violation. ``--table`` prints the figures, their goals and the allowed includes
as Markdown, for docs/design/README.md. A limit that is above its goal sinks with the code: LIMITS has what is reached.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
C_ROOT = ROOT / "dataplane"
C_FILES_MAX = 218
NOT_PRODUCTION = re.compile(r"_(test|fuzz|bench|rig|race|stress)(_\w+)?\.[ch]$")
TOOLS = {"tester/tester_pcap.c", "nf/nf_run.c", "fib/fib_pipe.c", "nf/nf_fuzz_frames.h"}

# One file knows the frequency of the TSC: DPDK's own is rounded.
TSC_HZ = re.compile(r"\brte_get_(tsc|timer)_hz\b")
TSC_FILES = {"base/clock.c", "base/clock_test.c"}

# No deadline is by the clock of the day, which may be set while it is waited for.
REALTIME = re.compile(r"\bCLOCK_REALTIME\b")
REALTIME_FILES = {"fib/fib_source.c"}

# What a folder may include besides itself: folders, or single headers. nf/KIND stands for any folder below nf/.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "table": {"base"},
    "shm": {"base"},
    "virtio": {"shm", "base"},
    "memif": {"shm", "base"},
    "port": {"virtio", "memif", "shm", "base"},
    "task": {"port", "base"},
    "tester": {"task", "port", "shm", "base"},
    "nf": {"tester", "task", "port", "shm", "base"},
    "nf/KIND": {"nf", "tester", "task", "port", "shm", "table", "base"},
    "switch": {"task", "port", "table", "base"},
    "fib": {"nf", "task", "port", "table", "base", "fib/client"},
    "fib/client": {"fib"},
    "runtime": {"task", "tester/probe_tap.h", "tester/stamps.h", "port/port.h", "port/device_clock.h", "base"},
    "": {"runtime", "base"},
}

HARNESS = ROOT / "planebench"
APART = ("papers", "conformance", "lab")
"""Packages of the harness beside the way from plan to page."""
LIMITS: Mapping[str, tuple[int, int]] = {
    "code lines without papers, conformance and lab": (26_429, 20_000),
    "code lines": (29_121, 25_000),
    "packages": (14, 14),
    "layers of packages": (8, 8),
    "files": (256, 260),
    "files that import each other": (0, 0),
    "functions": (2_692, 2_500),
    "class names of several files": (0, 0),
    "statements": (29_427, 26_000),
}
"""Figure of planebench/ -> what it may be today, and the goal. Code lines: no blank, comment, docstring or import."""


def main() -> int:
    """Print the table, or check and return 1 for violations."""
    edges = sorted(includes())
    if "--table" in sys.argv[1:]:
        print("\n".join(table()))
        return 0
    problems = list(violations(edges))
    print("\n".join(problems) or "structure: fine")
    return 1 if problems else 0


def production() -> list[PurePosixPath]:
    """Return the C sources of what is installed, relative to dataplane/."""
    every = (PurePosixPath(path.relative_to(C_ROOT).as_posix()) for path in sorted(C_ROOT.rglob("*.[ch]")))
    return [p for p in every if p.parts[0] != "test" and str(p) not in TOOLS and not NOT_PRODUCTION.search(p.name)]


def includes() -> Iterator[tuple[str, str, str]]:
    """Yield (folder, included header, file) of each include of a file in another folder."""
    for path in production():
        for header in re.findall(
            r'^#include "([^"]+/[^"]+)"', (C_ROOT / path).read_text(encoding="utf-8"), re.MULTILINE
        ):
            folder = _folder(path)
            if _folder(PurePosixPath(header)) != folder:
                yield folder, header, str(path)


def violations(edges: list[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a sentence for each violation."""
    for folder, header, file in edges:
        if not _is_allowed(folder, header):
            yield f"dataplane/{file}: {folder or 'main'} may not include {header}; see ALLOWED in scripts/structure.py"
    for path in sorted(C_ROOT.rglob("*.[ch]")):
        name = path.relative_to(C_ROOT).as_posix()
        if name not in REALTIME_FILES and REALTIME.search(path.read_text(encoding="utf-8")):
            yield f"dataplane/{name}: the clock of the day may be set; take CLOCK_MONOTONIC"
        if name not in TSC_FILES and TSC_HZ.search(path.read_text(encoding="utf-8")):
            yield f"dataplane/{name}: DPDK rounds the frequency of the TSC; take clock_hz() of base/clock.h"
    for name, figure in harness().items():
        if figure > LIMITS[name][0]:
            yield f"planebench/: {figure} {name}, at most {LIMITS[name][0]}: take something away"
    count = len(production())
    if count > C_FILES_MAX:
        yield f"dataplane/: {count} production C files, at most {C_FILES_MAX}: put a concept in one file"


def table() -> Iterator[str]:
    """Yield lines of Markdown: figures against their bars, and the folders that may be included."""
    c_lines = sum(len((C_ROOT / path).read_text(encoding="utf-8").splitlines()) for path in production())
    yield "| figure | now | goal |"
    yield "|---|---|---|"
    yield f"| production C files ({c_lines:,} lines) | {len(production())} | {C_FILES_MAX} |"
    yield from (f"| {name} of planebench/ | {figure:,} | {LIMITS[name][1]:,} |" for name, figure in harness().items())
    yield ""
    yield "| folder | may include |"
    yield "|---|---|"
    for folder, allowed in ALLOWED.items():
        yield f"| {folder or 'main.c'} | {', '.join(sorted(allowed)) or 'nothing else'} |"


def _folder(path: PurePosixPath) -> str:
    return "" if str(path.parent) == "." else str(path.parent)


def _is_allowed(folder: str, header: str) -> bool:
    rule = "nf/KIND" if folder.startswith("nf/") else folder
    return header in ALLOWED[rule] or _folder(PurePosixPath(header)) in ALLOWED[rule]


@cache
def modules() -> Mapping[str, ast.Module]:
    """Return each module of the harness by its dotted name below planebench."""
    found = {}
    for path in sorted(HARNESS.rglob("*.py")):
        parts = path.relative_to(HARNESS).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def harness() -> dict[str, int]:
    """Return the figures of the harness that LIMITS has limits of."""
    trees = modules()
    apart, lines, names = 0, 0, defaultdict[str, set[str]](set)
    for module, tree in trees.items():
        found = code_lines(tree)
        lines, apart = lines + found, apart + found * (module.partition(".")[0] in APART)
        for node in tree.body:
            if name := _type_name(node):
                names[name].add(module)
    kinds = Counter(type(node) for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.stmt))
    files, packages = imports(), defaultdict[str, set[str]](set)
    top = {module for module in trees if "." not in module and any(it.startswith(f"{module}.") for it in trees)}
    for module, targets in files.items():
        packages[module.partition(".")[0]] |= {target.partition(".")[0] for target in targets}
    inner = {package: packages[package] & top - {package} for package in top}
    return {
        "code lines without papers, conformance and lab": lines - apart,
        "code lines": lines,
        "packages": len(top),
        "layers of packages": max(_height(package, inner) for package in top),
        "files": len(trees),
        "files that import each other": sum(module in _reached(module, files) for module in files),
        "functions": kinds[ast.FunctionDef] + kinds[ast.AsyncFunctionDef],
        "class names of several files": sum(len(where) > 1 for where in names.values()),
        "statements": kinds.total(),
    }


def code_lines(tree: ast.Module) -> int:
    """Return the lines on which anything but a docstring or an import stands."""
    code: set[int] = set()
    skip: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            skip.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword | ast.excepthandler | ast.match_case):
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
            nested = isinstance(node, ast.stmt) and hasattr(node, "body")
            code.update((first,) if nested else range(first, last + 1))
    return len(code - skip - {0})


def imports() -> Mapping[str, set[str]]:
    """Return the modules of the harness that each imports; not planebench itself."""
    return {module: imported(tree) - {"", module} for module, tree in modules().items()}


def imported(tree: ast.Module) -> set[str]:
    """Return the modules of the harness that a module imports, also inside functions; "" is planebench itself."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    # Every layer may ask for the version.
    ours = (name.split(".")[1:] for name in names - {"planebench.__version__"} if name.startswith("planebench."))
    return {_module_of(parts) for parts in ours}


def _module_of(parts: list[str]) -> str:
    while parts and ".".join(parts) not in modules():
        parts = parts[:-1]
    return ".".join(parts)


def _type_name(node: ast.stmt) -> str:
    """Return the name of a class or of an alias of a type that a statement defines; empty if it is another."""
    if isinstance(node, ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        return name if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name) else ""
    return ""


def _height(package: str, below: Mapping[str, set[str]]) -> int:
    return 1 + max((_height(it, below) for it in below[package]), default=0)


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    """Return the modules that a module imports, and what these import."""
    found: set[str] = set()
    todo = [*edges[start]]
    while todo:
        module = todo.pop()
        if module not in found:
            found.add(module)
            todo += edges.get(module, ())
    return found


if __name__ == "__main__":
    sys.exit(main())
