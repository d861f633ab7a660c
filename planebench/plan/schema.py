# SPDX-License-Identifier: BSD-3-Clause
"""The border: a plan document becomes a :class:`Plan`, checked whole. Keys are closed.

A document is parsed YAML, or the options of the command line put into a plan (:mod:`planebench.plan.override`). Its
texts become values here (scenarios, sizes, rates, traffic profiles, chains); what values may be, the records of
:mod:`planebench.model.plan` say, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from re import fullmatch
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from planebench.analysis.search.methods import METHODS
from planebench.model.chain_name import WHOLE, vnf_texts
from planebench.model.closed import adapter
from planebench.model.dimensions import ClockChoice, HostingName
from planebench.model.errors import UsageError, unknown
from planebench.model.plan import (
    R_PLUS,
    SECTIONS,
    FrameCheck,
    Plan,
    RingSize,
    SwitchCores,
    TesterCores,
    WireRingSize,
)
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.model.scenarios import (
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
)
from planebench.model.server import parse_cpu_clock, parse_placing
from planebench.model.text import fault_words, is_yaml_file, parse_yaml, read_text
from planebench.model.traffic import PLAIN_NAME
from planebench.model.wire import parse_wire
from planebench.plan import SUITES, check_suite, list_suites
from planebench.plan.passes import MATRIX, of_hostings, with_parts
from planebench.plan.taken import check_taken
from planebench.testbed.chain import resolve_chain
from planebench.testbed.rates import parse_bits, parse_rate
from planebench.testbed.testers import parse_tester
from planebench.testbed.traffic import parse_all
from planebench.testbed.traffic_files import on_wire

T = TypeVar("T")
PlanDocument = dict[str, Any]

OF_THE_WHOLE = ("name", "description", "papers", "left_out", "differs", "time_budget_s")
"""Keys of a plan that its parts do not take over."""
OF_A_PART = (*MATRIX, "hosting", "traffic", "only", "differs")
"""Keys of a plan that may differ in a part; so may the keys of ``latency``, and which searches there are."""
_KEYS = tuple(field.name for field in fields(Plan) if field.name not in ("more_hostings", "purpose"))
"""Keys of a plan that a document may have."""
DIRECTIONS = ("unidirectional", "bidirectional")
PLAN_VERSION = 1
"""Version of the plan file. History: 1 = first."""


def plan_from_document(document: object, source: str, folder: Path | None = None) -> Plan:
    """Return the plan in a document of YAML. Raises UsageError: ``source``, the key, its value, and what is valid.

    ``folder`` is where relative paths of chains begin: that of the plan's file (default: the working directory).
    """
    if not isinstance(document, dict):
        raise UsageError(f"{source}: a plan is a mapping of keys: version, name, switches, ...")
    try:
        if "parts" in document:
            return _plan_of_parts(document, folder or Path.cwd())
        plan = flat_plan(document, folder or Path.cwd())
        check_taken(plan, _said(document))
        return plan
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def _plan_of_parts(document: PlanDocument, folder: Path) -> Plan:
    """Return a plan of several matrices: each part is checked as a plan, of its own keys and those of the plan."""
    given = document["parts"]
    if not (isinstance(given, list) and given):
        raise UsageError("parts is a list of mappings: name, for, and what differs from the plan's keys")
    _check_keys(document, ("version", *_KEYS), "")
    whole = {key: value for key, value in document.items() if key != "parts"}
    common = {key: value for key, value in whole.items() if key not in OF_THE_WHOLE}
    parts = []
    for number, entry in enumerate(given):
        if not isinstance(entry, dict) or "name" not in entry:
            raise UsageError(f'parts.{number}: "{entry}" is not valid: it is no mapping of keys; give name, for, ...')
        try:
            _check_keys(entry, ("name", "for", *OF_A_PART, "latency", "search"), "")
            if isinstance(entry.get("search"), dict):
                _check_keys(entry["search"], ("methods",), "search.")
            part = replace(flat_plan(_part(common, entry), folder), purpose=str(entry.get("for", "")))
            check_taken(part, _said(entry))
            parts.append(part)
        except UsageError as error:
            raise UsageError(f"part {entry['name']}: {error}") from None
    own = {key: value for key, value in whole.items() if key in OF_THE_WHOLE}
    first = flat_plan({**_part(common, given[0]), "name": None, **own}, folder)
    plan = with_parts(first, parts)
    check_taken(plan, _said(common))
    return plan


def _said(document: PlanDocument) -> Iterator[str]:
    """Yield the settings that a document has a value for."""
    for key, value in document.items():
        if key in SECTIONS and isinstance(value, Mapping):
            yield from (f"{key}.{name}" for name, it in value.items() if it is not None)
        elif value is not None:
            yield key


def _part(common: PlanDocument, entry: PlanDocument) -> PlanDocument:
    """Return a plan of a part alone: its keys, and those of its sections, go over those of the plan."""
    own = {key: value for key, value in entry.items() if key != "for"}
    merged = {}
    for name in ("latency", "search"):
        section, mine = common.get(name, {}), own.get(name, {})
        if isinstance(section, dict) and isinstance(mine, dict):
            merged[name] = {**section, **mine}
        else:  # what is no mapping is left for the record to refuse
            merged[name] = section if isinstance(mine, dict) else mine
    return {**common, **own, **merged}


def flat_plan(document: PlanDocument, folder: Path) -> Plan:
    """Return a plan of one matrix. Raises UsageError, which begins with the key."""
    _check_keys(document, ("version", *_KEYS), "")
    for name, kind in SECTIONS.items():
        if isinstance(document.get(name), dict):
            _check_keys(document[name], [field.name for field in fields(kind)], f"{name}.")
    if document.get("version") != PLAN_VERSION:
        raise UsageError(f'version: "{document.get("version")}" is not valid. Valid: {PLAN_VERSION}')
    values = {key: value for key, value in document.items() if key != "version"}
    if values.get("chains") and "scenarios" not in values:
        values["scenarios"] = [*scenarios_with("chain")[:1]]
    # Chains of l2fwd: where chains are named, only those that are asked for.
    defaults = {"description": "", "directions": DIRECTIONS, "traffic": (PLAIN_NAME,), "hosting": ("process",)}
    values = {**defaults, "chain_lengths": () if values.get("chains") else (1,), **values}
    for key in ("scenarios", "directions", "frame_sizes_bytes", "hosting", "traffic", "placements", "cpu_clocks"):
        if values.get(key) == []:
            raise UsageError(f"{key}: the list is empty; name at least 1")
    return with_chains(validated(values), folder)


def validated(values: Mapping[str, Any]) -> Plan:
    """Return a plan of ``values``: those of a document, texts or not, or those of a plan that is there already.

    Raises UsageError, which begins with the key, for the first value that is not valid.
    """
    found: PlanDocument = dict(values)
    for path, convert in TEXTS.items():
        section, _, key = path.rpartition(".")
        place = found.get(section) if section else found
        if isinstance(place, Mapping) and place.get(key) is not None:
            changed = {**place, key: convert(place[key])}
            found = {**found, section: changed} if section else changed
    if isinstance(hostings := found.get("hosting"), tuple):
        found |= of_hostings(hostings)
    try:
        # A record is a mapping in JSON, a date of YAML is text.
        text = json.dumps(found, default=lambda it: asdict(it) if hasattr(it, "__dataclass_fields__") else str(it))
        plan: Plan = adapter(Plan).validate_json(text)
    except ValidationError as error:
        raise UsageError(fault_words(min(error.errors(), key=lambda found: found["type"] == "missing"))) from None
    except ValueError as error:  # an alias that is part of what it names
        raise UsageError(f"the plan is not valid: {error}") from None
    plan = replace(plan, traffic=tuple(on_wire(profile, plan.wire) for profile in plan.traffic))
    if not fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", plan.name):
        valid = 'letters, digits, ".", "_" and "-", 64 at most'  # what is safe in a path
        raise UsageError(f'name "{plan.name}" is not valid. Valid: {valid}')
    throughput = plan.throughput
    repetitions, restarts, most = throughput.repetitions, throughput.restarts, throughput.repetitions_max
    if restarts is not None and restarts >= repetitions:
        valid = f"0..{repetitions - 1}"
        raise UsageError(f'restarts "{restarts}" is not valid for {repetitions} repetitions. Valid: {valid}')
    if most is not None and most < repetitions:
        raise UsageError(f'repetitions_max "{most}" is not valid for {repetitions} repetitions. Valid: {repetitions}..')
    return plan


def with_chains(plan: Plan, folder: Path) -> Plan:
    """Return the plan with absolute paths in its chains. Raises UsageError for one that is bad, or has no place."""
    if plan.chains and not any(scenario_named(scenario).has_vnfs for scenario in plan.scenarios):
        names = " and ".join(scenarios_with("chain"))
        raise UsageError(f'chain "{plan.chains[0]}": only {names} has a chain; add {names} to the scenarios')
    several = [chain for chain in plan.chains if len(vnf_texts(chain, 0)) > 1]
    if several and not scenarios_with("chain", plan.scenarios):
        raise UsageError(f'chain "{several[0]}": independent VNFs have one function each; name one function')
    return replace(plan, chains=tuple(dict.fromkeys(resolve_chain(chain, folder) for chain in plan.chains)))


def _named(what: str, names: Collection[T]) -> Callable[[Any], T]:
    """Return a parser of one of ``names``, which raises UsageError with all of them for anything else."""

    def parse(value: Any) -> T:
        for name in names:
            if value == name and not isinstance(value, bool):
                return name
        if all(isinstance(name, int) for name in names):
            raise UsageError(f'{what} "{value}" is not valid. Valid: {", ".join(map(str, names))}')
        raise unknown(what, str(value), [str(name) for name in names])

    return parse


parse_hosting: Callable[[Any], HostingName] = _named("hosting", WHOLE)
check_ring_size: Callable[[Any], RingSize] = _named("ring_size", get_args(RingSize))
_wire_ring_size: Callable[[Any], WireRingSize] = _named("wire_ring_size", get_args(WireRingSize))
_parse_load: Callable[[Any], str] = _named("latency.of", [m.name for m in METHODS.values() if m.figure == "rate"])
_parse_search: Callable[[Any], str] = _named("search", (R_PLUS, *METHODS))


def _each(parse: Callable[[Any], T], without: Collection[T] = ()) -> Callable[[Any], tuple[T, ...] | Any]:
    """Return a parser of a list, each value of which counts once; what is no list is left for the record to refuse."""

    def every(values: Any) -> tuple[T, ...] | Any:
        if isinstance(values, str) or not isinstance(values, Collection):
            return values
        found = [*map(parse, values)]
        if not all(isinstance(value, Hashable) for value in found):
            return values
        return tuple(value for value in dict.fromkeys(found) if value not in without)

    return every


def _traffic(values: Any) -> Any:
    """Return the profiles that texts name; profiles stay what they are."""
    if not isinstance(values, str) and isinstance(values, Collection) and all(isinstance(it, str) for it in values):
        return parse_all(tuple(values))
    return values


TEXTS: Mapping[str, Callable[[Any], Any]] = {
    "scenarios": _each(lambda value: parse_scenario(str(value))),
    "directions": _each(lambda value: parse_direction(str(value))),
    "frame_sizes_bytes": _each(parse_frame_size),
    "chain_lengths": _each(parse_chain_length),
    "vnf_counts": _each(parse_vnf_count),
    "hosting": lambda value: _each(lambda it: parse_hosting(str(it)))([value] if isinstance(value, str) else value),
    "traffic": _traffic,
    "placements": _each(lambda value: parse_placing(str(value))),
    "cpu_clocks": _each(lambda value: parse_cpu_clock(str(value) or "own")),
    "tester": lambda value: parse_tester(str(value)),
    "papers": _each(str),
    "wire": lambda value: parse_wire(str(value)),
    "ring_size": check_ring_size,
    "wire_ring_size": lambda value: _wire_ring_size(int(value) if str(value).isdecimal() else value),
    "switch_cores": _named("switch_cores", get_args(SwitchCores)),
    "tester_cores": _named("tester_cores", get_args(TesterCores)),
    "clock": _named("clock", get_args(ClockChoice)),
    "check": _named("check", get_args(FrameCheck)),
    "throughput.max_rate_pps": lambda value: parse_rate(value) if isinstance(value, str) else value,
    "throughput.line_bps": lambda value: parse_bits(value) if isinstance(value, str) else value,
    "latency.of": lambda value: value if value == R_PLUS else _parse_load(value),
    "latency.loads": _each(lambda value: value),
    "latency.rates_pps": _each(lambda value: parse_rate(str(value))),
    "latency.total_bps": _each(lambda value: parse_bits(str(value))),
    "latency.per_vnf_bps": _each(lambda value: parse_bits(str(value))),
    # R+ is always measured, and not listed.
    "search.methods": _each(_parse_search, without=(R_PLUS,)),
}
"""Key of a document -> what makes its text a value. Each raises UsageError with what is valid."""


def _check_keys(given: Mapping[str, Any], valid: Collection[str], prefix: str) -> None:
    """Raise UsageError for a key that is not valid: where one is misspelt, the right one is missing too."""
    for key in given:
        if key not in valid:
            raise unknown("key", f"{prefix}{key}", [f"{prefix}{name}" for name in valid])


# Plans from YAML: the suites that come with planebench, by name, and files of the user, by path.


def load_plan(name_or_path: str | Path) -> Plan:
    """Return the suite of that name, or the plan in that file (a path has a ``/`` or ends in .yaml or .yml).

    UsageError: no such suite, no such file, not YAML, or not a plan.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or is_yaml_file(text):
        path, source = Path(text), text
        remedy = f"give a readable YAML file or a suite ({', '.join(list_suites())})"
        content, folder = read_text(path, f"plan {path}", remedy), path.resolve().parent
    else:
        check_suite(text)
        content, folder = (SUITES / f"{text}.yaml").read_text(encoding="utf-8"), Path.cwd()
        source = f"suite {text}"
    return plan_from_document(parse_yaml(content, source), source, folder)
