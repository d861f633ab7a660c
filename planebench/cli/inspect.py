# SPDX-License-Identifier: BSD-3-Clause
"""``list``: what there is, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from planebench.cli.show import plain_table, print_json
from planebench.cli.switches import list_switches, option_words
from planebench.host.programs import Found
from planebench.hosting.registry import HOSTINGS
from planebench.model.choices import unknown
from planebench.model.scenario import SCENARIOS
from planebench.plans.budget import duration_words
from planebench.plans.load import list_suites, load_plan
from planebench.running.survey import survey
from planebench.schemas import SCHEMAS, schema_text
from planebench.store import list_runs
from planebench.traffic.listing import traffic_rows
from planebench.vnfs.registry import VNFS

Row = dict[str, Any]
SWITCHES = "switches"


def list_things(what: str, runs_dir: Path | None, json: bool, details: bool = False) -> None:
    """Print the list called ``what``; ``details`` of switches. Raises UsageError for an unknown list."""
    if what not in LISTS:
        raise unknown("list", what, LISTS)
    if what == SWITCHES:
        list_switches(json=json, details=details)
    else:
        _print(what, LISTS[what](runs_dir), json)


def show_schema(name: str | None, listed: bool, json: bool) -> None:
    """Print a JSON Schema, or which there are. UsageError for a name that is none."""
    if listed or name is None:
        _print("schemas", [{"schema": s.name, "version": s.version, "of": s.title} for s in SCHEMAS.values()], json)
    else:
        print(schema_text(name), end="")


def _vnfs(_: object) -> list[Row]:
    return [
        {
            "vnf": vnf.name,
            "does": vnf.summary,
            "options": "\n".join(option_words(option) for option in vnf.all_options),
        }
        for vnf in VNFS.values()
    ]


def _hostings(_: object) -> list[Row]:
    """Return the hostings; ``process`` needs nothing and has no options."""
    rows = [{"hosting": "process", "found": "yes", "is": "a task of the tester process (default)", "options": ""}]
    for hosting in HOSTINGS.values():
        found = hosting.find()
        rows.append(
            {
                "hosting": hosting.name,
                "found": found.version if isinstance(found, Found) else f"no: {found.remedy}",
                "is": hosting.title,
                "options": "\n".join(option_words(option) for option in hosting.options),
            }
        )
    return rows


def _scenarios(_: object) -> list[Row]:
    return [
        {"scenario": s.name, "path": s.path, "tells": s.meaning, "directions": ", ".join(s.directions)}
        for s in SCENARIOS.values()
    ]


def _suites(_: object) -> list[Row]:
    rows = []
    for name in list_suites():
        plan = load_plan(name)
        held = survey(plan, made=False)
        row = {"suite": name, "points": len(held.measured), "takes": duration_words(held.takes_s)}
        rows.append({**row, "papers": ", ".join(plan.papers) or "-", "what": plan.description})
    return rows


def _runs(runs_dir: Path | None) -> list[Row]:
    return [
        {
            "run": info.run_id,
            "switches": ", ".join(switch.label for switch in info.header.switches),
            "ended": info.finished.status if info.finished else "killed or still running",
            "folder": str(info.path),
        }
        for info in list_runs(runs_dir)
    ]


def _print(what: str, rows: list[Row], json: bool) -> None:
    if json:
        print_json({what: rows})
        return
    if not rows:
        print(f"no {what}")
        return
    table = plain_table(*rows[0], header_style="bold")
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(markup=False).print(table)


LISTS: Mapping[str, Callable[[Path | None], list[Row]]] = {
    SWITCHES: lambda _: [],
    "traffic": lambda _: traffic_rows(),
    "vnfs": _vnfs,
    "hostings": _hostings,
    "scenarios": _scenarios,
    "suites": _suites,
    "runs": _runs,
}
"""Name of a list -> its rows, of runs those in a folder; switches have more than rows (planebench.cli.switches)."""
