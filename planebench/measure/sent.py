# SPDX-License-Identifier: BSD-3-Clause
"""Record of what generators sent of a traffic profile, and its check against the plan. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from planebench.model.records import Reason, ReasonCode, TrafficSent
from planebench.model.traffic import Pcap, TrafficProfile
from planebench.planed.statistics import Generator

TOLERANCE = 0.01
"""The mix that was sent may differ from the one intended by this share."""
FRAMES_MIN = 10_000
"""With fewer frames of a mix, or fewer of each of what varies than FRAMES_EACH, chance differs by as much."""
FRAMES_EACH = 100
LOOPS_MIN = 100
"""So often a capture is sent before its last, partial round does not change the mean."""


def traffic_sent(name: str, generators: Sequence[Generator]) -> TrafficSent | None:
    """Return the sum over the queues of a sending end; None if no generator had a profile.

    Flows and addresses of several queues may be the same ones: the largest number of one of them is kept.
    """
    reports = [report for generator in generators if (report := generator.get("profile"))]
    if not reports:
        return None
    sizes: Counter[int] = Counter()
    for report in reports:
        sizes.update(dict(report.get("sizes", ())))
    pcaps = [pcap for report in reports if (pcap := report.get("pcap"))]
    skipped = (pcaps[0].get("skipped") or {}) if pcaps else {}
    return TrafficSent(
        name=name,
        packets=sum(generator["offered_packets"] for generator in generators),
        bytes=sum(report.get("bytes", 0) for report in reports),
        sizes=tuple(sorted(sizes.items())),
        flows_sent=_most(report.get("flows_sent") for report in reports),
        dst_macs=_macs([report.get("dst_macs") or () for report in reports]),
        dst_ips_sent=_most(report.get("dst_ips_sent") for report in reports),
        pcap_frames=_most(pcap.get("frames") for pcap in pcaps),
        pcap_loops=_most(pcap.get("loops") for pcap in pcaps),
        pcap_enlarged=_most(pcap.get("enlarged") for pcap in pcaps) or 0,
        pcap_skipped={reason: count for reason, count in skipped.items() if count},
    )


def not_as_intended(profile: TrafficProfile, sent: TrafficSent) -> Iterator[Reason]:
    """Yield a sentence for each way in which what was sent differs from the profile by more than TOLERANCE.

    Nothing is said where too few frames were sent to tell.
    """
    if profile.pcap is not None:
        yield from _capture(profile.pcap, sent)
        return
    yield from _mix(profile, sent)
    wanted = len(profile.dst_macs) or profile.dst_mac_count
    if wanted and sent.packets >= FRAMES_EACH * wanted:
        even = sent.packets / wanted
        off = max((abs(count - even) / even for count in sent.dst_macs), default=1.0)
        if len(sent.dst_macs) != wanted or off > TOLERANCE:
            yield _differs(f"{sent.name}: frames were not spread evenly over {wanted} destination MACs")
    flows = profile.flows
    if flows is not None and flows.draw != "zipf" and sent.flows_sent is not None:
        expected = _distinct(flows.count, sent.packets, flows.draw == "round_robin")
        if sent.packets >= FRAMES_MIN and abs(sent.flows_sent - expected) > TOLERANCE * expected:
            yield _differs(f"{sent.name}: {sent.flows_sent} flows were sent, not about {expected:.0f}")


def _capture(pcap: Pcap, sent: TrafficSent) -> Iterator[Reason]:
    """Yield that the file is no longer the one that the plan was made with."""
    mean = sent.mean_frame_bytes
    if sent.pcap_frames != pcap.frames:
        yield _differs(f"{sent.name}: the capture has {sent.pcap_frames} frames to send, and had {pcap.frames} before")
    elif (
        mean is not None
        and (sent.pcap_loops or 0) >= LOOPS_MIN
        and abs(mean - pcap.mean_frame_bytes) > TOLERANCE * pcap.mean_frame_bytes
    ):
        yield _differs(
            f"{sent.name}: the mean frame sent had {mean:.1f} B, not {pcap.mean_frame_bytes:.1f} B as before"
        )


def _mix(profile: TrafficProfile, sent: TrafficSent) -> Iterator[Reason]:
    """Yield the shares of the frame sizes, and their mean."""
    mean, intended = sent.mean_frame_bytes, profile.mean_frame_bytes
    if not profile.sizes or mean is None or intended is None or sent.packets < FRAMES_MIN:
        return
    weights: Counter[int] = Counter()
    for size, weight in profile.sizes:
        weights[size] += weight
    counts = dict(sent.sizes)
    off = max(abs(counts.get(size, 0) / sent.packets - w / weights.total()) for size, w in weights.items())
    if abs(mean - intended) > TOLERANCE * intended:
        yield _differs(f"{sent.name}: the mean frame sent had {mean:.1f} B, not {intended:.1f} B as in the profile")
    elif off > TOLERANCE or set(counts) - set(weights):
        yield _differs(f"{sent.name}: the mix of frame sizes that was sent is not that of the profile")


def _differs(text: str) -> Reason:
    return Reason(ReasonCode.TRAFFIC_DIFFERS, text)


def _distinct(population: int, draws: int, in_turn: bool) -> float:
    """Return the number of different values in the given number of draws: in turn, or with replacement."""
    if in_turn:
        return float(min(population, draws))
    return float(population * (1 - (1 - 1 / population) ** draws))


def _most(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)


def _macs(counts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the frames per address, added up over the queues."""
    longest = max(map(len, counts), default=0)
    return tuple(sum(c[i] for c in counts if i < len(c)) for i in range(longest))
