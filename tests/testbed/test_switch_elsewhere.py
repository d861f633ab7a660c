# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs of a tester whose switch is on another host."""

from __future__ import annotations

import pytest

from planebench.model.cpus import Cpus
from planebench.testbed.placement import place


@pytest.mark.parametrize(
    ("count", "tester", "control"), [(1, (0,), {0}), (2, (1,), {0}), (3, (2, 1), {0}), (8, (7, 1), {0, 2, 3, 4, 5, 6})]
)
def test_the_tester_has_the_core_that_a_switch_would_have(
    count: int, tester: tuple[int, ...], control: set[int]
) -> None:
    found = place(Cpus(tuple(range(count)), switch_elsewhere=(5, 6)))
    assert (found.tester_cpus, found.control_cpus) == (tester, control)
    assert found.switch_cpus == (5, 6) and found.switch_cpus_here == ()
    assert found.pollers == set(tester)
    assert found.elsewhere and not found.shared and found.share_l3 is None


def test_the_tester_is_on_the_node_of_its_nics() -> None:
    nodes = {cpu: cpu // 4 for cpu in range(8)}
    found = place(Cpus(tuple(range(8)), numa_node=nodes, tester_node=0, switch_elsewhere=(1,)))
    assert found.tester_cpus == (3, 1) and found.memory_node(3) == 0
