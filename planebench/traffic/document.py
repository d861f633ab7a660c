# SPDX-License-Identifier: BSD-3-Clause
"""A profile for planed's generators: the ``profile`` object of traffic.start, and its files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from planebench.model.topology import Topology
from planebench.model.traffic import FIB_ADDRESSES, Destinations, TrafficProfile
from planebench.traffic.capture import pcap_document
from planebench.traffic.routes import draw_addresses, router_settings, write_addresses

Document = dict[str, Any]


def profile_document(profile: TrafficProfile, workdir: Path, chain: str, *, flat_out: bool) -> Document | None:
    """Return the object for planed; None for plain frames. Write a list of addresses to ``workdir`` once.

    At maximum offered load there are no times between frames, and no arrival process. Raises UsageError for a bad file
    of routes.
    """
    if profile.plain:
        return None
    document: Document = {"seed": profile.seed}
    if profile.pcap is not None:
        document["pcap"] = pcap_document(profile.pcap)
    else:
        document |= _headers(profile)
    if profile.sizes:
        document["sizes"] = [list(pair) for pair in profile.sizes]
    if profile.dst_ips is not None:
        document["dst_ips_file"] = str(_addresses(profile, workdir, chain))
    if profile.arrival is not None and not flat_out:
        document["arrival"] = _arrival(profile)
    return document


def to_vnfs(document: Document | None, profile: TrafficProfile, topology: Topology, workdir: Path) -> Document:
    """Return the document with the MACs of VNFs side by side as destinations, in turn.

    For routers with a synthetic FIB, destination addresses are drawn from it (all have the same one, so any address
    goes with any MAC; a bare function has all of them in one), unless the profile has its own.
    """
    made: Document = {"seed": profile.seed} if document is None else dict(document)
    made.pop("dst_mac_count", None)
    made["dst_macs"] = list(topology.destinations)
    wanted = profile.dst_ips or Destinations(fib=FIB_ADDRESSES)
    if topology.routes and wanted.fib is not None and not wanted.path:
        drawn = replace(profile, dst_ips=wanted)
        made["dst_ips_file"] = str(_addresses(drawn, workdir, topology.chain, topology.routes))
    return made


def _headers(profile: TrafficProfile) -> Document:
    document: Document = {"ip": profile.ip, "transport": profile.transport}
    if profile.vlan is not None:
        document["vlan"] = profile.vlan
    if profile.flows is not None:
        flows = profile.flows
        document["flows"] = {"count": flows.count, "draw": flows.draw}
        if flows.draw == "zipf":
            document["flows"]["exponent"] = flows.exponent
    if profile.dst_macs:
        document["dst_macs"] = list(profile.dst_macs)
    if profile.dst_mac_count is not None:
        document["dst_mac_count"] = profile.dst_mac_count
    return document


def _arrival(profile: TrafficProfile) -> Document:
    assert profile.arrival is not None
    document: Document = {"process": profile.arrival.process}
    if profile.arrival.process == "on_off":
        document |= {"on_ns": profile.arrival.on_ns, "off_ns": profile.arrival.off_ns}
    return document


def _addresses(profile: TrafficProfile, workdir: Path, chain: str, synthetic: int = 0) -> Path:
    """Return the file of addresses: the user's own, or one drawn from routes and made on first use.

    ``synthetic``: the number of routes of a synthetic FIB; 0 for that of the chain.
    """
    wanted = profile.dst_ips
    assert wanted is not None
    if wanted.fib is None:
        return Path(wanted.path)
    if wanted.path:
        settings: Document = {"routes_file": wanted.path}
    else:
        settings = {"synthetic": synthetic} if synthetic else router_settings(chain)
    drawn_from = f"{json.dumps(settings)} {profile.ip} {wanted.fib} {profile.seed}"
    path = workdir / f"ips-{hashlib.sha256(drawn_from.encode()).hexdigest()[:12]}.txt"
    if not path.exists():
        write_addresses(path, draw_addresses(settings, profile.ip, wanted.fib, profile.seed))
    return path
