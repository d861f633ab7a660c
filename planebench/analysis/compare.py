# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of b with a: two switches of one run, or one switch in some runs and in others. docs/design/results.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations, pairwise
from typing import Literal, get_args

from planebench.analysis.answers import ALPHA, EXACT, Answer, Bounds, OneOfMany, answers, look_alpha
from planebench.analysis.capacity import Capacity, capacity_of
from planebench.analysis.chains import Chains, derive_chains
from planebench.analysis.conditions import Condition, contradictions, fairness
from planebench.analysis.counting import LIMITS, Counted, cell_id, of_kinds, saturating
from planebench.analysis.disturbance import drift
from planebench.analysis.latency import latency_groups, latency_records, mean_intended_pps, percentile_blocks
from planebench.analysis.noise import Estimate, factor, figure_of, fit_noise
from planebench.analysis.outages import compare_outages
from planebench.analysis.results import derive_results, lower_bounds, widths, with_a_rate
from planebench.analysis.starts import (
    Blocks,
    at_same_distance,
    by_start,
    counted_blocks,
    cycles_blocks,
    is_full,
    noise_of_pairs,
    noise_of_sides,
    paired,
    ratios_by_distance,
    throughput_blocks,
)
from planebench.model.grouped import grouped
from planebench.model.header import Run
from planebench.model.reasons import Reason
from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.results import AnswerKind, Comparison, LatencySummary, Metric, Result, SearchResult
from planebench.model.text import names_by_content, renamed, seconds_since_epoch

# A run with everything derived from it. Page, terminal, exports, papers and library share this object.


class Derived:
    """A run and everything derived from it. Each part is derived once, when it is first requested.

    Deriving everything takes seconds for a run of a thousand trials.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Return one result per point, in the order of the tables."""
        return derive_results(self.run)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Return every comparison of two switches at each test point; ``a`` is the one that the header names first."""
        return switches_compared(self).comparisons

    @cached_property
    def invalid(self) -> tuple[Trial, ...]:
        """Return the trials that did not take place, in the order of the run, without those of warm-up."""
        return tuple(t for t in self.run.trials if t.role != "warmup" and t.verdict.kind is VerdictKind.INVALID)

    @cached_property
    def chains(self) -> Chains:
        """Return the chains compared with their functions measured alone."""
        return derive_chains(self.run, self.results)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the test conditions of each switch."""
        return fairness(self.run)

    @cached_property
    def contradictions(self) -> tuple[str, ...]:
        """Return a sentence for each condition in which the adapter and the measurement differ."""
        return contradictions(self.run, self.conditions)

    @cached_property
    def trials(self) -> dict[Point, list[Trial]]:
        """Return the trials of each point, in the order in which they ran."""
        return self.run.by_point()

    @cached_property
    def drift(self) -> Reason | None:
        """Return how the rates of the run drifted with time; None if they did not."""
        accepted = {index for result in self.results for index in result.trials}
        return drift(trial for trial in self.run.trials if trial.index in accepted)

    def latency_trials(self, result: Result) -> dict[str, Counted]:
        """Return the trials that the latency of ``result`` rests on, by load."""
        return latency_groups(self.trials.get(result.point, ()))

    def histograms(self, result: Result, summary: LatencySummary) -> tuple[str, ...]:
        """Return the stored histograms (HDR V2, base64, ns) of ``summary``, a latency of ``result``."""
        return tuple(record.histogram for record in latency_records(self.latency_trials(result)[summary.load]))


# Comparisons that are looked at several times while a run goes on: what is still open, and what more starts cost.

GAP_MAX_S = 60.0
"""More time than this between two trials was between two sessions of a run."""


@dataclass(frozen=True, slots=True)
class Open:
    """An open comparison. ``point`` is without its switch, ``labels`` are the switches of the pair.

    ``more_starts``: how many more starts of each would probably decide it.
    """

    point: Point
    labels: tuple[str, str]
    more_starts: int


