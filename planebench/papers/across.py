# SPDX-License-Identifier: BSD-3-Clause
"""Claims over several scenarios, loads, repetitions or chain lengths: shapes of which no one ratio decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planebench.analysis.answers import ALPHA
from planebench.analysis.counting import search_counts
from planebench.analysis.node_capacity import Prediction, predictions
from planebench.analysis.noise import RESOLUTION
from planebench.model.records import Point, VerdictKind
from planebench.model.words import listed, load_words, mpps, percent, printable
from planebench.papers.claims import Claim, Minimum, NoLeader, Predicted, Spread
from planebench.papers.comparing import PairsFound, Spot, cell_words, judged, spot_words
from planebench.papers.measured import RunFigures, fits
from planebench.papers.ordering import MIN_SWITCHES
from planebench.papers.told import Compared, FigureSample, Told, middle, told

NEAR_CAPACITY = 0.8
"""Least share of R+ of the highest load at which a latency is expected to rise."""


def no_leader(claim: Claim, shape: NoLeader, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Return for each switch whether another one of the paper is ahead of it in one of the cells.

    A leader is ahead of every other in every cell that the run has, of which there are two or more.
    """
    found = PairsFound()
    rivals = measured.labels(claim.switches)
    cells = [cell for cell in shape.cells if sum(bool(measured.points(label, cell)) for label in rivals) > 1]
    there = [label for label in rivals if any(measured.points(label, cell) for cell in cells)]
    if len(there) < MIN_SWITCHES or len(cells) < 2:
        missing = [cell_words(cell) for cell in shape.cells if cell not in cells]
        found.add(f"{MIN_SWITCHES} of the paper's switches in two cells at least, as {', '.join(missing)}")
        found.absent += measured.absent(claim.switches)
        return found
    for label in labels:
        points = [point for cell in cells for point in measured.points(label, cell)]
        pairs = [(point, replace(point, switch=other)) for point in points for other in there if other != label]
        answers = [(one, two, _against(measured, one, two)) for one, two in pairs]
        known = [(one, two, it) for one, two, it in answers if it is not None]
        if known:
            found.add(_leads(label, known, all(measured.points(label, cell) for cell in cells)))
    return found


def _against(measured: RunFigures, one: Point, two: Point) -> Told | None:
    """Return the throughput of ``two`` over that of ``one``; None if one of both was not measured."""
    samples = [measured.sample(point, "throughput", None) for point in (two, one)]
    return None if samples[0] is None or samples[1] is None else told(samples[0], samples[1])


def _leads(label: str, answers: Sequence[tuple[Point, Point, Told]], everywhere: bool) -> Compared:
    """Return the strongest case of another switch ahead; or that there is none.

    ``everywhere``: the switch was measured in all cells, without which it leads nowhere for certain.
    """
    ahead = [it for it in answers if it[2].above]
    if ahead:
        one, two, answer = min(ahead, key=lambda it: it[2].p_value or 0.0)
        p_value = min((answer.p_value or 0.0) * len(answers), 1.0)  # the best of so many
        answer = replace(answer, p_value=p_value)
        what = f"{printable(two.switch)} against {spot_words(Spot(one, None))}"
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
    for label in labels:
        points = measured.points(label, shape.cell)
        if not points:
            found.add(f"{printable(label)} {cell_words(shape.cell)}")
        for point in points:
            found.add(_inside(point, shape.loads, measured))
    return found


def _inside(point: Point, loads: Sequence[str], measured: RunFigures) -> Compared | str:
    samples = {load: measured.sample(point, "latency", load) for load in loads}
    known = [(load, sample) for load, sample in samples.items() if sample is not None and sample.counts]
    words = spot_words(Spot(point, None))
    if len(known) < 3:
        return f"{words} at three of the loads {', '.join(map(load_words, loads))}"
    (first, low), *inner, (last, high) = known
    result = measured.by_point[point]
    reached = next((s.intended_pps for s in result.latency if s.load == last), 0.0)
    if not result.throughput_pps or reached < NEAR_CAPACITY * result.throughput_pps:
        return f"{words} at a load near its capacity ({load_words(last)} is not)"
    best, least = min(inner, key=lambda it: middle(it[1]))
    ends = [told(low, least), told(high, least)]
    figures = f"{low.shown}, {least.shown} and {high.shown} µs at {', '.join(map(load_words, (first, best, last)))}"
    if all(it.above for it in ends):
        weaker = max(ends, key=lambda it: it.p_value or 0.0)
        return Compared(words, figures, True, weaker, with_ratio=False)
    against = next((it for it in ends if it.above is False), None)
    if against is not None:
        return Compared(words, figures, False, against, with_ratio=False)
    return Compared(words, figures, None, next(it for it in ends if it.above is None), with_ratio=False)


