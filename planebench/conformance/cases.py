# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios, wires and checks as a user names them. Pure."""

from __future__ import annotations

from collections.abc import Collection

from planebench.conformance.model import Case
from planebench.conformance.suite import ALL_CHECKS
from planebench.model.errors import UsageError, unknown
from planebench.model.scenario import SCENARIOS, scenarios_with
from planebench.model.wire import WIRES as ALL
from planebench.model.wire import parse_wire, split_wires, wire_name
from planebench.switches.adapter import Adapter, Situation, refusal_of

ALL_WIRES = "all"
WIRES = (*ALL, ALL_WIRES)
_CHAINED = [name for name in scenarios_with("chain") if not SCENARIOS[name].two_switches]
CASES = {name: Case(name, name) for name in scenarios_with("none")} | {
    f"{name}-{n}": Case(f"{name}-{n}", name, n) for name in _CHAINED for n in range(1, SCENARIOS[name].vnfs_max + 1)
}
CASES["workers-2"] = Case("workers-2", "p2p", workers=2, checks=frozenset({"forwards", "counters", "overload"}))
CHECKS = {check.name: check for check in ALL_CHECKS}


def parse_cases(text: str) -> tuple[Case, ...]:
    """Return the cases in ``p2p,loopback-3``; loopback alone is loopback-1. Raises UsageError for an unknown one."""
    names = [f"{name}-1" if name in _CHAINED else name for name in _items(text)]
    return tuple(CASES[_one_of("scenario", name, CASES)] for name in dict.fromkeys(names))


def parse_wires(text: str | None, adapter: Adapter) -> tuple[str, ...]:
    """Return wires of the adapter, in our order: the first one, ``all``, or the named ones. Raises UsageError.

    A wire that needs arguments is used only where it is named, with them.
    """
    usable = tuple(wire for wire in ALL if wire in (adapter.wires if adapter.queues == 1 else adapter.queued_wires))
    bare = tuple(name for name in usable if not ALL[name].needs_arguments)
    if text is None:
        return bare[:1]
    if text == ALL_WIRES:
        return bare
    named = {wire_name(wire): parse_wire(wire) for wire in split_wires(text)}
    for name in (wire for wire in ALL if wire in named and wire not in usable):
        reason = refusal_of(adapter, Situation("p2p", name)) or f"{adapter.name} has no {name} wire"
        raise UsageError(f"{reason}. Valid: {', '.join(usable)}, {ALL_WIRES}")
    return tuple(named[name] for name in usable if name in named)


def parse_checks(text: str | None) -> frozenset[str]:
    """Return the names of checks; all of them without a text. Raises UsageError for an unknown one."""
    return frozenset(CHECKS if text is None else (_one_of("check", name, CHECKS) for name in _items(text)))


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _one_of(what: str, name: str, valid: Collection[str]) -> str:
    if name not in valid:
        raise unknown(what, name, valid)
    return name
