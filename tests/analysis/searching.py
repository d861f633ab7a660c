# SPDX-License-Identifier: BSD-3-Clause
"""A run with searches, measured on an imagined switch that carries up to its capacity and not a packet more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from builders import STARTED, make_header, make_plan, make_point, make_trial, sim_spec

from planebench.analysis.search.replay import step
from planebench.analysis.search.task import Ask, search_settings
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.header import Run
from planebench.model.plan import Plan, SearchPlan, ThroughputPlan
from planebench.model.records import DirectionCounts, Load, Point, Role, Trial
from planebench.model.results import SearchResult
from planebench.testbed.rates import SATURATING

PLAN = make_plan(throughput=ThroughputPlan(1.0, 1), search=SearchPlan(("ndr",), 1.0, 1.0, 0.005))
"""Short: one trial decides a load."""


def searched_run(mpps: Mapping[str, float], plan: Plan = PLAN, **header: Any) -> Run:
    """Switch label -> what it carries, in the near band; three saturating trials, then the searches to their ends."""
    trials: list[Trial] = []
    for label, capacity in mpps.items():
        own = [_trial(make_point(label), capacity, Ask(None, 1.0, repetition=i)) for i in range(3)]
        for method in plan.search.methods:
            _search(method, plan, own, capacity)
        trials += own
    numbered = tuple(_numbered(trials))
    return Run(make_header(tuple(mpps), plan=plan, **header), numbered)


def _search(method: str, plan: Plan, own: list[Trial], capacity_mpps: float) -> None:
    point = own[0].point
    while not isinstance(ask := step(method, search_settings(plan, 1), point, own), SearchResult):
        own.append(_trial(point, capacity_mpps, ask))


def _trial(point: Point, capacity_mpps: float, ask: Ask) -> Trial:
    capacity = int(capacity_mpps * 1e6)
    if ask.load_pps is None:
        return make_trial(0, point, capacity_mpps, repetition=ask.repetition, start=ask.repetition)
    sent = int(ask.load_pps * ask.duration_s)
    counts = DirectionCounts("n0->n1", sent, sent, min(sent, int(capacity * ask.duration_s)))
    nanoseconds = int(ask.duration_s * 1e9)
    return make_trial(
        0,
        point,
        role="search",
        load=Load("search", ask.load_pps),
        directions=(counts,),
        intended_duration_ns=nanoseconds,
        offered_duration_ns=nanoseconds,
    )


def _numbered(trials: Sequence[Trial]) -> Sequence[Trial]:
    return [replace(trial, index=i) for i, trial in enumerate(trials)]


def simulated_run(specs: Mapping[str, str], seed: int, starts: int, method: str = "ndr") -> Run:
    """Switch label -> its simulator; R+ and a search once in each start. One trial decides a load."""
    plan = replace(PLAN, search=replace(PLAN.search, methods=(method,)))
    how, trials = search_settings(plan, 1), list[Trial]()
    for label, text in specs.items():
        point, own = make_point(label), list[Trial]()
        runner = SimRunner(replace(sim_spec(text), name=label), seed, now=lambda: STARTED)
        for start in range(starts):
            ask: Ask | SearchResult = Ask(None, 1.0, repetition=start)
            while isinstance(ask, Ask):
                load = SATURATING if ask.load_pps is None else Load("search", ask.load_pps)
                role: Role = "r_plus" if ask.load_pps is None else "search"
                request = TrialRequest(point, role, load, ask.duration_s, repetition=start, start=start, search=method)
                own.append(runner.run(request))
                ask = step(method, how, point, own, start)
        trials += own
    return Run(make_header(tuple(specs), plan=plan), tuple(_numbered(trials)))
