# SPDX-License-Identifier: BSD-3-Clause
"""Cores for the switch, the tester, the VNFs, and everything that does not poll.

The rule (DESIGN section 2): the switch has a core of its own as soon as there are two; pollers share a core by taking
turns in one worker, never as threads that the scheduler switches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from planebench.model.cpus import Cpus
from planebench.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of each part. ``tester_cpus`` has one CPU, or one for each end; ``vnf_cpus`` one for each VNF.

    ``shared``: the switch has no core of its own, so trials are rejected. Each warning says what is wrong and what to
    do.
    """

    switch_cpu: int
    tester_cpus: tuple[int, ...]
    vnf_cpus: tuple[int, ...]
    control_cpus: frozenset[int]
    shared: bool = False
    warnings: tuple[str, ...] = ()
    more_switch_cpus: tuple[int, ...] = ()
    """Further cores of the switch, whole and on the node of the first."""
    hosted: frozenset[int] = frozenset()
    """Numbers of the VNFs that are processes of their own, no tasks of the tester."""

    @property
    def switch_cpus(self) -> tuple[int, ...]:
        """Return all cores of the switch, the first one first."""
        return (self.switch_cpu, *self.more_switch_cpus)

    @property
    def polled_by_tester(self) -> frozenset[int]:
        """Return the CPUs of the tester's workers."""
        tasks = (cpu for number, cpu in enumerate(self.vnf_cpus) if number not in self.hosted)
        return frozenset((*self.tester_cpus, *tasks))

    def cpu_neighbours(self, number: int) -> tuple[str, ...]:
        """Return who else polls on the CPU of a hosted VNF: ``the switch``, ``the tester``, ``vnf2``."""
        return tuple(self._cpu_neighbours(number))

    def _cpu_neighbours(self, number: int) -> Iterator[str]:
        cpu = self.vnf_cpus[number]
        if cpu in self.switch_cpus:
            yield "the switch"
        if cpu in self.polled_by_tester:
            yield "the tester"
        yield from (f"vnf{other}" for other in sorted(self.hosted - {number}) if self.vnf_cpus[other] == cpu)


def place(cpus: Cpus, vnf_count: int = 0, *, hosted: Collection[int] = ()) -> Placement:
    """Spread switch, tester, ``vnf_count`` VNFs and control threads over the allowed CPUs.

    One CPU: everything on it, ``shared``. Two: the switch on the last, all else on the first. More: the switch a core,
    the tester one, the switch its other ones, each VNF one while there are cores, then a second one for the tester if
    one is left for control. Isolated CPUs are for pollers, and the core of CPU 0 is left to control threads where
    pollers have enough other cores (:func:`_spare`).

    ``hosted``: numbers of the VNFs that are processes of their own. They come before the others, which may take turns
    inside the tester; where no core is left for them they share that of the switch, not the tester's, which has to
    keep its pace. Raises UsageError when no CPU is allowed.
    """
    if not cpus.allowed:
        raise UsageError("the set of allowed CPUs is empty; allow at least one CPU, preferably two or more")
    if len(cpus.allowed) == 1:
        return _everything_on(cpus.allowed[0], vnf_count, frozenset(hosted))
    spare = _spare(cpus, vnf_count)
    switch = _switch_cpu(cpus)
    first, *others = (cpu for cpu in _ranked(cpus, switch) if cpu not in spare)
    more = _more_switch_cpus(cpus, switch, others)
    taken = frozenset[int]().union(*(cpus.core(cpu) for cpu in (switch, *more)))
    rest = [cpu for cpu in others if cpu not in taken]
    vnf_cpus = _all_vnf_cpus(rest, vnf_count, frozenset(hosted), first, switch)
    left = [cpu for cpu in rest if cpu not in vnf_cpus]
    tester = (
        (first, left.pop(0))
        if len(left) + len(spare) >= 2 and left and _near_and_whole(cpus, left[0], switch)
        else (first,)
    )
    used = {switch, *more, *tester, *vnf_cpus}
    return Placement(
        switch_cpu=switch,
        tester_cpus=tester,
        vnf_cpus=vnf_cpus,
        control_cpus=_control_cpus(cpus, [*sorted(spare), *left], used, first),
        warnings=(*_too_few(cpus, 1 + len(more)), *_warnings(cpus, switch, used)),
        more_switch_cpus=more,
        hosted=frozenset(hosted),
    )


def _spare(cpus: Cpus, vnf_count: int) -> frozenset[int]:
    """Return the CPUs of CPU 0's core if the pollers have enough whole cores on its node without it, else none.

    The kernel gives CPU 0 most of the work that it cannot move, so a poller there is disturbed most.
    """
    core = cpus.core(0) if 0 in cpus.allowed else frozenset[int]()
    enough = [cpu for cpu in _primaries(cpus) if cpu not in core and cpus.node(cpu) == cpus.node(0)]
    return core if len(enough) > cpus.switch_cores + vnf_count else frozenset()


