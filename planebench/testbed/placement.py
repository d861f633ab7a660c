# SPDX-License-Identifier: BSD-3-Clause
"""Which core runs what. Pure: facts of the machine in, a placement out.

Switch, tester, VNFs, and everything that does not poll have cores by one rule: the switch has a core
of its own as soon as there are two; pollers share a core by taking turns in one worker, never as threads that the
scheduler switches. VNFs may be elsewhere than near the switch: on another NUMA node, or on random cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from planebench.model.cpus import NO_NODE, Cpus, range_text
from planebench.model.errors import UsageError
from planebench.model.server import NEAR, RANDOM, SPLIT, Placing, far_vnfs

RANDOM_MIN_CPUS = 2
"""VNFs on one CPU are not at random."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of each part. ``tester_cpus`` has one CPU, or one for each end, or one for each queue pair of all ports;
    ``vnf_cpus`` has one for each VNF.

    ``shared``: the switch has no core of its own, so trials are functional. Each warning says what is wrong and what to
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
    more_vnf_cpus: tuple[tuple[int, ...], ...] = ()
    """The further CPUs of each VNF; none where every VNF has one."""
    share_l3: bool | None = None
    """Whether the first CPUs of switch and tester share an L3 cache, which is what ``near`` is; None if unknown."""
    roaming: frozenset[int] = frozenset()
    """The CPUs over which the scheduler moves all VNFs; empty if each is pinned to its own. Those in ``vnf_cpus`` are
    where they start."""
    idle_tester: bool = False
    """True if the tester polls nothing, because both ends are hosted VNFs."""
    nodes: Mapping[int, int] = field(default_factory=dict)
    """The NUMA node of each CPU; empty on a machine with one node, where memory has no choice."""
    elsewhere: bool = False
    """True if the switch runs on another host, so that its CPUs are not of this one."""
    tester_by_queue: bool = False
    """True if a CPU of the tester has a queue pair of every port; else it has an end of the path, on all queues."""

    @property
    def switch_cpus(self) -> tuple[int, ...]:
        """Return all cores of the switch, the first one first."""
        return (self.switch_cpu, *self.more_switch_cpus)

    @property
    def pollers(self) -> frozenset[int]:
        """Return the CPUs of all threads that poll."""
        return frozenset((*self.switch_cpus_here, *self.tester_cpus, *self.all_vnf_cpus)) | self.roaming

    @property
    def switch_cpus_here(self) -> tuple[int, ...]:
        """Return the cores of the switch; none if they are those of another host."""
        return () if self.elsewhere else self.switch_cpus

    @property
    def all_vnf_cpus(self) -> tuple[int, ...]:
        """Return a CPU for each core of each VNF."""
        return (*self.vnf_cpus, *chain(*self.more_vnf_cpus))

    def cpus_of_vnf(self, number: int) -> tuple[int, ...]:
        """Return all CPUs of a VNF, the first one first."""
        return (self.vnf_cpus[number], *(self.more_vnf_cpus[number] if self.more_vnf_cpus else ()))

    def memory_node(self, cpu: int) -> int | None:
        """Return the node for the memory of what polls on a CPU; None where there is no choice."""
        return self.nodes.get(cpu)

    def vnf_memory_node(self, number: int) -> int | None:
        """Return the node for the memory of a VNF; None where there is no choice, or the scheduler moves it."""
        return None if self.roaming else self.memory_node(self.vnf_cpus[number])

    @property
    def polled_by_tester(self) -> frozenset[int]:
        """Return the CPUs of the tester's workers."""
        if self.idle_tester:
            return frozenset()
        tasks = (self.cpus_of_vnf(number) for number in range(len(self.vnf_cpus)) if number not in self.hosted)
        return frozenset((*self.tester_cpus, *chain(*tasks)))

    def cpu_neighbours(self, number: int) -> tuple[str, ...]:
        """Return who else polls on the CPUs of a hosted VNF: ``the switch``, ``the tester``, ``vnf2``.

        None for VNFs that the scheduler moves: how they share is what is measured.
        """
        if self.roaming:
            return ()
        cpus = frozenset(self.cpus_of_vnf(number))
        found = []
        if cpus & frozenset(self.switch_cpus):
            found.append("the switch")
        if cpus & self.polled_by_tester:
            found.append("the tester")
        others = sorted(self.hosted - {number})
        return (*found, *(f"vnf{other}" for other in others if cpus & set(self.cpus_of_vnf(other))))


