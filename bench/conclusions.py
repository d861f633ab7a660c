# SPDX-License-Identifier: BSD-3-Clause
"""Do the intervals of planebench cover what they claim? Seeded simulation, no data plane; fails where a bar is missed.

    python bench/conclusions.py [--seeds 1000] [--runs 100] [--only SHAPE ...]

Each shape draws capacities for two equal switches over the cells of a suite, in the order in which a campaign measures
them: one start of each switch per topology and block. The printed table is that of docs/methodology.md.

    coverage   share of 95 % intervals of the ratio that hold the true ratio, one look at the end
    false      share of comparisons of a switch with itself that end "different", looks after each round
    1.05, 1.2  share of comparisons with this true ratio that end "different", looks after each round
    starts     mean number of starts of each switch until the comparison of equal switches ends

Then whole runs of simulated switches (bench/conclusions_runs.py): what quick decides, what the gate passes and stops,
false differences among many equal switches, and the bias of figures where disturbances go with slow starts.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from conclusions_runs import gate, many_equal, power, selection
from numpy.typing import NDArray

from planebench.model.results import AnswerKind
from planebench.stats.answers import EXACT, OneOfMany, answer, look_alpha, shares_of_alpha
from planebench.stats.noise import fit_noise

Array = NDArray[np.float64]

TOPOLOGIES = (4, 6, 4, 4)
"""Cells of each topology of the suite quick: directions times frame sizes of p2p, p2v, v2v and loopback."""
SWITCHES = 3
PAIRS = tuple(combinations(range(SWITCHES), 2))
UNITS = tuple((pair, number) for pair in PAIRS for number, cells in enumerate(TOPOLOGIES) for _ in range(cells))
"""Pair of switches and topology of each comparison: those with the same share their starts."""
LOOKS = (3, 5, 8)
"""Starts after which a comparison is looked at."""
TRIAL_S, BETWEEN_S, START_S = 0.3, 0.3, 1.2
FINE = 0.003
"""Noise of single trials within a start."""


@dataclass(frozen=True, slots=True)
class Layout:
    """When each trial of a run begins: ``at_s`` by switch, cell and block. ``topology`` is that of each cell."""

    at_s: Array
    topology: NDArray[np.int64]


def layout(blocks: int, generator: np.random.Generator) -> Layout:
    """Return the times of a suite whose blocks go over all topologies, switches and cells in turn."""
    topology = np.repeat(np.arange(len(TOPOLOGIES)), TOPOLOGIES)
    at_s = np.zeros((SWITCHES, len(topology), blocks))
    now = 0.0
    for block in range(blocks):
        for number in range(len(TOPOLOGIES)):
            now += START_S * SWITCHES
            turns = [(s, c) for s in range(SWITCHES) for c in np.flatnonzero(topology == number)]
            for switch, cell in generator.permutation(turns):
                at_s[switch, cell, block] = now
                now += TRIAL_S + BETWEEN_S
    return Layout(at_s, topology)


Shape = Callable[[Layout, np.random.Generator], Array]
"""Returns the logarithm of what each trial forwards, relative to the capacity of its cell."""


def independent(share: float) -> Shape:
    """Return Gaussian noise between trials."""
    return lambda plan, generator: generator.normal(0, share, plan.at_s.shape)


def heavy_tails(plan: Layout, generator: np.random.Generator) -> Array:
    """Student t with 3 degrees of freedom, standard deviation 1 %."""
    return 0.01 / math.sqrt(3) * generator.standard_t(3, plan.at_s.shape)


def bimodal(plan: Layout, generator: np.random.Generator) -> Array:
    """30 % of the trials are 15 % slower."""
    return np.where(generator.random(plan.at_s.shape) < 0.3, math.log(0.85), 0.0) + _fine(plan, generator)


def starts(share: float) -> Shape:
    """Return Gaussian noise between starts; the cells of a topology share a start."""

    def draw(plan: Layout, generator: np.random.Generator) -> Array:
        switches, _, blocks = plan.at_s.shape
        each = generator.normal(0, share, (switches, len(TOPOLOGIES), blocks))
        return each[:, plan.topology] + _fine(plan, generator)

    return draw


def start_modes(plan: Layout, generator: np.random.Generator) -> Array:
    """Half of the starts are 5 % slower."""
    switches, _, blocks = plan.at_s.shape
    slow = generator.random((switches, len(TOPOLOGIES), blocks)) < 0.5
    return np.where(slow, math.log(0.95), 0.0)[:, plan.topology] + _fine(plan, generator)


def drift(plan: Layout, generator: np.random.Generator) -> Array:
    """The whole machine becomes 3 % slower a minute."""
    return np.log1p(-0.03 * plan.at_s / 60) + generator.normal(0, 0.005, plan.at_s.shape)


def stalls(plan: Layout, generator: np.random.Generator) -> Array:
    """Each switch stands for 50 ms every 2 s, each in its own phase."""
    phase = (plan.at_s + 2 * generator.random((plan.at_s.shape[0], 1, 1))) % 2
    lost = np.clip(0.05 - phase, 0, None) + np.clip(phase + TRIAL_S - 2, 0, 0.05)
    return np.log1p(-lost / TRIAL_S) + _fine(plan, generator)


def wandering(plan: Layout, generator: np.random.Generator) -> Array:
    """The capacity of each switch wanders by 2 % with a time constant of 20 s (Ornstein-Uhlenbeck)."""
    wander = np.zeros(plan.at_s.shape)
    for switch, times in enumerate(plan.at_s):
        value, before = generator.normal(0, 0.02), times.min()
        for index in np.argsort(times, axis=None):
            where = np.unravel_index(index, times.shape)
            kept = math.exp(-(times[where] - before) / 20)
            value = kept * value + math.sqrt(1 - kept**2) * generator.normal(0, 0.02)
            before = times[where]
            wander[switch][where] = value
    return wander + _fine(plan, generator)


def _fine(plan: Layout, generator: np.random.Generator) -> Array:
    return generator.normal(0, FINE, plan.at_s.shape)


SHAPES: Mapping[str, Shape] = {
    "independent 1 %": independent(0.01),
    "independent 3 %": independent(0.03),
    "heavy tails 1 %": heavy_tails,
    "bimodal, 30 % at -15 %": bimodal,
    "starts 1 %": starts(0.01),
    "starts 2 %": starts(0.02),
    "starts 4 %": starts(0.04),
    "start modes, -5 %": start_modes,
    "drift 3 %/min": drift,
    "stalls 50 ms / 2 s": stalls,
    "wandering 2 %, 20 s": wandering,
}

FEW_VALUES = ("start modes, -5 %", "stalls 50 ms / 2 s")
FEW_VALUES_MOST = 0.985
"""A start or trial of these is slow or not, so the mean of five differences takes few values, and no interval covers
95 % of them: with half of the starts slow, it covers |k| <= 3 of -5 to 5, 97.9 %, or |k| <= 2, 89.1 %."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the comparisons of all seeds came to, as shares of 1; ``starts`` is a mean."""

    coverage: float
    false: float
    power_1_05: float
    power_1_2: float
    starts: float


