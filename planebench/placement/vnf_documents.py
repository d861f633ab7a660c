# SPDX-License-Identifier: BSD-3-Clause
"""The planed documents of VNFs side by side: each is a process of its own with one port and one task. Pure."""

from __future__ import annotations

from typing import Any

from planebench.placement.memory import memory
from planebench.placement.place import Placement
from planebench.placement.tester_config import LinkSettings
from planebench.planed import PROTOCOL_VERSION
from planebench.scenarios import Topology, Vnf
from planebench.scenarios.topology import MONITOR_MAC

Document = dict[str, Any]

NAME_MAX = 31
CACHED_MBUFS = 256
"""What a function with one port holds beside its rings: frames lie in the rings' own buffers."""


def vnf_documents(topology: Topology, placement: Placement, links: LinkSettings) -> tuple[Document, ...]:
    """One a VNF, in their order, with the worker on the VNF's CPU."""
    return tuple(
        _document(vnf, number, cpu, links)
        for number, (vnf, cpu) in enumerate(zip(topology.vnfs, placement.vnf_cpus, strict=True))
    )


def waiting(document: Document) -> Document:
    """The same before anything polls: only its port. Those that are up must not take the CPU of those that come."""
    return {**document, "tasks": [], "workers": []}


def _document(vnf: Vnf, number: int, cpu: int, links: LinkSettings) -> Document:
    port = vnf.ports[0]
    task: Document = {"name": vnf.name, "kind": vnf.kind, "ports": [port], "peer_macs": [MONITOR_MAC, MONITOR_MAC]}
    if vnf.settings:
        task["settings"] = dict(vnf.settings)
    suffix = f"-v{number}"
    document: Document = {
        "version": PROTOCOL_VERSION,
        "name": links.name[: NAME_MAX - len(suffix)] + suffix,
        "memory": memory(
            ports=1,
            ring_size=links.ring_size,
            max_frame_bytes=links.max_frame_bytes,
            hugepages=False,
            pools=1,
            vnf_bytes=vnf.memory_bytes,
            cached_mbufs=CACHED_MBUFS,
        ),
        "ports": [
            {
                "name": port,
                "kind": "virtio-user",
                "path": str(links.socket(port)),
                "ring_size": links.ring_size,
                "mac": vnf.mac,
            }
        ],
        "tasks": [task],
        "workers": [{"name": f"w-{vnf.name}", "cpu": cpu, "tasks": [vnf.name]}],
    }
    if links.nice is not None:
        document["nice"] = links.nice
    return document
