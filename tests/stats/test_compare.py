# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial
from hypothesis import given, settings
from hypothesis import strategies as st
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
    """Saturating trials of a switch that tells no cycles, each in a start of its own."""
    return [
        make_trial(0, make_point(switch), m, **{"switch": MUTE, "start": i, "repetition": i, **changes})
        for i, m in enumerate(mpps)
    ]


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
    assert found.ratio == pytest.approx((12.0 * 12.12 * 12.2 / (10.0 * 10.1 * 10.2)) ** (1 / 3))
    assert found.low is not None and found.high is not None
    assert found.low < found.ratio < found.high and (found.answer, found.confidence) == ("different", 0.95)
    assert (found.trials_a, found.trials_b, found.starts_a, found.starts_b) == (3, 3, 3, 3)
    assert (found.band, found.load, found.note) == ("near", "", "")


def test_every_pair_is_compared_at_each_cell() -> None:
    other = [make_trial(0, make_point(s, "v2v"), 5.0, switch=MUTE) for s in ("a", "b")]
    pairs = Derived(_run(_flat("a", 10.0), _flat("b", 11.0), _flat("c", 12.0), other)).comparisons
    assert [(c.a, c.b, c.point.split("/")[0]) for c in pairs] == [
        ("a", "b", "p2p"),
        ("a", "c", "p2p"),
        ("b", "c", "p2p"),
        ("a", "b", "v2v"),
    ]


def test_trials_of_one_start_test_nothing() -> None:
    found = _one(_flat("a", 10.0, 10.1, 10.2, start=0), _flat("b", 20.0, 20.1, 20.2, start=0))
    assert (found.ratio, found.low, found.high, found.answer) == (pytest.approx(2, rel=1e-2), None, None, "untested")
    assert (found.note, found.more_starts) == ("1 and 1 starts: how starts differ is not known", 1)


def test_a_factor_of_three_is_told_with_two_starts_where_the_cells_of_the_run_agree() -> None:
    cells = [make_point(s, frame_size_bytes=size) for s in ("a", "b") for size in (64, 128, 256, 512, 1024)]
    rates = {"a": (10.0, 10.2), "b": (30.3, 30.0)}
    trials = [
        make_trial(0, point, m, switch=MUTE, start=i, repetition=i)
        for point in cells
        for i, m in enumerate(rates[point.switch])
    ]
    found = Derived(_run(trials)).comparisons
    assert {c.answer for c in found} == {"different"} and len(found) == 5


def test_drift_of_the_machine_does_not_hide_a_difference() -> None:
    drifting = [10.0, 9.0, 8.1, 7.3]
    found = _one(_flat("a", *drifting), _flat("b", *[1.05 * m for m in drifting]))
    assert (found.answer, found.ratio) == ("different", pytest.approx(1.05, rel=1e-4))


def test_an_open_comparison_has_its_price() -> None:
    moments = [f"2026-11-21T12:00:{i * 3:02}Z" for i in range(8)]
    trials = [*_flat("a", 10.0, 10.8, 9.4, 10.0), *_flat("b", 10.5, 10.3, 10.6, 10.9)]
    found = _one([dataclasses.replace(t, started_at=at) for t, at in zip(trials, moments, strict=True)])
    assert found.answer == "open"
    assert found.more_starts is not None and found.more_minutes == pytest.approx(found.more_starts * 2 * 3 / 60)


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
    assert (found.answer, found.low, found.high) == (
        "different" if told else "open",
        low and pytest.approx(low, rel=0.01),
        high and pytest.approx(high, rel=0.01),
    )
    assert found.more_starts is None, "no number of starts moves the limit of the tester"
    assert found.note == f"{bound} is tester-limited (lower bound)"


