# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what happens to frames: each arrives unchanged, in order, once, and nowhere else."""

from __future__ import annotations

from planebench.conformance.model import Check, Failure, Remarks
from planebench.conformance.rig import FrameCounts, PcapExchange, Rig, exchange_good, most, send_exact, sent
from planebench.measure.counts import tester_counts
from planebench.testbed.traffic import parse_traffic
from planebench.testbed.wires.base import wire_kind

ROUNDS = 6
SIZES = (64, 65, 511, 1518)
PROFILES = ("imix", "vlan:vlan=100", "tcp", "ipv6")
PROFILE_SIZE = 101
ORDER_S = 0.05
WITHOUT_RAW = ("ports have several queues, so raw frames were left out",)


def forwards(rig: Rig) -> Remarks:
    """Fail unless every offered frame arrives, in each direction alone, then in both."""
    there, back = rig.ways
    rig.live.wait_until_forwarding()
    for flows, rounds in (((there,), 1), ((back,), 1), ((there, back), ROUNDS)):
        counts = send_exact(rig, flows, rounds=rounds)
        if counts.lost:
            counts = send_exact(rig, flows, rounds=2 * rounds)  # once more: a count that persists is wrong
        if counts.lost:
            rig.lossless = False
            names = " and ".join(flow.name for flow in flows)
            raise Failure(f"{names}: all {counts.offered} frames", f"{counts.arrived} ({counts.words()})")
    return ()


def keeps_to_its_ports(rig: Rig) -> Remarks:
    """Fail if a frame comes out at a port that is not the other end of its cross-connect."""
    counts = send_exact(rig, rig.ways, rounds=2)
    if counts.misdirected or counts.foreign:
        raise Failure("no frame at a port where it does not belong", counts.words())
    found = _exchanged(rig)
    if found is None:
        return WITHOUT_RAW
    if found.astray:
        pairs = ", ".join(f"{a} <-> {b}" for a, b in rig.topology.cross_connects)
        raise Failure(f"frames to go {pairs}, and nowhere else", most(found.astray))
    return ()


def changes_nothing(rig: Rig) -> Remarks:
    """Fail unless frames of all sizes and kinds come out as they went in, addresses included."""
    for size in SIZES:
        _intact(send_exact(rig, rig.ways, size), f"frames of {size} B")
    for text in PROFILES:
        profile = parse_traffic(text)
        _intact(send_exact(rig, rig.ways, PROFILE_SIZE, profile), f"frames of traffic {text}")
    found = _exchanged(rig)
    if found is None:
        return WITHOUT_RAW
    if found.changed:
        raise Failure("every frame as it was sent, byte by byte", most(found.changed))
    if missing := found.lost_kinds(plain=True):
        raise Failure(f"frames of all sizes within {found.tries} tries", f"never came: {', '.join(missing)}")
    lost = found.lost_kinds(plain=False)
    return (f"does not carry: {', '.join(lost)}",) if lost else ()


def _intact(counts: FrameCounts, what: str) -> None:
    if counts.corrupt:
        raise Failure(f"{what} whole", f"{counts.corrupt} of {counts.offered} damaged")


def keeps_order(rig: Rig) -> Remarks:
    """Fail if a frame overtakes another or comes twice, at maximum offered load or frame by frame."""
    counts = FrameCounts()
    stats = sent(rig, rig.ways, ORDER_S, lambda it: rig.live.send(rig.ways, 64, it, None))
    counts.add(tester_counts(stats, rig.ways))
    if counts.reordered or counts.duplicate:
        raise Failure("frames in the order in which they were sent, each once", counts.words())
    found = _exchanged(rig)
    if found is None:
        return WITHOUT_RAW
    overtaken, twice = most(found.disorder), most(found.doubled)
    if overtaken or twice:
        words = f"overtaken: {overtaken or 'none'}; twice: {twice or 'none'}"
        raise Failure("frames in the order in which they were sent, each once", words)
    return ()


def _exchanged(rig: Rig) -> PcapExchange | None:
    """Return the exchange of raw frames that three checks share; None where ports have several queues."""
    links = rig.live.links
    if links.queues > 1 or wire_kind(links.wire).receive_queue(links):
        return None
    if rig.exchange is None:
        rig.exchange = exchange_good(rig)
    return rig.exchange


CHECKS = (
    Check("forwards", "Every frame sent at a low rate arrives: there, back, and both ways at once.", forwards),
    Check("wiring", "Nothing comes out at a port that is not the other end of the cross-connect.", keeps_to_its_ports),
    Check("intact", "Frames of all sizes come out byte by byte as they went in, MAC addresses too.", changes_nothing),
    Check("order", "No frame overtakes another and none comes twice, flat out too.", keeps_order),
)
