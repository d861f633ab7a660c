# SPDX-License-Identifier: BSD-3-Clause
"""Results for other programs: JSON with everything, and CSV with one line a result. Same run, same bytes."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from typing import Any

from planebench.model.header import Calibration, LatencyFloor
from planebench.model.results import LatencySummary, Ledger, Result, SearchResult
from planebench.report.papers import paper_records
from planebench.report.search_words import search_counts
from planebench.stats.ceiling import latency_floor
from planebench.stats.choose import is_foreign
from planebench.stats.derived import Derived

EXPORT_VERSION = 1
"""Version of the JSON export (planebench/schemas/export.json). Keys are added without a new one. History: 1 = first."""

LATENCY_FIGURES = ("mean", "stddev", "p50", "p90", "p99", "p99_9", "max")
LATENCY_KEYS = ("intended_pps", "achieved_fraction", *LATENCY_FIGURES, "samples", "verdict")
"""Of a latency: columns of the CSV, and the first keys in JSON."""
LATENCY_MORE = (
    "probes_sent",
    "probes_stamped",
    "clock",
    "verdict_reasons",
    "ipdv",
    "pdv",
    "burst_jitter",
    "floor_p50",
    "floor_p99",
    "anatomy",
)
"""Of a latency, in JSON only. The floors are those of the tester at this frame size, in microseconds as the rest."""
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
    "throughput_median_pps",
    "throughput_trials_pps",
    "trial_indices",
    "switch_busy_share",
    "capacity_estimate_pps",
    "other_bands",
    "searches",
    "load_finding",
    "ledger",
    "chain",
    "traffic",
    "mean_frame_bytes",
    "sent",
    "switch_batch_size",
    "switch_received_packets",
    "switch_forwarded_packets",
)
"""Keys of a result in JSON, in order.

``throughput_pps`` is a lower bound where the verdict is tester-limited, and null where nothing counts.
"""
CSV_KEYS = RESULT_KEYS[: RESULT_KEYS.index("run_id") + 1]
"""Of a result, columns of the CSV; ``latency_us`` becomes columns of its own behind them."""
CSV_MORE = (
    "ndr_pps",
    "pdr_pps",
    "throughput_median_pps",
    "unexplained_packets",
    "rfc2544_pps",
    "bswlv_pps",
    "b2b_packets",
    "ndr_verdict",
    "pdr_verdict",
    "chain",
    "traffic",
    "mean_frame_bytes",
    "switch_batch_size",
    "switch_received_packets",
    "switch_forwarded_packets",
)
"""The last columns of the CSV. Of a search the lower bound, of b2b the mean longest burst.

