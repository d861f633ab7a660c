# SPDX-License-Identifier: BSD-3-Clause
"""The comparisons of a claim in a run, one function for each shape but those of ranks (planebench.papers.ordering)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from planebench.analysis.answers import ALPHA, estimate_alone
from planebench.analysis.counting import latency_counts, saturating, search_counts
from planebench.analysis.node_capacity import predictions
from planebench.analysis.noise import RESOLUTION
from planebench.analysis.starts import Blocks, blocks_of, by_start, noise_of_sides, throughput_blocks
from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.scenario import scenario_named
from planebench.model.server import clock_words, speed_of
from planebench.model.words import listed, load_words, mpps, percent, point_words, printable, us
from planebench.papers.claims import (
    ANY,
    ChainBelowParts,
    Claim,
    ClaimCell,
    ClaimMetric,
    Clocks,
    Compare,
    FarCores,
    LineRate,
    Minimum,
    NoLeader,
    Predicted,
    ShareClaim,
    Spread,
    TrendClaim,
)
from planebench.papers.data import PaperFigure, paper_figures
from planebench.papers.measured import UNITS, RunFigures, counterpart, expanded, fits, of_the_plan
from planebench.papers.told import Compared, FigureSample, Told, middle, reached, told
from planebench.testbed.rates import line_rate_pps

NEAR_CAPACITY = 0.8
"""Least share of R+ of the highest load at which a latency is expected to rise."""
FULL = 0.98
"""Minimum share of the line rate for a full line."""
LEAST_NS = 1.0
"""The least time of a part: shares are compared as logarithms, and zero has none."""

ClaimLimits = tuple[float | None, float | None]
"""A ratio is to be above the first and below the second; None is no limit."""


@dataclass
class PairsFound:
    """The comparisons of a claim in a run, and what the run lacks: ``absent`` are switches, by adapter."""

    compared: list[Compared] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    steps: list[Compared] = field(default_factory=list)
    """Comparisons that may refute the claim, and are not needed to confirm it."""

    def add(self, found: Compared | str) -> None:
        """Add a comparison, or the words for what is missing."""
        if isinstance(found, str):
            self.missing.append(found)
        else:
            self.compared.append(found)


@dataclass(frozen=True, slots=True)
class Spot:
    """A point at a load; the load is None where the metric has none."""

    point: Point
    load: str | None = None


def _points(found: PairsFound, measured: RunFigures, labels: Sequence[str], cell: ClaimCell) -> Iterator[Point]:
    """Yield the points of a cell, switch by switch; ``found`` is told of a switch that has none."""
    for label in labels:
        points = measured.points(label, cell)
        if not points:
            found.add(f"{printable(label)} {cell_words(cell)}")
        yield from points


def compare(claim: Claim, shape: Compare, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return the comparisons of a claim for ``labels``, each with itself or with its rivals."""
    found = PairsFound()
    for a, b in expanded(shape.each, shape.a, shape.b):
        for point in _points(found, measured, labels, a):
            for other in measured.labels(shape.rivals) if shape.rivals else [point.switch]:
                sides = Spot(point, a.load), Spot(counterpart(point, b, other), b.load or a.load)
                found.add(_judged(claim, shape.metric, (shape.above, shape.below), measured, *sides))
    if absent := measured.absent(shape.rivals):
        found.add(f"a switch to set it against ({', '.join(absent)})")
        found.absent += absent
    return found