def off_the_switch(placement: Placement, vnf_count: int) -> Placement:
    """Return the placement of VNFs that are control planes: not on the cores of the switch, but of what is left."""
    others = sorted(placement.control_cpus - set(placement.switch_cpus)) or list(placement.tester_cpus)
    given = placement.vnf_cpus if len(placement.vnf_cpus) == vnf_count else (placement.switch_cpu,) * vnf_count
    cpus = tuple(others[n % len(others)] if cpu in placement.switch_cpus else cpu for n, cpu in enumerate(given))
    return replace(placement, vnf_cpus=cpus, more_vnf_cpus=(), hosted=frozenset(range(vnf_count)))


def near(cpus: Cpus, vnf_count: int = 0, *, hosted: Collection[int] = (), idle_tester: bool = False) -> Placement:
    """Spread switch, tester, ``vnf_count`` VNFs and control threads over the allowed CPUs.

    One CPU: everything on it, ``shared``. Two: the switch on the last, all else on the first. More: the switch a core,
    the tester one, the switch its other ones, each VNF one while there are cores, then a second one for the tester if
    one is left for control; but the ``tester_cores`` of a tester with several come before the VNFs. Isolated CPUs are
    for pollers, and the core of CPU 0 is left to control threads where pollers have enough others (:func:`_spare`).
    Of several kinds of cores pollers have one as far as it goes, the fastest that has cores for switch and tester.

    ``hosted``: numbers of the VNFs that are processes of their own. They come before the others, which may take turns
    inside the tester; where no core is left for them they share that of the switch, not the tester's, which has to
    keep its pace; but they get the core of an ``idle_tester``, which polls nothing.
    """
    if cpus.switch_elsewhere:
        return _without_switch(cpus, vnf_count)
    switch = _switch_cpu(cpus)
    spare = _spare(cpus, switch, vnf_count)
    ranks = ranked(cpus, switch, _tester_node(cpus, switch))
    first = next((cpu for cpu in ranks if cpu not in spare), switch)
    others = [cpu for cpu in ranked(cpus, switch, cpus.node(switch)) if cpu not in spare | {first}]
    whole = [cpu for cpu in others if _alike(cpus, cpu, switch)]
    whole.sort(key=lambda cpu: (cpu in cpus.isolated, _shares_l3(cpus, cpu, switch), cpu), reverse=True)
    more = tuple(whole[: cpus.switch_cores - 1])
    taken = frozenset[int]().union(*(cpus.core(cpu) for cpu in (switch, *more)))
    tester = (first, *_more_tester_cpus(cpus, first, [cpu for cpu in others if cpu not in taken]))
    taken = taken.union(*(cpus.core(cpu) for cpu in tester[1:]))
    rest = [cpu for cpu in others if cpu not in taken]
    # VNFs stay on the node, on second threads before whole cores elsewhere; the tester's core is the last to be shared.
    rest.sort(key=lambda cpu: (cpu in cpus.core(first), cpus.node(cpu) != cpus.node(switch)))
    free = [*rest, first] if idle_tester else rest
    # A CPU for each VNF, in their order.
    own = share_out(free, len(hosted)) or (switch,) * len(hosted)
    turns = [cpu for cpu in free if cpu not in own]
    of_tasks = iter(share_out(turns, vnf_count - len(hosted)) or (first,) * (vnf_count - len(hosted)))
    of_hosted = iter(own)
    vnf_cpus = tuple(next(of_hosted if number in hosted else of_tasks) for number in range(vnf_count))
    left = [cpu for cpu in rest if cpu not in vnf_cpus]
    second = next((cpu for cpu in left if _alike(cpus, cpu, first) and _shares_l3(cpus, cpu, first)), None)
    if cpus.tester_cores == 1 and second is not None and len(left) + len(spare) >= 2:
        tester = (first, second)
    left = [cpu for cpu in left if cpu not in tester]
    used = {switch, *more, *tester, *vnf_cpus}
    return Placement(
        switch_cpu=switch,
        tester_cpus=tester,
        vnf_cpus=vnf_cpus,
        control_cpus=control_cpus(cpus, [*sorted(spare), *left], used, first),
        shared=first == switch,
        warnings=_warnings(cpus, (switch, *more), tester, used),
        more_switch_cpus=more,
        hosted=frozenset(hosted),
        share_l3=cpus.share_l3(switch, first),
        idle_tester=idle_tester,
        nodes=_memory_nodes(cpus),
        tester_by_queue=cpus.tester_cores > 1,
    )


