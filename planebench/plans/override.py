# SPDX-License-Identifier: BSD-3-Clause
"""Options of the command line on top of a plan: a partial document, checked as every plan document is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from planebench.model.errors import UsageError
from planebench.model.plan import R_PLUS, Plan
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.plans.choose import CHOICES, choose
from planebench.plans.items import items
from planebench.plans.parts import with_parts
from planebench.plans.schema import SECTIONS, validated, with_chains
from planebench.plans.switch_options import with_switch_options
from planebench.search import parameters

LOAD_SETS: dict[str, tuple[float, ...]] = {
    "none": (),
    "curve": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
}
"""Names for sets of loads; the curve is dense where latency rises."""


@dataclass(frozen=True, slots=True)
class _Option:
    """Which keys of a plan document an option sets (``latency.loads``), and how its text becomes their value."""

    keys: tuple[str, ...]
    value: Callable[[str, Any], Any] = lambda flag, given: given


def _loads(flag: str, text: str) -> tuple[float, ...]:
    """Return the shares in a text, or a set of them by its name."""
    text = text.rpartition(":")[2]
    named = LOAD_SETS.get(text.strip())
    return named if named is not None else tuple(_share(item) for item in items(flag, text))


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(
            f'load "{text}" is not valid. Valid: shares of R+ above 0, at most 1, e.g. 0.10,0.50; curve; or none. '
            "carried:0.10,0.50 are shares of the carried load"
        )
    return share


def _rates(flag: str, text: str) -> tuple[str, ...]:
    return () if text.strip() == "none" else items(flag, text)


OPTIONS: Mapping[str, _Option] = {
    "switch": _Option(("switches",), items),
    "switch_option": _Option(("switches",)),
    "cpu_mhz": _Option(("cpu_clocks",), lambda flag, text: tuple(f"{mhz}MHz" for mhz in items(flag, text))),
    "duty": _Option(("cpu_clocks",), lambda flag, text: tuple(f"duty:{share}" for share in items(flag, text))),
    "scenario": _Option(("scenarios",), items),
    "frame_size": _Option(("frame_sizes_bytes",), items),
    "direction": _Option(("directions",), items),
    "chain_length": _Option(("chain_lengths",), items),
    "vnfs": _Option(("vnf_counts",), items),
    "hosting": _Option(("hosting",), items),
    "placement": _Option(("placements",), items),
    "tester": _Option(("tester",)),
    "duration": _Option(("throughput.duration_s", "latency.duration_s")),
    "repeat": _Option(("throughput.repetitions",)),
    "restarts": _Option(("throughput.restarts",)),
    "max_rate": _Option(("throughput.max_rate_pps",)),
    "line": _Option(("throughput.line_bps",)),
    "open_loop": _Option(("throughput.open_loop",)),
    "search": _Option(("search.methods",), items),
    **{parameter.option: _Option((f"search.{parameter.key}",)) for parameter in parameters()},
    "wire": _Option(("wire",)),
    "clock": _Option(("clock",)),
    "ring_size": _Option(("ring_size",)),
    "switch_cores": _Option(("switch_cores",)),
    "loads": _Option(("latency.loads",), _loads),
    "rates": _Option(("latency.rates_pps",), _rates),
    "traffic": _Option(("traffic",), items),
    "anatomy": _Option(("latency.anatomy",)),
}
"""Options that change the measurement, each with the keys of a plan document that it sets."""

_MATTERS_OF_FORM = ("seed", "name")
_OF_LATENCY = ("loads", "rates", "anatomy")


def override(plan: Plan, **options: Any) -> Plan:
    """Return the plan with the options that are not None put in. Raises UsageError for a value that is not valid.

    :data:`OPTIONS` has them all, beside ``seed``, ``name`` and ``chain``. Text options are comma-separated lists;
    ``switch`` may repeat a name, and a switch asked for by name must be there. ``chain`` is a list of chains, each a
    text with commas of its own: instead of all chains of the plan, and of all its scenarios but those asked for.
    ``switch_option`` is a list of SWITCH.KEY=VALUE. ``cpu_mhz`` and ``duty`` are clocks, set or emulated: every point
    is measured at each.
    ``duration`` (seconds) and ``repeat`` are those of throughput trials and, ``duration`` only, of latency trials.
    ``loads`` are shares of R+, ``curve`` for a whole curve of them, or ``none`` for none; ``rates`` are fixed loads
    beside them. ``search`` are names of searches.
    In a plan of parts those of the matrix choose among what the parts have (:mod:`planebench.plans.choose`).
    The time budget is that of the plan as it was written: an option that changes what is measured drops it.
    """
    if strange := set(options) - {*OPTIONS, *_MATTERS_OF_FORM, "chain"}:
        raise TypeError(f"override() has no option {', '.join(sorted(strange))}")
    new = _put_into_parts(plan, options) if plan.parts else _with_chains(_put(plan, options), options)
    if new != plan:
        new = replace(new, time_budget_s=None)
    form = {key: options[key] for key in _MATTERS_OF_FORM if options.get(key) is not None}
    return _checked(new, form, form) if form else new


def _put_into_parts(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Return the plan with the options in every part, of latency in those that take any.

    Those of the matrix choose among what the parts have, so that a part stays what it is for.
    """
    chosen = choose(plan, options)
    with_latency = {part.name for part in plan.parts if part.latency.wanted} or {part.name for part in plan.parts}
    parts = [
        _put(part, options, CHOICES if part.name in with_latency else (*CHOICES, *_OF_LATENCY)) for part in chosen.parts
    ]
    return with_parts(_put(chosen, options, CHOICES), parts)


