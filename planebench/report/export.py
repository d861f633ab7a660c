# SPDX-License-Identifier: BSD-3-Clause
"""Everything that is derived from a run as one JSON document. Same run, same bytes. Tables: analysis/tables.py."""

from __future__ import annotations

import json

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.metrics.column import having, plain, point_columns, row
from planebench.analysis.metrics.results import RESULT, results
from planebench.analysis.standings import Standings
from planebench.papers.judge import judge_all, shown
from planebench.papers.measured import RunFigures
from planebench.report.papers import record

EXPORT_VERSION = 2
"""Version of the JSON export. Keys are added without a new one.
History: 1 = first; 2 = every trial that took place counts: no band, no rejected trials; `counted_pps`, `strata`,
`search_figures`."""


_POINT = [column for name, column in point_columns("point").items() if name != "switch"]
_OF_LEAD = ("metric", "ratio", "low", "high", "answer")


def to_json(derived: Derived) -> bytes:
    """Return the JSON export; unknown figures are null."""
    document = {
        "results": [row(having(RESULT, "json"), item) for item in results(derived)],
        "comparisons": [plain(c) for c in derived.comparisons],
        "calibration": plain(derived.run.header.calibration),
        "answers": [
            {
                "point": cell_id(standing.point),
                **row(_POINT, standing),
                "state": standing.state,
                "ranked": [
                    {
                        "switch": it.point.switch,
                        "throughput_pps": plain(it.throughput_pps),
                        "low_pps": plain(it.throughput_low_pps),
                        "high_pps": plain(it.throughput_high_pps),
                        "is_bound": it.verdict.kind.is_bound,
                    }
                    for it in standing.results
                ],
                "best_to_next": pair
                and {"best": pair.b, "next": pair.a, **{name: plain(getattr(pair, name)) for name in _OF_LEAD}},
                "missing": [it.point.switch for it in standing.missing],
            }
            for standing in Standings(derived).throughput
            for pair in [standing.lead]
        ],
        "chains": plain(derived.chains),
        "conditions": {
            "switches": [switch.label for switch in derived.run.header.switches],  # in the order of cells
            "rows": [plain(condition) for condition in derived.conditions],
            "contradictions": list(derived.contradictions),
            "found": [plain(conditions) for conditions in derived.run.conditions],  # what was read at each start
        },
        "drift": plain(derived.drift),
        "papers": [record(it) for it in shown(derived.run.header, judge_all(RunFigures(derived)))],
        "export_version": EXPORT_VERSION,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")
