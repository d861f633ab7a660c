# SPDX-License-Identifier: BSD-3-Clause
"""A whole plan: topologies one after the other, on each the trials of all switches interleaved (DESIGN section 6)."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from planebench.host.process import Supervisor
from planebench.measure.distance import measure_distance
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial, unmeasured
from planebench.model.errors import PlanebenchError
from planebench.model.header import Skipped
from planebench.model.records import CoreDistance, Load, Point, Trial, Verdict, VerdictKind
from planebench.placement import Cpus, place
from planebench.plans import Group, Plan, Step, estimate, group_points, interleave
from planebench.scenarios import build
from planebench.stats.choose import choose, run_band
from planebench.store import RunWriter
from planebench.switches.base import SwitchAdapter
from planebench.traffic import SATURATING, latency_labels, latency_loads

RESTARTS_MAX = 2
"""How often a switch that died is started again on one topology."""


class Listener(Protocol):
    """Who wants to see a run go on: the progress bar, or a test."""

    def working_on(self, text: str) -> None:
        """Something begins: ``starting ovs-dpdk``, ``planed p2p unidirectional 64``."""

    def trial_done(self, trial: Trial) -> None:
        """A trial is on disk."""

    def advance(self, steps: int) -> None:
        """So many planned trials are dealt with, measured or not."""

    def trouble(self, text: str) -> None:
        """Something failed; the run goes on."""


@dataclass
class _Bench:
    """One switch on the current topology, and what became of it. ``live`` is None when it could not be started."""

    label: str
    adapter: SwitchAdapter
    live: LiveTopology | None = None
    reason: str = ""
    restarts: int = 0


@dataclass
class Campaign:
    """Runs the points of a plan and appends every trial to the writer. Nothing outlives :meth:`run`."""

    plan: Plan
    points: Sequence[Point]
    adapters: dict[str, SwitchAdapter]
    cpus: Cpus
    settings: LiveSettings
    writer: RunWriter
    listener: Listener
    supervisor: Supervisor
    trials: list[Trial] = field(default_factory=list)
    done: int = 0
    """Planned trials dealt with."""
    begun_s: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Measure everything. KeyboardInterrupt passes through; what was measured is on disk."""
        for group in group_points(self.points):
            self._run_group(group)

    def _run_group(self, group: Group) -> None:
        benches: dict[str, _Bench] = {}
        with contextlib.ExitStack() as stack:
            for label in group.switches:
                bench = benches[label] = _Bench(label, self.adapters[label])
                stack.callback(self._stop, bench)
                self._start(group, bench)
            for step in _saturating_steps(self.plan, group):
                self._measure(group, benches[step.point.switch], self._saturating(step))
            for step in _latency_steps(self.plan, group):
                self._measure_latency(group, benches[step.point.switch], step)

    def _saturating(self, step: Step) -> TrialRequest:
        plan = self.plan.throughput
        return TrialRequest(
            step.point, "r_plus", SATURATING, plan.duration_s, warmup_s=plan.warmup_s, repetition=step.repetition
        )

    def _measure_latency(self, group: Group, bench: _Bench, step: Step) -> None:
        plan, point = self.plan.latency, step.point
        load = self._latency_load(step)
        if load is None:
            self.done += 1
            self.listener.advance(1)
            return
        request = TrialRequest(
            point,
            "latency",
            load,
            plan.duration_s,
            probe_rate_pps=plan.probe_rate_pps,
            repetition=step.repetition,
            echo=point.scenario == "v2v",
        )
        self._measure(group, bench, request)

    def _latency_load(self, step: Step) -> Load | None:
        """The load of a latency step in pps; None where the point has no R+ to take a share of."""
        point, plan = step.point, self.plan.latency
        chosen = choose(
            [t for t in self.trials if t.point == point and t.role == "r_plus"], run_band(self.trials)
        ).trials
        if not chosen:
            return None
        r_plus = sum(t.throughput_pps for t in chosen) / len(chosen)
        senders = len(chosen[0].directions)
        loads = latency_loads(point.scenario, plan.loads, r_plus, senders, plan.v2v_pps)
        return next(load for load in loads if load.label == step.load)

    def _measure(self, group: Group, bench: _Bench, request: TrialRequest) -> None:
        """One planned trial, again as often as the plan allows while it is disturbed."""
        point = request.point
        self.listener.working_on(f"{point.switch} {point.scenario_label} {point.direction} {point.frame_size_bytes} B")
        for _attempt in range(1 + self.plan.throughput.retries):
            live = bench.live
            if live is None:
                self._record(unmeasured(request, Verdict(VerdictKind.INVALID, (bench.reason,))))
                break
            trial = run_trial(live, request, partial(self._distance, live))
            self._record(trial)
            if trial.offered_duration_ns == 0:
                self._restart(group, bench, trial.verdict)
                break
            if trial.verdict.kind is not VerdictKind.DISTURBED or live.placement.shared or self._out_of_time():
                break
        self.done += 1
        self.listener.advance(1)

    def _out_of_time(self) -> bool:
        """Whether the rest of the plan needs what is left of its time budget: then nothing is repeated."""
        if self.plan.time_budget_s is None:
            return False
        share_left = 1 - self.done / planned_trials(self.plan, self.points)
        rest_s = estimate(self.plan, self.points) * share_left
        return time.monotonic() - self.begun_s + rest_s > self.plan.time_budget_s

    def _record(self, trial: Trial) -> None:
        trial = dataclasses.replace(trial, index=len(self.trials))
        self.writer.append(trial)
        self.trials.append(trial)
        self.listener.trial_done(trial)

    def _distance(self, live: LiveTopology) -> CoreDistance | None:
        return measure_distance(self.settings.planed, live.placement.switch_cpu, live.placement.tester_cpus[0])

    def _start(self, group: Group, bench: _Bench) -> None:
        """Bring a switch up on the topology; what fails is told, recorded, and the rest of the run goes on."""
        topology = build(group.scenario, group.chain_length)
        what = topology.scenario + (f"-{group.chain_length}" if group.chain_length else "")
        self.listener.working_on(f"starting {bench.label} for {what}")
        if group.wire not in bench.adapter.wires:
            self._fail(
                bench, what, f"{bench.label} has no {group.wire} wire; it has {', '.join(sorted(bench.adapter.wires))}"
            )
            return
        placement = place(self.cpus, len(topology.vnfs))
        try:
            bench.live = LiveTopology.start(
                bench.label, bench.adapter, topology, placement, self.settings, self.supervisor
            )
        except PlanebenchError as error:
            self._fail(bench, what, str(error))

    def _fail(self, bench: _Bench, what: str, reason: str) -> None:
        bench.live, bench.reason = None, reason
        self.writer.skip(Skipped(f"{bench.label} {what}", reason))
        self.listener.trouble(f"{bench.label} on {what}: {reason}")

    def _restart(self, group: Group, bench: _Bench, verdict: Verdict) -> None:
        """A process died in the trial: start over, a limited number of times."""
        reason = "; ".join(verdict.reasons)
        self.listener.trouble(f"{bench.label}: {reason}")
        self._stop(bench)
        bench.restarts += 1
        if bench.restarts > RESTARTS_MAX:
            self._fail(bench, group.scenario, f"died {bench.restarts} times; the last time: {reason}")
            return
        self._start(group, bench)

    @staticmethod
    def _stop(bench: _Bench) -> None:
        if bench.live is not None:
            bench.live.stop()
            bench.live = None


def planned_trials(plan: Plan, points: Sequence[Point]) -> int:
    """How many steps a run has, repetitions of disturbed trials not counted: the length of the progress bar."""
    groups = group_points(points)
    return sum(len(_saturating_steps(plan, group)) + len(_latency_steps(plan, group)) for group in groups)


def _saturating_steps(plan: Plan, group: Group) -> tuple[Step, ...]:
    return interleave(group, plan.throughput.repetitions, plan.seed)


def _latency_steps(plan: Plan, group: Group) -> tuple[Step, ...]:
    labels = latency_labels(group.scenario, plan.latency.loads, plan.latency.v2v_pps)
    return interleave(group, plan.latency.repetitions, plan.seed, labels) if labels else ()
