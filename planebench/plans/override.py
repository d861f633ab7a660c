# SPDX-License-Identifier: BSD-3-Clause
"""Options of the command line on top of a plan: comma-separated lists make a matrix."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, get_args

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.plan import Band, Plan
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.plans.choose import CHOICES, choose
from planebench.plans.items import each, items
from planebench.plans.parts import of_hostings, with_parts
from planebench.plans.schema import (
    NAME_PATTERN,
    check_restarts,
    check_ring_size,
    check_switch_cores,
    parse_hosting,
    parse_search,
    parse_wire,
    with_chains,
)
from planebench.plans.switch_options import with_switch_options
from planebench.scenarios import (
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
)
from planebench.traffic.rates import parse_rate
from planebench.traffic.registry import parse_all

REPEAT_MAX = 1000
BANDS: tuple[Band, ...] = get_args(Band)
DURATION_MAX_S = 3600.0
MAX_R_MAX = 100
LOAD_SETS: dict[str, tuple[float, ...]] = {
    "none": (),
    "curve": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
}
"""Names for sets of loads; the curve is dense where latency rises."""


def override(plan: Plan, **options: Any) -> Plan:
    """The plan with the options that are not None put in. UsageError for a value that is not valid.

    :data:`OPTIONS` has them all, beside ``seed``, ``name`` and ``chain``. Text options are comma-separated lists;
    ``switch`` may repeat a name, and a switch asked for by name must be there. ``chain`` is a list of chains, each a
    text with commas of its own: instead of all chains of the plan, and of all its scenarios but those asked for.
    ``switch_option`` is a list of SWITCH.KEY=VALUE.
    ``duration`` (seconds) and ``repeat`` are those of throughput trials and, ``duration`` only, of latency trials.
    ``loads`` are shares of R+, ``curve`` for a whole curve of them, or ``none`` for none; ``rates`` are fixed loads
    beside them. ``search`` are names of search methods and ``search_duration`` the length of their trials.
    In a plan of parts those of the matrix choose among what the parts have (:mod:`planebench.plans.choose`).
    ``max_rate`` is a rate as 14.88M. The time budget is that of the plan as it was written: an option that changes
    what is measured drops it.
    """
    if strange := set(options) - {*OPTIONS, *_MATTERS_OF_FORM, "chain"}:
        raise TypeError(f"override() has no option {', '.join(sorted(strange))}")
    new = _put_into_parts(plan, options) if plan.parts else _with_chains(_put(plan, options), options)
    check_restarts(new.throughput.restarts, new.throughput.repetitions)
    if new != plan:
        new = replace(new, time_budget_s=None)
    seed, name = options.get("seed"), options.get("name")
    return replace(
        new, seed=_seed(plan.seed if seed is None else seed), name=_name(plan.name if name is None else name)
    )


def _put(plan: Plan, options: Mapping[str, Any], besides: Collection[str] = ()) -> Plan:
    for option, put in OPTIONS.items():
        if options.get(option) is not None and option not in besides:
            plan = put(plan, options[option])
    return plan


def _put_into_parts(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Those of the matrix choose among what the parts have, so that a part stays what it is for; all others go to
    every part, of latency to those that take any."""
    chosen = choose(plan, options)
    with_latency = {part.name for part in plan.parts if part.latency.wanted} or {part.name for part in plan.parts}
    parts = [
        _put(part, options, CHOICES if part.name in with_latency else (*CHOICES, *_OF_LATENCY)) for part in chosen.parts
    ]
    return with_parts(_put(chosen, options, CHOICES), parts)


def _with_length(plan: Plan, text: str) -> Plan:
    if not scenarios_with("chain", plan.scenarios):
        names = " and ".join(scenarios_with("chain"))
        raise UsageError(f'chain length "{text}": only {names} has a chain; add {names} to the scenarios')
    return replace(plan, chain_lengths=each("chain length", text, parse_chain_length), chains=())


def _with_scenarios(plan: Plan, text: str) -> Plan:
    """Chains by name that a plan has go with its scenarios that have VNFs."""
    scenarios = each("scenario", text, parse_scenario)
    with_vnfs = any(scenario_named(scenario).has_vnfs for scenario in scenarios)
    return replace(plan, scenarios=scenarios, chains=plan.chains if with_vnfs else ())


def _with_vnfs(plan: Plan, text: str) -> Plan:
    if not scenarios_with("side-by-side", plan.scenarios):
        names = " and ".join(scenarios_with("side-by-side"))
        raise UsageError(f'number of VNFs "{text}": only {names} has VNFs side by side; add --scenario {names}')
    return replace(plan, vnf_counts=each("number of VNFs", text, parse_vnf_count))


