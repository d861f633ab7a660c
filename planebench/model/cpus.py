# SPDX-License-Identifier: BSD-3-Clause
"""CPUs by number: the text of a list of them, and the set that a run may use."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

NO_NODE = -1
"""The NUMA node of a CPU that is on none, where others are on one (NUMA_NO_NODE of Linux)."""
CORE_TYPES = ("IntelCore", "AMDPerformance", "IntelAtom", "AMDEfficiency", "IntelLowPower")
"""Types of cores as hwloc names them, faster ones first."""
KIND_RATIO = 1.2
"""A faster kind of core begins where a figure rises by this. Kinds differ by a third or more; cores of one kind that
turbo favours, by less than a sixth."""


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
        for part in filter(None, text.strip("\0 \n").split(",")):  # Linux 5.15 ends lists of nodes with a zero
            low, _, high = part.partition("-")
            cpus += range(int(low), int(high or low) + 1)
    return tuple(cpus)


@dataclass(frozen=True, slots=True)
class CoreKind:
    """The CPUs of one kind of core, on a machine that has several: ``IntelAtom``, ``cpu_capacity 731``."""

    name: str
    cpus: frozenset[int]


def core_kinds(
    cpus: Collection[int], types: Mapping[str, Collection[int]], figures: Iterable[tuple[str, Mapping[int, int]]]
) -> tuple[CoreKind, ...]:
    """Return the kinds of cores, the fastest first; none where all are of one kind, or nothing tells.

    ``types``: the CPUs of the :data:`CORE_TYPES`; ``figures``: the names of what tells the speed of a core, each with
    that of each CPU. The first source that tells of every CPU decides.
    """
    kinds: list[CoreKind] = []
    if cpus and types.keys() <= set(CORE_TYPES) and frozenset(cpus) <= frozenset[int]().union(*types.values()):
        kinds = [CoreKind(name, frozenset(types[name]) & frozenset(cpus)) for name in CORE_TYPES if name in types]
    else:
        name, speeds = next(((it, of) for it, of in figures if frozenset(cpus) <= of.keys()), ("", {}))
        slowest = 0
        for speed in sorted({speeds[cpu] for cpu in cpus if cpu in speeds}, reverse=True):
            those = frozenset(cpu for cpu in cpus if speeds[cpu] == speed)
            if not kinds or speed * KIND_RATIO <= slowest:
                kinds.append(CoreKind(f"{name} {speed}", those))
            else:
                kinds[-1] = replace(kinds[-1], cpus=kinds[-1].cpus | those)
            slowest = speed
    kinds = [kind for kind in kinds if kind.cpus]
    return tuple(kinds) if len(kinds) > 1 else ()


def node_of(numa_node: Mapping[int, int], cpu: int) -> int:
    """Return the NUMA node of a CPU: 0 where no CPU is said to be on one."""
    return numa_node.get(cpu, NO_NODE if numa_node else 0)


@dataclass(frozen=True, slots=True)
class Cpus:
    """The CPUs that this process may use, and which of them share a core or a NUMA node.

    ``siblings`` maps a CPU to the CPUs of its physical core (with or without itself); a CPU that is missing there is a
    core of its own. ``numa_node`` maps it to its node (:func:`node_of`). ``switch_cores``: number of cores for the
    switch. ``tester_cores``: number of cores for the tester, each with a queue pair of every port; with 1, it may have
    a core for each end.
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
    tester_cores: int = 1
    kinds: tuple[CoreKind, ...] = ()
    """The kinds of cores of the machine, the fastest first; none if all are of one as far as is known."""

    def node(self, cpu: int) -> int:
        """Return the NUMA node of a CPU."""
        return node_of(self.numa_node, cpu)

    def kind(self, cpu: int) -> int:
        """Return the number of the kind of a core in ``kinds``: 0 is the fastest."""
        return next((number for number, kind in enumerate(self.kinds) if cpu in kind.cpus), 0)

    def kind_names(self, cpus: Iterable[int]) -> str:
        """Return the kinds of cores of some CPUs, the fastest first; empty if all cores of the machine are alike."""
        here = frozenset(cpus)
        return ", ".join(kind.name for kind in self.kinds if kind.cpus & here)

    def core(self, cpu: int) -> frozenset[int]:
        """Return the allowed CPUs that share a physical core with ``cpu``, itself included."""
        return (self.siblings.get(cpu, frozenset()) & frozenset(self.allowed)) | {cpu}

    def share_l3(self, cpu: int, other: int) -> bool | None:
        """Return whether two CPUs share an L3 cache; None if that is not known."""
        group = self.l3_group.get(cpu)
        return None if group is None or other not in self.l3_group else other in group
