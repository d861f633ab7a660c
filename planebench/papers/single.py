# SPDX-License-Identifier: BSD-3-Clause
"""Claims of one shape each: full line, far cores, share of the latency, chain and its functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planebench.analysis.chains import ChainLatency
from planebench.analysis.noise import Noise
from planebench.analysis.starts import Blocks, blocks_of, by_start, noise_of_sides
from planebench.model.cpu_clock import clock_words
from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.results import Result
from planebench.model.words import mpps, percent, printable, us
from planebench.papers.claims import Claim, Clocks, FarCores, LineRate, ShareClaim
from planebench.papers.comparing import PairsFound, Spot, cell_words, judged, spot_words
from planebench.papers.measured import RunFigures, of_the_plan
from planebench.papers.told import Compared, FigureSample, Told, reached
from planebench.testbed.rates import line_rate_pps

FULL = 0.98
"""Minimum share of the line rate for a full line."""
LINE_BPS = 1e10
"""The speed of the papers' NICs."""
LEAST_NS = 1.0
"""The least time of a part: shares are compared as logarithms, and zero has none."""


def line_rate(claim: Claim, shape: LineRate, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare the throughput of each cell with a line of 10 Gb/s, which the run must have been able to fill."""
    found = PairsFound()
    for cell in shape.cells:
        for label in labels:
            points = measured.points(label, cell)
            if not points:
                found.add(f"{printable(label)} {cell_words(cell)}")
            for point in points:
                found.add(_full(measured, point))
    return found


def _full(measured: RunFigures, point: Point) -> Compared | str:
    words = spot_words(Spot(point, None))
    line = line_rate_pps(_mean_sent_bytes(measured.by_point[point]) or point.frame_size_bytes)
    highest, speed = map(measured.derived.run.header.settings.get, ("max_rate_pps", "line_bps"))
    if isinstance(highest, int | float) and highest < FULL * line:
        return f"{words} at the rate of a line: --max-rate {line / 1e6:.3f}M or none"
    if isinstance(speed, int | float) and speed < LINE_BPS:
        return f"{words} on a line of 10 Gb/s: --line 10G or none"
    whole = line * (2 if point.direction == "bidirectional" else 1)
    sample = measured.sample(point, "throughput", None)
    assert sample is not None  # of a point that the run has
    answer = reached(sample, FULL * whole)
    return Compared(words, f"{sample.shown} of {mpps(whole)} Mpps", answer.above, answer, with_ratio=False)


def _mean_sent_bytes(result: Result) -> float | None:
    """Return the mean size of the frames that were sent with a traffic profile; None without one."""
    packets, size = (sum(getattr(sent, name) for sent in result.sent) for name in ("packets", "bytes"))
    return size / packets if packets else None


def far_cores(claim: Claim, shape: FarCores, measured: RunFigures) -> PairsFound:
    """Compare each point on far cores with itself on near ones: it was measured on both where trials of both count."""
    found = PairsFound()
    for label in measured.labels(claim.switches):
        points = measured.points(label, shape.cell)
        if not points:
            found.add(f"{printable(label)} {cell_words(shape.cell)}")
        for point in points:
            far, near = (measured.in_band(point, band) for band in ("far", "near"))
            words = spot_words(Spot(point, None))
            if far is None or near is None:
                found.add(f"{words} on far and on near cores (core-to-core latency, not NUMA)")
                continue
            holds, answer = judged(far, near, (None, shape.below))
            figures = (
                f"{far.shown} Mpps on far cores against {near.shown} on near cores (core-to-core latency, not NUMA)"
            )
            found.compared.append(Compared(words, figures, holds, answer))
    return found


def clocks(claim: Claim, shape: Clocks, measured: RunFigures, *, emulated: bool) -> PairsFound:
    """Compare each point at the highest CPU clock of the run with itself at the lowest one.

    ``emulated``: at clocks that are emulated by waiting, instead of those that a CPU was set to.
    """
    found = PairsFound()
    for label in measured.labels(claim.switches):
        for slow, fast in measured.by_clock(label, shape.cell, emulated=emulated):
            samples = [measured.sample(point, "throughput", None) for point in (fast, slow)]
            a, b = (sample for sample in samples if sample is not None)  # of points that the run has
            holds, answer = judged(a, b, (shape.above, None))
            words = f"{spot_words(Spot(fast, None))} against {clock_words(slow.cpu_clock)}"
            found.compared.append(Compared(words, f"{a.shown} against {b.shown} Mpps", holds, answer))
    if not found.compared:
        found.add(f"{cell_words(shape.cell)} at two CPU clocks (--cpu-mhz)")
    return found


def share(claim: Claim, shape: ShareClaim, measured: RunFigures) -> PairsFound:
    """Compare the bounds of a part's share in each latency with stamped probes with the claim.

    The noise between starts is what the shares of all places have in common, as that of throughputs.
    """
    found = PairsFound()
    kinds = (shape.part, "hosting") if shape.part == "switch" else (shape.part,)  # the papers' switch serves VMs
    bounds: dict[Spot, tuple[Blocks, Blocks]] = {}
    for label in measured.labels(claim.switches):
        for result in measured.derived.results:
            for summary in result.latency if result.point.switch == label and of_the_plan(result.point) else ():
                trials = measured.latency_trials(result.point, summary.load)
                low, high = (blocks_of(trials, partial(_share, kinds=kinds, highest=it)) for it in (False, True))
                if low and high:
                    bounds[Spot(result.point, summary.load)] = low, high
    noises = [noise_of_sides((spot.point, sides[it]) for spot, sides in bounds.items()) for it in (0, 1)]
    for spot, sides in bounds.items():
        low_sample, high_sample = map(_share_sample, sides, noises)
        found.add(_share_compared(spot, shape.above, low_sample, high_sample))
    if not found.compared:
        found.add("valid latency with its anatomy and bounds (--anatomy)")
    return found


def _share_sample(blocks: Blocks, noise: Noise) -> FigureSample:
    logs = by_start(blocks)
    shares = tuple(map(math.exp, logs))
    return FigureSample(shares, VerdictKind.VALID, percent(sum(shares) / len(shares)), noise.estimate(logs))


def _share_compared(spot: Spot, limit: float, lowest: FigureSample, highest: FigureSample) -> Compared:
    """Return the judgement of one latency: the lower bound is above the limit, or the upper one below, or neither."""
    low, high = reached(lowest, limit), reached(highest, limit)
    holds, answer = (True, low) if low.above else (False, high) if high.above is False else (None, low)
    if holds is None and low.above is False:
        answer = replace(low, above=None, why="waits for polls decide: the limit lies between the bounds")
    figures = f"{lowest.shown} to {highest.shown} of the latency"
    return Compared(spot_words(spot), figures, holds, answer, with_ratio=False)


def _share(trial: Trial, *, kinds: Sequence[str], highest: bool) -> float | None:
    """Return the lowest or highest share of some parts of the way in the mean latency of a trial; None if unknown."""
    anatomies = [anatomy for anatomy in trial.anatomy if not anatomy.problem and anatomy.sum_ns]
    parts = [part for a in anatomies for part in a.parts if part.kind in kinds]
    bounds = [part.high_ns if highest else part.low_ns for part in parts]
    if not bounds:
        return None
    return max(sum(bounds), LEAST_NS) / sum(a.sum_ns for a in anatomies)


def chain_below_parts(claim: Claim, measured: RunFigures) -> PairsFound:
    """Compare each chain of two functions or more with its functions measured alone."""
    found = PairsFound()
    wanted = set(measured.labels(claim.switches))
    for it in measured.derived.chains.latency:
        if it.point.switch in wanted:
            found.add(_chain(it))
    if not found.compared:
        found.add("latency of a chain and of its functions alone, at one fixed load (--chain, --rates)")
    return found


def _chain(it: ChainLatency) -> Compared | str:
    what = spot_words(Spot(it.point, it.load))
    if it.mean_us is None or it.sum_us is None or it.effect is None:
        return f"{what}: {it.note}"
    effect = it.effect
    above = effect.ratio > 1 if effect.distinguishable else None
    why = "" if effect.distinguishable else it.note or "difference below the measurement noise"
    words = f"{us(it.mean_us)} for {us(it.sum_us)} µs"
    return Compared(
        what, words, None if above is None else not above, Told(effect.ratio, effect.low, effect.high, above, why)
    )
