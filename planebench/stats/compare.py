# SPDX-License-Identifier: BSD-3-Clause
"""Comparison of b with a: two switches in one run, or one switch in two runs. docs/design/results.md has the rules."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, get_args

from planebench.model.records import Point, Trial
from planebench.model.results import Comparison, Metric, Result, SearchResult
from planebench.stats.choose import LIMITED, VALID, Choice, choose, choose_saturating
from planebench.stats.counting import search_ended
from planebench.stats.effect import (
    MIN_EFFECT,
    MIN_TRIALS,
    Effect,
    median_effect,
    percentile_effect,
    search_effect,
    undecided_words,
    with_bounds,
)
from planebench.stats.intervals import relative_spread
from planebench.stats.latency import mean_intended_pps, trial_counts
from planebench.stats.must_match import MUST_MATCH, differing_facts
from planebench.stats.outages import compare_outages
from planebench.stats.ranking import cell_id
from planebench.stats.two_bands import two_bands

if TYPE_CHECKING:
    from planebench.stats.derived import Derived

__all__ = [
    "METRICS",
    "MIN_EFFECT",
    "MUST_MATCH",
    "RATES",
    "NotCompared",
    "Outcome",
    "differing_facts",
    "runs_compared",
    "switches_compared",
]

SEARCH_NOTE = (
    "single search each: the range shown is the search bounds widened by trial spread, not a 95 % confidence interval"
)
METRICS: tuple[Metric, ...] = get_args(Metric)
OF_POINTS = tuple(metric for metric in METRICS if metric != "outage")
"""Metrics of the results of a point; an outage is of a restart."""
RATES: tuple[Metric, ...] = ("throughput", "ndr", "pdr")
"""Metrics of which more is better."""
FLAT_OUT: tuple[Metric, ...] = ("throughput", "cycles_per_packet")
SEARCHES: tuple[Metric, ...] = ("ndr", "pdr")
PERCENTILES: Mapping[Metric, float] = {"latency_p50": 0.50, "latency_p99": 0.99}

LOADS_DIFFER = 0.01
"""Latency loads are shares of each one's own R+: beyond this difference in packets per second the note says so."""

