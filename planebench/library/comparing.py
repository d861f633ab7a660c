# SPDX-License-Identifier: BSD-3-Clause
"""Run against run, in the columns of the table ``comparisons``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb

from planebench.library import tables
from planebench.library.source import Source
from planebench.metrics.column import Row
from planebench.model.errors import UsageError
from planebench.stats.compare import differing_facts, runs_compared

if TYPE_CHECKING:
    import pandas as pd


def second_against_first(sources: Sequence[Source], *, force: bool) -> pd.DataFrame:
    """Compare as the command ``planebench compare A B``, with the same UsageErrors."""
    if len(sources) != 2:
        raise UsageError(f"{len(sources)} runs are loaded; to compare give two: planebench.load('baseline', 'latest')")
    a, b = sources
    header_a, header_b = a.run.header, b.run.header
    differing = differing_facts(header_a, header_b)
    if differing and not force:
        raise UsageError(
            f"{header_a.run_id} and {header_b.run_id} are not comparable: {'; '.join(differing)}. "
            "Repeat with identical settings, or override with force=True"
        )
    table = tables.table_named("comparisons")
    compared = runs_compared(a, b).comparisons
    rows = [table.row(Row(run=b.run, comparison=comparison)) for comparison in compared]
    return tables.frame(tables.arrow(tables.fill_table(duckdb.connect(), "comparisons", table.types, rows)))
