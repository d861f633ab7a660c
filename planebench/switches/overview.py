# SPDX-License-Identifier: BSD-3-Clause
"""Describe what there is to know of every switch before anything is measured; one that is broken takes no other with
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import get_args

from planebench.host.programs import Found, NotFound
from planebench.model.errors import PlanebenchError
from planebench.model.option import Option
from planebench.model.records import ScenarioName, WireName
from planebench.model.scenario import SCENARIOS, scenario_named
from planebench.switches.registry import all_adapters, broken_adapters
from planebench.wiring.adapter import Adapter, Situation, Traits, refusal_of

WIRES: tuple[WireName, ...] = get_args(WireName)
ROUTER = "l3fwd:fib=cuckoo:synthetic=1000"
"""What every switch with stations has VNFs of, offloaded or not."""


@dataclass(frozen=True, slots=True)
class Support:
    """Describe whether a scenario can be measured on a wire; ``remark``: why not, or under which condition."""

    supported: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """One switch. ``problem``: why it could not be looked for, or loaded; then it is not found, and may be here."""

    name: str
    title: str
    found: Found | None
    problem: str = ""
    remedy: str = ""
    vnf_interface: str = ""
    wires: Mapping[WireName, Mapping[ScenarioName, Support]] = field(default_factory=dict)
    """Only wires that it has."""
    traits: Traits | None = None
    options: tuple[Option, ...] = ()


def overviews() -> tuple[Overview, ...]:
    """Every switch there is, those of other packages and those that cannot be loaded last."""
    broken = (
        Overview(name, name, None, f"cannot be loaded: {why}", "mend the package, or remove it")
        for name, why in broken_adapters().items()
    )
    return (*(overview(adapter) for adapter in all_adapters().values()), *broken)


def overview(adapter: Adapter) -> Overview:
    """One switch; starts nothing but ``--version``. Never raises."""
    found = look(adapter)
    return Overview(
        name=adapter.name,
        title=adapter.title,
        found=found if isinstance(found, Found) else None,
        problem=found.remedy if isinstance(found, Unclear) else "",
        remedy=found.remedy if type(found) is NotFound else adapter.remedy,
        vnf_interface=adapter.vnf_interface,
        wires={wire: _scenarios(adapter, wire) for wire in WIRES if wire in adapter.wires},
        traits=adapter.traits,
        options=adapter.options,
    )


class Unclear(NotFound):
    """It could not be looked for; ``remedy`` is the sentence that says why."""


def look(adapter: Adapter) -> Found | NotFound:
    """Look as ``adapter.find()`` does, but for a path of the user's that is wrong, or a stranger's adapter that
    fails."""
    try:
        return adapter.find()
    except PlanebenchError as error:
        return Unclear(str(error))
    except Exception as error:  # whatever a stranger's adapter may do
        return Unclear(f"its adapter failed: {error!r}")


def _scenarios(adapter: Adapter, wire: WireName) -> dict[ScenarioName, Support]:
    return {scenario: _support(adapter, scenario, wire) for scenario in SCENARIOS}


def _support(adapter: Adapter, scenario: ScenarioName, wire: WireName) -> Support:
    """Check of a chain every length from one on; of VNFs side by side one router; each with and without hugepages."""
    longest = 0
    remarks: dict[str, None] = {}
    known = scenario_named(scenario)
    chain = ROUTER if known.side_by_side else ""
    for length in range(1, known.vnfs_max + 1) if known.chained else (int(known.has_vnfs),):
        without, with_ = _refusals(adapter, scenario, wire, length, chain)
        if without and with_:
            more = f"up to {longest} VNFs: " if longest else ""
            return Support(longest > 0, f"{more}{with_}")
        longest = length
        if without or with_:
            remarks[f"only {'with' if without else 'without'} hugepages: {without or with_}"] = None
    return Support(True, "; ".join(remarks))


def _refusals(adapter: Adapter, scenario: ScenarioName, wire: WireName, length: int, chain: str) -> Iterator[str]:
    for hugepages in (False, True):
        try:
            yield refusal_of(adapter, Situation(scenario, wire, length, hugepages, chain=chain))
        except Exception as error:  # as above
            yield f"its adapter failed: {error!r}"
