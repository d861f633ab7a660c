# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial
from stats.searching import searched_run

from planebench.model.records import SwitchCycles, Trial
from planebench.model.results import Comparison
from planebench.model.run import Run
from planebench.stats.compare import (
    MUST_MATCH,
    NotCompared,
    Outcome,
    differing_facts,
    runs_compared,
)
from planebench.stats.derived import Derived

MUTE = SwitchCycles()


def compared(run: Run) -> Outcome:
    return Derived(run).compared


CELL = "p2p/unidirectional/64/virtio/process"


def _flat(switch: str, *mpps: float, **changes: Any) -> list[Trial]:
    """Saturating trials of a switch that tells no cycles."""
    return [make_trial(0, make_point(switch), m, **{"switch": MUTE, **changes}) for m in mpps]


def _run(*trials: Sequence[Trial], run_id: str = "run-a", **header: Any) -> Run:
    together = tuple(dataclasses.replace(t, index=i) for i, t in enumerate(t for some in trials for t in some))
    labels = tuple(dict.fromkeys(t.point.switch for t in together))
    return Run(make_header(labels, run_id=run_id, **header), together)


def _one(*trials: Sequence[Trial]) -> Comparison:
    (comparison,) = Derived(_run(*trials)).comparisons
    return comparison


def _only(outcome: Outcome, metric: str) -> Comparison:
    (comparison,) = (c for c in outcome.comparisons if c.metric == metric)
    return comparison


def test_the_first_of_the_header_is_what_the_other_is_measured_by() -> None:
    found = _one(_flat("planed", 10.0, 10.1, 10.2), _flat("testpmd", 12.0, 12.12, 12.2))
    assert (found.a, found.b, found.point, found.metric) == ("planed", "testpmd", CELL, "throughput")
    assert found.ratio == pytest.approx(1.2)
    assert (found.low, found.high) == (pytest.approx(12.0 / 10.2), pytest.approx(12.2 / 10.0))
    assert found.distinguishable
    assert (found.trials_a, found.trials_b, found.band, found.load, found.note) == (3, 3, "near", "", "")


def test_every_pair_is_compared_at_each_cell() -> None:
    other = [make_trial(0, make_point(s, "v2v"), 5.0, switch=MUTE) for s in ("a", "b")]
    pairs = Derived(_run(_flat("a", 10.0), _flat("b", 11.0), _flat("c", 12.0), other)).comparisons
    assert [(c.a, c.b, c.point.split("/")[0]) for c in pairs] == [
        ("a", "b", "p2p"),
        ("a", "c", "p2p"),
        ("b", "c", "p2p"),
        ("a", "b", "v2v"),
    ]


@pytest.mark.parametrize(
    ("n", "said"), [(1, "only 1 accepted trial each"), (2, "2 and 2 accepted trials; at least 3 each required")]
)
def test_too_few_trials_are_named(n: int, said: str) -> None:
    found = _one(_flat("a", *[10.0] * n), _flat("b", *[20.0] * n))
    assert (found.ratio, found.low, found.high, found.distinguishable, found.note) == (2.0, None, None, False, said)


@pytest.mark.parametrize(
    ("bound", "other", "told", "low", "high"),
    [
        ("b", 15.0, True, 1.5, None),
        ("b", 8.0, False, 0.8, None),
        ("a", 8.0, True, None, 0.8),
        ("a", 15.0, False, None, 1.5),
    ],
)
def test_a_lower_bound_leaves_its_side_open(
    bound: str, other: float, told: bool, low: float | None, high: float | None
) -> None:
    limited = {bound: "tester-limited"}
    found = _one(
        _flat("a", *[10.0] * 3, verdict=limited.get("a", "valid")),
        _flat("b", *[other] * 3, verdict=limited.get("b", "valid")),
    )
    assert (found.distinguishable, found.low, found.high) == (told, low, high)
    assert found.note == f"{bound} is tester-limited (lower bound)"


