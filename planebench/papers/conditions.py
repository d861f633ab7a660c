# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of a paper that a claim names, and what a run has in their place. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planebench.papers.claims import Claim, ClaimCondition
from planebench.papers.data import paper_versions
from planebench.papers.measured import RunFigures

LINE_BPS = 1e10
"""The speed of the papers' NICs."""
RINGS = (256, "own")
"""Entries at the papers' VNFs, QEMU's default; and at wires: what each switch has at a NIC."""


def differing(claim: Claim, measured: RunFigures) -> dict[str, str]:
    """Return the conditions that a claim names, or every claim has, and a run has not, each with what the run has."""
    header, trials = measured.derived.run.header, measured.derived.run.trials
    settings, wire = header.settings, header.wire
    speed, of_vnfs, of_wires = map(settings.get, ("line_bps", "ring_size", "wire_ring_size"))
    fast = speed >= LINE_BPS if isinstance(speed, int | float) else wire is None or not wire.replaces_nics
    of_bess = [it.adapter for it in header.switches if measured.adapters.get(it.label) == "bess"]
    rings = (
        f"rings of {of_vnfs} at VNFs and {of_wires or of_vnfs} at NICs (the paper: {RINGS[0]}, and each switch's own)"
    )
    here: Mapping[ClaimCondition, tuple[bool, str]] = {
        "line": (
            not (fast and settings.get("open_loop")),
            "a closed loop (--open-loop)" if fast else "no line of 10 Gb/s (NICs, or --line 10G)",
        ),
        "rings": ((of_vnfs, of_wires) != RINGS, rings),
        "batching": (not settings.get("send_burst"), "VNFs that send at once (no send_burst)"),
        "ports": (wire is not None and wire.vnf_ports, "one kind of port for NICs and VNFs (another wire)"),
        "nics": (wire is not None and wire.replaces_nics, f"{wire and wire.name} in place of NICs (--wire pci)"),
        "stamps": (settings.get("clock") != "hardware", "time stamps of software (--clock hardware)"),
        "hops": (
            not all("serve=hops" in adapter for adapter in of_bess),
            "one worker of BESS for all hops (--switch bess:serve=hops)",
        ),
        "entries": (
            any(it.dst_ips_sent is not None for t in trials if "fib=" in t.point.chain for it in t.sent),
            "addresses of a part of the routes",
        ),
        "versions": (bool(later := _versions(claim, measured)), later),
        "cores": (
            header.plan.switch_cores != 1 and claim.paper != "can17",
            "one core (no --switch-cores)",
        ),
    }
    return {name: here[name][1] for name in (*claim.conditions, "cores") if here[name][0]}


def _versions(claim: Claim, measured: RunFigures) -> str:
    """Return the switches of a claim whose versions are not those of the paper."""
    published, others = paper_versions(claim.paper), list[str]()
    about = {*claim.switches, *(claim.compare.rivals if claim.compare else ())} or set(published)
    for switch in measured.derived.run.header.switches:
        name = measured.adapters.get(switch.label, "")
        wanted = published.get(name, "")
        # v0.4.0-233-g1234567 is 233 commits after v0.4.0.
        if name in about and wanted and not re.search(rf"(?<!\d){re.escape(wanted)}(?!\d|-\d)", switch.version):
            others.append(f"{name} {switch.version} (the paper: {wanted})")
    return ", ".join(dict.fromkeys(others))