@dataclass(frozen=True, slots=True)
class Price:
    """The minutes of one start of a switch, and of one saturating trial in it."""

    start: float
    trial: float

    def minutes(self, wanted: Iterable[Open]) -> float:
        """Return the minutes that decide some comparisons together: those of a topology share their starts."""
        starts: dict[Hashable, int] = {}
        trials: dict[Hashable, int] = {}
        for it in wanted:
            for label in it.labels:
                for found, key in ((starts, (label, it.point.topology)), (trials, (label, it.point))):
                    found[key] = max(found.get(key, 0), it.more_starts)
        return self.start * sum(starts.values()) + self.trial * sum(trials.values())


def still_open(derived: Derived) -> tuple[Open, ...]:
    """Return the comparisons that more starts may decide, in the order of the results.

    They are those by throughput, and by the capacity estimated where the tester limits the throughput.
    """
    points = {cell_id(result.point): replace(result.point, switch="") for result in derived.results}
    return tuple(
        Open(points[c.point], (c.a, c.b), c.more_starts)
        for c in derived.comparisons
        if c.metric in ("throughput", "capacity") and c.more_starts is not None
    )


def price(run: Run) -> Price | None:
    """Return what one more start costs in a run; None where it does not say it.

    The time of a saturating trial is that from the end of the trial before it to its own end, whatever that trial was.
    Half of the trials take no longer than the median; the rest of the time is that of the starts.
    """
    gaps = []
    for before, after in pairwise(run.trials):
        if after.role == "r_plus":
            passed = seconds_since_epoch(after.started_at) - seconds_since_epoch(before.started_at)
            passed += (after.intended_duration_ns - before.intended_duration_ns) / 1e9
            gaps.append((min(max(passed, 0.0), GAP_MAX_S), after))
    if not any(seconds for seconds, _ in gaps):
        return None
    of_trials = statistics.median(seconds for seconds, _ in gaps) * len(gaps)
    of_starts = max(sum(seconds for seconds, _ in gaps) - of_trials, 0.0)
    starts = {(trial.point.switch, trial.point.topology, trial.start) for _, trial in gaps}
    return Price(of_starts / len(starts) / 60, of_trials / len(gaps) / 60)


METRICS: tuple[Metric, ...] = get_args(Metric)
OF_POINTS = tuple(metric for metric in METRICS if metric != "outage")
"""Metrics of the results of a point; an outage is of a restart."""
RATES: tuple[Metric, ...] = ("throughput", "ndr", "pdr")
"""Metrics of which more is better."""
FLAT_OUT: tuple[Metric, ...] = ("throughput", "cycles_per_packet")
SEARCHES: tuple[Metric, ...] = ("ndr", "pdr")
PERCENTILES: Mapping[Metric, float] = {"latency_p50": 0.50, "latency_p99": 0.99}

UNITS_MIN = 3
"""Pairs of runs, or boots of each side; with fewer, nothing is known of how runs vary: boot, memory, neighbors."""

LOADS_DIFFER = 0.01
"""Latency loads are shares of each one's own R+: beyond this difference in packets per second the note says so."""
RUNS_VARY = "how runs vary is not in the interval"
SAME_LOAD = 0.03
"""Loads that differ by less are one load: where only those are compared, e.g. of two builds of a switch. A slower build
has less load at a share of its own rate, which hides that its latency is worse."""

_STARTS_OF_A_RUN = 1_000_000
"""More than a run has: starts of several runs are numbered in one row."""


Unit = Literal["block", "start", "pair", "boot"]
"""What is one observation: the difference of two switches in a block, a start of a switch, the difference of two runs
that followed each other, or the runs of a boot."""
OF_RUNS: tuple[Unit, ...] = ("pair", "boot")


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A comparison that is not possible, with the reason. ``b`` is empty if only ``a`` has the point.

    ``has``: the RATES of ``metrics`` that ``a`` has a figure for. ``baseline``: False if only the second run has the
    point, so that nothing is measured against it.
    """

    a: str
    b: str
    point: str
    metrics: tuple[Metric, ...]
    reason: str
    load: str = ""
    has: tuple[Metric, ...] = ()
    baseline: bool = True


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The comparisons, and those that were not possible.

    ``not_in_intervals``: the variation that no interval contains, and what it would take to know it; empty if nothing
    is missing.
    """

    comparisons: tuple[Comparison, ...]
    skipped: tuple[NotCompared, ...]
    not_in_intervals: str = ""


