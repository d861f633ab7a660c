# SPDX-License-Identifier: BSD-3-Clause
"""Checks of what happens to frames: they come, whole, in order, once, and nowhere else."""

from __future__ import annotations

from planebench.conformance.bed import Bed
from planebench.conformance.counting import Tally, send_exact
from planebench.conformance.exchange import Exchange, exchange_good, most
from planebench.conformance.model import Check, Failure, Remarks
from planebench.measure.counts import tester_counts
from planebench.traffic.registry import parse_traffic

ROUNDS = 6
SIZES = (64, 65, 511, 1518)
PROFILES = ("imix", "vlan:vlan=100", "tcp", "ipv6")
PROFILE_SIZE = 101
ORDER_S = 0.05
WITHOUT_RAW = ("ports have several queues, so raw frames were left out",)


def forwards(bed: Bed) -> Remarks:
    """Each direction alone, then both: every frame that was offered arrives."""
    there, back = bed.ways
    bed.live.wait_until_forwarding()
    for flows, rounds in (((there,), 1), ((back,), 1), ((there, back), ROUNDS)):
        tally = send_exact(bed, flows, rounds=rounds)
        if tally.lost or not tally.offered:
            tally = send_exact(bed, flows, rounds=2 * rounds)  # once more: a count that persists is wrong
        if tally.lost or not tally.offered:
            bed.lossless = False
            names = " and ".join(flow.name for flow in flows)
            raise Failure(f"{names}: all {tally.offered} frames", f"{tally.arrived} ({tally.words()})")
    return ()


def keeps_to_its_ports(bed: Bed) -> Remarks:
    """Nothing of a cross-connect comes out at a port of another one, or goes back where it came from."""
    tally = send_exact(bed, bed.ways, rounds=2)
    if tally.misdirected or tally.foreign:
        raise Failure("no frame at a port where it does not belong", tally.words())
    found = _exchanged(bed)
    if found is None:
        return WITHOUT_RAW
    if found.astray:
        pairs = ", ".join(f"{a} <-> {b}" for a, b in bed.topology.cross_connects)
        raise Failure(f"frames to go {pairs}, and nowhere else", most(found.astray))
    return ()


def changes_nothing(bed: Bed) -> Remarks:
    """Frames of all sizes and kinds come out as they went in, addresses included."""
    for size in SIZES:
        _intact(send_exact(bed, bed.ways, size), f"frames of {size} B")
    for text in PROFILES:
        profile = parse_traffic(text)
        _intact(send_exact(bed, bed.ways, PROFILE_SIZE, profile), f"frames of traffic {text}")
    found = _exchanged(bed)
    if found is None:
        return WITHOUT_RAW
    if found.changed:
        raise Failure("every frame as it was sent, byte by byte", most(found.changed))
    if missing := found.lost_kinds(plain=True):
        raise Failure(f"frames of all sizes within {found.tries} tries", f"never came: {', '.join(missing)}")
    lost = found.lost_kinds(plain=False)
    return (f"does not carry: {', '.join(lost)}",) if lost else ()


def _intact(tally: Tally, what: str) -> None:
    if tally.corrupt:
        raise Failure(f"{what} whole", f"{tally.corrupt} of {tally.offered} damaged")


def keeps_order(bed: Bed) -> Remarks:
    """Flat out and frame by frame: none overtakes another, none comes twice."""
    tally = Tally()
    tally.add(tester_counts(bed.live.send(bed.ways, 64, ORDER_S, None), bed.ways))
    if tally.reordered or tally.duplicate:
        raise Failure("frames in the order in which they were sent, each once", tally.words())
    found = _exchanged(bed)
    if found is None:
        return WITHOUT_RAW
    overtaken, twice = most(found.disorder), most(found.doubled)
    if overtaken or twice:
        words = f"overtaken: {overtaken or 'none'}; twice: {twice or 'none'}"
        raise Failure("frames in the order in which they were sent, each once", words)
    return ()


def _exchanged(bed: Bed) -> Exchange | None:
    """One exchange serves three checks; there is none where ports have several queues."""
    links = bed.live.links
    if links.queues > 1 or (links.wire == "memif" and links.memif_receive_queue):
        return None
    if bed.exchange is None:
        bed.exchange = exchange_good(bed)
    return bed.exchange


CHECKS = (
    Check("forwards", "Every frame sent at a low rate arrives: there, back, and both ways at once.", forwards),
    Check("wiring", "Nothing comes out at a port that is not the other end of the cross-connect.", keeps_to_its_ports),
    Check("intact", "Frames of all sizes come out byte by byte as they went in, MAC addresses too.", changes_nothing),
    Check("order", "No frame overtakes another and none comes twice, flat out too.", keeps_order),
)
