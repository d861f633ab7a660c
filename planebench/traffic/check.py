# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a profile fits the other parameters, before anything starts."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.errors import UsageError
from planebench.model.traffic import TrafficProfile
from planebench.model.wire import wire_named
from planebench.scenarios.registry import FRAME_SIZE_JUMBO_BYTES, FRAME_SIZE_MAX_BYTES


def check_sizes(profile: TrafficProfile, frame_sizes_bytes: Sequence[int]) -> None:
    """Raise UsageError if the headers of a profile do not fit its own sizes, or those of its points.

    Short frames of a capture are enlarged, long ones skipped, and both are counted.
    """
    if profile.pcap is not None:
        return
    sizes = [size for size, _ in profile.sizes] or list(frame_sizes_bytes)
    least = profile.smallest_frame_bytes
    short = [size for size in sizes if size < least]
    if short:
        where = "sizes" if profile.sizes else "--frame-size"
        raise UsageError(
            f"traffic {profile.name or 'plain'}: frames of {short[0]} B are too short for {profile.headers} headers "
            f"and the tester's 18 bytes. Use {least} B or more for {where}"
        )


def check_wire(wire: str, profile: TrafficProfile, frame_sizes_bytes: Sequence[int]) -> None:
    """Raise UsageError for frames that DPDK's driver of a wire refuses. Those of a capture are skipped and counted."""
    kind = wire_named(wire)
    if not kind.standard_frames_driver:
        return
    largest = largest_frame_bytes(profile, frame_sizes_bytes)
    if profile.pcap is None and largest > FRAME_SIZE_MAX_BYTES:
        what = f"traffic {profile.name}: " if profile.name else ""
        raise UsageError(
            f"{what}frames of {largest} B do not fit the {kind.name} wire, which carries at most "
            f"{FRAME_SIZE_MAX_BYTES} (DPDK's {kind.standard_frames_driver} driver): use "
            "--wire virtio, or smaller frames"
        )


def check_methods(profile: TrafficProfile, searches: Sequence[str], loads: Sequence[float], rate_set: bool) -> None:
    """Raise UsageError if a method needs to set a load, but the frames of a capture have recorded times."""
    if not profile.recorded:
        return
    asked = "a search" if searches else "latency at loads" if loads else "a highest rate" if rate_set else ""
    if asked:
        raise UsageError(
            f"traffic {profile.name}: its frames have recorded times, so no load can be set for {asked}; remove "
            "scale, rate and timing, or use --loads none without --search, --max-rate and --line"
        )


def largest_frame_bytes(profile: TrafficProfile, frame_sizes_bytes: Sequence[int]) -> int:
    """Return the largest frame for ports; of a capture at most a jumbo frame: the generator skips larger ones."""
    sizes = [size for given in frame_sizes_bytes or (0,) for size in profile.sizes_at(given)]
    return min(max(sizes), FRAME_SIZE_JUMBO_BYTES)
