# SPDX-License-Identifier: BSD-3-Clause
"""``list switches`` and ``switch show``: which switches there are, where they are, what they can do."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from planebench.cli.show import plain_table, print_json
from planebench.model.option import Option
from planebench.model.records import ScenarioName
from planebench.model.scenario import SCENARIOS
from planebench.model.words import printable
from planebench.switches.overview import Overview, Support, overview, overviews
from planebench.switches.registry import get_adapter

_INDENT = "  "
_LEAST_WIDTH = 60


def list_switches(*, json: bool, details: bool) -> None:
    """Print every switch: a table, or with ``details`` all that is known of each."""
    found = overviews()
    if json:
        print_json({"switches": [row(switch) for switch in found]})
    elif details:
        _print_lines(line for switch in found for line in (*_details(switch), ""))
    else:
        _print_table(found)


def show_switch(text: str, *, json: bool) -> None:
    """Print all that is known of one switch, with its options. UsageError for one that there is not."""
    switch = overview(get_adapter(text))
    if json:
        print_json(row(switch))
    else:
        _print_lines(_details(switch))


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


def _print_table(found: Sequence[Overview]) -> None:
    table = plain_table("switch", "found", "wires: scenarios", "VNFs by", header_style="bold")
    table.columns[0].no_wrap = True
    for switch in found:
        cells = (switch.name, _found_words(switch), _support_words(switch), switch.vnf_interface)
        table.add_row(*(Text(printable(cell, keep="\n")) for cell in cells))
    Console(markup=False, highlight=False).print(table)
    _print_lines(_footer(found))


def _found_words(switch: Overview) -> str:
    return switch.found.version if switch.found else "no"


def _support_words(switch: Overview) -> str:
    """Return ``virtio, memif: all``: one line for all wires with the same support."""
    groups: dict[str, list[str]] = {}
    for wire, scenarios in switch.wires.items():
        groups.setdefault(_scenario_words(scenarios), []).append(wire)
    return "\n".join(f"{', '.join(wires)}: {words}" for words, wires in groups.items())


def _scenario_words(scenarios: Any) -> str:
    there = [name for name, support in scenarios.items() if support.supported]
    if not there:
        return "none"
    words = "all" if len(there) == len(SCENARIOS) else ", ".join(there)
    return f"{words} (*)" if any(scenarios[name].remark for name in there) else words


def _footer(found: Sequence[Overview]) -> Iterator[str]:
    """Yield a sentence for each that is not found, the same one once; where more is."""
    problems: dict[str, list[str]] = {}
    for switch in found:
        if switch.problem:
            problems.setdefault(switch.problem, []).append(switch.name)
    yield ""
    for problem, names in problems.items():
        yield f"{', '.join(names)}: no: {problem}"
    for switch in found:
        if not switch.found and not switch.problem:
            yield f"{switch.name}: {switch.remedy}"
    supports = (support for switch in found for wire in switch.wires.values() for support in wire.values())
    if any(support.supported and support.remark for support in supports):
        yield "(*) conditional: see planebench switch show NAME"
    yield "More: planebench switch show NAME, planebench list switches --details, docs/switches.md"


def _details(switch: Overview) -> Iterator[str]:
    found = switch.found
    yield f"{switch.name}: {switch.title}"
    if found:
        yield f"{_INDENT}found: {found.version}, {found.binary}"
    else:
        yield f"{_INDENT}found: no{f': {switch.problem}' if switch.problem else ''}"
        yield f"{_INDENT}how to install it: {switch.remedy}"
    for wire, scenarios in switch.wires.items():
        yield f"{_INDENT}wire {wire}: {_scenario_words(scenarios).removesuffix(' (*)')}"
        yield from _remarks((name, support) for name, support in scenarios.items())
    if switch.traits:
        yield f"{_INDENT}VNFs are connected by: {switch.vnf_interface}"
        yield from _taxonomy(switch)
    if switch.options:
        yield f"{_INDENT}options (--switch-option {switch.name}.NAME=VALUE):"
        yield from (f"{_INDENT * 2}{option_words(option)}" for option in switch.options)


def _remarks(supports: Iterator[tuple[ScenarioName, Support]]) -> Iterator[str]:
    """Yield each reason with its scenarios."""
    by_remark: dict[str, list[str]] = {}
    for name, support in supports:
        if support.remark:
            by_remark.setdefault(support.remark, []).append(name)
    yield from (f"{_INDENT * 2}{', '.join(names)}: {remark}" for remark, names in by_remark.items())


def _taxonomy(switch: Overview) -> Iterator[str]:
    """Yield the columns of conext19's Table 1."""
    if (traits := switch.traits) is None:
        return
    models = " and ".join({"rtc": "run to completion"}.get(model, model) for model in traits.models)
    yield f"{_INDENT}taxonomy ({'conext19, Table 1' if traits.source == 'conext19' else 'by planebench'}):"
    yield f"{_INDENT * 2}{traits.architecture}, {traits.paradigm}, {models}"
    yield f"{_INDENT * 2}virtual interface {traits.virtual_interface}; reprogrammability {traits.reprogrammability}"
    yield f"{_INDENT * 2}{', '.join(traits.languages)}; {traits.purpose}"


def _print_lines(lines: Iterator[str]) -> None:
    width = max(_LEAST_WIDTH, Console().width)
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + len(_INDENT))
        safe = printable(line)
        print(textwrap.fill(safe, width, subsequent_indent=indent, break_on_hyphens=False) if safe else "")
