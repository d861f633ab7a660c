# SPDX-License-Identifier: BSD-3-Clause
"""Options of the command line on top of a plan: a partial document, checked as every plan document is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from planebench.analysis.search.methods import parameters
from planebench.model.chain_name import split
from planebench.model.errors import UsageError
from planebench.model.plan import R_PLUS, SECTIONS, Plan
from planebench.model.scenario import SCENARIOS, scenario_named, scenarios_with
from planebench.model.scenarios import (
    chain_in,
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
)
from planebench.model.server import parse_placing
from planebench.model.traffic import PLAIN_NAME
from planebench.plan.passes import each_part, with_parts
from planebench.plan.schema import validated, with_chains
from planebench.plan.taken import check_taken
from planebench.testbed.chain import resolve_chain
from planebench.testbed.traffic import parse_all
from planebench.testbed.traffic_files import on_wire

# Comma-separated lists of the command line.

T = TypeVar("T")


def items(what: str, text: str) -> tuple[str, ...]:
    """Return the entries of a list; commas in double quotes are text. UsageError for an empty one."""
    found = tuple(item.strip() for item in split(text, ","))
    if not all(found):
        raise UsageError(f'{what} "{text}" has an empty entry; separate names by single commas')
    return found


def each(what: str, text: str, parse: Callable[[str], T]) -> tuple[T, ...]:
    """Return the parsed entries, each once."""
    return tuple(dict.fromkeys(parse(item) for item in items(what, text)))


# Options of the matrix on a plan of parts: they choose among what its parts have.
#
# So a part that is for a table of a paper stays that, or goes: ``--scenario p2p`` leaves of every part its p2p.


def choose(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Return the plan with only those values in its parts that the options name; a part left with none is skipped.

    Raises UsageError for a value that no part has.
    """
    given = {option: text for option, text in options.items() if text is not None}
    found: dict[str, tuple[Any, ...]] = {}
    for option, it in OPTIONS.items():
        if it.parse is not None and option in given:
            found[it.keys[0]] = each(it.chooses, given[option], it.parse)
    if "traffic" in given:
        profiles = parse_all(items("traffic", given["traffic"]))
        found["traffic"] = tuple(on_wire(profile, plan.wire) for profile in profiles)
    if "vnfs" in given and "scenario" not in given:
        found["scenarios"] = scenarios_with("side-by-side", plan.scenarios)
    wanted = found | _wanted_chains(plan, options)
    names = {"chains": "chain", **{it.keys[0]: it.chooses for it in OPTIONS.values()}}
    for field, values in wanted.items():
        known = getattr(plan, field)
        for value in values:
            if value not in known:
                valid = ", ".join(map(_name, known)) or "none"
                raise UsageError(
                    f'{names[field]} "{_name(value)}": no part of {plan.name} has it. '
                    f"Valid: {valid}; or write a plan (docs/suites.md)"
                )

    def chosen(part: Plan) -> Plan:
        kept = {field: tuple(v for v in values if v in getattr(part, field)) for field, values in wanted.items()}
        return replace(part, **cast(dict[str, Any], kept))

    return each_part(plan, chosen) if wanted else plan


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


def _name(value: Any) -> str:
    name = getattr(value, "name", value)
    return str(name) or PLAIN_NAME


LOAD_SETS: dict[str, tuple[float, ...]] = {
    "none": (),
    "curve": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
}
"""Names for sets of loads; the curve is dense where latency rises."""


@dataclass(frozen=True, slots=True)
class _Option:
    """Which keys of a plan document an option sets (``latency.loads``), and how its text becomes their value.

    ``chooses``: what it names one of, of those that the parts of a plan have; empty where it does not choose among
    them. ``parse`` parses one of these.
    """

    keys: tuple[str, ...]
    value: Callable[[str, Any], Any] = lambda flag, given: given
    chooses: str = ""
    parse: Callable[[str], Any] | None = None


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
            f'load "{text}" is not valid. Valid: shares above 0, at most 1, e.g. 0.10,0.50; curve; or none. They are '
            "of the load that the plan names, or of another: mrr:0.50 of the rate at maximum load, carried:0.50, ..."
        )
    return share


