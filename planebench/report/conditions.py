# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of a run: a table of the terminal and the page, and how many cores a switch forwards on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planebench.analysis.compare import Derived
from planebench.analysis.conditions import NOT_STATED, Condition, ConditionCell, differing, unread
from planebench.model.header import Run
from planebench.report.terminal.grid import Glyphs, bare_table, chunks

STATES = {"same": "same", "differs": "differs", "not known": "not known for all", "own": "specific"}

_LEAST_WIDTH = 20
"""Minimum width of the column of a switch in the terminal."""

_NAME_WIDTH = 32


def conditions_remark(derived: Derived) -> str:
    """Return ``3 conditions differ between the switches: function, burst, buffers``; empty if none differs."""
    found = differing(derived.conditions)
    if len(derived.run.header.switches) < 2 or not found:
        return ""
    names = ", ".join(condition.title for condition in found)
    return f"{len(found)} condition{'s differ' if len(found) > 1 else ' differs'} between the switches: {names}"


def conditions_warnings(derived: Derived) -> tuple[str, ...]:
    """Return the contradictions between adapters and measurement, and what could not be read."""
    return (*derived.contradictions, *unread(derived.run))


def conditions_page(derived: Derived) -> dict[str, Any]:
    """Return the content of the section; empty for a run without a condition."""
    run, found = derived.run, derived.conditions
    if not found:
        return {}
    return {
        "labels": [switch.label for switch in run.header.switches],
        "remark": conditions_remark(derived) or _alike(len(run.header.switches)),
        "warnings": conditions_warnings(derived),
        "rows": [
            {
                "title": condition.title,
                "meaning": condition.meaning,
                "state": condition.state.replace(" ", "-"),
                "words": STATES[condition.state],
                "cells": condition.cells,
            }
            for condition in found
        ],
    }


def conditions_table(derived: Derived, glyphs: Glyphs, width: int) -> Iterator[RenderableType]:
    """Yield for the terminal: equal conditions one per line, a table of the others, and the warnings."""
    run, found = derived.run, derived.conditions
    if not found:
        yield Text("This run has no stored test conditions.")
        return
    same = [condition for condition in found if condition.state == "same"]
    rest = [condition for condition in found if condition.state in ("differs", "not known")]
    if same:
        yield Text("Same for all" if len(run.header.switches) > 1 else "Conditions", style="bold")
        yield from (_line(condition, glyphs) for condition in same)
    labels = [switch.label for switch in run.header.switches]
    if rest:
        yield Text("\n" + ("Different, or not known for all" if len(labels) > 1 else "Not known"), style="bold")
        for part in chunks(range(len(labels)), max(1, (width - _NAME_WIDTH) // (_LEAST_WIDTH + 2))):
            yield _table(rest, labels, part, glyphs)
    own = [condition for condition in found if condition.state == "own"]
    if own:
        yield Text("Specific to some switches", style="bold")
        yield from (_own_line(condition, labels, glyphs) for condition in own)
    for text in conditions_warnings(derived):
        yield Text(glyphs.text(f"Warning: {text}"), style="yellow")


def _alike(switches: int) -> str:
    return "No known condition differs between the switches." if switches > 1 else ""


def _line(condition: Condition, glyphs: Glyphs) -> Padding:
    return Padding(Text(glyphs.text(f"{condition.title}: {cell_words(condition.cells[0])}")), (0, 0, 0, 2))


def _own_line(condition: Condition, labels: Sequence[str], glyphs: Glyphs) -> Padding:
    stated = [(label, cell) for label, cell in zip(labels, condition.cells, strict=True) if cell.text != NOT_STATED]
    names = ", ".join(label for label, _ in stated)
    return Padding(Text(glyphs.text(f"{names}: {condition.title}: {cell_words(stated[0][1])}")), (0, 0, 0, 2))


def _table(rows: Sequence[Condition], labels: Sequence[str], part: Sequence[int], glyphs: Glyphs) -> Table:
    table = bare_table(glyphs)
    table.add_column("condition", overflow="fold", min_width=12)
    table.add_column("", no_wrap=True)
    for number in part:
        table.add_column(glyphs.text(labels[number]), overflow="fold", min_width=10)
    for condition in rows:
        cells = (Text(glyphs.text(cell_words(condition.cells[number]))) for number in part)
        mark = Text("differs" if condition.state == "differs" else "?", style="yellow")
        table.add_row(Text(condition.title), mark, *cells)
    return table


def cell_words(cell: ConditionCell) -> str:
    """Return a value and its source: ``off (measured; adapter declares on)``."""
    said = f"; adapter declares {cell.claim}" if cell.claim else ""
    return f"{cell.text} (measured{said})" if cell.measured else cell.text


_CPUS = re.compile(r"\d+(,\d+)*")


def switch_cores(run: Run, label: str) -> int:
    """Return the number of cores: as the adapter declares (CPU numbers), else by the setting of the run, else 1."""
    for switch in run.header.switches:
        cpus = switch.settings.get("cores", "")
        if switch.label == label and _CPUS.fullmatch(cpus):
            return cpus.count(",") + 1
    wanted = run.header.settings.get("switch_cores")
    return wanted if isinstance(wanted, int) and wanted > 0 else 1


def cores_sentence(run: Run) -> str:
    """Return ``Each switch has one core.``, or the number of each switch if they differ."""
    cores = {label: switch_cores(run, label) for label in run.switch_labels}
    if len(set(cores.values())) == 1:
        return f"Each switch has {cores_words(next(iter(cores.values())))}."
    return f"Cores: {', '.join(f'{label} {number}' for label, number in cores.items())}." if cores else ""


def cores_words(cores: int) -> str:
    """Return ``one core`` or ``2 cores``."""
    return "one core" if cores == 1 else f"{cores} cores"