def test_two_lower_bounds_tell_nothing() -> None:
    a, b = (_flat(s, *[m] * 3, verdict="tester-limited") for s, m in (("a", 10.0), ("b", 20.0)))
    found = _one(a, b)
    assert (found.ratio, found.low, found.high, found.distinguishable) == (2.0, None, None, False)
    assert found.note == "a and b are tester-limited (lower bounds)"


def test_only_the_band_that_both_have_is_compared() -> None:
    a = [*_flat("a", 10.0, 10.0, 10.0), *_flat("a", 4.0, band="far")]
    found = _one(a, _flat("b", 5.0, band="far"))
    assert (found.ratio, found.band, found.trials_a, found.trials_b) == (1.25, "far", 1, 1)


def test_without_a_common_band_the_reason_is_kept() -> None:
    outcome = compared(_run(_flat("a", 10.0), _flat("b", 5.0, band="far"), _flat("c", 9, verdict="invalid")))
    assert outcome.comparisons == ()
    apart = "not comparable: a ran on near cores, b on far cores"
    flat_out = ("throughput", "cycles_per_packet")
    assert outcome.skipped == (
        NotCompared("a", "b", CELL, flat_out, apart, has=("throughput",)),
        NotCompared("a", "c", CELL, flat_out, "all trials of c were rejected", has=("throughput",)),
        NotCompared("b", "c", CELL, flat_out, "all trials of c were rejected", has=("throughput",)),
    )


def test_an_unknown_core_distance_is_noted() -> None:
    found = _one(_flat("a", 10.0, 10.0, 10.0, band=None), _flat("b", 5.0, 5.0, 5.0, band=None))
    assert (found.band, found.note, found.distinguishable) == (None, "core-to-core latency unknown", True)


def test_two_bands_of_a_sample_are_noted() -> None:
    found = _one(_flat("a", 10.0, 10.0, 10.0), _flat("b", 10.0, 5.0, 10.0, 5.0))
    assert found.note == "b: two bands at the same core-to-core latency: 10 Mpps in 2 trials, 5 in 2"


def test_cycles_are_compared_where_both_know_them() -> None:
    def trials(switch: str, cycles: int, verdict: str) -> list[Trial]:
        busy = SwitchCycles(cycles * 10, 0, 10)
        return [make_trial(0, make_point(switch), 10.0, verdict, switch=busy) for _ in range(3)]

    run = _run(trials("a", 200, "valid"), trials("b", 50, "tester-limited"), _flat("c", 9.0))
    found = _only(compared(run), "cycles_per_packet")
    assert (found.a, found.b, found.ratio, found.distinguishable) == ("a", "b", 0.25, True)
    assert found.note == "b was not fully loaded (cycles per packet measured below saturation)"


def test_latency_is_compared_load_by_load() -> None:
    def at(switch: str, load: str, ns: int, pps: float = 5e6, **changes: Any) -> Trial:
        return make_latency_trial(0, make_point(switch), load, pps, [(ns, 99), (2 * ns, 1)], **changes)

    a = [at("a", "0.10", 1000, 1e6), at("a", "0.50", 1000), at("a", "0.99", 1000), at("a", "0.50", 1000)]
    b = [at("b", "0.10", 2000, 2e6), at("b", "0.50", 3000), at("b", "0.99", 1000, verdict="disturbed")]
    outcome = compared(_run(a, b))
    found = [(c.metric, c.load, c.ratio, c.note) for c in outcome.comparisons]
    few = "2 and 1 accepted trials; at least 3 each required"
    assert found == [
        ("latency_p50", "0.10", 2.0, "at 1 and 2 Mpps; only 1 accepted trial each"),
        ("latency_p99", "0.10", 2.0, "at 1 and 2 Mpps; only 1 accepted trial each"),
        ("latency_p50", "0.50", pytest.approx(3.0, rel=2e-3), few),
        ("latency_p99", "0.50", pytest.approx(3.0, rel=2e-3), few),
    ]
    assert not any(c.distinguishable for c in outcome.comparisons)
    assert [(s.metrics, s.load, s.reason) for s in outcome.skipped] == [
        (("throughput", "cycles_per_packet"), "", "all trials of a were rejected"),
        (("latency_p50", "latency_p99"), "0.99", "all trials of b were rejected"),
    ]


