# SPDX-License-Identifier: BSD-3-Clause
"""One run with what is derived from it, each thing once and only when it is asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from planebench.model.records import Point, Trial
from planebench.model.results import Comparison, LatencySummary, Result
from planebench.model.run import Run
from planebench.stats.compare import compare_switches
from planebench.stats.fairness import Condition, fairness
from planebench.stats.latency import latency_groups, latency_records
from planebench.stats.results import derive_results, run_band


class Source:
    """A run and its folder."""

    def __init__(self, path: Path, run: Run) -> None:
        self.path = path
        self.run = run

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """One a point."""
        return derive_results(self.run)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Switch against switch."""
        return compare_switches(self.run)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The fairness manifest."""
        return fairness(self.run)

    @cached_property
    def _by_point(self) -> dict[Point, list[Trial]]:
        return self.run.by_point()

    @cached_property
    def _band(self) -> str | None:
        return run_band(self.run.trials, self.run.header.settings.get("band"))

    def histograms(self, result: Result, summary: LatencySummary) -> tuple[str, ...]:
        """The stored histograms (HDR V2, base64, ns) that a latency of a result is made of."""
        groups = latency_groups(self._by_point[result.point], result.band or self._band)
        return tuple(record.histogram for record in latency_records(groups[summary.load]))
