# SPDX-License-Identifier: BSD-3-Clause
"""CPUs by number: the text of a list of them, and the set that a run may use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def cpu_text(cpus: Iterable[int]) -> str:
    """Return the CPUs in rising order with commas between: ``0,1,2``."""
    return ",".join(map(str, sorted(cpus)))


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
    """

    allowed: tuple[int, ...]
    siblings: Mapping[int, frozenset[int]] = field(default_factory=dict)
    numa_node: Mapping[int, int] = field(default_factory=dict)
    switch_cores: int = 1
    isolated: frozenset[int] = frozenset()

    def node(self, cpu: int) -> int:
        """Return the NUMA node of a CPU."""
        return self.numa_node.get(cpu, 0)

    def core(self, cpu: int) -> frozenset[int]:
        """Return the allowed CPUs that share a physical core with ``cpu``, itself included."""
        return (self.siblings.get(cpu, frozenset()) & frozenset(self.allowed)) | {cpu}
