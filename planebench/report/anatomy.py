# SPDX-License-Identifier: BSD-3-Clause
"""The latency breakdown for page, chart and terminal: parts of the path by chain, load and switch (ic16 Fig. 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from planebench.analysis.counting import latency_counts, same_cell
from planebench.model.records import PartKind, VerdictKind
from planebench.model.results import AnatomySummary, LatencySummary, PartSummary, Result
from planebench.model.words import NOTHING, count, load_words, percent, point_words, printable, us
from planebench.report.figure import PART_KINDS, ChartRow, Figure, cell_figure, tip
from planebench.report.page.table import PageColumn, PageTable, number, page_table, point_columns

PAPER = "ic16 (Fig. 8) reports a hypervisor share of up to 80 % on its own hosts."

NOTE = (
    "Tester: generator and receiver. Switch: all hops, including the time that packets wait in rings and "
    "for the next poll. In parentheses: the least and the greatest share that is a part's own, because a packet may "
    "have waited at the end of a hop since the last poll that found nothing. "
    "Hosting: hops to and from VNFs in processes, containers and VMs, that is, the switch plus the cost of "
    "the isolation; "
    "compare it with the same chain with hosting process. "
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
    columns = (
        *point_columns(found, lambda it: it[0].point),
        PageColumn("load", lambda it: _load(it[1])),
        PageColumn("way", lambda it: it[2].direction),
        number("probes", lambda it: count(it[2].probes) if it[2].parts else NOTHING),
        number("mean µs", lambda it: us(it[2].mean) if it[2].parts else NOTHING),
        *(number(SHARES[kind], partial(_share, kind)) for kind in _shares([a for _, _, a in found])),
        PageColumn("parts, mean / p50 / p99 in µs", lambda it: _parts(it[2]), "text"),
        PageColumn("not joined", lambda it: missing_words(it[2]), "text"),
    )
    return page_table(
        "Latency breakdown", columns, found, NOTE, out=lambda it: not latency_counts(it[1]) or not it[2].parts
    )


def _share(kind: PartKind, found: AnatomyFound) -> str:
    anatomy = found[2]
    return _share_words(anatomy, kind) if any(part.kind == kind for part in anatomy.parts) else NOTHING


def _share_words(anatomy: AnatomySummary, kind: PartKind) -> str:
    """Return the share of a kind, with its bounds: ``62 % (40 to 62 %)``."""
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
        start = 0.0
        for part in anatomy.parts:
            rows.append(_row(result, summary, anatomy, part, start))
            start += part.mean
    return rows


def anatomy_sentences(results: Sequence[Result]) -> list[str]:
    """Return one line per direction and load for the terminal."""
    lines = [
        f"{r.point.switch} {point_words(r.point)}, {_load(s)}, {a.direction}: {_line(a)}"
        for r, s, a in found_anatomies(results)
    ]
    return [*lines, PAPER] if lines else []


def _load(summary: LatencySummary) -> str:
    """Return the load in words; of functional trials it says so, because their shares say nothing about speed."""
    functional = summary.verdict.kind is VerdictKind.FUNCTIONAL
    return f"{load_words(summary.load)}, functional" if functional else load_words(summary.load)


def _line(anatomy: AnatomySummary) -> str:
    if not anatomy.parts:
        return f"no latency breakdown: {anatomy.problem}"
    shares = ", ".join(f"{PART_KINDS[kind]} {_share_words(anatomy, kind)}" for kind in _kinds(anatomy))
    return f"{us(anatomy.mean)} µs: {shares}"


def _kinds(anatomy: AnatomySummary) -> Iterator[PartKind]:
    """Return the kinds of parts that the path has."""
    present = {part.kind for part in anatomy.parts}
    return (kind for kind in SHARES if kind in present)


def _shares(found: Sequence[AnatomySummary]) -> tuple[PartKind, ...]:
    """Return the kinds with a column in the table: hosting only if a VNF is hosted."""
    present = {part.kind for anatomy in found for part in anatomy.parts}
    return tuple(kind for kind in SHARES if kind != "hosting" or kind in present)


def missing_words(anatomy: AnatomySummary) -> str:
    """Return the number of probes without all stamps by reason, and of trials whose parts do not add up."""
    words = [f"{count(number)} {why}" for why, number in anatomy.not_joined.items()]
    if anatomy.left_out:
        words.append(f"{anatomy.left_out} trials omitted because their parts do not add up")
    return "; ".join(words) or "0"


def _row(result: Result, summary: LatencySummary, anatomy: AnatomySummary, part: PartSummary, start: float) -> ChartRow:
    switch = printable(result.point.switch)
    several = len(summary.anatomy) > 1
    return {
        "bar": f"{switch} {anatomy.direction}" if several else switch,
        "load": _load(summary),
        "kind": PART_KINDS[part.kind],
        "start": start,
        "end": start + part.mean,
        "tip": tip(
            f"{switch} at {load_words(summary.load)}, {anatomy.direction}, {part.name}: mean {us(part.mean)} µs "
            f"({percent(part.share)}), p50 {us(part.p50)}, p99 {us(part.p99)} µs",
            result.point,
        ),
    }


def anatomy_figures(results: Sequence[Result]) -> Iterator[Figure]:
    """Yield the mean latency part by part along the path, one figure per cell."""
    from planebench.report.charts import anatomy_bars

    for cell, members in same_cell(results).items():
        rows = anatomy_rows(members)
        if rows:
            yield cell_figure("anatomy", cell, partial(anatomy_bars, rows))
