# SPDX-License-Identifier: BSD-3-Clause
"""A chain compared with its functions measured alone: two claims of can17 that need no hardware of the paper.

Latency is compared with the sum of the functions at the same load in packets per second, throughput with the slowest
function. Pure. The rules are in docs/chains.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from planebench.analysis.answers import EXACT, MARGIN, Answer, Bounds, OneOfMany, answers
from planebench.analysis.counting import LIMITS, VALID, counts, saturating
from planebench.analysis.histogram import decode, summarise
from planebench.analysis.noise import Estimate
from planebench.analysis.starts import (
    Blocks,
    SidesNoise,
    at_same_distance,
    blocks_of,
    geometric_mean,
    noise_of_sides,
    throughput_blocks,
)
from planebench.model.chain_name import as_chains_of_one, vnf_texts
from planebench.model.header import Run
from planebench.model.records import Point, Trial
from planebench.model.results import AnswerKind, Result

MIN_CARRIED = 0.98
"""Minimum share of intended frames: a latency trial that forwards fewer measures full queues, not functions."""


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
    effect: Answer | None
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

    ``throughput_pps`` is None where no trial counts; ``bound``: a lower bound. ``note`` says why there is no ratio.
    """

    point: Point
    throughput_pps: float | None
    bound: bool = False
    against: str = ""
    effect: Answer | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chains:
    """Both claims for every chain of a run. Empty if no chain can be compared with its functions."""

    latency: tuple[ChainLatency, ...] = ()
    throughput: tuple[ChainThroughput, ...] = ()


ChainClaim = TypeVar("ChainClaim", bound=ChainLatency | ChainThroughput)


def derive_chains(run: Run, results: Sequence[Result]) -> Chains:
    """Return the chains of at least two functions of which one was measured alone, on the same switch and test point.

    ``throughput`` has the parts too, so that it can be read by length.
    """
    by_point = {result.point: result for result in results if result.point.chained}
    trials = run.by_point()
    chains = [point for point in by_point if any(part in by_point for part in part_points(point, by_point))]
    shown = {*chains, *(part for point in chains for part in part_points(point, by_point))}
    latency = []
    for point in chains:  # at every fixed load of the chain: shares of R+ are other loads for its functions
        fixed = {trial.load.label for trial in _at_rates(trials[point])}
        latency += [_latency(point, it.load, trials) for it in by_point[point].latency if it.load in fixed]
    throughput = [_throughput(by_point[point], by_point, trials) for point in by_point if point in shown]
    return Chains(tuple(_with_effects(latency)), tuple(_with_effects(throughput)))


@dataclass(frozen=True, slots=True)
class _ClaimDraft(Generic[ChainClaim]):
    """A claim without its effect: ``whole`` and ``parts`` are the figures that are compared; no parts, no effect.

    A part that is in the chain twice is there twice.
    """

    claim: ChainClaim
    whole: Blocks = ()
    parts: tuple[tuple[Point, Blocks], ...] = ()
    bounds: Bounds = EXACT


def _with_effects(drafts: Sequence[_ClaimDraft[ChainClaim]]) -> Iterator[ChainClaim]:
    """Yield the claims with their effects. All are one family: noise and confidence are those of all together."""
    cells: dict[tuple[Point, Blocks], None] = {}
    for draft in drafts:
        cells |= dict.fromkeys([(draft.claim.point, draft.whole), *draft.parts])
    noise = noise_of_sides(cells)
    family = []
    for draft in (it for it in drafts if it.parts):
        ratio = (geometric_mean(draft.whole) or 0.0) / sum(geometric_mean(blocks) or 0.0 for _, blocks in draft.parts)
        point = draft.claim.point
        family.append(OneOfMany(_estimate(draft, noise), draft.bounds, (point.switch, point.topology), ratio))
    told = iter(answers(family))
    for draft in drafts:
        if not draft.parts:
            yield draft.claim
            continue
        effect = next(told)
        note = "one start per side: how starts differ is not known" if effect.answer == "untested" else ""
        yield replace(draft.claim, effect=effect, note="; ".join(filter(None, (draft.claim.note, note))))


def _estimate(draft: _ClaimDraft[ChainClaim], noise: SidesNoise) -> Estimate | None:
    """Return the estimate of the logarithm of the whole over the sum of its parts, where all had the same core distance
    if they had one in common."""
    times = Counter(draft.parts)
    parts = {part: noise.by_distance(part[1]) for part in times}
    bands = set.intersection(*(set(it) for it in parts.values()))
    totals = {band: _sum([(it[band], times[part]) for part, it in parts.items()]) for band in bands}
    alike = at_same_distance(noise.by_distance(draft.whole), totals)
    if alike is not None:
        return alike
    whole, known = noise.estimate(draft.whole), [(noise.estimate(part[1]), times[part]) for part in times]
    found = [(it, number) for it, number in known if it is not None]
    return None if whole is None or len(found) < len(known) else whole.minus(_sum(found))


