# SPDX-License-Identifier: BSD-3-Clause
"""planed between the network and many VNFs: one task of kind ``fib_offload`` (docs/design/fib-offload.md).

Conventional, it gives each frame to the VNF whose MAC it has, and takes what comes back; with ``offload=fib`` it
forwards by the union of the VNFs' FIBs, and they hold only their control. It is the same program both times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planebench.planed.document import Document, Memory, Port, Task
from planebench.planed.requests import Call
from planebench.switches import common
from planebench.traffic.routes import synthetic_routes_of
from planebench.wiring.adapter import Situation
from planebench.wiring.request import SwitchRequest

TASK = "fib_offload"
NIC_PORT, NIC_TASK = "nic", "veb"
"""The port and the task of an emulated NIC (its virtual Ethernet bridge)."""
LOAD_DEADLINE_S = 120.0
NEXT_HOPS = 16
PAUSED_S = 86_400
"""A topology is paused while other switches are measured; its sessions and routes must be there when it goes on."""


def station_refusal(situation: Situation, values: Mapping[str, Any]) -> str:
    """Return why planed with these options cannot be measured in a situation; empty if it can."""
    offload = values.get("offload")
    if situation.bare:
        keys = ("offload", "nic", "function", "workers", "drop_one_in", "guest_offloads")
        given = [key for key in keys if key in values]
        return f"bare is one network function without a switch; remove {given[0]}" if given else ""
    if not situation.side_by_side:
        given = [f"{key}={values[key]}" for key in ("offload", "nic") if key in values]
        return f"{given[0]} applies only to VNFs side by side (scenario parallel)" if given else ""
    if values.get("workers", 1) > 1:
        return "with VNFs side by side planed has one worker; remove workers"
    if values.get("guest_offloads") == "on":
        return "with VNFs side by side planed passes no offloads on; remove guest_offloads"
    if values.get("nic") and offload:
        return "a NIC does not forward in place of its VNFs; remove nic or offload"
    if "drop_one_in" in values:
        return "drop_one_in applies to patch tasks, which VNFs side by side do not have; remove it"
    if offload and not synthetic_routes_of(situation.chain):
        return (
            f"offload={offload} forwards by the VNFs' FIBs, so the VNFs must be routers with known routes, e.g. "
            "--chain l3fwd:fib=cuckoo:synthetic=1M"
        )
    return ""


def words(request: SwitchRequest, offload: str | None, nic: str | None = None) -> str:
    """Return the forwarding function for the manifest."""
    count = len(request.stations)
    if nic is not None:
        return (
            f"none: a NIC that switches is emulated by a task of the tester, on its core; frames to {count} VNFs by "
            "MAC, replies leave by the same port"
        )
    if offload is None:
        return f"fib_offload: frames to {count} VNFs by MAC, and back; each forwards in a process of its own"
    return f"fib_offload: forwards by the FIBs of {count} VNFs, which hold control only"


def station_task(request: SwitchRequest, offload: str | None) -> Task:
    """Return the one task, without its burst."""
    wires = [port.name for port in request.ports if not port.of_vnf]
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


def station_nic(request: SwitchRequest) -> Document:
    """Return the ports and the task of an emulated NIC, for the tester: one memif, and a virtual function for each VNF.

    It forwards as planed does between the network and VNFs, so that both differ only in whose core that takes.
    """
    wire, vnfs = request.ports[0], [port for port in request.ports if port.of_vnf]
    names = {port.name: f"vf{number}" for number, port in enumerate(vnfs)}
    inner = replace(
        request,
        ports=(replace(wire, name=NIC_PORT), *(replace(port, name=names[port.name]) for port in vnfs)),
        stations=tuple(replace(station, port=names[station.port]) for station in request.stations),
    )
    ports = (
        Port(NIC_PORT, "memif-client", wire.ring_size, path=common.socket_path(wire)),
        *(Port(names[port.name], "vhost-user", port.ring_size, path=common.socket_path(port)) for port in vnfs),
    )
    return Document(NIC_PORT, Memory(False, 0, 0, 0), ports, (replace(task(inner, None), name=NIC_TASK),))


def load(call: Call, request: SwitchRequest, offload: str | None) -> None:
    """Load the FIBs of all VNFs into the forwarder; every route leads to the monitor. Raises RpcError."""
    wire = [port.name for port in request.ports if not port.of_vnf][-1:]
    for number, station in enumerate(request.stations if offload else (), start=1):
        params = {
            "task": TASK,
            "vnf": number,
            "routes": station.routes,
            "wire": wire[0],
            "mac": request.monitor_mac,
        }
        call(f"{TASK}.load_synthetic", params, timeout_s=LOAD_DEADLINE_S)
