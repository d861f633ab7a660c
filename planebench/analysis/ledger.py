# SPDX-License-Identifier: BSD-3-Clause
"""Loss accounting of a trial: sent = forwarded + losses by counter + unexplained. Pure.

Each loss is counted once, by whoever freed the frame; so the rest is exactly 0 where every dropper counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from planebench.model.chain_name import OWN, vnf_name
from planebench.model.conditions import NOT_BASIC
from planebench.model.grouped import grouped
from planebench.model.records import Point, SwitchCycles, TrafficSent, Trial
from planebench.model.results import Ledger, Loss, LossPlace
from planebench.model.scenarios import layout
from planebench.model.topology import Topology, topology_port
from planebench.model.wire import WIRES
from planebench.model.words import count

RING_FULL = "tx_full"
WIRE_FULL = "wire_full"
"""A kernel interface of the tester found the switch's end of a veth pair full."""
ATTEMPTS = frozenset({"rx_nombuf"})
"""Reasons that count attempts, not frames: without a buffer, a DPDK driver leaves the frame where it is and tries
again. What is lost for it shows at the sender's ring."""
OF_NIC = frozenset({"rx_missed", "rx_errors", "tx_errors", *NOT_BASIC})
"""Reasons that a NIC counts, of wires that are NICs."""
NIC_DROPPED = "nic_dropped"
"""A NIC that is the switch had no room in the ring of a virtual function."""
_CAUSES = {RING_FULL: "ring full", "tx_errors": "taken, not sent", NIC_DROPPED: "ring full"}
"""Reasons whose names say too little. ``tx_errors``: the port had taken the frame; it was too long for every buffer of
the other end, or its buffer went with a connection."""


def ledger(trial: Trial) -> Ledger:
    """Return the loss accounting of one trial, all directions and control packets together.

    Places: a full ring of the switch is the **wire ring** or the **vhost ring** of a port; what a NIC dropped, at
    either end of a cable, is **NIC**; everything else that the switch dropped, or damaged, is **switch**.
    Of ``Trial.tester_drops``, ``v1:tx_full`` is a VNF that found the ring of its port v1 full, ``vnf0:runt`` a VNF too;
    other keys of a port (``n1:rx_missed``) are the **tester**'s.
    An echo trial passes the switch twice; a frame is dropped once all the same.

    It is counted where the switch gave at least one drop counter that could be read, be it 0, and no VNF is the user's
    own: nobody knows what that drops.
    """
    topology = layout(trial.point.scenario, trial.point.chain_length, echo=trial.point.echoes(trial.role))
    damaged = (Loss("switch", "damaged", direction.corrupt_packets) for direction in trial.directions)
    losses = [*_switch(trial, topology), *damaged, *_tester(trial, topology)]
    control = trial.control  # the switch may drop its replies, too
    return Ledger(
        offered_packets=sum(it.offered_packets for it in trial.directions) + (control.sent if control else 0),
        forwarded_packets=sum(it.forwarded_packets for it in trial.directions) + (control.replies if control else 0),
        losses=_added(losses),
        counted=counts_drops(trial.switch) and not set(OWN) & set(trial.point.hostings),
    )


def merge(ledgers: Iterable[Ledger]) -> Ledger:
    """Return the sum of all ledgers, counted only if each is; an empty ledger for none."""
    every = tuple(ledgers)
    return Ledger(
        offered_packets=sum(it.offered_packets for it in every),
        forwarded_packets=sum(it.forwarded_packets for it in every),
        losses=_added(loss for it in every for loss in it.losses),
        counted=all(it.counted for it in every),
    )


def describe(ledger: Ledger) -> str:
    """Return one line in words: ``12 000 lost: 11 990 vhost ring full (v0), 10 unexplained``."""
    parts = [  # ``vhost ring full (v0)``, ``switch: fault``
        f"{count(it.packets)} {it.place}{'' if it.place.endswith('ring') else ':'} {it.cause}" for it in ledger.losses
    ]
    rest, uncounted = ledger.unexplained_packets, "" if ledger.counted else " (some switches report no drop counters)"
    if rest:
        parts.append(f"{count(rest)} unexplained{uncounted}" if rest > 0 else f"{count(-rest)} counted more than once")
    return f"{count(ledger.lost_packets)} lost: {', '.join(parts)}" if parts else "nothing lost"


def counts_drops(switch: SwitchCycles) -> bool:
    """Return whether a switch counts drops at all; failed attempts are not drops."""
    return any(reason_of(key) not in ATTEMPTS for key in switch.drops)


def reason_of(key: str) -> str:
    """Return ``tx_full`` of ``v0:tx_full``, or of a bare ``tx_full``."""
    return key.rpartition(":")[2]


def _switch(trial: Trial, topology: Topology) -> Iterator[Loss]:
    rings: dict[str, LossPlace] = {
        port.name: "wire ring" if port.side == "wire" else "vhost ring" for port in topology.ports
    }
    for key, packets in trial.switch.drops.items():
        port, _, reason = key.rpartition(":")
        if reason == RING_FULL and port in rings:
            yield Loss(rings[port], f"full ({port})", packets)
        elif reason == NIC_DROPPED or _of_nic(trial, port, reason):
            yield Loss("NIC", _cause(port, reason, trial.point), packets)
        elif reason not in ATTEMPTS:
            yield Loss("switch", _cause(port, reason, trial.point), packets)


