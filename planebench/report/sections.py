# SPDX-License-Identifier: BSD-3-Clause
"""The sections of a report: one a question. Page and terminal draw the same list; the first screen is before it.

How to add one is in docs/design/adding.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.model.scenario import scenario_named
from planebench.report.anatomy import anatomy_table
from planebench.report.answers import leaders_sentence, limits_words
from planebench.report.chains import chain_tables
from planebench.report.comparison import comparison_tables
from planebench.report.figure import Figure
from planebench.report.figures import FIGURES, FigureKind
from planebench.report.latency import (
    batching_sentence,
    jitter_table,
    latency_table,
    load_sentences,
    v2v_sentence,
)
from planebench.report.papers import papers_found
from planebench.report.searches import deviations, search_table
from planebench.report.setup import (
    FUNCTIONAL,
    calibration_tables,
    calibration_words,
    conditions_remark,
    conditions_tables,
    conditions_warnings,
    cores_sentence,
    functional_sentences,
    hosting_table,
    repeat_tables,
    setting_tables,
)
from planebench.report.tables import PageTable, named_values
from planebench.report.throughput import strata_sentences, throughput_table
from planebench.report.traffic import traffic_table
from planebench.report.trials import (
    cause_table,
    ledger_table,
    policy_sentences,
    unexplained_sentences,
    verdict_table,
)
from planebench.report.trust import trust
from planebench.report.vnfs import cores_table, outage_sentences, outage_table

MAX_CHARTS = 8
"""Charts of a kind that are open; the others are folded."""
MAX_ROWS, MAX_LINES = 15, 8
"""A longer table is folded; more sentences of a kind say little more."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences, each a paragraph."""

    lines: Sequence[str]
    style: Literal["plain", "alert"] = "plain"


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """The figures of one kind. The page shows those that were drawn and counts the others."""

    kind: FigureKind
    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that the reader of the page opens.

    ``terminal``: whether the terminal has them; it names the others.
    """

    title: str
    parts: Sequence[SectionPart]
    terminal: bool = True


SectionPart = Sentences | FigureGroup | PageTable | Fold


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its anchor, its title and its parts. One without any content is not there."""

    id: str
    title: str
    parts: Sequence[SectionPart]


class Source:
    """What sections are made of: a run, what follows from it, and its figures."""

    def __init__(self, derived: Derived, figures: Sequence[Figure] = (), shown: Iterable[str] = ()) -> None:
        self.derived, self.figures, self.shown = derived, figures, frozenset(shown)
        self.run, self.results = derived.run, derived.results

    @cached_property
    def standings(self) -> Standings:
        """Return the standings of the run."""
        return Standings(self.derived)

    def charts(self, section: str) -> list[SectionPart]:
        """Return the charts of a section, those that few readers need folded."""
        shown, more = [], []
        for kind in (it for it in FIGURES if it.section == section):
            members = [figure for figure in self.figures if figure.kind == kind.id]
            most = 0 if kind.last else MAX_CHARTS
            shown.append(FigureGroup(kind, members[:most]))
            more.append(FigureGroup(kind, members[most:]))
        return [*shown, Fold("More charts", more)]


def build(source: Source, entries: Sequence[SectionEntry] | None = None) -> list[Section]:
    """Return the sections of a run that have any content, without the parts that have none."""
    made = [entry(source) for entry in (SECTIONS if entries is None else entries)]
    made = [replace(it, parts=with_content(it.parts)) for it in made]
    return [it for it in made if it.parts]


def with_content(parts: Iterable[SectionPart]) -> tuple[SectionPart, ...]:
    """Return the parts that have any content, sentences once each."""
    found: list[SectionPart] = []
    for part in parts:
        if isinstance(part, Fold):
            part = replace(part, parts=with_content(part.parts))
            found += [part] if part.parts else []
        elif isinstance(part, PageTable):
            found += [part] if part.rows else []
        elif isinstance(part, FigureGroup):
            found += [part] if part.figures else []
        elif lines := tuple(dict.fromkeys(filter(None, part.lines))):
            found.append(replace(part, lines=lines))
    return tuple(found)


