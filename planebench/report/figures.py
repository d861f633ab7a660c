# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of figures, each with its title, its caption and what draws it; and the figures of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.model.results import Result
from planebench.report.anatomy import NOTE, anatomy_figures
from planebench.report.answers import in_order
from planebench.report.figure import Colors, Figure, switch_colors
from planebench.report.latency import (
    latency_figures,
    load_figures,
    p99_figures,
    scatter_figures,
)
from planebench.report.throughput import chain_length_figures, rate_figures
from planebench.report.vnfs import over_vnfs


@dataclass(frozen=True, slots=True)
class FigureSource:
    """The data of figures. ``results`` are those of one scenario; of the whole run for kinds ``of_run``."""

    derived: Derived
    results: Sequence[Result]
    colors: Colors


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure. ``section``: the section of the page that shows it.

    ``last``: kinds that have a number are folded; those with a higher one are the first to be omitted from a page that
    is full. Tables show most of them.
    """

    id: str
    title: str
    caption: str
    section: str
    figures: Callable[[FigureSource], Iterable[Figure]]
    of_run: bool = False
    last: int = 0


_RATE = (
    "Forwarding rate at maximum offered load (R+) in Mpps. Whisker: 95 % confidence interval; none where it is not "
    "known. Pale, with an arrow: the tester or the links were the limit, the switch may be faster."
)

FIGURES: tuple[FigureKind, ...] = (
    FigureKind(
        "overview",
        "Throughput by path",
        _RATE,
        "answers",
        lambda s: rate_figures("overview", s.results, s.colors),
        of_run=True,
    ),
    FigureKind(
        "p99",
        "p99 latency by path",
        "Left is better. At the load that most switches carried, nearest to 50 %.",
        "answers",
        lambda s: p99_figures(s.derived, s.colors),
        of_run=True,
    ),
    FigureKind(
        "throughput",
        "Throughput of larger frames",
        _RATE,
        "throughput",
        lambda s: rate_figures("throughput", s.results, s.colors),
        of_run=True,
    ),
    FigureKind(
        "chain",
        "Throughput by chain length",
        _RATE,
        "chains",
        lambda s: () if s.results[0].point.side_by_side else chain_length_figures(s.results, s.colors),
    ),
    FigureKind(
        "vnfs",
        "Throughput, latency and jitter by number of VNFs",
        "Whiskers: throughput, 95 % confidence interval.",
        "chains",
        lambda s: over_vnfs(s.results, s.colors) if s.results[0].point.side_by_side else (),
    ),
    FigureKind(
        "latency",
        "Latency by path and load",
        "Dot: median. Thick line: to p99. Thin line: to p99.9. Numbers: p50 / p99 / p99.9 in µs.",
        "latency",
        lambda s: latency_figures(s.results, s.colors, s.derived.run.header.calibration),
        last=1,
    ),
    FigureKind(
        "load",
        "Latency against load",
        "Line: p50. Whiskers: 95 % confidence interval, cut at the edge. Dashed: p99. Ring: knee, the load above which "
        "latency rises sharply (of five loads or more). Gray: tester latency baseline, where the axis has it.",
        "latency",
        lambda s: load_figures(s.results, s.colors, s.derived.run.header.calibration),
    ),
    FigureKind(
        "tradeoff",
        "Throughput against mean latency",
        "As conext19, Fig. 1. Each switch is at a share of its own R+, so at another load than the others, and axes "
        "differ between charts. Whiskers: throughput, 95 % confidence interval. Hollow: not carried.",
        "latency",
        lambda s: scatter_figures("tradeoff", s.results, s.colors),
        last=2,
    ),
    FigureKind(
        "deviation",
        "Mean latency against its standard deviation",
        "As conext19, Fig. 1. Lower left is better. Computed over all probes, so no intervals. Hollow: not carried.",
        "latency",
        lambda s: scatter_figures("deviation", s.results, s.colors),
        last=2,
    ),
    FigureKind(
        "anatomy",
        "Latency breakdown",
        f"Mean probe latency, by part of the path. {NOTE}",
        "latency",
        lambda s: anatomy_figures(s.results),
        last=5,
    ),
)
"""Every kind of figure, in the order of the page."""


def make_figures(derived: Derived) -> tuple[Figure, ...]:
    """Return every figure that the data of a run allow, by kind; none for a run without results."""
    results = derived.results
    source = FigureSource(derived, results, switch_colors(in_order(Standings(derived))))
    scenarios = dict.fromkeys(result.point.scenario for result in results)
    parts = [replace(source, results=[r for r in results if r.point.scenario == name]) for name in scenarios]
    return tuple(f for kind in FIGURES for part in ([source] if kind.of_run else parts) for f in kind.figures(part))
