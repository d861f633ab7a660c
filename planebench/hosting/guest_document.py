# SPDX-License-Identifier: BSD-3-Clause
"""What planed in a guest is given: its document with the ports and CPUs that it sees there, and the guest's memory.

Pure. DPDK drives the guest's NICs through hugepages, whose physical addresses the switch is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planebench.hosting.base import Document, HostedPort
from planebench.hosting.qemu import pci_address
from planebench.model.errors import StartError

HUGEPAGE_MB = 2
LINUX_MB = 128
"""What the guest needs beside planed's hugepages and its files: the kernel, page tables, room to allocate in."""
FILE_COPIES = 3
"""Of each file: in the archive as QEMU gives it, in the root file system, and as a program reads it in."""
_NOT_OF_PCI = ("path", "backend", "mac")
"""Keys of a virtio-user port that a NIC has of itself, or not at all."""
_NOT_IN_A_GUEST = ("nice",)
"""There its workers compete with nobody but planed's own control, which a higher priority would keep from answering."""


def guest_document(
    document: Document, ports: Sequence[HostedPort], cpus: Sequence[int], first_vcpu: int
) -> dict[str, Any]:
    """The same functions with the same settings, at the guest's NICs, on hugepages.

    Worker CPUs are among ``cpus``, whose places in the guest begin with ``first_vcpu``. StartError for a port that
    the VNF has not got.
    """
    slots = {port.name: pci_address(number) for number, port in enumerate(ports)}
    vcpu = {cpu: first_vcpu + number for number, cpu in enumerate(cpus)}
    kept = {key: value for key, value in document.items() if key not in _NOT_IN_A_GUEST}
    return {
        **kept,
        "memory": {**document["memory"], "hugepages": True},
        "ports": [_port(port, slots) for port in document["ports"]],
        "workers": [{**worker, "cpu": vcpu[worker["cpu"]]} for worker in document["workers"]],
    }


def _port(port: Document, slots: dict[str, str]) -> dict[str, Any]:
    name = port["name"]
    if name not in slots:
        raise StartError(f"port {name} of the VNF's document is none of its ports ({', '.join(slots)})")
    kept = {key: value for key, value in port.items() if key not in _NOT_OF_PCI}
    return {**kept, "kind": "ethdev", "device": slots[name]}


def hugepages(document: Document) -> int:
    """Pages of 2 MiB that planed takes with this document."""
    return -(-int(document["memory"]["size_mb"]) // HUGEPAGE_MB)


def least_memory_mb(document: Document, files_bytes: int) -> int:
    """The smallest guest in which it comes up, with files of so many bytes."""
    return LINUX_MB + hugepages(document) * HUGEPAGE_MB + FILE_COPIES * -(-files_bytes // 2**20)
