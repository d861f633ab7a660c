# SPDX-License-Identifier: BSD-3-Clause
"""Results for other programs: JSON with everything, and CSV with one line per result. Same run, same bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.metrics.column import Column, having, plain, point_columns, row
from planebench.analysis.metrics.results import LATENCY, RESULT, OfLatency, OfResult, results
from planebench.analysis.standings import AnswerState, Lead, RateOfSwitch, Standings
from planebench.model.errors import unwritable
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
        "conditions": _conditions(derived),
        "drift": plain(derived.drift),
        "papers": paper_records(derived),
        "export_version": EXPORT_VERSION,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")


def to_csv(derived: Derived) -> bytes:
    """Return one line per result, with latency in columns such as ``latency_0.10_p50_us``. RFC 4180.

    Unknown figures are empty. The figure of a search is empty unless the search is complete.
    """
    loads = list(dict.fromkeys(summary.load for result in derived.results for summary in result.latency))
    columns = list(_flat_columns(loads))
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([name for name, _ in columns])
    writer.writerows([csv_text(get(item)) for _, get in columns] for item in results(derived))
    return out.getvalue().encode("utf-8", errors="replace")


def _flat_columns(loads: Iterable[str]) -> Iterator[tuple[str, Callable[[OfResult], Any]]]:
    """Yield name and getter of every column of the CSV; those of latency, by load, come behind the run id."""
    for column in having(RESULT, "csv"):
        yield column.flat_name, column.value
        if column.name == "run_id":
            for load, figure in product(loads, having(LATENCY, "csv")):
                yield f"latency_{load}_{figure.flat_name}", partial(_at_load, load, figure)


def _at_load(load: str, figure: Column, item: OfResult) -> Any:
    """Return a figure of the latency at a load; None where that load was not measured."""
    summary = next((s for s in item.result.latency if s.load == load), None)
    return None if summary is None else figure.value(OfLatency(item.run, item.result, summary))


def csv_text(value: Any) -> Any:
    """Return a value as a cell of a CSV file: the items of a list are joined by ``; ``."""
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _conditions(derived: Derived) -> dict[str, Any]:
    """Return the test conditions: cells in the order of ``switches``, and in ``found`` what was read at each start."""
    return {
        "switches": [switch.label for switch in derived.run.header.switches],
        "rows": [plain(condition) for condition in derived.conditions],
        "contradictions": list(derived.contradictions),
        "found": [plain(conditions) for conditions in derived.run.conditions],
    }


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file and return its path. Raises an error as :func:`unwritable`."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise unwritable(str(path), error) from None
    return path
