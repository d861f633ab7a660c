# SPDX-License-Identifier: BSD-3-Clause
"""``planebench papers --tables``: Tables 1, 2 and 5 of conext19, each row beside what there is of it here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from planebench.cli.show import print_json
from planebench.model.errors import UsageError
from planebench.model.words import printable
from planebench.papers.judge import judge_all
from planebench.papers.measured import Measured
from planebench.report.published import Kind, Tuning, UseCase, kinds, tunings, use_cases, value_words
from planebench.stats.derived import Derived
from planebench.store import find_run, read_run
from planebench.switches.registry import get_adapter


def tables(names: Sequence[str], runs_dir: Path | None, *, json: bool) -> None:
    """Print the tables; with a run the function and the tuning of its switches, and where they lead.

    Raises UsageError for several runs.
    """
    if len(names) > 1:
        raise UsageError(f"--tables takes one run, not {len(names)}")
    derived = Derived(read_run(find_run(runs_dir, names[0]))) if names else None
    judgements = judge_all(Measured(derived)) if derived is not None else ()
    found = kinds(derived), tunings(derived), use_cases(derived, judgements)
    if json:
        first = [{**asdict(it), "here": _differs(it)} for it in found[0]]
        second, fifth = ([asdict(it) for it in rows] for rows in found[1:])
        print_json({"paper": "conext19", "tables": {"table 1": first, "table 2": second, "table 5": fifth}})
    else:
        print("\n".join(_lines(*found)))


def _differs(row: Kind) -> dict[str, Any]:
    """Return the columns of Table 1 that are others in our adapter."""
    traits = get_adapter(row.switch).traits
    return {name: getattr(traits, name) for name, value in row.published.items() if getattr(traits, name) != value}


def _lines(first: Sequence[Kind], second: Sequence[Tuning], fifth: Sequence[UseCase]) -> Iterator[str]:
    yield "conext19, Table 1: taxonomy"
    for kind in first:
        yield f"  {kind.switch}: {', '.join(map(value_words, kind.published.values()))}"
        if differs := _differs(kind):
            yield f"    here: {', '.join(map(value_words, differs.values()))}"
        yield from _in_run(kind.run)
    yield "conext19, Table 2: tunings"
    for tuning in second:
        yield f"  {tuning.switch}: {tuning.published}"
        yield f"    here: {tuning.here}"
        yield from _in_run(tuning.run)
    yield "conext19, Table 5: use cases"
    for case in fifth:
        yield f"  {case.switch}: {case.best_at}; {case.remark}"
        yield from _in_run(f"it leads in {case.leads_words}" if case.leads else "")
        for claim in case.claims:
            yield from _in_run(claim)


def _in_run(words: str) -> Iterator[str]:
    if words:
        yield f"    in this run: {printable(words)}"
