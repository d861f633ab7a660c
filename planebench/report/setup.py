# SPDX-License-Identifier: BSD-3-Clause
"""How a run was made: calibration of the tester, conditions of the switches, VNF isolation, commands to repeat it."""

from __future__ import annotations

import re
import shlex
from functools import partial
from operator import itemgetter

from planebench.analysis.capacity import least_ns
from planebench.analysis.compare import Derived
from planebench.analysis.conditions import Condition, unread
from planebench.model.chain_name import chain_label
from planebench.model.grouped import grouped
from planebench.model.header import Calibration, Run, RunHeader
from planebench.model.records import VerdictKind
from planebench.model.scenario import scenario_named
from planebench.model.words import NOTHING, SIDES, count, frame_size, load_words, mpps, percent, reasons, several, us
from planebench.report.tables import PageColumn, PageTable, known, named_values, number, page_table


def calibration_words(c: Calibration) -> str:
    """Return when and in which conditions the tester was calibrated."""
    pages = "hugepages" if c.hugepages else "no hugepages"
    pages += ", check of maxima sampled" if c.check == "sampled" else ""
    return (
        f"Tester calibration of {c.measured_at}: planed {c.planed_version}, {c.cpu_model}, "
        f"kernel {c.kernel}, wire {c.wire}, rings of {c.ring_size}, {pages}, "
        f"{several(c.tester_cpus, 'tester CPU')}"
        f"{f' for {c.tester_cores} queue pairs' if c.tester_cores > 1 else ''}, "
        f"{c.duration_s:g} s per measurement."
    )


def calibration_tables(calibration: Calibration) -> list[PageTable]:
    """Return the tables of a calibration: what the tester can send, and its latency."""
    frame = PageColumn("frame", lambda it: frame_size(it.frame_size_bytes))
    ceilings = (
        frame,
        PageColumn("from", lambda it: SIDES[it.sender]),
        PageColumn("to", lambda it: SIDES[it.receiver]),
        PageColumn("Mpps", lambda it: mpps(it.pps), "strong"),
        PageColumn("how", lambda it: "measured" if it.measured else "composed"),
    )
    note = "composed: computed from the cycles per packet of generator and receiver, each measured alone"
    floors = (
        frame,
        number("background Mpps", lambda it: mpps(it.background_pps)),
        number("least", lambda it: known(least_ns(it), lambda ns: us(ns / 1e3))),
        number("p50", lambda it: us(it.p50_ns / 1e3)),
        number("p99", lambda it: us(it.p99_ns / 1e3)),
        PageColumn("clock", lambda it: it.clock),
        number("probes", lambda it: count(it.probes_sent)),
        number("probe loss", lambda it: percent(1 - it.probes_received / it.probes_sent if it.probes_sent else None)),
    )
    title = "Calibrated tester maximum: generator and receiver without a switch"
    return [
        page_table(title, ceilings, calibration.ceilings, note),
        page_table("Tester latency baseline, µs", floors, calibration.floors),
    ]


# The conditions of a run, and how many cores a switch forwards on.

STATES = {"same": "same", "differs": "differs", "not known": "not known for all", "own": "specific"}


def conditions_remark(derived: Derived) -> str:
    """Return ``3 conditions differ between the switches: function, burst, buffers``; empty if none differs."""
    found = [condition for condition in derived.conditions if condition.state == "differs"]
    if len(derived.run.header.switches) < 2 or not found:
        return ""
    names = ", ".join(condition.title for condition in found)
    return f"{len(found)} condition{'s differ' if len(found) > 1 else ' differs'} between the switches: {names}"


def conditions_warnings(derived: Derived) -> tuple[str, ...]:
    """Return the contradictions between adapters and measurement, and what could not be read."""
    return (*derived.contradictions, *unread(derived.run))


def conditions_tables(derived: Derived) -> tuple[PageTable, PageTable]:
    """Return the conditions that differ or are not known for all, and the others, a column a switch."""
    labels = [switch.label for switch in derived.run.header.switches]
    columns = (
        PageColumn("condition", lambda it: it.title),
        PageColumn("between switches", lambda it: STATES[it.state], "strong"),
        *(PageColumn(label, partial(_cell, number), "text") for number, label in enumerate(labels)),
    )
    note = (
        '"Measured" values were negotiated (virtio) or read from the kernel at start-up; all others are declared by '
        'the adapter. "Unknown": neither source.'
    )
    apart = [it for it in derived.conditions if it.state in ("differs", "not known")]
    alike = [it for it in derived.conditions if it not in apart]
    meaning = PageColumn("meaning", lambda it: it.meaning, "text")
    return (
        page_table("Conditions that differ, or are not known for all", columns, apart, note),
        page_table("Conditions that are the same, or specific to some switches", (*columns, meaning), alike),
    )


