# SPDX-License-Identifier: BSD-3-Clause
"""planed's document in a guest, with the ports and CPUs of the guest, and the memory that the guest needs.

DPDK drives the guest's NICs through hugepages, whose physical addresses the switch gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planebench.hosting.base import HostedPort
from planebench.hosting.qemu import device_address, pci_address
from planebench.model.errors import StartError
from planebench.planed.document import Document, Port

HUGEPAGE_MB = 2
LINUX_MB = 128
"""What the guest needs beside planed's hugepages and its files: the kernel, page tables, room to allocate in."""
FILE_COPIES = 3
"""Copies of each file: in QEMU's archive, in the root file system, and in the memory of a program that reads it."""


def guest_document(document: Document, ports: Sequence[HostedPort], cpus: Sequence[int], first_vcpu: int) -> Document:
    """Return the document with the same functions and settings at the guest's NICs, on hugepages.

    Worker CPUs are among ``cpus``, which are numbered in the guest from ``first_vcpu`` on. The workers get no priority:
    in the guest they compete only with planed's own control thread, which could not answer then. Raises StartError for
    a port that the VNF does not have.
    """
    virtio, passed = ([port.name for port in ports if bool(port.address) is are] for are in (False, True))
    slots = {name: pci_address(number) for number, name in enumerate(virtio)}
    slots |= {name: device_address(number) for number, name in enumerate(passed)}
    free = list(enumerate(cpus, first_vcpu))
    workers = []
    for worker in document.workers:
        place = next(place for place in free if place[1] == worker.cpu)
        free.remove(place)  # two CPUs of the guest may share one of the host
        workers.append(replace(worker, cpu=place[0]))
    return replace(
        document,
        memory=replace(document.memory, hugepages=True),
        ports=tuple(_port(port, slots) for port in document.ports),
        workers=tuple(workers),
        nice=None,
    )


def _port(port: Port, slots: Mapping[str, str]) -> Port:
    """Return the port as a NIC, which has its own MAC address."""
    if port.name not in slots:
        raise StartError(
            f"the document of the VNF has port {port.name}, which is not one of its ports ({', '.join(slots)})"
        )
    return Port(port.name, "ethdev", port.ring_size, port.queues, device=slots[port.name])


def hugepages(document: Document) -> int:
    """Return the number of 2 MiB pages that planed needs for this document."""
    return -(-document.memory.size_mb // HUGEPAGE_MB)


def least_memory_mb(document: Document, files_bytes: int) -> int:
    """Return the least memory of a guest with this document and files of ``files_bytes``."""
    return LINUX_MB + hugepages(document) * HUGEPAGE_MB + FILE_COPIES * -(-files_bytes // 2**20)
