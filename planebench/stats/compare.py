# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of b with a: two switches of one run, or one switch in some runs and in others. docs/design/results.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal, get_args

from planebench.model.named_files import names_by_content, renamed
from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.results import Comparison, Metric, Result, SearchResult
from planebench.stats.answers import ALPHA, EXACT, Bounds, OneOfMany, shares_of_alpha
from planebench.stats.choose import VALID, Choice, choose, choose_saturating, is_usable
from planebench.stats.counting import search_ended
from planebench.stats.effect import effect_of
from planebench.stats.latency import mean_intended_pps, percentile_blocks
from planebench.stats.looks import Open, Price, each_look_alpha, price
from planebench.stats.must_match import MUST_MATCH, differing_facts
from planebench.stats.noise import Estimate, factor, figure_of
from planebench.stats.outages import compare_outages
from planebench.stats.ranking import cell_id
from planebench.stats.starts import (
    Block,
    Blocks,
    by_start,
    cycles_blocks,
    noise_of_pairs,
    noise_of_sides,
    paired,
    throughput_blocks,
)
from planebench.stats.two_bands import two_bands

if TYPE_CHECKING:
    from planebench.stats.derived import Derived

__all__ = [
    "METRICS",
    "MUST_MATCH",
    "RATES",
    "NotCompared",
    "Outcome",
    "differing_facts",
    "runs_compared",
    "switches_compared",
]

METRICS: tuple[Metric, ...] = get_args(Metric)
OF_POINTS = tuple(metric for metric in METRICS if metric != "outage")
"""Metrics of the results of a point; an outage is of a restart."""
RATES: tuple[Metric, ...] = ("throughput", "ndr", "pdr")
"""Metrics of which more is better."""
FLAT_OUT: tuple[Metric, ...] = ("throughput", "cycles_per_packet")
SEARCHES: tuple[Metric, ...] = ("ndr", "pdr")
PERCENTILES: Mapping[Metric, float] = {"latency_p50": 0.50, "latency_p99": 0.99}

RUNS_MIN = 3
"""Runs of each side; with fewer, nothing is known of how runs vary: boot, memory layout, neighbors."""

LOADS_DIFFER = 0.01
"""Latency loads are shares of each one's own R+: beyond this difference in packets per second the note says so."""

_STARTS_OF_A_RUN = 1_000_000
"""More than a run has: starts of several runs are numbered in one row."""
_OTHER_BANDS = ("near", "far", "same", None)