def folded(tables: Iterable[PageTable]) -> list[SectionPart]:
    """Return tables, long ones each behind its caption."""
    return [it if len(it.rows) <= MAX_ROWS else Fold(it.caption, [it]) for it in tables]


def _throughput(source: Source) -> Section:
    decides, others = comparison_tables(source.derived)
    answers = (
        "Ratio b / a with its 95 % interval. Different: 1 is outside of it, and the pair differs on this path also "
        "among all comparisons of the run (Holm), so that in 95 % of runs nothing is called different that is not. The "
        "same: the whole interval is within 5 % of 1. Open: neither, with what would decide it. Not tested: the noise "
        "is not known, e.g. after one start."
    )
    return Section(
        "throughput",
        "Throughput",
        [
            *source.charts("throughput"),
            Sentences(strata_sentences(source.results)),
            Fold("Every rate and what it rests on", [throughput_table(source.run, source.results)]),
            Fold("Rates by search", [search_table(source.results)]),
            Sentences([f"Deviation from the standard, {it}" for it in deviations(source.results)], "alert"),
            Fold(
                "Every pair of switches", [Sentences([answers]), decides, others] if decides.rows or others.rows else []
            ),
        ],
    )


def _latency(source: Source) -> Section:
    plan, results = source.run.header.plan, source.results
    first = leaders_sentence(source.standings.latency, "Lowest p99 latency", "have the lowest p99 latency")
    return Section(
        "latency",
        "Latency against load",
        [
            Sentences([first]),
            *source.charts("latency"),
            Sentences(load_sentences(results)[:MAX_LINES]),
            Sentences([v2v_sentence(plan, results), batching_sentence(plan, results)]),
            Fold("Every latency", [latency_table(source.run, results), jitter_table(source.run, results)]),
            Fold("Latency breakdown", [anatomy_table(results)]),
        ],
    )


def _cpu(source: Source) -> Section:
    table = cores_table(source.run, source.results)
    first = leaders_sentence(source.standings.cost.values(), "Lowest CPU cost", "have the lowest CPU cost")
    return Section("cpu", "CPU cost", [Sentences([first] if table.rows else []), *folded([table])])


def _chains(source: Source) -> Section:
    return Section("chains", "Chains", [*source.charts("chains"), *folded(chain_tables(source.derived.chains))])


def _losses(source: Source) -> Section:
    lost = ledger_table(source.run, source.results)
    return Section(
        "losses",
        "Losses",
        [
            Sentences(unexplained_sentences(source.results), "alert"),
            Sentences(policy_sentences(source.results)),
            *source.charts("losses"),
            Fold(lost.caption, [lost]),
        ],
    )


def _outages(source: Source) -> Section:
    parts = [Sentences(outage_sentences(source.run)), *folded([outage_table(source.run)])]
    return Section("outages", "Outages: a VNF, or the switch, restarted under traffic", parts)


def _disturbed(source: Source) -> Section:
    run, found = source.run, trust(source.standings)
    return Section(
        "disturbed",
        "What was disturbed",
        [
            Sentences([it for it in (*found.facts, *found.advice) if it not in source.shown]),
            Sentences([it for it in run.warnings if it not in source.shown], "alert"),
            Sentences([f"Skipped {it.what}: {it.reason}" for it in run.skipped], "alert"),
            verdict_table(run),
            *folded([cause_table(source.derived.invalid)]),
        ],
    )


