# SPDX-License-Identifier: BSD-3-Clause
"""One trial on a live topology: docs/design/trials.md is the protocol."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from planebench.analysis.capacity import latency_floor, least_ns, tester_ceiling_pps
from planebench.host.evidence import HostSample, ThreadSampler, count_difference
from planebench.measure.conditions import held_clock
from planebench.measure.counts import Sending, tester_counts
from planebench.measure.latency import by_clock, charged, clock_readings
from planebench.measure.live import LiveTopology
from planebench.measure.updates import control_packets
from planebench.measure.verdict import judge, remarks
from planebench.model.errors import PlanebenchError
from planebench.model.header import Calibration
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
from planebench.model.scenarios import Flow, flows_of
from planebench.model.server import RANDOM
from planebench.model.text import utc_now
from planebench.model.traffic import PLAIN, TrafficProfile
from planebench.planed.client import Profile, get_ports
from planebench.switches.common import nic_drops
from planebench.testbed.rates import SATURATING

VALID = Verdict(VerdictKind.VALID)
NO_EVIDENCE = Evidence()
NOTHING: Mapping[str, int] = MappingProxyType({})


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
    start: int = 0
    """How often the switch had been started again before."""
    index: int = 0
    """The number of the trial in its run."""
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

    def on_line(self, pps: float, *, open_loop: bool = True) -> TrialRequest:
        """Return the request on links that carry ``pps`` per direction: with ``open_loop`` a saturating trial sends at
        that rate. A request that has a line rate, the one of the plan, keeps it.
        """
        if self.line_rate_pps is not None:
            return self
        at_rate = open_loop and self.load == SATURATING and not self.profile.closed_loop
        load = Load(SATURATING.label, pps) if at_rate else self.load
        return dataclasses.replace(self, load=load, line_rate_pps=pps)

    def flows(self) -> tuple[Flow, ...]:
        """Return the directions that send."""
        echo = self.point.echoes(self.role)
        direction = "unidirectional" if echo else self.point.direction
        return flows_of(self.point.scenario, self.point.chain_length, direction, echo)


def run_trial(
    live: LiveTopology,
    request: TrialRequest,
    distance: Callable[[], CoreDistance | None],
    calibration: Calibration | None = None,
    before: CoreDistance | None = None,
) -> Trial:
    """Run one trial; the topology is paused before and after.

    ``calibration``: what the tester can do without a switch, if that was measured. ``before``: the distance between the
    CPUs, if it was measured just now. A process that dies makes an invalid trial with the reason and its last log lines
    in the verdict.
    """
    started_at, point, profile = utc_now(), request.point, request.profile
    wanted, size, pps = request.flows(), point.frame_size_bytes, request.load.pps_per_direction
    before = before or distance()
    try:
        frames: Profile | None = None  # plain ones between two ports
        if not profile.plain or point.side_by_side:
            frames = live.profile(profile, point.chain, flat_out=pps is None)
        as_it_is = contextlib.nullcontext(dict[str, int]())
        with as_it_is if live.mhz is None else held_clock(live.mhz, live.placement, live.planed) as clock:
            live.resume()
            if request.warmup_s > 0:
                live.send(Sending(wanted, size, request.warmup_s, pps, profile=frames), profile, counted=False)
            sampler = ThreadSampler(live.threads())
            looks: list[HostSample] = []  # just before and after the sending: the harness must not run in between
            # A sending with stamps clears the counters of VNFs in processes of their own: it begins them, too.
            dropped = Counter[str]() if request.anatomy else live.vnf_drops()
            kernel, nics, switch = live.wire_drops(), live.nic_counters(), live.switch.counters()
            clocked = request.probe_rate_pps > 0 and live.clock != "software"
            readings = [clock_readings(get_ports(live.call))] if clocked else []
            sending = Sending(
                wanted,
                size,
                request.duration_s,
                pps,
                request.probe_rate_pps,
                frames,
                stamps=request.anatomy,
                clocks=clocked,
                stamp_all=request.stamp_all,
            )
            stats = live.send(sending, profile, lambda: looks.append(live.sample(sampler)))
            switch_after = live.switch.counters()
            live.check()
            drops = (live.vnf_drops() - dropped) + (live.wire_drops() - kernel)
            grown = live.nic_counters() - nics
            counts = tester_counts(stats, wanted, () if live.control is None else (live.control.flow,))
            latency = counts.latency
            if clocked and latency is not None:
                readings.append(clock_readings(get_ports(live.call)))
                latency = by_clock(latency, live.clock, live.traffic, wanted, stats, readings)
            anatomy = live.anatomy(wanted, stats) if request.anatomy else ()
            live.pause()
    except PlanebenchError as error:
        with contextlib.suppress(PlanebenchError):  # who is alive, and only refused a call, must not run on
            live.pause()
        return failed_trial(request, str(error), started_at)
    evidence = host_evidence(
        looks[0],
        looks[-1],
        counts.evidence,
        shared_cpu=live.placement.shared,
        nic_counters=dict(grown),
        distance_before=before,
        distance_after=distance(),
        memory=live.memory,
    )
    if latency is not None:
        floor_ns = least_ns(latency_floor(calibration, point, latency.clock))
        roaming = point.placement == RANDOM
        latency = charged(latency, evidence, counts.duration_ns, roaming=roaming, floor_ns=floor_ns)
    # Of the cores that the threads of the switch forward on: kernel switches share one.
    cores = max(len({thread.cpu for thread in evidence.threads if thread.owner == "switch"}), 1)
    # What the kernel dropped, without what the switch reports of its own interfaces.
    told = {key.replace(":tx_dropped", ":rx_dropped") for key in switch_after.drops if key.endswith(":tx_dropped")}
    others = {key: count for key, count in drops.items() if key not in told}
    others |= nic_drops(grown)
    trial = trial_of(
        request,
        started_at,
        offered_duration_ns=counts.duration_ns,
        directions=counts.directions,
        evidence=evidence,
        switch=cycles_of_trial(switch, switch_after, cores * counts.cycles, clock),
        latency=latency,
        tester_drops=counts.tester_drops | others,
        sent=counts.sent,
        updates=live.table_updates,
        control=None if live.control is None else control_packets(stats, live.control, live.control_received),
        anatomy=anatomy,
    )
    return judged(
        trial,
        profile,
        ceiling_pps=tester_ceiling_pps(calibration, point),
        functional=live.functional,
        misdirected_packets=counts.misdirected_packets,
        elsewhere_packets=counts.elsewhere_packets,
    )


def host_evidence(before: HostSample, after: HostSample, tester: Evidence = NO_EVIDENCE, **known: Any) -> Evidence:
    """Return what the tester tells of a trial, with what the host does between two samples, and what else is known."""
    return dataclasses.replace(
        tester,
        threads=ThreadSampler.difference(dict(before.threads), dict(after.threads)),
        steal_ns=after.steal_ns - before.steal_ns,
        interrupts=count_difference(before.interrupts, after.interrupts),
        **known,
    )


def cycles_of_trial(
    before: SwitchCycles, after: SwitchCycles, trial_cycles: int | None = None, further: Mapping[str, int] = NOTHING
) -> SwitchCycles:
    """Return the counters of the switch for the trial alone, and ``further`` ones of it; idle cycles are
    ``trial_cycles`` less the busy ones, unknown without them.

    The readings enclose more than the trial, and a polling switch is idle in the rest.
    """
    grown: dict[str, int | None] = {}
    for name in ("busy_cycles", "packets", "forwarded_packets", "bursts"):
        first, last = getattr(before, name), getattr(after, name)
        grown[name] = None if first is None or last is None else last - first
    busy = grown["busy_cycles"]
    counters = {name: count - before.counters.get(name, 0) for name, count in after.counters.items()}
    return SwitchCycles(
        **grown,
        idle_cycles=None if busy is None or trial_cycles is None else max(trial_cycles - busy, 0),
        drops={reason: count - before.drops.get(reason, 0) for reason, count in after.drops.items()},
        counters={**counters, **further},
    )


def judged(trial: Trial, profile: TrafficProfile, **known: Any) -> Trial:
    """Return the trial with its verdict. ``known``: as :func:`judge`."""
    verdict = judge(trial, **known)
    if not verdict.has(ReasonCode.MISDIRECTED):
        verdict = Verdict(verdict.kind, (*verdict.reasons, *remarks(trial, profile)))
    return dataclasses.replace(trial, verdict=verdict)


def trial_of(request: TrialRequest, started_at: str | None = None, **measured: Any) -> Trial:
    """Return the trial of a request with what was measured (fields of Trial), valid until it is judged.

    Without ``directions`` nothing was counted; without ``started_at`` it starts now.
    """
    nothing = {"offered_duration_ns": 0, "verdict": VALID}
    return Trial(
        index=request.index,
        point=request.point,
        role=request.role,
        load=request.load,
        intended_duration_ns=int(request.duration_s * 1e9),
        started_at=utc_now() if started_at is None else started_at,
        repetition=request.repetition,
        start=request.start,
        search=request.search,
        line_rate_pps=request.line_rate_pps,
        directions=measured.pop("directions", None)
        or tuple(DirectionCounts(flow.name, 0, 0, 0) for flow in request.flows()),
        **{**nothing, **measured},
    )


def failed_trial(request: TrialRequest, why: str, started_at: str | None = None) -> Trial:
    """Return the trial of a request during which tester or switch failed."""
    verdict = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, why),))
    return trial_of(request, started_at, verdict=verdict)