Unit = Literal["block", "start", "run"]
"""What is one observation: the difference of two switches in a block, a start of a switch, or a whole run."""


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
class Outcome:
    """The comparisons, and those that were not possible.

    ``not_in_intervals``: the variation that no interval contains, and what it would take to know it; empty if nothing
    is missing.
    """

    comparisons: tuple[Comparison, ...]
    skipped: tuple[NotCompared, ...]
    not_in_intervals: str = ""


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison at one point. ``name`` is what the user reads.

    Of several runs, ``trials`` are those of all, and the run takes the place of the start.
    """

    name: str
    result: Result
    trials: tuple[Trial, ...]
    searches: tuple[SearchResult, ...]

    def with_more(self, other: _Side) -> _Side:
        """Return a side that has the trials and searches of a further run, too."""
        return replace(self, trials=(*self.trials, *other.trials), searches=(*self.searches, *other.searches))

    @property
    def cell(self) -> str:
        return cell_id(self.result.point)

    @property
    def usable_bands(self) -> frozenset[str | None]:
        return frozenset(t.band for t in self.saturating if is_usable(t))

    @property
    def saturating(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.trials if t.role == "r_plus")

    @property
    def rates(self) -> tuple[Metric, ...]:
        """Return the metrics of RATES with an accepted figure."""
        searched = tuple(m for m in SEARCHES if any(_came_to_a_rate(s) for s in _searched(m, self)))
        return ("throughput", *searched) if self.usable_bands else searched


@dataclass(frozen=True, slots=True)
class _Draft:
    """A comparison of which the noise is not known yet: it is estimated over all of a run.

    ``blocks``: the figures of both sides.
    """

    metric: Metric
    a: _Side
    b: _Side
    blocks: tuple[Blocks, Blocks]
    trials: tuple[int, int]
    band: str | None
    notes: tuple[str, ...] = ()
    bounds: Bounds = EXACT
    load: str = ""
    like: tuple[Blocks, Blocks] = ((), ())
    """Figures of both sides whose noise is that of ``blocks``, where these have one start only: searches are long."""
    widths: tuple[float, float] = (0.0, 0.0)
    """Logarithm of upper / lower bound of the searches of both sides: the true rate is anywhere between them."""

    @property
    def ratio(self) -> float:
        """Return the ratio of the geometric means, where no error of it can be estimated."""
        a, b = (by_start(side) for side in self.blocks)
        return figure_of(sum(b) / len(b) - sum(a) / len(a))

    def starts_shared(self, unit: Unit) -> Hashable:
        """Return the key of the comparisons that share their starts: a pair on a topology; a pair, of whole runs."""
        return self.a.name, self.b.name, None if unit == "run" else self.a.result.point.topology


Found = Iterator[_Draft | NotCompared]


def switches_compared(derived: Derived) -> Outcome:
    """Compare every pair of switches at each test point; ``a`` is the one that the header names first.

    What is left out has its reason, also a switch without a trial where the first has some.
    """
    cells: dict[Point, list[_Side]] = {}
    for point, side in _sides([derived]).items():
        cells.setdefault(replace(point, switch=""), []).append(side)
    found = [it for sides in cells.values() for pair in combinations(sides, 2) for it in _compare(*pair)]
    absent = tuple(it for sides in cells.values() for it in _absent(sides, derived.run.switch_labels))
    compared, skipped = _concluded(found, "block", [derived])
    return Outcome((*compared, *compare_outages([derived.run])), (*skipped, *absent))


def _absent(sides: Sequence[_Side], labels: Sequence[str]) -> Iterator[NotCompared]:
    first, there = sides[0], {side.name for side in sides}
    for label in labels:
        if label not in there:
            yield NotCompared(
                first.name,
                label,
                first.cell,
                OF_POINTS,
                f"{label} was not measured there",
                has=first.rates,
            )


def runs_compared(a: Derived | Sequence[Derived], b: Derived | Sequence[Derived]) -> Outcome:
    """Compare the same switch at the same point in both runs, or in all runs of one side and all of the other.

    The run is the unit: with RUNS_MIN runs of each side, the intervals contain how runs vary. With fewer they contain
    only how starts vary within these runs, and ``not_in_intervals`` says so. Points that only one side has are left
    out. :func:`differing_facts` says whether two runs may be compared.
    """
    runs_a, runs_b = ([side] if not isinstance(side, Sequence) else list(side) for side in (a, b))
    enough = min(len(runs_a), len(runs_b)) >= RUNS_MIN
    files: dict[str, str] = {}
    sides_a, sides_b = (
        _sides(runs, ",".join(it.run.header.run_id for it in runs), enough, files) for runs in (runs_a, runs_b)
    )
    alone = [
        side for mine, other in ((sides_a, sides_b), (sides_b, sides_a)) for p, side in mine.items() if p not in other
    ]
    found = [it for p, side in sides_a.items() if p in sides_b for it in _compare(side, sides_b[p])]
    only = tuple(
        NotCompared(
            side.name,
            "",
            side.cell,
            OF_POINTS,
            _why_alone(side.result.point, sides_b if side.result.point in sides_a else sides_a),
            has=side.rates,
            baseline=side.result.point in sides_a,
        )
        for side in alone
    )
    compared, skipped = _concluded(found, "run" if enough else "start", [*runs_a, *runs_b])
    outages = compare_outages([it.run for it in runs_a], [it.run for it in runs_b])
    missing = (
        ""
        if enough
        else f"{len(runs_a)} and {len(runs_b)} runs: how runs vary is in no interval; it takes {RUNS_MIN} runs each"
    )
    return Outcome((*compared, *outages), (*skipped, *only), missing)


def _why_alone(point: Point, others: Iterable[Point]) -> str:
    """Return why a point is in one of the runs only: the other has other VNFs there, or nothing."""
    unlike = {other.chain_label for other in others if _whatever_vnfs(other) == _whatever_vnfs(point)}
    if not unlike:
        return "the other run does not have it"
    return f"the other run has other VNFs there ({', '.join(sorted(unlike))}): not the same experiment"


def _whatever_vnfs(point: Point) -> Point:
    """Return the same point for all functions of its VNFs, with their batching, and all hostings."""
    return replace(point, chain="", hosting="process")


def _sides(
    runs: Sequence[Derived], run_ids: str = "", by_run: bool = False, files: dict[str, str] | None = None
) -> dict[Point, _Side]:
    """Return the sides by point. ``by_run``: all trials of a run are one observation, else those of a start.

    ``files``: names by digest, of several runs, for files that are equal wherever they are.
    """
    suffix = f"@{run_ids}" if run_ids else ""
    found: dict[Point, _Side] = {}
    for number, derived in enumerate(runs):
        first = 0 if by_run else number * _STARTS_OF_A_RUN
        names = {} if files is None else names_by_content(derived.run.header.settings, files)
        for result in derived.results:
            trials = derived.trials[result.point]
            point = replace(result.point, chain=renamed(result.point.chain, names))
            mine = _Side(
                point.switch + suffix,
                replace(result, point=point),
                tuple(replace(t, start=number if by_run else first + t.start) if run_ids else t for t in trials),
                tuple(replace(s, repetition=number if by_run else first + s.repetition) for s in result.searches),
            )
            before = found.get(point)
            found[point] = mine if before is None else before.with_more(mine)
    return found


def _concluded(
    found: Sequence[_Draft | NotCompared], unit: Unit, runs: Sequence[Derived]
) -> tuple[tuple[Comparison, ...], tuple[NotCompared, ...]]:
    """Return the comparisons, each with its answer. All of them are one family, whatever the metric."""
    drafts = [it for it in found if isinstance(it, _Draft)]
    estimates: dict[int, Estimate | None] = {}
    for metric in OF_POINTS:
        alike = [it for it in drafts if it.metric == metric]
        estimates |= zip(map(id, alike), _estimates(alike, unit), strict=True)
    looks_alpha = min(each_look_alpha(it.run.header) for it in runs)
    known = [(it, estimate) for it in drafts if (estimate := estimates[id(it)]) is not None]
    tested = [OneOfMany(estimate, it.bounds, it.starts_shared(unit)) for it, estimate in known]
    shares = {id(it): share for (it, _), share in zip(known, shares_of_alpha(tested, looks_alpha), strict=True)}
    cost = price([it.run for it in runs])
    compared = (_answered(it, estimates[id(it)], shares.get(id(it), 1.0), looks_alpha, cost) for it in drafts)
    return tuple(compared), tuple(it for it in found if isinstance(it, NotCompared))


def _answered(
    draft: _Draft, estimate: Estimate | None, share: float, looks_alpha: float, cost: Price | None
) -> Comparison:
    """Return a comparison with its answer at the level ``looks_alpha`` times ``share``."""
    alpha = looks_alpha * share
    starts_a, starts_b = (len(by_start(blocks)) for blocks in draft.blocks)
    found = effect_of(estimate, draft.ratio, alpha, draft.bounds)
    more = 1 if estimate is None else found.starts
    wanted = None if more is None else Open(draft.a.result.point, (draft.a.name, draft.b.name), more)
    return Comparison(
        a=draft.a.name,
        b=draft.b.name,
        point=draft.a.cell,
        metric=draft.metric,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        answer=found.answer,
        trials_a=draft.trials[0],
        trials_b=draft.trials[1],
        load=draft.load,
        band=draft.band,
        note="; ".join(filter(None, (*draft.notes, *_more_notes(draft, estimate)))),
        confidence=1 - ALPHA * share,
        more_starts=more,
        more_minutes=None if wanted is None or cost is None else cost.minutes([wanted]),
        detectable=None if estimate is None else factor(estimate.detectable(alpha)) - 1,
        starts_a=starts_a,
        starts_b=starts_b,
        log_error=None if estimate is None else estimate.error,
        degrees=None if estimate is None else estimate.degrees,
    )


def _estimates(family: Sequence[_Draft], unit: Unit) -> list[Estimate | None]:
    """Return the estimate of log(b / a) of each comparison by one metric; None where its error is not known."""
    ends = [[(side.result.point, of) for side, of in zip((d.a, d.b), d.blocks, strict=True)] for d in family]
    pairs = noise_of_pairs((*a, *b) for a, b in ends)
    sides = noise_of_sides((end for both in ends for end in both), unit == "run")
    like = noise_of_sides(
        ((side.result.point, of) for d in family for side, of in zip((d.a, d.b), d.like, strict=True)), unit == "run"
    )
    found: list[Estimate | None] = []
    for draft in family:
        estimate = pairs.estimate(paired(*draft.blocks) if unit == "block" else [])
        if estimate is None:
            a, b = (
                sides.estimate(by_start(blocks)) or _one_start(blocks, like.estimate(by_start(others)), width)
                for blocks, others, width in zip(draft.blocks, draft.like, draft.widths, strict=True)
            )
            estimate = None if a is None or b is None else b.minus(a)
        found.append(estimate)
    return found


def _one_start(blocks: Blocks, like: Estimate | None, width: float) -> Estimate | None:
    """Return the estimate of figures of one start, whose noise is that of another estimate.

    Half of ``width`` is a further error, so that an interval at 95 % contains both bounds. Repeated searches do not
    need it, because their own spread contains where between its bounds each of them ended.
    """
    if like is None:
        return None
    return Estimate(by_start(blocks)[0], math.hypot(like.error * math.sqrt(like.n), width / 2), like.degrees, 1)


def _compare(a: _Side, b: _Side) -> Found:
    yield from _flat_out(a, b)
    for method in SEARCHES:
        yield from _search(method, a, b)
    yield from _latency(a, b)


def _flat_out(a: _Side, b: _Side) -> Found:
    """Compare throughput, and cycles per packet if both are known, of the accepted trials in the common band."""
    common = a.usable_bands & b.usable_bands
    if not common:
        yield _left_out(a, b, FLAT_OUT, _why_no_band(a, b, a.usable_bands, b.usable_bands))
        return
    band = _preferred(a, b, common)
    chosen = choose_saturating(a.saturating, band), choose_saturating(b.saturating, band)
    rates = throughput_blocks(chosen[0].trials), throughput_blocks(chosen[1].trials)
    for side, blocks in zip((a, b), rates, strict=True):
        if not blocks:
            yield _left_out(a, b, FLAT_OUT, f"{side.name} forwarded no packets; ratio undefined")
            return
    kinds = [choice.verdict.kind for choice in chosen]
    bounds = Bounds(*(kind.is_bound for kind in kinds))
    names, n = _called(a, b), (len(chosen[0].trials), len(chosen[1].trials))
    notes = (*_bound_notes(names, kinds), *map(_two_bands, names, chosen))
    yield _Draft("throughput", a, b, rates, n, band, notes, bounds)
    cycles = cycles_blocks(chosen[0].trials), cycles_blocks(chosen[1].trials)
    if all(cycles):
        limited = [name for name, c in zip(names, chosen, strict=True) if c.verdict.kind.is_bound]
        note = f"{_were(limited)} not fully loaded (cycles per packet measured below saturation)" if limited else ""
        yield _Draft("cycles_per_packet", a, b, cycles, n, band, (note,))


def _two_bands(name: str, chosen: Choice) -> str:
    bands = two_bands([t.throughput_pps for t in chosen.trials])
    return "" if bands is None else f"{name}: {bands.words(chosen.band, chosen.trials)}"


def _search(method: Metric, a: _Side, b: _Side) -> Found:
    """Compare the lower bounds of repeated searches, each in a start of its own."""
    found_a, found_b = _searched(method, a), _searched(method, b)
    if not found_b and method in a.rates:
        yield _left_out(a, b, (method,), f"no such search was run on {b.name}")
    if not found_a or not found_b:
        return
    for side, found in ((a, found_a), (b, found_b)):
        if not any(map(_came_to_a_rate, found)):
            reasons = f": {'; '.join(found[0].verdict.texts)}" if found[0].verdict.reasons else ""
            yield _left_out(a, b, (method,), f"the search on {side.name} did not converge{reasons}")
            return
    ended_a, ended_b = ([s for s in found if _came_to_a_rate(s)] for found in (found_a, found_b))
    bands_a, bands_b = ({s.band for s in ended} for ended in (ended_a, ended_b))
    if not bands_a & bands_b:
        yield _left_out(a, b, (method,), _why_no_band(a, b, bands_a, bands_b))
        return
    band = _preferred(a, b, bands_a & bands_b)
    in_band = [[s for s in ended if s.band == band] for ended in (ended_a, ended_b)]
    kinds = [next((s.verdict.kind for s in some if s.verdict.kind.is_bound), VALID) for some in in_band]
    bounds = Bounds(*(kind.is_bound for kind in kinds))
    lower = _lower_bounds(in_band[0]), _lower_bounds(in_band[1])
    n = sum(len(s.trials) for s in in_band[0]), sum(len(s.trials) for s in in_band[1])
    rates = [throughput_blocks(choose_saturating(side.saturating, band).trials) for side in (a, b)]
    notes = tuple(_bound_notes(_called(a, b), kinds))
    widths = _mean_width(in_band[0]), _mean_width(in_band[1])
    yield _Draft(method, a, b, lower, n, band, notes, bounds, like=(rates[0], rates[1]), widths=widths)


def _lower_bounds(found: Sequence[SearchResult]) -> Blocks:
    return tuple(Block(s.repetition, s.repetition, math.log(s.lower_pps)) for s in found if s.lower_pps)


def _mean_width(found: Sequence[SearchResult]) -> float:
    known = [math.log(s.upper_pps / s.lower_pps) for s in found if s.lower_pps and s.upper_pps]
    return statistics.fmean(known) if known else 0.0


def _came_to_a_rate(search: SearchResult) -> bool:
    return search_ended(search) and bool(search.lower_pps)


def _searched(method: str, side: _Side) -> list[SearchResult]:
    return [s for s in side.searches if s.method == method]


def _latency(a: _Side, b: _Side) -> Found:
    """Compare p50 and p99 at each common load, of valid trials of one band."""
    loads_a, loads_b = ({t.load.label: None for t in side.trials if t.role == "latency"} for side in (a, b))
    for load in loads_a:
        if load in loads_b:
            yield from _latency_at(load, a, b)


def _latency_at(load: str, a: _Side, b: _Side) -> Found:
    trials_a, trials_b = (_latency_trials(side, load) for side in (a, b))
    bands_a, bands_b = (frozenset(t.band for t in trials) for trials in (trials_a, trials_b))
    common = bands_a & bands_b
    if full := [side.name for side in (a, b) if _overloads(side, load)]:
        yield _left_out(a, b, tuple(PERCENTILES), f"{' and '.join(full)} did not carry the load (overload)", load)
        return
    if not common:
        yield _left_out(a, b, tuple(PERCENTILES), _why_no_band(a, b, bands_a, bands_b), load)
        return
    band = _preferred(a, b, common)
    chosen = choose(trials_a, band, (VALID,)), choose(trials_b, band, (VALID,))
    n = len(chosen[0].trials), len(chosen[1].trials)
    note = _loads_note(*(mean_intended_pps(choice.trials) for choice in chosen))
    for metric, share in PERCENTILES.items():
        blocks_a, blocks_b = (percentile_blocks(choice.trials, share) for choice in chosen)
        yield _Draft(metric, a, b, (blocks_a, blocks_b), n, band, (note,), load=load)


def _latency_trials(side: _Side, load: str) -> list[Trial]:
    """Return the valid latency trials at a load in which a probe returned."""
    at_load = (t for t in side.trials if t.role == "latency" and t.load.label == load and t.verdict.kind is VALID)
    return [t for t in at_load if t.latency is not None and t.latency.probes_received]


def _overloads(side: _Side, load: str) -> bool:
    """Return whether the latency of a switch at a load is that of an overload."""
    kinds = [t.verdict.kind for t in side.trials if t.role == "latency" and t.load.label == load]
    return kinds.count(VerdictKind.OVERLOAD) > 0 and kinds.count(VerdictKind.OVERLOAD) >= kinds.count(VALID)


def _preferred(a: _Side, b: _Side, common: Collection[str | None]) -> str | None:
    """Return the common band, preferably that of the results, in which their run is compared."""
    return next(band for band in (a.result.band, b.result.band, *_OTHER_BANDS) if band in common)


def _loads_note(pps_a: float, pps_b: float) -> str:
    if abs(pps_b - pps_a) <= LOADS_DIFFER * max(pps_a, pps_b):
        return ""
    return f"at {pps_a / 1e6:.3g} and {pps_b / 1e6:.3g} Mpps"


def _called(a: _Side, b: _Side) -> tuple[str, str]:
    """Return what notes call the two sides: their labels; a and b where names of runs, which are long, go with them."""
    return ("a", "b") if "@" in a.name else (a.name, b.name)


def _were(names: Sequence[str]) -> str:
    return f"{' and '.join(names)} {'were' if len(names) > 1 else 'was'}"


def _bound_notes(names: tuple[str, str], kinds: Sequence[VerdictKind]) -> Iterator[str]:
    for limit, words in ((VerdictKind.TESTER_LIMITED, "tester-limited"), (VerdictKind.LINE_RATE, "at line rate")):
        limited = [name for name, kind in zip(names, kinds, strict=True) if kind is limit]
        if limited:
            several = len(limited) > 1
            yield f"{' and '.join(limited)} {'are' if several else 'is'} {words} (lower bound{'s' * several})"


def _more_notes(draft: _Draft, estimate: Estimate | None) -> Iterator[str]:
    """Yield the notes that every comparison may need."""
    if estimate is None:
        n_a, n_b = (len(by_start(blocks)) for blocks in draft.blocks)
        yield f"{n_a} and {n_b} starts: how starts differ is not known"
    if draft.band is None:
        yield "core-to-core latency unknown"


def _why_no_band(a: _Side, b: _Side, bands_a: Collection[str | None], bands_b: Collection[str | None]) -> str:
    for side, bands in ((a, bands_a), (b, bands_b)):
        if not bands:
            return f"all trials of {side.name} were rejected"
    where_a, where_b = (" and ".join(sorted(_band(band) for band in bands)) for bands in (bands_a, bands_b))
    return f"not comparable: {a.name} ran on {where_a}, {b.name} on {where_b}"


def _left_out(a: _Side, b: _Side, metrics: tuple[Metric, ...], why: str, load: str = "") -> NotCompared:
    has = tuple(m for m in a.rates if m in metrics)
    return NotCompared(a.name, b.name, a.cell, metrics, why, load, has)


def _band(band: str | None) -> str:
    return "cores of unknown distance" if band is None else f"{band} cores"
