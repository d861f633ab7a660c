# SPDX-License-Identifier: BSD-3-Clause
"""What disturbs one switch only is reported as its property; what disturbs all alike is not."""

import pytest
from builders import make_header, make_point, make_trial

from planebench.model.records import Evidence, ThreadEvidence
from planebench.model.run import Run
from planebench.stats.disturbed import DisturbedSwitch, disturbed_switches, lost_by_switch


def _evidence(switch_ns: int = 0, tester_ns: int = 0, gaps_ns: int = 0, steal_ns: int = 0) -> Evidence:
    threads = (
        ThreadEvidence("switch", "worker-1", 1, 300_000_000, switch_ns // 2, 9),
        ThreadEvidence("switch", "worker-2", 1, 300_000_000, switch_ns - switch_ns // 2, 9),
        ThreadEvidence("tester", "tester", 0, 600_000_000, tester_ns, 0),
    )
    return Evidence(threads, poll_gap_sum_ns=gaps_ns, steal_ns=steal_ns)


def _run(evidence: Evidence = _evidence(), **disturbed: int) -> Run:  # noqa: B008
    """Twenty trials of each switch, of which so many are disturbed."""
    trials = [
        make_trial(0, make_point(label), verdict="disturbed" if i < n else "valid", evidence=evidence)
        for label, n in disturbed.items()
        for i in range(20)
    ]
    return Run(make_header(tuple(disturbed)), tuple(trials))


def test_a_disturbance_that_goes_with_one_switch_is_named() -> None:
    assert disturbed_switches(_run(a=1, b=12, c=1)) == (DisturbedSwitch("b", 0.6, 0.05, 0.0),)


def test_the_time_that_its_own_threads_lost_is_a_property_of_the_switch() -> None:
    (found,) = disturbed_switches(_run(_evidence(switch_ns=9_000_000, gaps_ns=1_000_000), a=1, b=12, c=1))
    assert (found.switch, found.own_threads) == ("b", 1.0)


@pytest.mark.parametrize(
    ("lost", "own"),
    [
        ({"switch_ns": 9, "tester_ns": 4, "steal_ns": 4}, True),
        ({"switch_ns": 9, "tester_ns": 5, "steal_ns": 5}, False),
        ({"switch_ns": 9, "tester_ns": 5, "gaps_ns": 8}, True),
        ({"switch_ns": 9, "gaps_ns": 10}, False),
        ({}, False),
    ],
)
def test_lost_time_is_attributed_by_thread(lost: dict[str, int], own: bool) -> None:
    assert lost_by_switch(_evidence(**lost)) is own


def test_a_busy_machine_disturbs_all_alike() -> None:
    assert disturbed_switches(_run(a=8, b=10, c=6)) == ()
    assert disturbed_switches(_run(a=15)) == disturbed_switches(_run()) == ()