def test_two_lower_bounds_tell_nothing() -> None:
    a, b = (_flat(s, *[m] * 3, verdict="tester-limited") for s, m in (("a", 10.0), ("b", 20.0)))
    found = _one(a, b)
    assert (found.ratio, found.low, found.high, found.answer) == (2.0, None, None, "open")
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
    assert (
        found.note
        == "b: two bands at the same core-to-core latency: 10 Mpps in 2 trials, 5 in 2; by start of the switch"
    )


def test_cycles_are_compared_where_both_know_them() -> None:
    def trials(switch: str, cycles: int, verdict: str) -> list[Trial]:
        flat = _flat(switch, 10.0, 10.0, 10.0, verdict=verdict)
        return [dataclasses.replace(t, switch=SwitchCycles(cycles * 10, 0, 10)) for t in flat]

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
    few = "1 and 1 starts: how starts differ is not known"
    assert found == [
        ("latency_p50", "0.10", pytest.approx(2.0, rel=2e-3), f"at 1 and 2 Mpps; {few}"),
        ("latency_p99", "0.10", pytest.approx(2.0, rel=2e-3), f"at 1 and 2 Mpps; {few}"),
        ("latency_p50", "0.50", pytest.approx(3.0, rel=2e-3), few),
        ("latency_p99", "0.50", pytest.approx(3.0, rel=2e-3), few),
    ]
    assert not any(c.distinguishable for c in outcome.comparisons)
    assert [(s.metrics, s.load, s.reason) for s in outcome.skipped] == [
        (("throughput", "cycles_per_packet"), "", "all trials of a were rejected"),
        (("latency_p50", "latency_p99"), "0.99", "all trials of b were rejected"),
    ]


def test_latency_of_three_starts_has_an_interval() -> None:
    a, b = (
        [make_latency_trial(0, make_point(s), samples_ns=[(ns + i, 100)], start=i, repetition=i) for i in range(3)]
        for s, ns in (("a", 1000), ("b", 1500))
    )
    found = _only(compared(_run(a, b)), "latency_p50")
    assert (found.distinguishable, found.trials_a, found.trials_b, found.note) == (True, 3, 3, "")
    assert found.low is not None and found.high is not None and found.low < 1.5 < found.high


def test_latency_of_another_band_is_not_compared() -> None:
    far = make_latency_trial(0, make_point("b"), band="far")
    outcome = compared(_run([make_latency_trial(0, make_point("a"))], [far]))
    assert outcome.comparisons == ()
    assert outcome.skipped[-1].reason.startswith("not comparable")


def _with_rates(run: Run, switch: str, *mpps: float) -> Run:
    """The saturating trials of a switch as if they had forwarded so much; the first, which NDR used, stays."""
    own = [t for t in run.trials if t.role == "r_plus" and t.point.switch == switch]
    new = {
        t.index: make_trial(t.index, t.point, m, start=t.start, repetition=t.repetition)
        for t, m in zip(own[1:], mpps, strict=True)
    }
    return dataclasses.replace(run, trials=tuple(new.get(t.index, t) for t in run.trials))


def test_one_search_each_has_the_noise_of_the_starts() -> None:
    run = searched_run({"a": 10.0, "b": 9.6})
    quiet = _only(compared(run), "ndr")
    noisy = _only(compared(_with_rates(run, "a", 9.6, 10.5)), "ndr")
    assert (quiet.answer, noisy.answer) == ("different", "open")
    assert quiet.ratio == noisy.ratio == pytest.approx(0.96, rel=0.01)
    one_start = [t for t in run.trials if t.role != "r_plus" or t.repetition == 0]
    untested = _only(compared(Run(run.header, tuple(one_start))), "ndr")
    assert (untested.answer, untested.note) == ("untested", "1 and 1 starts: how starts differ is not known")