@dataclass(frozen=True, slots=True)
class _ComparedSide:
    """One side of a comparison at one point. ``name`` is what the user reads.

    Of several runs, ``trials`` are those of all, and the pair or boot of a run takes the place of the start.
    ``capacity``: where the throughput is a lower bound, if the trials tell it.
    """

    name: str
    result: Result
    trials: tuple[Trial, ...]
    searches: tuple[SearchResult, ...]
    capacity: Capacity | None

    def with_more(self, other: _ComparedSide) -> _ComparedSide:
        """Return a side that has the trials and searches of a further run, too."""
        mine, theirs = self.capacity, other.capacity
        both = None
        if mine is not None and theirs is not None:
            fit = max(mine.fit, theirs.fit, key=lambda it: it.error)
            both = Capacity(mine.blocks + theirs.blocks, fit)
        a, b = self.result, other.result
        result = replace(a, disturbed=a.disturbed or b.disturbed, invalid=a.invalid + b.invalid)
        trials, searches = (*self.trials, *other.trials), (*self.searches, *other.searches)
        return replace(self, result=result, trials=trials, searches=searches, capacity=both)

    @property
    def cell(self) -> str:
        return cell_id(self.result.point)

    @property
    def rates(self) -> tuple[Metric, ...]:
        """Return the metrics of RATES with a figure."""
        searched = tuple(m for m in SEARCHES if with_a_rate(self.searches, m))
        return ("throughput", *searched) if saturating(self.trials).trials else searched


@dataclass(frozen=True, slots=True)
class _Draft:
    """A comparison of which the noise is not known yet: it is estimated over all of a run.

    ``blocks``: the figures of both sides. ``counted``: the same with what the host took, where a side is disturbed more
    often than the others. ``errors``: of both sides, beside their noise.
    ``loads_differ``: latencies of both, at loads that are not the same.
    """

    metric: Metric
    a: _ComparedSide
    b: _ComparedSide
    blocks: tuple[Blocks, Blocks]
    trials: tuple[int, int]
    notes: tuple[str, ...] = ()
    bounds: Bounds = EXACT
    load: str = ""
    counted: tuple[Blocks, Blocks] | None = None
    errors: tuple[Estimate, ...] = ()
    loads_differ: bool = False

    @property
    def ratio(self) -> float:
        """Return the ratio of the geometric means, where no error of it can be estimated."""
        a, b = (by_start(side) for side in self.blocks)
        return figure_of(sum(b) / len(b) - sum(a) / len(a))


ComparisonsFound = Iterator[_Draft | NotCompared]


def switches_compared(derived: Derived, *, same_load: bool = False) -> Comparisons:
    """Compare every pair of switches at each test point; ``a`` is the one that the header names first.

    What is left out has its reason, also a switch without a trial where the first has some. ``same_load``: latencies
    only where both had the same load, in packets per second.
    """
    cells = grouped((replace(point, switch=""), side) for point, side in _sides([derived]).items())
    found = [it for sides in cells.values() for pair in combinations(sides, 2) for it in _compare(*pair)]
    absent = []
    for first, *others in cells.values():
        there = {first.name, *(side.name for side in others)}
        for label in (it for it in derived.run.switch_labels if it not in there):
            why = f"{label} was not measured there"
            absent.append(NotCompared(first.name, label, first.cell, OF_POINTS, why, has=first.rates))
    compared, skipped = _concluded(found, "block", [derived], same_load)
    return Comparisons((*compared, *compare_outages([derived.run])), (*skipped, *absent))


