# SPDX-License-Identifier: BSD-3-Clause
"""What does the gate find, and what does it find where nothing changed? Fails where a bar is missed.

    python bench/gate.py [--seeds 400]

Runs of a base and of a change, each of 8 test points, in turns.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from planebench.analysis.compare import Comparisons
from planebench.analysis.gate import judge
from planebench.analysis.noise import fit_noise
from planebench.model.results import Comparison

Floats = NDArray[np.float64]
Shape = Callable[[int, np.random.Generator], Floats]
"""Returns the logarithms of so many figures around one level."""

LIMIT, CELLS, FINE = 0.97, 8, 0.003
"""Of the gate; test points of a run; noise of each of them beside that of the run."""


def regression(correlation: float, deviation: float) -> Shape:
    """Return a first-order autoregression."""

    def draw(n: int, generator: np.random.Generator) -> Floats:
        found = generator.normal(0, deviation, n)
        for i in range(1, n):
            found[i] = correlation * found[i - 1] + math.sqrt(1 - correlation**2) * found[i]
        return found

    return draw


def gated(seed: int, noise: float, runs: int, factor: float, correlation: float = 0.0) -> str:
    """Return what the gate says of so many runs of each side in turns."""
    generator = np.random.default_rng([seed, runs])
    of_runs = regression(correlation, noise)(2 * runs, generator)
    each = generator.normal(0, FINE, (CELLS, 2 * runs)) + of_runs
    differences = each[:, 1::2] - each[:, ::2] + math.log(factor)
    shared = replace(fit_noise(list(differences), runs - 1), correlation=0.0)
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
    print(f"gate at {LIMIT}: share that passes / fails; the rest is inconclusive")
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
        return 0 if show_gate(seeds, pool) else 1


if __name__ == "__main__":
    sys.exit(main())