OPTIONS: Mapping[str, _Option] = {
    "switch": _Option(("switches",), items),
    "cpu_mhz": _Option(("cpu_clocks",), lambda flag, text: tuple(f"{mhz}MHz" for mhz in items(flag, text))),
    "duty": _Option(("cpu_clocks",), lambda flag, text: tuple(f"duty:{share}" for share in items(flag, text))),
    "scenario": _Option(("scenarios",), items, "scenario", parse_scenario),
    "frame_size": _Option(("frame_sizes_bytes",), items, "frame size", parse_frame_size),
    "direction": _Option(("directions",), items, "direction", parse_direction),
    "chain_length": _Option(("chain_lengths",), items, "chain length"),
    "vnfs": _Option(("vnf_counts",), items, "number of VNFs", parse_vnf_count),
    "hosting": _Option(("hosting",), items),
    "placement": _Option(("placements",), items, "placement", parse_placing),
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
    "check": _Option(("check",)),
    "ring_size": _Option(("ring_size",)),
    "wire_ring_size": _Option(("wire_ring_size",)),
    "switch_cores": _Option(("switch_cores",)),
    "tester_cores": _Option(("tester_cores",)),
    "loads": _Option(("latency.loads",), _loads),
    "rates": _Option(("latency.rates_pps",), lambda flag, text: () if text.strip() == "none" else items(flag, text)),
    "traffic": _Option(("traffic",), items, "traffic"),
    "anatomy": _Option(("latency.anatomy",)),
}
"""Options that change the measurement, each with the keys of a plan document that it sets."""

CHOICES = ("chain", *(name for name, option in OPTIONS.items() if option.chooses))
"""The options that choose among what the parts of a plan have."""
_MATTERS_OF_FORM = ("seed", "name")
_OF_LATENCY = ("loads", "rates", "anatomy")


def override(plan: Plan, **options: Any) -> Plan:
    """Return the plan with the options that are not None put in. Raises UsageError for a value that is not valid.

    :data:`OPTIONS` has them all, beside ``seed``, ``name`` and ``chain``. Text options are comma-separated lists;
    ``switch`` may repeat a name, and a switch asked for by name must be there. ``chain`` is a list of chains, each a
    text with commas of its own: instead of all chains of the plan, and of all its scenarios but those asked for.
    ``cpu_mhz`` and ``duty`` are clocks, set or emulated: every point is measured at each.
    ``duration`` (seconds) and ``repeat`` are those of throughput trials and, ``duration`` only, of latency trials.
    ``loads`` are shares of the load that the plan names, or of another one (``mrr:0.5``), ``curve`` for a whole curve
    of them, or ``none`` for none; ``rates`` are fixed loads beside them. ``search`` are names of searches.
    In a plan of parts those of the matrix choose among what the parts have (:mod:`planebench.plan.override`).
    The time budget is that of the plan as it was written: an option that changes what is measured drops it.
    """
    options = _with_lengths(plan, options)
    if strange := set(options) - {*OPTIONS, *_MATTERS_OF_FORM, "chain"}:
        raise TypeError(f"override() has no option {', '.join(sorted(strange))}")
    if plan.parts:
        # Of latency in those parts that take any. Those of the matrix choose among what the parts have, so that a part
        # stays what it is for.
        chosen = choose(plan, options)
        latency = {part.name for part in plan.parts if part.latency.wanted} or {part.name for part in plan.parts}
        besides = {part.name: CHOICES if part.name in latency else (*CHOICES, *_OF_LATENCY) for part in plan.parts}
        parts = [_put(part, options, besides[part.name]) for part in chosen.parts]
        new = with_parts(_put(chosen, options, CHOICES), parts)
    else:
        new = _with_chains(_put(plan, options), options)
    if new != plan:
        new = replace(new, time_budget_s=None)
    flags = {key: f"--{name.replace('_', '-')}" for name in options if name in OPTIONS for key in OPTIONS[name].keys}
    check_taken(new, (key for name, it in OPTIONS.items() if options.get(name) is not None for key in it.keys), flags)
    form = {key: options[key] for key in _MATTERS_OF_FORM if options.get(key) is not None}
    return _checked(new, form, form) if form else new


