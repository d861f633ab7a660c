# SPDX-License-Identifier: BSD-3-Clause
"""A whole plan: pass after pass over all topologies; in each visit the trials of all switches are interleaved."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import TypeVar

from planebench.analysis.compare import Derived, Open, still_open
from planebench.analysis.counting import of_kinds, saturating
from planebench.analysis.search.methods import load_name
from planebench.analysis.search.replay import step
from planebench.analysis.search.task import Ask, fits, search_settings
from planebench.analysis.starts import geometric_mean, throughput_blocks
from planebench.host.device_settings import device_journal, keep_away
from planebench.host.process import Supervisor
from planebench.measure.ahead import Pace, stages_of
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.runner import ExternalRunner, LiveRunner, Runner, SelfMeasured
from planebench.measure.trial import TrialRequest, failed_trial
from planebench.model.cpus import Cpus
from planebench.model.dimensions import is_external
from planebench.model.errors import ExternalTesterError, PlanebenchError, StoreError
from planebench.model.header import Run
from planebench.model.plan import R_PLUS, Plan, Skipped, has_line
from planebench.model.reasons import ReasonCode
from planebench.model.records import Load, Point, TopologyKey, Trial, VerdictKind
from planebench.model.results import SearchResult
from planebench.model.scenarios import flows_of
from planebench.model.text import seconds_since_epoch
from planebench.model.wire import wire_arguments
from planebench.plan.estimate import REPETITIONS_FLOOR, expected_trials, visit_s
from planebench.plan.passes import (
    LatencyStep,
    Rounds,
    TopologyGroup,
    Visit,
    further_pass,
    group_points,
    latency_of,
    passes,
    searches_of,
    starts_s,
)
from planebench.store import RunWriter
from planebench.switches.adapter import Adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place_vnfs
from planebench.testbed.rates import SATURATING, bit_loads, fixed_loads, latency_loads, line_rate_pps, rate_label
from planebench.testbed.testers import get_tester

T = TypeVar("T")

DEATHS_MAX = 2
"""How often a switch that died is started again on one topology."""
FAILED_STARTS_MAX = 2
"""How often in a row a switch may fail to start on one topology until it is given up."""
TRIES = 2
"""How often a trial is tried in which the tester sends nothing: it did not take place."""
PAUSE_MAX_S = 60.0
"""More time than this between two trials was between two sessions of a run, and is not of its time budget."""


@dataclass
class Bench:
    """One switch on one topology, over all visits. ``runner`` is None when it is not up; ``reason``: why it failed."""

    campaign: Campaign
    label: str
    group: TopologyGroup
    echo: bool = False
    """Its second VNF sends everything back."""
    runner: Runner | None = None
    reason: str = ""
    start_number: int = -1
    """How often it was started again on this topology, over all sessions of a run; -1 before the first start."""
    deaths: int = 0
    failed_starts: int = 0
    """In a row."""

    def launch(self) -> None:
        """Start the switch. A failure is reported and kept in ``reason``; that of an external tester is raised."""
        mine = [t for t in self.campaign.trials if t.point.switch == self.label and t.point in self.group.points]
        self.start_number = max([self.start_number, *(t.start for t in mine)]) + 1
        try:
            self.runner = self._runner(mine)
        except ExternalTesterError as error:  # every other switch would meet it, too
            words = f"{error}. What was measured is stored; --resume continues the run"
            raise ExternalTesterError(words) from error
        except PlanebenchError as error:
            self._failed_to_start(error)

    def connect(self) -> None:
        """Connect the switch that was launched, and note its conditions. A failure is kept in ``reason``."""
        runner, point = self.runner, self.group.points[0]
        if runner is None:
            return
        try:
            if isinstance(runner, LiveRunner):
                runner.live.connect(self._adapter, self.campaign.supervisor)
        except PlanebenchError as error:
            self._failed_to_start(error)
            return
        self.failed_starts = 0
        if (found := runner.conditions) is not None:
            self.campaign.writer.observe(
                dataclasses.replace(
                    found,
                    switch=self.label,
                    start=self.start_number,
                    vnf_hosting=point.hosting,
                    placement=point.placement,
                    cpu_clock=point.cpu_clock,
                )
            )

    def _failed_to_start(self, error: PlanebenchError) -> None:
        self.failed_starts += 1
        again = f"failed to start {self.failed_starts} times in a row; the last time: "
        self._skip(f"{again if self.failed_starts > 1 else ''}{error}")

    @property
    def _adapter(self) -> Adapter:
        return self.campaign.adapters[self.label].at_clock(self.group.first.cpu_clock)

    def _runner(self, past: Sequence[Trial]) -> Runner:
        """Start switch and tester. Raises StartError or ExternalTesterError; then no process is left running."""
        campaign, group, point = self.campaign, self.group, self.group.first
        adapter = campaign.adapters[self.label]
        if isinstance(adapter, SelfMeasured):
            return adapter.runner(self.label, campaign.plan.seed, past)
        adapter = self._adapter
        sending = campaign.plan.sending
        topology = build_chain(
            point.scenario,
            point.chain_length,
            chain=point.chain,
            hosting=point.hosting,
            sending=sending,
            echo=self.echo,
        )
        placement = place_vnfs(
            campaign.cpus,
            topology.cores_of_vnfs,
            hosted=topology.hosted_numbers,
            placing=point.placement,
            idle_tester=topology.idle_tester,
        )
        if os.geteuid() == 0:
            with contextlib.suppress(StoreError):  # without a place for the old values the interrupts stay
                keep_away(placement.pollers, placement.control_cpus, device_journal())
        if is_external(campaign.plan.tester):
            tester = get_tester(campaign.plan.tester)
            return ExternalRunner.start(
                self.label, adapter, topology, placement, campaign.settings, campaign.supervisor, tester
            )
        live = LiveTopology.start(
            self.label,
            adapter,
            topology,
            placement,
            campaign.settings,
            campaign.supervisor,
            directions=tuple(dict.fromkeys(point.direction for point in group.points)),
            profiles=[campaign.plan.profile(name) for name in dict.fromkeys(p.traffic for p in group.points)],
            cpu_clock=point.cpu_clock,
            connected=False,
        )
        return LiveRunner(live, campaign.settings)

    def revive(self, reason: str) -> None:
        """Start a switch that died again, a limited number of times."""
        self.stop()
        self.deaths += 1
        if self.deaths > DEATHS_MAX:
            self._skip(f"died {self.deaths} times; the last time: {reason}")
        else:
            self.launch()
            self.connect()

    def stop(self) -> None:
        """Stop the switch. Never raises; safe to call twice."""
        if self.runner is not None:
            self.runner.stop()
            self.runner = None

    def _skip(self, reason: str) -> None:
        self.runner, self.reason = None, reason
        what = f"{self.label} {self.group.points[0].scenario_label}"
        self.campaign.writer.skip(Skipped(what, reason))
        self.campaign.listener.trouble(f"{what}: {reason}")


class Listener:
    """Receives the progress of a run, e.g. for the progress bar or a test; this one does nothing with it."""

    def working_on(self, text: str) -> None:
        """Report work that is not a trial: ``starting ovs-dpdk for p2p``."""

    def trial_begins(self, request: TrialRequest) -> None:
        """Report the begin of a trial; until :meth:`trial_done`, anything that uses CPU time disturbs the trial."""

    def trial_done(self, trial: Trial) -> None:
        """Report that a trial is on disk."""

    def trouble(self, text: str) -> None:
        """Report a failure; the run continues."""


@dataclass
class Campaign:
    """Runs points of a plan and appends every trial to the writer. Nothing outlives :meth:`run`.

    ``points`` are those that their switches do not refuse (planebench.measure.survey).
    ``trials`` may hold those of earlier sessions of the same run. The campaign goes through its plan from the
    beginning in any case, and takes each trial that is stored instead of measuring it: so every decision, as of the
    next load or the next pass, rests on the trials that it rested on at first.
    """

    plan: Plan
    points: Sequence[Point]
    adapters: dict[str, Adapter]
    cpus: Cpus
    settings: LiveSettings
    writer: RunWriter
    pace: Pace
    """Counts the trials of the plan, stored ones too."""
    listener: Listener
    supervisor: Supervisor
    trials: list[Trial] = field(default_factory=list)
    """All that are on disk."""
    decide: Callable[[Run], tuple[Open, ...]] = lambda run: still_open(Derived(run))
    """Returns the open comparisons, for which there are further passes."""

    def __post_init__(self) -> None:
        self._stored = list(self.trials)
        self._seen: list[Trial] = []
        """The trials that the campaign has come to so far: stored ones, then those that it measures."""
        self._benches: dict[tuple[TopologyKey, str, bool], Bench] = {}
        self._rounds: dict[tuple[TopologyKey, str], Rounds] = {}
        self._waiting: defaultdict[TopologyKey, list[LatencyStep]] = defaultdict(list)
        """Latency trials without a load, as no saturating trial of their point counts yet."""
        self._groups = {group.first.topology: group for group in group_points(self.points)}
        self._one_by_one = bool(wire_arguments(self.settings.wire))
        """Only one switch can be up, as named devices of a wire are of one process at a time."""
        self._costs = {label: adapter.cost for label, adapter in self.adapters.items()}
        self._starts_s = {key: starts_s(self._costs, group) for key, group in self._groups.items()}

    def run(self) -> None:
        """Measure everything. KeyboardInterrupt passes through; what was measured is on disk."""
        for visits in passes(self.plan, self.points, self._costs):
            takes_s = sum(visit_s(self.plan, visit, self._costs) for visit in visits)
            if visits[0].repetitions.start >= REPETITIONS_FLOOR and takes_s > self._left_s():
                break
            for visit in visits:
                self._visit(visit)
        for visits in self._further_passes():
            self.pace.extend([it for visit in visits for it in stages_of(self.plan, visit, self._costs)])
            for visit in visits:
                self._visit(visit)
        self.pace.drop(self.pace.steps - self.pace.done)  # latency trials that never had a load

    def _further_passes(self) -> Iterator[tuple[Visit, ...]]:
        """Yield passes over the points of comparisons that are open, until none is, or the time is used up."""
        first, *others = self.plan.throughput.looks
        wanted: tuple[Open, ...] | None = None
        for number in range(first, max([first, *others])):
            if number == first or number in others:
                found = self.decide(Run(self.writer.header, tuple(self._seen)))
                asked = None if wanted is None else {(it.point, it.labels) for it in wanted}
                wanted = tuple(it for it in found if asked is None or (it.point, it.labels) in asked)
            if visits := self._fitting(wanted or (), number):
                yield visits

    def _left_s(self) -> float:
        """Return what is left of the time of the run."""
        if self.plan.time_budget_s is None:
            return inf
        # Starts and trials so far took the same when the run is resumed.
        first_s = sum(self._starts_s[trial.point.topology] for trial in self._seen[:1])
        return self.plan.time_budget_s - (first_s + spent_s(self._seen, lambda point: self._starts_s[point.topology]))

    def _fitting(self, wanted: Sequence[Open], number: int) -> tuple[Visit, ...]:
        """Return a pass over the points of as many open comparisons as there is time for, the cheapest ones first."""
        left_s = self._left_s()
        ranked = sorted(wanted, key=lambda it: inf if it.more_starts is None else it.more_starts)

        def over(count: int) -> tuple[Visit, ...]:
            members = {dataclasses.replace(it.point, switch=label) for it in ranked[:count] for label in it.labels}
            return further_pass(self.plan, [p for p in self.points if p in members], self._costs, number)

        fit = bisect_right(
            range(len(ranked) + 1),
            left_s,
            key=lambda count: sum(visit_s(self.plan, visit, self._costs) for visit in over(count)),
        )
        return over(max(fit - 1, 0))

    def _visit(self, visit: Visit) -> None:
        """Do everything that a visit of a topology is for. Its switches start when there is something to measure."""
        key = visit.group.first.topology
        with contextlib.ExitStack() as stack:
            benches = self._benches_of(visit, stack)
            again = visit.repetitions.start > 0
            if again:
                self._search(visit, benches)
            for repetition in visit.repetitions:
                steps = self._rounds_of(key, "r_plus").next(visit.group.points)
                for turn in self._turns(steps, attrgetter("point.switch")):
                    self._measure(benches, saturating_trial(self.plan, turn.point, repetition))
                    self.pace.advance()
            if not again:
                self._search(visit, benches)
            if visit.group.first.echoes("latency"):
                stack.close()  # one topology is up at a time
                benches = self._benches_of(visit, stack, echo=True)
            self._measure_latencies(visit, benches)

    def _benches_of(self, visit: Visit, stack: contextlib.ExitStack, *, echo: bool = False) -> dict[str, Bench]:
        """Return the bench of each switch of a visit, which ``stack`` stops."""
        key, found = visit.group.first.topology, dict[str, Bench]()
        for label in visit.group.switches:
            bench = self._benches.setdefault((key, label, echo), Bench(self, label, self._groups[key], echo))
            if bench.deaths <= DEATHS_MAX and bench.failed_starts < FAILED_STARTS_MAX:
                bench.reason = ""  # of a start in an earlier visit: this one may succeed
            found[label] = bench
            stack.callback(bench.stop)
        return found

    def _rounds_of(self, key: TopologyKey, method: str) -> Rounds:
        return self._rounds.setdefault((key, method), Rounds(self._groups[key], self.plan.seed, (method,)))

    def _turns(self, steps: Sequence[T], switch_of: Callable[[T], str]) -> Sequence[T]:
        """Return the steps; where only one switch can be up, those of a switch together."""
        switches = list(dict.fromkeys(map(switch_of, steps)))
        return sorted(steps, key=lambda step: switches.index(switch_of(step))) if self._one_by_one else steps

    def _search(self, visit: Visit, benches: dict[str, Bench]) -> None:
        """Run each search of a visit, a trial of each point in turn, until all have ended.

        That is after the saturating trials that their loads rest on; repeated, before others overload the switch.
        """
        for method, points in searches_of(self.plan, visit).items():
            rounds = self._rounds_of(visit.group.first.topology, method)
            left = dict.fromkeys(points, expected_trials(self.plan, method))
            while left:
                for turn in self._turns(rounds.next(tuple(left)), attrgetter("point.switch")):
                    point = turn.point
                    ask, measured = self._next(method, point, visit.repetitions.start), False
                    if isinstance(ask, Ask):
                        most = saturating_trial(self.plan, point, ask.repetition)
                        load = most.load
                        if ask.load_pps is not None:
                            load = Load(rate_label(ask.load_pps), ask.load_pps / _senders(point))
                        request = dataclasses.replace(
                            most, role="search", load=load, duration_s=ask.duration_s, search=method
                        )
                        measured = self._measure(benches, request)
                        self.pace.advance(expected=left[point] > 0)
                        left[point] = max(left[point] - 1, 0)
                    if not measured:
                        self.pace.drop(left.pop(point))

    def _next(self, method: str, point: Point, repetition: int = 0) -> Ask | SearchResult:
        mine = [t for t in self._seen if t.point == point]
        return step(method, search_settings(self.plan, _senders(point)), point, mine, repetition)

    def _measure_latencies(self, visit: Visit, benches: dict[str, Bench]) -> None:
        """Take the latencies of a visit, after those that had no load before."""
        planned, waiting = latency_of(self.plan, visit), self._waiting.pop(visit.group.first.topology, [])
        for wanted in self._turns((*waiting, *planned), attrgetter("step.point.switch")):
            how, point = wanted.how, wanted.step.point
            again = visit.repetitions.stop < min(self.plan.throughput.repetitions, REPETITIONS_FLOOR)
            load = self._latency_load(wanted, again) if point.switch in benches else None
            if load is None:
                self._waiting[visit.group.first.topology].append(wanted)
                continue
            request = TrialRequest(
                point,
                "latency",
                load,
                how.duration_s,
                warmup_s=self.plan.throughput.warmup_s,
                probe_rate_pps=how.probe_rate_pps,
                repetition=wanted.step.repetition,
                profile=self.plan.profile(point.traffic),
                anatomy=how.anatomy,
                stamp_all=how.stamp == "all",
            )
            self._measure(benches, request)
            self.pace.advance()

    def _latency_load(self, wanted: LatencyStep, again: bool) -> Load | None:
        """Return the load of a latency step in pps; None where the load that it is a share of is not known.

        ``again``: the topology comes again, so that what is not known with the present distance of the cores can wait.
        """
        step, how, point = wanted.step, wanted.how, wanted.step.point
        size = self.plan.profile(point.traffic).mean_frame_bytes or point.frame_size_bytes
        vnfs, senders = point.chain_length if point.side_by_side else 1, _senders(point)
        echoed = point.echoes("latency")  # then one end sends
        fixed = () if echoed else fixed_loads(point.scenario, how)
        bit_rates = bit_loads(how.total_bps, how.per_vnf_bps, size, vnfs, 1 if echoed else senders)
        known = {load.label: load for load in (*fixed, *bit_rates)}
        if step.load in known:
            return known[step.load]
        whole_pps = None
        if echoed or how.of == R_PLUS:  # the throughput of the saturating trials so far that count
            trials = [t for t in self._seen if t.point == point and t.role == "r_plus"]
            counted = saturating(trials).trials or of_kinds(trials, (VerdictKind.FUNCTIONAL,)).trials
            # Of the core distance that the host has now, as far as is known: with far cores the half of R+ may be all.
            band = self._seen[-1].band if self._seen else None
            here = [t for t in counted if t.band == band]
            whole_pps = geometric_mean(throughput_blocks(here if again or (band and here) else counted))
        elif isinstance(found := self._next(how.of, point), SearchResult):
            whole_pps = found.lower_pps
        if whole_pps is None:
            return None
        # Of a backlog that goes out at the end of a trial more may come than a line carries; a load cannot.
        whole_pps = min(whole_pps, senders * (carried_pps(self.plan, point) or inf))
        loads = latency_loads(point.scenario, how, whole_pps, senders, load_name(how.of))
        return next(load for load in loads if load.label == step.load)

    def _measure(self, benches: dict[str, Bench], request: TrialRequest) -> bool:
        """Measure one planned trial, unless it is stored. Return False when no switch is left to measure."""
        bench = benches[request.point.switch]
        for _attempt in range(TRIES):
            trial = self._take(request)
            if trial is None:
                trial = self._live(benches, request)
                if bench.runner is None:
                    return request.role == "r_plus"
                if not bench.runner.alive():
                    reason = "; ".join(trial.verdict.texts)
                    self.listener.trouble(f"{bench.label}: {reason}")
                    bench.revive(reason)
                    return True
            if not trial.verdict.has(ReasonCode.NOTHING_SENT):
                return True
        return True

    def _take(self, request: TrialRequest) -> Trial | None:
        """Return the stored trial that answers a request, if there is one: the next one, or one out of order.

        An invalid latency trial is no measurement, for its switch may run again by now.
        """
        pps = None if request.load.label == SATURATING.label else request.load.pps_per_direction
        wanted = (request.point, request.role, request.search, request.repetition)
        for trial in tuple(self._stored):
            if (trial.point, trial.role, trial.search, trial.repetition) != wanted:
                continue
            if request.role == "search":
                offered_pps = None if pps is None else pps * len(trial.directions)
                if not fits(trial, offered_pps, request.duration_s):
                    continue
            elif trial.load.label != request.load.label:
                continue
            self._stored.remove(trial)
            self._seen.append(trial)
            if trial.verdict.kind is not VerdictKind.INVALID or request.role != "latency":
                return trial
        return None

    def _live(self, benches: dict[str, Bench], request: TrialRequest) -> Trial:
        """Measure a trial now. The switches of the visit are started if they are not up."""
        bench = benches[request.point.switch]
        if self._one_by_one:
            for other in benches.values():
                if other is not bench:
                    other.stop()
        together = (bench,) if self._one_by_one else benches.values()
        # Neither up, nor failed in this visit, nor given up. What one waits for, as DPDK's vhost that looks for new
        # sockets once a second, passes while others start.
        wanted = [it for it in together if it.runner is None and not it.reason]
        for each in wanted:
            self.listener.working_on(f"starting {each.label} for {each.group.points[0].scenario_label}")
            each.launch()
        for each in wanted:
            each.connect()
        start, index = max(bench.start_number, 0), len(self.trials)
        request = dataclasses.replace(request, start=start, index=index)
        request = on_the_line(self.plan, request)
        self.pace.trial_begins()
        self.listener.trial_begins(request)
        trial = failed_trial(request, bench.reason) if bench.runner is None else bench.runner.run(request)
        self.writer.append(trial)
        self.trials.append(trial)
        self._seen.append(trial)
        self.listener.trial_done(trial)
        return trial


def saturating_trial(plan: Plan, point: Point, repetition: int) -> TrialRequest:
    """Return a saturating trial of a point."""
    throughput, rate = plan.throughput, plan.throughput.max_rate_pps
    return TrialRequest(
        point,
        "r_plus",
        SATURATING if rate is None else Load(SATURATING.label, rate),
        throughput.duration_s,
        warmup_s=throughput.warmup_s,
        repetition=repetition,
        profile=plan.profile(point.traffic),
    )


def carried_pps(plan: Plan, point: Point) -> float | None:
    """Return what each direction of a path carries by the speed that the plan says; None where it says none for it."""
    line_bps, profile = plan.throughput.line_bps, plan.profile(point.traffic)
    if line_bps is None or not has_line(point.scenario, profile):
        return None
    return line_rate_pps(profile.mean_frame_bytes or point.frame_size_bytes, line_bps)


def on_the_line(plan: Plan, request: TrialRequest) -> TrialRequest:
    """Return a request on links of the speed that the plan says; as it is where it says none, or not for its path."""
    pps = carried_pps(plan, request.point)
    return request if pps is None else request.on_line(pps, open_loop=plan.throughput.open_loop is not False)


def spent_s(trials: Sequence[Trial], start_s: Callable[[Point], float] = lambda point: 0.0) -> float:
    """Return the seconds from the first trial to the last one, without the time between sessions of a run.

    ``start_s`` estimates what starts for a point take: with a billion routes more than ``PAUSE_MAX_S``.
    """
    begun = [seconds_since_epoch(trial.started_at) for trial in trials]
    most = [trial.intended_duration_ns / 1e9 + PAUSE_MAX_S for trial in trials]
    starts = [2 * start_s(trial.point) for trial in trials[1:]]
    pairs = zip(begun, begun[1:], most, starts, strict=False)
    return sum(min(max(b - a, 0.0), longest + starting_s) for a, b, longest, starting_s in pairs)


def _senders(point: Point) -> int:
    return len(flows_of(point.scenario, point.chain_length, point.direction))
