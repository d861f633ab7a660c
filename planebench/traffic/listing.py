# SPDX-License-Identifier: BSD-3-Clause
"""``planebench list traffic``: the profiles, their mean frame size, and what varies in them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from planebench.model.header import TrafficInfo
from planebench.model.traffic import PLAIN, PLAIN_NAME, TrafficProfile
from planebench.traffic.registry import list_profiles, sample


def traffic_rows() -> list[dict[str, Any]]:
    """Return a row for each profile of planebench."""
    profiles = {PLAIN_NAME: PLAIN} | {name: sample(name) for name in list_profiles()}
    return [
        {"traffic": name, "mean frame": mean_words(name, it), "varies": ", ".join(varies(it)), "what": it.summary}
        for name, it in profiles.items()
    ]


def traffic_infos(profiles: Iterable[TrafficProfile]) -> tuple[TrafficInfo, ...]:
    """Return the profiles of a plan for the run header, without settings that are as in plain frames."""
    usual = asdict(PLAIN)
    return tuple(
        TrafficInfo(
            it.name,
            it.summary,
            it.mean_frame_bytes,
            {
                key: json.dumps(value)
                for key, value in asdict(it).items()
                if key not in ("name", "summary") and value != usual[key]
            },
        )
        for it in profiles
        if not it.plain
    )


def mean_words(name: str, profile: TrafficProfile) -> str:
    """Return e.g. ``361.8 B``, or words for frames with the size of the point or of a file."""
    if name == "pcap":
        return "of the file"
    mean = profile.mean_frame_bytes
    return "each frame size" if mean is None else f"{mean:.1f} B"


def varies(profile: TrafficProfile) -> list[str]:
    """Return what differs from frame to frame, and from plain frames."""
    words = ["frame size"] if profile.sizes else []
    if profile.flows is not None:
        words.append(f"{profile.flows.count} flows ({profile.flows.draw.replace('_', ' ')})")
    macs = len(profile.dst_macs) or profile.dst_mac_count
    if macs:
        words.append(f"{macs} destination MACs")
    if profile.dst_ips is not None:
        number = f"{profile.dst_ips.fib} " if profile.dst_ips.fib else ""
        words.append(f"{number}destination IPs")
    if profile.headers != PLAIN.headers:
        words.append(profile.headers)
    if profile.arrival is not None:
        words.append(f"arrival: {profile.arrival.process.replace('_', ' ')}")
    if profile.updates is not None:
        rate = "flat out" if profile.updates == "flat_out" else f"{profile.updates:g}/s"
        words.append(f"FIB updates: {rate}")
    if profile.control_pps is not None:
        words.append(f"control packets: {profile.control_pps:g}/s")
    return words
