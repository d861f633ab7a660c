# SPDX-License-Identifier: BSD-3-Clause
"""The latency trials of a topology: those of every part of a plan, each once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planebench.model.errors import UsageError
from planebench.model.plan import LatencyPlan, Plan
from planebench.model.records import Point
from planebench.plans.expand import points_of
from planebench.plans.order import Group, Step, interleave
from planebench.search import load_name
from planebench.traffic.rates import bit_loads, latency_labels


@dataclass(frozen=True, slots=True)
class LatencyStep:
    """A latency trial to run, and how the part that wants it takes latency."""

    step: Step
    how: LatencyPlan


def latency_steps(plan: Plan, group: Group) -> tuple[LatencyStep, ...]:
    """Return every latency trial of a topology, in order. One that several parts want comes once."""
    steps: dict[Step, LatencyStep] = {}
    for section in plan.sections:
        for step in _of_section(section, group, plan.seed):
            steps.setdefault(step, LatencyStep(step, section.latency))
    return tuple(steps.values())


def _of_section(section: Plan, group: Group, seed: int) -> tuple[Step, ...]:
    labels = _labels(section, group.points[0])
    if not labels:
        return ()
    wanted = frozenset(points_of(section))
    mine = replace(group, points=tuple(point for point in group.points if point in wanted))
    return interleave(mine, section.latency.repetitions, seed, labels) if mine.points else ()


def check_latency(plan: Plan) -> None:
    """Raise UsageError for parts that measure latency of one point at one load in different ways."""
    seen: dict[tuple[Point, str], Plan] = {}
    for section in plan.sections if plan.parts else ():
        for point, label in _loads(section):
            other = seen.setdefault((point, label), section)
            if _how(other) != _how(section):
                raise UsageError(
                    f"parts {other.name} and {section.name} both take latency of {point.point_id} at {label}, with "
                    "other latency keys: give both the same duration_s, probe_rate_pps, anatomy and stamp, or other "
                    "loads"
                )


def _loads(section: Plan) -> Iterator[tuple[Point, str]]:
    for point in points_of(section):
        for label in _labels(section, point):
            yield point, label


def _labels(section: Plan, point: Point) -> tuple[str, ...]:
    latency = section.latency
    if point.two_clocks:
        return ()
    of = load_name(latency.of)
    bits = (load.label for load in bit_loads(latency.total_bps, latency.per_vnf_bps))
    return (*latency_labels(point.scenario, latency.loads, latency.v2v_pps, latency.rates_pps, of), *bits)


def _how(section: Plan) -> tuple[float, int, bool, str]:
    latency = section.latency
    return latency.duration_s, latency.probe_rate_pps, latency.anatomy, latency.stamp
