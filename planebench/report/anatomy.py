# SPDX-License-Identifier: BSD-3-Clause
"""The latency breakdown as table and chart: parts of the path by chain, load and switch (ic16 Fig. 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from planebench.analysis.counting import latency_counts, same_cell
from planebench.model.records import PartKind, VerdictKind
from planebench.model.results import AnatomySummary, LatencySummary, Result
from planebench.model.words import NOTHING, count, load_words, percent, point_name, us
from planebench.report.charts import anatomy_bars
from planebench.report.figure import PART_KINDS, Figure, cell_figure
from planebench.report.svg import ChartRow
from planebench.report.tables import PageColumn, PageTable, number, page_table, point_columns

PAPER = "ic16 (Fig. 8) reports a hypervisor share of up to 80 % on its own hosts."

NOTE = (
    "Tester: generator and receiver. Switch: all hops, including the time that packets wait in rings and for the next "
    "poll. In parentheses: the least and the greatest share that is a part's own, because a packet may have waited at "
    "the end of a hop since the last poll that found nothing. Hosting: hops to and from VNFs in processes, containers "
    "and VMs, that is, the switch plus the cost of the isolation; compare it with the same chain with hosting process. "
    f"The parts of each probe add up to its latency. {PAPER}"
)


SHARES: dict[PartKind, str] = {"switch": "switch", "hosting": "hosting", "vnf": "VNFs", "tester": "tester"}
"""Columns of the table, in their order."""

AnatomyFound = tuple[Result, LatencySummary, AnatomySummary]


def found_anatomies(results: Sequence[Result]) -> list[AnatomyFound]:
    """Return the latency breakdowns with the result and the load that each belongs to."""
    return [(r, s, a) for r in results for s in r.latency for a in s.anatomy]


def anatomy_table(results: Sequence[Result]) -> PageTable:
    """Return a row per direction and load: the mean, the shares of switch, VNFs and tester, and every part of it."""
    found = found_anatomies(results)
    hosted = any(part.kind == "hosting" for _, _, anatomy in found for part in anatomy.parts)
    columns = (
        *point_columns(lambda it: it[0].point),
        PageColumn("load", lambda it: _load(it[1])),
        PageColumn("way", lambda it: it[2].direction),
        number("probes", lambda it: count(it[2].probes) if it[2].parts else NOTHING),
        number("mean µs", lambda it: us(it[2].mean) if it[2].parts else NOTHING),
        *(number(title, partial(_share, kind)) for kind, title in SHARES.items() if kind != "hosting" or hosted),
        PageColumn("parts, mean / p50 / p99 in µs", lambda it: _parts(it[2]), "text"),
        PageColumn("not joined", lambda it: missing_words(it[2]), "text"),
    )
    return page_table(
        "Latency breakdown", columns, found, NOTE, out=lambda it: not latency_counts(it[1]) or not it[2].parts
    )


def _share(kind: PartKind, found: AnatomyFound) -> str:
    """Return the share of a kind, with its bounds: ``62 % (40 to 62 %)``."""
    anatomy = found[2]
    if all(part.kind != kind for part in anatomy.parts):
        return NOTHING
    bounds = anatomy.bounds(kind)
    if bounds is None:
        return percent(anatomy.share(kind))
    low, high = (percent(share) for share in bounds)
    return f"{percent(anatomy.share(kind))} ({low.removesuffix(' %')} to {high})"


def _parts(anatomy: AnatomySummary) -> str:
    parts = (f"{part.name} {us(part.mean)} / {us(part.p50)} / {us(part.p99)}" for part in anatomy.parts)
    return "; ".join(parts) or anatomy.problem


def anatomy_rows(results: Sequence[Result]) -> list[ChartRow]:
    """Return one bar segment per part of the path, with its start and end in us of the mean latency."""
    rows: list[ChartRow] = []
    for result, summary, anatomy in found_anatomies(results):
        start, switch = 0.0, result.point.switch
        for part in anatomy.parts:
            rows.append(
                {
                    "bar": f"{switch} {anatomy.direction}" if len(summary.anatomy) > 1 else switch,
                    "load": _load(summary),
                    "part": PART_KINDS[part.kind],
                    "start": start,
                    "end": start + part.mean,
                    "cell": point_name(result.point),
                    "tip": f"{switch} at {load_words(summary.load)}, {anatomy.direction}, {part.name}: mean "
                    f"{us(part.mean)} µs ({percent(part.share)}), p50 {us(part.p50)}, p99 {us(part.p99)} µs",
                }
            )
            start += part.mean
    return rows


def _load(summary: LatencySummary) -> str:
    """Return the load in words; of functional trials it says so, because their shares say nothing about speed."""
    functional = summary.verdict.kind is VerdictKind.FUNCTIONAL
    return f"{load_words(summary.load)}, functional" if functional else load_words(summary.load)


def missing_words(anatomy: AnatomySummary) -> str:
    """Return the number of probes without all stamps by reason, and of trials whose parts do not add up."""
    words = [f"{count(number)} {why}" for why, number in anatomy.not_joined.items()]
    if anatomy.left_out:
        words.append(f"{anatomy.left_out} trials omitted because their parts do not add up")
    return "; ".join(words) or "0"


def anatomy_figures(results: Sequence[Result]) -> Iterator[Figure]:
    """Yield the mean latency part by part along the path, one figure per cell."""
    for cell, members in same_cell(results).items():
        rows = anatomy_rows(members)
        if rows:
            yield cell_figure("anatomy", cell, rows, anatomy_bars)