def test_the_interval_of_one_search_each_contains_the_width_of_its_bounds() -> None:
    derived = Derived(searched_run({"a": 10.0, "b": 9.6}))
    narrow = _only(derived.compared, "ndr")
    wide = Derived(derived.run)
    wide.results = tuple(
        dataclasses.replace(
            result, searches=tuple(dataclasses.replace(s, upper_pps=1.05 * (s.lower_pps or 0)) for s in result.searches)
        )
        for result in derived.results
    )
    found = _only(wide.compared, "ndr")
    assert found.ratio == narrow.ratio and (narrow.answer, found.answer) == ("different", "open")
    assert found.low is not None and found.high is not None
    assert found.low < found.ratio / 1.05 and found.high > found.ratio * 1.05


def test_repeated_searches_are_compared_by_their_own_noise() -> None:
    derived = Derived(searched_run({"a": 10.0, "b": 9.6}))
    derived.results = tuple(
        dataclasses.replace(
            result,
            searches=tuple(
                dataclasses.replace(s, repetition=i, lower_pps=(s.lower_pps or 0) * factor)
                for s in result.searches
                for i, factor in enumerate((0.99, 1.01, 1.0))
            ),
        )
        for result in derived.results
    )
    found = _only(derived.compared, "ndr")
    assert (found.answer, found.starts_a, found.starts_b) == ("different", 3, 3), "blocks go up and down alike"


@pytest.mark.parametrize(("ratio", "told"), [(1.0, (0, 1)), (1.05, (15, 20))])
def test_searches_are_told_apart_better_the_more_of_them_there_are(ratio: float, told: tuple[int, int]) -> None:
    """Each search has the noise of its start, 2 %. Of 20 runs, so many tell the two switches apart."""
    run, luck, shares = searched_run({"a": 10.0, "b": 10.0 * ratio}), random.Random(1), []
    for count in (3, 10):
        different = 0
        for _ in range(20):
            derived = Derived(run)
            derived.results = tuple(
                dataclasses.replace(
                    result,
                    searches=tuple(
                        dataclasses.replace(s, repetition=i, lower_pps=(s.lower_pps or 0) * luck.gauss(1, 0.02))
                        for s in result.searches
                        for i in range(count)
                    ),
                )
                for result in derived.results
            )
            different += _only(derived.compared, "ndr").answer == "different"
        shares.append(different)
    assert told[0] <= shares[-1] <= told[1]
    assert ratio == 1.0 or shares[0] < shares[-1]


def test_an_overload_is_not_compared() -> None:
    carried = [make_latency_trial(i, make_point("a"), repetition=i) for i in range(3)]
    full = [make_latency_trial(3 + i, make_point("b"), repetition=i, verdict="overload") for i in range(2)]
    run = _run([*carried, *full, make_latency_trial(5, make_point("b"), repetition=2)], run_id="r")
    reasons = {s.reason for s in compared(run).skipped if s.load}
    assert reasons == {"b did not carry the load (overload)"}


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
    assert (found.ratio, found.distinguishable) == (pytest.approx(0.9, rel=1e-2), True)
    assert [(s.a, s.b, s.point, s.reason) for s in outcome.skipped] == [
        ("testpmd@run-a", "", CELL, "the other run does not have it"),
        ("bess@run-b", "", CELL, "the other run does not have it"),
    ]


def test_a_run_against_itself_is_level_everywhere() -> None:
    run = make_run(sizes=(64,))
    found = runs_compared(Derived(run), Derived(run)).comparisons
    assert {c.ratio for c in found} == {1.0}
    assert not any(c.distinguishable for c in found)


def _of_runs(rates: Sequence[float], name: str) -> list[Derived]:
    """Runs of three starts each that hardly differ within a run."""
    return [
        Derived(_run(_flat("planed", *(m * f for f in (1, 1.001, 0.999))), run_id=f"{name}{i}"))
        for i, m in enumerate(rates)
    ]