Empty unless the search is complete, counts and is of the band of the run. The verdict is ``other-band`` where only the
last fails; ``tester-limited`` where the figure is a lower bound.
"""


def to_json(derived: Derived) -> bytes:
    """``{"results": [...], "comparisons": [...], "calibration": {...}, "chains": {...}, "conditions": {...},
    "export_version": 1}``.

    calibration may be null; conditions are the fairness manifest. Also ``papers``: claims (docs/papers.md).
    A result has the keys of RESULT_KEYS, unknown figures are null.
    """
    document = {
        "results": records(derived),
        "comparisons": [_plain(c) for c in derived.comparisons],
        "calibration": _plain(derived.run.header.calibration),
        "chains": _plain(derived.chains),
        "conditions": _conditions(derived),
        "papers": paper_records(derived),
        "export_version": EXPORT_VERSION,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="replace")


def to_csv(derived: Derived) -> bytes:
    """One line a result; latency in columns such as ``latency_0.10_p50_us``; unknown figures are empty. RFC 4180."""
    results = derived.results
    loads = list(dict.fromkeys(summary.load for result in results for summary in result.latency))
    columns = [key for key in CSV_KEYS if key != "latency_us"]
    columns += [_latency_column(load, key) for load in loads for key in LATENCY_KEYS]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, [*columns, *CSV_MORE], restval="")
    writer.writeheader()
    writer.writerows(flat(result, derived.run.header.run_id) for result in results)
    return out.getvalue().encode("utf-8", errors="replace")


def records(derived: Derived) -> list[dict[str, Any]]:
    """Return the results of a run as plain values, keys as in RESULT_KEYS."""
    header = derived.run.header
    return [record(result, header.run_id, header.calibration) for result in derived.results]


def record(result: Result, run_id: str, calibration: Calibration | None = None) -> dict[str, Any]:
    """One result as plain values, keys as in RESULT_KEYS. ``calibration``: where latencies have their floors from."""
    point = result.point
    floor = latency_floor(calibration, point)
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
        "latency_us": {summary.load: _latency(summary, floor) for summary in result.latency},
        "switch_cycles_per_packet": result.switch_cycles_per_packet,
        "verdict_reasons": list(result.verdict.reasons),
        "throughput_stddev_pps": result.throughput_stddev_pps,
        "trials": len(result.trials),
        "rejected": result.rejected,
        "band": result.band,
        "run_id": run_id,
        "throughput_median_pps": result.throughput_median_pps,
        "throughput_trials_pps": list(result.throughput_trials_pps),
        "trial_indices": list(result.trials),
        "switch_busy_share": result.switch_busy_share,
        "capacity_estimate_pps": result.capacity_estimate_pps,
        "other_bands": _plain(result.other_bands),
        "searches": [_without_point(search) for search in result.searches],
        "load_finding": _plain(result.load_finding),
        "ledger": _ledger(result.ledger),
        "chain": point.chain_text,
        "traffic": point.traffic,
        "mean_frame_bytes": result.mean_frame_bytes,
        "sent": [_plain(sent) | {"mean_frame_bytes": sent.mean_frame_bytes} for sent in result.sent],
        "switch_batch_size": result.switch_batch_size,
        "switch_received_packets": result.switch_received_packets,
        "switch_forwarded_packets": result.switch_forwarded_packets,
    }


def flat(result: Result, run_id: str) -> dict[str, Any]:
    """One result as a line of the CSV: column -> value."""
    values = record(result, run_id)
    line = {key: values[key] for key in CSV_KEYS if key != "latency_us"}
    line["verdict_reasons"] = "; ".join(values["verdict_reasons"])
    for load, figures in values["latency_us"].items():
        line.update((_latency_column(load, key), figures[key]) for key in LATENCY_KEYS)
    ledger = result.ledger
    return line | {
        "ndr_pps": _found(result, "ndr"),
        "pdr_pps": _found(result, "pdr"),
        "throughput_median_pps": result.throughput_median_pps,
        "unexplained_packets": None if ledger is None else ledger.unexplained_packets,
        "rfc2544_pps": _found(result, "rfc2544"),
        "bswlv_pps": _found(result, "bswlv"),
        "b2b_packets": _burst_packets(result),
        "ndr_verdict": _search_verdict(result, "ndr"),
        "pdr_verdict": _search_verdict(result, "pdr"),
        "chain": values["chain"],
        "traffic": result.point.traffic,
        "mean_frame_bytes": result.mean_frame_bytes,
        "switch_batch_size": result.switch_batch_size,
        "switch_received_packets": result.switch_received_packets,
        "switch_forwarded_packets": result.switch_forwarded_packets,
    }


def _conditions(derived: Derived) -> dict[str, Any]:
    """Cells are in the order of ``switches``; ``found`` is what was read at each start."""
    return {
        "switches": [switch.label for switch in derived.run.header.switches],
        "rows": [_plain(condition) for condition in derived.conditions],
        "contradictions": list(derived.contradictions),
        "found": [_plain(conditions) for conditions in derived.run.conditions],
    }


def _search(result: Result, method: str) -> SearchResult | None:
    return next((s for s in result.searches if s.method == method), None)


def _found(result: Result, method: str) -> float | None:
    search = _search(result, method)
    return search.lower_pps if search is not None and search_counts(search) else None


def _burst_packets(result: Result) -> float | None:
    search = _search(result, "b2b")
    if search is None or search.burst is None or not search_counts(search):
        return None
    return search.burst.mean_packets


def _search_verdict(result: Result, method: str) -> str | None:
    search = _search(result, method)
    if search is None:
        return None
    return "other-band" if search.complete and is_foreign(search.verdict) else search.verdict.kind.value


def _latency(summary: LatencySummary, floor: LatencyFloor | None) -> dict[str, Any]:
    figures = {key: _plain(getattr(summary, key)) for key in LATENCY_FIGURES}
    return {
        "intended_pps": summary.intended_pps,
        "achieved_fraction": summary.achieved_fraction,
        **figures,
        "samples": summary.samples,
        "verdict": summary.verdict.kind.value,
        "probes_sent": summary.probes_sent,
        "probes_stamped": summary.probes_stamped,
        "clock": summary.clock,
        "verdict_reasons": list(summary.verdict.reasons),
        "ipdv": _plain(summary.ipdv),
        "pdv": _plain(summary.pdv),
        "burst_jitter": _plain(summary.burst_jitter),
        "floor_p50": None if floor is None else floor.p50_ns / 1e3,
        "floor_p99": None if floor is None else floor.p99_ns / 1e3,
        "anatomy": [_plain(a) | {"mean": a.mean} for a in summary.anatomy],
    }


def _without_point(search: SearchResult) -> dict[str, Any]:
    """The point is that of the result."""
    return {key: value for key, value in _plain(search).items() if key != "point"}


def _ledger(ledger: Ledger | None) -> dict[str, Any] | None:
    return None if ledger is None else {**_plain(ledger), "unexplained_packets": ledger.unexplained_packets}


def _plain(value: Any) -> Any:
    """A record as JSON has it: dictionaries, lists, null for what is no finite number."""
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _latency_column(load: str, key: str) -> str:
    return f"latency_{load}_{key}_us" if key in LATENCY_FIGURES else f"latency_{load}_{key}"
