# SPDX-License-Identifier: BSD-3-Clause
"""One trial: the protocol of DESIGN section 6 on a live topology."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planebench.analysis.ledger import describe, ledger, policy_packets, policy_words, reason_of
from planebench.host.device_settings import count_difference
from planebench.host.energy import MeterReading
from planebench.host.evidence import HostSample, ThreadSampler
from planebench.measure.conditions import EnergyAccount, energy_account, held_clock
from planebench.measure.counts import TesterCounts, not_as_intended, tester_counts
from planebench.measure.latency import by_clock, charged
from planebench.measure.live import LiveTopology
from planebench.measure.updates import not_answered, not_applied
from planebench.measure.verdict import judge
from planebench.model.chain_name import vnf_names
from planebench.model.conditions import NOT_BASIC
from planebench.model.dimensions import RANDOM, mhz_of
from planebench.model.errors import PlanebenchError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import (
    CoreDistance,
    DirectionCounts,
    Evidence,
    Load,
    Point,
    Role,
    SwitchCycles,
    Trial,
    Verdict,
    VerdictKind,
)
from planebench.model.scenarios import Flow, build, flows
from planebench.model.text import utc_now
from planebench.model.time_had import stood_in
from planebench.model.traffic import PLAIN, TrafficProfile
from planebench.planed.client import Profile
from planebench.switches.adapter import counters_of
from planebench.testbed.rates import SATURATING
from planebench.testbed.vnfs import VNFS

DRAINED_SHARE = 0.001
"""Rings that give back more than this share of the frames after the sending are remarked."""
UNSTEADY_SHARE = 0.05
"""So much of the rate may change from the first half of a saturating trial to the second, beyond what the host took."""

Distance = Callable[[], CoreDistance | None]


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Request for a trial. The warm-up of ``warmup_s`` at the same load is not counted."""

    point: Point
    role: Role
    load: Load
    duration_s: float
    warmup_s: float = 0.0
    probe_rate_pps: int = 0
    repetition: int = 0
    echo: bool = False
    start: int = 0
    """How often the switch had been started again before."""
    search: str = ""
    """Which search asked for it."""
    profile: TrafficProfile = PLAIN
    anatomy: bool = False
    """Probes are stamped along their path, and the stamps read."""
    stamp_all: bool = False
    """Every frame has a time stamp: jitter by ic16's definition."""
    line_rate_pps: float | None = None
    """The rate per direction that fills the slowest link. None without a link speed, or if the user gave a rate."""

    @property
    def mean_frame_bytes(self) -> float:
        """Return the mean size of the frames."""
        return self.profile.mean_frame_bytes or self.point.frame_size_bytes

    def on_line(self, pps: float | None, *, open_loop: bool = True) -> TrialRequest:
        """Return the request on links that carry ``pps`` per direction: with ``open_loop`` a saturating trial sends at
        that rate. A request that has a line rate, the one of the plan, keeps it.
        """
        if self.line_rate_pps is not None:
            return self
        at_rate = pps is not None and open_loop and self.load == SATURATING
        load = Load(SATURATING.label, pps) if at_rate else self.load
        return dataclasses.replace(self, load=load, line_rate_pps=pps)

    def flows(self) -> tuple[Flow, ...]:
        """Return the directions that send."""
        if self.echo:
            return flows(build(self.point.scenario, self.point.chain_length, echo=True), "unidirectional")
        return flows(build(self.point.scenario, self.point.chain_length), self.point.direction)


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """Kernel statistics from just before or just after the sending; the harness must not run in between."""

    kernel: HostSample
    energy: MeterReading | None