def runs_compared(runs_a: Sequence[Derived], runs_b: Sequence[Derived]) -> Comparisons:
    """Compare the same switch at the same point in all runs of one side and all of the other.

    Runs of one boot are not independent. Taken in turns (a, b, a, b), the difference of two neighbors is the unit, else
    the boot. With fewer than UNITS_MIN of these the intervals contain only how starts vary within these runs, every
    answer is open, and ``not_in_intervals`` says so. Points that only one side has are left out, and latencies at loads
    that differ.
    :func:`differing_facts` says whether two runs may be compared.
    """
    unit, *numbers = _units(runs_a, runs_b)
    files: dict[str, str] = {}
    sides_a, sides_b = (
        _sides(runs, ",".join(it.run.header.run_id for it in runs), units if unit in OF_RUNS else None, files)
        for runs, units in zip((runs_a, runs_b), numbers, strict=True)
    )
    found = [it for p, side in sides_a.items() if p in sides_b for it in _compare(side, sides_b[p])]
    only = []
    for mine, others, is_first in ((sides_a, sides_b, True), (sides_b, sides_a, False)):
        chains: dict[Point, set[str]] = {}  # of the other run at each point, whatever its VNFs are and run in
        for point in others:
            chains.setdefault(replace(point, chain="", hosting="process"), set()).add(point.chain_label)
        for point, side in mine.items():
            if point not in others:
                why = "the other run does not have it"
                if unlike := chains.get(replace(point, chain="", hosting="process")):
                    names = ", ".join(sorted(unlike))
                    why = f"the other run has other VNFs there ({names}): not the same experiment"
                only.append(NotCompared(side.name, "", side.cell, OF_POINTS, why, has=side.rates, baseline=is_first))
    compared, skipped = _concluded(found, unit, [*runs_a, *runs_b], same_load=True)
    compared += compare_outages([it.run for it in runs_a], [it.run for it in runs_b])
    missing = ""
    if unit not in OF_RUNS:
        # More starts do not answer a comparison whose interval does not contain how runs vary.
        compared = tuple(
            replace(
                it,
                answer="open",
                note="; ".join(filter(None, (it.note, RUNS_VARY))),
                more_starts=None,
                more_minutes=None,
                detectable=None,
            )
            if it.answer != "untested"
            else it
            for it in compared
        )
        missing = (
            f"{len(runs_a)} and {len(runs_b)} runs: how runs vary is in no interval; "
            f"it takes {UNITS_MIN} of each side in turns (a, b, a, b), or {UNITS_MIN} boots of each side"
        )
    return Comparisons(compared, (*skipped, *only), missing)


def _units(a: Sequence[Derived], b: Sequence[Derived]) -> tuple[Unit, list[int], list[int]]:
    """Return what is one observation in these runs, and of which the runs of each side are."""
    sides = (a, b)
    turns = sorted((it.run.header.started_at, side, i) for side in (0, 1) for i, it in enumerate(sides[side]))
    of_pairs, pairs, before = ([0] * len(a), [0] * len(b)), 0, None
    for number, (_, side, i) in enumerate(turns):
        follows = before is not None and before != side
        of_pairs[side][i] = number - 1 if follows else number
        pairs, before = pairs + follows, None if follows else side
    if pairs >= UNITS_MIN and 2 * pairs >= max(len(a), len(b)):
        return "pair", of_pairs[0], of_pairs[1]
    of_a, of_b = ([it.run.header.host.get("boot_id") for it in side] for side in sides)
    if min(len({*boots} - {None}) for boots in (of_a, of_b)) >= UNITS_MIN:
        return "boot", [of_a.index(boot) for boot in of_a], [of_b.index(boot) for boot in of_b]
    return "start", [0] * len(a), [0] * len(b)


