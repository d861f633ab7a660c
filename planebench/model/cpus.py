# SPDX-License-Identifier: BSD-3-Clause
"""CPUs by number: the text of a list of them, and the set that a run may use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def cpu_text(cpus: Iterable[int]) -> str:
    """Return the CPUs in rising order with commas between: ``0,1,2``."""
    return ",".join(map(str, sorted(cpus)))


def range_text(cpus: Iterable[int]) -> str:
    """Return the CPUs in the format of the kernel: ``0-3,8``."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the CPUs of a list in the format of the kernel, ``0-2,5``; none for any other text."""
    cpus: list[int] = []
    with contextlib.suppress(ValueError):
        for part in filter(None, text.strip().split(",")):
            low, _, high = part.partition("-")
            cpus += range(int(low), int(high or low) + 1)
    return tuple(cpus)


@dataclass(frozen=True, slots=True)
class Cpus:
    """The CPUs that this process may use, and which of them share a core or a NUMA node.

    ``siblings`` maps a CPU to the CPUs of its physical core (with or without itself), ``numa_node`` to its node. A CPU
    that is missing there is a core of its own on node 0. ``switch_cores``: number of cores for the switch.
    ``isolated``: CPUs that the kernel keeps free of other work (isolcpus=). Pollers take them first; control threads
    never run there while there is another CPU, because the scheduler does not balance threads over isolated CPUs.
    ``l3_group`` maps a CPU to those that share its L3 cache; a CPU that is missing there may share it with any other.
    ``switch_node`` and ``tester_node`` are the NUMA nodes of their NICs; None without NICs.
    """

    allowed: tuple[int, ...]
    siblings: Mapping[int, frozenset[int]] = field(default_factory=dict)
    numa_node: Mapping[int, int] = field(default_factory=dict)
    switch_cores: int = 1
    isolated: frozenset[int] = frozenset()
    l3_group: Mapping[int, frozenset[int]] = field(default_factory=dict)
    switch_node: int | None = None
    tester_node: int | None = None
    switch_elsewhere: tuple[int, ...] = ()
    """The CPUs of a switch on another host, numbered there; all CPUs here are then of the tester."""

    def node(self, cpu: int) -> int:
        """Return the NUMA node of a CPU."""
        return self.numa_node.get(cpu, 0)

    def core(self, cpu: int) -> frozenset[int]:
        """Return the allowed CPUs that share a physical core with ``cpu``, itself included."""
        return (self.siblings.get(cpu, frozenset()) & frozenset(self.allowed)) | {cpu}

    def share_l3(self, cpu: int, other: int) -> bool | None:
        """Return whether two CPUs share an L3 cache; None if that is not known."""
        group = self.l3_group.get(cpu)
        return None if group is None or other not in self.l3_group else other in group

    def l3_first(self, cpu: int) -> int:
        """Return the lowest CPU of the L3 group of a CPU, which names the group; 0 where groups are not known."""
        return min(self.l3_group.get(cpu, {0}))
