# SPDX-License-Identifier: BSD-3-Clause
from collections.abc import Sequence

from builders import make_header, make_point, make_trial

from planebench.model.records import SwitchCycles
from planebench.model.run import Run
from planebench.stats.derived import Derived
from planebench.stats.ranking import Ranking


def _rank(**trials: Sequence[tuple[float, str, str]]) -> tuple[Ranking, ...]:
    """Return trials of switches that report no cycles; each trial is a start."""
    made = [
        make_trial(0, make_point(switch), mpps, verdict, band=band, switch=SwitchCycles(), start=i, repetition=i)
        for switch, members in trials.items()
        for i, (mpps, verdict, band) in enumerate(members)
    ]
    return Derived(Run(make_header(tuple(trials)), tuple(made))).rankings


def _steady(*mpps: float, verdict: str = "valid", band: str = "near") -> list[tuple[float, str, str]]:
    return [(m, verdict, band) for m in mpps]


def test_the_fastest_is_first() -> None:
    (ranking,) = _rank(slow=_steady(9.9, 10.0, 10.1), fast=_steady(12.4, 12.5, 12.6))
    assert [r.point.switch for r in ranking.results] == ["fast", "slow"]


def test_other_bands_and_what_does_not_count_are_left_out() -> None:
    (ranking,) = _rank(a=_steady(10, 10.1), b=_steady(7, 7.1, band="far"), c=_steady(30, verdict="disturbed"))
    assert [r.point.switch for r in ranking.results] == ["a"]


def test_nothing_counts_no_ranking() -> None:
    assert _rank(a=_steady(10, verdict="invalid")) == ()


def _by_cycles(*members: tuple[str, float, float | None, str]) -> tuple[Ranking, ...]:
    """(switch, Mpps, cycles a packet, verdict), in three starts each."""
    trials = [
        make_trial(0, make_point(switch), mpps, verdict, switch=_cycles(cycles), start=i, repetition=i)
        for switch, mpps, cycles, verdict in members
        for i in range(3)
    ]
    return Derived(Run(make_header(tuple(m[0] for m in members)), tuple(trials))).rankings


def _cycles(cycles_per_packet: float | None) -> SwitchCycles:
    return SwitchCycles() if cycles_per_packet is None else SwitchCycles(int(cycles_per_packet * 1000), 0, 1000)


def test_where_the_tester_limits_the_fewest_cycles_come_first() -> None:
    (ranking,) = _by_cycles(("a", 15.0, 200, "valid"), ("b", 14.0, 50, "tester-limited"), ("c", 9.0, 300, "valid"))
    assert [r.point.switch for r in ranking.results] == ["b", "a", "c"]
    assert (ranking.by, ranking.metric, ranking.unordered) == ("cycles", "cycles_per_packet", ())


def test_without_a_limit_throughput_ranks_whatever_the_cycles() -> None:
    (ranking,) = _by_cycles(("a", 15.0, 200, "valid"), ("b", 14.0, 50, "valid"))
    assert (ranking.first.point.switch, ranking.by) == ("a", "throughput")


def test_what_tells_no_cycles_is_listed_last_and_not_tested() -> None:
    members = [("a", 14.0, 100, "tester-limited"), ("b", 12.0, 200, "valid")]
    (ranking,) = _by_cycles(*members, ("mute", 15.0, None, "valid"), ("slow", 5.0, None, "valid"))
    assert [r.point.switch for r in ranking.results] == ["a", "b", "mute", "slow"]
    assert ranking.unordered == ("mute", "slow")


def test_a_limited_switch_without_cycles_leaves_it_to_throughput() -> None:
    (ranking,) = _by_cycles(("a", 14.0, None, "tester-limited"), ("b", 12.0, 200, "valid"), ("c", 9.0, 300, "valid"))
    assert (ranking.first.point.switch, ranking.by) == ("a", "throughput")


def test_cycles_of_one_switch_rank_nothing() -> None:
    (ranking,) = _by_cycles(("a", 14.0, 100, "tester-limited"), ("b", 12.0, None, "valid"))
    assert ranking.by == "throughput"
