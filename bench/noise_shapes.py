# SPDX-License-Identifier: BSD-3-Clause
"""What starts of equal switches forward, in many shapes of noise, for many runs at once: for bench/conclusions.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]

QUICK = (4, 6, 4, 4)
"""Cells of each topology of quick: directions times frame sizes of p2p, p2v, v2v and loopback."""
CONEXT19 = (6, 9, 6, 6, 6, 6, 6, 6)
FINE = 0.003
"""Noise of single trials within a start."""
PASS_S, GROUP_S = 40.0, 10.0
"""A pass over all topologies, and over one: nothing but drift and wandering depends on it."""


@dataclass(frozen=True)
class Layout:
    """A suite: how many switches, the cells of each topology, and after how many starts it looks."""

    switches: int
    cells: tuple[int, ...] = QUICK
    looks: tuple[int, ...] = (3, 5, 8)
    topology: Counts = field(init=False)
    first: Counts = field(init=False)
    second: Counts = field(init=False)

    def __post_init__(self) -> None:
        """Number the topology of each cell, and the two switches of each pair."""
        object.__setattr__(self, "topology", np.repeat(np.arange(len(self.cells)), self.cells))
        pairs = np.array(list(combinations(range(self.switches), 2)))
        object.__setattr__(self, "first", pairs[:, 0])
        object.__setattr__(self, "second", pairs[:, 1])

    @property
    def blocks(self) -> int:
        """Return how many starts a switch has at most."""
        return self.looks[-1]

    def of_starts(self, runs: int) -> tuple[int, int, int, int]:
        """Return how many starts there are: by run, switch, topology and block."""
        return runs, self.switches, len(self.cells), self.blocks

    def of_trials(self, runs: int) -> tuple[int, int, int, int]:
        """Return how many trials there are: by run, switch, cell and block."""
        return runs, self.switches, len(self.topology), self.blocks


@dataclass(frozen=True)
class Drawn:
    """The logarithms of what the trials forward, without those of the cells. ``far``: core distance of each."""

    logs: Array
    far: Flags | None = None


Shape = Callable[[Layout, np.random.Generator, int], Drawn]


def by_start(draw: Callable[[Layout, np.random.Generator, int], Array]) -> Shape:
    """Return the shape whose starts are drawn; the cells of a topology share them, beside a fine noise."""

    def shape(plan: Layout, generator: np.random.Generator, runs: int) -> Drawn:
        starts = draw(plan, generator, runs)
        return Drawn(starts[:, :, plan.topology] + generator.normal(0, FINE, plan.of_trials(runs)))

    return shape


def normal(share: float) -> Shape:
    """Return starts that differ by so much."""
    return by_start(lambda plan, generator, runs: generator.normal(0, share, plan.of_starts(runs)))


def of_first(draw: Shape, rest: Shape) -> Shape:
    """Return the shape in which the first switch is as in ``draw``, the others as in ``rest``."""

    def shape(plan: Layout, generator: np.random.Generator, runs: int) -> Drawn:
        logs = rest(plan, generator, runs).logs
        logs[:, 0] = draw(plan, generator, runs).logs[:, 0]
        return Drawn(logs)

    return shape


def modes(share: float, lost: float) -> Shape:
    """Return starts of which a share is slower by ``lost``."""
    log = math.log1p(-lost)
    return by_start(
        lambda p, generator, runs: np.where(generator.random(p.of_starts(runs)) < share, log, 0.0) - log * share
    )


def skewed(share: float) -> Shape:
    """Return starts with a tail to the slow side."""
    return by_start(lambda plan, generator, runs: share - generator.exponential(share, plan.of_starts(runs)))


def heavy_tails(plan: Layout, generator: np.random.Generator, runs: int) -> Array:
    """Student t with 3 degrees of freedom, standard deviation 2 %."""
    return 0.02 / math.sqrt(3) * generator.standard_t(3, plan.of_starts(runs))


def within_start(plan: Layout, generator: np.random.Generator, runs: int) -> Drawn:
    """Trials of a start follow each other with a correlation of 0.9, standard deviation 2 %."""
    logs = generator.normal(0, 0.02, plan.of_trials(runs))
    for before, cell in pairwise(range(len(plan.topology))):
        if plan.topology[before] == plan.topology[cell]:
            logs[:, :, cell] = 0.9 * logs[:, :, before] + math.sqrt(1 - 0.9**2) * logs[:, :, cell]
    return Drawn(logs)


def quantised(plan: Layout, generator: np.random.Generator, runs: int) -> Drawn:
    """Starts that differ by 2 %, of which a rate is only seen in steps of 5 %."""

    def seen(logs: Array, phase: Array) -> Array:
        return np.log((np.round(np.exp(logs) / 0.05 + phase) - phase) * 0.05)

    phases = np.arange(20) / 20
    grid = math.hypot(0.02, FINE) * special.ndtri((np.arange(2000) + 0.5) / 2000)
    means = np.mean(seen(grid, phases[:, None]), axis=1)
    which = generator.integers(0, len(phases), (runs, 1, len(plan.topology), 1))
    return Drawn(seen(normal(0.02)(plan, generator, runs).logs, phases[which]) - means[which])


def by_topology(plan: Layout, generator: np.random.Generator, runs: int) -> Array:
    """Each topology has starts that differ by something between 0.3 and 6 %."""
    share = np.exp(generator.uniform(math.log(0.003), math.log(0.06), (runs, 1, len(plan.cells), 1)))
    return generator.normal(0, 1, plan.of_starts(runs)) * share


def drift(plan: Layout, generator: np.random.Generator, runs: int) -> Array:
    """The whole machine becomes 2 % slower a minute, starts differ by 0.5 %."""
    at_s = GROUP_S * np.arange(len(plan.cells))[:, None] + PASS_S * np.arange(plan.blocks)
    return generator.normal(0, 0.005, plan.of_starts(runs)) - 0.02 * at_s / 60


def mean_of_drift(plan: Layout, blocks: int) -> float:
    """Return the mean of the logarithms over so many blocks; in the other shapes it is 0."""
    return -0.02 / 60 * (GROUP_S * (len(plan.cells) - 1) + PASS_S * (blocks - 1)) / 2


def wandering(plan: Layout, generator: np.random.Generator, runs: int) -> Array:
    """The capacity of each switch wanders by 2 % with a time constant of 20 s, seen once in a group of trials."""
    logs = generator.normal(0, 0.02, plan.of_starts(runs))
    steps = [(topology, block) for block in range(plan.blocks) for topology in range(len(plan.cells))]
    kept = math.exp(-GROUP_S / 20)
    for (topology, block), (then, later) in pairwise(steps):
        logs[:, :, then, later] = kept * logs[:, :, topology, block] + math.sqrt(1 - kept**2) * logs[:, :, then, later]
    return logs


def foreign(each_group: bool) -> Shape:
    """Return another load: a loss of 6 % on average that all trials of a block or group share, and 2 to 4 % of each."""

    def shape(plan: Layout, generator: np.random.Generator, runs: int) -> Drawn:
        groups = generator.exponential(0.06, (runs, 1, len(plan.cells) if each_group else 1, plan.blocks))
        common = np.broadcast_to(0.06 - groups, (runs, 1, len(plan.cells), plan.blocks))[:, :, plan.topology]
        each = generator.uniform(0.02, 0.04, (runs, 1, len(plan.topology), 1))
        return Drawn(common + each * generator.normal(0, 1, plan.of_trials(runs)))

    return shape


def near_far(plan: Layout, generator: np.random.Generator, runs: int) -> Drawn:
    """30 % of the groups have far cores, at 0.6 of the rate; one switch in ten has others than its group."""
    groups = generator.random((runs, 1, len(plan.cells), plan.blocks)) < 0.3
    far = groups ^ (generator.random(plan.of_starts(runs)) < 0.1)
    logs = normal(0.01)(plan, generator, runs).logs + (math.log(0.6) * (far - 0.34))[:, :, plan.topology]
    return Drawn(logs, far[:, :, plan.topology])


ORDINARY = (
    "starts 0.5 %",
    "starts 2 %",
    "starts 5 %",
    "t3, 2 %",
    "AR(1) within a start",
    "wandering 2 %, 20 s",
    "drift",
)
EXEMPT = ("near and far cores", "rare: 10 % at -20 %", "rare, one switch")
"""Those without a bar of false differences: far cores are one for all switches at once."""
UNCOVERED = EXEMPT[1:]
"""Those without one of coverage: a state that is rarer than one in n starts is in no interval."""
SHAPES: Mapping[str, Shape] = {
    "starts 0.5 %": normal(0.005),
    "starts 2 %": normal(0.02),
    "starts 5 %": normal(0.05),
    "t3, 2 %": by_start(heavy_tails),
    "AR(1) within a start": within_start,
    "wandering 2 %, 20 s": by_start(wandering),
    "drift": by_start(drift),
    "modes: 30 % at -8 %": modes(0.3, 0.08),
    "modes: 30 % at -50 %": modes(0.3, 0.5),
    "skewed 3 %": skewed(0.03),
    "skewed 4 %, one switch": of_first(skewed(0.04), normal(0.01)),
    "steps of 5 %": quantised,
    "0.3 to 6 % by topology": by_start(by_topology),
    "5 % in one, 0.3 % else": of_first(normal(0.05), normal(0.003)),
    "foreign load by block": foreign(each_group=False),
    "foreign load by group": foreign(each_group=True),
    "near and far cores": near_far,
    "rare: 10 % at -20 %": modes(0.1, 0.2),
    "rare, one switch": of_first(modes(0.1, 0.2), normal(0.01)),
}
