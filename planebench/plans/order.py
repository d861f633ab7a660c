# SPDX-License-Identifier: BSD-3-Clause
"""The order of trials: repetitions of all switches interleaved, seeded, so that drift of the machine hits all alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from planebench.model.cpu_clock import OWN, CpuClock
from planebench.model.hosting import HostingName
from planebench.model.placement import NEAR, Placing
from planebench.model.records import Direction, Point, ScenarioName, TopologyKey, WireName

Cell = tuple[Direction, int, str, str]
"""Direction, frame size, traffic, load."""


@dataclass(frozen=True, slots=True)
class Group:
    """Points that run on the same topology: one live topology for each switch serves them all."""

    scenario: ScenarioName
    chain_length: int
    wire: WireName
    points: tuple[Point, ...]
    chain: str = ""
    hosting: HostingName = "process"
    placement: Placing = NEAR
    cpu_clock: CpuClock = OWN

    @property
    def key(self) -> TopologyKey:
        """Return what makes it a topology of its own."""
        return self.points[0].topology

    @property
    def switches(self) -> tuple[str, ...]:
        """Return the labels of the switches in the group, in plan order."""
        return tuple(dict.fromkeys(point.switch for point in self.points))


@dataclass(frozen=True, slots=True)
class Step:
    """One trial to run: a point, the label of its load, and the number of the repetition, from 0."""

    point: Point
    load: str
    repetition: int


def group_points(points: Sequence[Point]) -> tuple[Group, ...]:
    """Return the points by topology, in the order in which the topologies first appear."""
    groups: dict[TopologyKey, list[Point]] = {}
    for point in points:
        groups.setdefault(point.topology, []).append(point)
    return tuple(
        Group(scenario, length, wire, tuple(members), chain, hosting, placement, clock)
        for (scenario, length, chain, hosting, placement, clock, wire), members in groups.items()
    )


def interleave(group: Group, repetitions: int, seed: int, loads: Sequence[str] = ("saturating",)) -> tuple[Step, ...]:
    """Return every repetition of every point of the group at every load, exactly once.

    Within a repetition the cells (direction, frame size, load) come in a random order, and within a cell the switches
    do; so a switch never runs a cell twice in a row if there are two switches or more. The order follows from the
    seed and the group alone: other groups of a run do not change it.
    """
    rounds = Rounds(group, seed, loads)
    return tuple(step for _ in range(repetitions) for step in rounds.next(group.points))


class Rounds:
    """The rounds of :func:`interleave`, one after the other, as many as a search needs."""

    def __init__(self, group: Group, seed: int, loads: Sequence[str] = ("saturating",)) -> None:
        self._group = group
        self._loads = loads
        chain = f"/{group.chain}" if group.chain else ""
        hosting = f"/{group.hosting}" if group.hosting != "process" else ""
        placed = f"/{group.placement}" if group.placement != NEAR else ""
        clock = f"/{group.cpu_clock}" if group.cpu_clock else ""
        where = f"{group.scenario}/{group.chain_length}{chain}{hosting}{placed}{clock}/{group.wire}"
        self._rng = Random(f"{seed}/{where}/{','.join(loads)}")
        self._last: Step | None = None
        self._number = 0

    def next(self, points: Sequence[Point]) -> tuple[Step, ...]:
        """Return a step for each load and each of ``points``, those still wanted; the repetition is the round."""
        group = replace(self._group, points=tuple(points))
        cells = _cells(group, self._loads)
        self._rng.shuffle(cells)
        steps: list[Step] = []
        for cell in cells:
            steps.extend(_cell_steps(group, cell, self._number, self._rng, steps[-1] if steps else self._last))
        self._number += 1
        self._last = steps[-1] if steps else None
        return tuple(steps)


def _cells(group: Group, loads: Sequence[str]) -> list[Cell]:
    return list(
        dict.fromkeys((p.direction, p.frame_size_bytes, p.traffic, load) for p in group.points for load in loads)
    )


def _cell_steps(group: Group, cell: Cell, repetition: int, rng: Random, last: Step | None) -> Iterator[Step]:
    """Yield one repetition of one cell: its points, one for each switch, in random order.

    The last cell of a repetition may be the first of the next; then the switch that ran it last must not go first.
    """
    *kind, load = cell
    points = [p for p in group.points if [p.direction, p.frame_size_bytes, p.traffic] == kind]
    rng.shuffle(points)
    if last is not None and (last.point, last.load) == (points[0], load):
        points.append(points.pop(0))
    return (Step(point, load, repetition) for point in points)