def spread(claim: Claim, shape: Spread, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare, for each switch, the variance of what a search finds with that of R+, over its points (F test)."""
    found = PairsFound()
    for label in labels:
        of_search, of_rate, without = _Variance(), _Variance(), Counter[VerdictKind]()
        for point, result in measured.by_point.items():
            searches = [s for s in result.searches if s.method == shape.search and point.switch == label]
            rates = [s.lower_pps for s in searches if s.lower_pps and search_counts(s)]
            without.update(s.verdict.kind for s in searches if not search_counts(s))
            sample = measured.sample(point, "throughput", None)
            if len(rates) > 1 and sample is not None and len(sample.values) > 1:
                of_search.add(rates)
                of_rate.add(sample.values)
        if of_search.degrees:
            found.add(_spreads(label, shape.search, of_search, of_rate))
        elif without.total() > 1:
            ((kind, _),) = without.most_common(1)
            why = f"no two searches of a point came to one ({kind.value})"
            what = f"{printable(label)}, standard deviation of {shape.search}"
            found.add(Compared(what, f"{without.total()} searches without a rate", None, Told(None, why=why)))
        else:
            found.add(f"{printable(label)} with a search in several starts (--search {shape.search} --search-starts 5)")
    return found


class _Variance:
    """The variance of the logarithms that samples have in common."""

    def __init__(self) -> None:
        self.degrees = 0
        self._sum = 0.0

    def add(self, values: Sequence[float]) -> None:
        """Add the figures of one point."""
        self.degrees += len(values) - 1
        self._sum += float(np.var(np.log(values), ddof=1)) * (len(values) - 1)

    @property
    def value(self) -> float:
        """Return the variance; not below what counters and clocks tell apart."""
        return max(self._sum / self.degrees, RESOLUTION**2)


def _spreads(label: str, search: str, a: _Variance, b: _Variance) -> Compared:
    from scipy import stats

    ratio = a.value / b.value
    law = stats.f(a.degrees, b.degrees)
    p_value = 2 * min(float(law.sf(ratio)), float(law.cdf(ratio)))
    low, high = (math.sqrt(ratio / float(law.ppf(q))) for q in (1 - ALPHA / 2, ALPHA / 2))
    above = ratio > 1 if p_value < ALPHA else None
    why = "" if above is not None else "too few starts for this difference in spread"
    answer = Told(math.sqrt(ratio), low, high, above, why, p_value)
    figures = f"{percent(math.sqrt(a.value))} against {percent(math.sqrt(b.value))} of R+"
    return Compared(f"{printable(label)}, standard deviation of {search}", figures, above, answer)


def predicted(claim: Claim, shape: Predicted, measured: RunFigures, labels: Sequence[str]) -> PairsFound:
    """Compare the throughput of each chain of a cell with its prediction from a chain of one and v2v."""
    found = PairsFound()
    for it in predictions(measured.derived):
        if it.way == "first" and it.point.switch in labels and fits(it.point, shape.cell):
            found.add(_prediction(it, shape, measured))
    if not found.compared:
        found.add(f"v2v, loopback-1 and longer chains of one switch, {cell_words(shape.cell)}")
    return found


def _prediction(it: Prediction, shape: Predicted, measured: RunFigures) -> Compared | str:
    sample = measured.sample(it.point, "throughput", None)
    words = spot_words(Spot(it.point, None))
    if sample is None:
        return words
    kind = VerdictKind.TESTER_LIMITED if it.is_bound else VerdictKind.VALID
    shown = ("≥" if it.is_bound else "") + mpps(it.pps)
    wanted = FigureSample((it.pps,), kind, shown, it.estimate)
    holds, answer = judged(sample, wanted, (1 - shape.within, 1 + shape.within))
    return Compared(f"{words} against loopback-1 and v2v", f"{sample.shown} against {shown} Mpps", holds, answer)
