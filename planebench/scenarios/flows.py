# SPDX-License-Identifier: BSD-3-Clause
"""Which ends of a topology send in which direction mode, and which modes a scenario has."""

from __future__ import annotations

from dataclasses import dataclass

from planebench.model.errors import UsageError
from planebench.model.scenario import Direction, scenario_named
from planebench.model.topology import Topology


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of traffic. ``stream`` numbers the sending end: 0 for end a, 1 for end b."""

    sender_port: str
    receiver_port: str
    stream: int

    @property
    def name(self) -> str:
        """Return the name of the direction in a trial: ``n0->v0``."""
        return f"{self.sender_port}->{self.receiver_port}"


def flows(topology: Topology, direction: Direction) -> tuple[Flow, ...]:
    """Return the flows of a direction mode. Raises UsageError with the valid modes.

    An echo topology has one flow, from end a by way of end b back to a.
    """
    valid = ("unidirectional",) if topology.echo else scenario_named(topology.scenario).directions
    if direction not in valid:
        where = f"{topology.scenario} with echo" if topology.echo else topology.scenario
        raise UsageError(f"direction {direction} is not valid for {where}. Valid: {', '.join(valid)}")
    a, b = topology.ends
    if topology.echo:
        return (Flow(a, a, 0),)
    there, back = Flow(a, b, 0), Flow(b, a, 1)
    return {"unidirectional": (there,), "reversed": (back,), "bidirectional": (there, back)}[direction]


def all_flows(topology: Topology) -> tuple[Flow, ...]:
    """Return every flow that a topology can have at once."""
    both_ways = "bidirectional" in scenario_named(topology.scenario).directions
    return flows(topology, "bidirectional" if both_ways else "unidirectional")
