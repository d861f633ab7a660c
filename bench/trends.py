# SPDX-License-Identifier: BSD-3-Clause
"""What do trends and the gate find, and what do they find where nothing changed? Fails where a bar is missed.

    python bench/trends.py [--seeds 400]

Trends: histories of runs without a step, with one of -3 or -5 %, and with many, beside noise of several shapes. The
gate: runs of a base and of a change, each of 8 test points, in turns or not.

    false      share of histories with a step that is none
    found      share of histories whose step is found within three runs, or two boots
    in range   share of the steps found that are in their range of commits
    size       share of the intervals of the size of a step that hold it
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from planebench.analysis.compare import Comparisons
from planebench.analysis.gate import judge
from planebench.analysis.noise import fit_noise
from planebench.analysis.trend import find_changes
from planebench.model.results import Comparison

Floats = NDArray[np.float64]
Shape = Callable[[int, np.random.Generator], Floats]
"""Returns the logarithms of so many figures around one level."""

NOISE = 0.007
BOOT = 6
"""Runs of a boot."""
FALSE_MAX, IN_RANGE_MIN, COVERED_MIN = 0.05, 0.93, 0.9
LIMIT, CELLS, FINE = 0.97, 8, 0.003
"""Of the gate; test points of a run; noise of each of them beside that of the run."""


def regression(correlation: float, deviation: float = NOISE) -> Shape:
    """Return a first-order autoregression."""

    def draw(n: int, generator: np.random.Generator) -> Floats:
        found = generator.normal(0, deviation, n)
        for i in range(1, n):
            found[i] = correlation * found[i - 1] + math.sqrt(1 - correlation**2) * found[i]
        return found

    return draw


def mixed(share: float, factor: float) -> Shape:
    """Return noise in which a share of the runs has another level."""
    return lambda n, g: g.normal(0, NOISE, n) + np.where(g.random(n) < share, math.log(factor), 0.0)


def boots(n: int, generator: np.random.Generator) -> Floats:
    """Each boot has a level of its own, with a standard deviation of 1 %."""
    return generator.normal(0, NOISE, n) + np.repeat(generator.normal(0, 0.01, n // BOOT + 1), BOOT)[:n]


SHAPES: Mapping[str, Shape] = {
    "independent": regression(0),
    "AR(1) .5": regression(0.5),
    "AR(1) .8": regression(0.8),
    "level per boot": boots,
    "t3": lambda n, g: NOISE / math.sqrt(3) * g.standard_t(3, n),
    "in steps of 1 %": lambda n, g: np.round(g.normal(0, NOISE, n), 2),
    "30 % of runs -4 %": mixed(0.3, 0.96),
    "10 % of runs -10 %": mixed(0.1, 0.9),
}
EXEMPT = ("10 % of runs -10 %",)
"""Three of seven runs in a row are outliers in every third history: such a level is one, as far as runs tell."""


def history(seed: int, shape: str, n: int, factor: float) -> tuple[bool, bool, bool, bool]:
    """Return whether anything false was found in a history, its one step, and this in its range and with its size."""
    generator = np.random.default_rng([seed, n])
    logs, at = SHAPES[shape](n, generator), int(generator.integers(n // 5, n - n // 5))
    logs[at:] += math.log(factor)
    booted = shape == "level per boot"
    found = find_changes(np.exp(logs).tolist(), [str(i // BOOT) for i in range(n)] if booted else ())
    near = [it for it in found if factor != 1 and abs(it.at - at) <= (2 * BOOT if booted else 3)]
    ranged = any(it.first < at <= it.last for it in near)
    sized = any(it.estimate.p_value(math.log(factor)) >= 0.05 for it in near)
    return len(found) > len(near), bool(near), ranged, sized


def show_trends(seeds: int, pool: ProcessPoolExecutor) -> bool:
    """Print the table of the shapes; return whether all bars are met."""
    print(f"{'noise between runs':22} runs  false  -3 % found  -5 % found  in range  size")
    good = True
    for n in (60, 200):
        for shape in SHAPES:
            told = []
            for factor in (1.0, 0.97, 0.95):
                work = partial(history, shape=shape, n=n, factor=factor)
                told.append(np.mean(list(pool.map(work, range(seeds), chunksize=20)), axis=0))
            (false, *_), (_, small, *_), (_, large, *right) = told
            ranged, sized = (it / large if large else 1.0 for it in right)
            met = shape in EXEMPT or (false <= FALSE_MAX and ranged >= IN_RANGE_MIN and sized >= COVERED_MIN)
            good = good and met
            row = f"{shape:22} {n:4} {false:6.3f} {small:11.2f} {large:11.2f} {ranged:9.2f} {sized:5.2f}"
            print(f"{row}  {'' if met else 'MISSED'}".rstrip(), flush=True)
    return good


def many(seed: int, correlation: float) -> tuple[int, int]:
    """Return how many of 12 steps in 200 runs are in the range of one found, and how many of those found have none."""
    generator = np.random.default_rng(seed)
    places = 6 * np.sort(generator.choice(np.arange(1, 33), 12, replace=False))
    sizes = np.log1p(generator.uniform(0.02, 0.1, 12) * generator.choice([-1, 1], 12))
    logs = regression(correlation)(200, generator) + sum(
        np.where(np.arange(200) >= at, it, 0) for at, it in zip(places, sizes, strict=True)
    )
    ranges = [range(it.first + 1, it.last + 1) for it in find_changes(np.exp(logs).tolist())]
    return sum(any(at in it for it in ranges) for at in places), sum(
        not any(at in it for at in places) for it in ranges
    )


def gated(seed: int, noise: float, runs: int, factor: float, correlation: float = 0.0) -> str:
    """Return what the gate says of so many runs of each side in turns."""
    generator = np.random.default_rng([seed, runs])
    of_runs = regression(correlation, noise)(2 * runs, generator)
    each = generator.normal(0, FINE, (CELLS, 2 * runs)) + of_runs
    differences = each[:, 1::2] - each[:, ::2] + math.log(factor)
    shared = fit_noise(list(differences), runs - 1)
    compared = []
    for cell, sample in enumerate(differences):
        it = shared.estimate(sample.tolist())
        assert it is not None
        low, high = it.interval()
        known = {"log_error": it.error, "degrees": it.degrees}
        compared.append(
            Comparison("a", "b", str(cell), "throughput", math.exp(it.mean), low, high, "open", runs, runs, **known)
        )
    kinds = {it.kind for it in judge(Comparisons(tuple(compared), ()), LIMIT)}
    return "fails" if "fails" in kinds else "inconclusive" if "inconclusive" in kinds else "passes"


def show_gate(seeds: int, pool: ProcessPoolExecutor) -> bool:
    """Print what the gate says; return whether all bars are met."""
    print(f"\ngate at {LIMIT}: share that passes / fails; the rest is inconclusive")
    ratios = (1.0, 0.98, 0.95, 0.9)
    print(f"{'noise of runs':16} {'runs':>4} " + " ".join(f"{it:>12}" for it in ratios))
    good = True
    for noise, correlation in ((0.005, 0.0), (0.01, 0.0), (0.01, 0.8), (0.02, 0.0), (0.05, 0.0)):
        for runs in (3, 5, 8):
            told = []
            for factor in ratios:
                work = partial(gated, noise=noise, runs=runs, factor=factor, correlation=correlation)
                counted = Counter(pool.map(work, range(seeds), chunksize=20))
                told.append((counted["passes"] / seeds, counted["fails"] / seeds))
            met = told[2][0] <= 0.01 + 2 * math.sqrt(0.01 * 0.99 / seeds)
            met = met and (noise > 0.01 or runs < 5 or told[0][0] >= 0.9)
            good = good and met
            label = f"{noise:.1%}" + f", AR(1) {correlation}" * bool(correlation)
            row = " ".join(f"{passes:5.2f} / {fails:4.2f}" for passes, fails in told)
            print(f"{label:16} {runs:4} {row}  {'' if met else 'MISSED'}".rstrip())
    return good


def main() -> int:
    """Print the tables; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=400)
    seeds = parser.parse_args().seeds
    with ProcessPoolExecutor() as pool:
        good = show_trends(seeds, pool)
        for correlation in (0.0, 0.5, 0.8):
            found, false = np.mean(list(pool.map(partial(many, correlation=correlation), range(seeds // 4))), axis=0)
            print(f"12 steps of 2 to 10 % in 200 runs, AR(1) {correlation}: {found:.1f} found, {false:.2f} false")
        good = show_gate(seeds, pool) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
