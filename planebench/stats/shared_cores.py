# SPDX-License-Identifier: BSD-3-Clause
"""How much of their cores switch and tester had: another hyperthread takes of them what no guest of a host can see.

Before and after each trial a plain loop is timed on the first CPU of the switch and of the tester
(``CoreDistance.additions_per_cycle``). What it reaches at best in a run is taken for a core alone, so a core that is
shared in all of a run, and always alike, is not found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Literal

from planebench.model.records import CoreDistance, Trial, VerdictKind

Owner = Literal["switch", "tester"]
OWNERS: tuple[Owner, ...] = ("switch", "tester")
ALONE = 0.95
"""The share of the best figure from which on a core counts as alone."""


@dataclass(frozen=True, slots=True)
class SharedCore:
    """How often the core of the switch, or of the tester, was shared. ``least``: the least share of it that was had.

    ``cycles_ratio``: cycles per packet of the switches with a shared core, divided by those with the core alone, at the
    same test points and core distances, in saturating trials; None for the tester, and where no test point has both.
    """

    owner: Owner
    trials: int
    shared: int
    least: float
    cycles_ratio: float | None = None


def best_speed(distances: Iterable[CoreDistance | None]) -> float:
    """Return the most additions per cycle that a core had; 0 where none is known."""
    return max((speed for distance in distances if distance for speed in distance.additions_per_cycle), default=0.0)


def is_shared(speed: float, best: float) -> bool:
    """Return whether a core with this many additions per cycle was shared, where a core has ``best`` without that."""
    return speed < ALONE * best


def core_shares(trials: Iterable[Trial]) -> dict[int, tuple[float, float]]:
    """Return the share of their cores that switch and tester had in each trial, by its index.

    It is the smaller one of before and after. Trials in which it is not known have none.
    """
    known = {trial.index: speeds for trial in trials if (speeds := core_speeds(trial))}
    best = max((speed for pair in known.values() for speed in pair), default=0.0)
    return {index: (switch / best, tester / best) for index, (switch, tester) in known.items() if best > 0}


def shared_cores(trials: Iterable[Trial]) -> tuple[SharedCore, ...]:
    """Return how often the cores of switch and tester were shared; () where it is not known."""
    trials = [trial for trial in trials if trial.role != "warmup"]
    shares = core_shares(trials)
    if not shares:
        return ()
    of_owner = zip(*shares.values(), strict=True)
    ratios = (_cycles_ratio(trials, shares), None)
    return tuple(
        SharedCore(owner, len(found), sum(is_shared(share, 1.0) for share in found), min(found), ratio)
        for owner, found, ratio in zip(OWNERS, of_owner, ratios, strict=True)
    )


def core_speeds(trial: Trial) -> tuple[float, float] | None:
    """Return what the loop reached on the CPUs of switch and tester; None where one of the two times is missing."""
    both = [at.additions_per_cycle for at in (trial.evidence.distance_before, trial.evidence.distance_after) if at]
    if len(both) < 2 or any(len(speeds) != 2 or min(speeds) <= 0 for speeds in both):
        return None
    switch, tester = (min(speeds) for speeds in zip(*both, strict=True))
    return switch, tester


def _cycles_ratio(trials: Iterable[Trial], shares: dict[int, tuple[float, float]]) -> float | None:
    cycles: dict[object, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for trial in trials:
        needed = trial.switch.cycles_per_packet if trial.role == "r_plus" else None  # at a load, batches decide
        if needed and trial.index in shares and trial.band and trial.verdict.kind is not VerdictKind.INVALID:
            cycles[trial.point, trial.load, trial.band][is_shared(shares[trial.index][0], 1.0)].append(needed)
    ratios = [median(shared) / median(alone) for alone, shared in cycles.values() if alone and shared]
    return geometric_mean(ratios) if ratios else None
