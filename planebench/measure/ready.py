# SPDX-License-Identifier: BSD-3-Clause
"""Wait until frames cross a topology, not for a fixed time; if none do, find the reason."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planebench.host.deadlines import stretched
from planebench.hosting.exec import without_ports
from planebench.measure.counts import arrived, lost, untried
from planebench.measure.sending import READY_DURATION_S, READY_RATE_PPS
from planebench.model.errors import StartError, UsageError
from planebench.model.topology import Topology
from planebench.model.traffic import PLAIN, TrafficProfile
from planebench.model.wire import wire_arguments
from planebench.model.words import listed
from planebench.planed.client import RpcError
from planebench.planed.requests import get_ports
from planebench.planed.statistics import Statistics
from planebench.scenarios.flows import Flow, all_flows
from planebench.wiring.wires.base import wire_kind

if TYPE_CHECKING:
    from planebench.measure.live import LiveTopology

DROPPING_S = 2.0
"""How long a network function may drop the first frames: until others have opened the way, or addresses are known."""
PAUSE_S = 0.1
"""Between two looks at VNFs that boot: they need the CPU more."""
ROUTED = " (--traffic fib sends to addresses of its routes)"


def wait_until_forwarding(
    live: LiveTopology,
    within_s: float,
    modes: Sequence[frozenset[str]],
    profiles: Sequence[TrafficProfile],
    *,
    boots: bool,
) -> None:
    """Wait until a few frames cross in both directions: ports are up, the switch knows the flows.

    ``modes`` are the flows of each direction mode that will be measured: where network functions drop every frame of a
    flow, one mode without that flow is enough. ``profiles``: what will be sent, plain frames first. ``boots``: VNFs
    boot, so the CPU is left to them between two tries.
    Raises StartError after ``within_s`` seconds, DiedError.
    """
    wanted = all_flows(live.topology)
    begun = time.monotonic()
    within_s = stretched(within_s)
    missing = [flow.name for flow in wanted]
    silent = set(missing)
    while time.monotonic() < begun + within_s:
        live.check()
        missing, dropped, unsent = _try(live, wanted, profiles)
        silent &= unsent
        if not missing:
            return
        if dropped and time.monotonic() > begun + stretched(DROPPING_S):
            if any(mode.isdisjoint(missing) for mode in modes):
                return
            raise StartError(f"no frame came through {', '.join(missing)}: {_words(live.topology, dropped)}")
        time.sleep(PAUSE_S if boots else 0)
    if silent:
        names = ", ".join(sorted(silent))
        raise StartError(f"the tester sent no frame in {names} within {within_s:g} s: its workers had no CPU time")
    remarks = f"{_cabling(live)}{_without_ports(live.topology)}"
    raise StartError(f"no frame came through {', '.join(missing)} within {within_s:g} s{remarks}\n{live.logs()}")


def _cabling(live: LiveTopology) -> str:
    """Return what may be wrong with cables that the user named; empty for wires that planebench made."""
    if not wire_kind(live.links.wire).cables(wire_arguments(live.links.wire)):
        return ""
    ends = live.links.ends
    down = [
        f"{port['name']} ({ends[port['name']].tester})"
        for port in get_ports(live.call)
        if port["name"] in ends and not port["link_up"]
    ]
    words = f"; no link at {listed(down)}" if down else ""
    return f"{words}; is the cabling as --wire says? `planebench wires` finds it"


def _without_ports(topology: Topology) -> str:
    """Return a remark for each VNF whose command has no placeholder for its ports; empty if there is none."""
    commands = {vnf.name: str(vnf.hosting_values.get("command", "")) for vnf in topology.vnfs if vnf.hosting == "exec"}
    return "".join(f"; {name}: {doubt}" for name, command in commands.items() if (doubt := without_ports(command)))


def _try(
    live: LiveTopology, wanted: Sequence[Flow], profiles: Sequence[TrafficProfile]
) -> tuple[list[str], Mapping[str, Mapping[str, int]], set[str]]:
    """Return the flows of which no frame arrived, what functions dropped of the last frames, and flows not sent in."""
    missing = [flow.name for flow in wanted]
    silent = set(missing)
    dropped: Mapping[str, Mapping[str, int]] = {}
    for profile in profiles or (PLAIN,):
        size = max(64, profile.smallest_frame_bytes)
        try:
            frames = live.profile(profile, live.topology.chain, flat_out=False)
            stats = live.send(wanted, size, READY_DURATION_S, READY_RATE_PPS, profile=frames)
        except (UsageError, RpcError):
            silent.clear()
            continue  # its trials say what is wrong with it
        silent &= set(untried(stats, wanted))
        missing = [flow.name for flow in wanted if flow.name in missing and not _came(live.topology, stats, flow)]
        # A VNF that boots does not answer; one that lets a frame through does.
        dropped = live.policy_drops(stats, hosted=len(missing) < len(wanted))
        if not (missing and dropped):
            break
    return missing, dropped, silent


def _came(topology: Topology, stats: Statistics, flow: Flow) -> bool:
    """Return whether frames arrived; for VNFs side by side whether all did, since each has its share."""
    return arrived(stats, flow) and not (topology.side_by_side and lost(stats, flow))


def _words(topology: Topology, dropped: Mapping[str, Mapping[str, int]]) -> str:
    """Return the cause in words: ``vnf0 (firewall) dropped 200 frames: rule``."""
    kinds = {vnf.name: vnf.kind for vnf in topology.vnfs}
    return "; ".join(
        f"{name} ({kinds.get(name.partition('-')[0], '?')}) dropped {sum(reasons.values())} frames: "
        f"{', '.join(reasons)}; change its settings, or the traffic"
        f"{ROUTED if 'no_route' in reasons else ''}"
        for name, reasons in dropped.items()
    )
