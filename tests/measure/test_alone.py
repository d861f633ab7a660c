# SPDX-License-Identifier: BSD-3-Clause
"""Detection of shared cores by the best value so far, and the verdict of a trial with a shared core."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_evidence, make_trial

from planebench.measure.alone import LOOKS, AloneCores, several_looks
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import CoreDistance, Trial, Verdict, VerdictKind

Pair = tuple[float, float]
ALONE: Pair = (4.0, 4.0)


def _at(speeds: tuple[float, ...]) -> CoreDistance:
    return CoreDistance(62.0, "near", speeds)


def _trial(before: Pair, after: Pair = ALONE, verdict: VerdictKind = VerdictKind.VALID) -> Trial:
    return make_trial(
        evidence=replace(make_evidence(), distance_before=_at(before), distance_after=_at(after)), verdict=verdict
    )


def test_the_best_look_so_far_tells_what_alone_is() -> None:
    cores = AloneCores()
    assert cores.look(_at((2.0, 2.0))), "nothing better is known"
    assert not cores.look(_at((4.0, 2.0)))
    assert not cores.look(_at((2.0, 2.0)))
    assert cores.look(_at((3.9, 4.0)))


@pytest.mark.parametrize("distance", [None, _at(())])
def test_unknown_counts_as_alone(distance: CoreDistance | None) -> None:
    cores = AloneCores(4.0)
    assert cores.look(distance)
    trial = make_trial(evidence=replace(make_evidence(), distance_before=distance, distance_after=distance))
    assert cores.judge(trial) is trial


@pytest.mark.parametrize(
    ("trial", "told"),
    [
        (_trial(ALONE), []),
        (_trial((4.0, 3.9)), []),
        (_trial((2.0, 4.0)), [("switch", 0.5)]),
        (_trial(ALONE, (4.0, 3.0)), [("tester", 0.75)]),
        (_trial((3.0, 4.0), (2.0, 1.0)), [("switch", 0.5), ("tester", 0.25)]),
    ],
)
def test_a_trial_with_a_shared_core_is_disturbed(trial: Trial, told: list[tuple[str, float]]) -> None:
    verdict = AloneCores(4.0).judge(trial).verdict
    assert verdict.kind is (VerdictKind.DISTURBED if told else VerdictKind.VALID)
    assert [(reason.code, reason.values["share"]) for reason in verdict.reasons] == [
        (ReasonCode.SHARED_CORE, share) for _, share in told
    ]
    assert verdict.texts == tuple(
        f"another hyperthread used the core of the {owner}, and left {share:.0%} of it" for owner, share in told
    )


def test_a_trial_tells_by_itself_what_alone_is() -> None:
    assert AloneCores().judge(_trial((2.0, 4.0))).verdict.has(ReasonCode.SHARED_CORE)


def test_other_reasons_of_a_disturbed_trial_stay_and_a_worse_verdict_too() -> None:
    stolen = Reason(ReasonCode.STEAL, "the hypervisor took 9 % of the CPU time")
    trial = replace(_trial((2.0, 4.0)), verdict=Verdict(VerdictKind.DISTURBED, (stolen,)))
    assert AloneCores().judge(trial).verdict.codes == (ReasonCode.STEAL, ReasonCode.SHARED_CORE)
    limited = replace(trial, verdict=Verdict(VerdictKind.TESTER_LIMITED, (stolen,)))
    assert AloneCores().judge(limited).verdict.codes == (ReasonCode.SHARED_CORE,)
    for kind in (VerdictKind.INVALID, VerdictKind.FUNCTIONAL):
        worse = replace(trial, verdict=Verdict(kind, (stolen,)))
        assert AloneCores().judge(worse) is worse


def test_a_run_begins_with_some_looks_unless_it_has_something_to_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("planebench.measure.alone.time.sleep", waits.append)
    speeds = iter([2.0, 3.0, 4.0, *[2.0] * LOOKS])
    cores = AloneCores()
    cores.begin(lambda: _at((next(speeds), 1.0)))
    assert (cores.best, len(waits)) == (4.0, LOOKS - 1)
    cores.begin(lambda: pytest.fail("looked again"))


@pytest.mark.parametrize("unknown", [None, _at(())])
def test_looks_end_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch, unknown: CoreDistance | None) -> None:
    monkeypatch.setattr("planebench.measure.alone.LOOK_S", 0)
    found = iter([_at(ALONE), _at(ALONE), unknown])
    assert list(several_looks(lambda: next(found))) == [_at(ALONE)] * 2
    monkeypatch.setattr("planebench.measure.alone.time.sleep", lambda _: pytest.fail("waits where nothing is known"))
    AloneCores().begin(lambda: unknown)
