# SPDX-License-Identifier: BSD-3-Clause
from builders import make_header, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.analysis.counting import reach_pps
from planebench.analysis.standings import Standings
from planebench.model.header import Run
from planebench.model.records import SwitchCycles


def _order(*members: tuple[str, float, str, float]) -> list[tuple[str, float]]:
    """(switch, Mpps, verdict, share of its cycles that are idle, at full batches) -> switches and what they reach."""
    trials = [
        make_trial(0, make_point(switch), mpps, verdict, switch=_idle(idle), start=i, repetition=i)
        for switch, mpps, verdict, idle in members
        for i in range(3)
    ]
    derived = Derived(Run(make_header(tuple(m[0] for m in members)), tuple(trials)))
    standings = Standings(derived).throughput
    return [(it.point.switch, round(reach_pps(it) / 1e6, 1)) for standing in standings for it in standing.results]


def _idle(share: float) -> SwitchCycles:
    return SwitchCycles(round(1e9 * (1 - share)), round(1e9 * share), 32_000, bursts=1000) if share else SwitchCycles()


def test_the_fastest_is_first_and_what_does_not_count_is_left_out() -> None:
    assert _order(("slow", 10, "valid", 0), ("none", 30, "invalid", 0), ("fast", 12, "valid", 0)) == [
        ("fast", 12.0),
        ("slow", 10.0),
    ]
    assert _order(("a", 10, "invalid", 0)) == []


def test_a_lower_bound_stands_at_the_capacity_estimated_where_it_is_known() -> None:
    half_idle, mute = ("half-idle", 9.0, "tester-limited", 0.5), ("mute", 10.0, "tester-limited", 0.0)
    assert _order(("a", 15.0, "valid", 0.1), half_idle, mute) == [("half-idle", 18.0), ("a", 15.0), ("mute", 10.0)]
