# SPDX-License-Identifier: BSD-3-Clause
"""Describe what planed in a guest is given: its document with the ports and CPUs that it sees there, and the guest's
memory.

Pure. DPDK drives the guest's NICs through hugepages, whose physical addresses the switch is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planebench.hosting.base import HostedPort
from planebench.hosting.qemu import pci_address
from planebench.model.errors import StartError
from planebench.planed.document import Document, Port

HUGEPAGE_MB = 2
LINUX_MB = 128
"""What the guest needs beside planed's hugepages and its files: the kernel, page tables, room to allocate in."""
FILE_COPIES = 3
"""Of each file: in the archive as QEMU gives it, in the root file system, and as a program reads it in."""


def guest_document(document: Document, ports: Sequence[HostedPort], cpus: Sequence[int], first_vcpu: int) -> Document:
    """Return the same functions with the same settings, at the guest's NICs, on hugepages.

    Worker CPUs are among ``cpus``, whose places in the guest begin with ``first_vcpu``. Raise StartError for a port
    that the VNF does not have. The priority of the workers is left alone: in the guest they compete with nobody but
    planed's own control, which a higher one would keep from answering.
    """
    slots = {port.name: pci_address(number) for number, port in enumerate(ports)}
    vcpu = {cpu: first_vcpu + number for number, cpu in enumerate(cpus)}
    return replace(
        document,
        memory=replace(document.memory, hugepages=True),
        ports=tuple(_port(port, slots) for port in document.ports),
        workers=tuple(replace(worker, cpu=vcpu[worker.cpu]) for worker in document.workers),
        nice=None,
    )


def _port(port: Port, slots: Mapping[str, str]) -> Port:
    """Return the port as a NIC, which has its address of itself."""
    if port.name not in slots:
        raise StartError(
            f"the document of the VNF has port {port.name}, which is not one of its ports ({', '.join(slots)})"
        )
    return Port(port.name, "ethdev", port.ring_size, port.queues, device=slots[port.name])


def hugepages(document: Document) -> int:
    """Return how many pages of 2 MiB planed takes with this document."""
    return -(-document.memory.size_mb // HUGEPAGE_MB)


def least_memory_mb(document: Document, files_bytes: int) -> int:
    """Return the memory of the smallest guest in which it comes up, with files of the given number of bytes."""
    return LINUX_MB + hugepages(document) * HUGEPAGE_MB + FILE_COPIES * -(-files_bytes // 2**20)
