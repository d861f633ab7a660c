# SPDX-License-Identifier: BSD-3-Clause
"""The isolation of the VNFs of a run, and its functional trials, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from planebench.model.chain_name import chain_label
from planebench.model.conditions import Conditions
from planebench.model.dimensions import HostingFacts
from planebench.model.header import Run
from planebench.model.records import Trial, VerdictKind
from planebench.model.scenario import scenario_named
from planebench.model.words import count, load_words, printable
from planebench.report.page.table import PageColumn, page_table

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
