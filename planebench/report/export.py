# SPDX-License-Identifier: BSD-3-Clause
"""Results for other programs: JSON with one record a result, and the same flat as CSV. Same run, same bytes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from typing import Any

from planebench.model.results import LatencySummary, Result
from planebench.model.run import Run
from planebench.stats.results import derive_results

LATENCY_FIGURES = ("mean", "stddev", "p50", "p90", "p99", "p99_9", "max")
LATENCY_KEYS = ("intended_pps", "achieved_fraction", *LATENCY_FIGURES, "samples", "verdict")
RESULT_KEYS = (
    "switch",
    "version",
    "scenario",
    "direction",
    "chain_length",
    "frame_size_bytes",
    "wire",
    "hosting",
    "verdict",
    "throughput_pps",
    "throughput_l1_gbps",
    "loss_ratio",
    "latency_us",
    "switch_cycles_per_packet",
    "verdict_reasons",
    "throughput_stddev_pps",
    "trials",
    "rejected",
    "band",
    "run_id",
)
"""Keys of a result, in order.

``throughput_pps`` is a lower bound where the verdict is tester-limited, and null where nothing counts.
"""


def to_json(run: Run) -> bytes:
    """``{"results": [...]}``, one record a result with the keys of RESULT_KEYS; unknown figures are null."""
    document = {"results": records(run)}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")


def to_csv(run: Run) -> bytes:
    """One line a result; latency in columns such as ``latency_0.10_p50_us``; unknown figures are empty. RFC 4180."""
    rows = records(run)
    loads = list(dict.fromkeys(load for row in rows for load in row["latency_us"]))
    columns = [key for key in RESULT_KEYS if key != "latency_us"]
    columns += [_latency_column(load, key) for load in loads for key in LATENCY_KEYS]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, columns, restval="")
    writer.writeheader()
    writer.writerows(_flatten(row) for row in rows)
    return out.getvalue().encode("utf-8", errors="replace")


def records(run: Run) -> list[dict[str, Any]]:
    """The results of a run as plain values, keys as in RESULT_KEYS."""
    return [_record(result, run.header.run_id) for result in derive_results(run)]


def _record(result: Result, run_id: str) -> dict[str, Any]:
    point = result.point
    return {
        "switch": point.switch,
        "version": result.version,
        "scenario": point.scenario,
        "direction": point.direction,
        "chain_length": point.chain_length,
        "frame_size_bytes": point.frame_size_bytes,
        "wire": point.wire,
        "hosting": point.hosting,
        "verdict": result.verdict.kind.value,
        "throughput_pps": result.throughput_pps,
        "throughput_l1_gbps": result.throughput_l1_gbps,
        "loss_ratio": result.loss_ratio,
        "latency_us": {summary.load: _latency(summary) for summary in result.latency},
        "switch_cycles_per_packet": result.switch_cycles_per_packet,
        "verdict_reasons": list(result.verdict.reasons),
        "throughput_stddev_pps": result.throughput_stddev_pps,
        "trials": len(result.trials),
        "rejected": result.rejected,
        "band": result.band,
        "run_id": run_id,
    }


def _latency(summary: LatencySummary) -> dict[str, Any]:
    figures = {key: _finite(getattr(summary, key)) for key in LATENCY_FIGURES}
    return {
        "intended_pps": summary.intended_pps,
        "achieved_fraction": summary.achieved_fraction,
        **figures,
        "samples": summary.samples,
        "verdict": summary.verdict.kind.value,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in row.items() if key != "latency_us"}
    flat["verdict_reasons"] = "; ".join(row["verdict_reasons"])
    for load, figures in row["latency_us"].items():
        flat.update((_latency_column(load, key), value) for key, value in _items(figures))
    return flat


def _items(figures: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return ((key, figures[key]) for key in LATENCY_KEYS)


def _latency_column(load: str, key: str) -> str:
    return f"latency_{load}_{key}_us" if key in LATENCY_FIGURES else f"latency_{load}_{key}"
