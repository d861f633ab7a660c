# SPDX-License-Identifier: BSD-3-Clause
"""The data of docs/results as CSV, for record.py: a table a subject; column ``run`` names the kept run of a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from record_kept import core_cycles, kept, run_of, standings

from planebench.analysis import tables
from planebench.analysis.metrics.column import point_columns, row
from planebench.analysis.node_capacity import predictions
from planebench.papers.judge import Conclusion, conclude
from planebench.papers.measured import RunFigures
from planebench.papers.shape import shapes

Row = Mapping[str, Any]


def files() -> dict[str, str]:
    """Return the text of each data file by its name."""
    made = {
        "results.csv": _results(),
        "latency.csv": _of_table("latency"),
        "answers.csv": _answers(),
        "chains.csv": _chains(),
        "published.csv": _published(),
        "claims.csv": _claims(),
    }
    return {name: _csv(rows) for name, rows in made.items()}


def _csv(rows: Iterable[Row]) -> str:
    found = [{name: _cell(value) for name, value in it.items()} for it in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else value


def _of_table(table: str) -> Iterator[Row]:
    """Yield the rows of a table of all kept runs, without its lists: trials and reasons of verdicts."""
    columns = [name for name, kind in tables.table_named(table).types.items() if not kind.endswith("[]")]
    for name in kept():
        for it in tables.rows(table, [run_of(name)]):
            yield {"run": name, **{column: it[column] for column in columns if column not in ("run_id", "version")}}


def _results() -> Iterator[Row]:
    found = [(run, result) for run in kept().values() for result in run.results]
    for it, (run, result) in zip(_of_table("results"), found, strict=True):
        yield {**it, "core_cycles_per_packet_and_pass": core_cycles(run, result)}


def _answers() -> Iterator[Row]:
    """Yield which switch is first at each test point, and by how much."""
    columns = [column for name, column in point_columns("point").items() if name != "switch"]
    for name in kept():
        for it in standings(name).throughput:
            lead = it.lead
            yield {
                "run": name,
                **row(columns, it),
                "answer": it.state,
                "first": it.results[0].point.switch if it.results else "",
                "next": lead and lead.a,
                "metric": lead and lead.metric,
                "ratio": lead and lead.ratio,
                "low": lead and lead.low,
                "high": lead and lead.high,
                "missing": [result.point.switch for result in it.missing],
            }


def _chains() -> Iterator[Row]:
    """Yield the throughput of chains as predicted from loopback-1 and v2v, beside the measured one."""
    for name, run in kept().items():
        for it in predictions(run):
            yield {
                "run": name,
                "switch": it.point.switch,
                "chain_length": it.point.chain_length,
                "direction": it.point.direction,
                "frame_size_bytes": it.point.frame_size_bytes,
                "predicted_pps": it.pps,
                "is_lower_bound": it.is_bound,
                "measured_pps": it.measured_pps,
                "error": it.error,
            }


def _published() -> Iterator[Row]:
    """Yield the published tables beside the run of their suite, both as multiples of one reference."""
    for table in shapes(RunFigures(run_of("conext19"))):
        for it in table.entries:
            yield {
                "paper": table.paper,
                "table": table.title,
                "test_point": it.cell,
                "switch": it.switch,
                "multiple_of": it.reference,
                "published": it.paper and it.paper.words,
                "here": it.ours and it.ours.words,
            }


@cache
def concluded() -> tuple[Conclusion, ...]:
    """Return the outcome of each claim over all kept runs."""
    return conclude({name: RunFigures(found) for name, found in kept().items()})


def _claims() -> Iterator[Row]:
    for it in concluded():
        yield {
            "paper": it.claim.paper,
            "where": it.claim.where,
            "claim": it.claim.id,
            "says": it.claim.sentence,
            "outcome": it.outcome.value,
            "why": it.why,
            "runs": [name for name, _ in it.judgements],
            "evidence": it.evidence,
        }
