# SPDX-License-Identifier: BSD-3-Clause
"""Recommendations: one per use case, never more than the figures allow; and the summary of the best results.

A use case is a path: a scenario, and the length or the name of a chain. One test point decides: the smallest frames,
bidirectional if that was run. The recommendation also counts the other test points at which the same switch leads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from planebench.model.chain_name import vnf_name
from planebench.model.records import Point, ScenarioName, VerdictKind
from planebench.model.results import Comparison, LatencySummary, Result
from planebench.model.run import Run
from planebench.model.scenario import scenario_named
from planebench.model.words import (
    ARROWS,
    NOTHING,
    cycles,
    directions_words,
    estimate,
    frames,
    listed,
    load_words,
    mark,
    percent,
    printable,
    throughput,
    us,
)
from planebench.report.comparison import ratio_words, versus
from planebench.report.conditions import cores_words, switch_cores
from planebench.stats.counting import latency_compares
from planebench.stats.derived import Derived
from planebench.stats.effect import MIN_TRIALS
from planebench.stats.ranking import Ranking, level_with_first, rank, same_cell, too_few_tell, untested

Strength = Literal["clear", "open", "alone", "none"]
"""One switch is significantly better than all others; some do not differ; there is only one; none was accepted."""

MAX_LEVEL = 3
"""Switches that are named of those that do not differ significantly from the first."""

PREFERRED = ("bidirectional", "unidirectional", "reversed")
"""The direction that a use case is judged by, if it was run."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A recommendation for ``use``. ``pick`` and ``why`` read as one sentence, the sentences of ``more`` follow."""

    scenario: ScenarioName
    use: str
    strength: Strength
    pick: str
    why: str
    more: tuple[str, ...] = ()


def recommendations(derived: Derived) -> tuple[Recommendation, ...]:
    """Return one recommendation per path, in the order of the results, also if every trial was rejected."""
    rankings = {r.point: r for r in derived.rankings}
    cells = same_cell(derived.results)
    return tuple(_recommendation(derived, _main(members), members, cells, rankings) for members in _paths(cells))


def main_cells(cells: Iterable[Point]) -> list[Point]:
    """Return the test point that each path is judged by."""
    return [_main(members) for members in _paths(cells)]


def use_words(cell: Point) -> str:
    """Return the use case in words: ``between NICs (p2p), 64 B, bidirectional``."""
    return f"{_path_words(cell)}, {frames(cell)}, {directions_words(cell.direction)}"


def _path_words(cell: Point) -> str:
    if cell.side_by_side:
        return _beside_words(cell)
    if cell.chained:
        return f"the chain {printable(cell.chain_label)}" if cell.named else _chain_words(cell.chain_length)
    return f"{scenario_named(cell.scenario).use} ({cell.scenario})"


def _beside_words(cell: Point) -> str:
    """Return ``one of 63 independent VNFs, each l3fwd``."""
    kind = f", each {printable(vnf_name(cell.chain, 0))}"
    return f"one VNF{kind}" if cell.chain_length == 1 else f"one of {cell.chain_length} independent VNFs{kind}"


def _chain_words(length: int) -> str:
    return "a chain of 1 VNF" if length == 1 else f"chains of {length} VNFs"


def _paths(cells: Iterable[Point]) -> list[list[Point]]:
    """Return the test points by path, whatever their direction and frames."""
    paths: dict[Point, list[Point]] = {}
    for cell in cells:
        paths.setdefault(replace(cell, direction="unidirectional", frame_size_bytes=0, traffic=""), []).append(cell)
    return list(paths.values())


def _main(cells: Sequence[Point]) -> Point:
    return min(cells, key=lambda c: (c.frame_size_bytes, c.traffic, PREFERRED.index(c.direction)))


