# SPDX-License-Identifier: BSD-3-Clause
"""Replay: what answers an ask, what never does, and that a search can be cut and resumed anywhere."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest
from builders import make_evidence, make_point, make_trial
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.search.methods import METHODS
from planebench.analysis.search.replay import repetitions, so_far, step
from planebench.analysis.search.task import ASKED_MAX, Ask, SearchSettings
from planebench.model.errors import UsageError
from planebench.model.records import Load, Trial, VerdictKind
from planebench.model.results import SearchResult

from .conftest import Rig

SOURCE = Path(__file__).parents[2] / "planebench" / "search"
SEARCHES = tuple(METHODS)
ROUGH = "sim:noise=1%:stall_share=20%:disturbed_share=20%:far_share=20%:dies_share=5%:ring=500"


def test_search_knows_only_the_model_and_mlrsearch():
    for path in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                if name.startswith("planebench"):
                    assert name.startswith(("planebench.model", "planebench.analysis.search")), f"{path.name}: {name}"
                else:
                    assert name not in ("os", "time", "pathlib", "random", "socket", "subprocess"), path.name


def test_an_unknown_method_is_named():
    with pytest.raises(UsageError, match=r'unknown search "ndd", did you mean ndr\? Valid: carried, ndr'):
        step("ndd", SearchSettings(), make_point(), [])


@pytest.mark.parametrize("method", [method for method in SEARCHES if method != "carried"])
@settings(max_examples=8)
@given(seed=st.integers(0, 999))
def test_what_does_not_count_is_never_used(method, seed):
    rig = Rig(ROUGH, seed)
    result = rig.finish(method)
    for trial in rig.used(result):
        limited_flat_out = trial.load.pps_per_direction is None and trial.verdict.kind is VerdictKind.TESTER_LIMITED
        assert trial.verdict.kind is VerdictKind.VALID or limited_flat_out
        assert trial.role in ("r_plus", "search")
    assert len(set(result.trials)) == len(result.trials)


@settings(max_examples=8)
@given(seed=st.integers(0, 999))
def test_the_carried_load_takes_one_trial_a_load_that_took_place(seed):
    rig = Rig(ROUGH, seed)
    rig.finish("carried")
    took_place = [t for t in rig.trials if t.verdict.kind is not VerdictKind.INVALID]
    assert len(took_place) <= 6, "a saturating one and five loads"


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=4)
@given(seed=st.integers(0, 999), where=st.floats(0, 1))
def test_a_cut_search_goes_on_to_the_same_result(method, seed, where):
    whole = Rig(ROUGH, seed)
    wanted = whole.finish(method)
    cut = Rig(ROUGH, seed, trials=whole.trials[: int(where * len(whole.trials))])
    partial = cut.so_far(method, cut.trials)
    assert partial.complete == (len(cut.trials) == len(whole.trials) and wanted.complete)
    assert cut.finish(method) == wanted
    assert cut.trials == whole.trials


@pytest.mark.parametrize("method", ["ndr", "bswlv"])
def test_bounds_so_far_never_lie(rig, method):
    whole = rig("sim")
    final = whole.finish(method)
    for n in range(len(whole.trials)):
        partial = whole.so_far(method, whole.trials[:n])
        assert not partial.complete
        assert partial.verdict.kind is VerdictKind.INVALID
        assert partial.verdict.codes[0] == "interrupted"
        assert partial.lower_pps is None or partial.lower_pps <= final.lower_pps
        assert partial.upper_pps is None or partial.upper_pps >= final.upper_pps
    assert whole.so_far(method, whole.trials) == final


def test_later_searches_reuse_trials_of_earlier_ones(rig):
    shared, alone = rig("sim:capacity=9M"), rig("sim:capacity=9M")
    ndr = shared.finish("ndr")
    before = len(shared.trials)
    pdr = shared.finish("pdr")
    wanted = alone.finish("pdr")
    assert (pdr.lower_pps, pdr.upper_pps) == (wanted.lower_pps, wanted.upper_pps)
    reused = set(ndr.trials) & set(pdr.trials)
    assert len(reused) > 5
    assert len(shared.trials) - before == len(alone.trials) - len(reused)


def test_r_plus_trials_answer_the_first_ask(rig):
    tried = rig("sim", r_plus_duration_s=0.5)
    tried.saturate(3)
    assert isinstance(ask := tried.next("ndr"), Ask)
    assert ask.load_pps == 12.5e6


def test_more_saturating_trials_do_not_move_a_search(rig):
    tried = rig("sim:noise=5%")
    result = tried.finish("bswlv")
    tried.saturate(3)
    assert tried.next("bswlv") == result


def test_a_saturating_trial_paced_at_line_rate_counts_as_flat_out():
    point = make_point()
    paced = make_trial(0, point, 8.0, load=Load("saturating", 14.88e6))
    how = SearchSettings(max_load_pps=14.88e6)
    assert isinstance(ask := step("b2b", how, point, [paced]), Ask)
    assert ask.load_pps == 14.88e6


@pytest.mark.parametrize(
    "change",
    [
        {"role": "warmup"},
        {"role": "latency"},
        {"load": Load("paced", 12.5e6 * 1.00001)},
        {"intended_duration_ns": 1_020_000_000, "offered_duration_ns": 1_020_000_000},
        {"verdict": "invalid"},
        {"verdict": "tester-limited"},
    ],
)
def test_what_is_no_answer(change):
    point = make_point()
    flat_out = make_trial(0, point)
    answer = {"role": "search", "load": Load("paced", 12.5e6), "search": "x"}
    first = step("rfc2544", SearchSettings(duration_s=1.0), point, [flat_out])
    assert first == Ask(12.5e6, 1.0)
    good = make_trial(1, point, 10.0, **answer)
    bad = make_trial(1, point, 10.0, **{**answer, **change})
    assert step("rfc2544", SearchSettings(duration_s=1.0), point, [flat_out, bad]) == first
    assert step("rfc2544", SearchSettings(duration_s=1.0), point, [flat_out, bad, good]) != first


def test_giving_up_says_what_was_tried():
    """The tester has kept a higher load, so it is not the limit at this one, which it never keeps."""
    point = make_point()
    limited = {"role": "search", "load": Load("paced", 12.5e6), "verdict": "tester-limited"}
    log = [make_trial(0, point), make_trial(1, point, role="search", load=Load("paced", 13e6))]
    log += [make_trial(i, point, **limited) for i in range(2, 1 + ASKED_MAX)]
    how = SearchSettings(duration_s=1.0)
    assert isinstance(step("ndr", how, point, log), Ask)
    end = step("ndr", how, point, [*log, make_trial(9, point, **{**limited, "verdict": "invalid"})])
    assert isinstance(end, SearchResult)
    assert not end.complete
    assert end.verdict.kind is VerdictKind.INVALID
    assert end.verdict.texts[0] == (
        f"gave up at 12.5 Mpps, 1 s: {ASKED_MAX} trials in a row were no answer "
        f"(1 invalid, {ASKED_MAX - 1} tester-limited)"
    )
    assert end.trials == (0,)


def test_a_dead_switch_ends_the_search_as_invalid(rig):
    tried = rig("sim:dies_share=1")
    result = tried.finish("ndr")
    assert result.verdict.kind is VerdictKind.INVALID
    assert not result.complete
    assert len(tried.trials) == ASKED_MAX
    assert result.trials == ()


def test_a_search_that_a_dead_switch_cut_says_of_what_it_died():
    point, died = make_point(), {"verdict": "invalid", "reasons": ("planed died (signal 9)",)}
    log = [make_trial(0, point), make_trial(1, point, role="search", **died)]
    nothing = so_far("ndr", SearchSettings(), point, log).verdict
    assert nothing.kind is VerdictKind.INVALID
    assert nothing.texts == ("interrupted before anything was found", "planed died (signal 9)")
    assert so_far("ndr", SearchSettings(), point, [*log, make_trial(2, point)]).verdict.texts == nothing.texts[:1]


def test_bounds_so_far_are_told_with_what_cut_them(rig):
    tried = rig("sim")
    tried.finish("bswlv")
    died = make_trial(99, tried.point, role="search", verdict="invalid", reasons=("planed died",))
    end = tried.so_far("bswlv", [*tried.trials[:4], died])
    assert end.verdict.texts == ("interrupted; bounds so far", "planed died")


def test_a_restart_of_the_switch_during_a_search_is_told(rig):
    one, several = rig("sim"), rig("sim")
    told = "the switch was started again during the search (starts 0 to 2)"
    several.change = lambda t: dataclasses.replace(t, start=min(2, len(several.trials) // 3))
    assert told not in one.finish("bswlv").deviations
    assert told in several.finish("bswlv").deviations
    first = rig("sim")
    first.change = lambda t: dataclasses.replace(t, start=0 if t.load.pps_per_direction is None else 1)
    assert first.finish("bswlv").deviations == one.finish("bswlv").deviations, "only the flat-out one was before"


def test_trials_of_short_gaps_are_not_blamed_on_the_switch(rig):
    """Every loss is 3 frames, and in every trial a poller stood still for a ms: 1000 frames' time at the least load."""

    def with_gap(trial):
        return dataclasses.replace(trial, evidence=dataclasses.replace(make_evidence(), poll_gap_sum_ns=1_000_000))

    tried = rig("sim:stall_share=100%", max_load_pps=9e6, min_load_pps=1e6)
    clean = rig("sim:stall_share=100%", max_load_pps=9e6, min_load_pps=1e6)
    tried.change = with_gap
    result = tried.finish("rfc2544")
    assert result.verdict.kind is VerdictKind.VALID
    assert "gaps of the pollers explain the losses at 0.9 Mpps (1 ms in 60 s)" in result.verdict.texts[0]
    assert clean.finish("rfc2544").verdict.codes == ("no-load-met",)


