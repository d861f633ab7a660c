# SPDX-License-Identifier: BSD-3-Clause
"""A chain compared with its functions measured alone: two claims of can17 that need no hardware of the paper.

Latency is compared with the sum of the functions at the same load in packets per second, throughput with the slowest
function. Pure. The rules are in docs/chains.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planebench.model.chain_name import as_chains_of_one, vnf_texts
from planebench.model.records import Point, Trial
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.stats.choose import LIMITED, VALID, choose_saturating
from planebench.stats.counting import counts
from planebench.stats.effect import (
    MIN_EFFECT,
    MIN_TRIALS,
    RESAMPLES,
    Effect,
    median_effect,
    undecided_words,
    with_bounds,
)
from planebench.stats.histogram import decode, summarise
from planebench.stats.intervals import percentile_interval

MIN_CARRIED = 0.98
"""Minimum share of intended frames: a latency trial that forwards fewer measures full queues, not functions."""
CERTAIN_TRIALS = 4
"""Trials per side with which equal samples are apart in fewer than 1 of 20 cases; fewer trials need a wide gap."""


@dataclass(frozen=True, slots=True)
class Part:
    """One function of a chain, measured alone: mean latency in microseconds.

    ``name`` is as in the label of the chain.
    """

    name: str
    mean_us: float


@dataclass(frozen=True, slots=True)
class ChainLatency:
    """Mean latency of a chain over the sum of the means of its functions measured alone, at one load.

    ``effect`` has the ratio and its 95 % confidence interval. ``note`` says why there is none; figures may be None.
    """

    point: Point
    load: str
    mean_us: float | None
    parts: tuple[Part, ...]
    effect: Effect | None
    band: str | None = None
    trials: int = 0
    """Trials of the side with the fewest."""
    note: str = ""

    @property
    def sum_us(self) -> float | None:
        """Return the sum over all functions; None if one is unknown."""
        return sum(part.mean_us for part in self.parts) if self.effect is not None else None


@dataclass(frozen=True, slots=True)
class ChainThroughput:
    """Throughput of a chain, all directions, over that of its slowest function alone (``against``), if measured.

    ``throughput_pps`` is None without an accepted trial; ``bound``: a lower bound. ``note`` says why there is no ratio.
    """

    point: Point
    throughput_pps: float | None
    bound: bool = False
    against: str = ""
    effect: Effect | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chains:
    """Both claims for every chain of a run. Empty if no chain can be compared with its functions."""

    latency: tuple[ChainLatency, ...] = ()
    throughput: tuple[ChainThroughput, ...] = ()


def derive_chains(run: Run, results: Sequence[Result]) -> Chains:
    """Return the chains of at least two functions of which one was measured alone, on the same switch and test point.

    ``throughput`` has the parts too, so that it can be read by length.
    """
    by_point = {result.point: result for result in results if result.point.chained}
    trials = run.by_point()
    chains = [point for point in by_point if any(part in by_point for part in part_points(point, by_point))]
    shown = {*chains, *(part for point in chains for part in part_points(point, by_point))}
    return Chains(
        tuple(found for point in chains for found in _latencies(point, by_point, trials)),
        tuple(_throughput(by_point[point], by_point, trials) for point in by_point if point in shown),
    )


def part_points(point: Point, measured: Collection[Point] = ()) -> tuple[Point, ...]:
    """Return the points of the functions of a chain alone, in path order; empty for a chain of one.

    Where a function alone may be written in two ways, the one that was ``measured`` is meant.
    """
    texts = vnf_texts(point.chain, point.chain_length)
    if len(texts) < 2:
        return ()
    return tuple(_alone(point, text, measured) for text in texts)


def _alone(point: Point, text: str, measured: Collection[Point]) -> Point:
    """Return the point of a function run as a chain of one, in what it runs in the chain."""
    ways = [
        replace(point, chain=chain, hosting=hosting, chain_length=1)
        for chain, hosting in as_chains_of_one(text, point.hosting)
    ]
    return next((way for way in ways if way in measured), ways[0])


# --- Latency ---------------------------------------------------------------------------------------------------------


def _latencies(
    point: Point, results: Mapping[Point, Result], trials: Mapping[Point, Sequence[Trial]]
) -> Iterator[ChainLatency]:
    """Yield the latency at every fixed load of the chain: shares of R+ are other loads for its functions."""
    loads = dict.fromkeys(t.load.label for t in _at_rates(trials[point]))
    ordered = [summary.load for summary in results[point].latency if summary.load in loads]
    yield from (_latency(point, load, trials) for load in ordered)


def _at_rates(trials: Iterable[Trial]) -> Iterator[Trial]:
    return (t for t in trials if t.role == "latency" and t.load.pps_per_direction and t.load.label.endswith("pps"))


def _latency(point: Point, load: str, trials: Mapping[Point, Sequence[Trial]]) -> ChainLatency:
    """Compare the accepted trials of chain and functions in one band, preferably the most frequent band of the
    chain."""
    sides = [point, *part_points(point, trials)]
    usable = [[t for t in _at_rates(trials.get(side, ())) if t.load.label == load and _carried(t)] for side in sides]
    for side, found in zip(sides, usable, strict=True):
        if not found:
            whose = "the chain" if side is point else f"{side.chain_label} alone"
            return ChainLatency(point, load, None, (), None, note=f"all trials of {whose} at this load were rejected")
    bands = [band for band in _bands(usable[0]) if all(any(t.band == band for t in side) for side in usable)]
    if not bands:
        return ChainLatency(
            point,
            load,
            None,
            (),
            None,
            note="not comparable: chain and functions were measured in different core-to-core latency groups",
        )
    means = [[_mean_us(t) for t in side if t.band == bands[0]] for side in usable]
    labels = [side.chain_label for side in sides[1:]]
    return ChainLatency(
        point,
        load,
        statistics.fmean(means[0]),
        tuple(Part(label, statistics.fmean(values)) for label, values in zip(labels, means[1:], strict=True)),
        sum_effect(means[0], means[1:]),
        bands[0],
        min(map(len, means)),
        _few(min(map(len, means))),
    )


def _bands(trials: Sequence[Trial]) -> list[str | None]:
    bands = [trial.band for trial in trials]
    return sorted(set(bands), key=lambda band: (-bands.count(band), str(band)))


def _carried(trial: Trial) -> bool:
    """Return whether the latency of a trial is accepted and was measured at the intended load."""
    intended = sum(d.intended_packets for d in trial.directions)
    came_back = trial.latency is not None and trial.latency.probes_received > 0
    return trial.verdict.kind is VALID and came_back and trial.forwarded_packets >= MIN_CARRIED * intended


def _mean_us(trial: Trial) -> float:
    summary = summarise(decode(trial.latency.histogram)) if trial.latency is not None else None
    return summary.mean if summary is not None else 0.0


def sum_effect(whole: Sequence[float], parts: Sequence[Sequence[float]], seed: int = 1) -> Effect:
    """Return mean(whole) / sum of mean(part), by bootstrap over the trials of each sample. No sample may be empty.

    A function that is in the chain twice was measured alone once: its sample is drawn once, and counts twice.
    Told from 1 where the interval excludes it, by more than MIN_EFFECT, and the trials lie apart: with few trials by
    more than either side spreads (a bootstrap of three values knows too little of their tails).
    """
    ratio = statistics.fmean(whole) / sum(map(statistics.fmean, parts))
    fewest = min(len(sample) for sample in (whole, *parts))
    if fewest < MIN_TRIALS:
        return Effect(ratio, None, None, False)
    below = {part: _resampled_means(part, [seed, i + 1]) for i, part in enumerate(dict.fromkeys(map(tuple, parts)))}
    drawn = _resampled_means(whole, [seed, 0]) / np.sum([below[tuple(part)] for part in parts], axis=0)
    interval = percentile_interval(drawn)
    excluded = not interval.lower <= 1 <= interval.upper
    told = excluded and abs(ratio - 1) >= MIN_EFFECT and _apart(whole, parts, fewest)
    return Effect(ratio, interval.lower, interval.upper, told)


def _resampled_means(sample: Sequence[float], seed: list[int]) -> NDArray[np.float64]:
    drawn = np.random.default_rng(seed).choice(np.asarray(sample), size=(RESAMPLES, len(sample)))
    return np.asarray(drawn.mean(axis=1))


def _apart(whole: Sequence[float], parts: Sequence[Sequence[float]], fewest: int) -> bool:
    low, high = sum(map(min, parts)), sum(map(max, parts))
    gap = max(min(whole) - high, low - max(whole))
    return gap > (0.0 if fewest >= CERTAIN_TRIALS else max(max(whole) - min(whole), high - low))


def _few(trials: int) -> str:
    return (
        ""
        if trials >= MIN_TRIALS
        else f"{trials} accepted trial{'s' * (trials > 1)} per side; at least {MIN_TRIALS} required"
    )


# --- Throughput ------------------------------------------------------------------------------------------------------


def _throughput(
    result: Result, results: Mapping[Point, Result], trials: Mapping[Point, Sequence[Trial]]
) -> ChainThroughput:
    point, bound = result.point, result.verdict.kind is LIMITED
    if not counts(result):
        return ChainThroughput(point, None, note=f"no accepted trial ({result.verdict.kind.value})")
    known = ChainThroughput(point, result.throughput_pps, bound)
    parts = list(dict.fromkeys(part_points(point, results)))
    alone = [results[part] for part in parts if part in results and counts(results[part])]
    if not parts:
        return known
    if len(alone) < len(parts):
        missing = [part.chain_label for part in parts if part not in {r.point for r in alone}]
        return replace(known, note=f"{', '.join(missing)} alone has no figure")
    slowest = min(alone, key=lambda r: r.throughput_pps or 0.0)
    if slowest.band != result.band:
        return replace(
            known, note="not comparable: chain and functions were measured in different core-to-core latency groups"
        )
    chosen = (choose_saturating(_saturating(trials[r.point]), r.band) for r in (slowest, result))
    before, after = ([t.throughput_pps for t in choice.trials] for choice in chosen)
    limited = slowest.verdict.kind is LIMITED
    effect = with_bounds(median_effect(before, after), limited, bound)
    note = "; ".join(filter(None, (_bounds(limited, bound), _few(min(len(before), len(after))))))
    return replace(known, against=slowest.point.chain_label, effect=effect, note=note)


def _saturating(trials: Iterable[Trial]) -> list[Trial]:
    return [t for t in trials if t.role == "r_plus"]


def _bounds(part: bool, chain: bool) -> str:
    which = " and ".join(name for name, is_bound in (("the function", part), ("the chain", chain)) if is_bound)
    return f"{which}: tester-limited (lower bound)" if which else ""


def told_words(effect: Effect | None) -> str:
    """Return ``less``, ``more``, or why neither is significant; the note says why nothing was tested."""
    if effect is None or (effect.low is None and effect.high is None):
        return "not tested"
    if not effect.distinguishable:
        return undecided_words(effect.low, effect.high, tested=True)
    return "less" if effect.ratio < 1 else "more"
