# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of figures, each with its title, its caption and what draws it; and the figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from planebench.analysis.compare import Derived
from planebench.model.header import Calibration, Run
from planebench.model.results import Result
from planebench.model.words import frames_words, printable
from planebench.papers.measured import RunFigures
from planebench.report.anatomy import NOTE, anatomy_figures
from planebench.report.chains import chain_figures
from planebench.report.figure import Colors, Figure, FigureId, switch_colors
from planebench.report.latency import (
    deviation_figures,
    jitter_figures,
    jitter_size_figures,
    latency_figures,
    load_figures,
    percentile_figures,
    size_figures,
    tradeoff_figures,
)
from planebench.report.papers import paper_charts
from planebench.report.searches import loss_figures
from planebench.report.throughput import chain_length_figures, throughput_figures, throughput_row, top_mpps
from planebench.report.vnfs import over_vnfs


@dataclass(frozen=True, slots=True)
class FigureSource:
    """The data of figures. ``results`` are those of one scenario; of the whole run for kinds ``of_run``."""

    derived: Derived
    results: Sequence[Result]
    colors: Colors

    @property
    def calibration(self) -> Calibration | None:
        """Return the calibration of the tester, if the run has one."""
        return self.derived.run.header.calibration

    @property
    def side_by_side(self) -> bool:
        """Return whether the VNFs of the scenario are independent instead of a chain."""
        return self.results[0].point.side_by_side


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure. ``section``: the section of the page that shows it; empty for the one of its scenario.

    ``last``: kinds with a higher number are the first to be omitted from a page that is full; tables show most of them.
    """

    id: FigureId
    title: str
    caption: str
    figures: Callable[[FigureSource], Iterable[Figure]]
    section: str = ""
    of_run: bool = False
    last: int = 0


_RATE = (
    "Forwarding rate at maximum offered load (R+) in Mpps. Error bars: 95 % confidence interval; none where it is not "
    "known. Arrow: the tester was the limit, the switch may be faster."
)
_JITTER = "Mean jitter, using the definition named in the title."

FIGURES: tuple[FigureKind, ...] = (
    FigureKind("overview", "Throughput by path", _RATE, lambda s: _overview(s), section="answers", of_run=True),
    FigureKind("throughput", "Throughput", _RATE, lambda s: throughput_figures(s.results, s.colors)),
    FigureKind(
        "chain",
        "Throughput by chain length",
        _RATE,
        lambda s: () if s.side_by_side else chain_length_figures(s.results, s.colors),
    ),
    FigureKind(
        "vnfs",
        "Throughput, latency and jitter by number of VNFs",
        "Error bars: throughput, 95 % confidence interval.",
        lambda s: over_vnfs(s.results, s.colors) if s.side_by_side else (),
    ),
    FigureKind(
        "loss",
        "Frame loss rate",
        "Frame loss rate by load (RFC 2544 section 26.3).",
        lambda s: loss_figures(s.results, s.colors),
    ),
    FigureKind(
        "latency",
        "Latency",
        "Dot: median. Thick line: to p99. Thin line: to p99.9. Numbers: p50 / p99 / p99.9 in µs.",
        lambda s: latency_figures(s.results, s.colors, s.calibration),
    ),
    FigureKind(
        "load",
        "Latency against load",
        "Line: p50. Error bars: 95 % confidence interval. Dashed: p99. Ring: knee (load above which latency rises "
        "sharply). Gray: tester latency baseline.",
        lambda s: load_figures(s.results, s.colors, s.calibration),
    ),
    FigureKind("jitter", "Jitter against load", _JITTER, lambda s: jitter_figures(s.results, s.colors), last=2),
    FigureKind(
        "sizes",
        "Latency against frame size",
        "Mean.",
        lambda s: size_figures(s.results, s.colors),
    ),
    FigureKind(
        "jitter-sizes",
        "Jitter against frame size",
        _JITTER,
        lambda s: jitter_size_figures(s.results, s.colors),
        last=1,
    ),
    FigureKind(
        "tradeoff",
        "Throughput against mean latency",
        "As conext19, Fig. 1. Each switch is at a share of its own R+, so at another load than the others, and axes "
        "differ between charts. Error bars: throughput, 95 % confidence interval. Hollow: not carried.",
        lambda s: tradeoff_figures(s.results, s.colors),
        last=1,
    ),
    FigureKind(
        "deviation",
        "Mean latency against its standard deviation",
        "As conext19, Fig. 1. Lower left is better. Computed over all probes, so no error bars. Hollow: not carried.",
        lambda s: deviation_figures(s.results, s.colors),
        last=1,
    ),
    FigureKind(
        "anatomy",
        "Latency breakdown",
        f"Mean probe latency, by part of the path. {NOTE}",
        lambda s: anatomy_figures(s.results),
        last=4,
    ),
    FigureKind(
        "percentiles",
        "Latency distribution",
        "Latency percentiles of all received probes. Lower and flatter is better.",
        lambda s: percentile_figures(s.derived, s.results, s.colors),
        last=5,
    ),
    FigureKind(
        "parts",
        "Latency of a chain and of its functions measured alone",
        "Mean latency at the same load in packets per second. Top bar: the chain. Bottom bar: its functions measured "
        "alone, stacked.",
        lambda s: chain_figures(s.derived.chains.latency),
        section="chains",
        of_run=True,
        last=3,
    ),
    FigureKind(
        "papers",
        "Published values and this run",
        "Hollow marker: published. Filled marker: this run. Both normalized to the same reference.",
        lambda s: paper_charts(RunFigures(s.derived)),
        section="papers",
        of_run=True,
    ),
)
"""Every kind of figure, in the order of the page."""


def make_figures(derived: Derived, kinds: Sequence[FigureKind] = FIGURES) -> tuple[Figure, ...]:
    """Return every figure that the data of a run allow, by kind; none for a run without results."""
    results = derived.results
    source = FigureSource(derived, results, _colors(derived.run))
    scenarios = dict.fromkeys(result.point.scenario for result in results)
    parts = [replace(source, results=[r for r in results if r.point.scenario == name]) for name in scenarios]
    return tuple(f for kind in kinds for part in ([source] if kind.of_run else parts) for f in kind.figures(part))


def _overview(source: FigureSource) -> Iterator[Figure]:
    """Yield the throughput of all paths as one figure with one axis: smallest frames.

    It shows both directions together if they were measured so.
    """
    run = source.derived.run
    results = source.results
    if not results:
        return
    from planebench.report.charts import overview_bars

    size, traffic = min((r.point.frame_size_bytes, r.point.traffic) for r in results)
    members = [r for r in results if (r.point.frame_size_bytes, r.point.traffic) == (size, traffic)]
    directions = [r.point.direction for r in members]
    direction = "bidirectional" if "bidirectional" in directions else directions[0]
    shown = [r for r in members if r.point.direction == direction]
    rows = [{**throughput_row(r), "path": printable(r.point.scenario_label)} for r in shown]
    title = f"{printable(run.header.name)}: {direction}, {frames_words(traffic, size)}"
    chart = partial(overview_bars, rows, source.colors, top_mpps(shown))
    yield Figure("overview", "overview", results[0].point.scenario, title, chart)


def _colors(run: Run) -> Colors:
    return {printable(label): color for label, color in switch_colors(run.switch_labels).items()}
