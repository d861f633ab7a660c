# SPDX-License-Identifier: BSD-3-Clause
"""A profile as planed's generators take it: the ``profile`` object of traffic.start, and its files.

Files are captures, lists of addresses, and destinations for a router under test, which are drawn from the prefixes of
its own table, as planed reads it. Prefixes are drawn uniformly, seeded, and in each one random host address. Only those
drawn are parsed: a table of a million routes takes a second or two, as many addresses some more. What an address is
routed by may be a more specific route of the same table.
"""

from __future__ import annotations

import hashlib
import json
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from planebench.host.planed_program import Facts, planed_facts
from planebench.model.errors import UsageError
from planebench.model.scenarios import FRAME_SIZE_JUMBO_BYTES, FRAME_SIZE_MAX_BYTES
from planebench.model.topology import Topology
from planebench.model.traffic import ADDRESSES_MAX, Destinations, Entries, Pcap, TrafficProfile
from planebench.model.wire import wire_named
from planebench.testbed.chain import parse_chain

TRIES = 64
"""A prefix may hold addresses that no router forwards; so often another of its addresses is tried."""

SYNTHETIC_FIRST = "10.0.0.0"
"""Route i of a synthetic FIB (docs/fib-offload.md) is that of this address + i."""

Ip = Literal[4, 6]

_FAMILY: dict[Ip, socket.AddressFamily] = {4: socket.AF_INET, 6: socket.AF_INET6}
_BITS: dict[Ip, int] = {4: 32, 6: 128}


SKIPPED = {
    "truncated": "end within their headers",
    "not_ip": "are not IPv4 or IPv6",
    "not_udp_tcp": "are neither UDP nor TCP",
    "fragment": "are fragments",
    "ipv6_extension": "have IPv6 extension headers",
}
ProfileDocument = dict[str, Any]


def router_settings(chain: str) -> dict[str, Any]:
    """Return the settings of the first router of a chain; empty for its defaults, or without a router."""
    return next((vnf.settings() for vnf in parse_chain(chain) if vnf.kind.router), {}) if chain else {}


def synthetic_routes_of(chain: str) -> int:
    """Return the number of routes of the synthetic FIB of the first router of a chain; 0 without one."""
    return int(router_settings(chain).get("synthetic", 0))


def draw_addresses(settings: Mapping[str, Any], ip: Ip, entries: Entries, seed: int) -> list[str]:
    """Return so many addresses in the routes of a router with these settings. Raises UsageError."""
    rng = random.Random(seed)
    file = settings.get("routes_file")
    where = f"routes {file}" if file else "the routes of the router"
    prefixes: list[str] = planed_facts("l3fwd", settings, [Path(file)] if file else [])["prefixes"]
    candidates = [prefix for prefix in prefixes if (":" in prefix) == (ip == 6)]
    if not candidates:
        raise UsageError(f"{where}: there is no IPv{ip} prefix to draw addresses from; add one, or set ip")
    count = len(candidates) if entries == "all" else entries
    if count > ADDRESSES_MAX:
        raise UsageError(f"{where}: at most {ADDRESSES_MAX} addresses are drawn from a table; give a smaller count")
    drawn = rng.sample(candidates, count) if count <= len(candidates) else rng.choices(candidates, k=count)
    return [_address(text, ip, rng, candidates, where) for text in drawn]


