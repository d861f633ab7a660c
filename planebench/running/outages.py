# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic as a run: a header, a trial for each restart, stored as soon as it is measured."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from planebench.host.process import Supervisor
from planebench.measure.live import LiveTopology
from planebench.measure.outage import OutageRequest, check_victim, measure_outage, outage_trial
from planebench.measure.runner import SelfMeasured
from planebench.model.errors import UsageError
from planebench.model.outage import Outage
from planebench.model.plan import LatencyPlan, Plan, ThroughputPlan
from planebench.model.records import Point
from planebench.model.run import RunStatus
from planebench.model.topology import Topology
from planebench.model.wire import wire_arguments, wire_name
from planebench.placement import place_vnfs
from planebench.plans.schema import validated, with_chains
from planebench.running.service import Session, open_session
from planebench.running.survey import survey
from planebench.vnfs.topology import build_chain
from planebench.wiring.wires.base import wire_kind

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
    if wire_kind(settings.wire).exclusive(wire_arguments(settings.wire)) and len(held.adapters) > 1:
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
                    trial = outage_trial(point, request, outage, number, live.functional)
                    trial = replace(trial, index=len(session.trials))
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