def _recommendation(
    derived: Derived,
    cell: Point,
    members: Sequence[Point],
    cells: Mapping[Point, Sequence[Result]],
    rankings: Mapping[Point, Ranking],
) -> Recommendation:
    ranking, use = rankings.get(cell), use_words(cell)
    missing = _missing(ranking, cells[cell])
    if ranking is None:
        return Recommendation(cell.scenario, use, "none", "No recommendation:", "every trial was rejected.", missing)
    strength, pick, why = _verdict(ranking, derived.comparisons)
    more = (
        *_cost(ranking, strength, derived.run),
        *latency_advice(cells[cell], derived.comparisons, pick if strength == "clear" else ""),
        *_elsewhere([rankings[c] for c in members if c != cell and c in rankings], derived.comparisons),
        *missing,
    )
    return Recommendation(cell.scenario, use, strength, pick, why, more)


def _verdict(ranking: Ranking, comparisons: Sequence[Comparison]) -> tuple[Strength, str, str]:
    first = ranking.first.point.switch
    if len(ranking.results) == 1:
        return "alone", printable(first), f"is the only switch with an accepted result ({_figure(ranking.first)})."
    level = level_with_first(ranking, comparisons)
    if level:
        why = "Tester-limited:" if _limited(ranking, level) else "No significant difference:"
        if too_few_tell(ranking, comparisons):
            why = "Insufficient data:"
        return "open", why, _level_words(ranking, level, comparisons)
    return "clear", printable(first), _lead_words(ranking, comparisons)


def _limited(ranking: Ranking, level: Sequence[str]) -> list[str]:
    """Return the labels that the tester limits, in a ranking by throughput: they may be the fastest."""
    kinds = {r.point.switch: r.verdict.kind for r in ranking.results}
    limited = [label for label in level if kinds[label] is VerdictKind.TESTER_LIMITED]
    return limited if ranking.by == "throughput" else []


