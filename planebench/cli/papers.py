# SPDX-License-Identifier: BSD-3-Clause
"""``planebench papers``: print the claims of the papers, or check them against one run or several."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from planebench.analysis.compare import Derived
from planebench.cli.options import print_json
from planebench.model.words import printable
from planebench.papers.claims import all_claims, all_papers
from planebench.papers.judge import Conclusion, conclude, open_words, shown
from planebench.papers.measured import RunFigures
from planebench.papers.told import ClaimOutcome
from planebench.report.papers import conclusion_record, counts, record
from planebench.store import find_run, read_run

_STYLES = {ClaimOutcome.CONFIRMED: "green", ClaimOutcome.NOT_CONFIRMED: "red"}


def papers(names: Sequence[str] | None, runs: Path | None, *, json: bool) -> None:
    """Print every claim; with a run its outcome: all of a run without papers, else as on the page.

    With several runs, one outcome of each claim from all of them.
    """
    if not names:
        if json:
            said = ((it.model_dump(exclude_none=True, exclude_defaults=True, mode="json"), it) for it in all_claims())
            print_json({"papers": [{**document, "says": claim.sentence} for document, claim in said]})
        else:
            for name, title in all_papers().items():
                own = (it for it in all_claims() if it.paper == name)
                print("\n".join([f"{name}: {title}", *(f"  {it.id} ({it.where}): {it.sentence}" for it in own)]))
        return
    derived = [Derived(read_run(find_run(runs, name))) for name in names]
    measured = {it.run.header.run_id: RunFigures(it) for it in derived}
    found = conclude(measured)
    if len(measured) > 1:
        document: dict[str, Any] = {"runs": [*measured], "papers": [conclusion_record(it) for it in found]}
    else:
        header = derived[0].run.header
        if header.papers:
            there = {judged.claim.id for judged in shown(header, (it.judgements[0][1] for it in found))}
            found = tuple(it for it in found if it.claim.id in there)
        document = {"run": header.run_id, "papers": [record(it.judgements[0][1]) for it in found]}
    if json:
        print_json(document)
    else:
        _print_conclusions(found, several=len(measured) > 1)


def _print_conclusions(conclusions: Sequence[Conclusion], *, several: bool) -> None:
    console = Console(markup=False, highlight=False)
    width = max(console.width, 60)
    for name in dict.fromkeys(it.claim.paper for it in conclusions):
        console.print(Text(f"{name}: {all_papers()[name]}", style="bold"))
        for it in conclusions:
            if it.claim.paper == name:
                outcome = Text(f"  {it.words}", style=_STYLES.get(it.outcome, "dim"))
                console.print(outcome, Text(f"{it.claim.id} ({it.claim.where})"))
                _print_wrapped(console, it.claim.sentence, width)
                runs = f"{it.runs}: " if several and it.why != "runs disagree" else ""
                _print_wrapped(console, printable(runs + it.evidence), width, "dim")
    if why := open_words(conclusions):
        console.print(Text(f"inconclusive: {why}"))
    console.print(counts(conclusions))


def _print_wrapped(console: Console, text: str, width: int, style: str = "") -> None:
    lines = textwrap.wrap(text, width - 4, break_on_hyphens=False)
    console.print(Text("\n".join(f"    {line}" for line in lines), style=style))
