# SPDX-License-Identifier: BSD-3-Clause
"""planed between the network and many VNFs: one task of kind ``fib_offload`` (docs/design/fib-offload.md).

Conventional, it gives each frame to the VNF whose MAC it has, and takes what comes back; with ``offload=fib`` it
forwards by the union of the VNFs' FIBs, and they hold only their control. It is the same program both times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planebench.planed.document import Task
from planebench.planed.requests import Call
from planebench.traffic.routes import synthetic_routes_of
from planebench.wiring.adapter import Situation
from planebench.wiring.request import SwitchRequest

TASK = "fib_offload"
LOAD_DEADLINE_S = 120.0
NEXT_HOPS = 16
PAUSED_S = 86_400
"""A topology is paused while other switches are measured; its sessions and routes must be there when it goes on."""


def refusal(situation: Situation, values: Mapping[str, Any]) -> str:
    """Return why planed with these options cannot be measured in a situation; empty if it can."""
    offload = values.get("offload")
    if not situation.side_by_side:
        return f"offload={offload} applies only to VNFs side by side (scenario parallel)" if offload else ""
    if values.get("workers", 1) > 1:
        return "with VNFs side by side planed has one worker; remove workers"
    if "drop_one_in" in values:
        return "drop_one_in applies to patch tasks, which VNFs side by side do not have; remove it"
    if offload and not synthetic_routes_of(situation.chain):
        return (
            f"offload={offload} forwards by the VNFs' FIBs, so the VNFs must be routers with known routes, e.g. "
            "--chain l3fwd:fib=cuckoo:synthetic=1M"
        )
    return ""


def words(request: SwitchRequest, offload: str | None) -> str:
    """Return the forwarding function for the manifest."""
    count = len(request.stations)
    if offload is None:
        return f"fib_offload: frames to {count} VNFs by MAC, and back; each forwards in a process of its own"
    return f"fib_offload: forwards by the FIBs of {count} VNFs, which hold control only"


def task(request: SwitchRequest, offload: str | None) -> Task:
    """Return the one task, without its burst."""
    wires = [port.name for port in request.ports if port.kind != "vhost-user"]
    routes = sum(station.routes for station in request.stations) if offload else 0
    vnfs = [
        {
            "vnf": number,
            "port": station.port,
            "mac": station.mac,
            "wires": wires,
            "offload": offload is not None,
            "quota_routes": max(station.routes, 1),
            "quota_next_hops": NEXT_HOPS,
            "grace_s": PAUSED_S,
            "hold_s": PAUSED_S,
        }
        for number, station in enumerate(request.stations, start=1)
    ]
    settings = {"wires": wires, "routes4": max(routes, 1024), "routes6": 0, "vnfs": vnfs}
    return Task(TASK, TASK, tuple(port.name for port in request.ports), settings=settings)


def load(call: Call, request: SwitchRequest, offload: str | None) -> None:
    """Load the FIBs of all VNFs into the forwarder; every route leads to the monitor. Raises RpcError."""
    wire = [port.name for port in request.ports if port.kind != "vhost-user"][-1:]
    for number, station in enumerate(request.stations if offload else (), start=1):
        params = {
            "task": TASK,
            "vnf": number,
            "routes": station.routes,
            "wire": wire[0],
            "mac": request.monitor_mac,
        }
        call(f"{TASK}.load_synthetic", params, timeout_s=LOAD_DEADLINE_S)
