# SPDX-License-Identifier: BSD-3-Clause
"""FIB updates and control packets while frames are sent: the tester plays the control of one VNF (planed's task kind
``fib_source``), and the neighbour that sends control packets to it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from planebench.host.process import stretched
from planebench.measure.latency import histogram_of
from planebench.model.errors import StartError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import ControlPackets, FibUpdates
from planebench.model.scenarios import Flow
from planebench.model.topology import Topology
from planebench.model.traffic import TrafficProfile, Updates
from planebench.planed.client import Call, GeneratorLoad, get_statistics
from planebench.planed.statistics import FibSource, Statistics
from planebench.testbed.tester_config import control_name

SESSION_DEADLINE_S = 5.0
TOLERANCE = 0.02
MIN_UPDATES = 1000
"""With fewer, those on their way at both ends of a trial are more than that."""


CONTROL_FRAME_BYTES = 64
EVERY_FRAME_PPS = 1e7
"""A rate of probes above that of any control packets: each of them is stamped."""


@dataclass(frozen=True, slots=True)
class ControlTraffic:
    """Control packets of a neighbour behind the last wire: from ``port`` to the VNF with ``mac``, whose replies return.

    They have a TTL of 1, as those of routing protocols to a neighbour (RFC 4271, RFC 2328), so a router must look at
    them itself.
    """

    port: str
    mac: str
    pps: float

    @property
    def flow(self) -> Flow:
        """Return their way: there and back by the wire of end b."""
        return Flow(self.port, self.port, 1)

    @property
    def load(self) -> GeneratorLoad:
        """Return the load of the generator that sends them."""
        profile = {"seed": 1, "dst_macs": [self.mac], "ttl": 1}
        return GeneratorLoad(f"gen-{self.port}", self.pps, CONTROL_FRAME_BYTES, EVERY_FRAME_PPS, profile)


def control_traffic(topology: Topology, port: str, profile: TrafficProfile) -> ControlTraffic | None:
    """Return the control packets that a profile has for the VNF at ``port``; None if it has none."""
    if profile.control_pps is None:
        return None
    mac = next(vnf.mac for vnf in topology.vnfs if port in vnf.ports)
    return ControlTraffic(topology.ends[1], mac, profile.control_pps)


def wait_for_session(call: Call, port: str) -> None:
    """Wait until the forwarder has accepted the session at ``port``. Raises StartError after SESSION_DEADLINE_S."""
    deadline = time.monotonic() + stretched(SESSION_DEADLINE_S)
    while port and not _source(get_statistics(call)).up:
        if time.monotonic() > deadline:
            raise StartError(f"the switch does not answer the FIB messages of the VNF at port {port}")
        time.sleep(0.01)


@contextlib.contextmanager
def updating(call: Call, port: str, updates: Updates) -> Iterator[None]:
    """Have the control at ``port`` change routes at a rate; ``flat_out``: as fast as they are acknowledged."""
    rate = {"flat_out": True} if updates == "flat_out" else {"updates_per_s": updates}
    call("fib_source.rate", {"task": control_name(port), **rate})
    try:
        yield
    finally:
        call("fib_source.rate", {"task": control_name(port), "updates_per_s": 0})


def fib_updates(stats: Statistics, control: ControlTraffic | None = None) -> FibUpdates | None:
    """Return the updates of the control of a VNF since the counters were cleared; None if there were none.

    Each packet of ``control`` causes one.
    """
    found = next((task.fib_source for task in stats.tasks if task.fib_source is not None), None)
    if found is None:
        return None
    rate = found.updates_per_s if control is None else control.pps
    if rate == 0 and not found.sent:
        return None
    intended_per_s = None if rate is None else float(rate)
    return FibUpdates(intended_per_s, found.duration_ns, found.sent, found.acknowledged, found.refused)


def control_packets(stats: Statistics, control: ControlTraffic) -> ControlPackets:
    """Return what became of control packets since the counters were cleared."""
    sender, receiver = f"gen-{control.port}", f"mon-{control.port}"
    monitors = [it.monitor for it in stats.tasks if it.name == receiver and it.monitor is not None]
    came = [it for monitor in monitors for it in monitor.streams if it.stream == control.flow.stream]
    return ControlPackets(
        intended_per_s=control.pps,
        sent=sum(it.generator.offered_packets for it in stats.tasks if it.name == sender and it.generator is not None),
        received=_source(stats).control_received,
        replies=sum(stream.forwarded_packets for stream in came),
        histogram=histogram_of(histogram for stream in came for histogram in stream.probes),
    )


def not_answered(control: ControlPackets) -> tuple[Reason, ...]:
    """Return a remark if control packets have no reply."""
    if control.replies >= control.sent:
        return ()
    lost = control.sent - control.replies
    text = f"{lost} of {control.sent} control packets have no reply; the VNF received {control.received}"
    return (Reason(ReasonCode.CONTROL_UNANSWERED, text, {"lost": lost, "sent": control.sent}),)


def not_applied(updates: FibUpdates) -> tuple[Reason, ...]:
    """Return a remark if fewer updates were applied than requested."""
    wanted = updates.intended_per_s
    if updates.refused:
        text = f"the switch refused {updates.refused} of {updates.sent} FIB updates"
        return (Reason(ReasonCode.UPDATES_MISSING, text, {"refused": updates.refused, "sent": updates.sent}),)
    few = wanted is not None and updates.sent >= MIN_UPDATES and updates.per_s < (1 - TOLERANCE) * wanted
    if not few or wanted is None:
        return ()
    text = f"{updates.per_s:.0f} FIB updates per second were applied, not {wanted:.0f}"
    return (Reason(ReasonCode.UPDATES_MISSING, text, {"per_s": updates.per_s, "intended_per_s": wanted}),)


def _source(stats: Statistics) -> FibSource:
    return next(task.fib_source for task in stats.tasks if task.fib_source is not None)
