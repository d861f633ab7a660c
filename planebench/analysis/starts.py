# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a test point by start of the switch: the samples that noise and intervals are estimated from.

A block is a repetition of a topology: all switches are measured in it one after the other, so the difference of two
switches within a block is free of what the whole machine did meanwhile.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planebench.analysis.disturbance import ALONE, OWNERS, core_shares
from planebench.analysis.noise import CELLS_MIN, Estimate, Noise, figure_of, fit_noise
from planebench.model import time_had
from planebench.model.grouped import grouped
from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.results import Stratum


@dataclass(frozen=True, slots=True)
class Block:
    """The logarithm of a figure in one block: the mean of its trials in one start.

    ``band``: the core distance of its trials; None where it is unknown, or they have several. ``full``: they filled the
    line, whose noise says nothing of that of others.
    """

    number: int
    start: int
    log: float
    band: str | None = None
    full: bool = False


Blocks = tuple[Block, ...]
Distances = Mapping[str | None, Estimate]
"""The estimate of a cell at each core distance that it had."""


def blocks_of(trials: Iterable[Trial], figure: Callable[[Trial], float | None]) -> Blocks:
    """Return the blocks of some trials in their order; those without a positive figure are left out."""
    found = grouped(
        ((trial.repetition, trial.start), (math.log(value), trial))
        for trial in trials
        if (value := figure(trial)) and value > 0
    )
    blocks = []
    for key, mine in sorted(found.items()):
        bands = {trial.band for _, trial in mine}
        band = bands.pop() if len(bands) == 1 else None
        full = all(trial.verdict.kind is VerdictKind.LINE_RATE for _, trial in mine)
        blocks.append(Block(*key, statistics.fmean(log for log, _ in mine), band, full))
    return tuple(blocks)


def throughput_blocks(trials: Iterable[Trial]) -> Blocks:
    """Return the blocks of the throughput per time that the pollers had."""
    return blocks_of(trials, time_had.rate_pps)


def counted_blocks(trials: Iterable[Trial]) -> Blocks:
    """Return the blocks of the throughput as it was counted, with what the host took."""
    return blocks_of(trials, lambda trial: trial.throughput_pps)


def cycles_blocks(trials: Iterable[Trial]) -> Blocks:
    """Return the blocks of the busy cycles per packet; empty for a switch that does not report them."""
    return blocks_of(trials, time_had.cycles_per_packet)


def by_start(blocks: Iterable[Block]) -> list[float]:
    """Return the mean logarithm of each start, in the order of the starts."""
    groups = grouped((block.start, block.log) for block in blocks)
    return [statistics.fmean(groups[key]) for key in sorted(groups)]


def geometric_mean(blocks: Blocks) -> float | None:
    """Return the geometric mean of the starts, whatever their core distances."""
    return figure_of(statistics.fmean(by_start(blocks))) if blocks else None


def paired(a: Blocks, b: Blocks) -> list[float]:
    """Return the differences b - a in the blocks that both have, averaged by start of the side with fewer starts.

    Blocks in which both had the same core distance, which no switch chooses, are enough where they are the most.
    Empty where more than half of the starts of either side have no partner: pairs would leave out too much.
    """
    both = _in_common(a, b)
    alike = [pair for pair in both if pair[0].band == pair[1].band]
    one_distance = 2 * len(alike) >= len(both)
    both = alike if one_distance else both
    starts = [{block.start for block in side} for side in (a, b)]
    found = [{pair[side].start for pair in both} for side in (0, 1)]
    if any(2 * len(some) < len(of_all) for some, of_all in zip(found, starts, strict=True)):
        return []
    fewer = min((0, 1), key=lambda side: len(found[side]))
    logs: dict[int, list[float]] = {}
    bands: dict[int, set[str | None]] = {}
    for pair in both:
        logs.setdefault(pair[fewer].start, []).append(pair[1].log - pair[0].log)
        bands.setdefault(pair[fewer].start, set()).add(pair[fewer].band if one_distance else None)
    return _at_one_distance([(statistics.fmean(logs[start]), frozenset(bands[start])) for start in sorted(logs)])


