# SPDX-License-Identifier: BSD-3-Clause
"""Placements that put VNFs elsewhere than near the switch: on another NUMA node, or on random cores. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from planebench.model.cpus import NO_NODE, Cpus
from planebench.model.errors import UsageError
from planebench.model.placement import NEAR, RANDOM, SPLIT, Placing, far_vnfs
from planebench.placement.place import Placement, control_cpus, near, odd_cores, ranked, share_out, whole_cores

RANDOM_MIN_CPUS = 2
"""VNFs on one CPU are not at random."""


def place(
    cpus: Cpus,
    vnf_count: int = 0,
    *,
    hosted: Collection[int] = (),
    placing: Placing = NEAR,
    idle_tester: bool = False,
) -> Placement:
    """Spread switch, tester, ``vnf_count`` VNFs and control threads over the allowed CPUs.

    ``placing`` decides on VNFs only: switch and tester are where :func:`near` puts them. ``hosted`` and ``idle_tester``
    are as there.
    Raises UsageError when no CPU is allowed, or for a placement that this machine or these VNFs cannot have
    (:func:`refusal`).
    """
    placed = _place(cpus, vnf_count, hosted, placing, idle_tester)
    return replace(placed, warnings=(*placed.warnings, *odd_cores(cpus, placed.pollers)))


def _place(cpus: Cpus, vnf_count: int, hosted: Collection[int], placing: Placing, idle_tester: bool) -> Placement:
    usual = near(cpus, vnf_count, hosted=hosted, idle_tester=idle_tester)
    if placing == NEAR or not vnf_count:
        return usual
    if why := refusal(cpus, vnf_count, hosted=hosted, placing=placing):
        raise UsageError(why)
    apart = range(vnf_count) if placing == RANDOM else sorted(far_vnfs(placing, vnf_count))
    base = near(cpus, vnf_count - len(apart), hosted=range(vnf_count - len(apart)))
    base = replace(base, tester_cpus=base.tester_cpus[: len(usual.tester_cpus)], hosted=usual.hosted)
    if placing == RANDOM:
        return _at_random(cpus, base, vnf_count)
    far_cpus = share_out(_far_cpus(cpus, base, len(apart)), len(apart))
    return _with_vnfs(cpus, base, (*base.vnf_cpus, *far_cpus))


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


def _at_random(cpus: Cpus, base: Placement, count: int) -> Placement:
    """Return the placement with VNFs on all CPUs that are left; without the core of CPU 0 if there are enough."""
    there = random_cpus(cpus, base)
    whole = {min(cpus.core(cpu) & there) for cpu in there - cpus.core(0)}
    roaming = there - cpus.core(0) if len(whole) >= max(count, RANDOM_MIN_CPUS) else there
    order = [cpu for cpu in ranked(cpus, base.switch_cpu, cpus.node(base.switch_cpu)) if cpu in roaming]
    placed = _with_vnfs(cpus, base, share_out(order, count), roaming)
    return replace(placed, roaming=roaming)


def _far_cpus(cpus: Cpus, base: Placement, count: int) -> list[int]:
    """Return the CPUs for ``count`` VNFs on the other node, best first; CPU 0's core only if the others are few."""
    found = _other_node_cpus(cpus, base)
    without = [cpu for cpu in found if cpu not in cpus.core(0)]
    return without if sum(cpu in whole_cores(cpus) for cpu in without) >= count else found


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
    usual = sorted(roaming - cpus.isolated) if roaming else ()
    control = control_cpus(cpus, left, used, base.tester_cpus[0])
    if not left and usual:
        control = frozenset(usual)
    return replace(base, vnf_cpus=vnf_cpus, control_cpus=control)
