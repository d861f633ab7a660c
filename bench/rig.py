# SPDX-License-Identifier: BSD-3-Clause
"""What benches with a live topology start from: where everything runs, and the tester they run with."""

from __future__ import annotations

from planebench.host import facts as host_facts
from planebench.host.planed_program import find_planed
from planebench.measure.live import LiveSettings
from planebench.model.choices import unknown
from planebench.model.records import ScenarioName
from planebench.model.scenario import SCENARIOS
from planebench.placement import Cpus, Placement, place

RING = 256


def rig() -> tuple[Placement, LiveSettings]:
    """This machine's cores; rings of 256, no hugepages, the virtio wire. Ends the program where planed is not found."""
    planed = find_planed()
    if planed is None:
        raise SystemExit("planed is not here: run `make setup`")
    facts = host_facts.collect()
    placement = place(Cpus(facts.cpus_allowed, facts.siblings, facts.numa_node))
    return placement, LiveSettings(planed, RING, False, 1518, "virtio")


def scenario_of(text: str) -> ScenarioName:
    """Return the scenario of this name. Raises UsageError, with the valid ones, if there is none."""
    name: ScenarioName | None = next((known for known in SCENARIOS if known == text), None)
    if name is None:
        raise unknown("scenario", text, SCENARIOS)
    return name
