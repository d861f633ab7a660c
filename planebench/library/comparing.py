# SPDX-License-Identifier: BSD-3-Clause
"""Run against run, in the columns of the table ``comparisons``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb

from planebench.library import tables
from planebench.library.of_runs import OfComparison
from planebench.library.source import Source
from planebench.model.errors import UsageError
from planebench.stats.compare import compare_runs, differing_facts
from planebench.store.query import fill_table

if TYPE_CHECKING:
    import pandas as pd


def second_against_first(sources: Sequence[Source], *, force: bool) -> pd.DataFrame:
    """As the command ``planebench compare A B``. UsageError as there."""
    if len(sources) != 2:
        raise UsageError(f"{len(sources)} runs are loaded; to compare give two: planebench.load('baseline', 'latest')")
    a, b = (source.run for source in sources)
    differing = differing_facts(a.header, b.header)
    if differing and not force:
        raise UsageError(
            f"{a.header.run_id} and {b.header.run_id} differ in what must match: {'; '.join(differing)}. "
            "Measure again alike, or compare all the same with force=True"
        )
    table = tables.table_named("comparisons")
    rows = [table.row(OfComparison(b.header.run_id, comparison)) for comparison in compare_runs(a, b)]
    return tables.frame(tables.arrow(fill_table(duckdb.connect(), "comparisons", table.types, rows)))