def test_latency_of_three_trials_has_an_interval() -> None:
    a, b = (
        [make_latency_trial(0, make_point(s), samples_ns=[(ns + i, 100)]) for i in range(3)]
        for s, ns in (("a", 1000), ("b", 1500))
    )
    found = _only(compared(_run(a, b)), "latency_p50")
    assert (found.distinguishable, found.trials_a, found.trials_b, found.note) == (True, 3, 3, "")
    assert (found.low, found.high) == (pytest.approx(1500 / 1002), pytest.approx(1502 / 1000))


def test_latency_of_another_band_is_not_compared() -> None:
    far = make_latency_trial(0, make_point("b"), band="far")
    outcome = compared(_run([make_latency_trial(0, make_point("a"))], [far]))
    assert outcome.comparisons == ()
    assert outcome.skipped[-1].reason.startswith("not comparable")


def test_searches_are_told_apart_where_their_bounds_do_not_meet() -> None:
    found = _only(compared(searched_run({"a": 10.0, "b": 8.0})), "ndr")
    assert found.ratio == pytest.approx(0.8, rel=0.01)
    assert found.distinguishable
    assert found.low is not None and found.high is not None
    assert found.low <= 0.8 <= found.high
    assert (
        found.note == "single search each: the range shown is the search bounds widened by trial spread, not a 95 % "
        "confidence interval"
    )
    same = _only(compared(searched_run({"a": 10.0, "b": 10.01})), "ndr")
    assert not same.distinguishable
    assert same.low is not None and same.high is not None
    assert same.low < 1 < same.high


def _with_rates(run: Run, switch: str, *mpps: float) -> Run:
    """The saturating trials of a switch as if they had forwarded so much; the first, which NDR used, stays."""
    own = [t for t in run.trials if t.role == "r_plus" and t.point.switch == switch]
    new = {t.index: make_trial(t.index, t.point, m) for t, m in zip(own[1:], mpps, strict=True)}
    return dataclasses.replace(run, trials=tuple(new.get(t.index, t) for t in run.trials))


def test_one_search_each_is_told_apart_only_beyond_the_spread_of_the_saturating_trials() -> None:
    run = searched_run({"a": 10.0, "b": 9.6})
    quiet = _only(compared(run), "ndr")
    noisy = _only(compared(_with_rates(run, "a", 9.9, 10.4)), "ndr")
    assert (quiet.distinguishable, noisy.distinguishable) == (True, False)
    assert quiet.ratio == noisy.ratio
    assert quiet.low is not None and quiet.high is not None and noisy.low is not None and noisy.high is not None
    spread = 0.5 / 10.0
    assert (noisy.low, noisy.high) == (
        pytest.approx(quiet.low / (1 + spread)),
        pytest.approx(quiet.high / (1 - spread)),
    )


def test_a_search_without_saturating_trials_to_know_its_noise_tells_nothing() -> None:
    run = searched_run({"a": 10.0, "b": 8.0})
    saturating = [t.index for t in run.trials if t.role == "r_plus" and t.point.switch == "b"]
    found = _only(compared(Run(run.header, tuple(t for t in run.trials if t.index != saturating[-1]))), "ndr")
    assert (found.low, found.high, found.distinguishable) == (None, None, False)
    assert "fewer than 3 trials at maximum offered load" in found.note


def test_a_search_that_only_the_first_has_is_named() -> None:
    a, b = searched_run({"planed": 10.0}, run_id="a"), _run(_flat("planed", 10.0, 10.0, 10.0), run_id="b")
    (left_out,) = runs_compared(Derived(a), Derived(b)).skipped
    assert (left_out.metrics, left_out.has, left_out.reason) == (
        ("ndr",),
        ("ndr",),
        "no such search was run on planed@b",
    )
    assert runs_compared(Derived(b), Derived(a)).skipped == ()


