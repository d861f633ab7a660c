# SPDX-License-Identifier: BSD-3-Clause
"""The files of a profile as planed takes them: what it sends of a capture on a wire, and lists of addresses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from planebench.model.errors import UsageError
from planebench.model.traffic import Pcap, TrafficProfile
from planebench.model.wire import wire_named
from planebench.planed.facts import Facts, planed_facts
from planebench.scenarios.registry import FRAME_SIZE_JUMBO_BYTES, FRAME_SIZE_MAX_BYTES
from planebench.traffic.routes import draw_addresses

SKIPPED = {
    "truncated": "end within their headers",
    "not_ip": "are not IPv4 or IPv6",
    "not_udp_tcp": "are neither UDP nor TCP",
    "fragment": "are fragments",
    "ipv6_extension": "have IPv6 extension headers",
}


def on_wire(profile: TrafficProfile, wire: str) -> TrafficProfile:
    """Return a profile with the figures of its capture on a wire.

    Raises UsageError for a file that planed refuses, NotInstalledError if planed is needed and not there.
    """
    try:
        if profile.pcap is not None:
            return replace(profile, pcap=_on_wire(profile.pcap, wire))
        _check_addresses(profile)
    except UsageError as error:
        raise UsageError(f"traffic {profile.name}: {error}") from None
    return profile


def pcap_document(pcap: Pcap) -> Facts:
    """Return the object ``pcap`` of a profile for planed."""
    document: Facts = {"path": pcap.path, "timing": pcap.timing, "frame_bytes_max": pcap.frame_bytes_max}
    if pcap.rate_pps is not None:
        document["rate_pps"] = pcap.rate_pps
    elif pcap.timing == "recorded":
        document["time_scale"] = pcap.time_scale
    return document


def remarks(profile: TrafficProfile) -> Iterator[str]:
    """Yield a sentence about the frames of a capture that are not sent, and about time stamps that are not believed."""
    pcap = profile.pcap
    if pcap is None:
        return
    if pcap.skipped:
        too_long = {"too_long": f"are longer than the {pcap.frame_bytes_max} B of this wire"}
        why = ", ".join(f"{count} {(SKIPPED | too_long).get(reason, reason)}" for reason, count in pcap.skipped)
        skipped = sum(count for _, count in pcap.skipped)
        yield f"traffic {profile.name}: {skipped} of {pcap.frames_in_file} frames are not sent: {why}"
    if pcap.times_fallen or pcap.times_impossible:
        yield (
            f"traffic {profile.name}: of {pcap.frames} time stamps, {pcap.times_fallen} fall and "
            f"{pcap.times_impossible} cannot be or come after more than an hour; with recorded times, such frames "
            "follow at once"
        )


def _on_wire(pcap: Pcap, wire: str) -> Pcap:
    standard = bool(wire_named(wire).standard_frames_driver)
    asked = replace(pcap, frame_bytes_max=FRAME_SIZE_MAX_BYTES if standard else FRAME_SIZE_JUMBO_BYTES)
    facts = planed_facts("generator", {"pcap": pcap_document(asked)}, [Path(pcap.path)])
    found = facts["pcap"]
    return replace(
        asked,
        frames=found["frames"],
        mean_frame_bytes=facts["mean_frame_bytes"],
        max_frame_bytes=facts["max_frame_bytes"],
        frames_in_file=found["frames_in_file"],
        skipped=tuple((reason, count) for reason, count in found["skipped"].items() if count),
        times_fallen=found["times_fallen"],
        times_impossible=found["times_impossible"],
    )


def _check_addresses(profile: TrafficProfile) -> None:
    """Read the files that a profile without a capture names: destination addresses, or routes to draw them from."""
    wanted = profile.dst_ips
    if wanted is None or not wanted.path:
        return
    if wanted.fib is None:
        planed_facts("generator", {"ip": profile.ip, "dst_ips_file": wanted.path}, [Path(wanted.path)])
    else:
        draw_addresses({"routes_file": wanted.path}, profile.ip, wanted.fib, profile.seed)