def _put(plan: Plan, options: Mapping[str, Any], besides: Collection[str] = ()) -> Plan:
    """Return a plan of one matrix, or what parts have in common, with all options but those of ``besides``."""
    named = {key: value for key, value in options.items() if value is not None and key not in besides}
    given = {key: named[key] for key in OPTIONS if key in named}
    for option in given:
        plan = _PUT.get(option, _put_one)(plan, option, given)
    return plan


def _put_one(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with one option in it, by the keys that it sets."""
    entry = OPTIONS[option]
    value = entry.value(option.replace("_", " "), given[option])
    return _checked(plan, {option: value}, dict.fromkeys(entry.keys, value))


def _checked(plan: Plan, options: Mapping[str, Any], keys: Mapping[str, Any]) -> Plan:
    """Return the plan with these keys of its document set. Raises UsageError, which names the option."""
    document = {field.name: getattr(plan, field.name) for field in fields(plan)}
    document["hosting"] = plan.hostings
    for path, value in keys.items():
        section, _, key = path.rpartition(".")
        if section in SECTIONS:
            document[section] = {**_record(document[section]), key: value}
        else:
            document[key] = value
    try:
        return validated(document)
    except UsageError as error:
        flags = ", ".join(f"--{option.replace('_', '-')}" for option in options)
        text = str(error)
        for path in keys:
            text = text.removeprefix(f"{path}: ")
        raise UsageError(f"{flags}: {text}") from None


def _record(section: Any) -> dict[str, Any]:
    """Return the keys of a section, which is a record at first."""
    return dict(section) if isinstance(section, dict) else {f.name: getattr(section, f.name) for f in fields(section)}


def _with_switches(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with other switches; they must be there."""
    return replace(_put_one(plan, option, given), missing_switches="error")


def _with_hostings(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with other hostings; they must be there."""
    return replace(_put_one(plan, option, given), missing_hostings="error")


def _with_switch_options(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    return replace(plan, switches=with_switch_options(plan.switches, given[option]))


def _with_scenarios(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with other scenarios; chains by name that it has go with scenarios that have VNFs."""
    new = _put_one(plan, option, given)
    with_vnfs = any(scenario_named(scenario).has_vnfs for scenario in new.scenarios)
    return new if with_vnfs else replace(new, chains=())


def _with_length(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with chains of l2fwd of these lengths, instead of those that it names."""
    if not scenarios_with("chain", plan.scenarios):
        names = scenarios_with("chain")
        raise UsageError(
            f"--chain-length {given[option]}: applies only to {' and '.join(names)}; add --scenario {names[0]}"
        )
    return replace(_put_one(plan, option, given), chains=())


def _with_vnfs(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with other numbers of VNFs side by side."""
    if not scenarios_with("side-by-side", plan.scenarios):
        names = " and ".join(scenarios_with("side-by-side"))
        raise UsageError(f"--vnfs {given[option]}: applies only to {names}; add --scenario {names}")
    return _put_one(plan, option, given)


def _with_repeat(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with so many repetitions, no more. Fewer have fewer gaps to restart in."""
    throughput = replace(plan.throughput, repetitions_max=None)
    if throughput.restarts is not None:
        throughput = replace(throughput, restarts=max(0, min(throughput.restarts, given[option] - 1)))
    return _put_one(replace(plan, throughput=throughput), option, given)


def _with_loads(plan: Plan, option: str, given: Mapping[str, Any]) -> Plan:
    """Return the plan with other loads of latency: ``0.10,0.50`` are shares of R+, ``carried:0.10`` of that load."""
    of = given[option].rpartition(":")[0] or R_PLUS
    return _checked(_put_one(plan, option, given), {option: given[option]}, {"latency.of": of})


_PUT: Mapping[str, Callable[[Plan, str, Mapping[str, Any]], Plan]] = {
    "switch": _with_switches,
    "switch_option": _with_switch_options,
    "hosting": _with_hostings,
    "scenario": _with_scenarios,
    "chain_length": _with_length,
    "vnfs": _with_vnfs,
    "repeat": _with_repeat,
    "loads": _with_loads,
}
"""The options that do more than set their keys."""


def _with_chains(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Return the plan with chains by name instead of its own; of a length too where both options are given."""
    texts = tuple(options.get("chain") or ())
    if not texts:
        return plan
    lengths = plan.chain_lengths if options.get("chain_length") is not None else ()
    chained, beside = (scenarios_with(layout, plan.scenarios) for layout in ("chain", "side-by-side"))
    usual = chained or beside or scenarios_with("chain")[:1]
    scenarios = plan.scenarios if options.get("scenario") is not None else usual
    return with_chains(replace(plan, chains=texts, chain_lengths=lengths, scenarios=scenarios), Path.cwd())