def _at_one_distance(values: Sequence[tuple[float, Hashable]]) -> list[float]:
    """Return differences with the mean that they have, and the variance that they have at the same core distance.

    That switches differ by more near than far is no noise of their ratio: they were near equally often.
    """
    groups = grouped((distance, value) for value, distance in values)
    if len(groups) < 2:
        return [value for value, _ in values]
    mean, left = statistics.fmean(value for value, _ in values), len(values) - len(groups)
    scale = math.sqrt((len(values) - 1) / max(left, 1))
    # One near and one far tell nothing of the noise: they are one observation.
    return [mean + scale * (log - statistics.fmean(groups[band])) for log, band in values] if left else [mean]


def at_same_distance(a: Distances, b: Distances) -> Estimate | None:
    """Return the difference a - b of two cells at the core distances that both had.

    Cells that are not measured together had near cores in different shares, which no switch chooses. None where the
    distances in common have less than half of the starts of either.
    """
    both = a.keys() & b.keys()
    known = both - {None} or both
    enough = all(2 * sum(it[band].n for band in known) >= sum(one.n for one in it.values()) for it in (a, b))
    if not known or not enough:
        return None
    found = [a[band].minus(b[band]) for band in sorted(known, key=str)]
    weights = [1 / it.error**2 for it in found]
    mean = sum(w * it.mean for w, it in zip(weights, found, strict=True)) / sum(weights)
    # All of them rest on the same variances, so their degrees of freedom do not add up.
    degrees = min(it.degrees for it in found)
    return Estimate(mean, 1 / math.sqrt(sum(weights)), degrees, sum(it.n for it in found))


def ratios_by_distance(a: Blocks, b: Blocks) -> dict[str, float]:
    """Return the ratio of the geometric means of b and a at each core distance that both had in common blocks."""
    alike = ((one, other) for one, other in _in_common(a, b) if one.band == other.band)
    found = grouped((other.band, other.log - one.log) for one, other in alike)
    return {band: figure_of(statistics.fmean(logs)) for band, logs in found.items() if band is not None}


def _in_common(a: Blocks, b: Blocks) -> list[tuple[Block, Block]]:
    """Return the blocks of b that a has, too, each behind that of a."""
    of_a = {block.number: block for block in a}
    return [(of_a[block.number], block) for block in b if block.number in of_a]


@dataclass(frozen=True, slots=True)
class SidesNoise:
    """What the noise of the starts of single switches has in common, over the cells of a run.

    ``noise``: whatever their core distance; ``at_one``: of starts at the same. ``shares``: of the starts of all cells
    at each distance. ``full``: the same of cells that filled the line in every block, which are apart.
    """

    noise: Noise
    at_one: Noise
    shares: Mapping[str | None, int]
    full: SidesNoise | None = None

    def _of(self, blocks: Blocks) -> SidesNoise:
        return self.full if self.full is not None and is_full(blocks) else self

    def estimate(self, blocks: Blocks) -> Estimate | None:
        """Return the estimate of a cell; None where nothing is known of its noise.

        That of one which had several core distances is at the shares that these have in the run, which no switch
        chooses, and knows what they change. So figures of switches stand to each other as their ratios say.
        """
        of = self._of(blocks)
        logs, distances = by_start(blocks), of.by_distance(blocks)
        mixed = {band: it.mean for band, it in distances.items() if band is not None}
        if len(mixed) < 2:
            return of.noise.estimate(logs)
        total, n = sum(of.shares[band] for band in mixed), len(logs)
        middle = sum(of.shares[band] * mean for band, mean in mixed.items()) / total
        between = sum(of.shares[band] * (mean - middle) ** 2 for band, mean in mixed.items()) / total
        within = next(it.error**2 * it.n for it in distances.values())
        degrees = min(2.0 * max(n - 1, 1), of.noise.degrees_max)
        return Estimate(middle, math.sqrt((within + between) / n), degrees, n)

    def by_distance(self, blocks: Blocks) -> Distances:
        """Return the estimate of a cell at each core distance; empty where nothing is known of the noise at one."""
        at_one, logs = self._of(blocks).at_one, _by_distance(blocks)
        left = sum(len(mine) - 1 for mine in logs.values())
        degrees = min(2.0 * max(left, 1), at_one.degrees_max)
        if degrees <= 0 or (not left and at_one.cells < CELLS_MIN):
            return {}
        own = sum(len(mine) * statistics.pvariance(mine) for mine in logs.values()) / max(left, 1)
        variance = max(own, at_one.variance)
        return {
            band: Estimate(statistics.fmean(mine), math.sqrt(variance / len(mine)), degrees, len(mine))
            for band, mine in logs.items()
        }