def _sum(parts: Sequence[tuple[Estimate, int]]) -> Estimate:
    """Return the estimate of the logarithm of a sum of independent parts, each with how often it is in it."""
    known = [(part, math.exp(part.mean) * number) for part, number in parts]
    total = sum(us for _, us in known)
    variances = [((us / total * part.error) ** 2, part.degrees) for part, us in known]
    variance = sum(it for it, _ in variances)
    degrees = variance**2 / sum(it**2 / d for it, d in variances)
    return Estimate(math.log(total), math.sqrt(variance), degrees, min(part.n for part, _ in known))


def part_points(point: Point, measured: Collection[Point] = ()) -> tuple[Point, ...]:
    """Return the points of the functions of a chain alone, in path order; empty for a chain of one.

    Where a function alone may be written in two ways, the one that was ``measured`` is meant.
    """
    texts = vnf_texts(point.chain, point.chain_length)
    if len(texts) < 2:
        return ()
    found = []
    for text in texts:
        ways = [
            replace(point, chain=chain, hosting=hosting, chain_length=1)
            for chain, hosting in as_chains_of_one(text, point.hosting)
        ]
        found.append(next((way for way in ways if way in measured), ways[0]))
    return tuple(found)


# --- Latency ---------------------------------------------------------------------------------------------------------


def _at_rates(trials: Iterable[Trial]) -> Iterator[Trial]:
    return (t for t in trials if t.role == "latency" and t.load.pps_per_direction and t.load.label.endswith("pps"))


def _latency(point: Point, load: str, trials: Mapping[Point, Sequence[Trial]]) -> _ClaimDraft[ChainLatency]:
    """Compare the trials of chain and functions that count."""
    sides = [point, *part_points(point, trials)]
    usable = [[t for t in _at_rates(trials.get(side, ())) if t.load.label == load and _carried(t)] for side in sides]
    for side, found in zip(sides, usable, strict=True):
        if not found:
            whose = "the chain" if side is point else f"{side.chain_label} alone"
            note = f"no trial of {whose} at this load counts"
            return _ClaimDraft(ChainLatency(point, load, None, (), None, note=note))
    whole, *parts = (blocks_of(found, _mean_us) for found in usable)
    named = zip(sides[1:], parts, strict=True)
    claim = ChainLatency(
        point,
        load,
        geometric_mean(whole),
        tuple(Part(side.chain_label, geometric_mean(blocks) or 0.0) for side, blocks in named),
        None,
        min(map(len, usable)),
    )
    return _ClaimDraft(claim, whole, tuple(zip(sides[1:], parts, strict=True)))


def _carried(trial: Trial) -> bool:
    """Return whether the latency of a trial is accepted and was measured at the intended load."""
    intended = sum(d.intended_packets for d in trial.directions)
    came_back = trial.latency is not None and trial.latency.probes_received > 0
    return trial.verdict.kind is VALID and came_back and trial.forwarded_packets >= MIN_CARRIED * intended


def _mean_us(trial: Trial) -> float:
    summary = summarise(decode(trial.latency.histogram)) if trial.latency is not None else None
    return summary.mean if summary is not None else 0.0


# --- Throughput ------------------------------------------------------------------------------------------------------


def _throughput(
    result: Result, results: Mapping[Point, Result], trials: Mapping[Point, Sequence[Trial]]
) -> _ClaimDraft[ChainThroughput]:
    point, bound = result.point, result.verdict.kind.is_bound
    if not counts(result):
        note = f"no trial counts ({result.verdict.kind.value})"
        return _ClaimDraft(ChainThroughput(point, None, note=note))
    known = ChainThroughput(point, result.throughput_pps, bound)
    parts = list(dict.fromkeys(part_points(point, results)))
    alone = [results[part] for part in parts if part in results and counts(results[part])]
    if not parts:
        return _ClaimDraft(known)
    if len(alone) < len(parts):
        missing = [part.chain_label for part in parts if part not in {r.point for r in alone}]
        return _ClaimDraft(replace(known, note=f"{', '.join(missing)} alone has no figure"))
    slowest = min(alone, key=lambda r: r.throughput_pps or 0.0)
    before, after = (throughput_blocks(saturating(trials[r.point]).trials) for r in (slowest, result))
    limited = slowest.verdict.kind.is_bound
    sides = ("the function", slowest.verdict.kind), ("the chain", result.verdict.kind)
    notes = (f"{name} is {LIMITS[kind]} (lower bound)" for name, kind in sides if kind in LIMITS)
    claim = replace(known, against=slowest.point.chain_label, note="; ".join(notes))
    return _ClaimDraft(claim, after, ((slowest.point, before),), Bounds(limited, bound))


_WORDS: Mapping[AnswerKind, str] = {
    "same": f"the same within {MARGIN * 100:.0f} %",
    "open": "open: more starts would decide it",
    "untested": "not tested",
}


def told_words(effect: Answer | None) -> str:
    """Return ``less``, ``more``, or why it is neither."""
    if effect is None:
        return "not tested"
    if effect.answer == "open" and effect.starts is None:
        return "open: only a lower bound is known" if None in (effect.low, effect.high) else "open"
    return _WORDS.get(effect.answer) or ("less" if effect.ratio < 1 else "more")
