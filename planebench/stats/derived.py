# SPDX-License-Identifier: BSD-3-Clause
"""A run with everything derived from it. Page, terminal, exports, papers and library share this object."""

from __future__ import annotations

from functools import cached_property

from planebench.model.records import Point, Reason, Trial, VerdictKind
from planebench.model.results import Comparison, LatencySummary, Result
from planebench.model.run import Run
from planebench.stats.chains import Chains, derive_chains
from planebench.stats.compare import Outcome, switches_compared
from planebench.stats.counting import Counted
from planebench.stats.disturbed import DisturbedSwitch, disturbed_switches
from planebench.stats.drift import drift
from planebench.stats.fairness import Condition, contradictions, fairness
from planebench.stats.latency import latency_groups, latency_records
from planebench.stats.ranking import Ranking, rank
from planebench.stats.results import derive_results
from planebench.stats.shared_cores import SharedCore, shared_cores


class Derived:
    """A run and everything derived from it. Each part is derived once, when it is first requested.

    Deriving everything takes seconds for a run of a thousand trials.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Return one result per point, in the order of the tables."""
        return derive_results(self.run)

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """Return the switches of each test point, best first."""
        return rank(self.results)

    @cached_property
    def compared(self) -> Outcome:
        """Return every comparison of two switches at each test point, and those that were not possible."""
        return switches_compared(self)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Return every comparison of two switches at each test point; ``a`` is the one that the header names first."""
        return self.compared.comparisons

    @cached_property
    def invalid(self) -> tuple[Trial, ...]:
        """Return the trials that did not take place, in the order of the run, without those of warm-up."""
        return tuple(t for t in self.run.trials if t.role != "warmup" and t.verdict.kind is VerdictKind.INVALID)

    @cached_property
    def disturbed_switches(self) -> tuple[DisturbedSwitch, ...]:
        """Return the switches whose trials are disturbed more often than those of the others."""
        return disturbed_switches(self.run.trials)

    @cached_property
    def shared_cores(self) -> tuple[SharedCore, ...]:
        """Return how often another hyperthread used the cores of switch and tester; () where it is not known."""
        return shared_cores(self.run.trials)

    @cached_property
    def chains(self) -> Chains:
        """Return the chains compared with their functions measured alone."""
        return derive_chains(self.run, self.results)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the test conditions of each switch."""
        return fairness(self.run)

    @cached_property
    def contradictions(self) -> tuple[str, ...]:
        """Return a sentence for each condition in which the adapter and the measurement differ."""
        return contradictions(self.run, self.conditions)

    @cached_property
    def trials(self) -> dict[Point, list[Trial]]:
        """Return the trials of each point, in the order in which they ran."""
        return self.run.by_point()

    @cached_property
    def drift(self) -> Reason | None:
        """Return how the rates of the run drifted with time; None if they did not."""
        accepted = {index for result in self.results for index in result.trials}
        return drift(trial for trial in self.run.trials if trial.index in accepted)

    def latency_trials(self, result: Result) -> dict[str, Counted]:
        """Return the trials that the latency of ``result`` rests on, by load."""
        return latency_groups(self.trials.get(result.point, ()))

    def histograms(self, result: Result, summary: LatencySummary) -> tuple[str, ...]:
        """Return the stored histograms (HDR V2, base64, ns) of ``summary``, a latency of ``result``."""
        return tuple(record.histogram for record in latency_records(self.latency_trials(result)[summary.load]))
