#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Size budget and SPDX lines. Limits: below; exceptions, each with its reason: scripts/lint_exceptions.txt."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 800
FUNCTION_LINES = 100
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
SPDX_NAMES = {"Makefile", "meson.build", "meson_options.txt", "run"}
SPDX_SUFFIXES = {".py", ".c", ".h", ".sh", ".yaml", ".yml", ".toml", ".j2", ".js"}
EXCEPTIONS = Path("scripts/lint_exceptions.txt")


def main() -> int:
    """Check every file of the work tree; 1 if anything is over its limit."""
    allowed = dict(exceptions())
    problems = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        if (path.suffix in SPDX_SUFFIXES or path.name in SPDX_NAMES) and SPDX not in "\n".join(text.split("\n")[:2]):
            problems.append(f"{path}: no line '{SPDX}' at the top")
        for name, lines, limit in sizes(path, text):
            if lines > allowed.get(name, limit):
                problems.append(
                    f"{name}: {lines} lines, above {allowed.get(name, limit)}: one concept? See {EXCEPTIONS}"
                )
    print("\n".join(problems) or "sizes and SPDX lines: fine")
    return 1 if problems else 0


def files() -> Iterator[Path]:
    """Files that git knows or would add."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    return (path for path in map(Path, listing.stdout.splitlines()) if path.is_file() and is_source(path))


def is_source(path: Path) -> bool:
    """Whether a limit or the SPDX rule applies to the file."""
    return path.suffix in SPDX_SUFFIXES or path.name in SPDX_NAMES


def exceptions() -> Iterator[tuple[str, int]]:
    """Lines of ``PATH[:FUNCTION] LIMIT REASON``; the reason is not optional."""
    for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, limit, _reason = line.split(maxsplit=2)
            yield name, int(limit)


def sizes(path: Path, text: str) -> Iterator[tuple[str, int, int]]:
    """(name, lines, limit) of the file and of each function in it."""
    if path.suffix in {".py", ".c", ".h"}:
        yield str(path), text.count("\n"), FILE_LINES
    if path.suffix == ".py":
        functions = python_functions(ast.parse(text))
    else:
        functions = c_functions(text) if path.suffix in {".c", ".h"} else iter(())
    for name, lines in functions:
        yield f"{path}:{name}", lines, FUNCTION_LINES


def python_functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions and their lines, docstring not counted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            doc = first if ast.get_docstring(node, clean=False) is not None else None
            doc_lines = (doc.end_lineno or doc.lineno) - doc.lineno + 1 if doc else 0
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - doc_lines


def c_functions(text: str) -> Iterator[tuple[str, int]]:
    """Functions and the lines of their bodies: in this format their braces, and no others, are alone in column 0."""
    lines = text.split("\n")
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            yield c_name(lines[:start]), number - start + 1
            start = None


def c_name(before: list[str]) -> str:
    """Name in the declaration that ends just before a body: the last word in column 0 that a parenthesis follows."""
    for line in reversed(before):
        if re.match(r"\w", line) and (found := re.search(r"(\w+)\(", line)):
            return found.group(1)
    return "?"


if __name__ == "__main__":
    sys.exit(main())