@pytest.mark.parametrize("method", SEARCHES)
def test_a_functional_trial_ends_a_search_at_once(method: str):
    """The next would be functional, too: eight tries tell no more than one."""
    ask = step(method, SearchSettings(), make_point(), [])
    assert isinstance(ask, Ask)
    pps = ask.load_pps
    trial = make_trial(
        point=make_point(),
        verdict="functional",
        reasons=["vnf0 is emulated"],
        role="search",
        load=Load("x", pps),
        intended_duration_ns=int(ask.duration_s * 1e9),
    )
    found = step(method, SearchSettings(), make_point(), [trial])
    assert isinstance(found, SearchResult)
    assert (found.verdict.kind, found.verdict.texts) == (VerdictKind.FUNCTIONAL, ("vnf0 is emulated",))
    assert (found.complete, found.lower_pps, found.upper_pps) == (False, None, None)


def test_each_repetition_of_a_search_has_paced_trials_of_its_own(rig):
    tried = rig("sim:noise=1%", max_r=1)
    first = tried.finish("bswlv")
    count = len(tried.trials)
    second = tried.finish("bswlv", repetition=1)
    assert (first.repetition, second.repetition) == (0, 1)
    assert {t.repetition for t in tried.trials[count:] if t.role == "search"} == {1}
    assert not {t.index for t in tried.used(second) if t.role == "search"} & set(first.trials)
    assert tried.finish("bswlv") == first, "trials of the second are none of the first"
    assert repetitions(tried.trials) == [0, 1]
    later = [dataclasses.replace(t, repetition=4 * t.repetition) for t in tried.trials]
    assert repetitions(later) == [0, 4], "a start of the switch has several repetitions of other trials"