def _cell(number: int, condition: Condition) -> str:
    """Return a value and its source: ``off (measured; adapter declares on)``."""
    cell = condition.cells[number]
    said = f"; adapter declares {cell.claim} (contradicts the measured value)" if cell.claim else ""
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
        number = next(iter(cores.values()))
        return f"Each switch has {'one core' if number == 1 else f'{number} cores'}."
    return f"Cores: {', '.join(f'{label} {number}' for label, number in cores.items())}." if cores else ""


# The isolation of the VNFs of a run, and its functional trials.

FUNCTIONAL = "Functional check only: packet counts are valid, rates and latencies are not meaningful"


def hosting_table(run: Run) -> PageTable:
    """Return a row per topology for VNFs that are equal; empty if all VNFs were tasks of the tester."""
    vnfs: dict[tuple[str, str, str], dict[str, None]] = {}
    for conditions in run.conditions:
        where = f"{conditions.scenario}-{conditions.chain_length}" if conditions.chain_length else conditions.scenario
        if conditions.chain:
            named = 1 if scenario_named(conditions.scenario).side_by_side else conditions.chain_length
            where = f"{conditions.scenario} {chain_label(conditions.chain, named)}"
        for fact in conditions.hosting:
            details = (f"{name}: {text}" for name, text in sorted(fact.details.items()))
            what = "; ".join((f"{fact.program}{', emulated' * fact.emulated}", *details))
            vnfs.setdefault((where, fact.hosting, what), {})[fact.vnf] = None
    columns = (
        PageColumn("topology", lambda it: it[0][0]),
        PageColumn("VNFs", lambda it: ", ".join(it[1]) if len(it[1]) <= 3 else f"{it[1][0]} to {it[1][-1]}"),
        PageColumn("in", lambda it: it[0][1]),
        PageColumn("what it is", lambda it: it[0][2], "text"),
    )
    return page_table("VNF isolation", columns, [(key, list(found)) for key, found in vnfs.items()])


def functional_sentences(run: Run) -> list[str]:
    """Return the packet counts of functional trials, a sentence per switch, topology and load, with the reasons.

    Flat out most frames may be missing: the tester then sends more than can be forwarded. A paced load tells whether a
    VNF loses frames.
    """
    groups = grouped(
        ((trial.point.switch, trial.point.scenario_label, trial.load.label), trial)
        for trial in run.trials
        if trial.verdict.kind is VerdictKind.FUNCTIONAL and trial.role != "warmup"
    )
    sentences = []
    for (switch, where, load), trials in groups.items():
        sent = sum(direction.offered_packets for trial in trials for direction in trial.directions)
        came = sum(trial.forwarded_packets for trial in trials)
        why = reasons(tuple(dict.fromkeys(reason for trial in trials for reason in trial.verdict.texts)))
        counts = f"{several(len(trials), 'trial')}: {count(sent)} frames sent, {count(came)} came"
        sentences.append(f"{switch} {where}, {load_words(load)}, {counts} ({why})")
    return sentences


# Commands to repeat a run, and how to install its switches.


def repeat_tables(header: RunHeader) -> list[PageTable]:
    """Return commands with what they do, and how to get each switch, as the run recorded it."""
    run, tables = header.run_id, []
    if header.command:
        command = shlex.join(header.command)
        lines = {
            command: "made this run; with --resume it continues an interrupted or killed one",
            f"planebench compare {run} latest": "compares this run with the newest: ratios, intervals, settings",
            f"planebench export {run}": "writes every result as JSON, with --format svg every chart",
        }
        columns = PageColumn("command", itemgetter(0), "text"), PageColumn("does", itemgetter(1), "text")
        tables.append(page_table("Commands", columns, list(lines.items())))
    switches = (
        PageColumn("switch", lambda it: it.label, "switch"),
        PageColumn("version", lambda it: it.version, "text"),
        PageColumn("how to install it", lambda it: it.remedy or NOTHING, "text"),
    )
    tables.append(page_table("Switches", switches, header.switches))
    return tables


def setting_tables(header: RunHeader) -> list[PageTable]:
    """Return the settings, the host, the environment, and what of the papers is not covered."""
    left_out = {left.what: left.reason for left in header.left_out}
    differs = {
        f"{it.what.replace('_', ' ')}{f' (part {part.name})' if part is not header.plan else ''}": it.reason
        for part in dict.fromkeys((header.plan, *header.plan.parts))
        for it in part.differs
    }
    versions = {"seed": header.seed, "planebench": header.planebench_version}
    settings, host = ({key.replace("_", " "): it for key, it in of.items()} for of in (header.settings, header.host))
    return [
        named_values("Settings, equal for all", {**settings, **versions}),
        named_values("Host", host),
        named_values("Environment", header.environment),
        named_values(f"Not covered of {', '.join(header.papers) or 'the papers'}, with reasons", left_out),
        named_values(f"Conditions that are not those of {', '.join(header.papers) or 'the papers'}", differs),
    ]