def _conditions(source: Source) -> Section:
    run, calibration = source.run, source.run.header.calibration
    apart, alike = conditions_tables(source.derived)
    several = len(run.header.switches) > 1 and bool(apart.rows or alike.rows)
    remark = conditions_remark(source.derived) or "No known condition differs between the switches" * several
    functional, sent = functional_sentences(run), traffic_table(source.results)
    calibrated: list[SectionPart] = []
    if calibration:
        calibrated = [Sentences([calibration_words(calibration)]), *calibration_tables(calibration)]
    return Section(
        "conditions",
        "Conditions",
        [
            Sentences([remark, limits_words(source.derived) if source.results else ""]),
            Sentences([f"{FUNCTIONAL}."] * bool(functional) + functional, "alert"),
            Sentences([it for it in conditions_warnings(source.derived) if it not in source.shown], "alert"),
            *folded([apart]),
            Fold(alike.caption, [alike], terminal=False),
            Fold("What each scenario is", [named_values("Scenarios", _paths(source))], terminal=False),
            *folded([hosting_table(run)]),
            Fold(sent.caption, [sent]),
            Fold("Tester calibration: no switch in the path", calibrated, terminal=False),
            Fold("Settings and host", setting_tables(run.header), terminal=False),
        ],
    )


def _paths(source: Source) -> dict[str, str]:
    """Return the path of each scenario that was measured, and its meaning."""
    found = [scenario_named(name) for name in dict.fromkeys(r.point.scenario for r in source.results)]
    drawn = {it.name: it.path.replace("->", "→").replace("...", "…") for it in found}
    return {it.name: f"{it.use} ({it.name}): {drawn[it.name]}. {it.meaning}" for it in found}


def _papers(source: Source) -> Section:
    found = papers_found(source.derived)
    about = (
        "We compare rankings, ratios and trends, never absolute rates: the published ones come from Xeon servers of "
        "2012 to 2014 with 10 GbE NICs. Differences that are not significant are no ranking."
    )
    part = (
        "This run is not a full reproduction of any paper; only claims it can test are listed. Full list: "
        "`planebench papers`."
    )
    lead = [about, found.counts, "" if source.run.header.papers or not found.claims else part]
    return Section(
        "papers",
        "Published results",
        [
            Sentences(lead if found.claims or found.tables else []),
            *(Fold(it.caption, [it]) for it in (*found.claims, *found.tables)),
        ],
    )


METHOD = (
    "Throughput (R+) is the forwarding rate at maximum offered load (RFC 2285), geometric mean of the starts, losses "
    "ignored. Rates are per time that the pollers had their CPUs.",
    "Latency is measured with individually time-stamped probe packets inside the background traffic, at shares of a "
    "rate of the switch (v2v: at a fixed rate, sent back by the second VNF). Histograms are merged, percentiles are "
    "never averaged.",
    "Intervals and answers: the unit is the start of a switch, because trials of one start share its memory and "
    "placement. Switches are compared by paired differences within a pass. Intervals have 95 % confidence, each for "
    "itself.",
    "Gb/s are layer 1: (frame + 20 bytes) × 8. Frame sizes include the 4-byte FCS.",
    "Trials of all switches are interleaved in a seeded random order. Every trial that took place counts; a throughput "
    "is a lower bound if tester or links limited more than 20 % of its trials.",
    "Core-to-core latency is the round-trip time of a cache line between switch core and tester core, measured before "
    "and after each trial. Switches are compared where both had the same group, near or far, if there are enough such "
    "trials.",
    "Wires (port types: virtio, vhost, memif, veth) replace physical NICs. Do not compare results across wire types or "
    "hosts without stating it.",
)


def _repeat(source: Source) -> Section:
    commands, *others = repeat_tables(source.run.header)
    method = Fold("How it was measured", [Sentences([cores_sentence(source.run), *METHOD])], terminal=False)
    return Section("repeat", "How to repeat this run", [commands, *folded(others), method])


SectionEntry = Callable[[Source], Section]

SECTIONS: tuple[SectionEntry, ...] = (
    _throughput,
    _latency,
    _cpu,
    _chains,
    _losses,
    _outages,
    _disturbed,
    _conditions,
    _papers,
    _repeat,
)
"""Every section, in the order of the report."""
