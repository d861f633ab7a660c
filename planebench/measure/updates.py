# SPDX-License-Identifier: BSD-3-Clause
"""FIB updates and control packets while frames are sent: VNFs whose forwarding the switch has are control planes
(planed's task kind ``fib_source``), and the tester is the neighbour that sends control packets to them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planebench.host.process import stretched
from planebench.measure.hosted import HostedVnfs
from planebench.measure.latency import histogram_of
from planebench.model.errors import StartError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import ControlPackets, FibUpdates
from planebench.model.scenarios import Flow
from planebench.model.topology import Topology
from planebench.model.traffic import TrafficProfile
from planebench.planed.client import GeneratorLoad
from planebench.planed.statistics import FibSource, Statistics

SESSION_DEADLINE_S = 5.0
TOLERANCE = 0.02
MIN_UPDATES = 1000
"""With fewer, those on their way at both ends of a trial are more than that."""


ALL_SPF_ROUTERS = "224.0.0.5"
_COUNTED = ("sent", "acknowledged", "refused", "control_received")
CONTROL_FRAME_BYTES = 64
EVERY_FRAME_PPS = 1e7
"""A rate of probes above that of any control packets: each of them is stamped."""


@dataclass(frozen=True, slots=True)
class ControlTraffic:
    """Control packets of a neighbour behind the last wire: from ``port`` to the VNFs in turn, whose replies return.

    They go to all OSPF routers with a TTL of 1, as those of routing protocols to a neighbour (RFC 4271, RFC 2328), so a
    router must look at them itself.
    """

    port: str
    macs: tuple[str, ...]
    pps: float

    @property
    def flow(self) -> Flow:
        """Return their way: there and back by the wire of end b."""
        return Flow(self.port, self.port, 1)

    @property
    def load(self) -> GeneratorLoad:
        """Return the load of the generator that sends them."""
        routers = {"first": ALL_SPF_ROUTERS, "count": 1}
        profile = {"seed": 1, "dst_macs": list(self.macs), "ttl": 1, "dst_ips": routers}
        return GeneratorLoad(f"gen-{self.port}", self.pps, CONTROL_FRAME_BYTES, EVERY_FRAME_PPS, profile)


def control_traffic(topology: Topology, profile: TrafficProfile) -> ControlTraffic | None:
    """Return the control packets that a profile has for VNFs side by side; None if it has none."""
    if profile.control_pps is None or not topology.side_by_side:
        return None
    return ControlTraffic(topology.ends[1], topology.destinations, profile.control_pps)


def wait_until_settled(controls: HostedVnfs, within_s: float = SESSION_DEADLINE_S) -> Mapping[str, FibSource]:
    """Wait until the forwarder has accepted the session of every VNF, and answered all that it sent.

    Return their counts. Raises StartError after ``within_s``.
    """
    deadline = time.monotonic() + stretched(within_s)
    while True:
        found = controls.controls()
        late = [name for name, it in found.items() if not it.up or it.acknowledged + it.refused < it.sent]
        if not late:
            return found
        if time.monotonic() > deadline:
            raise StartError(f"the switch does not answer the FIB messages of {', '.join(late)}")
        time.sleep(0.01)


class Changing:
    """Control planes that change routes at a rate, all together, or as fast as they are acknowledged, or when a control
    packet comes. They take turns: trial after trial others of them are first."""

    def __init__(self, controls: HostedVnfs, profile: TrafficProfile) -> None:
        """Begin. Raises DiedError, StartError."""
        self._controls, self._profile, self.control_received = controls, profile, 0
        self._before = wait_until_settled(controls)
        first, count = sum(it.sent for it in self._before.values()), len(self._before)
        if profile.updates == "flat_out":
            rates: dict[str, Mapping[str, Any]] = {name: {"flat_out": True} for name in self._before}
        elif profile.updates is not None:
            turns = {name: (first + number) % count for number, name in enumerate(self._before)}
            each = profile.updates / count
            rates = {name: {"updates_per_s": each, "ahead": 1 - turn / count} for name, turn in turns.items()}
        else:
            rates = {}
        self._begun_ns = self._set(rates)

    def _set(self, rates: Mapping[str, Mapping[str, Any]]) -> int:
        """Set the rates, and return when that was, in ns: in the middle of it."""
        before_ns = time.monotonic_ns()
        self._controls.set_rates(rates)
        return (before_ns + time.monotonic_ns()) // 2

    def end(self) -> FibUpdates:
        """Stop, and return what was sent and applied. Raises DiedError, StartError."""
        stop = {name: {"updates_per_s": 0} for name in self._before} if self._profile.updates is not None else {}
        duration_ns = self._set(stop) - self._begun_ns
        after, before = wait_until_settled(self._controls), self._before
        rate = self._profile.control_pps or self._profile.updates
        grown = Counter[str]()
        for name, it in after.items():
            grown.update({key: getattr(it, key) - getattr(before[name], key) for key in _COUNTED})
        self.control_received = grown["control_received"]
        intended_per_s = None if rate == "flat_out" or rate is None else float(rate)
        return FibUpdates(intended_per_s, duration_ns, grown["sent"], grown["acknowledged"], grown["refused"])


def control_packets(stats: Statistics, control: ControlTraffic, received: int) -> ControlPackets:
    """Return what became of control packets since the counters were cleared; the VNFs ``received`` so many."""
    sender, receiver = f"gen-{control.port}", f"mon-{control.port}"
    monitors = [it.monitor for it in stats.tasks if it.name == receiver and it.monitor is not None]
    came = [it for monitor in monitors for it in monitor.streams if it.stream == control.flow.stream]
    return ControlPackets(
        intended_per_s=control.pps,
        sent=sum(it.generator.offered_packets for it in stats.tasks if it.name == sender and it.generator is not None),
        received=received,
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