def _control_cpus(cpus: Cpus, left: list[int], used: set[int], first: int) -> frozenset[int]:
    """Return the CPUs of threads that do not poll: the remaining ones, not isolated if possible; else ``first``."""
    left = [cpu for cpu in left if cpu not in cpus.isolated]
    whole = [cpu for cpu in left if not cpus.core(cpu) & used]
    shared = first if first not in cpus.isolated else min(set(cpus.allowed) - cpus.isolated, default=first)
    return frozenset(whole or left or (shared,))


def _everything_on(cpu: int, vnf_count: int, hosted: frozenset[int]) -> Placement:
    text = f"only CPU {cpu} is allowed: switch and tester share it, so results are not valid; allow two CPUs or more"
    return Placement(cpu, (cpu,), (cpu,) * vnf_count, frozenset({cpu}), shared=True, warnings=(text,), hosted=hosted)


def _more_switch_cpus(cpus: Cpus, switch: int, others: list[int]) -> tuple[int, ...]:
    """Return the further cores of the switch, from the end of ``others``, the CPUs beside the tester's first."""
    whole = [cpu for cpu in others if _near_and_whole(cpus, cpu, switch)]
    return tuple(sorted(whole, reverse=True)[: cpus.switch_cores - 1])


def _too_few(cpus: Cpus, found: int) -> tuple[str, ...]:
    if found >= cpus.switch_cores:
        return ()
    return (
        f"switch_cores is {cpus.switch_cores}, but beside the tester's there "
        f"{'is 1 whole core' if found == 1 else f'are {found} whole cores'} for the switch; give more CPUs of one node",
    )


def _primaries(cpus: Cpus) -> list[int]:
    """Return the lowest allowed CPU of each physical core."""
    return [cpu for cpu in sorted(cpus.allowed) if cpu == min(cpus.core(cpu))]


def _switch_cpu(cpus: Cpus) -> int:
    """Return the last core of the NUMA node with the most isolated cores (or cores); of one core the last CPU."""
    primaries = _primaries(cpus)
    if len(primaries) == 1:
        return max(cpus.allowed)
    eligible = [cpu for cpu in primaries if cpu in cpus.isolated] or primaries
    nodes = [cpus.node(cpu) for cpu in eligible]
    best = max(nodes, key=lambda node: (nodes.count(node), node))
    return max(cpu for cpu in eligible if cpus.node(cpu) == best)


def _ranked(cpus: Cpus, switch: int) -> list[int]:
    """Return the other CPUs, best first: whole cores before siblings, near before far, isolated first."""
    primaries = frozenset(_primaries(cpus))

    def rank(cpu: int) -> tuple[bool, bool, bool, bool, int]:
        return (
            cpu in cpus.core(switch),
            cpu not in primaries,
            cpus.node(cpu) != cpus.node(switch),
            cpu not in cpus.isolated,
            cpu,
        )

    return sorted((cpu for cpu in cpus.allowed if cpu != switch), key=rank)


def _near_and_whole(cpus: Cpus, cpu: int, switch: int) -> bool:
    """Return whether a CPU suits the second end: a whole core on the node of the switch."""
    return cpu in _primaries(cpus) and cpus.node(cpu) == cpus.node(switch)


def _all_vnf_cpus(rest: list[int], count: int, hosted: frozenset[int], tester: int, switch: int) -> tuple[int, ...]:
    """Return a CPU for each VNF, in their order."""
    own = _vnf_cpus(rest, len(hosted)) or (switch,) * len(hosted)
    left = [cpu for cpu in rest if cpu not in own]
    turns = _vnf_cpus(left, count - len(hosted)) or (tester,) * (count - len(hosted))
    of_hosted, of_tasks = iter(own), iter(turns)
    return tuple(next(of_hosted if number in hosted else of_tasks) for number in range(count))


def _vnf_cpus(available: list[int], count: int) -> tuple[int, ...]:
    """Return a CPU for each VNF; neighbours in the chain share if there are fewer CPUs. Empty if there is none."""
    used = min(count, len(available))
    return tuple(available[k * used // count] for k in range(count)) if used else ()


def _warnings(cpus: Cpus, switch: int, used: set[int]) -> tuple[str, ...]:
    found = []
    beside = sorted((cpus.core(switch) & used) - {switch})
    if beside:
        found.append(
            f"CPU {switch} of the switch and CPU {beside[0]} of the tester are threads of one physical core and slow "
            "each other down; allow CPUs of two cores"
        )
    far = sorted(cpu for cpu in used if cpus.node(cpu) != cpus.node(switch))
    if far:
        found.append(
            f"CPU {switch} of the switch is on NUMA node {cpus.node(switch)}, CPU {far[0]} on node "
            f"{cpus.node(far[0])}: every packet crosses between sockets; allow more CPUs of one node"
        )
    return tuple(found)