def _sides(
    runs: Sequence[Derived], run_ids: str = "", units: Sequence[int] | None = None, files: dict[str, str] | None = None
) -> dict[Point, _ComparedSide]:
    """Return the sides by point. ``units``: all trials of runs of the same unit are one observation, else of a start.

    ``files``: names by digest, of several runs, for files that are equal wherever they are.
    """
    suffix = f"@{run_ids}" if run_ids else ""
    found: dict[Point, _ComparedSide] = {}
    for number, derived in enumerate(runs):
        first = number * _STARTS_OF_A_RUN
        names = {} if files is None else names_by_content(derived.run.header.settings, files)
        for result in derived.results:
            own = trials = tuple(derived.trials[result.point])
            searches = result.searches
            if units is not None:
                trials = tuple(replace(t, start=units[number], repetition=units[number]) for t in trials)
                searches = tuple(replace(s, repetition=units[number], start=units[number]) for s in searches)
            elif run_ids:
                trials = tuple(replace(t, start=first + t.start) for t in trials)
                searches = tuple(
                    replace(s, repetition=first + s.repetition, start=first + s.of_start) for s in searches
                )
            point = replace(result.point, chain=renamed(result.point.chain, names))
            mine = _ComparedSide(
                point.switch + suffix,
                replace(result, point=point),
                trials,
                searches,
                capacity_of(derived.run, result.point, own, trials) if result.verdict.kind.is_bound else None,
            )
            before = found.get(point)
            found[point] = mine if before is None else before.with_more(mine)
    return found


def _concluded(
    found: Sequence[_Draft | NotCompared], unit: Unit, runs: Sequence[Derived], same_load: bool
) -> tuple[tuple[Comparison, ...], tuple[NotCompared, ...]]:
    """Return the comparisons, each with its answer. All of them are one family, whatever the metric, and whatever the
    caller leaves out: with ``same_load`` the latencies at loads that differ."""
    drafts = [it for it in found if isinstance(it, _Draft)]
    alpha = ALPHA if unit in OF_RUNS else look_alpha(max(len(it.run.header.plan.throughput.looks) for it in runs))
    told = _answers(drafts, [it.blocks for it in drafts], unit, alpha)
    counted = told
    if any(it.counted for it in drafts):
        counted = _answers(drafts, [it.counted or it.blocks for it in drafts], unit, alpha)
    cost = price(runs[0].run) if unit == "block" else None
    compared = tuple(
        _comparison(it, unit, *one, other if it.counted else None, cost)
        for it, one, other in zip(drafts, told, counted, strict=True)
        if not (same_load and it.loads_differ)
    )
    left_out = [it for it in found if isinstance(it, NotCompared)]
    why = "their loads differ; measure both at a fixed load, e.g. --rates 1M, which both carry"
    unlike = (it for it in drafts if same_load and it.loads_differ)
    left_out += dict.fromkeys(_left_out(it.a, it.b, tuple(PERCENTILES), why, it.load) for it in unlike)
    return compared, tuple(left_out)


def _answers(
    drafts: Sequence[_Draft], blocks: Sequence[tuple[Blocks, Blocks]], unit: Unit, alpha: float
) -> list[tuple[Estimate | None, Answer]]:
    """Return the estimate of log(b / a) of each comparison, None where its error is not known, and the answer."""
    estimates: list[Estimate | None] = [None] * len(drafts)
    # Full lines have no noise of others.
    of_metric = grouped(((it.metric, all(map(is_full, it.blocks))), i) for i, it in enumerate(drafts))
    for (metric, _), at in of_metric.items():
        # Searches are few, and starts differ alike.
        lent = of_metric.get(("throughput", False), []) if metric in SEARCHES else []
        taken = [*at, *lent]
        found = list(_estimates([drafts[i] for i in taken], [blocks[i] for i in taken], unit))
        for i, estimate in zip(at, found, strict=False):
            estimates[i] = estimate
    family = [
        OneOfMany(estimate, it.bounds, (it.a.name, it.b.name, it.metric), it.ratio)
        for it, estimate in zip(drafts, estimates, strict=True)
    ]
    return list(zip(estimates, answers(family, alpha), strict=True))


