# SPDX-License-Identifier: BSD-3-Clause
"""Trials as a flat table in DuckDB: one row a trial and direction, for questions that no report asks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from planebench.model.records import DirectionCounts, Trial
from planebench.model.run import Run
from planebench.store.reader import read_run

Getter = Callable[[Run, Trial, DirectionCounts], Any]

COLUMNS: dict[str, tuple[str, Getter]] = {
    "run_id": ("VARCHAR", lambda r, t, d: r.header.run_id),
    "trial_index": ("BIGINT", lambda r, t, d: t.index),
    "switch": ("VARCHAR", lambda r, t, d: t.point.switch),
    "version": ("VARCHAR", lambda r, t, d: r.version_of(t.point.switch)),
    "scenario": ("VARCHAR", lambda r, t, d: t.point.scenario),
    "chain_length": ("INTEGER", lambda r, t, d: t.point.chain_length),
    "chain": ("VARCHAR", lambda r, t, d: t.point.chain_text),
    "direction": ("VARCHAR", lambda r, t, d: t.point.direction),
    "frame_size_bytes": ("INTEGER", lambda r, t, d: t.point.frame_size_bytes),
    "traffic": ("VARCHAR", lambda r, t, d: t.point.traffic),
    "wire": ("VARCHAR", lambda r, t, d: t.point.wire),
    "hosting": ("VARCHAR", lambda r, t, d: t.point.hosting),
    "role": ("VARCHAR", lambda r, t, d: t.role),
    "load": ("VARCHAR", lambda r, t, d: t.load.label),
    "repetition": ("INTEGER", lambda r, t, d: t.repetition),
    "started_at": ("VARCHAR", lambda r, t, d: t.started_at),
    "verdict": ("VARCHAR", lambda r, t, d: t.verdict.kind.value),
    "verdict_reasons": ("VARCHAR[]", lambda r, t, d: list(t.verdict.reasons)),
    "band": ("VARCHAR", lambda r, t, d: t.band),
    "duration_ns": ("BIGINT", lambda r, t, d: t.offered_duration_ns),
    "flow": ("VARCHAR", lambda r, t, d: d.name),
    "intended_packets": ("BIGINT", lambda r, t, d: d.intended_packets),
    "offered_packets": ("BIGINT", lambda r, t, d: d.offered_packets),
    "forwarded_packets": ("BIGINT", lambda r, t, d: d.forwarded_packets),
    "duplicate_packets": ("BIGINT", lambda r, t, d: d.duplicate_packets),
    "reordered_packets": ("BIGINT", lambda r, t, d: d.reordered_packets),
    "corrupt_packets": ("BIGINT", lambda r, t, d: d.corrupt_packets),
    "offered_bytes": ("BIGINT", lambda r, t, d: d.offered_bytes),
    "forwarded_bytes": ("BIGINT", lambda r, t, d: d.forwarded_bytes),
    "loss_ratio": ("DOUBLE", lambda r, t, d: d.loss_ratio),
    "flow_pps": ("DOUBLE", lambda r, t, d: d.forwarded_packets * 1e9 / max(t.offered_duration_ns, 1)),
    "trial_pps": ("DOUBLE", lambda r, t, d: t.throughput_pps),
    "switch_cycles_per_packet": ("DOUBLE", lambda r, t, d: t.switch.cycles_per_packet),
    "switch_batch_size": ("DOUBLE", lambda r, t, d: t.switch.batch_size),
    "start": ("INTEGER", lambda r, t, d: t.start),
    "search": ("VARCHAR", lambda r, t, d: t.search),
}
"""Column -> (DuckDB type, how to get it). ``trial_pps`` is the whole trial's rate, the same in each of its rows."""


def trials_relation(*paths: Path, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
    """The trials of one or more run folders as the table ``trials`` of a connection (in memory unless one is given).

    A table of that name is replaced. Example: ``trials_relation(p).filter("verdict = 'valid'").aggregate("...")``.
    """
    database = connection or duckdb.connect()
    types = {name: kind for name, (kind, _) in COLUMNS.items()}
    return fill_table(database, "trials", types, (row for path in paths for row in _rows(read_run(path))))


def fill_table(
    database: duckdb.DuckDBPyConnection, name: str, types: Mapping[str, str], rows: Iterable[Mapping[str, Any]]
) -> duckdb.DuckDBPyRelation:
    """Make, or replace, a table of plain values. ``types``: column -> DuckDB type."""
    with tempfile.TemporaryDirectory(prefix="planebench-") as folder:
        file = Path(folder) / "rows.jsonl"
        with file.open("w", encoding="utf-8", errors="replace") as out:
            out.writelines(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        database.execute(
            f'CREATE OR REPLACE TABLE "{name}" AS '
            "SELECT * FROM read_json($rows, format='newline_delimited', columns=$types)",
            {"rows": str(file), "types": dict(types)},
        )
    return database.table(name)


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    for trial in run.trials:
        for direction in trial.directions:
            yield {name: get(run, trial, direction) for name, (_, get) in COLUMNS.items()}