def _level_words(ranking: Ranking, level: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    first, name = ranking.first, printable(ranking.first.point.switch)
    by_label = {r.point.switch: r for r in ranking.results}
    shown = (first.point.switch, *level[:MAX_LEVEL])
    figures = ", ".join(f"{printable(s)} {_by(by_label[s], ranking)}" for s in shown)
    open_, few = _limited(ranking, level), untested(ranking, comparisons)
    tested = [label for label in level if label not in (*few, *open_, *ranking.unordered)]
    parts = [
        f"{_names(open_)} reached the tester's maximum rate and cannot be ranked against {name}" if open_ else "",
        f"no significant difference between {name} and {_names(tested)}" if tested else "",
        f"highest measured is {name}; not tested against {_names(few)} (n < {MIN_TRIALS})" if few and not open_ else "",
        f"not ranked, no cycle counter: {_names(ranking.unordered)}" if ranking.unordered else "",
    ]
    cannot = "; ".join(filter(None, parts))
    found = versus(comparisons, ranking.point, ranking.metric, first.point.switch, level[0])
    ratio = f"; {name} / {printable(level[0])}: {ratio_words(found)}" if found else ""
    why = f"; {found.note}" if found and found.note else ""
    behind = len(ranking.results) - 1 - len(level)
    ahead = f" It ranks above the {behind} other switch{'es' * (behind > 1)}." if behind else ""
    return f"{cannot}: {figures}{ratio}{why}.{ahead}"


def _names(labels: Sequence[str], most: int = MAX_LEVEL) -> str:
    """Return the first ``most`` labels, and how many more there are."""
    shown, more = [printable(label) for label in labels[:most]], len(labels) - most
    return listed([*shown, f"{more} more"] if more > 0 else shown)


def _lead_words(ranking: Ranking, comparisons: Sequence[Comparison]) -> str:
    first, second = ranking.results[0], ranking.results[1]
    name, other = first.point.switch, printable(second.point.switch)
    if ranking.by == "cycles":
        found = versus(comparisons, ranking.point, "cycles_per_packet", second.point.switch, name)
        unranked = f" Not ranked, no cycle counter: {_names(ranking.unordered)}." if ranking.unordered else ""
        more = f"{other} needs {ratio_words(found)} as many" if found else f"fewer than {other}"
        return (
            f"needs the fewest CPU cycles per packet ({cycles(first.switch_cycles_per_packet)}); {more}. "
            "Throughput is tester-limited here, so the ranking uses cycles per packet as the switch reports them."
            f"{unranked}"
        )
    found = versus(comparisons, ranking.point, "throughput", name, second.point.switch)
    if found is None:
        return f"forwards {_figure(first)}, {other} {_figure(second)}."
    least = "at least " if first.verdict.kind is VerdictKind.TESTER_LIMITED else ""
    return f"forwards {least}{ratio_words(found)} the throughput of {other} ({_figure(first)} and {_figure(second)})."


def _cost(ranking: Ranking, strength: Strength, run: Run) -> Iterator[str]:
    """Yield the figures of the recommended switch; nothing without a recommendation."""
    if strength == "open":
        return
    result = ranking.first
    told = [f"{_figure(result)} on {cores_words(switch_cores(run, result.point.switch))}"]
    if result.switch_cycles_per_packet:
        told.append(f"{cycles(result.switch_cycles_per_packet)} cycles per packet")
    if result.verdict.kind is VerdictKind.TESTER_LIMITED:
        told.append("tester-limited")
        if result.switch_busy_share is not None:
            told.append(
                f"core utilization {percent(result.switch_busy_share)}, extrapolated capacity "
                f"{estimate(result.capacity_estimate_pps)} Mpps"
            )
    yield f"{', '.join(told)}."
    unsteady = [printable(r.point.switch) for r in ranking.results[:2] if r.verdict.kind is VerdictKind.UNSTABLE]
    if unsteady:
        yield f"Unstable: the trials of {listed(unsteady)} differ by more than 10 %."


def _elsewhere(rankings: Sequence[Ranking], comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield the result for the other test points of the path: ``planed leads in 4, no significant difference in 1``."""
    if not rankings:
        return
    leads: Counter[str] = Counter()
    for ranking in rankings:
        if len(ranking.results) == 1:
            leads["alone"] += 1
        elif too_few_tell(ranking, comparisons):
            leads["few"] += 1
        elif level_with_first(ranking, comparisons):
            leads["level"] += 1
        else:
            leads[f"{printable(ranking.first.point.switch)} leads"] += 1
    words = {"alone": "only one switch", "level": "no significant difference", "few": "insufficient data"}
    parts = [f"{words.get(what, what)} in {n}" for what, n in leads.most_common()]
    yield f"Other {len(rankings)} frame sizes and directions: {', '.join(parts)}."


def _missing(ranking: Ranking | None, members: Sequence[Result]) -> tuple[str, ...]:
    """Return the switches that were tried at the test point and are not in its ranking, with the reason."""
    ranked = {r.point.switch for r in ranking.results} if ranking else set()
    left = [f"{printable(r.point.switch)} ({_why_missing(r)})" for r in members if r.point.switch not in ranked]
    return (f"Excluded: {', '.join(left)}.",) if left else ()


def _why_missing(result: Result) -> str:
    if result.throughput_pps is None:
        return f"all trials rejected: {result.verdict.kind.value}"
    return f"measured with {result.band or 'unknown'} cores (core-to-core latency); not comparable"


def _by(result: Result, ranking: Ranking) -> str:
    """Return the figure that the ranking is by."""
    if ranking.by == "throughput":
        return _figure(result)
    known = result.switch_cycles_per_packet
    return f"{cycles(known)} cycles per packet" if known else _figure(result)


def _figure(result: Result) -> str:
    """Return the throughput: ``14.32 Mpps``, ``≥14.32 Mpps``."""
    return (
        f"{throughput(result)} Mpps" if result.throughput_pps is not None else f"{NOTHING}{mark(result.verdict.kind)}"
    )


Found = tuple[str, LatencySummary]
"""A switch and its latency at a load."""


def latency_advice(members: Sequence[Result], comparisons: Sequence[Comparison], pick: str) -> Iterator[str]:
    """Yield sentences on the lowest p50 at each load at which two switches or more have an accepted one.

    ``pick`` is the switch with the highest throughput, or empty.
    """
    cell = members[0].point
    told: dict[str, list[str]] = {}
    open_: list[str] = []
    for load in dict.fromkeys(s.load for r in members for s in r.latency):
        found = _ordered(members, load)
        if len(found) > 1:
            words = _lead(cell, load, found, comparisons)
            if words:
                told.setdefault(found[0][0], []).append(words)
            else:
                open_.append(_open(cell, load, found, comparisons))
    for switch, found_at in told.items():
        also = "also has" if switch == pick else "has"
        yield f"{printable(switch)} {also} the lowest latency at {_some(found_at)}."
    if open_:
        yield f"Lowest latency: no significant difference shown at {_some(open_)}."


def _some(loads: Sequence[str]) -> str:
    """Return the first and the last of some loads in words, and the number of those in between."""
    between = len(loads) - 2
    middle = [f"at {between} load{'s' * (between > 1)} in between"] if between > 0 else []
    return listed([loads[0], *(f"at {load}" for load in loads[1:][-1:]), *middle])


def _ordered(members: Sequence[Result], load: str) -> list[Found]:
    """Return the accepted latencies at a load, lowest p50 first."""
    found = [(r.point.switch, s) for r in members for s in r.latency if s.load == load and latency_compares(s)]
    return sorted(found, key=lambda pair: pair[1].p50)


def _lead(cell: Point, load: str, found: Sequence[Found], comparisons: Sequence[Comparison]) -> str:
    """Return load, p50 and ratio to the next if the first differs significantly from every other; else empty."""
    first, second = found[0], found[1]
    pairs = [_pair(cell, load, first[0], other, comparisons) for other, _ in found[1:]]
    if not pairs or any(pair is None or not pair.distinguishable or pair.ratio >= 1 for pair in pairs):
        return ""
    assert pairs[0] is not None
    ratio = f"{ratio_words(pairs[0])} that of {printable(second[0])}"
    note = f"; {pairs[0].note}" if pairs[0].note else ""
    return f"{load_words(load)} (p50 {us(first[1].p50)} µs, {ratio}{note})"


def _open(cell: Point, load: str, found: Sequence[Found], comparisons: Sequence[Comparison]) -> str:
    """Return load, figures and note: ``10 % of R+ (p50: a 3.10, b 3.20 µs; only 1 accepted trial each)``."""
    figures = ", ".join(f"{printable(switch)} {us(s.p50)}" for switch, s in found[:2])
    pair = _pair(cell, load, found[0][0], found[1][0], comparisons)
    why = f"; {pair.note}" if pair and pair.note else ""
    return f"{load_words(load)} (p50: {figures} µs{why})"


def _pair(cell: Point, load: str, one: str, other: str, comparisons: Sequence[Comparison]) -> Comparison | None:
    return versus(comparisons, cell, "latency_p50", one, other, load)


Record = dict[str, Any]


def summary(
    results: Sequence[Result], colors: Mapping[str, str], comparisons: Sequence[Comparison] = ()
) -> list[Record]:
    """Return one card per scenario: the best switch per direction and frame size, of shortest and longest chain."""
    cards: dict[str, Record] = {}
    for ranking in rank(results):
        scenario = ranking.point.scenario
        card = cards.setdefault(
            scenario, {"scenario": scenario, "path": scenario_named(scenario).drawn_path, "lines": []}
        )
        if _shown(ranking, results):
            card["lines"].append(_summary_line(ranking, results, colors, comparisons))
    return list(cards.values())


def _shown(ranking: Ranking, results: Sequence[Result]) -> bool:
    chains = {r.point.chain_length for r in results if r.point.scenario == ranking.point.scenario}
    return ranking.point.chain_length in (min(chains), max(chains))


def _summary_line(
    ranking: Ranking, results: Sequence[Result], colors: Mapping[str, str], comparisons: Sequence[Comparison]
) -> Record:
    point, first = ranking.point, ranking.first
    chain = f"{point.chain_label} " if point.named else f"N = {point.chain_length} " if point.chain_length else ""
    return {
        "cell": f"{chain}{ARROWS[point.direction]} {frames(point)}",
        "switch": first.point.switch,
        "color": colors[first.point.switch],
        "figure": throughput(first),
        "note": _summary_note(ranking, comparisons) + _left_out(ranking, results),
    }


def _left_out(ranking: Ranking, results: Sequence[Result]) -> str:
    """Return the switches that were tried here and are not in the ranking, because no lead over them is claimed."""
    ranked = {r.point.switch for r in ranking.results}
    tried = [r.point.switch for r in same_cell(results)[ranking.point]]
    missing = [label for label in tried if label not in ranked]
    return f"; excluded: {', '.join(missing)}" if missing else ""


def _summary_note(ranking: Ranking, comparisons: Sequence[Comparison]) -> str:
    level = level_with_first(ranking, comparisons)
    cost = ""
    if ranking.by == "cycles":
        number = cycles(ranking.first.switch_cycles_per_packet)
        cost = f"{number} cycles per packet" if level else f"lowest cycles per packet: {number}"
        if ranking.unordered:
            cost += f"; no cycle counter: {_names(ranking.unordered, 2)}"
    lead = _open_note(ranking, level, comparisons) if level else _lead_note(ranking)
    return "; ".join(part for part in (cost, lead, _limits(ranking.first)) if part)


def _open_note(ranking: Ranking, level: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """Return why the first does not lead: what cannot be ranked, what does not differ, what was not tested."""
    limited, few = _limited(ranking, level), untested(ranking, comparisons)
    tested = [label for label in level if label not in (*limited, *few, *ranking.unordered)]
    untried = [label for label in few if label not in limited]
    parts = (
        f"{_names(limited, 2)} tester-limited, cannot be ranked" if limited else "",
        f"no significant difference from {_names(tested, 2)}" if tested else "",
        f"not tested against {_names(untried, 2)} (n < {MIN_TRIALS})" if untried else "",
    )
    return "; ".join(filter(None, parts))


def _lead_note(ranking: Ranking) -> str:
    if len(ranking.results) == 1:
        return "only switch"
    second = ranking.results[1].point.switch
    if ranking.lead is None:
        return f"above {second}"
    if ranking.by == "cycles":
        return f"{second} {ranking.lead:+.0%}".replace("%", " %")
    least = "at least " if ranking.first.verdict.kind is VerdictKind.TESTER_LIMITED else ""
    return f"{least}{ranking.lead:+.0%} over {second}".replace("%", " %")


def _limits(result: Result) -> str:
    """Return core utilization and estimate of a tester-limited switch."""
    if result.verdict.kind is not VerdictKind.TESTER_LIMITED or result.switch_busy_share is None:
        return ""
    return f"utilization {percent(result.switch_busy_share)}, {estimate(result.capacity_estimate_pps)}".removesuffix(
        ", "
    )


def headline(results: Sequence[Result], comparisons: Sequence[Comparison] = ()) -> str:
    """Return how often each switch leads: by throughput, and by cycles per packet where the tester limits."""
    rankings = [r for r in rank(results) if len(r.results) > 1]
    by_rate = _wins("Throughput ranking", [r for r in rankings if r.by == "throughput"], comparisons)
    limited = "CPU-cost ranking (cycles per packet, tester-limited test points)"
    by_cycles = _wins(limited, [r for r in rankings if r.by == "cycles"], comparisons)
    return " ".join(sentence for sentence in (by_rate, by_cycles) if sentence)


def _wins(what: str, rankings: Sequence[Ranking], comparisons: Sequence[Comparison]) -> str:
    if not rankings:
        return ""
    clear = [r for r in rankings if not level_with_first(r, comparisons)]
    parts = [f"{name} in {n}" for name, n in Counter(r.first.point.switch for r in clear).most_common()]
    few = sum(too_few_tell(r, comparisons) for r in rankings)
    if close := len(rankings) - len(clear) - few:
        parts.append(f"no significant difference in {close}")
    if few:
        parts.append(f"insufficient data in {few}")
    plural = "" if len(rankings) == 1 else "s"
    return f"{what}, {len(rankings)} test point{plural}: {', '.join(parts)}."