def _comparison(
    draft: _Draft,
    unit: Unit,
    estimate: Estimate | None,
    told: Answer,
    as_counted: tuple[Estimate | None, Answer] | None,
    cost: Price | None,
) -> Comparison:
    kind: AnswerKind
    notes, kind, low, high, more = [*draft.notes], told.answer, told.low, told.high, told.starts
    other, counted = as_counted or (None, None)
    if counted is not None:
        low = None if low is None or counted.low is None else min(low, counted.low)  # the outer ends
        high = None if high is None or counted.high is None else max(high, counted.high)
        turned = kind == "different" and (counted.ratio > 1) != (told.ratio > 1)
        if counted.answer != kind or turned:
            kind, more = "open", None
            names = zip(_called(draft.a, draft.b), (draft.a, draft.b), strict=True)
            whose = " and ".join(name for name, side in names if side.result.disturbed)
            notes.append(f"disturbed more often: {whose}; the answer depends on whether a switch does that itself")
    by_distance = ratios_by_distance(*draft.blocks) if draft.metric == "throughput" and "@" not in draft.a.name else {}
    if len(by_distance) > 1:
        notes.append(" and ".join(f"{ratio:.3g} {band}" for band, ratio in by_distance.items()))
    starts_a, starts_b = (len(by_start(blocks)) for blocks in draft.blocks)
    failed = draft.a.result.invalid, draft.b.result.invalid
    for name, count in zip(_called(draft.a, draft.b), failed, strict=True):
        notes += [f"{count} trial{'s' * (count > 1)} of {name} did not take place"] if count else []
    if estimate is None:
        notes.append(f"{starts_a} and {starts_b} starts: how starts differ is not known")
        more = 1
    wanted = None if more is None else Open(draft.a.result.point, (draft.a.name, draft.b.name), more)
    return Comparison(
        a=draft.a.name,
        b=draft.b.name,
        point=draft.a.cell,
        metric=draft.metric,
        ratio=told.ratio,
        low=low,
        high=high,
        answer=kind,
        trials_a=draft.trials[0],
        trials_b=draft.trials[1],
        load=draft.load,
        note="; ".join(filter(None, notes)),
        more_starts=more,
        more_minutes=None if wanted is None or cost is None else cost.minutes([wanted]),
        detectable=None if estimate is None else factor(estimate.detectable(told.level)) - 1,
        starts_a=starts_a,
        starts_b=starts_b,
        failed_a=failed[0],
        failed_b=failed[1],
        log_error=None if estimate is None else estimate.error,
        degrees=None if estimate is None else estimate.degrees,
        counted_ratio=None if counted is None else counted.ratio,
        counted_log_error=None if other is None else other.error,
        unit="run" if unit == "pair" else "boot" if unit == "boot" else "start",
    )


def _estimates(
    family: Sequence[_Draft], blocks: Sequence[tuple[Blocks, Blocks]], unit: Unit
) -> Iterator[Estimate | None]:
    """Yield the estimate of log(b / a) of each comparison by one metric; None where its error is not known."""
    points = [(draft.a.result.point, draft.b.result.point) for draft in family]
    pairs = noise_of_pairs((p, a, q, b) for (p, q), (a, b) in zip(points, blocks, strict=True))
    if unit == "pair":  # all cells share the runs
        differences = [paired(a, b) for a, b in blocks]
        pairs = fit_noise(differences, max(map(len, differences), default=1) - 1)
    sides = noise_of_sides(
        ((point, of) for ends, both in zip(points, blocks, strict=True) for point, of in zip(ends, both, strict=True)),
        unit == "boot",
    )
    for draft, (a, b) in zip(family, blocks, strict=True):
        estimate = pairs.estimate(paired(a, b)) if unit in ("block", "pair") else None
        if estimate is None and unit != "pair":
            estimate = at_same_distance(sides.by_distance(b), sides.by_distance(a))
            one, other = sides.estimate(a), sides.estimate(b)
            if estimate is None and one is not None and other is not None:
                estimate = other.minus(one)
        yield estimate and reduce(Estimate.minus, draft.errors, estimate)