def differences(logs: Array) -> Array:
    """Return the differences of every pair of switches in the same block, one row for each pair and cell."""
    return np.concatenate([logs[b] - logs[a] for a, b in PAIRS])


def degrees_max(blocks: int) -> float:
    """Return the degrees of freedom of all starts, without a mean for each switch and block of a topology."""
    return len(TOPOLOGIES) * (SWITCHES - 1) * (blocks - 1)


def answers(sample: Array, starts: NDArray[np.int64], true: float) -> list[AnswerKind]:
    """Return the answers of all comparisons of a run, as planebench gives them: a row has so many starts by now."""
    rows = [row[:n] + math.log(true) for row, n in zip(sample, starts, strict=True)]
    noise = fit_noise(rows, degrees_max(int(np.max(starts))))
    alpha = look_alpha(len(LOOKS))
    estimates = [it for row in rows if (it := noise.estimate(list(row))) is not None]
    tested = [OneOfMany(it, EXACT, unit) for it, unit in zip(estimates, UNITS, strict=True)]
    shares = shares_of_alpha(tested, alpha)
    return [answer(it.estimate, alpha * share).answer for it, share in zip(tested, shares, strict=True)]


def ends(sample: Array, true: float) -> tuple[list[AnswerKind], NDArray[np.int64]]:
    """Return how each comparison ends, and after how many starts. ``sample``: differences, a row for each."""
    starts = np.full(len(sample), LOOKS[0])
    for blocks in LOOKS[1:]:
        undecided = np.array([kind == "open" for kind in answers(sample, starts, true)])
        starts[undecided] = blocks
    return answers(sample, starts, true), starts


