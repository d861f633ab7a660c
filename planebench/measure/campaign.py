# SPDX-License-Identifier: BSD-3-Clause
"""A whole plan: topologies one after the other; on each, the trials of all switches are interleaved."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.runner import LiveRunner, Runner, SelfMeasured
from planebench.measure.trial import TrialRequest, unmeasured
from planebench.model.errors import PlanebenchError
from planebench.model.header import Skipped
from planebench.model.plan import Plan
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Load, Point, Trial, Verdict, VerdictKind
from planebench.model.results import SearchResult
from planebench.model.scenario import scenario_named
from planebench.placement import Cpus, place
from planebench.plans.estimate import estimate, expected_trials
from planebench.plans.latency_steps import LatencyStep, latency_steps
from planebench.plans.order import Group, Rounds, group_points
from planebench.scenarios.flows import flows
from planebench.scenarios.shapes import build
from planebench.search import Ask, search_settings, step
from planebench.stats.choose import choose, choose_saturating, run_band
from planebench.store import RunWriter
from planebench.traffic.rates import SATURATING, fixed_loads, latency_loads, rate_label
from planebench.vnfs.topology import build_chain
from planebench.wiring.adapter import Adapter

DEATHS_MAX = 2
"""How often a switch that died is started again on one topology."""
BAND_WAIT_S = 2.0
BAND_LOOK_S = 0.1
"""A search takes trials of one band: how long it waits for that band before it sends."""


class Listener(Protocol):
    """Receives the progress of a run, e.g. for the progress bar or a test."""

    def working_on(self, text: str) -> None:
        """Report work that is not a trial: ``starting ovs-dpdk for p2p``."""

    def trial_begins(self, request: TrialRequest) -> None:
        """Report the begin of a trial; until :meth:`trial_done`, anything that uses CPU time disturbs the trial."""

    def trial_done(self, trial: Trial) -> None:
        """Report that a trial is on disk."""

    def advance(self, steps: int) -> None:
        """Report that the given number of planned trials is done, measured or not."""

    def trouble(self, text: str) -> None:
        """Report a failure; the run continues."""


@dataclass
class Campaign:
    """Runs points of a plan and appends every trial to the writer. Nothing outlives :meth:`run`.

    ``points`` are those that their switches do not refuse (planebench.running.survey).
    ``trials`` may hold those of an earlier session of the same run: what they answer is not measured again.
    """

    plan: Plan
    points: Sequence[Point]
    adapters: dict[str, Adapter]
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
            if not self._finished(group):
                self._run_group(group)

    def _run_group(self, group: Group) -> None:
        with contextlib.ExitStack() as stack:
            benches = {label: Bench(self, label, group) for label in group.switches}
            for bench in benches.values():
                stack.callback(bench.stop)
                self.listener.working_on(f"starting {bench.label} for {bench.what}")
                bench.start()
            for method in ("r_plus", *self.plan.search.methods):
                self._search(group, benches, method)
            for latency_step in latency_steps(self.plan, group):
                self._measure_latency(benches[latency_step.step.point.switch], latency_step)

    def _finished(self, group: Group) -> bool:
        """Return whether an earlier session of this run has measured everything in the group."""
        methods = ("r_plus", *self.plan.search.methods)
        band = self._band("ndr")
        searched = all(isinstance(self._next(m, p, band), SearchResult) for m in methods for p in group.points)
        latency = latency_steps(self.plan, group)
        if not (self.trials and searched and all(self._has(wanted) for wanted in latency)):
            return False
        steps = sum(expected_trials(self.plan, m) for m in methods) * len(group.points)
        self._advance(steps + len(latency))
        return True

    def _search(self, group: Group, benches: dict[str, Bench], method: str) -> None:
        """Run one search on every point of the group, a trial of each in turn, until all have ended."""
        band = self._band(method)
        rounds = Rounds(group, self.plan.seed, (method,))
        left = dict.fromkeys(group.points, expected_trials(self.plan, method))
        while left:
            for turn in rounds.next(tuple(left)):
                ask = self._next(method, turn.point, band)
                if isinstance(ask, Ask) and self._answer(ask, method, benches[turn.point.switch], turn.point, band):
                    if left[turn.point] > 1:
                        left[turn.point] -= 1
                        self._advance(1)
                else:
                    self._advance(left.pop(turn.point))

    def _band(self, method: str) -> str | None:
        """Return the band whose trials a search uses. R+ uses every trial and leaves the choice to the statistics."""
        if method == "r_plus":
            return None
        common = Counter(t.band for t in self.trials if t.band is not None).most_common(1)
        return self.plan.band or run_band(self.trials) or (common[0][0] if common else None)

    def _next(self, method: str, point: Point, band: str | None) -> Ask | SearchResult:
        mine = [t for t in self.trials if t.point == point]
        return step(method, search_settings(self.plan, _senders(point)), point, mine, band)

    def _answer(self, ask: Ask, method: str, bench: Bench, point: Point, band: str | None) -> bool:
        """Measure the trial that a search wants; return False when no switch is left to measure."""
        if ask.restart:
            bench.restart_before(ask.repetition)
        if band is not None and bench.runner is not None:
            self._await_band(bench, band)
        plan, r_plus = self.plan.throughput, method == "r_plus"
        self._measure(
            bench,
            lambda start: TrialRequest(
                point,
                "r_plus" if r_plus else "search",
                _load(ask, point, plan.max_rate_pps),
                ask.duration_s,
                warmup_s=plan.warmup_s if ask.load_pps is None else 0.0,
                repetition=ask.repetition,
                start=start,
                search="" if r_plus else method,
                profile=self.plan.profile(point.traffic),
            ),
        )
        return r_plus or bench.runner is not None

    def _await_band(self, bench: Bench, band: str) -> None:
        """Wait at most BAND_WAIT_S until the CPUs are back in the band whose trials the search accepts."""
        deadline = time.monotonic() + BAND_WAIT_S
        while bench.runner is not None and bench.runner.band() not in (band, None) and time.monotonic() < deadline:
            time.sleep(BAND_LOOK_S)

    def _measure_latency(self, bench: Bench, wanted: LatencyStep) -> None:
        step, how, point = wanted.step, wanted.how, wanted.step.point
        load = self._latency_load(wanted)
        if load is not None and not self._has(wanted):
            self._measure(
                bench,
                lambda start: TrialRequest(
                    point,
                    "latency",
                    load,
                    how.duration_s,
                    probe_rate_pps=how.probe_rate_pps,
                    repetition=step.repetition,
                    echo=scenario_named(point.scenario).latency_by_echo,
                    start=start,
                    profile=self.plan.profile(point.traffic),
                    anatomy=how.anatomy,
                ),
            )
        self._advance(1)

    def _has(self, wanted: LatencyStep) -> bool:
        """Return whether an earlier session has measured a latency step, or tried as often as the plan allows.

        An invalid trial is no measurement, for its switch may run again by now.
        """
        step = wanted.step
        same = (step.point, "latency", step.load, step.repetition)
        kinds = [t.verdict.kind for t in self.trials if (t.point, t.role, t.load.label, t.repetition) == same]
        disturbed = kinds.count(VerdictKind.DISTURBED)
        measured = len(kinds) - disturbed - kinds.count(VerdictKind.INVALID)
        return measured > 0 or disturbed > self.plan.throughput.retries

    def _latency_load(self, wanted: LatencyStep) -> Load | None:
        """Return the load of a latency step in pps; None where the point has no R+ to take a share of."""
        step, how, point = wanted.step, wanted.how, wanted.step.point
        fixed = {load.label: load for load in fixed_loads(point.scenario, how.loads, how.v2v_pps, how.rates_pps)}
        if step.load in fixed and not scenario_named(point.scenario).latency_by_echo:
            return fixed[step.load]
        band = self.plan.band or run_band(self.trials)
        saturating = [t for t in self.trials if t.point == point and t.role == "r_plus"]
        chosen = (
            choose_saturating(saturating, band).trials or choose(saturating, band, (VerdictKind.FUNCTIONAL,)).trials
        )
        if not chosen:
            return None
        r_plus = sum(t.throughput_pps for t in chosen) / len(chosen)
        loads = latency_loads(point.scenario, how.loads, r_plus, len(chosen[0].directions), how.v2v_pps, how.rates_pps)
        return next(load for load in loads if load.label == step.load)

    def _measure(self, bench: Bench, make_request: Callable[[int], TrialRequest]) -> None:
        """Measure one planned trial; repeat it as often as the plan allows while it is disturbed."""
        for _attempt in range(1 + self.plan.throughput.retries):
            request = make_request(max(bench.start_number, 0))
            self.listener.trial_begins(request)
            trial = bench.run(request)
            self._record(trial)
            if bench.runner is None:
                return
            if not bench.runner.alive():
                reason = "; ".join(trial.verdict.texts)
                self.listener.trouble(f"{bench.label}: {reason}")
                bench.revive(reason)
                return
            if trial.verdict.kind is not VerdictKind.DISTURBED or bench.runner.shared or self._out_of_time():
                return

    def _out_of_time(self) -> bool:
        """Return whether the rest of the plan needs all that is left of the time budget; then nothing is repeated."""
        if self.plan.time_budget_s is None:
            return False
        share_left = 1 - self.done / max(self._planned, 1)
        rest_s = self._estimate_s * share_left
        return time.monotonic() - self.begun_s + rest_s > self.plan.time_budget_s

    @cached_property
    def _estimate_s(self) -> float:
        return estimate(self.plan, self.points, {label: adapter.cost for label, adapter in self.adapters.items()})

    @cached_property
    def _planned(self) -> int:
        return planned_trials(self.plan, self.points)

    def _advance(self, steps: int) -> None:
        self.done += steps
        self.listener.advance(steps)

    def _record(self, trial: Trial) -> None:
        trial = dataclasses.replace(trial, index=len(self.trials))
        self.writer.append(trial)
        self.trials.append(trial)
        self.listener.trial_done(trial)


@dataclass
class Bench:
    """One switch on the current topology. ``runner`` is None when it is not up; ``reason`` then says why."""

    campaign: Campaign
    label: str
    group: Group
    runner: Runner | None = None
    reason: str = ""
    start_number: int = -1
    """How often it was started again on this topology, over all sessions of a run; -1 before the first start."""
    deaths: int = 0
    restarted_for: set[int] = field(default_factory=set)
    """Repetitions of R+ before which it was started again."""
    fresh: bool = False
    """Nothing was measured since its last start: starting it again would change nothing."""

    @property
    def what(self) -> str:
        """Return the name of the topology, e.g. ``loopback-3``."""
        return self.group.points[0].scenario_label

    def start(self) -> None:
        """Start the switch. A failure is reported and kept in ``reason``; nothing is raised."""
        campaign, group = self.campaign, self.group
        mine = [t for t in campaign.trials if t.point.switch == self.label and t.point in group.points]
        self.start_number = max([self.start_number, *(t.start for t in mine)]) + 1
        try:
            self.runner = self._runner(mine)
            self.fresh = True
            if (found := self.runner.conditions) is not None:
                campaign.writer.observe(dataclasses.replace(found, switch=self.label, start=self.start_number))
        except PlanebenchError as error:
            self._give_up(str(error))

    def _runner(self, past: Sequence[Trial]) -> Runner:
        """Start the switch and its tester. Raises StartError; then no process is left running."""
        campaign, group = self.campaign, self.group
        adapter = campaign.adapters[self.label]
        if isinstance(adapter, SelfMeasured):
            return adapter.runner(self.label, campaign.plan.seed, past)
        topology = build_chain(group.scenario, group.chain_length, chain=group.chain, hosting=group.hosting)
        live = LiveTopology.start(
            self.label,
            adapter,
            topology,
            place(campaign.cpus, len(topology.vnfs), hosted=topology.hosted_numbers),
            campaign.settings,
            campaign.supervisor,
            directions=tuple(dict.fromkeys(point.direction for point in group.points)),
            profiles=[campaign.plan.profile(name) for name in dict.fromkeys(p.traffic for p in group.points)],
        )
        return LiveRunner(live, campaign.settings)

    def restart(self) -> None:
        """Stop the switch and start it again."""
        self.stop()
        self.start()

    def restart_before(self, repetition: int) -> None:
        """Restart the switch once before a repetition of R+, however many points the repetition has."""
        if repetition not in self.restarted_for:
            self.restarted_for.add(repetition)
            if not self.fresh:
                self.restart()

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial; if the switch is not up, return an invalid trial with the reason."""
        if self.runner is None:
            return unmeasured(request, Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, self.reason),)))
        self.fresh = False
        return self.runner.run(request)

    def revive(self, reason: str) -> None:
        """Start a switch that died again, a limited number of times."""
        self.stop()
        self.deaths += 1
        if self.deaths > DEATHS_MAX:
            self._give_up(f"died {self.deaths} times; the last time: {reason}")
        else:
            self.start()

    def stop(self) -> None:
        """Stop the switch. Never raises; safe to call twice."""
        if self.runner is not None:
            self.runner.stop()
            self.runner = None

    def _give_up(self, reason: str) -> None:
        self.runner, self.reason = None, reason
        what = f"{self.label} {self.what}"
        self.campaign.writer.skip(Skipped(what, reason))
        self.campaign.listener.trouble(f"{what}: {reason}")


def planned_trials(plan: Plan, points: Sequence[Point]) -> int:
    """Return the number of steps of a run without repetitions of disturbed trials: the length of the progress bar.

    A search takes as many trials as it takes; what it is expected to take is counted.
    """
    per_point = sum(expected_trials(plan, method) for method in ("r_plus", *plan.search.methods))
    return per_point * len(points) + sum(len(latency_steps(plan, group)) for group in group_points(points))


def _senders(point: Point) -> int:
    return len(flows(build(point.scenario, point.chain_length), point.direction))


def _load(ask: Ask, point: Point, max_rate_pps: float | None) -> Load:
    """Return the maximum offered load or its limit by rate; else the load of a search, split over the senders."""
    if ask.load_pps is None:
        return SATURATING if max_rate_pps is None else Load(SATURATING.label, max_rate_pps)
    return Load(rate_label(ask.load_pps), ask.load_pps / _senders(point))
