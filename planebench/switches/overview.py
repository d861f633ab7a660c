# SPDX-License-Identifier: BSD-3-Clause
"""An overview of every switch without measuring anything. A broken adapter does not affect the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planebench.host.programs import Found, NotFound
from planebench.model.errors import PlanebenchError
from planebench.model.scenario import SCENARIOS, ScenarioName, scenario_named
from planebench.model.switch import Option
from planebench.model.wire import WIRES, WireName
from planebench.switches.adapter import Adapter, Situation, Traits, refusal_of
from planebench.switches.registry import all_adapters, broken_adapters

ROUTER = "l3fwd:fib=cuckoo:synthetic=1000"
"""The VNF with which every switch with stations is checked, offloaded or not."""


@dataclass(frozen=True, slots=True)
class Support:
    """Support for a scenario on a wire. ``remark`` is the reason against it, or a condition of it."""

    supported: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """One switch. ``problem`` says why the search for it failed or its adapter cannot be loaded; it is not found
    then."""

    name: str
    title: str
    found: Found | None
    problem: str = ""
    remedy: str = ""
    vnf_interface: str = ""
    wires: Mapping[WireName, Mapping[ScenarioName, Support]] = field(default_factory=dict)
    """The supported wires only."""
    traits: Traits | None = None
    options: tuple[Option, ...] = ()


def overviews() -> tuple[Overview, ...]:
    """Return every switch: those of planebench, of other packages, and last those that cannot be loaded."""
    broken = (
        Overview(name, name, None, f"cannot be loaded: {why}", "repair the package or remove it")
        for name, why in broken_adapters().items()
    )
    return (*(overview(adapter) for adapter in all_adapters().values()), *broken)


def overview(adapter: Adapter) -> Overview:
    """Return the overview of one switch; start nothing but ``--version``. Never raises."""
    found = look(adapter)
    return Overview(
        name=adapter.name,
        title=adapter.title,
        found=found if isinstance(found, Found) else None,
        problem=found.remedy if isinstance(found, Unclear) else "",
        remedy=found.remedy if type(found) is NotFound else adapter.remedy,
        vnf_interface=adapter.vnf_interface,
        wires={
            wire: {scenario: _support(adapter, scenario, wire) for scenario in SCENARIOS}
            for wire in WIRES
            if wire in adapter.wires
        },
        traits=adapter.traits,
        options=adapter.options,
    )


class Unclear(NotFound):
    """The search failed; ``remedy`` is the sentence that says why."""


def look(adapter: Adapter) -> Found | NotFound:
    """Look for a switch. An exception of the adapter, or a wrong path of the user, becomes an ``Unclear`` result."""
    try:
        return adapter.find()
    except PlanebenchError as error:
        return Unclear(str(error))
    except Exception as error:  # whatever a stranger's adapter may do
        return Unclear(f"its adapter failed: {error!r}")


def _support(adapter: Adapter, scenario: ScenarioName, wire: WireName) -> Support:
    """Check a scenario for every chain length, or for VNFs side by side with a router, with and without hugepages."""
    longest = 0
    remarks: dict[str, None] = {}
    known = scenario_named(scenario)
    chain = ROUTER if known.side_by_side else ""
    for length in range(1, known.vnfs_max + 1) if known.chained else (int(known.has_vnfs),):
        refusals = []
        for hugepages in (False, True):
            try:
                refusals.append(refusal_of(adapter, Situation(scenario, wire, length, hugepages, chain=chain)))
            except Exception as error:  # as above
                refusals.append(f"its adapter failed: {error!r}")
        without, with_ = refusals
        if without and with_:
            more = f"up to {longest} VNFs: " if longest else ""
            return Support(longest > 0, f"{more}{with_}")
        longest = length
        if without or with_:
            remarks[f"only {'with' if without else 'without'} hugepages: {without or with_}"] = None
    return Support(True, "; ".join(remarks))
