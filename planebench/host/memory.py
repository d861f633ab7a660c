# SPDX-License-Identifier: BSD-3-Clause
"""On which NUMA nodes the memory of processes is: /proc/PID/numa_maps (Linux, man 7 numa, man 5 proc)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planebench.host.journal import ROOT
from planebench.host.procfs import read_text

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
    files = _files(read_text(folder / "maps") or "")
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


def _files(maps: str) -> dict[str, str]:
    """Return device and inode of every mapping with a file, by the address where it begins."""
    found = {}
    for line in maps.splitlines():
        addresses, _, _, device, inode, *_ = line.split(maxsplit=5)
        if inode != "0":
            found[addresses.partition("-")[0]] = f"{device}:{inode}"
    return found