def _compare(a: _ComparedSide, b: _ComparedSide) -> ComparisonsFound:
    yield from _flat_out(a, b)
    for method in SEARCHES:
        yield from _search(method, a, b)
    loads_a, loads_b = ({t.load.label: None for t in side.trials if t.role == "latency"} for side in (a, b))
    for load in loads_a:
        if load in loads_b:
            yield from _latency_at(load, a, b)


def _flat_out(a: _ComparedSide, b: _ComparedSide) -> ComparisonsFound:
    """Compare throughput; the capacity where one is a bound; and cycles per packet, where both are saturated."""
    counted = saturating(a.trials), saturating(b.trials)
    rates = throughput_blocks(counted[0].trials), throughput_blocks(counted[1].trials)
    for side, found, blocks in zip((a, b), counted, rates, strict=True):
        if not found.trials:
            yield _left_out(a, b, FLAT_OUT, f"no trial of {side.name} counts")
            return
        if not blocks:
            yield _left_out(a, b, FLAT_OUT, f"{side.name} forwarded no packets; ratio undefined")
            return
    kinds = [it.verdict.kind for it in counted]
    n = len(counted[0].trials), len(counted[1].trials)
    one_line = all(kind is VerdictKind.LINE_RATE for kind in kinds)
    bounds = EXACT if one_line else Bounds(*(kind.is_bound for kind in kinds))
    disturbed = a.result.disturbed or b.result.disturbed
    plain = (counted_blocks(counted[0].trials), counted_blocks(counted[1].trials)) if disturbed else None
    names = _called(a, b)
    some = "" if all(map(is_full, rates)) else " in some trials"
    notes = (f"both fill the line{some}",) if one_line else _bound_notes(names, kinds)
    draft = _Draft("throughput", a, b, rates, n, tuple(notes), bounds, counted=plain)
    yield draft
    if one_line:  # what either could do without it is another question
        return
    if any(kind.is_bound for kind in kinds):
        yield from _capacities(draft, kinds)
        return
    cycles = cycles_blocks(counted[0].trials), cycles_blocks(counted[1].trials)
    if all(cycles):
        yield _Draft("cycles_per_packet", a, b, cycles, n)


def _capacities(rates: _Draft, kinds: Sequence[VerdictKind]) -> ComparisonsFound:
    """Compare what the switches can do: a lower bound is no figure, so its estimate takes its place."""
    sides = rates.a, rates.b
    estimates = [side.capacity if kind.is_bound else None for side, kind in zip(sides, kinds, strict=True)]
    if any(kind.is_bound and it is None for kind, it in zip(kinds, estimates, strict=True)):
        return

    def reached(measured: tuple[Blocks, Blocks]) -> tuple[Blocks, Blocks]:
        a, b = (of if it is None else it.blocks for it, of in zip(estimates, measured, strict=True))
        return a, b

    limited = [name for name, it in zip(_called(*sides), estimates, strict=True) if it]
    yield replace(
        rates,
        metric="capacity",
        blocks=reached(rates.blocks),
        notes=(f"estimated for {' and '.join(limited)}, from cycles against batch",),
        bounds=EXACT,
        counted=rates.counted and reached(rates.counted),
        errors=tuple(it.fit for it in estimates if it),
    )


