# SPDX-License-Identifier: BSD-3-Clause
"""Options of the command line on top of a plan: comma-separated lists make a matrix."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import TypeVar, get_args

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.records import WireName
from planebench.plans.plan import Plan
from planebench.plans.schema import NAME_PATTERN, check_ring_size
from planebench.scenarios import parse_chain_length, parse_direction, parse_frame_size, parse_scenario

T = TypeVar("T")

WIRES: tuple[WireName, ...] = get_args(WireName)
REPEAT_MAX = 1000
DURATION_MAX_S = 3600.0


def override(
    plan: Plan,
    *,
    switch: str | None = None,
    scenario: str | None = None,
    frame_size: str | None = None,
    direction: str | None = None,
    chain_length: str | None = None,
    duration: float | None = None,
    repeat: int | None = None,
    wire: str | None = None,
    ring_size: int | None = None,
    loads: str | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Plan:
    """The plan with the options that are not None put in. UsageError for what is not valid.

    Text options are comma-separated lists; ``switch`` may repeat a name, and a switch asked for by name must be there.
    ``duration`` (seconds) and ``repeat`` are those of throughput trials and, ``duration`` only, of latency trials.
    ``loads`` are shares of R+, or ``none`` for no latency. The time budget is that of the plan as it was written: an
    option that changes what is measured drops it.
    """
    new = plan
    if switch is not None:
        new = replace(new, switches=_items("switch", switch), missing_switches="error")
    if scenario is not None:
        new = replace(new, scenarios=_each("scenario", scenario, parse_scenario))
    if frame_size is not None:
        new = replace(new, frame_sizes_bytes=_each("frame size", frame_size, parse_frame_size))
    if direction is not None:
        new = replace(new, directions=_each("direction", direction, parse_direction))
    if chain_length is not None:
        new = _with_chain(new, chain_length)
    if duration is not None:
        new = _with_duration(new, duration)
    if repeat is not None:
        new = replace(new, throughput=replace(new.throughput, repetitions=_repeat(repeat)))
    if wire is not None:
        new = replace(new, wire=_wire(wire))
    if ring_size is not None:
        new = replace(new, ring_size=check_ring_size(ring_size))
    if loads is not None:
        new = replace(new, latency=replace(new.latency, loads=_loads(loads)))
    if new != plan:
        new = replace(new, time_budget_s=None)
    return replace(
        new, seed=_seed(plan.seed if seed is None else seed), name=_name(plan.name if name is None else name)
    )


def _items(what: str, text: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(","))
    if not all(items):
        raise UsageError(f'{what} "{text}" has an empty entry; give names separated by single commas')
    return items


def _each(what: str, text: str, parse: Callable[[str], T]) -> tuple[T, ...]:
    """Parsed entries; one that is named twice counts once."""
    return tuple(dict.fromkeys(parse(item) for item in _items(what, text)))


def _with_chain(plan: Plan, text: str) -> Plan:
    if "loopback" not in plan.scenarios:
        raise UsageError(f'chain length "{text}": only loopback has a chain; add loopback to the scenarios')
    return replace(plan, chain_lengths=_each("chain length", text, parse_chain_length))


def _with_duration(plan: Plan, seconds: float) -> Plan:
    if not (isfinite(seconds) and 0 < seconds <= DURATION_MAX_S):
        raise UsageError(f'duration "{seconds}" is not valid. Valid: more than 0, at most {DURATION_MAX_S:g} seconds')
    return replace(
        plan,
        throughput=replace(plan.throughput, duration_s=seconds),
        latency=replace(plan.latency, duration_s=seconds),
    )


def _repeat(count: int) -> int:
    if not 1 <= count <= REPEAT_MAX:
        raise UsageError(f'repeat "{count}" is not valid. Valid: 1..{REPEAT_MAX}')
    return count


def _seed(seed: int) -> int:
    if seed < 0:
        raise UsageError(f'seed "{seed}" is not valid. Valid: 0 or more')
    return seed


def _name(name: str) -> str:
    if not re.fullmatch(NAME_PATTERN, name):
        raise UsageError(f'name "{name}" is not valid. Valid: letters, digits, ".", "_" and "-", 64 at most')
    return name


def _wire(text: str) -> WireName:
    if text not in WIRES:
        raise unknown("wire", text, WIRES)
    return text


def _loads(text: str) -> tuple[float, ...]:
    return () if text.strip() == "none" else _each("load", text, _share)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f'load "{text}" is not valid. Valid: shares of R+ above 0, at most 1, as 0.10,0.50; or none')
    return share
