# SPDX-License-Identifier: BSD-3-Clause
"""Options of the matrix on a plan of parts: they choose among what its parts have.

So a part that is for a table of a paper stays that, or goes: ``--scenario p2p`` leaves of every part its p2p.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from planebench.model.errors import UsageError
from planebench.model.placement import parse_placing
from planebench.model.plan import Plan
from planebench.model.scenario import scenarios_with
from planebench.model.traffic import PLAIN_NAME
from planebench.plans.items import each, items
from planebench.plans.parts import each_part
from planebench.scenarios.registry import (
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
)
from planebench.traffic.capture import on_wire
from planebench.traffic.registry import parse_all
from planebench.vnfs.chain import resolve_chain

NAMES = {
    "scenarios": "scenario",
    "directions": "direction",
    "frame_sizes_bytes": "frame size",
    "chain_lengths": "chain length",
    "vnf_counts": "number of VNFs",
    "chains": "chain",
    "traffic": "traffic",
    "placements": "placement",
}
"""Field of a plan -> what one value of it is called."""

PARSERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "scenario": ("scenarios", parse_scenario),
    "direction": ("directions", parse_direction),
    "frame_size": ("frame_sizes_bytes", parse_frame_size),
    "vnfs": ("vnf_counts", parse_vnf_count),
    "placement": ("placements", parse_placing),
}
"""Option -> the field of a plan that it chooses from, and the parser of one value."""

CHOICES = ("scenario", "direction", "frame_size", "chain_length", "vnfs", "chain", "traffic", "placement")
"""The options that choose."""


def choose(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Return the plan with only those values in its parts that the options name; a part left with none is skipped.

    Raises UsageError for a value that no part has.
    """
    wanted = _wanted(plan, options)
    for field, values in wanted.items():
        _check_known(plan, field, values)
    return each_part(plan, lambda part: _chosen(part, wanted)) if wanted else plan


def _wanted(plan: Plan, options: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the wanted values by field of a plan. Chains by name exclude chains by length, and the reverse."""
    given = {option: text for option, text in options.items() if text is not None}
    found = {
        field: each(NAMES[field], given[option], parse) for option, (field, parse) in PARSERS.items() if option in given
    }
    if "traffic" in given:
        profiles = parse_all(items("traffic", given["traffic"]))
        found["traffic"] = tuple(on_wire(profile, plan.wire) for profile in profiles)
    if "vnfs" in given and "scenario" not in given:
        found["scenarios"] = scenarios_with("side-by-side", plan.scenarios)
    return found | _wanted_chains(plan, options)


def _wanted_chains(plan: Plan, options: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the wanted chains, and the scenarios with a chain if options name no scenario."""
    text, names = options.get("chain_length"), tuple(options.get("chain") or ())
    if text is None and not names:
        return {}
    lengths = each("chain length", text, parse_chain_length) if text is not None else ()
    found: dict[str, tuple[Any, ...]] = {
        "chain_lengths": lengths,
        "chains": tuple(resolve_chain(name, Path.cwd()) for name in names),
    }
    said = text is not None or options.get("scenario") is not None or options.get("vnfs") is not None
    return found if said else found | {"scenarios": scenarios_with("chain", plan.scenarios)}


def _chosen(part: Plan, wanted: Mapping[str, tuple[Any, ...]]) -> Plan:
    kept: dict[str, Any] = {
        field: tuple(v for v in values if v in getattr(part, field)) for field, values in wanted.items()
    }
    return replace(part, **kept)


def _check_known(plan: Plan, field: str, values: tuple[Any, ...]) -> None:
    known = getattr(plan, field)
    for value in values:
        if value not in known:
            valid = ", ".join(map(_name, known)) or "none"
            raise UsageError(
                f'{NAMES[field]} "{_name(value)}": no part of {plan.name} has it. '
                f"Valid: {valid}; or write a plan (docs/suites.md)"
            )


def _name(value: Any) -> str:
    name = getattr(value, "name", value)
    return str(name) or PLAIN_NAME