def run_trial(live: LiveTopology, request: TrialRequest, distance: Distance, ceiling_pps: float | None = None) -> Trial:
    """Run one trial; the topology is paused before and after. Its index is 0: the campaign numbers trials.

    ``ceiling_pps`` is the maximum rate of the tester on this path, if known. A process that dies makes an invalid trial
    with the reason and its last log lines in the verdict.
    """
    started_at = utc_now()
    before = distance()
    try:
        frames = _frames(live, request)
        account = None if live.placement.elsewhere else energy_account()  # of the host of the switch
        with held_clock(mhz_of(live.cpu_clock), live.placement, live.planed) as clock:
            live.resume()
            trial = _measure(live, request, frames, started_at, account)
            live.pause()
        counters = {**trial.switch.counters, **clock}
        trial = dataclasses.replace(trial, switch=dataclasses.replace(trial.switch, counters=counters))
    except PlanebenchError as error:
        with contextlib.suppress(PlanebenchError):  # who is alive, and only refused a call, must not run on
            live.pause()
        return unmeasured(request, Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, str(error)),)), started_at)
    evidence = dataclasses.replace(
        trial.evidence, distance_before=before, distance_after=distance(), memory=live.memory
    )
    trial = dataclasses.replace(trial, evidence=evidence)
    return with_verdict(trial, ceiling_pps, request.profile, live.functional)


def _frames(live: LiveTopology, request: TrialRequest) -> Profile | None:
    """Return the traffic profile as planed takes it; None for plain frames between two ports. May write files."""
    if request.profile.plain and not request.point.side_by_side:
        return None
    return live.profile(request.profile, request.point.chain, flat_out=request.load.pps_per_direction is None)


def _measure(
    live: LiveTopology, request: TrialRequest, frames: Profile | None, started_at: str, account: EnergyAccount | None
) -> Trial:
    wanted, size = request.flows(), request.point.frame_size_bytes
    live.set_echo(request.echo)
    pps = request.load.pps_per_direction
    if request.warmup_s > 0:
        live.send(wanted, size, request.warmup_s, pps, profile=frames, traffic=request.profile)
    threads = live.threads()
    sampler = ThreadSampler(threads)
    cpus = {*live.placement.switch_cpus_here, *live.placement.tester_cpus}
    if live.placement.hosted:
        cpus.update(live.placement.all_vnf_cpus, live.placement.roaming)
    scheduler: list[_Scheduler] = []
    # A sending with stamps clears the counters of VNFs in processes of their own: it begins them, too.
    dropped = Counter[str]() if request.anatomy else live.vnf_drops()
    kernel, nics, before = live.wire_drops(), live.nic_counters(), counters_of(live.switch)
    clocked = request.probe_rate_pps > 0 and live.clock != "software"
    readings = [live.clock_readings()] if clocked else []
    stats = live.send(
        wanted,
        size,
        request.duration_s,
        pps,
        request.probe_rate_pps,
        watch=lambda: scheduler.append(_look_at_scheduler(live, sampler, cpus, account)),
        profile=frames,
        stamps=request.anatomy,
        clocks=clocked,
        stamp_all=request.stamp_all,
        traffic=request.profile,
    )
    after = counters_of(live.switch)
    live.check()
    counts = tester_counts(stats, wanted, live.control_traffic(request.profile))
    others = (live.vnf_drops() - dropped) + _not_told_twice(live.wire_drops() - kernel, after)
    grown = live.nic_counters() - nics
    others += Counter({key: count for key, count in grown.items() if reason_of(key) in NOT_BASIC})
    counts = dataclasses.replace(
        counts,
        tester_drops=counts.tester_drops | dict(others),
        updates=counts.updates or live.table_updates,
    )
    if clocked and counts.latency is not None:
        readings.append(live.clock_readings())
        latency = by_clock(counts.latency, live.clock, live.traffic, wanted, stats, readings)
        counts = dataclasses.replace(counts, latency=latency)
    anatomy = live.anatomy(wanted, stats) if request.anatomy else ()
    evidence = _evidence(counts, scheduler[0].kernel, scheduler[1].kernel, live.placement.shared)
    evidence = dataclasses.replace(evidence, nic_counters=dict(grown))
    if counts.latency is not None:
        roaming = request.point.placement == RANDOM
        latency = charged(counts.latency, evidence, counts.duration_ns, roaming=roaming)
        counts = dataclasses.replace(counts, latency=latency)
    cycles = cycles_of_trial(before, after, _switch_cpus(evidence) * _cycles(counts))
    if account is not None:
        delivered = sum(direction.forwarded_packets for direction in counts.directions)
        energy = account.counters(scheduler[0].energy, scheduler[1].energy, delivered)
        cycles = dataclasses.replace(cycles, counters={**cycles.counters, **energy})
    return dataclasses.replace(_trial(request, started_at, counts, evidence, cycles), anatomy=anatomy)


