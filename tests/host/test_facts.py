# SPDX-License-Identifier: BSD-3-Clause
"""Facts are plain, complete and true of this machine."""

from __future__ import annotations

import json
import os

import pytest

from planebench.host.facts import HostFacts, collect, parse_cpus


@pytest.mark.parametrize(
    ("text", "cpus"), [("", ()), ("0", (0,)), ("0-3", (0, 1, 2, 3)), ("0,2-3,8", (0, 2, 3, 8)), ("rubbish", ())]
)
def test_cpu_lists_of_the_kernel(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


def test_collect_agrees_with_the_system() -> None:
    facts = collect()
    assert set(facts.cpus_allowed) == os.sched_getaffinity(0)
    assert set(facts.cpus_allowed) <= set(facts.cpus_online)
    assert facts.kernel == os.uname().release
    assert facts.memory_total_bytes >= facts.memory_available_bytes > 0
    assert facts.is_root == (os.geteuid() == 0)
    assert 1 <= facts.cores_allowed <= len(facts.cpus_allowed)


def test_as_dict_is_plain_and_survives_json() -> None:
    plain = collect().as_dict()
    assert all(value is None or isinstance(value, str | int | float | bool) for value in plain.values())
    assert json.loads(json.dumps(plain)) == plain
    assert {"cpus_allowed", "smt_siblings", "numa_nodes", "autogroup", "hugepages_2m_free"} <= plain.keys()


def test_siblings_count_as_one_core() -> None:
    pair, other = frozenset({0, 4}), frozenset({1, 5})
    facts = HostFacts(cpus_online=(0, 1, 4, 5), cpus_allowed=(0, 1, 4), siblings={0: pair, 4: pair, 1: other, 5: other})
    assert facts.cores_allowed == 2
    assert facts.shared_cores == ((0, 4),)
    assert facts.as_dict()["smt_siblings"] == "0-4"
