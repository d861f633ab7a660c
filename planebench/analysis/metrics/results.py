# SPDX-License-Identifier: BSD-3-Clause
"""The columns of results and of their parts: latency, searches, ledger, anatomy.

RESULT and LATENCY are in the order of the JSON export; the order of the other outputs follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from planebench.analysis.capacity import latency_floor
from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, latency_counts, search_counts
from planebench.analysis.metrics.column import (
    JSON,
    TABLE,
    Column,
    Int32,
    Number,
    OnPage,
    Table,
    TableRow,
    Texts,
    attribute,
    attributes,
    having,
    point_columns,
    row,
    verdict_columns,
)
from planebench.analysis.results import mean_burst_packets
from planebench.analysis.search.methods import METHODS
from planebench.model.header import LatencyFloor, Run
from planebench.model.records import POINT_KEY, TrafficSent, VerdictKind
from planebench.model.results import (
    AnatomySummary,
    ControlSummary,
    JitterSummary,
    LatencySummary,
    Ledger,
    LoadFinding,
    Result,
    SearchFigure,
    SearchResult,
    Stratum,
)
from planebench.model.words import (
    NOTHING,
    UNKNOWN,
    batch,
    count,
    cycles,
    estimate,
    interval,
    load_words,
    mpps,
    percent,
    significant,
    throughput,
    us,
)

JITTER = "jitter"
DROPS = "drops"
"""The tables of the page, beside the main one of results and that of latencies, that have columns of the catalog."""

JITTERS = {
    "ipdv": "IPDV (RFC 3393)",
    "pdv": "PDV (delay - minimum)",
    "burst_jitter": "burst means (ic16)",
    "burst_signed": "burst means, signed (ic16)",
}
"""The definitions of jitter: the field, and its exact name."""


@dataclass(frozen=True, slots=True)
class OfResult:
    """A row for one result."""

    run: Run
    result: Result


@dataclass(frozen=True, slots=True)
class OfLatency(OfResult):
    """A row for one load of a result."""

    summary: LatencySummary

    @property
    def floor(self) -> LatencyFloor | None:
        """Return the latency that the tester measures on its own wire at this frame size."""
        return latency_floor(self.run.header.calibration, self.result.point, self.summary.clock)


def _verdict(of: str) -> Column:
    """Return the column of the kind of a verdict, beside which the page has its reasons."""

    def cell(it: Any) -> tuple[str, tuple[str, ...]]:
        verdict = getattr(it, of).verdict
        return verdict.kind.value, verdict.texts

    return Column("verdict", VerdictKind, f"{of}.verdict.kind", page=OnPage("verdict", 90, kind="verdict", cell=cell))


def _latency(name: str, title: str, order: int) -> Column:
    return Column(name, Number, f"summary.{name}", unit="us", page=OnPage(title, order, us))


def _percentile(name: str, title: str, order: int) -> tuple[Column, ...]:
    """Return the columns of a percentile and of the two ends of its 95 % interval, which the page has in one cell."""

    def cell(it: OfLatency) -> tuple[str, str]:
        low, high = (getattr(it.summary, f"{name}_{end}") for end in ("low", "high"))
        return us(getattr(it.summary, name)), interval(low, high, us)

    page = OnPage(title, order, kind="two", cell=cell, optional=True)
    ends = (Column(f"{name}_{it}", Number, f"summary.{name}_{it}", unit="us") for it in ("low", "high"))
    return Column(name, Number, f"summary.{name}", unit="us", page=page), *ends


def _jitter(name: str, title: str, order: int) -> tuple[Column, ...]:
    """Return the columns of one definition of jitter: a record in JSON, figures of their own in a table."""
    page = OnPage(title, order, lambda it: f"{us(it.p50)} / {us(it.p99)} / {us(it.max)}", section=JITTER)
    whole = Column(name, JitterSummary | None, f"summary.{name}", JSON, page=page)
    figures = ("mean", "p50", "p99", "max")
    flat = (Column(f"{name}_{it}", Number, f"summary.{name}.{it}", outputs=TABLE, unit="us") for it in figures)
    return whole, *flat


def _floor_us(name: str) -> Callable[[OfLatency], float | None]:
    """Return the getter of a figure of the latency baseline."""
    return lambda it: getattr(it.floor, name) / 1e3 if it.floor else None


_summary = partial(attribute, "summary")

LATENCY: tuple[Column, ...] = (
    _summary("load", str, outputs=TABLE, page=OnPage("load", 1, load_words, kind="plain")),
    _summary("intended_pps", float, page=OnPage("Mpps", 2, mpps)),
    _summary("achieved_fraction", float, page=OnPage("achieved", 3, lambda share: f"{share * 100:.1f} %")),
    _latency("mean", "mean", 4),
    _latency("stddev", "sd", 5),
    *_percentile("p50", "p50", 6),
    _latency("p90", "p90", 7),
    *_percentile("p99", "p99", 8),
    _latency("p99_9", "p99.9", 9),
    _latency("max", "max", 10),
    *_percentile("with_host_p50", "p50 with the host", 11),
    *_percentile("with_host_p99", "p99 with the host", 12),
    _summary("samples", int, page=OnPage("received", 22, count)),
    _verdict("summary"),
    _summary("probes_sent", int, page=OnPage("sent", 20, count)),
    _summary("probes_stamped", int, page=OnPage("stamped", 21, lambda number: count(number) if number else NOTHING)),
    _summary("clock", str, page=OnPage("clock", 80, kind="plain")),
    Column("clock_floor", Number, "summary.floor", unit="us", page=OnPage("clock floor", 81, us, optional=True)),
    _summary("software_p50", Number, unit="us"),
    _summary("software_p99", Number, unit="us", page=OnPage("p99 by software", 82, us, optional=True)),
    _summary("software_share_p99", Number),
    Column("verdict_reasons", Texts, "summary.verdict.texts"),
    Column("verdict_codes", Texts, "summary.verdict.codes"),
    Column("counts", bool, lambda it: latency_counts(it.summary), outputs=TABLE),
    *(column for order, (name, title) in enumerate(JITTERS.items(), 1) for column in _jitter(name, title, order)),
    Column("floor_p50", Number, _floor_us("p50_ns"), unit="us", page=OnPage("baseline", 15, us, optional=True)),
    Column("floor_p99", Number, _floor_us("p99_ns"), unit="us"),
    _summary("anatomy", tuple[AnatomySummary, ...], outputs=JSON),
)
"""One latency: a result at one load, valid trials merged. Times are in microseconds."""


def _found(method: str, it: OfResult) -> float | None:
    """Return what a search found: a rate, or packets per burst; None unless it came to one."""
    if METHODS[method].figure == "burst":
        return mean_burst_packets(it.result.searches, method)
    figure = it.result.search_figure(method)
    return figure.pps if figure else None


def _found_verdict(method: str, it: OfResult) -> str | None:
    """Return the verdict of the searches that came to a figure: a bound if one of them is."""
    mine = [s for s in it.result.searches if s.method == method]
    kinds = [s.verdict.kind for s in filter(search_counts, mine)] or [s.verdict.kind for s in mine]
    return next((kind.value for kind in kinds if kind.is_bound), kinds[0].value) if kinds else None


def _found_bound(method: str, it: OfResult) -> bool | None:
    figure = it.result.search_figure(method)
    return figure.is_bound if figure else None


def _switch(name: str) -> Callable[[OfResult], float | None]:
    """Return the getter of a figure of ``planebench.model.results``."""
    return lambda it: it.result.switch.get(name)


def _reported(name: str, page: OnPage, type_: Any = Number) -> Column:
    """Return the column of a figure that the switch itself reports."""
    return Column(f"switch_{name}", type_, _switch(name), page=page, by_switch=True)


def _cycles_cell(it: OfResult) -> tuple[str, str]:
    known, result = it.result.switch_cycles_per_packet, it.result
    figure = cycles(known) if known is not None or result.throughput_pps is None else UNKNOWN
    return figure, interval(result.cycles_low, result.cycles_high, partial(significant, digits=3))


def _throughput_cell(it: OfResult) -> tuple[str, str]:
    result = it.result
    return throughput(result), interval(result.throughput_low_pps, result.throughput_high_pps, mpps)


def _capacity_cell(it: OfResult) -> tuple[str, str]:
    result = it.result
    return estimate(result.capacity_estimate_pps), interval(result.capacity_low_pps, result.capacity_high_pps, mpps)


_KEY = point_columns("result.point")
_result = partial(attribute, "result")

RESULT: tuple[Column, ...] = (
    _KEY["switch"],
    _result("version", str),
    _KEY["scenario"],
    _KEY["direction"],
    _KEY["chain_length"],
    _KEY["frame_size_bytes"],
    _KEY["wire"],
    _KEY["hosting"],
    _verdict("result"),
    _result("throughput_pps", Number, page=OnPage("Mpps", 1, kind="two", cell=_throughput_cell)),
    _result("throughput_l1_gbps", Number, page=OnPage("Gb/s L1", 4, lambda gbps: f"{gbps:.2f}")),
    _result("loss_ratio", Number, page=OnPage("loss", 7, percent)),
    Column(
        "latency_us",
        dict[str, Any],
        lambda it: {s.load: row(having(LATENCY, "json"), OfLatency(it.run, it.result, s)) for s in it.result.latency},
        JSON,
    ),
    _reported("cycles_per_packet", OnPage("cycles / packet", 10, cycles, "two", cell=_cycles_cell)),
    Column("verdict_reasons", Texts, "result.verdict.texts"),
    Column("verdict_codes", Texts, "result.verdict.codes"),
    _result("throughput_stddev_pps", Number, page=OnPage("± sd", 2, lambda pps: f"{pps / 1e6:.3f}")),
    Column("trials", Int32, lambda it: len(it.result.trials)),
    _result("invalid", Int32),
    Column("run_id", str, "run.header.run_id"),
    Column("counts", bool, lambda it: counts(it.result), outputs=TABLE),
    Column("is_lower_bound", bool, lambda it: counts(it.result) and it.result.verdict.kind.is_bound, outputs=TABLE),
    _result("throughput_median_pps", Number, page=OnPage("median", 3, mpps)),
    Column("unexplained_packets", int | None, "result.ledger.unexplained_packets", outputs=TABLE),
    *(
        Column(f"{name}_{'packets' if it.figure == 'burst' else 'pps'}", Number, partial(_found, name), outputs=TABLE)
        for name, it in METHODS.items()
    ),
    *(Column(f"{name}_verdict", str | None, partial(_found_verdict, name), outputs=TABLE) for name in ("ndr", "pdr")),
    *(
        Column(f"{name}_is_lower_bound", bool | None, partial(_found_bound, name), outputs=TABLE)
        for name, it in METHODS.items()
        if it.figure == "rate"
    ),
    _result("throughput_trials_pps", tuple[float, ...], page=OnPage("trials", 5, len)),
    Column("trial_indices", tuple[int, ...], "result.trials"),
    _reported("busy_share", OnPage("core utilization", 12, percent)),
    _result("capacity_estimate_pps", Number, page=OnPage("estimate", 70, kind="two", cell=_capacity_cell)),
    _result("capacity_low_pps", Number),
    _result("capacity_high_pps", Number),
    _result("strata", tuple[Stratum, ...], outputs=JSON),
    _result("searches", tuple[SearchResult, ...], outputs=JSON),
    _result("search_figures", tuple[SearchFigure, ...], outputs=JSON),
    _result("load_finding", LoadFinding | None, outputs=JSON),
    _result("ledger", Ledger | None, outputs=JSON),
    _KEY["chain"],
    _KEY["traffic"],
    _result("mean_frame_bytes", Number),
    _result("sent", tuple[TrafficSent, ...], outputs=JSON),
    _reported("batch_size", OnPage("batch", 11, batch)),
    _reported("received_packets", OnPage("switch received", 4, count, section=DROPS), type_=int | None),
    _reported("forwarded_packets", OnPage("switch forwarded", 5, count, section=DROPS), type_=int | None),
    _result("fib_updates_per_s", Number),
    _result("control", ControlSummary | None, outputs=JSON),
    Column("control_reply_p50_us", Number, "result.control.p50_us"),
    Column("switch_cycles_per_batch", Number, _switch("cycles_per_batch")),
    _reported("full_batch_share", OnPage("full batches", 13, percent, optional=True)),
    _reported("core_mhz", OnPage("MHz", 14, lambda mhz: f"{mhz:.0f}", optional=True)),
    _result("throughput_low_pps", Number),
    _result("throughput_high_pps", Number),
    _result("cycles_low", Number),
    _result("cycles_high", Number),
    _result("counted_pps", Number, page=OnPage("as counted", 4, mpps)),
    _result("stood_share", float, page=OnPage("host took", 5, percent)),
    _result("disturbed", bool, outputs=TABLE),
    _result("starts", Int32),
    _KEY["placement"],
    _KEY["cpu_clock"],
)
"""One result: what a point came to. What is not known is null."""

_BY_NAME = {column.name: column for column in RESULT}
POINT = (_BY_NAME["run_id"], _KEY["switch"], _BY_NAME["version"], *(_KEY[name] for name in POINT_KEY[1:]))
"""Which point, of which run: the first columns of every table of this module, and what they are joined by."""

_VERDICT = tuple(_BY_NAME[name] for name in ("verdict", "verdict_reasons", "verdict_codes", "counts"))
_AT_LOAD = tuple(c for c in LATENCY if c.name in ("load", "verdict", "verdict_reasons", "verdict_codes", "counts"))

ANATOMY = (
    *_AT_LOAD,
    Column("flow", str, "anatomy.direction"),
    *attributes("anatomy", probes=int),
    Column("part", str, "part.name"),
    *attributes("part", kind=str),
    *(Column(name, float, f"part.{name}", unit="us") for name in ("mean", "p50", "p99")),
    *attributes("part", share=float),
    *(Column(name, Number, f"part.{name}", unit="us") for name in ("low", "high")),
)

_SEARCH = (
    *attributes("search", method=str, repetition=Int32),
    *verdict_columns("search.verdict"),
    *attributes("search", complete=bool),
    Column("counts", bool, lambda it: search_counts(it.search)),
    Column("is_lower_bound", bool, lambda it: it.figure.is_bound if it.figure else it.search.is_bound),
)
_BURST = {"rate_pps": float, "mean_packets": float, "min_packets": int, "max_packets": int, "buffer_ns": float}

SEARCH = (
    *_SEARCH,
    *attributes("search", lower_pps=Number, upper_pps=Number, conditional_pps=Number),
    Column("figure_pps", Number, lambda it: it.figure and it.figure.pps),
    Column("figure_low_pps", Number, lambda it: it.figure and it.figure.low_pps),
    Column("figure_high_pps", Number, lambda it: it.figure and it.figure.high_pps),
    Column("figure_starts", Int32, lambda it: it.figure.starts if it.figure else 0),
    *(Column(f"burst_{name}", kind, f"search.burst.{name}") for name, kind in _BURST.items()),
    Column("trials", Int32, lambda it: len(it.search.trials)),
    Column("trial_indices", tuple[int, ...], "search.trials"),
    *attributes("search", deviations=Texts),
)

LEDGER = (
    *_VERDICT,
    Column("place", str, lambda it: it.loss.place if it.loss else "unexplained"),
    Column("cause", str, lambda it: it.loss.cause if it.loss else ""),
    Column("packets", int, lambda it: it.loss.packets if it.loss else it.ledger.unexplained_packets),
    *attributes("ledger", offered_packets=int, forwarded_packets=int),
    Column("switch_counts_drops", bool, "ledger.counted"),
)


def results(derived: Derived) -> Iterator[OfResult]:
    """Yield a row for each result."""
    return (OfResult(derived.run, result) for result in derived.results)


def latencies(derived: Derived) -> Iterator[OfLatency]:
    """Yield a row for each load of each result."""
    return (OfLatency(derived.run, r, summary) for r in derived.results for summary in r.latency)


def _parts(derived: Derived) -> Iterator[TableRow]:
    for it in latencies(derived):
        for anatomy in it.summary.anatomy:
            for part in anatomy.parts:
                yield TableRow(run=it.run, result=it.result, summary=it.summary, anatomy=anatomy, part=part)


def _searches(derived: Derived) -> Iterator[TableRow]:
    for r in derived.results:
        for search in r.searches:
            yield TableRow(run=derived.run, result=r, search=search, figure=r.search_figure(search.method))


def _losses(derived: Derived) -> Iterator[TableRow]:
    """Yield a row for each loss; the last of each result has the loss None, for what no counter explains."""
    for result in derived.results:
        if result.ledger is not None:
            for loss in (*result.ledger.losses, None):
                yield TableRow(run=derived.run, result=result, ledger=result.ledger, loss=loss)


def _table(what: str, columns: tuple[Column, ...], items: Callable[[Derived], Iterator[Any]]) -> Table:
    own = (column for column in having(columns, "table") if column not in POINT)
    return Table(what, (*POINT, *own), items)


RESULT_TABLES: Mapping[str, Table] = {
    "results": _table("the result of a test point: throughput, loss, cycles", RESULT, results),
    "latency": _table("a result and load: percentiles, jitter, latency baseline of the tester", LATENCY, latencies),
    "anatomy": _table("a latency, flow and part of the path", ANATOMY, _parts),
    "searches": _table("a result, search and start: bounds or burst; `figure_pps` of all starts", SEARCH, _searches),
    "ledger": _table("a result and place where frames were lost, `unexplained` last", LEDGER, _losses),
}