def _look_at_scheduler(
    live: LiveTopology, sampler: ThreadSampler, cpus: set[int], account: EnergyAccount | None
) -> _Scheduler:
    """Return what the kernel counts of the threads and their CPUs now."""
    energy = None if account is None else account.meter.read()
    return _Scheduler(live.sample(sampler, cpus), energy)


def _not_told_twice(kernel: Counter[str], switch: SwitchCycles) -> Counter[str]:
    """Return the drops of the kernel's interfaces without those that the switch reports of its own interfaces."""
    told = {key.replace(":tx_dropped", ":rx_dropped") for key in switch.drops if key.endswith(":tx_dropped")}
    return Counter({key: count for key, count in kernel.items() if key not in told})


def _switch_cpus(evidence: Evidence) -> int:
    """Return the number of cores that the threads of the switch forward on: kernel switches share one."""
    return max(len({thread.cpu for thread in evidence.threads if thread.owner == "switch"}), 1)


def _cycles(counts: TesterCounts) -> int:
    """Return the TSC cycles of the sending time."""
    return counts.duration_ns * counts.tsc_hz // 1_000_000_000


def host_evidence(before: HostSample, after: HostSample) -> Evidence:
    """Return what the host tells of a trial between two samples; of the tester it knows nothing."""
    return Evidence(
        threads=ThreadSampler.difference(dict(before.threads), dict(after.threads)),
        steal_ns=after.steal_ns - before.steal_ns,
        interrupts=count_difference(before.interrupts, after.interrupts),
        smis=_difference(before.smis, after.smis),
    )


def _evidence(counts: TesterCounts, before: HostSample, after: HostSample, shared: bool) -> Evidence:
    return dataclasses.replace(
        host_evidence(before, after),
        poll_gaps=counts.poll_gaps,
        poll_gap_sum_ns=counts.poll_gap_sum_ns,
        poll_gap_max_ns=counts.poll_gap_max_ns,
        poll_gap_threshold_ns=counts.poll_gap_threshold_ns,
        stall_ns=counts.stall_ns,
        tester_busy_share=min(counts.busy_cycles / _cycles(counts), 1.0) if counts.duration_ns else None,
        foreign_packets=counts.foreign_packets,
        stale_packets=counts.stale_packets,
        shared_cpu=shared,
    )


def _trial(
    request: TrialRequest, started_at: str, counts: TesterCounts, evidence: Evidence, switch: SwitchCycles
) -> Trial:
    return dataclasses.replace(
        unmeasured(request, _misdirection(counts, request.point.chain), started_at),
        offered_duration_ns=counts.duration_ns,
        directions=counts.directions,
        evidence=evidence,
        switch=switch,
        latency=counts.latency,
        tester_drops=counts.tester_drops,
        sent=counts.sent,
        updates=counts.updates,
        control=counts.control,
    )


def cycles_of_trial(before: SwitchCycles, after: SwitchCycles, trial_cycles: int) -> SwitchCycles:
    """Return the counters of the switch for the trial alone; idle cycles are ``trial_cycles`` less the busy ones.

    The readings enclose more than the trial, and a polling switch is idle in the rest.
    """
    busy = _difference(before.busy_cycles, after.busy_cycles)
    drops = {reason: count - before.drops.get(reason, 0) for reason, count in after.drops.items()}
    return SwitchCycles(
        busy_cycles=busy,
        idle_cycles=None if busy is None else max(trial_cycles - busy, 0),
        packets=_difference(before.packets, after.packets),
        drops=drops,
        forwarded_packets=_difference(before.forwarded_packets, after.forwarded_packets),
        bursts=_difference(before.bursts, after.bursts),
        counters={name: count - before.counters.get(name, 0) for name, count in after.counters.items()},
    )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _misdirection(counts: TesterCounts, chain: str) -> Verdict:
    """Return a first verdict; the trial is judged again when the core-to-core latency is known."""
    if counts.misdirected_packets:
        reason = f"{counts.misdirected_packets} frames arrived at a wrong port"
        hints = [VNFS[name].misdirection_hint for name in vnf_names(chain) if name in VNFS]
        reason += "".join(f" ({hint})" for hint in dict.fromkeys(filter(None, hints)))
        values = {"packets": counts.misdirected_packets}
        return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.MISDIRECTED, reason, values),))
    return Verdict(VerdictKind.VALID)