def test_with_three_runs_a_side_the_run_is_the_unit() -> None:
    a, b = _of_runs((10.0, 10.3, 9.7), "a"), _of_runs((9.9, 9.5, 10.2), "b")
    outcome = runs_compared(a, b)
    (found,) = outcome.comparisons
    assert (found.a, found.b) == ("planed@a0,a1,a2", "planed@b0,b1,b2")
    assert (found.answer, found.starts_a, found.degrees, outcome.not_in_intervals) == (
        "open",
        3,
        pytest.approx(4, abs=0.2),
        "",
    )


def test_with_fewer_runs_the_variation_between_them_is_said_to_be_missing() -> None:
    outcome = runs_compared(_of_runs((10.0,), "a"), _of_runs((9.9,), "b"))
    (found,) = outcome.comparisons
    assert found.answer == "different", "between these two runs"
    assert outcome.not_in_intervals == "1 and 1 runs: how runs vary is in no interval; it takes 3 runs each"


def _noisy(seed: int, ratios: dict[str, float]) -> Derived:
    """A run of six cells with five starts each; the starts of a switch differ by 2 %."""
    rng = np.random.default_rng(seed)
    trials = [
        make_trial(0, make_point(s, frame_size_bytes=size), m, switch=MUTE, start=i, repetition=i)
        for s, ratio in ratios.items()
        for size in (64, 128, 256, 512, 1024, 1500)
        for i, m in enumerate(10 * ratio * np.exp(rng.normal(0, 0.02, 5)))
    ]
    return Derived(_run(trials))


def test_equal_switches_are_hardly_ever_told_apart_and_different_ones_are() -> None:
    equal = [c for seed in range(25) for c in _noisy(seed, {"a": 1, "b": 1, "c": 1}).comparisons]
    assert sum(c.distinguishable for c in equal) <= 0.02 * len(equal), "450 comparisons of equal switches"
    apart = [c for seed in range(10) for c in _noisy(seed, {"a": 1, "b": 1.2}).comparisons]
    assert all(c.distinguishable for c in apart)


@given(st.integers(0, 10_000), st.floats(1.0, 1.2))
@settings(max_examples=20, deadline=None)
def test_answer_and_interval_are_one_statement(seed: int, ratio: float) -> None:
    for c in _noisy(seed, {"a": 1, "b": ratio}).comparisons:
        assert c.low is not None and c.high is not None
        assert (c.answer == "different") == (not c.low <= 1 <= c.high)


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


def test_a_run_of_before_had_vnfs_that_do_not_batch() -> None:
    settings = make_header().settings
    batching = make_header(settings={**settings, "send_burst": 32, "drain_us": 100})
    assert "send_burst" not in settings
    words = differing_facts(make_header(settings=settings), batching)
    assert words == ("batch of VNFs (send_burst): 0 against 32", "drain time of VNFs (drain_us): 0 against 100")
    assert differing_facts(make_header(settings=settings), make_header(settings={**settings, "send_burst": 0})) == ()


def test_runs_on_other_kinds_of_cores_are_not_compared() -> None:
    settings = make_header().settings
    on = {name: make_header(settings={**settings, "core_kinds": name}) for name in ("IntelCore", "IntelAtom", None)}
    words = "kinds of cores of pollers: IntelCore against IntelAtom"
    assert differing_facts(on["IntelCore"], on["IntelAtom"]) == (words,)
    assert differing_facts(on[None], on[None]) == differing_facts(make_header(), on["IntelAtom"]) == ()


def test_points_with_other_vnfs_are_not_the_same_experiment() -> None:
    def of(chain: str) -> Derived:
        point = make_point("planed", "loopback", chain_length=1, chain=chain)
        return Derived(Run(make_header(("planed",)), tuple(make_trial(i, point, 9.0, start=i) for i in range(3))))

    outcome = runs_compared(of(""), of("l2fwd:send_burst=32:drain_us=100"))
    assert not outcome.comparisons
    assert {entry.reason for entry in outcome.skipped} == {
        "the other run has other VNFs there (l2fwd:send_burst=32:drain_us=100): not the same experiment",
        "the other run has other VNFs there (l2fwd): not the same experiment",
    }


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
