# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the papers' suites on two NUMA nodes, whole: plan, run, report. Every frame is accounted for, and of each
process the kernel tells on which node its memory is and on which CPUs its threads ran.

Node 0 has CPUs 0 to 3, node 1 has 4 to 7. The switch is on CPU 7, a tester that is near it on CPU 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from lab_rig import Lab, on

from planebench.plan import SUITES

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("two-nodes")]

SWITCH_CPU, NEAR_CPUS, FAR_CPUS = 7, {4, 5, 6}, {0, 1, 2, 3}
FREE_CPUS = {1, 2, 3, 5, 6}
"""All but those of switch, tester and kernel."""
SHORT = ("--duration", "1", "--repeat", "1", "--frame-size", "64", "--loads", "none")
ELSEWHERE = 0.01
"""The share of a process's memory that may be on another node: what the kernel takes for it."""


@dataclass(frozen=True)
class Whole:
    """Parts of a suite that were planned, run and reported."""

    trials: list[dict[str, Any]]
    report: str

    def of(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the trials whose points have these values; at least one."""
        found = [it for it in self.trials if all(it[key] == value for key, value in wanted.items())]
        assert found, (wanted, self.trials)
        return found


def whole(lab: Lab, suite: str, part: str, *options: str) -> Whole:
    """Run the parts of a suite whose names begin with ``part``, as they are but for ``options``, in the guest."""
    plan = yaml.safe_load((SUITES / f"{suite}.yaml").read_text())
    plan["parts"] = [it for it in plan["parts"] if it["name"].startswith(part)]
    plan["throughput"].pop("line_bps", None)  # an emulated tester cannot fill a line
    plan.pop("search", None)  # of other parts
    path, runs = f"/run/lab/{suite}-{part}.yaml", f"/run/lab/{suite}-{part}-runs"
    assert lab.sh(f"cat > {path} <<'END'\n{yaml.safe_dump(plan)}\nEND").code == 0
    shown = lab.planebench("plan", "show", path, *SHORT, *options, timeout_s=300)
    assert shown.code == 0, shown.output
    points = [line.strip() for line in shown.output.splitlines() if line.startswith("  ") and "/" in line]
    done = lab.planebench(
        *("run", path, *SHORT, *options, "--no-calibrate", "--no-report", "--quiet", "--runs", runs), timeout_s=3000
    )
    assert done.code in (0, 3), done.output
    *trials, _ = lab.script("trials.py", runs, timeout_s=300).documents()
    report = lab.planebench("report", "latest", "--all", "--runs", runs, timeout_s=600)
    assert report.code == 0, report.output
    assert lab.sh(f"test -s {runs}/*/report.html").code == 0
    assert len([it for it in trials if it["role"] == "r_plus"]) == len(points), (points, trials)
    for it in trials:
        assert it["verdict"] == "functional", it
        assert it["offered"] > 0 and it["forwarded"] > 0 and it["unexplained"] == 0, it
        assert not any("as planned" in reason for reason in it["reasons"]), it
    return Whole(trials, report.output)


def nodes(trial: dict[str, Any]) -> dict[str, int]:
    """Return the node of the memory of each process that has one planned: all but a hundredth of it is there."""
    found = {}
    for name, (planned, by_node) in trial["memory"].items():
        assert sum(by_node.values()) > 1_000_000, (name, by_node)
        if planned is not None:
            assert by_node[str(planned)] >= (1 - ELSEWHERE) * sum(by_node.values()), (name, planned, by_node)
            found[name] = planned
    return found


def cpus(trial: dict[str, Any], owner: str) -> list[int]:
    """Return the CPU of each polling thread of an owner, where the kernel last had it."""
    return [cpu for who, cpu in trial["threads"] if who == owner]


def test_conext19_with_the_tester_on_the_other_node(guest: Lab) -> None:
    done = whole(
        guest,
        *("conext19", "throughput", "--switch", "planed,testpmd", "--tester", "other-node"),
        *("--direction", "unidirectional", "--chain-length", "2", "--hosting", "separate"),
    )
    assert {(it["switch"], it["scenario"]) for it in done.trials} == {
        (switch, scenario) for switch in ("planed", "testpmd") for scenario in ("p2p", "p2v", "v2v", "loopback")
    }
    for it in done.trials:
        # The ends in p2v and v2v are VNFs as far as the switch can see, and are near it.
        ends, vnfs = {"p2v": (1, 0), "v2v": (2, 0), "loopback": (0, 2)}.get(it["scenario"], (0, 0))
        where, tester, chain = nodes(it), cpus(it, "tester"), cpus(it, "vnf")
        assert (where.pop("the switch"), where.pop("the tester")) == (1, 0), it
        assert where == {f"vnf{number}": 1 for number in range(ends + vnfs)}, it
        assert set(cpus(it, "switch")) == {SWITCH_CPU} and set(chain) <= NEAR_CPUS and len(chain) == vnfs, it
        assert sorted(cpu in NEAR_CPUS for cpu in tester) == [False] * (len(tester) - ends) + [True] * ends, it
        assert len(tester) == 2, it


def test_can17_with_a_chain_over_two_sockets(guest: Lab) -> None:
    done = whole(guest, "can17", "sockets", "--switch", "planed,testpmd", "--scenario", "loopback")
    assert any(it["placement"].startswith("split:") for it in done.of(switch="testpmd"))
    for it in done.trials:
        where, chain = nodes(it), cpus(it, "vnf")
        assert (where["the switch"], where["the tester"]) == (1, 1), it
        assert [where[f"vnf{number}"] for number in range(len(chain))] == [int(cpu in NEAR_CPUS) for cpu in chain], it
        # Node 1 has two CPUs for VNFs: the third of a chain that is near is told of, on the other node.
        near = 2 if it["placement"] == "near" else int(it["placement"].removeprefix("split:"))
        assert set(chain[:near]) <= NEAR_CPUS and set(chain[near:]) <= FAR_CPUS, it
        assert it["placement"] in done.report


def test_ic16_with_a_vnf_near_at_random_and_far(guest: Lab) -> None:
    done = whole(guest, "ic16", "placements", "--vnfs", "1", "--switch", "planed")
    assert {it["placement"] for it in done.trials} == {"near", "random", "far"}
    for it in done.trials:
        where = nodes(it)
        assert where.pop("the tester") == 1 and where.pop("the switch") == 1 and len(cpus(it, "vnf")) == 1, it
        there, node = {"near": (NEAR_CPUS, 1), "far": (FAR_CPUS, 0), "random": (FREE_CPUS, None)}[it["placement"]]
        assert set(cpus(it, "vnf")) <= there, it
        assert where == ({} if node is None else {"vnf0": node}) and "vnf0" in it["memory"], it