def with_verdict(
    trial: Trial,
    ceiling_pps: float | None = None,
    profile: TrafficProfile = PLAIN,
    functional: Sequence[Reason] = (),
) -> Trial:
    """Return the trial with its verdict; an invalid trial stays invalid. ``functional`` is as in :func:`judge`.

    Remarks name losses without a known cause, and traffic that was not sent as its profile says.
    """
    if trial.verdict.kind is not VerdictKind.VALID:
        return trial
    verdict = judge(
        trial.role,
        trial.load.pps_per_direction is None,
        trial.offered_duration_ns,
        trial.directions,
        trial.evidence,
        trial.switch,
        intended_duration_ns=trial.intended_duration_ns,
        ceiling_pps=ceiling_pps,
        policy_packets=policy_packets(trial),
        tester_drops=trial.tester_drops,
        functional=functional,
        side_by_side=trial.point.side_by_side,
        roaming=trial.point.placement == RANDOM,
        line_rate_pps=trial.line_rate_pps,
    )
    remarks: list[Reason] = []
    if dropped := policy_words(trial):
        text = f"dropped by network functions, not by the switch: {dropped}"
        remarks.append(Reason(ReasonCode.DROPPED_BY_FUNCTIONS, text))
    remarks += _course(trial)
    account = ledger(trial)
    if account.unexplained_packets and account.counted:
        values = {"packets": account.unexplained_packets}
        remarks.append(Reason(ReasonCode.UNEXPLAINED_LOSS, describe(account) + _grown_words(trial), values))
    remarks += [reason for sent in trial.sent for reason in not_as_intended(profile, sent)]
    remarks += not_applied(trial.updates)
    remarks += not_answered(trial.control)
    return dataclasses.replace(trial, verdict=Verdict(verdict.kind, (*verdict.reasons, *remarks)))


def _grown_words(trial: Trial) -> str:
    """Return the counters of NICs that grew, which may be what the ledger leaves open; empty without any."""
    of_switch = {f"{key} (switch)": count for key, count in trial.switch.counters.items() if ":" in key and count}
    grown = {**of_switch, **trial.evidence.nic_counters}
    return f"; counters of NICs: {', '.join(f'{key} {count}' for key, count in grown.items())}" if grown else ""


def _course(trial: Trial) -> Iterator[Reason]:
    """Yield remarks on the course of a saturating trial: rings that were drained after it, and a rate that changed."""
    tenths = trial.by_tenth
    if trial.role != "r_plus" or not sum(tenths):
        return
    share = trial.drained_packets / trial.forwarded_packets
    if share > DRAINED_SHARE:
        text = f"{share:.1%} of the forwarded frames came out of rings after the sending: not in the rate"
        yield Reason(ReasonCode.DRAINED, text, {"share": share})
    first, second = sum(tenths[2:6]), sum(tenths[6:])
    by_host = 1 - stood_in(trial).had
    if abs(second - first) > (UNSTEADY_SHARE + by_host) * max(first, second):
        text = f"the rate changed within the trial: {first} frames in one half, {second} in the next"
        yield Reason(ReasonCode.UNSTEADY, text, {"first": first, "second": second})


def unmeasured(request: TrialRequest, verdict: Verdict, started_at: str = "") -> Trial:
    """Return a trial without counts for a request during which tester or switch died."""
    directions: Sequence[DirectionCounts] = [DirectionCounts(flow.name, 0, 0, 0) for flow in request.flows()]
    return Trial(
        index=0,
        point=request.point,
        role=request.role,
        load=request.load,
        intended_duration_ns=int(request.duration_s * 1e9),
        offered_duration_ns=0,
        started_at=started_at or utc_now(),
        directions=tuple(directions),
        verdict=verdict,
        repetition=request.repetition,
        start=request.start,
        search=request.search,
        line_rate_pps=request.line_rate_pps,
    )
