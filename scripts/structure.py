#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the structure of the C sources: which folder may include which, that one file knows the frequency of the TSC,
and how many production files there are.

Exit code 1 with one sentence for each violation. ``--table`` prints the figures and the allowed includes as Markdown,
for docs/design/README.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
C_ROOT = ROOT / "dataplane"
C_FILES_MAX = 204
NOT_PRODUCTION = re.compile(r"_(test|fuzz|bench|rig|race|stress)(_\w+)?\.[ch]$")
TOOLS = {"tasks/tester/tester_pcap.c", "tasks/vnf/nf_run.c", "fib/fib_pipe.c", "tasks/vnf/nf_fuzz_frames.h"}

# One file knows the frequency of the TSC: DPDK's own is rounded.
TSC_HZ = re.compile(r"\brte_get_(tsc|timer)_hz\b")
TSC_FILES = {"lib/clock.c", "lib/clock_test.c"}

# What a folder may include besides itself: folders, or single headers. KIND stands for any folder below tasks/.
ALLOWED: dict[str, set[str]] = {
    "lib": set(),
    "ring": {"lib"},
    "port": {"ring", "lib"},
    "fib": {"lib"},
    "fib/client": {"fib"},
    "tasks": {"port", "ring", "lib"},
    "tasks/KIND": {"tasks", "tasks/vnf", "tasks/tester", "port", "ring", "lib", "fib", "fib/client"},
    "runtime": {"tasks/task.h", "tasks/tester/probe_tap.h", "port/port.h", "port/device_clock.h", "lib"},
    "": {"runtime", "lib"},
}


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
        if name not in TSC_FILES and TSC_HZ.search(path.read_text(encoding="utf-8")):
            yield f"dataplane/{name}: DPDK rounds the frequency of the TSC; take clock_hz() of lib/clock.h"
    count = len(production())
    if count > C_FILES_MAX:
        yield f"dataplane/: {count} production C files, at most {C_FILES_MAX}: put a concept in one file"


def table() -> Iterator[str]:
    """Yield lines of Markdown: figures against their bars, and the folders that may be included."""
    c_lines = sum(_lines(C_ROOT / path) for path in production())
    python_lines = sum(_lines(path) for path in (ROOT / "planebench").rglob("*.py"))
    yield "| figure | now | bar |"
    yield "|---|---|---|"
    yield f"| production C files | {len(production())} | {C_FILES_MAX} |"
    yield f"| production lines of C and planebench/ | {c_lines + python_lines} ({c_lines} + {python_lines}) | 70,500 |"
    yield ""
    yield "| folder | may include |"
    yield "|---|---|"
    for folder, allowed in ALLOWED.items():
        yield f"| {folder or 'main.c'} | {', '.join(sorted(allowed)) or 'nothing else'} |"


def _folder(path: PurePosixPath) -> str:
    return "" if str(path.parent) == "." else str(path.parent)


def _is_allowed(folder: str, header: str) -> bool:
    rule = "tasks/KIND" if folder.startswith("tasks/") else folder
    return header in ALLOWED[rule] or _folder(PurePosixPath(header)) in ALLOWED[rule]


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    sys.exit(main())