def _address(prefix: str, ip: Ip, rng: random.Random, candidates: Sequence[str], where: str) -> str:
    """Return a host address in this prefix, or in another one if a router forwards none in it."""
    for _ in range(TRIES):
        first, _, length = prefix.partition("/")
        network, host_bits = int.from_bytes(socket.inet_pton(_FAMILY[ip], first), "big"), _BITS[ip] - int(length)
        for _ in range(TRIES):
            address = network | rng.getrandbits(host_bits) if host_bits else network
            # RFC 1812 section 5.3.7, RFC 3927 section 7, and RFC 4291 sections 2.5 and 2.7 allow forwarding.
            if ip == 4:
                forwarded = address >> 24 not in (0, 127) and address >> 24 < 224 and address >> 16 != 0xA9FE
            else:
                forwarded = address > 1 and address >> 120 != 0xFF and address >> 118 != 0xFE80 >> 6
            if forwarded:
                return socket.inet_ntop(_FAMILY[ip], address.to_bytes(_BITS[ip] // 8, "big"))
        prefix = rng.choice(candidates)
    raise UsageError(f"{where}: no routable IPv{ip} prefix found; use another table")


def on_wire(profile: TrafficProfile, wire: str) -> TrafficProfile:
    """Return a profile with the figures of its capture on a wire; without a capture, read the files that it names.

    Raises UsageError for a file that planed refuses, NotInstalledError if planed is needed and not there.
    """
    try:
        if profile.pcap is None:
            wanted = profile.dst_ips
            if wanted is not None and wanted.path and wanted.fib is None:
                planed_facts("generator", {"ip": profile.ip, "dst_ips_file": wanted.path}, [Path(wanted.path)])
            elif wanted is not None and wanted.path and wanted.fib is not None:
                draw_addresses({"routes_file": wanted.path}, profile.ip, wanted.fib, profile.seed)
            return profile
        standard = bool(wire_named(wire).standard_frames_driver)
        most = FRAME_SIZE_MAX_BYTES if standard else FRAME_SIZE_JUMBO_BYTES
        pcap = replace(profile.pcap, frame_bytes_max=most)
        facts = planed_facts("generator", {"pcap": pcap_document(pcap)}, [Path(pcap.path)])
    except UsageError as error:
        raise UsageError(f"traffic {profile.name}: {error}") from None
    found = facts["pcap"]
    pcap = replace(
        pcap,
        frames=found["frames"],
        mean_frame_bytes=facts["mean_frame_bytes"],
        max_frame_bytes=facts["max_frame_bytes"],
        frames_in_file=found["frames_in_file"],
        skipped=tuple((reason, count) for reason, count in found["skipped"].items() if count),
        times_fallen=found["times_fallen"],
        times_impossible=found["times_impossible"],
    )
    return replace(profile, pcap=pcap)


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


def profile_document(profile: TrafficProfile, workdir: Path, chain: str, *, flat_out: bool) -> ProfileDocument | None:
    """Return the object for planed; None for plain frames. Write a list of addresses to ``workdir`` once.

    At maximum offered load there are no times between frames, and no arrival process. Raises UsageError for a bad file
    of routes.
    """
    if profile.plain:
        return None
    document: ProfileDocument = {"seed": profile.seed}
    if profile.pcap is not None:
        document["pcap"] = pcap_document(profile.pcap)
    else:
        document |= {"ip": profile.ip, "transport": profile.transport}
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
    if profile.sizes:
        document["sizes"] = [list(pair) for pair in profile.sizes]
    if profile.dst_ips is not None:
        document |= _destinations(profile.dst_ips, profile, workdir, chain)
    arrival = profile.arrival
    if arrival is not None and not flat_out:
        document["arrival"] = {"process": arrival.process}
        if arrival.process == "on_off":
            document["arrival"] |= {"on_ns": arrival.on_ns, "off_ns": arrival.off_ns}
    return document


def to_vnfs(
    document: ProfileDocument | None, profile: TrafficProfile, topology: Topology, workdir: Path
) -> ProfileDocument:
    """Return the document with the MACs of VNFs side by side as destinations, in turn.

    For routers with a synthetic FIB, destination addresses are drawn from all of it (each has the same addresses; a
    bare function has the routes of all in one table), unless the profile says from how much, or has its own.
    """
    made: ProfileDocument = {"seed": profile.seed} if document is None else dict(document)
    made.pop("dst_mac_count", None)
    made["dst_macs"] = list(topology.destinations)
    wanted = profile.dst_ips or Destinations(fib="all")
    if topology.routes and wanted.fib is not None and not wanted.path:
        made["dst_ips"] = _synthetic_range(topology.routes, wanted.fib, len(topology.macs) or 1)
        made["dst_ips"]["of_each_mac"] = topology.bare is None
    return made


def _synthetic_range(routes: int, entries: Entries, vnfs: int = 1) -> ProfileDocument:
    count = routes if entries == "all" else min(routes, entries * vnfs)
    return {"first": SYNTHETIC_FIRST, "count": count}


def _destinations(wanted: Destinations, profile: TrafficProfile, workdir: Path, chain: str) -> ProfileDocument:
    """Return the range of a synthetic FIB, or the file of addresses: the user's own, or one drawn from routes and made
    on first use."""
    if wanted.fib is None:
        return {"dst_ips_file": wanted.path}
    settings = {"routes_file": wanted.path} if wanted.path else router_settings(chain)
    if "synthetic" in settings:
        return {"dst_ips": _synthetic_range(int(settings["synthetic"]), wanted.fib)}
    drawn_from = f"{json.dumps(settings)} {profile.ip} {wanted.fib} {profile.seed}"
    path = workdir / f"ips-{hashlib.sha256(drawn_from.encode()).hexdigest()[:12]}.txt"
    if not path.exists():
        addresses = draw_addresses(settings, profile.ip, wanted.fib, profile.seed)
        path.write_text("\n".join(addresses) + "\n", encoding="ascii")
    return {"dst_ips_file": str(path)}