def measure(name: str, seeds: int) -> Figures:
    """Return the figures of a shape."""
    shape = SHAPES[name]
    covered: list[bool] = []
    different: dict[float, list[float]] = {1.0: [], 1.05: [], 1.2: []}
    mean_starts: list[float] = []
    for seed in range(seeds):
        generator = np.random.default_rng([seed, 1])
        sample = differences(shape(layout(LOOKS[-1], generator), generator))
        blocks = LOOKS[1]
        noise = fit_noise(list(sample[:, :blocks]), degrees_max(blocks))
        found = [noise.estimate(list(row)) for row in sample[:, :blocks]]
        covered += [abs(e.mean) <= e.half_width() for e in found if e is not None]
        for true, shares in different.items():
            kinds, starts = ends(sample, true)
            shares.append(float(np.mean([kind == "different" for kind in kinds])))
            if true == 1.0:
                mean_starts.append(float(np.mean(starts)))
    powers = (float(np.mean(different[true])) for true in (1.0, 1.05, 1.2))
    return Figures(float(np.mean(covered)), *powers, float(np.mean(mean_starts)))


def show_shapes(names: Sequence[str], seeds: int) -> bool:
    """Print the table of the shapes; return whether all bars are met."""
    print(f"{'noise':24} {'coverage':>9} {'false':>7} {'1.05':>7} {'1.2':>7} {'starts':>7}")
    good = True
    with ProcessPoolExecutor() as pool:
        found = zip(names, pool.map(partial(measure, seeds=seeds), names), strict=True)
        for name, f in found:
            good = show_shape(name, f) and good
    return good


def show_shape(name: str, f: Figures) -> bool:
    """Print the row of a shape; return whether its bars are met."""
    most = FEW_VALUES_MOST if name in FEW_VALUES else 0.97
    bars = (("COVERAGE", 0.93 <= round(f.coverage, 3) <= most), ("FALSE", f.false <= 0.05))
    bad = [word for word, met in bars if not met]
    print(
        f"{name:24} {f.coverage:9.3f} {f.false:7.3f} {f.power_1_05:7.2f} {f.power_1_2:7.3f} {f.starts:7.1f}"
        f"  {' '.join(bad)}".rstrip(),
        flush=True,
    )
    return not bad


def show_runs(runs: int) -> bool:
    """Print the figures of whole runs; return whether all bars are met."""
    good = True
    for part in (power, gate, many_equal, selection):
        for bar in part(min(runs, 20) if part is many_equal else runs):
            good = good and bar.met
            print(f"{bar.name:70} {bar.value:8.3f}  {'' if bar.met else 'MISSED'}".rstrip(), flush=True)
    return good


def main() -> int:
    """Print the tables; return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000, help="of each shape; 0: none")
    parser.add_argument("--runs", type=int, default=100, help="whole runs of each kind; at most 20 of conext19")
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    given = parser.parse_args()
    good = show_shapes(given.only, given.seeds) if given.seeds else True
    return 0 if (show_runs(given.runs) if given.runs else True) and good else 1


if __name__ == "__main__":
    sys.exit(main())