def noise_of_sides(cells: Iterable[tuple[Point, Blocks]], one_topology: bool = False) -> SidesNoise:
    """Return what the noise of the starts of single switches has in common, over the cells of a run.

    ``one_topology``: all cells share the starts, because a "start" is a whole run.
    """
    apart = grouped((is_full(blocks), (point, blocks)) for point, blocks in cells)
    found = _noise_of_sides(apart.get(False, []), one_topology)
    return replace(found, full=_noise_of_sides(apart[True], one_topology)) if True in apart else found


def is_full(blocks: Blocks) -> bool:
    """Return whether the line was full in every block."""
    return bool(blocks) and all(block.full for block in blocks)


def _noise_of_sides(cells: Sequence[tuple[Point, Blocks]], one_topology: bool) -> SidesNoise:
    degrees_max = sum(len(own) - 1 for own in _starts(cells, one_topology).values())
    distances = [_by_distance(blocks) for _, blocks in cells]
    alike = [_at_one_distance([(log, band) for band, logs in found.items() for log in logs]) for found in distances]
    return SidesNoise(
        fit_noise([by_start(blocks) for _, blocks in cells], degrees_max),
        fit_noise(alike, degrees_max),
        Counter(band for found in distances for band, logs in found.items() for _ in logs),
    )


def _by_distance(blocks: Blocks) -> dict[str | None, list[float]]:
    """Return the mean logarithms of the starts at each core distance."""
    return {band: by_start(mine) for band, mine in grouped((block.band, block) for block in blocks).items()}


def noise_of_pairs(pairs: Iterable[tuple[Point, Blocks, Point, Blocks]]) -> Noise:
    """Return what the noise of differences within blocks has in common, over the pairs and cells of a run."""
    pairs = list(pairs)
    starts = _starts([cell for p, a, q, b in pairs for cell in ((p, a), (q, b))])
    degrees = grouped((topology, len(own) - 1) for (topology, _), own in starts.items())
    # Each block of a topology has a mean of its own, which costs the degrees of freedom of one switch.
    return fit_noise([paired(a, b) for _, a, _, b in pairs], sum(sum(it) - max(it) for it in degrees.values()))


def _starts(
    cells: Sequence[tuple[Point, Blocks]], one_topology: bool = False
) -> Mapping[tuple[Hashable, str], set[int]]:
    """Return the starts of each switch on each topology: the cells of a topology share them."""
    found: dict[tuple[Hashable, str], set[int]] = {}
    for point, blocks in cells:
        topology = None if one_topology else point.topology
        found.setdefault((topology, point.switch), set()).update(block.start for block in blocks)
    return {key: own for key, own in found.items() if own}


# What explains a wide interval: the core distance, or another hyperthread on a core, differed between the trials.


def strata(trials: Sequence[Trial]) -> tuple[Stratum, ...]:
    """Return the throughput by core distance where trials have several; else by whose core was shared, if some were."""
    shares = core_shares(trials)

    def shared(place: int) -> Callable[[Trial], str | None]:
        def of(trial: Trial) -> str | None:
            if trial.index not in shares:
                return None
            alone = shares[trial.index][place] >= ALONE
            return f"core of the {OWNERS[place]} {'alone' if alone else 'shared'}"

        return of

    for of in (lambda trial: trial.band, *map(shared, range(len(OWNERS)))):
        groups = grouped((name, trial) for trial in trials if (name := of(trial)) is not None)
        found = [
            Stratum(name, rate, len(members))
            for name, members in groups.items()
            if (rate := geometric_mean(throughput_blocks(members))) is not None
        ]
        if len(found) > 1:
            return tuple(sorted(found, key=lambda it: -it.throughput_pps))
    return ()
