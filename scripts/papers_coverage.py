# SPDX-License-Identifier: BSD-3-Clause
"""docs/papers-coverage.md, made from docs/papers-coverage.yaml: papers_coverage.py [--check].

Each id is an item of a source paper: a system, an experiment, a figure. The script fails where an entry names a part of
a suite or a state that does not exist, and where a state other than faithful says nothing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from planebench.model.text import parse_yaml
from planebench.plan import list_suites
from planebench.plan.schema import load_plan

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "papers-coverage.yaml"
PAGE = ROOT / "docs" / "papers-coverage.md"
STATES = {
    "faithful": "as in the paper; differences do not touch what the paper says of it",
    "emulated": "another thing stands in for what this machine or repository does not have; the note names it",
    "hardware": "built, and tested without the hardware or software that a figure needs; the note names it",
    "partial": "covers a part of it, or differs in something that the result rests on",
    "missing": "not there",
}
KEYS = {"item", "state", "parts", "command", "note"}

Rows = Mapping[str, Mapping[str, Any]]


def main() -> int:
    """Write the page, or (``--check``) compare it. Returns 1 for problems."""
    source: Mapping[str, Rows] = parse_yaml(SOURCE.read_text(encoding="utf-8"), str(SOURCE))
    found = list(problems(source))
    page = "\n".join(lines(source)) + "\n"
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        found.append(f"{PAGE.name} is not what {SOURCE.name} says: run scripts/papers_coverage.py")
    print("\n".join(found) or "coverage of the papers: fine")
    return 1 if found else 0


def problems(source: Mapping[str, Rows]) -> Iterator[str]:
    """Yield what is wrong with the entries, by id."""
    parts = {f"{name}/{part.name}" for name in list_suites() for part in load_plan(name).parts}
    for rows in source.values():
        for key, row in rows.items():
            yield from (f"{key}: unknown key {name}" for name in row.keys() - KEYS)
            if row["state"] not in STATES:
                yield f"{key}: no such state: {row['state']}"
            if row["state"] != "faithful" and not row.get("note"):
                yield f"{key}: {row['state']}, and no note says why"
            yield from (f"{key}: no such part: {part}" for part in row.get("parts", ()) if part not in parts)


def lines(source: Mapping[str, Rows]) -> Iterator[str]:
    """Yield the lines of the page."""
    every = [row for rows in source.values() for row in rows.values()]
    count = Counter(row["state"] for row in every)
    yield "# What is here of each paper"
    yield ""
    yield f"{len(every)} systems, experiments and figures of the four source papers. What the papers find, and what"
    yield "comes out here, is in the [results](results/README.md); how claims are judged, in [papers](papers.md)."
    yield ""
    yield "| state | items | meaning |"
    yield "|---|---|---|"
    yield from (f"| {state} | {count[state]} | {text} |" for state, text in STATES.items())
    yield ""
    yield "In brackets: parts of the suite of the paper (`planebench run SUITE` measures all of them) or a command, and"
    yield "a note. This page is made by `scripts/papers_coverage.py` from `papers-coverage.yaml`."
    for paper, rows in source.items():
        yield from ("", f"## {paper}")
        for state in STATES:
            found = [_line(key, row) for key, row in rows.items() if row["state"] == state]
            if found:
                yield from ("", f"{state.capitalize()}:", "", *found)


def _line(key: str, row: Mapping[str, Any]) -> str:
    commands = [row["command"]] if row.get("command") else []
    run = [f"`{name}`" for name in (*(part.partition("/")[2] for part in row.get("parts", ())), *commands)]
    said = "; ".join(part for part in (", ".join(run), row.get("note")) if part)
    return f"- **{key}** {row['item']}" + (f" ({said})" if said else "")


if __name__ == "__main__":
    sys.exit(main())
