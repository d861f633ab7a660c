# SPDX-License-Identifier: BSD-3-Clause
"""How often another hyperthread used the cores of switch and tester."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from builders import make_evidence, make_header, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.analysis.disturbance import SharedCore, core_shares, shared_cores
from planebench.analysis.standings import Standings
from planebench.model.header import Run
from planebench.model.records import CoreDistance, SwitchCycles, Trial
from planebench.report.trust import Trust, trust

Pair = tuple[float, float]


def _at(speeds: Pair | None, band: str = "near") -> CoreDistance | None:
    return replace(make_evidence(band).distance_before, additions_per_cycle=speeds or ())  # type: ignore[type-var]


def _trial(index: int, before: Pair | None, after: Pair | None = None, cycles: int = 30, **changes: object) -> Trial:
    evidence = replace(make_evidence(), distance_before=_at(before), distance_after=_at(after or before))
    switch = SwitchCycles(busy_cycles=cycles * 1000, idle_cycles=0, packets=1000)
    return make_trial(index, evidence=evidence, switch=switch, **changes)  # type: ignore[arg-type]


def test_a_core_has_what_it_had_at_the_worse_of_both_times_of_the_best_of_the_run() -> None:
    trials = [_trial(0, (4.0, 3.0), (4.0, 2.0)), _trial(1, (2.0, 4.0), (3.0, 4.0))]
    assert core_shares(trials) == {0: (1.0, 0.5), 1: (0.5, 1.0)}
    assert shared_cores(trials) == (SharedCore("switch", 2, 1, 0.5), SharedCore("tester", 2, 1, 0.5))


def test_almost_the_best_is_alone() -> None:
    assert [core.shared for core in shared_cores([_trial(0, (4.0, 3.81)), _trial(1, (3.79, 4.0))])] == [1, 0]


def test_nothing_is_said_where_nothing_is_known() -> None:
    unknown = _trial(0, None), make_trial(1, band=None), _trial(2, (0.0, 4.0)), _trial(3, (4.0, 2.0), role="warmup")
    assert shared_cores(unknown) == shared_cores(()) == ()
    assert "hyperthread" not in _words(unknown)


def test_the_report_says_how_often() -> None:
    point = make_point("planed")
    trials = [_trial(0, (4.0, 2.2), cycles=20, point=point), _trial(1, (2.0, 4.0), cycles=30, point=point)]
    found = _trust([*trials, _trial(2, (4.0, 4.0), point=make_point("testpmd"))])
    (said,) = (fact for fact in found.facts if "hyperthread" in fact)
    assert found.advice[-1].startswith("Use a host without hyperthreads")
    assert said == (
        "Another hyperthread used a core, that of the switch in 1 of 3 trials and that of the tester in 1 of 3 trials, "
        "and left 50 % of it at the least."
    )


def test_cores_that_are_always_alone_are_not_mentioned() -> None:
    assert "hyperthread" not in _words([_trial(0, (4.0, 4.0)), _trial(1, (3.9, 4.0))])


def test_a_core_that_is_shared_now_and_then_needs_no_other_host() -> None:
    found = _trust([_trial(i, (4.0, 4.0 if i else 2.0)) for i in range(20)])
    assert "that of the tester in 1 of 20 trials" in " ".join(found.facts)
    assert "hyperthreads" not in " ".join(found.advice)


def _trust(trials: Iterable[Trial]) -> Trust:
    return trust(Standings(Derived(Run(make_header(("planed",)), tuple(trials)))))


def _words(trials: Iterable[Trial]) -> str:
    found = _trust(trials)
    return " ".join((*found.facts, *found.advice))
