# SPDX-License-Identifier: BSD-3-Clause
"""What the page says in words and tables, as plain values ready to print; the template only arranges them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from planebench.model.records import Trial, VerdictKind
from planebench.model.results import LatencySummary, Result
from planebench.model.run import Run
from planebench.report.wording import (
    ARROWS,
    NOTHING,
    PATHS,
    frame_size,
    latency_counts,
    load_words,
    mpps,
    percent,
    throughput,
    us,
)
from planebench.stats.ranking import Ranking, counts, rank, same_cell

Record = dict[str, Any]

MAX_REJECTED = 300
"""Rows of the table of rejected trials; the rest is only counted."""


def headline(results: Sequence[Result]) -> str:
    """One sentence: who is fastest how often. Cells that cannot be told apart go to nobody."""
    rankings = [r for r in rank(results) if len(r.results) > 1]
    if not rankings:
        return ""
    wins = Counter(r.first.point.switch for r in rankings if not r.level)
    level = sum(bool(r.level) for r in rankings)
    parts = [f"{name} in {n}" for name, n in wins.most_common()]
    if level:
        parts.append(f"too close to call in {level}")
    return f"Highest throughput, over {len(rankings)} comparisons: {', '.join(parts)}."


def summary(results: Sequence[Result], colours: Mapping[str, str]) -> list[Record]:
    """One card a scenario: the fastest switch of each direction and frame size; of chains shortest and longest only."""
    cards: dict[str, Record] = {}
    for ranking in rank(results):
        scenario = ranking.point.scenario
        card = cards.setdefault(scenario, {"scenario": scenario, "path": PATHS[scenario], "lines": []})
        if _shown(ranking, results):
            card["lines"].append(_summary_line(ranking, results, colours))
    return list(cards.values())


def throughput_record(result: Result) -> Record:
    """A row of the table of throughputs."""
    point = result.point
    return {
        "switch": point.switch,
        "chain": point.chain_length or "",
        "direction": f"{ARROWS[point.direction]} {point.direction}",
        "size": frame_size(point.frame_size_bytes),
        "throughput": throughput(result),
        "stddev": NOTHING if result.throughput_stddev_pps is None else f"{result.throughput_stddev_pps / 1e6:.3f}",
        "gbps": NOTHING if result.throughput_l1_gbps is None else f"{result.throughput_l1_gbps:.2f}",
        "trials": len(result.throughput_trials_pps),
        "rejected": result.rejected,
        "loss": percent(result.loss_ratio),
        "cycles": NOTHING if result.switch_cycles_per_packet is None else f"{result.switch_cycles_per_packet:.0f}",
        "busy": percent(result.switch_busy_share),
        "band": result.band or NOTHING,
        "verdict": result.verdict.kind.value,
        "reasons": result.verdict.reasons,
        "counts": counts(result),
    }


def latency_record(result: Result, summary: LatencySummary) -> Record:
    """A row of the table of latencies, figures in us."""
    point = result.point
    figures = ("mean", "stddev", "p50", "p90", "p99", "p99_9", "max")
    return {
        "switch": point.switch,
        "chain": point.chain_length or "",
        "direction": f"{ARROWS[point.direction]} {point.direction}",
        "size": frame_size(point.frame_size_bytes),
        "load": load_words(summary.load),
        "intended": mpps(summary.intended_pps),
        "achieved": f"{summary.achieved_fraction:.1%}".replace("%", " %"),
        "figures": [us(getattr(summary, name)) for name in figures],
        "samples": f"{summary.samples:,}".replace(",", "\u202f"),
        "lost": max(0, summary.probes_sent - summary.samples),
        "verdict": summary.verdict.kind.value,
        "reasons": summary.verdict.reasons,
        "counts": latency_counts(summary),
    }


def verdict_counts(run: Run) -> list[Record]:
    """How many trials got which verdict, by switch, in the order of VerdictKind; warm-ups are left out."""
    trials = [t for t in run.trials if t.role != "warmup"]
    rows = []
    for label in run.switch_labels:
        kinds = Counter(t.verdict.kind for t in trials if t.point.switch == label)
        bands = Counter(t.band or "unknown" for t in trials if t.point.switch == label)
        by_band = ", ".join(f"{n} {band}" for band, n in bands.most_common())
        rows.append(
            {"switch": label, "kinds": [kinds[k] for k in VerdictKind], "total": kinds.total(), "bands": by_band}
        )
    return rows


def rejected(run: Run, results: Sequence[Result]) -> list[Record]:
    """Every trial that no result rests on, in the order of the run."""
    counting = {index for r in results for index in r.trials}
    return [_rejected(t) for t in run.trials if t.role != "warmup" and t.index not in counting]


def _rejected(trial: Trial) -> Record:
    point = trial.point
    direction = f"{ARROWS[point.direction]} {frame_size(point.frame_size_bytes)}"
    return {
        "index": trial.index,
        "switch": point.switch,
        "what": f"{point.scenario_label} {direction}",
        "load": "flat out" if trial.load.pps_per_direction is None else load_words(trial.load.label),
        "mpps": mpps(trial.throughput_pps),
        "band": trial.band or NOTHING,
        "verdict": trial.verdict.kind.value,
        "reasons": trial.verdict.reasons or ("not of the band, or of the verdict, that the result rests on",),
    }


def _shown(ranking: Ranking, results: Sequence[Result]) -> bool:
    chains = {r.point.chain_length for r in results if r.point.scenario == ranking.point.scenario}
    return ranking.point.chain_length in (min(chains), max(chains))


def _summary_line(ranking: Ranking, results: Sequence[Result], colours: Mapping[str, str]) -> Record:
    point, first = ranking.point, ranking.first
    chain = f"N = {point.chain_length} " if point.chain_length else ""
    return {
        "cell": f"{chain}{ARROWS[point.direction]} {frame_size(point.frame_size_bytes)}",
        "switch": first.point.switch,
        "colour": colours[first.point.switch],
        "figure": throughput(first),
        "note": _summary_note(ranking) + _left_out(ranking, results),
    }


def _left_out(ranking: Ranking, results: Sequence[Result]) -> str:
    """The switches that were tried in this cell and are not in the ranking: a lead over them is not claimed."""
    ranked = {r.point.switch for r in ranking.results}
    tried = [r.point.switch for r in same_cell(results)[ranking.point]]
    missing = [label for label in tried if label not in ranked]
    return f"; not compared: {', '.join(missing)}" if missing else ""


def _summary_note(ranking: Ranking) -> str:
    if len(ranking.results) == 1:
        return "alone"
    if ranking.level:
        others = ", ".join(ranking.level[:2]) + (
            f" and {len(ranking.level) - 2} more" if len(ranking.level) > 2 else ""
        )
        limited = {r.point.switch for r in ranking.results if r.verdict.kind is VerdictKind.TESTER_LIMITED}
        return f"{others} may be faster" if set(ranking.level) <= limited else f"level with {others}"
    second = ranking.results[1].point.switch
    if ranking.lead is None:
        return f"before {second}"
    least = "at least " if ranking.first.verdict.kind is VerdictKind.TESTER_LIMITED else ""
    return f"{least}{ranking.lead:+.0%} over {second}".replace("%", " %")
