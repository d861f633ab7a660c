# SPDX-License-Identifier: BSD-3-Clause
"""The answers of a run in words: the standings of ``planebench.analysis.standings`` as page and terminal print them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from planebench.analysis.answers import MARGIN
from planebench.analysis.compare import Derived
from planebench.analysis.standings import (
    AnswerState,
    Standing,
    Standings,
    choice,
    is_limited,
    latency_at,
    middle_load,
)
from planebench.model.chain_name import vnf_name
from planebench.model.records import Point, VerdictKind
from planebench.model.results import AnswerKind, Comparison, Metric, Result
from planebench.model.scenario import ScenarioName, scenario_named
from planebench.model.wire import wire_name
from planebench.model.words import (
    ARROWS,
    NOTHING,
    directions_words,
    frames,
    interval,
    listed,
    load_words,
    mpps,
    percentiles,
    printable,
    significant,
    throughput,
    us,
)
from planebench.report.comparison import open_words
from planebench.report.setup import conditions_remark, switch_cores

STATES: Mapping[AnswerState, str] = {
    "different": "different",
    "same": "the same",
    "open": "open",
    "untested": "not tested",
    "tester-limited": "tester-limited",
    "alone": "only one switch",
    "none": "no result",
}
"""The states in words, as the page and the terminal print them."""

_SIGNS: Mapping[AnswerKind, str] = {"different": ">", "same": "=", "open": "?", "untested": "?"}

MAX_NAMES = 3
"""Switches that are named; of more, the number is given."""


def order_words(standing: Standing) -> str:
    """Return all switches, best first: ``a > b = c ? d``: ahead, the same within the margin, not decided."""
    labels = [printable(r.point.switch) for r in standing.results]
    signs = ["?" if it is None else _SIGNS[it.answer] for it in standing.next_pairs]
    return " ".join(part for pair in zip_longest(labels, signs, fillvalue="") for part in pair if part)


def missing_words(standing: Standing) -> tuple[str, ...]:
    """Return the switches without a figure, each with the reason."""
    return tuple(f"{printable(r.point.switch)} ({_why_missing(r, standing.metric)})" for r in standing.missing)


def _why_missing(result: Result, metric: Metric) -> str:
    if metric == "latency_p99":
        return "no latency of a carried load"
    if result.throughput_pps is None:
        if result.verdict.kind is VerdictKind.FUNCTIONAL:
            return "functional trials only: they have packet counts, no rates"
        return f"no trial counts: {result.verdict.kind.value}"
    if metric == "cycles_per_packet" and result.switch_cycles_per_packet is None:
        return "no cycle counter"
    return "not saturated: its cycles are what it had time for"


# What the first screen says


@dataclass(frozen=True, slots=True)
class Line:
    """The answer at one frame size of a path, as it is printed. ``best`` are labels, ``state`` is a key of STATES."""

    frames: str
    best: tuple[str, ...]
    rate: str
    rate_interval: str
    ratio: str
    ratio_interval: str
    order: str
    latency: str
    latency_note: str
    state: AnswerState
    evidence: str
    clear: bool
    """True if the best is ahead of every other switch, so that the evidence adds nothing to the figures."""
    points: tuple[Point, ...] = ()
    """The switches that the answer compares, at their test point, best first."""


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """The answers of one path: a scenario, a chain and a direction, with one line per frame size."""

    scenario: ScenarioName
    path: str
    short: str
    lines: tuple[Line, ...]


def path_answers(standings: Standings) -> tuple[PathAnswer, ...]:
    """Return the answers of a run by path, in the order of the results."""
    paths: dict[Point, list[Standing]] = {}
    for it in standings.throughput:
        paths.setdefault(replace(it.point, frame_size_bytes=0, traffic=""), []).append(it)
    return tuple(
        PathAnswer(
            path.scenario,
            f"{path_words(path)}, {directions_words(path.direction)}",
            f"{printable(path.scenario_label)} {ARROWS[path.direction]}",
            tuple(map(_line, members)),
        )
        for path, members in paths.items()
    )


def _line(standing: Standing) -> Line:
    first = standing.results[0] if standing.results else None
    load = middle_load([first]) if first else ""
    latency = latency_at(first, load) if first else None
    ratio, ratio_interval = _next(standing)
    return Line(
        frames(standing.point),
        standing.names,
        throughput(first) if first else NOTHING,
        interval(first.throughput_low_pps, first.throughput_high_pps, mpps) if first and not is_limited(first) else "",
        ratio,
        ratio_interval,
        order_words(standing),
        percentiles(latency) if latency else NOTHING,
        f"at {load_words(load)}" if latency else "not carried" if load else "",
        standing.state,
        evidence(standing),
        standing.state == "different" and not standing.missing,
        tuple(r.point for r in standing.results),
    )


def _next(standing: Standing) -> tuple[str, str]:
    """Return the advantage of the first over the next, and its interval."""
    if len(standing.results) < 2:
        return NOTHING, ""
    second, pair = standing.results[1], standing.pairs[0]
    name = f"{printable(second.point.switch)} ({throughput(second)})"
    if pair is None:
        return NOTHING, ""
    # A lower bound has no upper end, and its ratio already says "at least" the lower one.
    return f"{times(pair)} {name}", "" if pair.high is None else interval(pair.low, pair.high, "{:.2f}".format)


def times(pair: Comparison) -> str:
    """Return the advantage of the first as a factor, or the least that it is where its upper end is open."""
    if pair.high is None and pair.low is not None:
        return f"at least {pair.low:.2f} ×"
    return f"{'est. ' * (pair.metric == 'capacity')}{pair.ratio:.2f} ×"


def evidence(standing: Standing) -> str:
    """Return in a sentence or two how sure the first place of a standing is, and who is missing."""
    missing = f"Not in this ranking: {', '.join(missing_words(standing))}." if standing.missing else ""
    return " ".join(filter(None, (_found(standing), missing)))


_BETTER: Mapping[Metric, str] = {
    "throughput": "faster",
    "cycles_per_packet": "cheaper in CPU cycles",
    "latency_p99": "lower in p99 latency",
}


def _found(standing: Standing) -> str:
    if standing.state in ("alone", "none"):
        return ""
    first = printable(standing.results[0].point.switch)
    level, hidden = standing.level, [r.point.switch for r in standing.hidden]
    behind = [r.point.switch for r in standing.results[1:] if r not in [other for other, _ in level]]
    tested = [(r.point.switch, c) for r, c in level if r.point.switch not in hidden]
    same = [label for label, c in tested if c is not None and c.answer == "same"]
    parts = [
        f"{first} is {_BETTER[standing.metric]} than {some_names(behind)}" if behind else "",
        f"{some_names(hidden)} reached {_limit_words(standing)} and may be faster than {first}" if hidden else "",
        f"{first} and {some_names(same)} are the same within {MARGIN * 100:.0f} %" if same else "",
        *(
            f"{first} or {printable(label)}: {open_words(c) if c else 'not compared'}"
            for label, c in tested[:MAX_NAMES]
            if label not in same
        ),
    ]
    return f"{'; '.join(filter(None, parts))}."


def _limit_words(standing: Standing) -> str:
    return "the line rate" if standing.at_line_rate else "the limit of the tester"


def some_names(labels: Sequence[str], most: int = MAX_NAMES) -> str:
    """Return the first ``most`` labels, and how many more there are."""
    shown, more = [printable(label) for label in labels[:most]], len(labels) - most
    return listed([*shown, f"{more} more"] if more > 0 else shown)


@dataclass(frozen=True, slots=True)
class Need:
    """A need, and the switch that meets it. ``pick`` is a switch, ``depends`` or ``cannot say``."""

    title: str
    pick: str
    why: str


def needs(standings: Standings) -> tuple[Need, ...]:
    """Return what to take for the highest throughput, the lowest CPU cost and the lowest p99 latency.

    Of a run with one switch, how to compare it.
    """
    label, *others = standings.derived.run.switch_labels or ("the switch",)
    if not others:
        why = f"{printable(label)} is alone in this run; --switch {printable(label)},NAME measures two side by side."
        return (Need("a comparison", "add a switch", why),)
    return (
        _need("the highest throughput", standings.throughput),
        _need("the lowest CPU cost", tuple(standings.cost.values())),
        _need("the lowest p99 latency", standings.latency),
    )


def _need(title: str, found: Sequence[Standing]) -> Need:
    taken = choice(found)
    undecided = listed([f"{STATES[state]} at {n}" for state, n in _counted(taken.rest)])
    if not taken.won:
        pick = "any of the best" if taken.any_of_best else "cannot say"
        return Need(title, pick, f"{undecided} of {_points(len(found))}." if taken.rest else "nothing was measured.")
    parts = [
        f"{printable(label)} at {len(won)} of {_points(len(found))} ({_range(won)})" for label, won in taken.won.items()
    ]
    pick = "depends"
    if taken.only is not None:
        pick = printable(taken.only) + (", where it is known" if len(taken.rest) >= len(found) / 2 else "")
        parts = [parts[0].removeprefix(f"{printable(taken.only)} ")]
    missing = sorted({name for it in found for name in missing_words(it) if it.metric == "cycles_per_packet"})
    unknown = f" Not compared: {', '.join(missing)}." if missing else ""
    return Need(title, pick, f"{listed(parts)}{f'; {undecided}' if taken.rest else ''}.{unknown}")


def _counted(found: Iterable[Standing]) -> Iterator[tuple[AnswerState, int]]:
    states = [it.state for it in found]
    return ((state, states.count(state)) for state in STATES if state in states)


def _points(number: int) -> str:
    return f"{number} test point{'s' * (number != 1)}"


def _range(won: Sequence[Standing]) -> str:
    """Return by how much the first is ahead of the next, from the smallest to the largest factor."""
    ratios = sorted(pair.ratio for it in won if (pair := it.pairs[0]) is not None)
    ends = [significant(ratio, 2) if ratio >= 1.95 else f"{ratio:.2f}" for ratio in (ratios[0], ratios[-1])]
    words = (
        f"{ends[0]} × better than the next" if len(set(ends)) == 1 else f"{ends[0]} to {ends[1]} × better than the next"
    )
    load = {it.load for it in won}
    return words + (f", at {load_words(next(iter(load)))}" if len(load) == 1 and any(load) else "")


def winner_sentence(standings: Standings) -> str:
    """Return who has the highest throughput and who is next, where and by how much; empty with one switch.

    The factors are those that comparisons found, of a lower bound the least one.
    """
    found = standings.compared
    if not found:
        return ""
    taken = choice(found)
    undecided = listed([f"{STATES[state]} at {n}" for state, n in _counted(taken.rest)])
    if not taken.won:
        return f"No switch is shown to be the fastest: {undecided} of {_points(len(found))}."
    of = f"of {_points(len(found))}"
    fastest = [
        f"{printable(label)} at {len(won)} {of} ({_factors([it.pairs[0] for it in won])} × the next)"
        for label, won in taken.won.items()
    ]
    behind: dict[str, list[Comparison | None]] = {}
    for it in (it for won in taken.won.values() for it in won if it.second_lead is not None):
        behind.setdefault(printable(it.results[1].point.switch), []).append(it.second_lead)
    second = [f"{label} at {len(pairs)} ({_factors(pairs)} × the one after it)" for label, pairs in behind.items()]
    parts = (f"Fastest: {listed(fastest)}", undecided, f"second: {listed(second)}" if second else "")
    return f"{'; '.join(filter(None, parts))}."


def _factors(pairs: Sequence[Comparison | None]) -> str:
    """Return the factors of some comparisons, from the smallest to the largest; of a lower bound its lower end."""
    known = [pair for pair in pairs if pair is not None]
    bounds = [pair.low for pair in known if pair.high is None and pair.low is not None]
    factors = sorted([*bounds, *(pair.ratio for pair in known if pair.high is not None or pair.low is None)])
    ends = dict.fromkeys(us(factor) for factor in (factors[0], factors[-1]))
    return f"{'at least ' if bounds else ''}{' to '.join(ends)}"


def title_facts(derived: Derived) -> tuple[str, ...]:
    """Return what was measured, when and on what, for the title line."""
    header = derived.run.header
    host, labels = header.host, derived.run.switch_labels
    cores = dict.fromkeys(switch_cores(derived.run, label) for label in labels)
    facts = (
        f"{len(labels)} switch{'es' * (len(labels) != 1)}",
        header.started_at.partition("T")[0],
        str(host.get("cpu_model") or host.get("hostname") or "unknown host"),
        f"{host['cores_allowed']} CPUs" if host.get("cores_allowed") else "",
        f"switch on {header.switch_host.host.get('cpu_model') or 'another host'}" if header.switch_host else "",
        str(header.settings.get("wire") or ""),
        f"{listed([str(n) for n in cores])} core{'s' * (list(cores) != [1])} per switch" if cores else "",
        f"{sum(t.role != 'warmup' for t in derived.run.trials)} trials",
        header.run_id,
    )
    return tuple(filter(None, facts))


def limits_words(derived: Derived) -> str:
    """Return in one line what the answers hold for."""
    header = derived.run.header
    name, wire = wire_name(str(header.settings.get("wire") or "")), header.wire
    replaced = wire.title.partition(" ")[0] if wire is not None and wire.replaces_nics else name * (wire is None)
    ports = f" {replaced} ports replace NICs." if replaced else ""
    remark = conditions_remark(derived)
    return f"The answers hold for this host and for these versions and settings only.{ports}" + (
        f" {remark}." if remark else ""
    )


def path_words(cell: Point) -> str:
    """Return the path in words: ``between NICs (p2p)``, ``chains of 2 VNFs``, ``one of 63 independent VNFs``."""
    if cell.side_by_side:
        kind = f", each {printable(vnf_name(cell.chain, 0))}"
        return f"one VNF{kind}" if cell.chain_length == 1 else f"one of {cell.chain_length} independent VNFs{kind}"
    if cell.named and cell.chained:
        return f"the chain {printable(cell.chain_label)}"
    if cell.chained:
        return "a chain of 1 VNF" if cell.chain_length == 1 else f"chains of {cell.chain_length} VNFs"
    return f"{scenario_named(cell.scenario).use} ({cell.scenario_label})"
