# SPDX-License-Identifier: BSD-3-Clause
"""The kept runs of docs/results, for record.py: a run folder for each suite, its records and its tables as Parquet."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.analysis.tables import RunSource
from planebench.loaded import Loaded
from planebench.plan.schema import load_plan
from planebench.store import read_run
from planebench.store.reader import keep

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
RUNS = RESULTS / "runs"
SUITES = (
    "conext19",
    "conext19-starts",
    "sixty-starts",
    "snabb-starts",
    "deviation-starts",
    "more-starts",
    "waiting",
    "netsoft19",
    "can17",
    "near-and-far",
    "ic16",
    "ic16-starts",
)
"""The suites of the record, in the order of its tables."""


def keep_run(folder: Path) -> str:
    """Keep a run in place of the one of its suite; return the suite."""
    description = read_run(folder).header.plan.description
    suite = next((name for name in SUITES if load_plan(name).description == description), None)
    if suite is None:
        sys.exit(f"{folder}: not a run of one of the suites {', '.join(SUITES)}, by its description: {description}")
    out = keep(folder, RUNS / suite)
    Loaded([RunSource(out, read_run(out))]).parquet(out / "tables")
    return suite


@cache
def derived(suite: str) -> Derived | None:
    """Return the kept run of a suite; None without one."""
    folder = RUNS / suite
    return Derived(read_run(folder)) if folder.is_dir() else None


def kept() -> dict[str, Derived]:
    """Return the kept runs by suite."""
    return {suite: found for suite in SUITES if (found := derived(suite)) is not None}


@cache
def standings(suite: str) -> Standings | None:
    """Return the standings of the kept run of a suite; None without one."""
    found = derived(suite)
    return None if found is None else Standings(found)