def trend(claim: Claim, shape: TrendClaim, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return the last value of the axis against the first, and the steps between neighbors, which may refute it."""
    found, values = PairsFound(), ", ".join(map(str, shape.values))
    axis = {"chain_length": "number of VNFs", "frame_size_bytes": "frame size"}[shape.over]
    for (cell,) in expanded(shape.each, shape.cell):
        for label in labels:
            groups: dict[Point, dict[int, Point]] = {}
            for value in shape.values:
                for point in measured.points(label, cell.model_copy(update={shape.over: value})):
                    same = counterpart(point, ClaimCell(**{shape.over: shape.values[0]}), label)
                    groups.setdefault(same, {})[value] = point
            usable = [list(group.values()) for group in groups.values() if len(group) > 1]
            if not usable:
                found.add(f"{printable(label)} {cell_words(cell)} with two of {values} as its {axis}")
            for points in usable:
                spots = [Spot(point, cell.load) for point in points]
                limits: ClaimLimits = (1.0, None) if shape.goes == "up" else (None, 1.0)
                found.add(_judged(claim, shape.metric, limits, measured, spots[-1], spots[0]))
                for before, after in pairwise(spots):
                    step = _judged(claim, shape.metric, limits, measured, after, before)
                    if len(spots) > 2 and isinstance(step, Compared):
                        found.steps.append(step)
    return found


def _judged(
    claim: Claim, metric: ClaimMetric, limits: ClaimLimits, measured: RunFigures, a: Spot, b: Spot
) -> Compared | str:
    one, other = (measured.sample(spot.point, metric, spot.load) for spot in (a, b))
    if one is None or other is None:
        return spot_words(a if one is None else b)
    holds, answer = judged(one, other, limits)
    figures = [paper_figure(claim.paper, metric, measured.adapters.get(spot.point.switch, ""), spot) for spot in (a, b)]
    values = [figure.value if figure else None for figure in figures]
    return Compared(
        f"{spot_words(a)} against {_differs(b, a)}",
        f"{one.shown} against {other.shown} {UNITS[metric]}",
        holds,
        answer,
        values[0] / values[1] if values[0] is not None and values[1] is not None else None,
    )


def no_leader(claim: Claim, shape: NoLeader, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return for each switch whether another one of the paper is ahead of it in one of the cells.

    A leader is ahead of every other in every cell that the run has, of which there are two or more. A switch that is
    not there may be the one.
    """
    found = PairsFound()
    rivals = measured.labels(claim.switches)
    cells = [cell for cell in shape.cells if sum(bool(measured.points(label, cell)) for label in rivals) > 1]
    there = [label for label in rivals if any(measured.points(label, cell) for cell in cells)]
    found.absent += sorted({*claim.switches} - {measured.adapters[label] for label in there})
    if found.absent or len(cells) < 2:
        found.add(f"all of the paper's switches in two of the scenarios (not: {', '.join(found.absent) or 'two'})")
    for label in labels if len(cells) > 1 else ():
        known: list[tuple[Point, Point, Told]] = []
        for point in (it for cell in cells for it in measured.points(label, cell)):
            own = measured.sample(point, "throughput")
            for rival in (replace(point, switch=other) for other in there if other != label):
                its = measured.sample(rival, "throughput")
                if own is not None and its is not None:
                    known.append((point, rival, told(its, own)))
        if known:
            found.add(_leads(label, known, not found.absent and all(measured.points(label, it) for it in cells)))
    return found


def _leads(label: str, answers: Sequence[tuple[Point, Point, Told]], everywhere: bool) -> Compared:
    """Return the strongest case of another switch ahead; or that there is none.

    ``everywhere``: all others are there, and the switch in all cells, without which it leads nowhere for certain.
    """
    ahead = [it for it in answers if it[2].above]
    if ahead:
        one, two, answer = min(ahead, key=lambda it: it[2].p_value or 0.0)
        p_value = min((answer.p_value or 0.0) * len(answers), 1.0)  # the best of so many
        answer = replace(answer, p_value=p_value)
        what = f"{printable(two.switch)} against {spot_words(Spot(one))}"
        return Compared(what, "ahead" if p_value < ALPHA else "perhaps ahead", p_value < ALPHA or None, answer)
    what, scenarios = printable(label), listed([*dict.fromkeys(one.scenario for one, *_ in answers)])
    if everywhere and all(it.above is False for *_, it in answers):
        p_value = max(it.p_value or 0.0 for *_, it in answers)
        return Compared(what, f"ahead of the others in {scenarios}", False, Told(None, above=False, p_value=p_value))
    why = "neither ahead everywhere nor behind anywhere for certain"
    return Compared(what, f"compared with the others in {scenarios}", None, Told(None, why=why))


def minimum(claim: Claim, shape: Minimum, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return for each point whether the mean latency at a load between the ends is below that at both ends."""
    found = PairsFound()
    for point in _points(found, measured, labels, shape.cell):
        found.add(_inside(point, shape.loads, measured))
    return found


def _inside(point: Point, loads: Sequence[str], measured: RunFigures) -> Compared | str:
    samples = {load: measured.sample(point, "latency", load) for load in loads}
    known = [(load, sample) for load, sample in samples.items() if sample is not None and sample.counts]
    words = spot_words(Spot(point))
    if len(known) < 3:
        return f"{words} at three of the loads {', '.join(map(load_words, loads))}"
    (first, low), *inner, (last, high) = known
    result = measured.by_point[point]
    reached = next((s.intended_pps for s in result.latency if s.load == last), 0.0)
    if not result.throughput_pps or reached < NEAR_CAPACITY * result.throughput_pps:
        return f"{words} at a load near its capacity ({load_words(last)} is not)"
    best, least = min(inner, key=lambda it: middle(it[1]))
    ends = [_best_of(len(inner), told(end, least)) for end in (low, high)]
    figures = f"{low.shown}, {least.shown} and {high.shown} µs at {', '.join(map(load_words, (first, best, last)))}"
    # One end that is below decides, else one that is not told apart, else the less certain one.
    answer = max(ends, key=lambda it: (it.above is False, it.above is None, it.p_value or 0.0))
    return Compared(words, figures, answer.above, answer, with_ratio=False)


def _best_of(chosen_from: int, it: Told) -> Told:
    """Return what was told of the least of so many: that it is the least is by chance, too (Bonferroni)."""
    if it.above is not True or it.p_value is None:
        return it
    p_value = min(1.0, chosen_from * it.p_value)
    if p_value < ALPHA:
        return replace(it, p_value=p_value)
    return replace(it, p_value=p_value, above=None, why="not certain for the least of several loads")


def spread(claim: Claim, shape: Spread, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare, for each switch, the variance of what a search finds with that of R+, over its points (F test)."""
    from scipy import stats

    found = PairsFound()
    for label in labels:
        of_search: list[Sequence[float]] = []
        of_rate: list[Sequence[float]] = []
        without = Counter[VerdictKind]()
        for point, result in measured.by_point.items():
            searches = [s for s in result.searches if s.method == shape.search and point.switch == label]
            ended = [s for s in searches if search_counts(s) and not s.is_bound]
            rates = [s.lower_pps for s in ended if s.lower_pps]
            without.update(s.verdict.kind for s in searches if s not in ended)
            # A search is of its start wherever the host had the cores, so R+ is of all starts here, far ones too.
            of_starts = by_start(throughput_blocks(saturating(measured.derived.trials[point]).trials))
            if len(rates) > 1 and len(of_starts) > 1:
                of_search.append(rates)
                of_rate.append([math.exp(it) for it in of_starts])
        what = f"{printable(label)}, standard deviation of {shape.search}"
        if of_search:
            (variance, degrees), (of_rates, degrees_of_rates) = map(_variance, (of_search, of_rate))
            ratio = variance / of_rates
            law = stats.f(degrees, degrees_of_rates)
            p_value = 2 * min(float(law.sf(ratio)), float(law.cdf(ratio)))
            low, high = (math.sqrt(ratio / float(law.ppf(q))) for q in (1 - ALPHA / 2, ALPHA / 2))
            above = ratio > 1 if p_value < ALPHA else None
            why = "" if above is not None else "too few starts for this difference in spread"
            answer = Told(math.sqrt(ratio), low, high, above, why, p_value)
            figures = f"{percent(math.sqrt(variance))} against {percent(math.sqrt(of_rates))} of R+"
            found.add(Compared(what, figures, above, answer))
        elif without.total() > 1:
            ((kind, _),) = without.most_common(1)
            why = f"no two searches of a point came to a rate that is no bound ({kind.value})"
            found.add(Compared(what, f"{without.total()} searches without one", None, Told(None, why=why)))
        else:
            found.add(f"{printable(label)} with a search in several starts (--search {shape.search} --search-starts 5)")
    return found


def _variance(samples: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the variance of the logarithms that samples have in common, and its degrees of freedom.

    It is not below what counters and clocks tell apart.
    """
    degrees = sum(len(values) - 1 for values in samples)
    squares = sum(float(np.var(np.log(values), ddof=1)) * (len(values) - 1) for values in samples)
    return max(squares / degrees, RESOLUTION**2), degrees


def predicted(claim: Claim, shape: Predicted, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare the throughput of each chain of a cell with its prediction from a chain of one and v2v."""
    found = PairsFound()
    for it in predictions(measured.derived):
        if it.point.switch not in labels or not fits(it.point, shape.cell):
            continue
        sample = measured.sample(it.point, "throughput")
        words = spot_words(Spot(it.point))
        estimate = it.by_distance.get("near") if measured.has_near else it.estimate
        if sample is None or (measured.has_near and estimate is None):
            found.add(words)
            continue
        pps = math.exp(estimate.mean) if measured.has_near and estimate is not None else it.pps
        kind = VerdictKind.TESTER_LIMITED if it.is_bound else VerdictKind.VALID
        shown = ("≥" if it.is_bound else "") + mpps(pps)
        wanted = FigureSample((pps,), kind, shown, estimate)
        holds, answer = judged(sample, wanted, (1 - shape.within, 1 + shape.within))
        figures = f"{sample.shown} against {shown} Mpps"
        found.add(Compared(f"{words} against loopback-1 and v2v", figures, holds, answer))
    if not found.compared:
        found.add(f"v2v, loopback-1 and longer chains of one switch, {cell_words(shape.cell)}")
    return found


def line_rate(claim: Claim, shape: LineRate, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare the throughput of each cell with a line of 10 Gb/s, which the run must have been able to fill."""
    found = PairsFound()
    for cells, full in ((shape.cells, True), (shape.short, False)):
        for cell in cells:
            for point in _points(found, measured, labels, cell):
                found.add(_filled(measured, point, full))
    return found


def _filled(measured: RunFigures, point: Point, full: bool) -> Compared | str:
    """Return whether a point fills the line, or does not, as ``full`` says."""
    words = spot_words(Spot(point))
    # The mean size of the frames of a traffic profile; without one, of all frames.
    sent = measured.by_point[point].sent
    packets, size = sum(it.packets for it in sent), sum(it.bytes for it in sent)
    line = line_rate_pps(size / packets if packets else point.frame_size_bytes)
    highest = measured.derived.run.header.settings.get("max_rate_pps")
    if isinstance(highest, int | float) and highest < FULL * line:
        return f"{words} at the rate of a line: --max-rate {line / 1e6:.3f}M or none"
    whole = line * (2 if point.direction == "bidirectional" else 1)
    sample = measured.sample(point, "throughput")
    assert sample is not None  # of a point that the run has
    if len(sample.values) > 1 and min(sample.values) >= FULL * whole:  # a full line has none of the noise of others
        sample = replace(sample, estimate=estimate_alone(sample.values))
    answer = reached(sample, FULL * whole)
    holds = None if answer.above is None else answer.above is full
    return Compared(words, f"{sample.shown} of {mpps(whole)} Mpps", holds, answer, with_ratio=False)


def far_cores(claim: Claim, shape: FarCores, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare each point on far cores with itself on near ones: it was measured on both where trials of both count."""
    found = PairsFound()
    of_what = "(core-to-core latency, not NUMA)"
    for point in _points(found, measured, labels, shape.cell):
        far, near = (measured.in_band(point, band) for band in ("far", "near"))
        words = spot_words(Spot(point))
        if far is None or near is None:
            found.add(f"{words} on far and on near cores {of_what}")
            continue
        holds, answer = judged(far, near, (None, shape.below))
        figures = f"{far.shown} Mpps on far cores against {near.shown} on near cores {of_what}"
        found.compared.append(Compared(words, figures, holds, answer))
    return found


def clocks(
    claim: Claim, shape: Clocks, measured: RunFigures, labels: Sequence[str], *, emulated: bool = False
) -> PairsFound:
    """Compare each point at the highest CPU clock of the run with itself at the lowest one.

    ``emulated``: at clocks that are emulated by waiting, instead of those that a CPU was set to.
    """
    found = PairsFound()
    for label in labels:
        for slow, fast in measured.by_clock(label, shape.cell, emulated=emulated):
            a, b = (it for point in (fast, slow) if (it := measured.sample(point, "throughput")))
            ratio = speed_of(fast.cpu_clock)[1] / speed_of(slow.cpu_clock)[1]
            holds, answer = judged(a, b, (ratio * (1 - shape.within), ratio * (1 + shape.within)))
            words = f"{spot_words(Spot(fast))} against {clock_words(slow.cpu_clock)}"
            found.compared.append(Compared(words, f"{a.shown} against {b.shown} Mpps", holds, answer))
    if not found.compared:
        found.add(f"{cell_words(shape.cell)} at two CPU clocks (--cpu-mhz)")
    return found


def share(claim: Claim, shape: ShareClaim, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare the bounds of a part's share in each latency with stamped probes with the claim.

    The noise between starts is what the shares of all places have in common, as that of throughputs.
    """
    found = PairsFound()
    kinds = (shape.part, "hosting") if shape.part == "switch" else (shape.part,)  # the papers' switch serves VMs
    bounds: dict[Spot, tuple[Blocks, Blocks]] = {}
    for label in labels:
        for result in measured.derived.results:
            wanted = result.point.switch == label and of_the_plan(result.point, shape.chain)
            wanted = wanted and shape.hosting in ("", result.point.hosting)
            for summary in filter(latency_counts, result.latency if wanted else ()):
                trials = measured.derived.latency_trials(result)[summary.load].trials
                low, high = (blocks_of(trials, partial(_share, kinds=kinds, highest=it)) for it in (False, True))
                if low and high:
                    bounds[Spot(result.point, summary.load)] = low, high
    noises = [noise_of_sides((spot.point, sides[it]) for spot, sides in bounds.items()) for it in (0, 1)]
    for spot, sides in bounds.items():
        words: list[str] = []
        answers: list[Told] = []
        for blocks, noise in zip(sides, noises, strict=True):
            logs = by_start(blocks)
            shares = tuple(map(math.exp, logs))
            words.append(percent(sum(shares) / len(shares)))
            sample = FigureSample(shares, VerdictKind.VALID, words[-1], noise.estimate(blocks))
            answers.append(reached(sample, shape.above))
        # The lower bound is above the limit, or the upper one below, or neither.
        low_end, high_end = answers
        holds, answer = (False, high_end) if high_end.above is False else (None, low_end)
        if low_end.above:
            holds, answer = True, low_end
        elif holds is None and low_end.above is False:
            answer = replace(low_end, above=None, why="waits for polls decide: the limit lies between the bounds")
        figures = f"{words[0]} to {words[1]} of the latency"
        found.add(Compared(spot_words(spot), figures, holds, answer, with_ratio=False))
    if not found.compared:
        found.add("valid latency with its anatomy and bounds (--anatomy)")
    return found


def _share(trial: Trial, *, kinds: Sequence[str], highest: bool) -> float | None:
    """Return the lowest or highest share of some parts of the way in the mean latency of a trial; None if unknown."""
    anatomies = [anatomy for anatomy in trial.anatomy if not anatomy.problem and anatomy.sum_ns]
    parts = [part for a in anatomies for part in a.parts if part.kind in kinds]
    bounds = [part.high_ns if highest else part.low_ns for part in parts]
    if not bounds:
        return None
    return max(sum(bounds), LEAST_NS) / sum(a.sum_ns for a in anatomies)


def chain_below_parts(claim: Claim, shape: ChainBelowParts, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare each chain of a cell with its functions measured alone."""
    found = PairsFound()
    for it in measured.derived.chains.latency:
        if it.point.switch not in labels or it.load != shape.cell.load or not fits(it.point, shape.cell):
            continue
        what = spot_words(Spot(it.point, it.load))
        effect = it.effect
        if it.mean_us is None or it.sum_us is None or effect is None:
            found.add(f"{what}: {it.note}")
            continue
        above = effect.ratio > 1 if effect.distinguishable else None
        why = "" if effect.distinguishable else it.note or "difference below the measurement noise"
        answer = Told(effect.ratio, effect.low, effect.high, above, why)
        words = f"{us(it.mean_us)} for {us(it.sum_us)} µs"
        found.add(Compared(what, words, None if above is None else not above, answer))
    if not found.compared:
        found.add(f"latency of a chain and of its functions alone, {cell_words(shape.cell)}")
    return found


SHAPES: Mapping[str, Callable[..., PairsFound]] = {
    "compare": compare,
    "trend": trend,
    "line_rate": line_rate,
    "no_leader": no_leader,
    "minimum": minimum,
    "spread": spread,
    "predicted": predicted,
    "share": share,
    "chain_below_parts": chain_below_parts,
    "far_cores": far_cores,
    "clocks": clocks,
}
"""The comparisons of each shape, by its field of a claim."""


def compared(claim: Claim, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return the comparisons of a claim for some switches."""
    shapes = ((make, getattr(claim, name)) for name, make in SHAPES.items())
    return next(make(claim, shape, measured, labels) for make, shape in shapes if shape is not None)


def judged(a: FigureSample, b: FigureSample, limits: ClaimLimits) -> tuple[bool | None, Told]:
    """Return whether a / b lies within the limits, and the answer for the limit that decides."""
    answers = [
        (told(a, b, limit), wanted) for limit, wanted in zip(limits, (True, False), strict=True) if limit is not None
    ]
    for answer, wanted in answers:
        if answer.above is not None and answer.above is not wanted:
            return False, answer
    for answer, _ in answers:
        if answer.above is None:
            return None, answer
    return True, max((answer for answer, _ in answers), key=lambda it: it.p_value or 0.0)


def spot_words(spot: Spot) -> str:
    """Return a point and its load in words: ``vpp loopback-2 → 64 B at 50 % of R+``."""
    load = f" at {load_words(spot.load)}" if spot.load else ""
    return f"{printable(spot.point.switch)} {point_words(spot.point)}{load}"


def cell_words(cell: ClaimCell) -> str:
    """Return what a cell requires, in words: ``p2p unidirectional 64 B at 50 % of R+``."""
    name: str = cell.scenario or ""
    beside = bool(cell.scenario) and scenario_named(name).side_by_side
    if cell.chain_length and (cell.chain is None or beside):
        name += f"-{cell.chain_length}"
    size = f"{cell.frame_size_bytes} B" if cell.frame_size_bytes else ""
    chain, traffic = ("" if it == ANY else it for it in (cell.chain, cell.traffic))
    load = f"at {load_words(cell.load)}" if cell.load else ""
    placed = f"placed {cell.placement}" if cell.placement else ""
    return " ".join(filter(None, (name, chain, placed, cell.direction, size, traffic, load)))


def _differs(b: Spot, a: Spot) -> str:
    """Return ``b`` in words, reduced to its load or its switch where only that differs from ``a``."""
    if b.point == a.point and b.load:
        return load_words(b.load)
    if spot_words(b).removeprefix(printable(b.point.switch)) == spot_words(a).removeprefix(printable(a.point.switch)):
        return printable(b.point.switch)
    return spot_words(b).removeprefix(f"{printable(a.point.switch)} ")


def paper_figure(paper: str, metric: ClaimMetric, switch: str, spot: Spot) -> PaperFigure | None:
    """Return the published figure of a switch at a point and load; None if the paper has none."""
    wanted, point = "latency" if metric == "latency" else "throughput", spot.point
    if point.chain or point.traffic or metric in ("jitter", "deviation"):
        return None
    for figure in paper_figures():
        key = figure.paper, figure.metric, figure.switch, figure.scenario, figure.chain_length, figure.frame_size_bytes
        cell = point.scenario, point.chain_length, point.frame_size_bytes
        same_way = figure.direction in (None, point.direction)
        if key == (paper, wanted, switch, *cell) and same_way and figure.load == (spot.load or ""):
            return figure
    return None
