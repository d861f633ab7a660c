# SPDX-License-Identifier: BSD-3-Clause
"""Everything that is derived from a run as one JSON document. Same run, same bytes. Tables: analysis/tables.py."""

from __future__ import annotations

import json

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.metrics.column import having, plain, point_columns, row
from planebench.analysis.metrics.results import RESULT, results
from planebench.analysis.standings import Standings
from planebench.report.papers import paper_records

EXPORT_VERSION = 2
"""Version of the JSON export (planebench/report/schemas/generate.py.json). Keys are added without a new one.
History: 1 = first; 2 = every trial that took place counts: no band, no rejected trials; `counted_pps`, `strata`,
`search_figures`."""


_POINT = [column for name, column in point_columns("point").items() if name != "switch"]


def to_json(derived: Derived) -> bytes:
    """Return the JSON export, whose schema is planebench/report/schemas/generate.py.json; unknown figures are null."""
    document = {
        "results": [row(having(RESULT, "json"), item) for item in results(derived)],
        "comparisons": [plain(c) for c in derived.comparisons],
        "calibration": plain(derived.run.header.calibration),
        "answers": [
            {
                "point": cell_id(standing.point),
                **row(_POINT, standing),
                "state": standing.state,
                "ranked": plain(standing.ranked),
                "best_to_next": plain(standing.lead),
                "missing": [it.point.switch for it in standing.missing],
            }
            for standing in Standings(derived).throughput
        ],
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