def _of_nic(trial: Trial, port: str, reason: str) -> bool:
    """Return whether a reason is one that a NIC counts at its end of a cable."""
    wire = WIRES.get(trial.point.wire)
    return wire is not None and not wire.replaces_nics and topology_port(port).side == "wire" and reason in OF_NIC


def _tester(trial: Trial, topology: Topology) -> Iterator[Loss]:
    ports = {port.name for port in topology.ports}
    for key, packets in trial.tester_drops.items():
        owner, _, reason = key.rpartition(":")
        if reason in ATTEMPTS or f"{owner}:{NIC_DROPPED}" in trial.switch.drops:
            continue
        cause = _cause(owner, reason, trial.point)
        if _of_nic(trial, owner, reason):
            yield Loss("NIC", f"{_CAUSES.get(reason, reason)} ({owner}, tester)", packets)
        elif reason == WIRE_FULL:
            yield Loss("wire ring", f"full ({owner})", packets)
        elif owner in ports and reason != RING_FULL:
            yield Loss("tester", cause, packets)
        else:
            yield Loss("VNF", cause, packets, policy=reason != RING_FULL)


def policy_packets(trial: Trial) -> int:
    """Return the number of packets that network functions dropped by policy: a rule, no route, a rate limit."""
    return sum(packets for _, packets in _by_policy(trial))


def policy_words(trial: Trial) -> str:
    """Return each cause of drops by policy: ``rule (vnf0 firewall)``; empty without such drops.

    Without numbers, so that the trials of a point say the same; these are in the ledger.
    """
    return ", ".join(cause for cause, _ in _by_policy(trial))


def _by_policy(trial: Trial) -> list[tuple[str, int]]:
    found = []
    for key, packets in trial.tester_drops.items():
        owner, _, reason = key.rpartition(":")
        if re.match(r"vnf\d", owner) and reason != RING_FULL and reason not in ATTEMPTS and packets:
            found.append((_cause(owner, reason, trial.point), packets))
    return found


def _cause(owner: str, reason: str, point: Point) -> str:
    """Return a reason with its owner: ``rule (vnf1 firewall)`` of the second function of a named chain."""
    if point.chain and (match := re.match(r"vnf(\d+)", owner)):
        owner = f"{owner} {vnf_name(point.chain, 0 if point.side_by_side else int(match[1]))}"
    words = _CAUSES.get(reason, reason)
    return f"{words} ({owner})" if owner else words


def _added(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return one loss per place and cause, largest first, equal ones by name. Zeros are left out."""
    total: Counter[tuple[LossPlace, str, bool]] = Counter()
    for loss in losses:
        total[loss.place, loss.cause, loss.policy] += loss.packets
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Loss(place, cause, packets, policy) for (place, cause, policy), packets in ordered if packets)


# The traffic of the trials of a result, and the mean size of forwarded frames. Pure.


def sent_traffic(trials: Sequence[Trial]) -> tuple[TrafficSent, ...]:
    """Return the sum by direction. Flows, addresses and passes over a file are the maximum over the trials."""
    by_name = grouped((sent.name, sent) for trial in trials for sent in trial.sent)
    return tuple(map(sum_of, by_name.values()))


def mean_forwarded_bytes(trials: Sequence[Trial]) -> float | None:
    """Return the mean size of the forwarded frames with FCS; None if a trial did not count bytes, or none arrived."""
    directions = [d for trial in trials for d in trial.directions]
    packets = sum(d.forwarded_packets for d in directions)
    known = [d.forwarded_bytes for d in directions if d.forwarded_bytes is not None]
    return sum(known) / packets if packets and len(known) == len(directions) else None


def sum_of(every: Sequence[TrafficSent]) -> TrafficSent:
    """Return the sum; flows, addresses and passes over a file are the maximum."""
    sizes: Counter[int] = Counter()
    for sent in every:
        sizes.update(dict(sent.sizes))
    longest = max(len(sent.dst_macs) for sent in every)
    return TrafficSent(
        name=every[0].name,
        packets=sum(sent.packets for sent in every),
        bytes=sum(sent.bytes for sent in every),
        sizes=tuple(sorted(sizes.items())),
        flows_sent=_most([sent.flows_sent for sent in every]),
        dst_macs=tuple(sum(s.dst_macs[i] for s in every if i < len(s.dst_macs)) for i in range(longest)),
        dst_ips_sent=_most([sent.dst_ips_sent for sent in every]),
        entries=_most([sent.entries for sent in every]),
        entries_touched=_most([sent.entries_touched for sent in every]),
        pcap_frames=_most([sent.pcap_frames for sent in every]),
        pcap_loops=_most([sent.pcap_loops for sent in every]),
        pcap_enlarged=max(sent.pcap_enlarged for sent in every),
        pcap_skipped=every[0].pcap_skipped,
    )


def _most(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
