# SPDX-License-Identifier: BSD-3-Clause
"""A guest with two NUMA nodes: threads and memory of a run are where its placement has them, or its trials say so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lab_rig import RUNS, Lab, on

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("two-nodes")]
RUN = (
    *("run", "--switch", "planed", "--scenario", "loopback", "--chain-length", "2", "--hosting", "separate"),
    *("--placement", "near,split:1,random", "--frame-size", "64", "--direction", "unidirectional", "--loads", "none"),
    *("--duration", "0.3", "--repeat", "1", "--no-calibrate", "--no-report", "--quiet", "--runs", RUNS),
)


@pytest.fixture(scope="module")
def trials(guest: Lab) -> dict[str, dict[str, Any]]:
    """Return the last trial of each placement. Node 0 has CPUs 0 to 3; the switch is on CPU 7, the tester on CPU 4."""
    done = guest.planebench(*RUN, timeout_s=600)
    assert done.code in (0, 3), done.output
    lines = guest.sh(f"cat {RUNS}/*/trials.jsonl").output.splitlines()
    return {trial["point"].get("placement", "near"): trial for trial in map(json.loads, lines)}


def test_the_guest_has_two_nodes(lab: Lab) -> None:
    assert lab.sh("cat /sys/devices/system/node/node*/cpulist").output.split() == ["0-3", "4-7"]
    assert lab.sh("cat /sys/devices/system/node/node0/distance").output.split() == ["10", "21"]


@pytest.mark.parametrize(("placement", "cpus", "nodes"), [("near", [5, 6], [1, 1]), ("split:1", [5, 1], [1, 0])])
def test_threads_and_memory_are_where_they_are_planned(
    trials: dict[str, dict[str, Any]], placement: str, cpus: list[int], nodes: list[int]
) -> None:
    trial = trials[placement]
    assert not [reason for reason in trial["verdict"]["reasons"] if reason["code"] in ("misplaced", "error")], trial
    threads = [it["cpu"] for it in trial["evidence"]["threads"] if it["owner"] == "vnf"]
    assert threads == cpus
    memory = {it["name"]: it for it in trial["evidence"]["memory"]}
    assert [memory[f"vnf{number}"]["node"] for number in (0, 1)] == nodes
    assert (memory["the switch"]["node"], memory["the tester"]["node"]) == (1, 1)
    for it in memory.values():
        there = dict(it["bytes_by_node"])
        assert there[it["node"]] > 0.99 * sum(there.values()) > 1_000_000, it


def test_vnfs_at_random_may_run_on_all_other_cpus(trials: dict[str, dict[str, Any]]) -> None:
    trial = trials["random"]
    assert not [reason for reason in trial["verdict"]["reasons"] if reason["code"] in ("misplaced", "error")], trial
    assert {it["cpu"] for it in trial["evidence"]["threads"] if it["owner"] == "vnf"} <= {1, 2, 3, 5, 6}
    assert {it["node"] for it in trial["evidence"]["memory"] if it["owner"] == "vnf"} == {None}


def test_memory_elsewhere_than_planned_is_found(lab: Lab) -> None:
    done = lab.script("misplaced.py", timeout_s=300)
    assert done.code == 0, done.output
    found = json.loads(done.output)
    assert found["bound"] == []
    (reason,) = found["free"]
    assert "of the memory of free is on NUMA node 0, not on node 1 as planned" in reason