def _more_tester_cpus(cpus: Cpus, first: int, there: Sequence[int]) -> list[int]:
    """Return the further cores of a tester with several, whole ones like its first: those that share its L3 cache come
    before others."""
    alike = [cpu for cpu in there if _alike(cpus, cpu, first)]
    return sorted(alike, key=lambda cpu: not _shares_l3(cpus, cpu, first))[: cpus.tester_cores - 1]


def _without_switch(cpus: Cpus, vnf_count: int) -> Placement:
    """Return the placement of a tester whose switch is on another host: it has the core that a switch would have.

    A second core is for its second end, if a third one is left for control.
    """
    first = _switch_cpu(replace(cpus, switch_node=cpus.tester_node, switch_cores=1))
    spare = cpus.core(0) if 0 in cpus.allowed and len(whole_cores(cpus)) > 1 else frozenset[int]()
    others = [cpu for cpu in ranked(cpus, first, cpus.node(first)) if cpu not in spare]
    more_tester = _more_tester_cpus(cpus, first, others)
    if cpus.tester_cores == 1:
        more_tester = [cpu for cpu in others if _alike(cpus, cpu, first) and _shares_l3(cpus, cpu, first)][:1]
    tester = (first, *more_tester)
    used = {*tester}
    left = [cpu for cpu in sorted(cpus.allowed) if not cpus.core(cpu) & used] or sorted(set(cpus.allowed) - used)
    switch, *more = cpus.switch_elsewhere
    return Placement(
        switch_cpu=switch,
        tester_cpus=tester,
        vnf_cpus=(first,) * vnf_count,
        control_cpus=control_cpus(cpus, left, used, first),
        more_switch_cpus=tuple(more),
        nodes=_memory_nodes(cpus),
        elsewhere=True,
        tester_by_queue=cpus.tester_cores > 1,
    )


def _memory_nodes(cpus: Cpus) -> dict[int, int]:
    """Return the node of each CPU that is on one; none on a machine with one node."""
    if len(set(cpus.numa_node.values())) < 2:
        return {}
    return {cpu: cpus.node(cpu) for cpu in cpus.allowed if cpus.node(cpu) != NO_NODE}


def _spare(cpus: Cpus, switch: int, vnf_count: int) -> frozenset[int]:
    """Return the CPUs of CPU 0's core if the pollers have enough whole cores on their nodes without it, else none.

    Where it is of the kind of the switch, they must have enough of this kind. The kernel gives CPU 0 most of the work
    that it cannot move, so a poller there is disturbed most.
    """
    core = cpus.core(0) if 0 in cpus.allowed else frozenset[int]()
    others = [cpu for cpu in whole_cores(cpus) if cpu not in core]
    if cpus.kind(0) == cpus.kind(switch):
        others = [cpu for cpu in others if cpus.kind(cpu) == cpus.kind(switch)]
    nodes = [cpus.node(cpu) for cpu in others]
    needed = [cpus.node(switch)] * (cpus.switch_cores + vnf_count) + [_tester_node(cpus, switch)] * cpus.tester_cores
    return core if all(nodes.count(node) >= needed.count(node) for node in needed) else frozenset()


