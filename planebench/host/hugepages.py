# SPDX-License-Identifier: BSD-3-Clause
"""Hugepages of 2 MiB: how many a comparison takes, and whether so many are free."""

from __future__ import annotations

from pathlib import Path

from planebench.host.facts import HostFacts, count_hugepages
from planebench.host.journal import ROOT
from planebench.host.procfs import read_text

HUGEPAGE_BYTES = 2 * 2**20
MB_PER_SWITCH = 1024
"""The most that a switch takes with its tester. Measured, up to loopback-5 and 63 VNFs: 0.2 to 0.9 GB, grout 1.4 GB."""


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
    """Return that a run of ``mb`` MiB leaves free pages unused; empty if they are enough, or hold no switch anyway."""
    if enough_hugepages(None, facts, mb) or not enough_hugepages(None, facts):
        return ""
    return (
        f"running with 4 KiB pages: {facts.hugepages_2m_free} hugepages are free, and the switches of this run take up "
        f"to {pages_for(mb)} together (measure fewer switches at once, or {reserving(pages_for(mb))})"
    )
