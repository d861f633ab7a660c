# SPDX-License-Identifier: BSD-3-Clause
"""Tables 1, 2 and 5 of conext19, which are no measurements, each row beside what a run has of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, same_cell
from planebench.analysis.standings import by_pair, versus
from planebench.model.header import SwitchInfo
from planebench.model.records import Point
from planebench.model.words import point_words
from planebench.papers.data import conext19_tables
from planebench.papers.told import Judgement
from planebench.report.tables import PageColumn, PageTable, page_table

MAX_LEADS = 3
"""Test points that are named; of more, the number is given."""


@dataclass(frozen=True, slots=True)
class TaxonomyRow:
    """A row of Table 1: the switch in the terms of the paper, and its function in a run."""

    switch: str
    published: Mapping[str, str | tuple[str, ...]]
    run: str = ""


@dataclass(frozen=True, slots=True)
class TuningRow:
    """A row of Table 2, what planebench has of it, and its setting in a run."""

    switch: str
    published: str
    here: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class UseCase:
    """A row of Table 5, with the claims that measure it, and their outcomes.

    ``leads``: the test points at which the switch forwards more than all others of the paper.
    """

    switch: str
    best_at: str
    remark: str
    leads: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def leads_words(self) -> str:
        """Return the first test points, and how many more there are; empty for none."""
        more = f" and {len(self.leads) - MAX_LEADS} more" if len(self.leads) > MAX_LEADS else ""
        return ", ".join(self.leads[:MAX_LEADS]) + more


def kinds(derived: Derived | None) -> tuple[TaxonomyRow, ...]:
    """Return Table 1, with the functions of the switches of a run."""
    of_run = _infos(derived)
    return tuple(
        TaxonomyRow(switch, row.model_dump(), of_run[switch].settings.get("function", "") if switch in of_run else "")
        for switch, row in conext19_tables().taxonomy.items()
    )


def tunings(derived: Derived | None) -> tuple[TuningRow, ...]:
    """Return Table 2, with the settings of a run."""
    of_run = _infos(derived)
    return tuple(
        TuningRow(
            switch, row.tuning, row.here, of_run[switch].settings.get(row.setting, "") if switch in of_run else ""
        )
        for switch, row in conext19_tables().tunings.items()
    )


def use_cases(derived: Derived | None, judgements: Iterable[Judgement] = ()) -> tuple[UseCase, ...]:
    """Return Table 5, with the test points of a run at which each switch leads, and what it says of the claims."""
    outcomes = {it.claim.id: it.words for it in judgements}
    leads: dict[str, list[str]] = {}
    for switch, point in _leaders(derived) if derived is not None else ():
        leads.setdefault(switch, []).append(point_words(point))
    return tuple(
        UseCase(
            switch,
            row.best_at,
            row.remark,
            tuple(leads.get(switch, ())),
            tuple(f"{claim}: {outcomes[claim]}" for claim in row.claims if claim in outcomes),
        )
        for switch, row in conext19_tables().use_cases.items()
    )


def _infos(derived: Derived | None) -> Mapping[str, SwitchInfo]:
    switches = derived.run.header.switches if derived is not None else ()
    return {_adapter(it): it for it in reversed(switches)}


def _adapter(info: SwitchInfo) -> str:
    return info.adapter.partition(":")[0]


def _leaders(derived: Derived) -> Iterator[tuple[str, Point]]:
    """Yield the switch that leads those of the paper at a test point, where every comparison says so."""
    adapters = {it.label: _adapter(it) for it in derived.run.header.switches}
    published = conext19_tables().use_cases
    pairs = by_pair(it for it in derived.comparisons if it.metric == "throughput")
    for point, results in same_cell(derived.results).items():
        labels = [it.point.switch for it in results if counts(it) and adapters.get(it.point.switch) in published]
        for first in labels:
            found = [versus(pairs, point, "throughput", first, it) for it in labels if it != first]
            if found and all(it is not None and it.answer == "different" and it.ratio > 1 for it in found):
                yield adapters[first], point


def published_tables(derived: Derived, judgements: Iterable[Judgement] = ()) -> list[PageTable]:
    """Return the three tables for the page of a run that reproduces conext19; none for another run.

    ``judgements`` are those of the run.
    """
    if "conext19" not in derived.run.header.papers:
        return []
    switch = PageColumn("switch", lambda it: it.switch, "switch")
    in_run = PageColumn("in this run", lambda it: it.run)
    names = {"models": "model", "virtual_interface": "VNFs by"}
    columns = (
        PageColumn(names.get(name, name), partial(_published, name))
        for name in conext19_tables().taxonomy["bess"].model_dump()
    )
    return [
        page_table("conext19: Table 1, taxonomy", (switch, *columns, in_run), kinds(derived)),
        page_table(
            "conext19: Table 2, tunings",
            (
                switch,
                PageColumn("published", lambda it: it.published, "text"),
                PageColumn("here", lambda it: it.here, "text"),
                in_run,
            ),
            tunings(derived),
        ),
        page_table(
            "conext19: Table 5, use cases",
            (
                switch,
                PageColumn("best at", lambda it: it.best_at, "text"),
                PageColumn("remark", lambda it: it.remark, "text"),
                PageColumn("leads in this run", lambda it: it.leads_words, "text"),
                PageColumn("claims", lambda it: "; ".join(it.claims), "text"),
            ),
            use_cases(derived, judgements),
            "Leads: it forwards more than every other switch of the paper that was measured, significantly.",
        ),
    ]


def _published(column: str, row: TaxonomyRow) -> str:
    return value_words(row.published[column])


def value_words(value: str | tuple[str, ...]) -> str:
    """Return a value of Table 1 in words."""
    return " and ".join(value) if isinstance(value, tuple) else value
