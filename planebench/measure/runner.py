# SPDX-License-Identifier: BSD-3-Clause
"""Whatever the campaign runs trials on: a live topology, the simulator, or a tester that is no part of planebench."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from planebench.analysis.histogram import encode
from planebench.host.evidence import HostSample, ThreadSampler, sample_host
from planebench.host.process import Supervisor, on_failure, stretched
from planebench.measure.conditions import read_conditions
from planebench.measure.distance import REUSE_S, measure_distance, near_limit_ns
from planebench.measure.live import LiveSettings, LiveTopology, link_settings
from planebench.measure.trial import (
    TrialRequest,
    cycles_of_trial,
    failed_trial,
    host_evidence,
    judged,
    run_trial,
    trial_of,
)
from planebench.model.conditions import Conditions
from planebench.model.dimensions import port_name
from planebench.model.errors import ExternalTesterError, PlanebenchError, StartError
from planebench.model.plan import has_line
from planebench.model.records import CoreDistance, DirectionCounts, LatencyRecord, Trial
from planebench.model.scenarios import Flow, all_flows
from planebench.model.text import utc_now
from planebench.model.topology import Topology
from planebench.switches.adapter import Adapter, RunningSwitch
from planebench.switches.linked import requests_of, start_switches
from planebench.switches.remote import RemoteSwitch
from planebench.testbed.placement import Placement
from planebench.testbed.rates import SATURATING, line_rate_pps
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import switch_request
from planebench.testbed.testers import ExternalTester, StreamCounts, TesterStream


class Runner(Protocol):
    """A switch under test, up and ready. Not thread-safe."""

    @property
    def conditions(self) -> Conditions | None:
        """Return the conditions as read when the switch came up; None if they were not read."""

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial. Never raises for a failure of the switch: a process that died makes the trial invalid."""

    def alive(self) -> bool:
        """Return whether the runner can run another trial: False once one of its processes has exited."""

    def stop(self) -> None:
        """End the runner. Never raises; safe to call twice."""


@runtime_checkable
class SelfMeasured(Protocol):
    """An adapter that needs no tester because it measures itself: the simulator."""

    def runner(self, label: str, seed: int, past: Sequence[Trial]) -> Runner:
        """Return a runner. ``past`` are the earlier trials of this switch, so that a resumed run continues as begun."""


