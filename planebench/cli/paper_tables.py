# SPDX-License-Identifier: BSD-3-Clause
"""Tables 1, 2 and 5 of conext19, each row beside what there is of it here, and in a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planebench.cli.show import print_json
from planebench.model.words import point_words, printable
from planebench.papers.data import conext19_tables
from planebench.report.answers import Standings
from planebench.stats.derived import Derived
from planebench.store import find_run, read_run
from planebench.switches.registry import get_adapter

MAX_LEADS = 3
"""Test points that are named; of more, the number is given."""


def tables(run: str | None, runs_dir: Path | None, *, json: bool) -> None:
    """Print the tables; with a run what its switches were tuned to, and where they lead."""
    derived = Derived(read_run(find_run(runs_dir, run))) if run is not None else None
    found = {"table 1": taxonomy(), "table 2": tunings(derived), "table 5": use_cases(derived)}
    if json:
        print_json({"paper": "conext19", "tables": found})
    else:
        print("\n".join(_lines(found)))


def taxonomy() -> list[dict[str, Any]]:
    """Return the rows of Table 1, and what differs in our adapter."""
    rows = []
    for switch, row in conext19_tables().taxonomy.items():
        published, traits = row.model_dump(), get_adapter(switch).traits
        differs = {name: getattr(traits, name) for name, value in published.items() if getattr(traits, name) != value}
        rows.append({"switch": switch, "published": published, "here": differs})
    return rows


def tunings(derived: Derived | None) -> list[dict[str, Any]]:
    """Return the rows of Table 2, what there is of each here, and the setting of it in a run."""
    settings = {_adapter(it.adapter): it.settings for it in derived.run.header.switches} if derived else {}
    return [
        {
            "switch": switch,
            "published": row.tuning,
            "here": row.here,
            "run": settings.get(switch, {}).get(row.setting, "") if row.setting else "",
        }
        for switch, row in conext19_tables().tunings.items()
    ]


def use_cases(derived: Derived | None) -> list[dict[str, Any]]:
    """Return the rows of Table 5, and the test points of a run at which each switch forwards more than all others."""
    leads: dict[str, list[str]] = {}
    if derived is not None:
        adapters = {it.label: _adapter(it.adapter) for it in derived.run.header.switches}
        for standing in Standings(derived).throughput:
            if standing.state == "different":
                point = standing.results[0].point
                leads.setdefault(adapters.get(point.switch, ""), []).append(point_words(point))
    return [
        {"switch": switch, "best_at": row.best_at, "remark": row.remark, "leads": leads.get(switch, [])}
        for switch, row in conext19_tables().use_cases.items()
    ]


def _adapter(text: str) -> str:
    return text.partition(":")[0]


def _lines(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    yield "conext19, Table 1: taxonomy"
    for row in found["table 1"]:
        yield f"  {row['switch']}: {_values(row['published'])}"
        if row["here"]:
            yield f"    here: {_values(row['here'])}"
    yield "conext19, Table 2: tunings"
    for row in found["table 2"]:
        yield f"  {row['switch']}: {row['published']}"
        yield f"    here: {row['here']}"
        if row["run"]:
            yield f"    in this run: {printable(row['run'])}"
    yield "conext19, Table 5: use cases"
    for row in found["table 5"]:
        yield f"  {row['switch']}: {row['best_at']}; {row['remark']}"
        if row["leads"]:
            more = f" and {len(row['leads']) - MAX_LEADS} more" if len(row["leads"]) > MAX_LEADS else ""
            yield f"    in this run it leads in {', '.join(row['leads'][:MAX_LEADS])}{more}"


def _values(row: dict[str, Any]) -> str:
    return ", ".join(" and ".join(value) if isinstance(value, tuple) else value for value in row.values())