def _with_lengths(plan: Plan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the chain length of scenarios that name it, as ``loopback-2`` and ``pvp``."""
    if options.get("scenario") is None:
        return dict(options)
    found = [(text, chain_in(text)) for text in items("scenario", options["scenario"].lower())]
    lengths = [chain[1] for _, chain in found if chain is not None]
    if lengths and options.get("chain_length") is not None:
        raise UsageError(f"--scenario {options['scenario']} says the number of VNFs: leave out --chain-length")
    names = [text if chain is None else chain[0] for text, chain in found]
    others = scenarios_with("chain", [text for text, chain in found if chain is None and text in SCENARIOS])
    changed = {"scenario": ",".join(dict.fromkeys(names))}
    if lengths and not options.get("chain"):  # functions say how many they are
        lengths += plan.chain_lengths if others else ()
        changed["chain_length"] = ",".join(map(str, dict.fromkeys(lengths)))
    return {**options, **changed}


def _put(plan: Plan, options: Mapping[str, Any], besides: Collection[str] = ()) -> Plan:
    """Return a plan of one matrix, or what parts have in common, with all options but those of ``besides``."""
    named = {key: value for key, value in options.items() if value is not None and key not in besides}
    given = {key: named[key] for key in OPTIONS if key in named}
    for option in given:
        plan = _prepared(plan, option, given[option])
        entry = OPTIONS[option]
        value = entry.value(option.replace("_", " "), given[option])
        plan = _checked(plan, {option: value}, dict.fromkeys(entry.keys, value))
        if option == "switch":  # those that are named must be there
            plan = replace(plan, missing_switches="error")
        elif option == "hosting":
            plan = replace(plan, missing_hostings="error")
        elif (
            option == "scenario" and not any(scenario_named(scenario).has_vnfs for scenario in plan.scenarios)
        ) or option == "chain_length":
            plan = replace(plan, chains=())
        elif option == "loads" and (of := given[option].rpartition(":")[0]):
            plan = _checked(plan, {option: given[option]}, {"latency.of": R_PLUS if of == "mrr" else of})
    return plan


def _prepared(plan: Plan, option: str, value: Any) -> Plan:
    """Return the plan as it takes an option. Raises UsageError for one that none of its scenarios takes."""
    if option == "chain_length" and not scenarios_with("chain", plan.scenarios):
        names = scenarios_with("chain")
        raise UsageError(f"--chain-length {value}: applies only to {' and '.join(names)}; add --scenario {names[0]}")
    if option == "vnfs" and not scenarios_with("side-by-side", plan.scenarios):
        name = " and ".join(scenarios_with("side-by-side"))
        raise UsageError(f"--vnfs {value}: applies only to {name}; add --scenario {name}")
    if option != "repeat":
        return plan
    # So many repetitions, no more. Fewer have fewer gaps to restart in.
    throughput = replace(plan.throughput, repetitions_max=None)
    if throughput.restarts is not None:
        throughput = replace(throughput, restarts=max(0, min(throughput.restarts, value - 1)))
    return replace(plan, throughput=throughput)


def _checked(plan: Plan, options: Mapping[str, Any], keys: Mapping[str, Any]) -> Plan:
    """Return the plan with these keys of its document set. Raises UsageError, which names the option."""
    document = {field.name: getattr(plan, field.name) for field in fields(plan)}
    document["hosting"] = plan.hostings
    for path, value in keys.items():
        section, _, key = path.rpartition(".")
        if section in SECTIONS:
            known = document[section]  # a record at first
            if not isinstance(known, dict):
                known = {field.name: getattr(known, field.name) for field in fields(known)}
            document[section] = {**known, key: value}
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
