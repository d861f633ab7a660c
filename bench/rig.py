# SPDX-License-Identifier: BSD-3-Clause
"""What benches with a live topology start from: where everything runs, the tester they run with, and how cores were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planebench.analysis.disturbance import ALONE
from planebench.host import facts as host_facts
from planebench.host.planed_program import find_planed
from planebench.measure.live import LiveSettings
from planebench.model.errors import unknown
from planebench.model.records import CoreDistance
from planebench.model.scenario import SCENARIOS, ScenarioName
from planebench.testbed.placement import Placement, place

RING = 256


def rig() -> tuple[Placement, LiveSettings]:
    """This machine's cores; rings of 256, no hugepages, the virtio wire. Ends the program where planed is not found."""
    planed = find_planed()
    if planed is None:
        raise SystemExit("planed is not here: run `make setup`")
    facts = host_facts.collect()
    placement = place(host_facts.cpus_of(facts))
    return placement, LiveSettings(planed, RING, False, 1518, "virtio")


def scenario_of(text: str) -> ScenarioName:
    """Return the scenario of this name. Raises UsageError, with the valid ones, if there is none."""
    name: ScenarioName | None = next((known for known in SCENARIOS if known == text), None)
    if name is None:
        raise unknown("scenario", text, SCENARIOS)
    return name


@dataclass(frozen=True, slots=True)
class Cores:
    """The cores of a trial: their group (``changed`` within it), and the least and most additions per cycle of one."""

    group: str
    least: float
    most: float

    def state(self, best: float) -> str:
        """Return the group, and whether both cores were alone all the time: they had ``best``, what cores have then."""
        return f"{self.group}, {'shared' if self.least < ALONE * best else 'alone'}" if best else self.group


def cores_of(distances: Sequence[CoreDistance | None]) -> Cores:
    """Return how the cores were, from what was measured before, within and after a trial."""
    known = [distance for distance in distances if distance is not None]
    groups = {distance.band for distance in known}
    speeds = [speed for distance in known for speed in distance.additions_per_cycle]
    group = known[0].band if len(groups) == 1 and len(known) == len(distances) else "changed"
    return Cores(group, min(speeds, default=0.0), max(speeds, default=0.0))


def best_of(trials: Iterable[Cores]) -> float:
    """Return the most additions per cycle of all trials: those of a core that is alone."""
    return max((cores.most for cores in trials), default=0.0)