def test_a_baseline_that_forwarded_nothing_has_no_ratio() -> None:
    outcome = compared(_run(_flat("a", 0.0, 0.0, 0.0), _flat("b", 1.0, 1.0, 1.0)))
    assert outcome.comparisons == ()
    assert outcome.skipped[0].reason == "a forwarded no packets; ratio undefined"


def test_a_switch_without_a_trial_at_a_point_is_named() -> None:
    run = _run(_flat("a", 10.0), _flat("b", 10.0), [make_trial(0, make_point("a", "v2v"), 5.0, switch=MUTE)])
    (left_out,) = compared(run).skipped
    assert (left_out.a, left_out.b, left_out.has) == ("a", "b", ("throughput",))
    assert (left_out.point, left_out.reason) == ("v2v/unidirectional/64/virtio/process", "b was not measured there")


def test_a_search_that_is_not_complete_is_not_compared() -> None:
    run = searched_run({"a": 10.0, "b": 8.0})
    outcome = compared(Run(run.header, run.trials[:-2]))
    assert "ndr" not in [c.metric for c in outcome.comparisons]
    assert [s.reason for s in outcome.skipped] == ["the search on b did not converge: interrupted; bounds so far"]


def test_runs_are_compared_switch_by_switch_and_point_by_point() -> None:
    a = _run(_flat("planed", 10.0, 10.1, 10.2), _flat("testpmd", 5.0))
    b = _run(_flat("planed", 9.0, 9.09, 9.1), _flat("bess", 5.0), run_id="run-b")
    outcome = runs_compared(Derived(a), Derived(b))
    (found,) = outcome.comparisons
    assert (found.a, found.b, found.point) == ("planed@run-a", "planed@run-b", CELL)
    assert (found.ratio, found.distinguishable) == (pytest.approx(0.9), True)
    assert [(s.a, s.b, s.point, s.reason) for s in outcome.skipped] == [
        ("testpmd@run-a", "", CELL, "the other run does not have it"),
        ("bess@run-b", "", CELL, "the other run does not have it"),
    ]


def test_a_run_against_itself_is_level_everywhere() -> None:
    run = make_run(sizes=(64,))
    found = runs_compared(Derived(run), Derived(run)).comparisons
    assert {c.ratio for c in found} == {1.0}
    assert not any(c.distinguishable for c in found)


@pytest.mark.parametrize("fact", MUST_MATCH, ids=lambda fact: fact.key)
def test_every_fact_that_differs_is_named(fact: Any) -> None:
    old = make_header()
    a, b = (
        make_header(**{fact.where: {**getattr(old, fact.where), fact.key: value}, "run_id": str(value)})
        for value in (1024, 4096)
    )
    assert differing_facts(a, b) == (f"{fact.title}: 1024 against 4096",)
    if fact.key not in getattr(old, fact.where):
        assert len(differing_facts(old, b)) == (0 if fact.newer else 1)


def test_what_must_match_is_whole() -> None:
    assert {fact.key for fact in MUST_MATCH} >= {
        *("switch_cpu", "tester_cpus", "warmup_s", "probe_rate_pps", "max_rate_pps", "search_max_r"),
        *("search_pdr_loss_ratio", "search_relative_width", "search_duration_sum_s", "governor", "turbo"),
    }


def test_facts_in_words() -> None:
    host, settings = make_header().host, make_header().settings
    a = make_header(host={**host, "kernel": "6.1.0", "turbo": True}, settings={**settings, "trial_duration_s": 0.5})
    b = make_header(host={**host, "kernel": "6.5.0", "turbo": False}, settings={**settings, "trial_duration_s": None})
    assert differing_facts(a, b) == (
        "seconds of a saturating trial: 0.5 against not stated",
        "turbo: yes against no",
        "kernel: 6.1.0 against 6.5.0",
    )
    assert differing_facts(a, a) == ()
