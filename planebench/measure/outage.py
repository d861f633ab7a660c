# SPDX-License-Identifier: BSD-3-Clause
"""The restart of a VNF or of the switch under traffic: the time without frames, and the frames lost.

Frames are sent at a constant rate in one direction. The same traffic is sent before without a restart, so that silences
of the machine are not taken for an outage (docs/hosting.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planebench.host.process import Supervisor, stretched
from planebench.measure.counts import Sending, received_total, tester_counts, untried, way_of
from planebench.measure.live import LiveTopology
from planebench.measure.runner import SelfMeasured
from planebench.measure.session import Session, open_session
from planebench.measure.survey import survey
from planebench.model.errors import StartError, UsageError
from planebench.model.header import RunStatus
from planebench.model.outage import Outage, Restart, Silence
from planebench.model.plan import LatencyPlan, Plan, ThroughputPlan
from planebench.model.reasons import Reason
from planebench.model.records import DirectionCounts, Load, Point, Trial, Verdict, VerdictKind
from planebench.model.scenarios import Flow, flows, flows_of
from planebench.model.text import utc_now
from planebench.model.topology import Topology
from planebench.model.wire import wire_arguments, wire_name
from planebench.plan.schema import validated, with_chains
from planebench.planed.client import get_statistics
from planebench.planed.statistics import Statistics
from planebench.switches.adapter import Adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place_vnfs
from planebench.testbed.rates import rate_label

SWITCH = "switch"
CALM_S = 0.5
BEFORE_S = 0.3
AFTER_S = 0.3
LONGEST_S = 600.0
"""Frames are sent until they come through again, at most so long."""
BACK_WITHIN_S = 120.0
"""A VM boots under emulation on a busy machine."""
LOOK_S = 0.1
LOOKS = 3
"""Number of successive checks that must find frames: those left in rings arrive in the first."""

Drops = Counter[str]


@dataclass(frozen=True, slots=True)
class OutageRequest:
    """The process to restart, and the traffic meanwhile."""

    victim: str
    """``switch``, or the name of a hosted VNF."""
    rate_pps: float
    frame_size_bytes: int = 64
    kill: bool = False


def check_victim(victim: str, names: Iterable[str], hosted: Iterable[str]) -> None:
    """Raise UsageError for an unknown victim, or a task of the tester, which cannot be restarted alone."""
    valid = (SWITCH, *hosted)
    if victim in valid:
        return
    if victim in names:
        raise UsageError(f"{victim} is a task of the tester, and cannot be restarted alone; give --hosting separate")
    raise UsageError(f'there is no "{victim}" to restart. Valid: {", ".join(valid)}')


def measure_outage(live: LiveTopology, adapter: Adapter, supervisor: Supervisor, request: OutageRequest) -> Outage:
    """Restart the victim once under traffic. The topology is not paused before and after.

    Raises StartError if the victim does not start or no frame arrives again; DiedError if another process died.
    """
    way = flows(live.topology, "unidirectional")[0]
    rate, size = request.rate_pps, request.frame_size_bytes
    calm = live.send(Sending((way,), size, CALM_S, rate))
    account = OutageDrops(live, request.victim)

    live.sender.start(Sending((way,), size, LONGEST_S, rate))
    try:
        time.sleep(BEFORE_S)
        account.before_the_end()
        begun = time.monotonic_ns()
        if request.victim != SWITCH:
            assert live.hosted is not None
            live.hosted.restart(request.victim, kill=request.kill)
        else:
            for pid in live.switch.pids() if request.kill else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            live.switch.stop()
            for port in live.request.ports if request.kill else ():
                if port.kind == "vhost-user":
                    port.path.unlink(missing_ok=True)  # of the dead
            live.start_switch(adapter, supervisor)
        took_ns = time.monotonic_ns() - begun
        within_s = stretched(BACK_WITHIN_S)
        deadline, grew = time.monotonic() + within_s, 0
        seen = received_total(get_statistics(live.call))
        while grew < LOOKS:  # until frames arrive and keep arriving
            if time.monotonic() > deadline:
                raise StartError(f"no frame came through within {within_s:g} s after the restart")
            time.sleep(LOOK_S)
            live.check()
            now = received_total(get_statistics(live.call))
            grew = grew + 1 if now > seen else 0
            seen = now
        time.sleep(AFTER_S)
    finally:
        live.call("traffic.stop")
    stats = live.sender.end(live.pollers_on_core)
    return outage_of(way, calm, stats, took_ns, account.drops())


class OutageDrops:
    """Drops of switch and hosted VNFs during a sending in which the counters of one of them start again from 0."""

    def __init__(self, live: LiveTopology, victim: str) -> None:
        self._live = live
        vnfs = [vnf for vnf in live.topology.vnfs if vnf.name == victim]
        self._own = {name for vnf in vnfs for name in (vnf.name, *vnf.ports)} or {SWITCH}
        """What is in front of the victim's drops, such as ``vnf0:runt``, ``v1:tx_full`` or ``switch v0:tx_full``."""
        self._first = self._read()
        self._last_of_old: Drops = Counter()

    def before_the_end(self) -> None:
        """Keep the counters of the victim, which is about to end."""
        for key, count in self._read().items():
            if re.split("[: ]", key, maxsplit=1)[0] in self._own:
                self._last_of_old[key] = count - self._first.pop(key, 0)

    def drops(self) -> dict[str, int]:
        """Return the drops of the whole sending."""
        now = self._read()
        total = Counter({k: n - self._first[k] for k, n in now.items()})
        total.update(self._last_of_old)
        return {key: count for key, count in sorted(total.items()) if count}

    def _read(self) -> Drops:
        switch = {f"{SWITCH} {key}": count for key, count in self._live.switch.counters().drops.items()}
        return Counter(switch) + self._live.vnf_drops()