_OTHER_BANDS = ("near", "far", "same", None)


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
    """The comparisons, and those that were not possible."""

    comparisons: tuple[Comparison, ...]
    skipped: tuple[NotCompared, ...]


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a comparison at one point. ``name`` is what the user reads."""

    name: str
    result: Result
    trials: tuple[Trial, ...]

    @property
    def cell(self) -> str:
        return cell_id(self.result.point)

    @property
    def usable_bands(self) -> frozenset[str | None]:
        return frozenset(t.band for t in self.saturating if t.verdict.kind in (VALID, LIMITED))

    @property
    def saturating(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.trials if t.role == "r_plus")

    @property
    def rates(self) -> tuple[Metric, ...]:
        """Return the metrics of RATES with an accepted figure."""
        searched = tuple(m for m in SEARCHES if (found := _searched(m, self)) is not None and _came_to_a_rate(found))
        return ("throughput", *searched) if self.usable_bands else searched


Found = Iterator[Comparison | NotCompared]


def switches_compared(derived: Derived) -> Outcome:
    """Compare every pair of switches at each test point; ``a`` is the one that the header names first.

    What is left out has its reason, also a switch without a trial where the first has some.
    """
    cells: dict[Point, list[_Side]] = {}
    for point, side in _sides(derived).items():
        cells.setdefault(replace(point, switch=""), []).append(side)
    outcome = _outcome(
        found for sides in cells.values() for pair in combinations(sides, 2) for found in _compare(*pair)
    )
    absent = tuple(found for sides in cells.values() for found in _absent(sides, derived.run.switch_labels))
    outages = compare_outages(derived.run)
    return Outcome((*outcome.comparisons, *outages), (*outcome.skipped, *absent))


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


def runs_compared(a: Derived, b: Derived) -> Outcome:
    """Compare the same switch at the same point in both runs; points that only one run has are left out.

    :func:`differing_facts` says whether two runs may be compared.
    """
    sides_a, sides_b = _sides(a, a.run.header.run_id), _sides(b, b.run.header.run_id)
    alone = [
        side for mine, other in ((sides_a, sides_b), (sides_b, sides_a)) for p, side in mine.items() if p not in other
    ]
    outcome = _outcome(found for p, side in sides_a.items() if p in sides_b for found in _compare(side, sides_b[p]))
    why = "the other run does not have it"
    only = tuple(
        NotCompared(s.name, "", s.cell, OF_POINTS, why, has=s.rates, baseline=s.result.point in sides_a) for s in alone
    )
    outages = compare_outages(a.run, b.run)
    return Outcome((*outcome.comparisons, *outages), (*outcome.skipped, *only))


def _sides(derived: Derived, run_id: str = "") -> dict[Point, _Side]:
    suffix = f"@{run_id}" if run_id else ""
    return {r.point: _Side(r.point.switch + suffix, r, tuple(derived.trials[r.point])) for r in derived.results}


def _outcome(found: Iterable[Comparison | NotCompared]) -> Outcome:
    everything = tuple(found)
    comparisons = tuple(c for c in everything if isinstance(c, Comparison))
    return Outcome(comparisons, tuple(s for s in everything if isinstance(s, NotCompared)))


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
    if not statistics.median(t.throughput_pps for t in chosen[0].trials):
        yield _left_out(a, b, FLAT_OUT, f"{a.name} forwarded no packets; ratio undefined")
        return
    yield _throughput(a, b, *chosen)
    cycles_a, cycles_b = _cycles(chosen[0]), _cycles(chosen[1])
    if cycles_a and cycles_b:
        limited = [name for name, c in zip(_called(a, b), chosen, strict=True) if c.verdict.kind is LIMITED]
        note = f"{_were(limited)} not fully loaded (cycles per packet measured below saturation)" if limited else ""
        effect, n = median_effect(cycles_a, cycles_b), (len(cycles_a), len(cycles_b))
        yield _comparison("cycles_per_packet", a, b, n, effect, band, (note, _too_few(*n)))


def _cycles(choice: Choice) -> list[float]:
    return [c for t in choice.trials if (c := t.switch.cycles_per_packet)]


def _throughput(a: _Side, b: _Side, chosen_a: Choice, chosen_b: Choice) -> Comparison:
    rates_a, rates_b = ([t.throughput_pps for t in chosen.trials] for chosen in (chosen_a, chosen_b))
    bound_a, bound_b = (chosen.verdict.kind is LIMITED for chosen in (chosen_a, chosen_b))
    names = _called(a, b)
    notes = _bound_notes(names, (bound_a, bound_b))
    for name, chosen, rates in zip(names, (chosen_a, chosen_b), (rates_a, rates_b), strict=True):
        if (bands := two_bands(rates)) is not None:
            notes.append(f"{name}: {bands.words(chosen.band, [t.start for t in chosen.trials])}")
    notes.append(_too_few(len(rates_a), len(rates_b)))
    effect = with_bounds(median_effect(rates_a, rates_b), bound_a, bound_b)
    return _comparison("throughput", a, b, (len(rates_a), len(rates_b)), effect, chosen_a.band, notes)


def _comparison(
    metric: Metric,
    a: _Side,
    b: _Side,
    trials: tuple[int, int],
    effect: Effect,
    band: str | None,
    notes: Iterable[str] = (),
    load: str = "",
) -> Comparison:
    """Return a comparison with the notes that every comparison needs."""
    unknown = "core-to-core latency unknown" if band is None else ""
    return Comparison(
        a=a.name,
        b=b.name,
        point=a.cell,
        metric=metric,
        ratio=effect.ratio,
        low=effect.low,
        high=effect.high,
        answer=effect.answer,
        trials_a=trials[0],
        trials_b=trials[1],
        load=load,
        band=band,
        note="; ".join(note for note in (*notes, unknown) if note),
    )


def _search(method: Metric, a: _Side, b: _Side) -> Found:
    """Compare two searches by the ratio of their lower bounds; significant if bounds and noise do not overlap."""
    found_a, found_b = _searched(method, a), _searched(method, b)
    if found_b is None and method in a.rates:
        yield _left_out(a, b, (method,), f"no such search was run on {b.name}")
    if found_a is None or found_b is None:
        return
    for side, found in ((a, found_a), (b, found_b)):
        if not _came_to_a_rate(found):
            reasons = f": {'; '.join(found.verdict.texts)}" if found.verdict.reasons else ""
            yield _left_out(a, b, (method,), f"the search on {side.name} did not converge{reasons}")
            return
    if found_a.band != found_b.band:
        yield _left_out(a, b, (method,), _why_no_band(a, b, (found_a.band,), (found_b.band,)))
        return
    spreads = _noise(a, found_a), _noise(b, found_b)
    effect = search_effect(_bounds(found_a), _bounds(found_b), spreads)
    trials = len(found_a.trials), len(found_b.trials)
    bounds = _bound_notes(_called(a, b), [found.verdict.kind is LIMITED for found in (found_a, found_b)])
    few = (
        ""
        if None not in spreads
        else f"fewer than {MIN_TRIALS} trials at maximum offered load: the trial spread is unknown"
    )
    yield _comparison(method, a, b, trials, effect, found_a.band, (SEARCH_NOTE, *bounds, few))


def undecided(comparison: Comparison) -> str:
    """Return why the two sides of a comparison do not differ significantly: no difference found, or not tested."""
    few = min(comparison.trials_a, comparison.trials_b) < MIN_TRIALS
    if comparison.metric in SEARCHES:  # one search a side: it is tested where the trial spread is known
        few = comparison.low is None and comparison.high is None
    return undecided_words(comparison.low, comparison.high, not few)


def _bounds(search: SearchResult) -> tuple[float, float | None]:
    """Return the lower and the upper bound; no upper one if the tester was the limit."""
    return search.lower_pps or 0.0, None if search.verdict.kind is LIMITED else search.upper_pps


def _noise(side: _Side, search: SearchResult) -> float | None:
    """Return the spread of the accepted saturating trials in the band of the search; None for too few."""
    trials = [t for t in choose_saturating(side.saturating, search.band).trials if search.band in (None, t.band)]
    return relative_spread([t.throughput_pps for t in trials]) if len(trials) >= MIN_TRIALS else None


def _came_to_a_rate(search: SearchResult) -> bool:
    return search_ended(search) and bool(search.lower_pps)


def _searched(method: str, side: _Side) -> SearchResult | None:
    return next((s for s in side.result.searches if s.method == method), None)


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
    if not common:
        yield _left_out(a, b, tuple(PERCENTILES), _why_no_band(a, b, bands_a, bands_b), load)
        return
    band = _preferred(a, b, common)
    chosen = choose(trials_a, band, (VALID,)), choose(trials_b, band, (VALID,))
    counts = trial_counts(chosen[0]), trial_counts(chosen[1])
    n_a, n_b = len(counts[0]), len(counts[1])
    note = _loads_note(*(mean_intended_pps(choice.trials) for choice in chosen))
    for metric, share in PERCENTILES.items():
        effect = percentile_effect(*counts, share)
        yield _comparison(metric, a, b, (n_a, n_b), effect, band, (note, _too_few(n_a, n_b)), load)


def _latency_trials(side: _Side, load: str) -> list[Trial]:
    """Return the valid latency trials at a load in which a probe returned."""
    at_load = (t for t in side.trials if t.role == "latency" and t.load.label == load and t.verdict.kind is VALID)
    return [t for t in at_load if t.latency is not None and t.latency.probes_received]


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


def _bound_notes(names: tuple[str, str], bound: Sequence[bool]) -> list[str]:
    limited = [name for name, is_bound in zip(names, bound, strict=True) if is_bound]
    if len(limited) == 2:
        return [f"{limited[0]} and {limited[1]} are tester-limited (lower bounds)"]
    return [f"{limited[0]} is tester-limited (lower bound)"] if limited else []


def _too_few(n_a: int, n_b: int) -> str:
    if min(n_a, n_b) >= MIN_TRIALS:
        return ""
    return (
        "only 1 accepted trial each"
        if n_a == n_b == 1
        else f"{n_a} and {n_b} accepted trials; at least {MIN_TRIALS} each required"
    )


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
