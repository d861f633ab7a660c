# SPDX-License-Identifier: BSD-3-Clause
"""The cards of the summary: who leads in each cell, and by what, claiming no more than the figures allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planebench.model.records import VerdictKind
from planebench.model.results import Comparison, Result
from planebench.model.scenario import scenario_named
from planebench.model.words import ARROWS, cycles, estimate, frames, percent, throughput
from planebench.report.derived import level_with_first
from planebench.stats.ranking import Ranking, rank, same_cell

Record = dict[str, Any]


def summary(
    results: Sequence[Result], colours: Mapping[str, str], comparisons: Sequence[Comparison] = ()
) -> list[Record]:
    """One card a scenario: who leads in each direction and frame size; of chains shortest and longest only."""
    cards: dict[str, Record] = {}
    for ranking in rank(results):
        scenario = ranking.point.scenario
        card = cards.setdefault(
            scenario, {"scenario": scenario, "path": scenario_named(scenario).drawn_path, "lines": []}
        )
        if _shown(ranking, results):
            card["lines"].append(_summary_line(ranking, results, colours, comparisons))
    return list(cards.values())


def _shown(ranking: Ranking, results: Sequence[Result]) -> bool:
    chains = {r.point.chain_length for r in results if r.point.scenario == ranking.point.scenario}
    return ranking.point.chain_length in (min(chains), max(chains))


def _summary_line(
    ranking: Ranking, results: Sequence[Result], colours: Mapping[str, str], comparisons: Sequence[Comparison]
) -> Record:
    point, first = ranking.point, ranking.first
    chain = f"{point.chain_label} " if point.named else f"N = {point.chain_length} " if point.chain_length else ""
    return {
        "cell": f"{chain}{ARROWS[point.direction]} {frames(point)}",
        "switch": first.point.switch,
        "colour": colours[first.point.switch],
        "figure": throughput(first),
        "note": _summary_note(ranking, comparisons) + _left_out(ranking, results),
    }


def _left_out(ranking: Ranking, results: Sequence[Result]) -> str:
    """The switches that were tried in this cell and are not in the ranking: a lead over them is not claimed."""
    ranked = {r.point.switch for r in ranking.results}
    tried = [r.point.switch for r in same_cell(results)[ranking.point]]
    missing = [label for label in tried if label not in ranked]
    return f"; not compared: {', '.join(missing)}" if missing else ""


def _summary_note(ranking: Ranking, comparisons: Sequence[Comparison]) -> str:
    level = level_with_first(ranking, comparisons)
    cost = ""
    if ranking.by == "cycles":
        number = cycles(ranking.first.switch_cycles_per_packet)
        cost = f"{number} cycles a packet" if level else f"lowest cycles a packet: {number}"
    return "; ".join(part for part in (cost, _lead_note(ranking, level), _limits(ranking.first)) if part)


def _lead_note(ranking: Ranking, level: Sequence[str]) -> str:
    if len(ranking.results) == 1:
        return "alone"
    if level:
        others = ", ".join(level[:2]) + (f" and {len(level) - 2} more" if len(level) > 2 else "")
        limited = {r.point.switch for r in ranking.results if r.verdict.kind is VerdictKind.TESTER_LIMITED}
        may_lead = ranking.by == "throughput" and set(level) <= limited
        return f"{others} may be faster" if may_lead else f"not distinguishable from {others}"
    second = ranking.results[1].point.switch
    if ranking.lead is None:
        return f"before {second}"
    if ranking.by == "cycles":
        return f"{second} {ranking.lead:+.0%}".replace("%", " %")
    least = "at least " if ranking.first.verdict.kind is VerdictKind.TESTER_LIMITED else ""
    return f"{least}{ranking.lead:+.0%} over {second}".replace("%", " %")


def _limits(result: Result) -> str:
    """Busy share, cycles a packet and estimate of a switch that the tester limits."""
    if result.verdict.kind is not VerdictKind.TESTER_LIMITED or result.switch_busy_share is None:
        return ""
    return f"{percent(result.switch_busy_share)} busy, {estimate(result.capacity_estimate_pps)}".removesuffix(", ")