def outage_of(way: Flow, calm: Statistics, stats: Statistics, restart_ns: int, drops: Mapping[str, int]) -> Outage:
    """Return the record of a restart. ``calm`` is counted before the restart, ``stats`` around it. Pure.

    Raises StartError if no frame arrived, or none was sent.
    """
    if untried(calm, (way,)) or untried(stats, (way,)):
        raise StartError(f"the tester sent no frame in {way.name}: its workers had no CPU time")
    quiet, counts = tester_counts(calm, (way,)).directions[0], tester_counts(stats, (way,))
    sent = counts.directions[0]
    return Outage(
        silence=longest_silence(stats, way),
        calm=longest_silence(calm, way),
        calm_lost_packets=quiet.offered_packets - quiet.forwarded_packets,
        restart_ns=restart_ns,
        intended_packets=sent.intended_packets,
        unsent_late_packets=sent.unsent_late_packets,
        unsent_ring_full_packets=sent.unsent_ring_full_packets,
        forwarded_packets=sent.forwarded_packets,
        corrupt_packets=sent.corrupt_packets,
        duplicate_packets=sent.duplicate_packets,
        reordered_packets=sent.reordered_packets,
        drops=dict(drops) | {f"tester {key}": count for key, count in counts.tester_drops.items()},
    )


def longest_silence(stats: Statistics, way: Flow) -> Silence:
    """Return the longest silence of the streams of a flow. Raises StartError if no frame arrived."""
    found = []
    for stream in way_of(stats, way).came:
        begin_ns, end_ns = stream.longest_silence_begin_ns, stream.longest_silence_end_ns
        if begin_ns is not None and end_ns is not None:
            found.append(Silence(stream.longest_silence_ns, begin_ns, end_ns))
    if not found:
        raise StartError(f"no frame came through {way.name}")
    return max(found, key=lambda silence: silence.duration_ns)


def outage_trial(
    point: Point, request: OutageRequest, outage: Outage, number: int, functional: Sequence[Reason], *, index: int = 0
) -> Trial:
    """Return the stored trial of a restart; ``number`` counts the restarts of this switch from 0, ``index`` all.

    ``functional``: why its times are not representative; empty if they are.
    """
    duration_ns = round(outage.intended_packets / request.rate_pps * 1e9)
    way = DirectionCounts(
        name=flows_of(point.scenario, point.chain_length, point.direction)[0].name,
        intended_packets=outage.intended_packets,
        offered_packets=outage.intended_packets - outage.unsent_late_packets - outage.unsent_ring_full_packets,
        forwarded_packets=outage.forwarded_packets,
        duplicate_packets=outage.duplicate_packets,
        reordered_packets=outage.reordered_packets,
        corrupt_packets=outage.corrupt_packets,
        unsent_late_packets=outage.unsent_late_packets,
        unsent_ring_full_packets=outage.unsent_ring_full_packets,
    )
    kind = VerdictKind.FUNCTIONAL if functional else VerdictKind.VALID
    return Trial(
        index=index,
        point=point,
        role="outage",
        load=Load(rate_label(request.rate_pps), request.rate_pps),
        intended_duration_ns=duration_ns,
        offered_duration_ns=duration_ns,
        started_at=utc_now(),
        directions=(way,),
        verdict=Verdict(kind, tuple(functional)),
        repetition=number,
        start=number,
        restart=Restart(request.victim, request.kill, outage),
    )