def test_a_repetition_tries_more_than_the_upper_bound_before_it_overloads_the_switch(rig) -> None:
    """A switch that an overload slows by a tenth until it is started again: the search begins with one."""
    tried, overloaded = rig("sim:capacity=10M", max_r=1), [False]

    def change(trial: Trial) -> Trial:
        load = trial.load.pps_per_direction
        first = trial.directions[0]
        most = int(9e6 * trial.offered_duration_ns / 1e9) if overloaded[0] else first.forwarded_packets
        overloaded[0] = overloaded[0] or load is None or load > 10e6
        less = dataclasses.replace(first, forwarded_packets=min(first.forwarded_packets, most))
        return dataclasses.replace(trial, directions=(less,))

    tried.change = change
    before = tried.finish("bswlv")
    assert before.upper_pps == pytest.approx(9e6, rel=0.01)
    assert "hysteresis" not in before.verdict.codes
    overloaded[0] = False
    after = tried.finish("bswlv", repetition=1)
    assert "hysteresis" in after.verdict.codes
    steady = rig("sim:capacity=10M", max_r=1)
    steady.finish("bswlv")
    assert "hysteresis" not in steady.finish("bswlv", repetition=1).verdict.codes


def test_loss_at_the_lower_bound_is_told(rig) -> None:
    tried = rig("sim:capacity=10M:stall_share=30%:stall_packets=20000")
    result = tried.finish("ndr")
    at_bound = [t for t in tried.used(result) if t.load.pps_per_direction == result.lower_pps]
    lossy = [t.loss_ratio for t in at_bound if t.loss_ratio > 0]
    assert 0 < len(lossy) < len(at_bound) / 2 + 1
    (told,) = [reason for reason in result.verdict.reasons if reason.code.value == "loss-at-bound"]
    assert told.text.startswith(f"{len(lossy)} of {len(at_bound)} trials at the lower bound lost")
