# SPDX-License-Identifier: BSD-3-Clause
"""Everything that is derived from a run as one JSON document. Same run, same bytes. Tables: analysis/tables.py."""

from __future__ import annotations

import json

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.metrics.column import Column, having, plain, point_columns, row
from planebench.analysis.metrics.results import RESULT, results
from planebench.analysis.standings import AnswerState, Lead, RateOfSwitch, Standings
from planebench.report.papers import paper_records

EXPORT_VERSION = 2
"""Version of the JSON export (planebench/report/schemas/generate.py.json). Keys are added without a new one.
History: 1 = first; 2 = every trial that took place counts: no band, no rejected trials; `counted_pps`, `strata`,
`search_figures`."""


ANSWER = (
    Column("point", str, lambda standing: cell_id(standing.point), "The test point as comparisons name it."),
    *(column for name, column in point_columns("point").items() if name != "switch"),
    Column("state", AnswerState, "state", "What is known of the first: docs/report.md."),
    Column(
        "ranked",
        list[RateOfSwitch],
        "ranked",
        "Best first; a lower bound by its estimated capacity where that is known.",
    ),
    Column("best_to_next", Lead | None, "lead", "Null with one switch, or where the two were not compared."),
    Column("missing", list[str], lambda standing: [it.point.switch for it in standing.missing], "Without a rate."),
)
"""The columns of an answer, of :class:`Standing`."""


def to_json(derived: Derived) -> bytes:
    """Return the JSON export, whose schema is planebench/report/schemas/generate.py.json; unknown figures are null."""
    document = {
        "results": [row(having(RESULT, "json"), item) for item in results(derived)],
        "comparisons": [plain(c) for c in derived.comparisons],
        "calibration": plain(derived.run.header.calibration),
        "answers": [row(ANSWER, standing) for standing in Standings(derived).throughput],
        "chains": plain(derived.chains),
        "conditions": {
            "switches": [switch.label for switch in derived.run.header.switches],  # in the order of cells
            "rows": [plain(condition) for condition in derived.conditions],
            "contradictions": list(derived.contradictions),
            "found": [plain(conditions) for conditions in derived.run.conditions],  # what was read at each start
        },
        "drift": plain(derived.drift),
        "papers": paper_records(derived),
        "export_version": EXPORT_VERSION,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")
