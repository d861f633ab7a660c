# SPDX-License-Identifier: BSD-3-Clause
"""Everything that table and page show of a run, derived once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planebench.model.records import Point, Trial
from planebench.model.results import Comparison, Result
from planebench.model.run import Run
from planebench.report.evidence import rejected_trials
from planebench.stats.chains import Chains, derive_chains
from planebench.stats.compare import compare_switches
from planebench.stats.effect import MIN_TRIALS
from planebench.stats.fairness import Condition, fairness
from planebench.stats.ranking import Ranking, rank
from planebench.stats.results import derive_results


@dataclass(frozen=True, slots=True)
class Derived:
    """A run with its results, rankings, comparisons of switches, and the trials that no result rests on."""

    run: Run
    results: tuple[Result, ...]
    rankings: tuple[Ranking, ...]
    comparisons: tuple[Comparison, ...]
    rejected: tuple[Trial, ...]
    chains: Chains
    """Chains of network functions against their parts."""
    conditions: tuple[Condition, ...]
    """The fairness manifest."""


def derive(run: Run) -> Derived:
    """Derive it all. Seconds for a run of a thousand trials: comparisons are resampled."""
    results = derive_results(run)
    chains = derive_chains(run, results)
    rejected = tuple(rejected_trials(run, results))
    return Derived(run, results, rank(results), compare_switches(run), rejected, chains, fairness(run))


def cell_id(point: Point) -> str:
    """The point without its switch, as in ``Comparison.point``."""
    return replace(point, switch="").point_id.lstrip("/")


def level_with_first(ranking: Ranking, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Labels that cannot be told from the first of a ranking: by the ranking, or by a comparison that says so."""
    open_ = {label for label, c in _with_first(ranking, comparisons) if not c.distinguishable}
    others = [r.point.switch for r in ranking.results[1:]]
    return tuple(label for label in others if label in open_ or label in ranking.level)


def too_few_tell(ranking: Ranking, comparisons: Sequence[Comparison]) -> bool:
    """Whether the first is level with others only because too few trials count: not because they are close."""
    level = level_with_first(ranking, comparisons)
    trials = {label: min(c.trials_a, c.trials_b) for label, c in _with_first(ranking, comparisons)}
    return bool(level) and all(trials.get(label, MIN_TRIALS) < MIN_TRIALS for label in level)


def _with_first(ranking: Ranking, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, Comparison]]:
    """The comparisons of the first with each other, by what the ranking goes by: the label of the other, and it."""
    metric = "throughput" if ranking.by == "throughput" else "cycles_per_packet"
    cell, first = cell_id(ranking.point), ranking.first.point.switch
    for c in comparisons:
        if c.point == cell and c.metric == metric and first in (c.a, c.b):
            yield (c.b if c.a == first else c.a), c
