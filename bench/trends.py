# SPDX-License-Identifier: BSD-3-Clause
"""Are steps of commits found beside ramps and changed environments? Fails below a bar.

    python bench/trends.py [--seeds 100] [--noise 0.007]

A history has 200 runs of as many commits: 12 steps of 2 to 10 % in either direction, two ramps of 3 to 5 % over 15 to
25 commits, three changes of the environment that move the figure by 2 to 6 %, and noise between runs.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from dataclasses import dataclass

from planebench.stats.trend import Sample, Series, Trend, find_trend

COMMITS = 200
STEPS, RAMPS, ENVIRONMENTS = 12, 2, 3
GAP = 6
"""Least number of commits from one event to the next."""
FACTS = ("kernel", "microcode", "firmware")
SERIES = Series("bed1", "vpp", "p2p/unidirectional/64/virtio/process", "throughput")

RECALL_MIN, FALSE_MAX = 10, 1


@dataclass(frozen=True)
class History:
    """A simulated history, and where it really changes, as the index of the first run after."""

    samples: tuple[Sample, ...]
    steps: tuple[int, ...]
    ramps: tuple[tuple[int, int], ...]
    environments: tuple[int, ...]


@dataclass(frozen=True)
class Score:
    """What was found of a history. ``unnamed``: changes of the environment that no step names."""

    recalled: int
    false: int
    unnamed: int


def make_history(seed: int, noise: float) -> History:
    """Return the history with this seed."""
    rng = random.Random(seed)
    events = ["step"] * STEPS + ["ramp"] * RAMPS + ["environment"] * ENVIRONMENTS
    rng.shuffle(events)
    lengths = [rng.randint(15, 25) if it == "ramp" else 0 for it in events]
    spare = COMMITS - sum(lengths) - GAP * (len(events) + 1)
    cuts = sorted(rng.randint(0, spare) for _ in events)
    log, environment = [0.0] * COMMITS, [0] * COMMITS
    found: dict[str, list[int]] = {"step": [], "ramp": [], "environment": []}
    used = 0
    for number, (event, length, cut) in enumerate(zip(events, lengths, cuts, strict=True)):
        at = GAP * (number + 1) + cut + used
        used += length
        found[event].append(at)
        size = math.log1p(
            rng.choice((-1, 1)) * rng.uniform(*{"step": (0.02, 0.1), "ramp": (0.03, 0.05)}.get(event, (0.02, 0.06)))
        )
        for i in range(at, COMMITS):
            log[i] += size * (min(1.0, (i - at + 1) / length) if length else 1.0)
            environment[i] += event == "environment"
    samples = tuple(_sample(i, 10e6 * math.exp(log[i] + rng.gauss(0, noise)), environment[i]) for i in range(COMMITS))
    ramps = tuple((at, at + length) for at, length in zip(found["ramp"], filter(None, lengths), strict=True))
    return History(samples, tuple(found["step"]), ramps, tuple(found["environment"]))


def _sample(number: int, figure: float, environment: int) -> Sample:
    moment = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T12:00:00Z"
    facts = {name: str(sum(k % len(FACTS) == i for k in range(environment))) for i, name in enumerate(FACTS)}
    commit = f"{number * 2654435761 % 2**32:08x}{number:032x}"
    return Sample(f"run-{number}", moment, figure, commit, moment, "vpp", facts=facts, minutes=2.0)


def score(history: History, trend: Trend) -> Score:
    """Compare what was found with what is there."""
    ranges = [(it, range(it.change.first + 1, it.change.last + 1)) for it in trend.steps]
    of_commits = [places for it, places in ranges if it.change.kind == "step" and it.cause == "commit"]
    true = {*history.steps, *history.environments}
    ramped = {i for first, last in history.ramps for i in range(first, last)}
    false = [
        it for it, places in ranges if not (true & set(places) if it.change.kind == "step" else ramped & set(places))
    ]
    named = [
        at for at in history.environments if any(it.cause == "environment" and at in places for it, places in ranges)
    ]
    recalled = sum(any(at in places for places in of_commits) for at in history.steps)
    return Score(recalled, len(false), len(history.environments) - len(named))


def judged(seed: int, noise: float = 0.007) -> Score:
    """Return the score of the history with this seed."""
    history = make_history(seed, noise)
    return score(history, find_trend(SERIES, history.samples))


def main() -> int:
    """Print the scores; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--noise", type=float, default=0.007)
    given = parser.parse_args()
    scores = [judged(seed, given.noise) for seed in range(given.seeds)]
    kept = [it.recalled >= RECALL_MIN and it.false <= FALSE_MAX and not it.unnamed for it in scores]
    recall, false, unnamed = ([getattr(it, name) for it in scores] for name in ("recalled", "false", "unnamed"))
    print(
        f"histories: recall {statistics.fmean(recall):.2f} of {STEPS} (least {min(recall)}), "
        f"false {statistics.fmean(false):.2f} (most {max(false)}), unnamed {sum(unnamed)}; "
        f"all bars in {sum(kept)} of {len(kept)}"
    )
    bars = statistics.fmean(recall) >= RECALL_MIN and statistics.fmean(false) <= FALSE_MAX
    return 0 if bars else 1


if __name__ == "__main__":
    sys.exit(main())
