# SPDX-License-Identifier: BSD-3-Clause
"""``list``, ``switch show`` and ``plan show``: what there is, before anything is measured."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from planebench.cli.options import print_json, print_table
from planebench.cli.placing import placement_lines, placement_rows
from planebench.host.facts import collect
from planebench.host.hwloc import with_topology
from planebench.host.programs import Found
from planebench.measure.suite_conditions import conditions_of
from planebench.measure.survey import Survey, survey
from planebench.model.errors import unknown
from planebench.model.grouped import grouped
from planebench.model.scenario import SCENARIOS
from planebench.model.switch import Option
from planebench.model.words import printable
from planebench.plan import list_suites
from planebench.plan.estimate import describe, duration_words
from planebench.plan.expand import points_of
from planebench.plan.schema import load_plan
from planebench.store import list_runs
from planebench.switches.overview import Overview, overview, overviews
from planebench.switches.registry import get_adapter
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.traffic import traffic_rows
from planebench.testbed.traffic_files import remarks
from planebench.testbed.vnfs import VNFS

# ``list switches`` and ``switch show``: which switches there are, where they are, what they can do.

_INDENT = "  "
_LEAST_WIDTH = 60


def show_switch(switch: str, *, json: bool) -> None:
    """Print all that is known of one switch, with its options. UsageError for one that there is not."""
    found = overview(get_adapter(switch))
    if json:
        print_json(row(found))
    else:
        width = max(_LEAST_WIDTH, Console().width)
        for line in map(printable, _details(found)):
            indent = " " * (len(line) - len(line.lstrip()) + len(_INDENT))
            print(textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False))


def option_words(option: Option) -> str:
    """Return text such as ``routes=FILE: routes, a prefix a line or JSON (10 routes)``."""
    kinds = {"whole": "N", "flag": "true|false", "list": "A+B"}
    kind = kinds.get(option.kind, option.kind.upper())
    value = "|".join(option.choices) or ("PATH" if option.name == "path" else kind)
    default = f" ({option.default})" if option.default else ""
    return f"{option.name}={value}: {option.help}{default}"


def row(switch: Overview) -> dict[str, Any]:
    """Return a switch as in the JSON output."""
    found = switch.found
    return {
        "switch": switch.name,
        "title": switch.title,
        "found": "yes" if found else "no",
        "version": found.version if found else "",
        "where": str(found.binary) if found else "",
        "problem": switch.problem,
        "wires": list(switch.wires),
        "vnf_interface": switch.vnf_interface,
        "scenarios": {
            wire: {name: dataclasses.asdict(support) for name, support in scenarios.items()}
            for wire, scenarios in switch.wires.items()
        },
        "taxonomy": dataclasses.asdict(switch.traits) if switch.traits else None,
        "options": [dataclasses.asdict(option) for option in switch.options],
        "how to install it": "" if found else switch.remedy,
        "remedy": switch.remedy,
    }


def _details(switch: Overview) -> Iterator[str]:
    found = switch.found
    yield f"{switch.name}: {switch.title}"
    if found:
        yield f"{_INDENT}found: {found.version}, {found.binary}"
    else:
        yield f"{_INDENT}found: no{f': {switch.problem}' if switch.problem else ''}"
        yield f"{_INDENT}how to install it: {switch.remedy}"
    for wire, scenarios in switch.wires.items():
        there = [name for name, support in scenarios.items() if support.supported]
        yield f"{_INDENT}wire {wire}: {'all' if len(there) == len(SCENARIOS) else ', '.join(there) or 'none'}"
        by_remark = grouped((support.remark, name) for name, support in scenarios.items() if support.remark)
        yield from (f"{_INDENT * 2}{', '.join(names)}: {remark}" for remark, names in by_remark.items())
    if (traits := switch.traits) is not None:
        yield f"{_INDENT}VNFs are connected by: {switch.vnf_interface}"
        models = " and ".join({"rtc": "run to completion"}.get(model, model) for model in traits.models)
        yield f"{_INDENT}taxonomy ({'conext19, Table 1' if traits.source == 'conext19' else 'by planebench'}):"
        yield f"{_INDENT * 2}{traits.architecture}, {traits.paradigm}, {models}"
        yield f"{_INDENT * 2}virtual interface {traits.virtual_interface}; reprogrammability {traits.reprogrammability}"
        yield f"{_INDENT * 2}{', '.join(traits.languages)}; {traits.purpose}"
    if switch.options:
        yield f"{_INDENT}options (--switch {switch.name}:NAME=VALUE):"
        yield from (f"{_INDENT * 2}{option_words(option)}" for option in switch.options)


ListRow = dict[str, Any]
SWITCHES = "switches"


def list_things(what: str, runs: Path | None, json: bool) -> None:
    """Print the list called ``what``; of switches as JSON all that is known. Raises UsageError for an unknown list."""
    if what not in LISTS:
        raise unknown("list", what, LISTS)
    rows = [row(it) for it in overviews()] if json and what == SWITCHES else LISTS[what](runs)
    if json:
        print_json({what: rows})
    elif rows:
        print_table([*rows[0]], (list(it.values()) for it in rows))
    else:
        print(f"no {what}")


def _switches(_: object) -> list[ListRow]:
    return [
        {
            "switch": it.name,
            "version": it.found.version if it.found else f"no: {it.problem or it.remedy}",
            "wires": ", ".join(it.wires),
            "VNFs by": it.vnf_interface,
        }
        for it in overviews()
    ]


def _vnfs(_: object) -> list[ListRow]:
    return [
        {
            "vnf": vnf.name,
            "does": vnf.summary,
            "options": "\n".join(option_words(option) for option in vnf.all_options),
        }
        for vnf in VNFS.values()
    ]


def _hostings(_: object) -> list[ListRow]:
    """Return the hostings; ``process`` needs nothing and has no options."""
    rows = [{"hosting": "process", "found": "yes", "is": "a task of the tester process (default)", "options": ""}]
    for hosting in HOSTINGS.values():
        found = hosting.find()
        rows.append(
            {
                "hosting": hosting.name,
                "found": found.version if isinstance(found, Found) else f"no: {found.remedy}",
                "is": hosting.title,
                "options": "\n".join(option_words(option) for option in hosting.options),
            }
        )
    return rows


def _scenarios(_: object) -> list[ListRow]:
    return [
        {"scenario": s.name, "path": s.path, "tells": s.meaning, "directions": ", ".join(s.directions)}
        for s in SCENARIOS.values()
    ]


def _suites(_: object) -> list[ListRow]:
    rows = []
    for name in list_suites():
        plan = load_plan(name)
        held = survey(plan, made=False)
        row = {"suite": name, "points": held.test_points, "takes": duration_words(held.takes_s)}
        rows.append({**row, "papers": ", ".join(plan.papers) or "-", "what": plan.description})
    return rows


def _runs(runs_dir: Path | None) -> list[ListRow]:
    return [
        {
            "run": info.run_id,
            "switches": ", ".join(switch.label for switch in info.header.switches),
            "ended": info.finished.status if info.finished else "killed or still running",
            "folder": str(info.path),
        }
        for info in list_runs(runs_dir)
    ]


LISTS: Mapping[str, Callable[[Path | None], list[ListRow]]] = {
    SWITCHES: _switches,
    "traffic": lambda _: traffic_rows(),
    "vnfs": _vnfs,
    "hostings": _hostings,
    "scenarios": _scenarios,
    "suites": _suites,
    "runs": _runs,
}
"""Name of a list -> its rows, of runs those in a folder."""


# ``plan show``: what a run would measure, what not and why, and its estimated time.


def show_plan(
    plan: str, overrides: Mapping[str, Any], json: bool, time_budget: str | None = None, topology: str | None = None
) -> None:
    """Print the points of a plan and the time they take. Raises UsageError for a plan that ``run`` would not take.

    ``topology``: another machine to place the points on, as :func:`planebench.host.hwloc.with_topology` takes it.
    """
    facts = with_topology(collect(), topology) if topology is not None else None
    held = survey(plan, overrides, facts=facts).within(time_budget)
    if json:
        print_json(_document(held) | ({} if facts is None else {"placements": placement_rows(held, facts)}))
        return
    for line in (*_lines(held), *(() if facts is None else placement_lines(held, facts))):
        print(line)


def _document(held: Survey) -> dict[str, Any]:
    plan = held.plan
    parts = {part.name: frozenset(points_of(part)) for part in plan.parts}
    return {
        "plan": plan.name,
        "papers": plan.papers,
        "parts": [
            {
                "part": part.name,
                "for": part.purpose,
                "conditions": conditions_of(part),
                "differs": _records(part.differs),
            }
            for part in plan.parts
        ],
        "points": [
            {
                "id": point.point_id,
                **dataclasses.asdict(point),
                "parts": [name for name, points in parts.items() if point in points],
                "left_out": held.absent.get(point, ""),
            }
            for point in held.points
        ],
        "trials": describe(plan),
        "skipped": _records(held.skipped),
        "missing": list(held.missing),
        "not_reproduced": _records(plan.left_out),
        "differs": _records(plan.differs),
        "conditions": {} if plan.parts else conditions_of(plan),
        "estimate_s": round(held.takes_s, 1),
        "estimate_max_s": round(held.at_most_s, 1),
    }


def _records(entries: Iterable[Any]) -> list[dict[str, Any]]:
    return [dataclasses.asdict(entry) for entry in entries]


def _lines(held: Survey) -> Iterator[str]:
    plan = held.plan
    for part in plan.sections:
        if plan.parts:
            yield f"part {part.name}: {part.purpose}" if part.purpose else f"part {part.name}"
        for point in points_of(part):
            if point not in held.absent:
                yield f"  {point.point_id}" if plan.parts else point.point_id
    for entry in held.skipped:
        yield f"left out: {entry.what}: {entry.reason}"
    for profile in plan.traffic:
        yield from (f"warning: {text}" for text in remarks(profile))
    for sentence in held.missing:
        yield f"needed before a run: {sentence}"
    for entry in plan.left_out:
        yield f"not reproduced: {entry.what}: {entry.reason}"
    for section in dict.fromkeys((plan, *plan.parts)):
        where = f"part {section.name}: " * (section is not plan)
        yield from (f"not as in the paper: {where}{it.what}: {it.reason}" for it in section.differs)
    if plan.papers:
        yield f"reproduces: {', '.join(plan.papers)}"
    if plan.send_burst:
        yield f"VNFs send {plan.send_burst} packets at once, or what has come in {plan.drain_us} us"
    if plan.check == "sampled":
        yield "trials without probes are checked by samples: of one burst in 16 the bytes, of all others the lengths"
    yield describe(plan)
    yield f"{held.points_words}, {held.takes_words}"