def _with_chains(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Chains by name instead of those of the plan; of a length too where both options are given."""
    texts = tuple(options.get("chain") or ())
    if not texts:
        return plan
    lengths = plan.chain_lengths if options.get("chain_length") is not None else ()
    chained, beside = (scenarios_with(layout, plan.scenarios) for layout in ("chain", "side-by-side"))
    usual = chained or beside or scenarios_with("chain")[:1]
    scenarios = plan.scenarios if options.get("scenario") is not None else usual
    return with_chains(replace(plan, chains=texts, chain_lengths=lengths, scenarios=scenarios), Path.cwd())


def _rates(text: str) -> tuple[float, ...]:
    return () if text.strip() == "none" else each("rates", text, parse_rate)


def _with_switches(plan: Plan, text: str) -> Plan:
    return replace(plan, switches=items("switch", text), missing_switches="error")


def _with_search(plan: Plan, text: str) -> Plan:
    names = each("search", text, parse_search)
    return replace(plan, search=replace(plan.search, methods=tuple(name for name in names if name != "r_plus")))


def _max_r(trials: int) -> int:
    if not 1 <= trials <= MAX_R_MAX:
        raise UsageError(f'max-r "{trials}" is not valid. Valid: 1..{MAX_R_MAX} trials')
    return trials


def _seconds(what: str, seconds: float) -> float:
    if not (isfinite(seconds) and 0 < seconds <= DURATION_MAX_S):
        raise UsageError(f'{what} "{seconds}" is not valid. Valid: more than 0, at most {DURATION_MAX_S:g} seconds')
    return seconds


def _band(text: str) -> Band:
    if text not in BANDS:
        raise unknown("band", text, BANDS)
    return text


def _with_duration(plan: Plan, seconds: float) -> Plan:
    _seconds("duration", seconds)
    return replace(
        plan,
        throughput=replace(plan.throughput, duration_s=seconds),
        latency=replace(plan.latency, duration_s=seconds),
    )


def _with_repeat(plan: Plan, count: int) -> Plan:
    """Fewer repetitions have fewer gaps to restart in; who wants more restarts than that has to say so, and is told."""
    restarts = min(plan.throughput.restarts, _repeat(count) - 1)
    return replace(plan, throughput=replace(plan.throughput, repetitions=count, restarts=restarts))


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


def _loads(text: str) -> tuple[float, ...]:
    if text.strip() in LOAD_SETS:
        return LOAD_SETS[text.strip()]
    return each("load", text, _share)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(
            f'load "{text}" is not valid. Valid: shares of R+ above 0, at most 1, as 0.10,0.50; curve; or none'
        )
    return share


def _throughput(**changes: Any) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, throughput=replace(plan.throughput, **changes))


def _search(**changes: Any) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, search=replace(plan.search, **changes))


OPTIONS: dict[str, Callable[[Plan, Any], Plan]] = {
    "switch": _with_switches,
    "switch_option": lambda plan, texts: replace(plan, switches=with_switch_options(plan.switches, texts)),
    "scenario": lambda plan, text: _with_scenarios(plan, text),
    "frame_size": lambda plan, text: replace(plan, frame_sizes_bytes=each("frame size", text, parse_frame_size)),
    "direction": lambda plan, text: replace(plan, directions=each("direction", text, parse_direction)),
    "chain_length": lambda plan, text: _with_length(plan, text),
    "vnfs": lambda plan, text: _with_vnfs(plan, text),
    "hosting": lambda plan, text: replace(plan, **of_hostings(each("hosting", text, parse_hosting))),
    "duration": lambda plan, seconds: _with_duration(plan, seconds),
    "repeat": lambda plan, count: _with_repeat(plan, count),
    "restarts": lambda plan, count: _throughput(restarts=count)(plan),
    "max_rate": lambda plan, text: _throughput(max_rate_pps=parse_rate(text))(plan),
    "search": _with_search,
    "search_duration": lambda plan, seconds: _search(duration_s=_seconds("search duration", seconds))(plan),
    "max_r": lambda plan, trials: _search(max_r=_max_r(trials))(plan),
    "band": lambda plan, text: replace(plan, band=_band(text)),
    "wire": lambda plan, text: replace(plan, wire=parse_wire(text)),
    "ring_size": lambda plan, size: replace(plan, ring_size=check_ring_size(size)),
    "switch_cores": lambda plan, count: replace(plan, switch_cores=check_switch_cores(count)),
    "loads": lambda plan, text: replace(plan, latency=replace(plan.latency, loads=_loads(text))),
    "rates": lambda plan, text: replace(plan, latency=replace(plan.latency, rates_pps=_rates(text))),
    "traffic": lambda plan, text: replace(plan, traffic=parse_all(items("traffic", text))),
    "anatomy": lambda plan, wanted: replace(plan, latency=replace(plan.latency, anatomy=wanted)),
}
"""What changes the measurement: option -> how it changes the plan."""

_MATTERS_OF_FORM = ("seed", "name")
_OF_LATENCY = ("loads", "rates", "anatomy")