@dataclass
class LiveRunner:
    """Tester and switch on a topology that is up."""

    live: LiveTopology
    settings: LiveSettings

    @property
    def conditions(self) -> Conditions | None:
        """Return the conditions as read when the switch came up."""
        return self.live.conditions

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial; measure the core-to-core latency before and after it."""
        settings = self.settings
        if not settings.has_rate:
            ports = self.live.conditions.ports if self.live.conditions is not None else ()
            speeds = [port.speed_mbps for port in ports if port.side == "wire" and port.speed_mbps]
            # The rate that fills the slowest link of the tester's NICs, if one reports a speed.
            pps = line_rate_pps(request.mean_frame_bytes, min(speeds) * 1_000_000) if speeds else None
            lined = has_line(request.point.scenario, request.profile)
            if pps is None and lined and settings.open_loop and request.load == SATURATING:
                return failed_trial(
                    request, "no NIC of the tester reports the speed of its link: give --line or --max-rate"
                )
            if pps is not None:
                request = request.on_line(pps, open_loop=settings.open_loop is not False)
        placement, calibration, last = self.live.placement, settings.calibration, settings.last_distance
        # Of switch and tester, between which frames go; none if they are on two hosts.
        cpus = () if placement.elsewhere else (placement.switch_cpu, placement.tester_cpus[0])

        def distance() -> CoreDistance | None:
            limit_ns = near_limit_ns(calibration.distances_ns if calibration is not None else ())
            return measure_distance(settings.planed, *cpus, limit_ns, placement.share_l3) if cpus else None

        recent = last.cpus == cpus and time.monotonic() - last.at_s <= REUSE_S
        trial = run_trial(self.live, request, distance, calibration, last.found if recent else None)
        last.cpus, last.found, last.at_s = cpus, trial.evidence.distance_after, time.monotonic()
        return trial

    def alive(self) -> bool:
        """Return whether tester and switch are running."""
        try:
            self.live.check()
        except PlanebenchError:
            return False
        return True

    def stop(self) -> None:
        """End tester and switch."""
        self.live.stop()


# Runs trials with a tester that is no part of planebench: the switch is ours to start, the frames are not.
#
# The wires are cables between devices of the switch and ports of the tester; there are no VNFs, and no evidence of the
# tester but its counters (docs/two-hosts.md).

READY_S = 15.0
"""A link may take seconds to come up, and a switch to forward."""
READY_PPS = 1000
READY_FRAMES_S = 0.1
ROUNDED_SHARE = 0.001
"""A tester that sends for a time may send so many frames more than were asked for: it cannot end between two ticks."""


class ExternalRunner:
    """A switch that is up, and an external tester that is connected to it. Made by :meth:`start`."""

    def __init__(
        self, tester: ExternalTester, switch: RunningSwitch, links: LinkSettings, placement: Placement
    ) -> None:
        self._tester, self._switch, self._links, self._placement = tester, switch, links, placement
        self.conditions: Conditions | None = None
        self._fills_line = True

    @classmethod
    def start(
        cls,
        label: str,
        adapter: Adapter,
        topology: Topology,
        placement: Placement,
        settings: LiveSettings,
        supervisor: Supervisor,
        tester: ExternalTester,
    ) -> ExternalRunner:
        """Start the switch, connect the tester, and wait for frames both ways.

        Raises StartError for the switch, ExternalTesterError for the tester; then nothing is left running.
        """
        links = link_settings(adapter, topology, settings, supervisor.topology_folder(label))
        requests = requests_of(switch_request(topology, placement, links), topology, links)
        with supervisor.memory_on(placement.memory_node(placement.switch_cpu)):
            switch = start_switches(adapter, requests, supervisor)
        runner = cls(tester, switch, links, placement)
        runner._fills_line = not settings.has_rate
        with on_failure(runner.stop):
            tester.connect([port_name(links.ends[port].tester) for port in topology.wire_ports])
            streams = [runner._stream(flow, 64, READY_PPS) for flow in all_flows(topology)]
            deadline = time.monotonic() + stretched(READY_S)
            missing = [stream.name for stream in streams]
            while missing:
                switch.check()
                counts = tester.send(streams, READY_FRAMES_S)
                missing = [name for name, count in counts.items() if not count.received]
                if missing and time.monotonic() > deadline:
                    raise StartError(
                        f"no frame of {tester.name} came through {', '.join(missing)} within {READY_S:g} s; is the "
                        "cabling as --wire says?"
                    )
            runner.conditions = read_conditions(topology, links.wire, switch, lambda: ())
        return runner

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial. A switch or a tester that fails makes it invalid."""
        started_at, line_bps = utc_now(), self._tester.line_bps
        if line_bps is not None and self._fills_line:  # which a saturating trial is sent at
            request = request.on_line(line_rate_pps(request.mean_frame_bytes, line_bps))
        try:
            trial = self._measure(request, started_at)
        except PlanebenchError as error:
            return failed_trial(request, str(error), started_at)
        return judged(trial, request.profile)

    def alive(self) -> bool:
        """Return whether the switch runs and the tester answers."""
        try:
            self._switch.check()
            self._tester.check()
        except PlanebenchError:
            return False
        return True

    def stop(self) -> None:
        """Stop the switch, and give the ports of the tester back."""
        self._switch.stop()
        self._tester.close()

    def _measure(self, request: TrialRequest, started_at: str) -> Trial:
        pps = request.load.pps_per_direction
        if pps is None:
            raise ExternalTesterError(f"{self._tester.name} sends at a rate: give --line 10G or --max-rate")
        streams = [self._stream(flow, request.point.frame_size_bytes, pps) for flow in request.flows()]
        if request.warmup_s > 0:
            self._tester.send(streams, request.warmup_s)
        sampler = ThreadSampler(self._switch.polling_threads())
        before, kernel = self._switch.counters(), list[HostSample]()
        counts = self._tester.send(
            streams,
            request.duration_s,
            latency=request.probe_rate_pps > 0,
            watch=lambda: kernel.append(self._sample(sampler)),
        )
        cycles = cycles_of_trial(before, self._switch.counters())
        self._switch.check()
        return trial_of(
            request,
            started_at,
            offered_duration_ns=round(request.duration_s * 1e9),
            directions=tuple(_direction(stream, counts[stream.name], request.duration_s) for stream in streams),
            evidence=host_evidence(kernel[0], kernel[-1]),
            switch=cycles,  # without idle ones: how long the TSC ran is measured by the tester, which is elsewhere
            latency=_latency(list(counts.values())) if request.probe_rate_pps > 0 else None,
        )

    def _sample(self, sampler: ThreadSampler) -> HostSample:
        here = sample_host(sampler, self._placement.switch_cpus_here)
        return here + self._switch.sample() if isinstance(self._switch, RemoteSwitch) else here

    def _stream(self, flow: Flow, frame_size_bytes: int, pps: float) -> TesterStream:
        sender, receiver = (port_name(self._links.ends[port].tester) for port in (flow.sender_port, flow.receiver_port))
        return TesterStream(flow.name, flow.stream, sender, receiver, frame_size_bytes, max(round(pps), 1))


def _direction(stream: TesterStream, counts: StreamCounts, duration_s: float) -> DirectionCounts:
    """Return the ledger of a direction. What was not sent was late: an external tester reports no other reason."""
    intended = round(stream.pps * duration_s)
    if intended < counts.sent <= intended + max(1, ROUNDED_SHARE * intended):
        intended = counts.sent
    return DirectionCounts(
        name=stream.name,
        intended_packets=intended,
        offered_packets=counts.sent,
        forwarded_packets=counts.received,
        unsent_late_packets=max(intended - counts.sent, 0),
    )


def _latency(counts: Sequence[StreamCounts]) -> LatencyRecord | None:
    """Return the latency of all directions together; None if the tester measured none."""
    measured = [(count, count.delay) for count in counts if count.delay is not None]
    received = sum(count.received for count, _ in measured)
    if not received:
        return None
    means = [None if delay.mean_ns is None else count.received * delay.mean_ns for count, delay in measured]
    return LatencyRecord(
        probes_sent=sum(count.sent for count, _ in measured),
        probes_received=received,
        histogram=encode([], 0),
        clock="tester",
        least_ns=min(delay.least_ns for _, delay in measured),
        mean_ns=None if None in means else sum(filter(None, means)) / received,
        most_ns=max(delay.most_ns for _, delay in measured),
    )