def _tester_node(cpus: Cpus, switch: int) -> int:
    """Return the node of the tester: that of its NICs if it has CPUs there, else that of the switch."""
    there = any(cpus.node(cpu) == cpus.tester_node for cpu in cpus.allowed if cpu not in cpus.core(switch))
    return cpus.tester_node if cpus.tester_node is not None and there else cpus.node(switch)


def control_cpus(cpus: Cpus, left: list[int], used: set[int], first: int) -> frozenset[int]:
    """Return the CPUs of threads that do not poll: the remaining ones, not isolated if possible; else ``first``."""
    left = [cpu for cpu in left if cpu not in cpus.isolated]
    whole = [cpu for cpu in left if not cpus.core(cpu) & used]
    shared = first if first not in cpus.isolated else min(set(cpus.allowed) - cpus.isolated, default=first)
    return frozenset(whole or left or (shared,))


def whole_cores(cpus: Cpus) -> list[int]:
    """Return the lowest allowed CPU of each physical core."""
    return [cpu for cpu in sorted(cpus.allowed) if cpu == min(cpus.core(cpu))]


def _switch_cpu(cpus: Cpus) -> int:
    """Return the last core of the switch's node, in the L3 group with the most cores there; of one core the last CPU.

    The node is that of its NICs if it has CPUs there, else the one with the most cores. Isolated cores come first, then
    those of the fastest kind that has enough for switch and tester, or of the largest one if none has.
    """
    primaries = whole_cores(cpus)
    if len(primaries) == 1:
        return max(cpus.allowed)
    near_nic = [cpu for cpu in primaries if cpus.node(cpu) == cpus.switch_node] or primaries
    eligible = [cpu for cpu in near_nic if cpu in cpus.isolated] or near_nic
    cores = Counter(map(cpus.kind, primaries))
    kinds = sorted(set(map(cpus.kind, eligible)))
    largest = max(kinds, key=lambda kind: (cores[kind], -kind))
    kind = next((kind for kind in kinds if cores[kind] >= cpus.switch_cores + cpus.tester_cores), largest)
    eligible = [cpu for cpu in eligible if cpus.kind(cpu) == kind]
    for group_of in (cpus.node, lambda cpu: min(cpus.l3_group.get(cpu, {0}))):
        groups = [group_of(cpu) for cpu in eligible]
        best = max(groups, key=lambda group: (groups.count(group), group))
        eligible = [cpu for cpu, group in zip(eligible, groups, strict=True) if group == best]
    return max(eligible)


def ranked(cpus: Cpus, switch: int, node: int) -> list[int]:
    """Return the other CPUs, best first: whole cores before siblings, then those of the node, of the switch's kind, of
    faster kinds, isolated ones, and those that share the L3 cache of the switch."""
    primaries = frozenset(whole_cores(cpus))

    def rank(cpu: int) -> tuple[bool | int, ...]:
        return (
            cpu in cpus.core(switch),
            cpu not in primaries,
            cpus.node(cpu) != node,
            cpus.kind(cpu) != cpus.kind(switch),
            cpus.kind(cpu),
            cpu not in cpus.isolated,
            not _shares_l3(cpus, cpu, switch),
            cpu,
        )

    return sorted((cpu for cpu in cpus.allowed if cpu != switch), key=rank)


def _alike(cpus: Cpus, cpu: int, other: int) -> bool:
    """Return whether a CPU is a whole core on the node of another, and of its kind."""
    return cpu in whole_cores(cpus) and cpus.node(cpu) == cpus.node(other) and cpus.kind(cpu) == cpus.kind(other)


def _shares_l3(cpus: Cpus, cpu: int, other: int) -> bool:
    """Return whether two CPUs share an L3 cache as far as is known."""
    return cpus.share_l3(cpu, other) is not False


