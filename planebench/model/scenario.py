# SPDX-License-Identifier: BSD-3-Clause
"""A scenario, and the registry of all scenarios by name.

The scenarios themselves are in planebench.model.scenarios, which registers them when planebench is imported. Nobody
else compares names of scenarios: ask a property of the scenario, of a point, or of a topology.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from planebench.model.dimensions import RegisteredName, Registry
from planebench.model.errors import UsageError
from planebench.model.topology import Side, Topology, Vnf

Direction = Literal["unidirectional", "bidirectional", "reversed"]
VnfLayout = Literal["none", "chain", "side-by-side"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A path of traffic through the switch.

    ``order`` is its place in lists and on pages. ``build`` makes the topology from the VNFs, which have no names and
    no ports yet. ``use`` says for what the path is used; a scenario with VNFs is named after them instead.
    """

    name: str
    order: int
    path: str
    """The path of a packet: ``NIC -> switch -> VNF``."""
    meaning: str
    """One sentence: what a measurement of it shows."""
    build: Callable[[tuple[Vnf, ...]], Topology]
    use: str = ""
    directions: tuple[Direction, ...] = ("unidirectional", "bidirectional")
    ends: tuple[Side, Side] = ("wire", "wire")
    """The ends a and b of the topology, connected to generator and receiver."""
    vnfs: VnfLayout = "none"
    vnfs_max: int = 0
    count_name: str = ""
    """The name of its number of VNFs: ``chain length``."""
    two_switches: bool = False
    """True if a link (``Topology.link``) connects the switch to a second one, as on a second server."""
    bare: bool = False
    """One process is in the place of the switch and of its VNFs: the switch runs their function on its wires."""
    latency_by_echo: bool = False
    """Latency is taken at a fixed rate, with end b sending everything back (METHODOLOGY section 2)."""

    @property
    def has_vnfs(self) -> bool:
        """Return whether its topology has a number of VNFs."""
        return self.vnfs != "none"

    @property
    def ends_in_vnfs(self) -> int:
        """Return how many of its ends are in VNFs."""
        return self.ends.count("vnf")

    @property
    def chained(self) -> bool:
        """Return whether its VNFs are in a row."""
        return self.vnfs == "chain"

    @property
    def side_by_side(self) -> bool:
        """Return whether its VNFs are side by side: each of one kind, behind one port, found by its MAC address, and in
        a process of its own. Even plain frames then have several destinations."""
        return self.vnfs == "side-by-side"

    @property
    def wired(self) -> bool:
        """Return whether one of its ports is a wire."""
        return "wire" in self.ends

    def parse_count(self, value: object) -> int:
        """Return the number of VNFs; raise UsageError for one that this scenario cannot have."""
        count = whole_number(value)
        if count is None or not 1 <= count <= self.vnfs_max:
            raise UsageError(f'{self.count_name} "{value}" is not valid. Valid: 1..{self.vnfs_max}')
        return count


SCENARIOS = Registry[Scenario]("scenario")
"""Every scenario by name, in their order."""
register = SCENARIOS.register
scenario_named = SCENARIOS.named
ScenarioName = Annotated[str, RegisteredName(SCENARIOS)]


def scenarios_with(layout: VnfLayout, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the names, of ``names`` or of all scenarios, whose VNFs have this layout."""
    return tuple(name for name in (SCENARIOS if names is None else names) if scenario_named(name).vnfs == layout)


def whole_number(value: object) -> int | None:
    """Return a number written in plain decimal digits: int() alone would take "6_4", " 64 " and True."""
    return int(str(value)) if re.fullmatch(r"[0-9]{1,18}", str(value)) else None
