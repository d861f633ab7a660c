# SPDX-License-Identifier: BSD-3-Clause
"""The traffic of the trials of a result, and the mean size of forwarded frames. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planebench.model.records import TrafficSent, Trial


def sent_traffic(trials: Sequence[Trial]) -> tuple[TrafficSent, ...]:
    """Return the sum by direction. Flows, addresses and passes over a file are the maximum over the trials."""
    every = [sent for trial in trials for sent in trial.sent]
    return tuple(_sum_of([s for s in every if s.name == name]) for name in dict.fromkeys(s.name for s in every))


def mean_forwarded_bytes(trials: Sequence[Trial]) -> float | None:
    """Return the mean size of the forwarded frames with FCS; None if a trial did not count bytes, or none arrived."""
    directions = [d for trial in trials for d in trial.directions]
    packets = sum(d.forwarded_packets for d in directions)
    known = [d.forwarded_bytes for d in directions if d.forwarded_bytes is not None]
    return sum(known) / packets if packets and len(known) == len(directions) else None


def _sum_of(every: Sequence[TrafficSent]) -> TrafficSent:
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
        pcap_frames=_most([sent.pcap_frames for sent in every]),
        pcap_loops=_most([sent.pcap_loops for sent in every]),
        pcap_enlarged=max(sent.pcap_enlarged for sent in every),
        pcap_skipped=every[0].pcap_skipped,
    )


def _most(values: Sequence[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