# Restarts under traffic as a run: a header, a trial for each restart, stored as soon as it is measured.

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class OutageSettings:
    """Which switches on which chain, and how often each is restarted under which traffic."""

    request: OutageRequest
    switches: tuple[str, ...]
    chain: str = "l2fwd"
    hosting: str = "separate"
    wire: str = "virtio"
    ring_size: int = 256
    repetitions: int = 5
    name: str = "outage"

    def plan(self) -> Plan:
        """Return the plan that says what is built: its points are the topologies. Raises UsageError."""
        plan = validated(
            {
                "name": self.name,
                "description": f"{self.request.victim} restarted under traffic",
                "switches": self.switches,
                "scenarios": ("loopback",),
                "directions": ("unidirectional",),
                "frame_sizes_bytes": (self.request.frame_size_bytes,),
                "chain_lengths": (),
                "chains": (self.chain,),
                "throughput": ThroughputPlan(duration_s=1.0, repetitions=self.repetitions),
                "latency": LatencyPlan(loads=(), duration_s=1.0),
                "hosting": (self.hosting,),
                "wire": self.wire,
                "ring_size": self.ring_size,
            }
        )
        return with_chains(plan, Path.cwd())


def open_outages(settings: OutageSettings, *, runs_dir: Path | None = None, hugepages: bool | None = None) -> Session:
    """Open the run folder of outages; nothing is started. Raises UsageError for what a switch cannot do."""
    held = survey(settings.plan(), hugepages=hugepages)
    if wire_arguments(settings.wire) and len(held.adapters) > 1:
        raise UsageError(f"--wire {wire_name(settings.wire)}: only one switch can be up at a time; give one --switch")
    for point, why in held.absent.items():
        raise UsageError(f"--switch {point.switch}: {why}")
    for label, adapter in held.adapters.items():
        if isinstance(adapter, SelfMeasured):
            raise UsageError(
                f"--switch {label}: it forwards no packets, so nothing can be restarted; give another switch"
            )
    topology = _topology(held.points[0])
    hosted = [vnf.name for vnf in topology.hosted_vnfs]
    check_victim(settings.request.victim, [vnf.name for vnf in topology.vnfs], hosted)
    return open_session(held, runs_dir=runs_dir, calibrated=False)


def measure_outages(
    session: Session, settings: OutageSettings, tell: Tell, done: Callable[[str, Outage], None]
) -> RunStatus:
    """Restart every switch, or its VNF, as often as wanted, one switch after the other in turn; store each restart.

    All switches are up at once, and paused but for the one in turn: what drifts on the machine affects all alike.
    ``tell`` is given a line before something that takes seconds, ``done`` each outage when it is stored.
    """
    writer, request = session.writer, settings.request

    def restarts(supervisor: Supervisor) -> None:
        with contextlib.ExitStack() as undo:
            up = {point: _started(session, point, supervisor, undo, tell) for point in session.survey.measured}
            for number in range(settings.repetitions):
                for point, live in up.items():
                    tell(f"{point.switch}: restart {number + 1} of {request.victim}")
                    live.resume()
                    adapter = session.survey.adapters[point.switch].at_clock(point.cpu_clock)
                    outage = measure_outage(live, adapter, supervisor, request)
                    live.pause()
                    index = len(session.trials)
                    trial = outage_trial(point, request, outage, number, live.functional, index=index)
                    writer.append(trial)
                    session.trials.append(trial)
                    done(point.switch, outage)

    return session.record(restarts)


def _started(
    session: Session, point: Point, supervisor: Supervisor, undo: contextlib.ExitStack, tell: Tell
) -> LiveTopology:
    """Bring a switch up, and store under which conditions it came up."""
    topology, label = _topology(point), point.switch
    placement = place_vnfs(session.machine.cpus, topology.cores_of_vnfs, hosted=topology.hosted_numbers)
    tell(f"starting {label}")
    live = LiveTopology.start(
        label,
        session.survey.adapters[label].at_clock(point.cpu_clock),
        topology,
        placement,
        session.settings,
        supervisor,
        ("unidirectional",),
        cpu_clock=point.cpu_clock,
    )
    undo.callback(live.stop)
    if live.conditions is not None:
        session.writer.observe(replace(live.conditions, switch=label, start=0))
    return live


def _topology(point: Point) -> Topology:
    return build_chain(point.scenario, point.chain_length, chain=point.chain, hosting=point.hosting)