def _search(method: Metric, a: _ComparedSide, b: _ComparedSide) -> ComparisonsFound:
    """Compare the lower bounds of repeated searches, each in a start of its own. The width of bounds is an error."""
    found_a, found_b = ([s for s in side.searches if s.method == method] for side in (a, b))
    if not found_b and method in a.rates:
        yield _left_out(a, b, (method,), f"no such search was run on {b.name}")
    if not found_a or not found_b:
        return
    ended = [with_a_rate(found, method) for found in (found_a, found_b)]
    for side, found, some in zip((a, b), (found_a, found_b), ended, strict=True):
        if not some:
            reasons = f": {'; '.join(found[0].verdict.texts)}" if found[0].verdict.reasons else ""
            yield _left_out(a, b, (method,), f"the search on {side.name} did not converge{reasons}")
            return
    kinds = [next((s.verdict.kind for s in some if s.verdict.kind.is_bound), VerdictKind.VALID) for some in ended]
    limits, names = [any(s.is_bound for s in some) for some in ended], _called(a, b)
    n = sum(len(s.trials) for s in ended[0]), sum(len(s.trials) for s in ended[1])
    more = (
        f"{name} may do more (lower bound)"
        for name, kind, limit in zip(names, kinds, limits, strict=True)
        if limit and not kind.is_bound
    )
    errors = []
    for some in ended:  # a rate is anywhere between the bounds of its search
        wide = widths(some)
        error = statistics.fmean(wide) / math.sqrt(12 * len(wide)) if wide else 0.0
        errors.append(Estimate(0.0, error, math.inf, len(some)))
    notes = (*_bound_notes(names, kinds), *more)
    blocks = lower_bounds(ended[0]), lower_bounds(ended[1])
    yield _Draft(method, a, b, blocks, n, notes, Bounds(*limits), errors=tuple(errors))


def _latency_at(load: str, a: _ComparedSide, b: _ComparedSide) -> ComparisonsFound:
    at_load = [[t for t in side.trials if t.role == "latency" and t.load.label == load] for side in (a, b)]
    full = []
    for side, found in zip((a, b), at_load, strict=True):
        kinds = [t.verdict.kind for t in found]
        overloaded = kinds.count(VerdictKind.OVERLOAD)
        if overloaded > 0 and overloaded >= kinds.count(VerdictKind.VALID):
            full.append(side.name)
    if full:
        yield _left_out(a, b, tuple(PERCENTILES), f"{' and '.join(full)} did not carry the load (overload)", load)
        return
    probed = ([t for t in found if t.latency is not None and t.latency.probes_received] for found in at_load)
    counted = [of_kinds(found, (VerdictKind.VALID,)) for found in probed]
    for side, used in zip((a, b), counted, strict=True):
        if not used.trials:
            yield _left_out(a, b, tuple(PERCENTILES), f"no latency of {side.name} counts", load)
            return
    n = len(counted[0].trials), len(counted[1].trials)
    pps_a, pps_b = (mean_intended_pps(it.trials) for it in counted)
    differ = abs(pps_b - pps_a) / max(pps_a, pps_b)
    note = f"at {pps_a / 1e6:.3g} and {pps_b / 1e6:.3g} Mpps" if differ > LOADS_DIFFER else ""
    for metric, share in PERCENTILES.items():
        blocks_a, blocks_b = (percentile_blocks(it.trials, share) for it in counted)
        if blocks_a and blocks_b:
            yield _Draft(metric, a, b, (blocks_a, blocks_b), n, (note,), load=load, loads_differ=differ > SAME_LOAD)
        else:
            yield _left_out(a, b, (metric,), f"no percentile of {(a if not blocks_a else b).name} is known", load)


def _called(a: _ComparedSide, b: _ComparedSide) -> tuple[str, str]:
    """Return what notes call the two sides: their labels; a and b where names of runs, which are long, go with them."""
    return ("a", "b") if "@" in a.name else (a.name, b.name)


def _bound_notes(names: tuple[str, str], kinds: Sequence[VerdictKind]) -> Iterator[str]:
    for limit, words in LIMITS.items():
        limited = [name for name, kind in zip(names, kinds, strict=True) if kind is limit]
        if limited:
            several = len(limited) > 1
            yield f"{' and '.join(limited)} {'are' if several else 'is'} {words} (lower bound{'s' * several})"


def _left_out(a: _ComparedSide, b: _ComparedSide, metrics: tuple[Metric, ...], why: str, load: str = "") -> NotCompared:
    has = tuple(m for m in a.rates if m in metrics)
    return NotCompared(a.name, b.name, a.cell, metrics, why, load, has)