def share_out(available: list[int], count: int) -> tuple[int, ...]:
    """Return a CPU for each VNF; neighbours in the chain share if there are fewer CPUs. Empty if there is none."""
    used = min(count, len(available))
    return tuple(available[k * used // count] for k in range(count)) if used else ()


def _warnings(cpus: Cpus, switch_cpus: tuple[int, ...], tester: tuple[int, ...], used: set[int]) -> tuple[str, ...]:
    """Return what is wrong with the places of switch and tester, and what to do."""
    found = []
    switch, cores = switch_cpus[0], len(switch_cpus)
    if used == {switch}:
        shared = f"only CPU {switch} is allowed: switch and tester share it, so results are not valid"
        return (f"{shared}; allow two CPUs or more",)
    if cores < cpus.switch_cores:
        found.append(
            f"switch_cores is {cpus.switch_cores}, but beside the tester's there "
            f"{'is 1 whole core' if cores == 1 else f'are {cores} whole cores'} for the switch; give more CPUs of one "
            f"node{' and one kind of core' if cpus.kinds else ''}"
        )
    if len(tester) < cpus.tester_cores:
        found.append(
            f"tester_cores is {cpus.tester_cores}, but there {'is' if len(tester) == 1 else 'are'} {len(tester)} for "
            "the tester, so that a core has several queues; give more CPUs of one node"
        )
    beside = sorted((cpus.core(switch) & used) - {switch})
    if beside:
        found.append(
            f"CPU {switch} of the switch and CPU {beside[0]} of the tester are threads of one physical core and slow "
            "each other down; allow CPUs of two cores"
        )
    by_its_nic = {cpu for cpu in tester if cpus.node(cpu) == cpus.tester_node}
    far = sorted(cpu for cpu in used - by_its_nic if cpus.node(cpu) not in (cpus.node(switch), NO_NODE))
    if far and cpus.node(switch) != NO_NODE:
        found.append(
            f"CPU {switch} of the switch is on NUMA node {cpus.node(switch)}, CPU {far[0]} on node "
            f"{cpus.node(far[0])}: every packet crosses between sockets; allow more CPUs of one node"
        )
    elif not by_its_nic and not all(_shares_l3(cpus, cpu, switch) for cpu in tester):
        found.append(
            f"CPU {switch} of the switch and CPU {tester[0]} of the tester share no L3 cache: frames cross between "
            f"caches, and the core distance is far; allow more CPUs that share a cache with CPU {switch}"
        )
    nics = (("switch", cpus.switch_node, (switch,)), ("tester", cpus.tester_node, tester))
    found += [
        f"the NICs of the {owner} are on NUMA node {node}, where it has no CPU: every frame crosses between sockets; "
        f"allow CPUs of node {node}"
        for owner, node, its in nics
        if node is not None and all(cpus.node(cpu) != node for cpu in its)
    ]
    return tuple(found)


def odd_cores(cpus: Cpus, pollers: Collection[int]) -> tuple[str, ...]:
    """Return warnings on pollers that are not on the fastest kind of core, or on no NUMA node."""
    found = []
    slower = [cpu for cpu in pollers if cpus.kind(cpu)]
    if slower:
        fastest = cpus.kinds[0]
        barred = fastest.cpus - frozenset(cpus.allowed)
        found.append(
            f"pollers on CPUs {range_text(slower)} have slower cores ({cpus.kind_names(slower)}) than CPUs "
            f"{range_text(fastest.cpus)} ({fastest.name}): "
            + (
                "all rates are those of slower cores"
                if len(slower) == len(pollers)
                else "they limit what the others do"
            )
            + (f"; allow CPUs {range_text(barred)}" if barred else "; measure with fewer VNFs or cores of the switch")
        )
    lost = [cpu for cpu in pollers if cpus.node(cpu) == NO_NODE]
    if lost:
        found.append(
            f"pollers on CPUs {range_text(lost)} are on no NUMA node that the machine tells of, so where their memory "
            f"is may change between runs; allow CPUs {range_text(cpus.numa_node)}"
        )
    return tuple(found)


def place(
    cpus: Cpus, vnf_count: int = 0, *, hosted: Collection[int] = (), placing: Placing = NEAR, idle_tester: bool = False
) -> Placement:
    """Spread switch, tester, ``vnf_count`` VNFs and control threads over the allowed CPUs.

    ``placing`` decides on VNFs only: switch and tester are where :func:`near` puts them. ``hosted`` and ``idle_tester``
    are as there.
    Raises UsageError for a placement that this machine or these VNFs cannot have (:func:`refusal`).
    """
    placed = near(cpus, vnf_count, hosted=hosted, idle_tester=idle_tester)
    if placing != NEAR and vnf_count:
        if why := refusal(cpus, vnf_count, hosted=hosted, placing=placing):
            raise UsageError(why)
        apart = vnf_count if placing == RANDOM else len(far_vnfs(placing, vnf_count))
        base = near(cpus, vnf_count - apart, hosted=range(vnf_count - apart))
        base = replace(base, tester_cpus=base.tester_cpus[: len(placed.tester_cpus)], hosted=placed.hosted)
        if placing == RANDOM:
            # All CPUs that are left; without the core of CPU 0 if there are enough.
            there = random_cpus(cpus, base)
            whole = {min(cpus.core(cpu) & there) for cpu in there - cpus.core(0)}
            roaming = there - cpus.core(0) if len(whole) >= max(vnf_count, RANDOM_MIN_CPUS) else there
            order = [cpu for cpu in ranked(cpus, base.switch_cpu, cpus.node(base.switch_cpu)) if cpu in roaming]
            placed = _with_vnfs(cpus, base, share_out(order, vnf_count), roaming)
        else:
            # The other node, best first; CPU 0's core only if the others are few.
            far = _other_node_cpus(cpus, base)
            without = [cpu for cpu in far if cpu not in cpus.core(0)]
            enough = sum(cpu in whole_cores(cpus) for cpu in without) >= apart
            placed = _with_vnfs(cpus, base, (*base.vnf_cpus, *share_out(without if enough else far, apart)))
    return replace(placed, warnings=(*placed.warnings, *odd_cores(cpus, placed.pollers)))


def place_vnfs(
    cpus: Cpus,
    cores: Sequence[int],
    *,
    hosted: Collection[int] = (),
    placing: Placing = NEAR,
    idle_tester: bool = False,
) -> Placement:
    """Spread switch, tester, and VNFs of one or several ``cores`` each over the allowed CPUs, as :func:`place`.

    Where there are fewer CPUs than cores of VNFs, a VNF may have fewer CPUs than cores.
    """
    owners = [number for number, count in enumerate(cores) for _ in range(count)]
    if placing.startswith(SPLIT):
        placing = f"{SPLIT}{sum(cores[: int(placing.removeprefix(SPLIT))])}"
    own_cores = [core for core, number in enumerate(owners) if number in hosted]
    placed = place(cpus, len(owners), hosted=own_cores, placing=placing, idle_tester=idle_tester)
    own = [
        tuple(dict.fromkeys(cpu for cpu, owner in zip(placed.vnf_cpus, owners, strict=True) if owner == number))
        for number in range(len(cores))
    ]
    return replace(
        placed,
        vnf_cpus=tuple(first for first, *_ in own),
        more_vnf_cpus=tuple(tuple(more) for _, *more in own) if any(len(each) > 1 for each in own) else (),
        hosted=frozenset(hosted),
    )


def refusal(cpus: Cpus, vnf_count: int, *, hosted: Collection[int], placing: Placing) -> str:
    """Return why this machine, or these VNFs, cannot have a placement; empty if they can."""
    if placing == NEAR or not vnf_count:
        return ""
    if placing.startswith(SPLIT) and not far_vnfs(placing, vnf_count):
        return f"placement {placing} needs {int(placing.removeprefix(SPLIT)) + 1} VNFs or more, here are {vnf_count}"
    if len(hosted) < vnf_count:
        return (
            f"placement {placing} needs VNFs that are processes of their own, with their own memory: add --hosting "
            "separate, container or vm"
        )
    base = near(cpus)
    if placing == RANDOM:
        found = len(random_cpus(cpus, base))
        if found < RANDOM_MIN_CPUS:
            return (
                f"placement random needs {RANDOM_MIN_CPUS} CPUs beside the cores of switch and tester, which are not "
                f"isolated; here {'is 1' if found == 1 else f'are {found}'}"
            )
        return ""
    if not _other_node_cpus(cpus, base):
        return (
            f"placement {placing} needs CPUs on two NUMA nodes, and here those beside switch and tester are all on "
            f"node {cpus.node(base.switch_cpu)}"
        )
    return ""


def tester_elsewhere(cpus: Cpus) -> Cpus:
    """Return the CPUs with the tester on another node than the switch. Raises UsageError where there is one node."""
    switch = near(cpus).switch_cpu
    nodes = Counter(cpus.node(cpu) for cpu in whole_cores(cpus) if cpus.node(cpu) not in (NO_NODE, cpus.node(switch)))
    if not nodes:
        raise UsageError(
            f"tester other-node needs CPUs on two NUMA nodes, and all allowed ones are on node {cpus.node(switch)}; "
            "choose --tester near"
        )
    return replace(cpus, switch_node=cpus.node(switch), tester_node=_largest(nodes))


def random_cpus(cpus: Cpus, base: Placement) -> frozenset[int]:
    """Return the CPUs over which the scheduler may move VNFs: all but the cores of switch and tester.

    Isolated CPUs are none of them, as the scheduler does not move threads between those; nor are other kinds of cores
    than that of the switch, if it has enough.
    """
    taken = frozenset[int]().union(*(cpus.core(cpu) for cpu in (*base.switch_cpus, *base.tester_cpus)))
    found = frozenset(cpus.allowed) - taken - cpus.isolated
    alike = frozenset(cpu for cpu in found if cpus.kind(cpu) == cpus.kind(base.switch_cpu))
    return alike if len(alike) >= RANDOM_MIN_CPUS else found


def _other_node_cpus(cpus: Cpus, base: Placement) -> list[int]:
    """Return the CPUs beside switch and tester on the node with most cores of those where the switch is not."""
    home = cpus.node(base.switch_cpu)
    taken = frozenset[int]().union(*(cpus.core(cpu) for cpu in (*base.switch_cpus, *base.tester_cpus)))
    free = [cpu for cpu in cpus.allowed if cpus.node(cpu) not in (NO_NODE, home) and cpu not in taken]
    nodes = Counter(cpus.node(cpu) for cpu in free if cpu in whole_cores(cpus))
    if not nodes:
        return []
    node = _largest(nodes)
    return [cpu for cpu in ranked(cpus, base.switch_cpu, node) if cpu in free and cpus.node(cpu) == node]


def _largest(nodes: Counter[int]) -> int:
    """Return the node with most cores; the lowest of equal ones."""
    return max(nodes, key=lambda node: (nodes[node], -node))


def _with_vnfs(
    cpus: Cpus, base: Placement, vnf_cpus: tuple[int, ...], roaming: frozenset[int] = frozenset()
) -> Placement:
    """Return the placement with these CPUs of VNFs, and control threads on what is left."""
    used = {*base.switch_cpus, *base.tester_cpus, *vnf_cpus, *roaming}
    cores = frozenset[int]().union(*(cpus.core(cpu) for cpu in base.switch_cpus))
    left = [cpu for cpu in sorted(cpus.allowed) if cpu not in used | cores]
    usual = roaming - cpus.isolated
    control = usual if usual and not left else control_cpus(cpus, left, used, base.tester_cpus[0])
    return replace(base, vnf_cpus=vnf_cpus, control_cpus=control, roaming=roaming)
