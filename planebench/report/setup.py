# SPDX-License-Identifier: BSD-3-Clause
"""How a run was made: calibration of the tester, conditions of the switches, VNF isolation, commands to repeat it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planebench.analysis.compare import Derived
from planebench.analysis.conditions import NOT_STATED, Condition, ConditionCell, differing, unread
from planebench.model.chain_name import chain_label
from planebench.model.conditions import Conditions
from planebench.model.dimensions import HostingFacts
from planebench.model.header import Calibration, Run, RunHeader
from planebench.model.records import Trial, VerdictKind
from planebench.model.scenario import scenario_named
from planebench.model.words import NOTHING, count, frame_size, load_words, mpps, percent, printable, us
from planebench.report.page.table import PageColumn, PageTable, number, page_table, some
from planebench.report.terminal.grid import Glyphs, bare_table, chunks

_ENDS = {"wire": "wire", "vnf": "VNF"}


def calibration_words(c: Calibration) -> str:
    """Return when and in which conditions the tester was calibrated."""
    pages = "hugepages" if c.hugepages else "no hugepages"
    return (
        f"Tester calibration of {c.measured_at}: planed {c.planed_version}, {c.cpu_model}, "
        f"kernel {c.kernel}, wire {c.wire}, rings of {c.ring_size}, {pages}, "
        f"{c.tester_cpus} tester CPU{'' if c.tester_cpus == 1 else 's'}, {c.duration_s:g} s per measurement."
    )


def calibration_tables(calibration: Calibration) -> list[PageTable]:
    """Return the tables of a calibration that have rows."""
    return some([_ceilings(calibration), _set_points(calibration), _floors(calibration)])


_FRAME = PageColumn("frame", lambda it: frame_size(it.frame_size_bytes))


def _ceilings(calibration: Calibration) -> PageTable:
    columns = (
        _FRAME,
        PageColumn("from", lambda it: _ENDS[it.sender]),
        PageColumn("to", lambda it: _ENDS[it.receiver]),
        PageColumn("Mpps", lambda it: mpps(it.pps), "strong"),
        PageColumn("how", lambda it: "measured" if it.measured else "composed"),
    )
    note = "composed: computed from the cycles per packet of generator and receiver, each measured alone"
    return page_table(
        "Calibrated tester maximum: generator and receiver without a switch", columns, calibration.ceilings, note
    )


def _set_points(calibration: Calibration) -> PageTable:
    columns = (
        _FRAME,
        number("intended", lambda it: mpps(it.intended_pps)),
        number("offered", lambda it: mpps(it.offered_pps)),
        number("forwarded", lambda it: mpps(it.forwarded_pps)),
        PageColumn("rate error", lambda it: f"{it.rate_error * 100:+.3f} %", "strong"),
    )
    return page_table("Rate accuracy: intended, offered and forwarded load, Mpps", columns, calibration.set_points)


def _floors(calibration: Calibration) -> PageTable:
    columns = (
        _FRAME,
        number("background Mpps", lambda it: mpps(it.background_pps)),
        number("p50", lambda it: us(it.p50_ns / 1e3)),
        number("p99", lambda it: us(it.p99_ns / 1e3)),
        PageColumn("clock", lambda it: it.clock),
        number("probes", lambda it: count(it.probes_sent)),
        number("probe loss", lambda it: percent(1 - it.probes_received / it.probes_sent if it.probes_sent else None)),
    )
    return page_table("Tester latency baseline, µs", columns, calibration.floors)


# The conditions of a run: a table of the terminal and the page, and how many cores a switch forwards on.

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
    for index in part:
        table.add_column(glyphs.text(labels[index]), overflow="fold", min_width=10)
    for condition in rows:
        cells = (Text(glyphs.text(cell_words(condition.cells[index]))) for index in part)
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


# The isolation of the VNFs of a run, and its functional trials, for the terminal and the page.

TITLE = "VNF isolation"

FUNCTIONAL = "Functional check only: packet counts are valid, rates and latencies are not meaningful"

EMULATED = "emulated"

_HostingKey = tuple[str, str, str, str, tuple[tuple[str, str], ...]]
"""Topology, hosting, program, ``emulated`` or empty, details."""


def hosting_lines(run: Run) -> list[str]:
    """Return ``loopback-2: vnf0, vnf1 in vm: QEMU 7.2.22, emulated; kernel: 6.1``, one line for equal VNFs."""
    return [f"{where}: {vnfs} in {hosting}: {what}" for where, vnfs, hosting, what in _rows(run)]


def hosting_page(run: Run) -> dict[str, Any]:
    """Return the content of the section; empty if all VNFs were tasks of the tester."""
    columns = (
        PageColumn("topology", itemgetter(0)),
        PageColumn("VNFs", itemgetter(1)),
        PageColumn("in", itemgetter(2)),
        PageColumn("what it is", itemgetter(3), "text"),
    )
    table, sentences = page_table(TITLE, columns, _rows(run)), functional_sentences(run)
    return {"table": table, "functional": sentences, "words": FUNCTIONAL} if table.rows or sentences else {}


def functional_sentences(run: Run) -> list[str]:
    """Return the packet counts of functional trials, a sentence per switch, topology and load, with the reasons.

    Flat out most frames may be missing: the tester then sends more than can be forwarded. A paced load tells whether a
    VNF loses frames.
    """
    groups: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in run.trials:
        if trial.verdict.kind is VerdictKind.FUNCTIONAL and trial.role != "warmup":
            groups.setdefault((trial.point.switch, trial.point.scenario_label, trial.load.label), []).append(trial)
    return [
        _sentence(f"{switch} {where}, {load_words(load)}", trials) for (switch, where, load), trials in groups.items()
    ]


def _sentence(who: str, trials: Sequence[Trial]) -> str:
    sent = sum(direction.offered_packets for trial in trials for direction in trial.directions)
    came = sum(trial.forwarded_packets for trial in trials)
    why = "; ".join(dict.fromkeys(reason for trial in trials for reason in trial.verdict.texts))
    plural = "s" if len(trials) > 1 else ""
    return printable(f"{who}, {len(trials)} trial{plural}: {count(sent)} frames sent, {count(came)} came ({why})")


def _rows(run: Run) -> list[tuple[str, str, str, str]]:
    """Return topology, VNFs, hosting and details, one row for VNFs that are equal."""
    vnfs: dict[_HostingKey, dict[str, None]] = {}
    for conditions in run.conditions:
        for fact in conditions.hosting:
            vnfs.setdefault(_key(conditions, fact), {})[fact.vnf] = None
    return [(key[0], _names(list(found)), key[1], "; ".join(_what(key))) for key, found in vnfs.items()]


def _names(vnfs: Sequence[str]) -> str:
    """Return ``vnf0, vnf1``; ``vnf0 to vnf62`` for more than three."""
    return printable(", ".join(vnfs) if len(vnfs) <= 3 else f"{vnfs[0]} to {vnfs[-1]}")


def _key(conditions: Conditions, fact: HostingFacts) -> _HostingKey:
    where = f"{conditions.scenario}-{conditions.chain_length}" if conditions.chain_length else conditions.scenario
    if conditions.chain:
        named = 1 if scenario_named(conditions.scenario).side_by_side else conditions.chain_length
        where = f"{conditions.scenario} {chain_label(conditions.chain, named)}"
    emulated = EMULATED if fact.emulated else ""
    return printable(where), fact.hosting, printable(fact.program), emulated, tuple(sorted(fact.details.items()))


def _what(key: _HostingKey) -> Iterator[str]:
    _, _, program, emulated, details = key
    yield f"{program}, {emulated}" if emulated else program
    yield from (printable(f"{name}: {text}") for name, text in details)


# Commands to repeat a run, and how to install its switches.


def commands(header: RunHeader) -> list[dict[str, str]]:
    """Return command lines and what they do; empty if the run does not know how it was started."""
    if not header.command:
        return []
    command, run = shlex.join(header.command), header.run_id
    again = command if "--resume" in header.command else f"{command} --resume"
    lines = (
        (again, "resumes an interrupted or killed run of this plan"),
        (
            f"planebench compare {run} latest",
            "compares this run with the newest: ratios, confidence intervals, differing settings",
        ),
        (f"planebench export {run} --format svg,pdf,png", "writes every chart as SVG, PDF and PNG"),
        (f"planebench export {run}", "writes every result as JSON, including what this page omits"),
    )
    return [{"command": text, "does": does} for text, does in lines]


def remedies(header: RunHeader) -> dict[str, str]:
    """Return how to get each switch, by label, as the run recorded it; an en dash where it did not."""
    return {switch.label: switch.remedy or NOTHING for switch in header.switches}
