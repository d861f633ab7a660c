# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a lab over its runs: series of the store, for trends (docs/trends.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planebench.analysis.counting import cell_id
from planebench.analysis.metrics.results import POINT
from planebench.analysis.trend import VOLATILE, Series, TrendPoint
from planebench.lab.store import open_store
from planebench.model.errors import unknown
from planebench.model.header import Subject
from planebench.model.records import Point
from planebench.model.results import Metric
from planebench.model.text import FILES, named_digests, seconds_since_epoch, without_folders
from planebench.model.words import load_words

_OF_SEARCH = (
    "figure_pps AS figure, '' AS load FROM searches WHERE repetition = 0 AND NOT is_lower_bound AND method = '{}'"
)
_FIGURES: Mapping[Metric, str] = {
    "throughput": "throughput_pps AS figure, '' AS load FROM results WHERE counts AND NOT is_lower_bound",
    "cycles_per_packet": "switch_cycles_per_packet AS figure, '' AS load FROM results WHERE counts",
    "ndr": _OF_SEARCH.format("ndr"),
    "pdr": _OF_SEARCH.format("pdr"),
    "latency_p50": "p50_us AS figure, load FROM latency WHERE counts",
    "latency_p99": "p99_us AS figure, load FROM latency WHERE counts",
}
"""Where the figures of each metric are, no lower bounds."""

METRICS: tuple[Metric, ...] = tuple(_FIGURES)

_POINT = tuple(column.name for column in POINT if column.name not in ("run_id", "version"))


def histories(
    store: Path, metric: Metric = "throughput", testbed: str | None = None, switch: str | None = None
) -> dict[Series, list[TrendPoint]]:
    """Return the series of a metric, by testbed, switch and test point. Raises UsageError for an unknown metric."""
    if metric not in _FIGURES:
        raise unknown("metric", metric, METRICS)
    with open_store(store) as database:
        runs = {(run["testbed"], run["run_id"]): run for run in _rows(database.sql("SELECT * FROM runs"))}
        found = _rows(database.sql(f"SELECT *, {_FIGURES[metric]}"))
    series: dict[Series, list[TrendPoint]] = {}
    for row in found:
        if row["figure"] is None or row["figure"] <= 0 or testbed not in (None, row["testbed"]):
            continue
        if switch in (None, row["switch"]):
            run = runs[row["testbed"], row["run_id"]]
            row["chain"] = without_folders(row["chain"], json.loads(run["settings"]))
            key = Series(row["testbed"], row["switch"], _point_words(row), metric)
            series.setdefault(key, []).append(_sample(row, run))
    return series


def _rows(found: Any) -> list[dict[str, Any]]:
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def _point_words(row: Mapping[str, Any]) -> str:
    """Return the point as comparisons name it, and the load of a latency."""
    cell = cell_id(Point(**{name: row[name] for name in _POINT}))
    return f"{cell} at {load_words(row['load'])}" if row["load"] else cell


def _sample(row: Mapping[str, Any], run: Mapping[str, Any]) -> TrendPoint:
    mine = run["subject_commit"] is not None and _subject(run).builds(row["switch"])
    settings = json.loads(run["settings"])
    facts = {**json.loads(run["host"]), **_settings(settings), "planebench": run["planebench_version"]}
    if not mine:
        facts[f"version of {row['switch']}"] = row["version"]
    minutes = (seconds_since_epoch(run["finished_at"]) - seconds_since_epoch(run["started_at"])) / 60
    return TrendPoint(
        run["run_id"],
        run["started_at"],
        row["figure"],
        commit=run["subject_commit"] if mine else "",
        committed_at=run["subject_committed_at"] if mine else "",
        repository=run["subject_repository"] if mine else "",
        dirty=bool(mine and run["subject_dirty"]),
        facts={name: str(value) for name, value in facts.items() if name not in VOLATILE},
        minutes=minutes,
        boot=str(json.loads(run["host"]).get("boot_id") or ""),
    )


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a run, with the digest of each file by its name, and chains without folders."""
    chains = {"chains": without_folders(settings["chains"], settings)} if settings.get("chains") else {}
    kept = {key: value for key, value in settings.items() if key not in FILES}
    return {**kept, **chains, **named_digests(settings)}


def _subject(run: Mapping[str, Any]) -> Subject:
    names = ("repository", "commit", "committed_at", "dirty", "switch")
    return Subject(**{name: run[f"subject_{name}"] for name in names})
