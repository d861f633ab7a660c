# SPDX-License-Identifier: BSD-3-Clause
"""Memory: the NUMA nodes of a process's pages (numa_maps, man 5 proc), and hugepages of 2 MiB: how many a comparison
takes, and whether so many are free."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planebench.host.facts import HostFacts, count_hugepages
from planebench.host.journal import ROOT
from planebench.host.procfs import read_text

HUGEPAGE_BYTES = 2 * 2**20
MB_PER_SWITCH = 1024
"""The most that a switch takes with its tester. Measured, up to loopback-5 and 63 VNFs: 0.2 to 0.9 GB, grout 1.4 GB."""
_SHARED = re.compile(r"/memfd:|/dev/shm/|/hugepages|/SYSV")
"""Files whose pages a process fills itself. Those of programs and libraries are where the first reader put them."""
_PAGES = re.compile(r"\bN(\d+)=(\d+)")
_PAGE_KB = re.compile(r"\bkernelpagesize_kB=(\d+)")


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Memory of a process: bytes by node. ``shared``: device and inode of what others may map too; empty if private."""

    shared: str
    bytes_by_node: Mapping[int, int]


def memory_of(pid: int, root: Path = ROOT) -> tuple[MemoryMap, ...]:
    """Return the memory that a process has filled, without programs and libraries; empty if the kernel does not tell.

    Takes about a ms per GB of small pages: the kernel walks the page tables.
    """
    folder = root / f"proc/{pid}"
    files = {}  # device and inode of every mapping with a file, by the address where it begins
    for line in (read_text(folder / "maps") or "").splitlines():
        addresses, _, _, device, inode, *_ = line.split(maxsplit=5)
        if inode != "0":
            files[addresses.partition("-")[0]] = f"{device}:{inode}"
    found = []
    for line in (read_text(folder / "numa_maps") or "").splitlines():
        address, _, rest = line.partition(" ")
        named = "file=" in rest
        if named and not _SHARED.search(rest):
            continue
        page = _PAGE_KB.search(rest)
        size = int(page[1]) * 1024 if page else 4096
        pages = {int(node): int(count) * size for node, count in _PAGES.findall(rest)}
        if pages:
            found.append(MemoryMap(files.get(address, address) if named else "", pages))
    return tuple(found)


def bytes_by_node(mappings: Iterable[MemoryMap]) -> dict[int, int]:
    """Return the bytes on each node, over all mappings."""
    total: Counter[int] = Counter()
    for mapping in mappings:
        total.update(mapping.bytes_by_node)
    return dict(sorted(total.items()))


def pages_for(mb: int) -> int:
    """Return how many pages hold so many MiB."""
    return -(-mb * 2**20 // HUGEPAGE_BYTES)


def enough_hugepages(wanted: bool | None, facts: HostFacts, mb: int = MB_PER_SWITCH) -> bool:
    """Return ``wanted``; where it is None, whether ``mb`` MiB of pages are free."""
    return facts.hugepages_2m_free >= pages_for(mb) if wanted is None else wanted


def reserving(pages: int) -> str:
    """Return the command that reserves so many pages."""
    return f"`echo {pages} | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages`"


def hugetlbfs_mounted(root: Path = ROOT) -> bool:
    """Return whether a hugetlbfs is mounted, in which programs make files of hugepages."""
    mounts = read_text(root / "proc" / "mounts") or ""
    return any(mount.split()[2:3] == ["hugetlbfs"] for mount in mounts.splitlines())


def free_bytes(root: Path = ROOT) -> int:
    """Return the memory of the free pages; 0 where the kernel has none."""
    return count_hugepages(root, "2048kB", "free_hugepages") * HUGEPAGE_BYTES


def too_few_words(facts: HostFacts, mb: int) -> str:
    """Return that a run of ``mb`` MiB takes small pages, and how to get large ones; empty if enough are free."""
    if enough_hugepages(None, facts, mb):
        return ""
    pages = pages_for(mb)
    return (
        f"pages of 4 KiB: {facts.hugepages_2m_free} of the {pages} hugepages that this plan takes are free; "
        f"{reserving(pages)}"
    )
