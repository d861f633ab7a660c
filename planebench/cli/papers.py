# SPDX-License-Identifier: BSD-3-Clause
"""``planebench papers``: print the claims of the papers, or check them against a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from planebench.cli.show import print_json
from planebench.model.words import printable
from planebench.papers.claims import Claim, all_claims, all_papers
from planebench.papers.judge import judge_all, shown
from planebench.papers.measured import Measured
from planebench.papers.told import Judgement, Outcome
from planebench.report.papers import counts, record
from planebench.stats.derived import Derived
from planebench.store import find_run, read_run

_STYLES = {Outcome.CONFIRMED: "green", Outcome.NOT_CONFIRMED: "red", Outcome.CANNOT_BE_TESTED: "dim"}


def papers(run: str | None, runs_dir: Path | None, *, json: bool) -> None:
    """Print every claim; with a run its outcome: all of a run without papers, else as on the page."""
    if run is None:
        _print_claims(json)
        return
    stored = read_run(find_run(runs_dir, run))
    judgements = judge_all(Measured(Derived(stored)))
    if stored.header.papers:
        judgements = shown(stored.header, judgements)
    if json:
        document = {"run": stored.header.run_id, "papers": [record(judged) for judged in judgements]}
        print_json(document)
    else:
        _print_judgements(judgements)


def claim_lines() -> Iterator[str]:
    """Yield every claim on a line of its own, by paper: the list of docs/papers.md."""
    for name, paper in all_papers().items():
        yield f"{name}: {paper.title}"
        for claim in all_claims():
            if claim.paper == name:
                yield f"  {claim.id} ({claim.where}): {claim.sentence}"


def _print_claims(json: bool) -> None:
    if json:
        print_json({"papers": [_claim(claim) for claim in all_claims()]})
        return
    print("\n".join(claim_lines()))


def _claim(claim: Claim) -> dict[str, Any]:
    said = claim.model_dump(exclude_none=True, exclude_defaults=True, mode="json")
    return {**said, "says": claim.sentence}


def _print_judgements(judgements: Sequence[Judgement]) -> None:
    console = Console(highlight=False)
    width = max(console.width, 60)
    for name in dict.fromkeys(judged.claim.paper for judged in judgements):
        console.print(Text(f"{name}: {all_papers()[name].title}", style="bold"))
        for judged in judgements:
            if judged.claim.paper == name:
                claim = judged.claim
                outcome = Text(f"  {judged.words}", style=_STYLES[judged.outcome])
                console.print(outcome, Text(f"{claim.id} ({claim.where})"))
                _print_wrapped(console, claim.sentence, width)
                _print_wrapped(console, printable(judged.evidence), width, "dim")
    console.print(", ".join(f"{row['number']} {row['words']}" for row in counts(judgements)))


def _print_wrapped(console: Console, text: str, width: int, style: str = "") -> None:
    lines = textwrap.wrap(text, width - 4, break_on_hyphens=False)
    console.print(Text("\n".join(f"    {line}" for line in lines), style=style))
