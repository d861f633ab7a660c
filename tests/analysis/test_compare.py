# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial, make_verdict
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.compare import Comparisons, Derived, NotCompared, runs_compared, switches_compared
from planebench.analysis.conditions import MUST_MATCH, differing_facts
from planebench.analysis.histogram import encode
from planebench.model.header import Run
from planebench.model.records import LatencyRecord, SwitchCycles, Trial
from planebench.model.results import Comparison, SearchResult
from planebench.report.comparison import result_words

MUTE = SwitchCycles()


def compared(run: Run) -> Comparisons:
    return switches_compared(Derived(run))


CELL = "p2p/unidirectional/64/virtio/process"


def _flat(label: str, *mpps: float, **changes: Any) -> list[Trial]:
    """Saturating trials of a switch that tells no cycles, each in a start of its own."""
    return [
        make_trial(0, make_point(label), m, **{"switch": MUTE, "start": i, "repetition": i, **changes})
        for i, m in enumerate(mpps)
    ]


def _run(*trials: Sequence[Trial], run_id: str = "run-a", **header: Any) -> Run:
    together = tuple(dataclasses.replace(t, index=i) for i, t in enumerate(t for some in trials for t in some))
    labels = tuple(dict.fromkeys(t.point.switch for t in together))
    return Run(make_header(labels, run_id=run_id, **header), together)


def _one(*trials: Sequence[Trial]) -> Comparison:
    (comparison,) = Derived(_run(*trials)).comparisons
    return comparison


def _only(outcome: Comparisons, metric: str) -> Comparison:
    (comparison,) = (c for c in outcome.comparisons if c.metric == metric)
    return comparison


def test_the_first_of_the_header_is_what_the_other_is_measured_by() -> None:
    found = _one(_flat("planed", 10.0, 10.1, 10.2), _flat("testpmd", 12.0, 12.12, 12.2))
    assert (found.a, found.b, found.point, found.metric) == ("planed", "testpmd", CELL, "throughput")
    assert found.ratio == pytest.approx((12.0 * 12.12 * 12.2 / (10.0 * 10.1 * 10.2)) ** (1 / 3))
    assert found.low is not None and found.high is not None
    assert found.low < found.ratio < found.high and found.answer == "different"
    assert (found.trials_a, found.trials_b, found.starts_a, found.starts_b) == (3, 3, 3, 3)
    assert (found.load, found.note) == ("", "")


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


def test_two_that_fill_the_line_are_the_same_and_not_compared_by_what_else_they_could() -> None:
    found = _one(*(_flat(s, 14.86, 14.88, 14.87, verdict="line-rate") for s in ("a", "b")))
    assert (found.metric, found.answer, found.note) == ("throughput", "same", "both fill the line")
    one = _one(_flat("a", 14.86, 14.88, 14.87, verdict="line-rate"), _flat("b", 10.0, 10.1, 9.9))
    assert (one.answer, one.note) == ("different", "a is at line rate (lower bound)")


def test_two_lower_bounds_tell_nothing() -> None:
    a, b = (_flat(s, *[m] * 3, verdict="tester-limited") for s, m in (("a", 10.0), ("b", 20.0)))
    found = _one(a, b)
    assert (found.ratio, found.low, found.high, found.answer) == (2.0, None, None, "open")
    assert found.note == "a and b are tester-limited (lower bounds)"


def test_pairs_of_a_block_are_those_at_the_same_core_distance() -> None:
    """Near cores are four times as fast, and which they were is no property of a switch."""
    bands = {"a": "near near far far near far", "b": "near far far near near far"}
    speed = {"a": 10.0, "b": 12.0}
    near = (1.0, 1.01, 1.0, 0.99, 1.0, 1.01)
    sides = [
        make_trial(
            0,
            make_point(switch),
            speed[switch] * near[i] * (4 if band == "near" else 1),
            band=band,
            switch=MUTE,
            start=i,
            repetition=i,
        )
        for switch in bands
        for i, band in enumerate(bands[switch].split())
    ]
    found = _one(sides)
    assert (found.answer, found.ratio) == ("different", pytest.approx(1.2)), "two of the six blocks are left out"
    assert (found.trials_a, found.trials_b, found.note) == (6, 6, "1.2 near and 1.2 far")


def test_a_switch_of_which_no_trial_counts_is_named() -> None:
    outcome = compared(_run(_flat("a", 10.0), _flat("c", 9, verdict="invalid")))
    flat_out = ("throughput", "cycles_per_packet")
    assert outcome.comparisons == ()
    assert outcome.skipped == (NotCompared("a", "c", CELL, flat_out, "no trial of c counts", has=("throughput",)),)


def _cycling(switch: str, mpps: float, cycles: float, verdict: str = "valid", batch: int = 32) -> list[Trial]:
    """Three starts of a switch that tells its cycles: so many per packet, of 300 that there are for each."""
    packets = int(mpps * 1e6)
    trials = []
    for start, factor in enumerate((0.999, 1.0, 1.001)):
        busy = round(cycles * factor * packets)
        told = SwitchCycles(busy, 300 * packets - busy, packets, bursts=packets // batch)
        trials += _flat(switch, mpps, verdict=verdict, switch=told, start=start, repetition=start)
    return trials


def test_cycles_are_compared_where_both_are_saturated() -> None:
    limited = _cycling("c", 10.0, 50, "tester-limited")
    outcome = compared(_run(_cycling("a", 10.0, 290), _cycling("b", 14.5, 200), limited, _flat("d", 9.0)))
    found = _only(outcome, "cycles_per_packet")
    assert (found.a, found.b, found.ratio, found.answer) == ("a", "b", pytest.approx(200 / 290), "different")


@pytest.mark.parametrize(
    ("batch", "capacity", "half_width", "answer"),
    [(32, 20.0, 0.0, "different"), (24, 20.0 * (4 / 3) ** 0.5, 0.163, "open")],
)
def test_a_lower_bound_is_compared_by_its_capacity(batch: int, capacity: float, half_width: float, answer: str) -> None:
    """Half of its cycles are idle; batches that are not full leave up to a third more open."""
    outcome = compared(_run(_cycling("a", 10.0, 150, "tester-limited", batch), _flat("b", 24.9, 25.0, 25.1)))
    throughput, found = outcome.comparisons
    assert (throughput.metric, throughput.note) == ("throughput", "a is tester-limited (lower bound)")
    assert (found.metric, found.answer) == ("capacity", answer)
    assert found.note == "estimated for a, from cycles against batch"
    assert found.ratio == pytest.approx(25 / capacity, rel=1e-3)
    assert found.low is not None and found.high is not None
    assert np.log(found.high / found.ratio) == pytest.approx(half_width, abs=0.02), "the error of the fit is in it"


def test_without_a_capacity_a_lower_bound_stays_open() -> None:
    found = _one(_flat("a", 10.0, 10.0, 10.0, verdict="tester-limited"), _flat("b", 12.0, 12.0, 12.0))
    assert (found.metric, found.answer, found.note) == ("throughput", "open", "a is tester-limited (lower bound)")


def test_latency_is_compared_load_by_load() -> None:
    def at(switch: str, load: str, ns: int, pps: float = 5e6, **changes: Any) -> Trial:
        return make_latency_trial(0, make_point(switch), load, pps, [(ns, 99), (2 * ns, 1)], **changes)

    a = [at("a", "0.10", 1000, 1e6), at("a", "0.50", 1000), at("a", "0.99", 1000), at("a", "0.50", 1000)]
    b = [at("b", "0.10", 2000, 2e6), at("b", "0.50", 3000), at("b", "0.99", 1000, verdict="tester-limited")]
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
        (("throughput", "cycles_per_packet"), "", "no trial of a counts"),
        (("latency_p50", "latency_p99"), "0.99", "no latency of b counts"),
    ]


def test_what_is_left_out_for_its_loads_was_judged_with_the_others() -> None:
    """So that ``compare`` and the page give one answer."""

    def at(switch: str, load: str, ns: int, pps: float) -> list[Trial]:
        return [
            make_latency_trial(0, make_point(switch), load, pps, [(ns + i, 100)], start=i, repetition=i)
            for i in range(3)
        ]

    trials = [
        at(s, "1Mpps", ns, 1e6) + at(s, "0.50", 9 * ns, ns * 1e3) for s, ns in (("a", 1000), ("b", 1012), ("c", 1500))
    ]
    derived = Derived(_run(*trials))
    outcome = switches_compared(derived, same_load=True)
    assert {it.load for it in outcome.comparisons} == {"1Mpps", "0.50"}, "0.50 of a and b is the same load"
    assert set(outcome.comparisons) < set(derived.comparisons)
    left_out = [it for it in outcome.skipped if "loads differ" in it.reason]
    assert [(it.a, it.b, it.load, it.metrics) for it in left_out] == [
        (a, b, "0.50", ("latency_p50", "latency_p99")) for a, b in (("a", "c"), ("b", "c"))
    ]


def test_the_least_that_is_found_is_at_the_level_that_decides() -> None:
    """Of two switches at 5 %; of nine each pair has a 36th of that."""
    few, many = ([_flat(str(n), *(10.0 * f for f in (1, 1.02, 0.98))) for n in range(count)] for count in (2, 9))
    two, nine = (_only_of(compared(_run(*trials)), "0", "1").detectable for trials in (few, many))
    assert two is not None and nine is not None and nine > 1.3 * two


def _only_of(outcome: Comparisons, a: str, b: str) -> Comparison:
    (found,) = [it for it in outcome.comparisons if (it.a, it.b, it.metric) == (a, b, "throughput")]
    return found


def test_latency_of_three_starts_has_an_interval() -> None:
    a, b = (
        [make_latency_trial(0, make_point(s), samples_ns=[(ns + i, 100)], start=i, repetition=i) for i in range(3)]
        for s, ns in (("a", 1000), ("b", 1500))
    )
    found = _only(compared(_run(a, b)), "latency_p50")
    assert (found.distinguishable, found.trials_a, found.trials_b, found.note) == (True, 3, 3, "")
    assert found.low is not None and found.high is not None and found.low < 1.5 < found.high


def _searched(
    method: str = "ndr",
    width: float = 1.005,
    run_id: str = "run-a",
    complete: bool = True,
    **lower_mpps: Sequence[float],
) -> Derived:
    """Switches that were searched so often, each time in a start of its own, and whose starts differ by 1 %."""
    starts = itertools.permutations((10.0, 10.1, 9.9))
    derived = Derived(_run(*(_flat(label, *next(starts)) for label in lower_mpps), run_id=run_id))
    searches = {
        label: tuple(
            SearchResult(make_point(label), method, make_verdict(), complete, i, 1e6 * m, 1e6 * m * width)
            for i, m in enumerate(found)
        )
        for label, found in lower_mpps.items()
    }
    derived.results = tuple(dataclasses.replace(it, searches=searches[it.point.switch]) for it in derived.results)
    return derived


def test_one_search_each_has_the_noise_of_the_starts() -> None:
    told = {c.b: c for c in _searched(a=[10.0], b=[8.0], c=[9.8]).comparisons if (c.a, c.metric) == ("a", "ndr")}
    assert (told["b"].answer, told["c"].answer) == ("different", "open")
    assert told["b"].ratio == pytest.approx(0.8)


def test_bounds_of_a_search_are_a_further_error() -> None:
    """The rate is anywhere between them: an interval of five percent has an error of five by the root of twelve."""
    narrow, wide = (
        _only(switches_compared(_searched(width=w, a=[10.0] * 3, b=[9.6] * 3)), "ndr") for w in (1.0001, 1.05)
    )
    assert narrow.ratio == wide.ratio == pytest.approx(0.96)
    assert narrow.log_error is not None and wide.log_error is not None
    assert wide.log_error**2 - narrow.log_error**2 == pytest.approx(2 * np.log(1.05) ** 2 / 12 / 3, rel=1e-3)


def test_repeated_searches_are_compared_in_blocks() -> None:
    found = _only(switches_compared(_searched(a=[9.9, 10.1, 10.0], b=[9.2, 9.4, 9.3])), "ndr")
    assert (found.answer, found.starts_a, found.starts_b) == ("different", 3, 3), "blocks go up and down alike"


def test_a_tester_that_reports_no_percentiles_has_none_to_compare() -> None:
    def mean_only(switch: str) -> Trial:
        trial = make_latency_trial(0, make_point(switch))
        return dataclasses.replace(trial, latency=LatencyRecord(100, 100, encode([]), least_ns=1, mean_ns=2, most_ns=9))

    outcome = compared(_run([mean_only("a")], [mean_only("b")]))
    assert outcome.comparisons == ()
    assert [s.reason for s in outcome.skipped if s.load] == ["no percentile of a is known"] * 2


def test_an_overload_is_not_compared() -> None:
    carried = [make_latency_trial(i, make_point("a"), repetition=i) for i in range(3)]
    full = [make_latency_trial(3 + i, make_point("b"), repetition=i, verdict="overload") for i in range(2)]
    run = _run([*carried, *full, make_latency_trial(5, make_point("b"), repetition=2)], run_id="r")
    reasons = {s.reason for s in compared(run).skipped if s.load}
    assert reasons == {"b did not carry the load (overload)"}


def test_a_search_that_only_the_first_has_is_named() -> None:
    a, b = _searched(planed=[10.0]), Derived(_run(_flat("planed", 10.0, 10.0, 10.0), run_id="run-b"))
    (left_out,) = runs_compared([a], [b]).skipped
    assert (left_out.metrics, left_out.has) == (("ndr",), ("ndr",))
    assert left_out.reason == "no such search was run on planed@run-b"
    assert runs_compared([b], [a]).skipped == ()


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
    outcome = switches_compared(_searched(complete=False, a=[10.0], b=[8.0]))
    assert "ndr" not in [c.metric for c in outcome.comparisons]
    assert [s.reason for s in outcome.skipped] == ["the search on a did not converge"]


def test_runs_are_compared_switch_by_switch_and_point_by_point() -> None:
    a = _run(_flat("planed", 10.0, 10.1, 10.2), _flat("testpmd", 5.0))
    b = _run(_flat("planed", 9.0, 9.09, 9.1), _flat("bess", 5.0), run_id="run-b")
    outcome = runs_compared([Derived(a)], [Derived(b)])
    (found,) = outcome.comparisons
    assert (found.a, found.b, found.point) == ("planed@run-a", "planed@run-b", CELL)
    assert (found.ratio, found.answer) == (pytest.approx(0.9, rel=1e-2), "open")
    assert [(s.a, s.b, s.point, s.reason) for s in outcome.skipped] == [
        ("testpmd@run-a", "", CELL, "the other run does not have it"),
        ("bess@run-b", "", CELL, "the other run does not have it"),
    ]


def test_a_run_against_itself_is_level_everywhere() -> None:
    run = make_run(sizes=(64,))
    found = runs_compared([Derived(run)], [Derived(run)]).comparisons
    assert {c.ratio for c in found} == {1.0}
    assert not any(c.distinguishable for c in found)


def _of_runs(name: str, hours: str, *rates: float, boots: str = "") -> list[Derived]:
    """Runs of three starts each that hardly differ within a run; ``hours``: a digit for each; ``boots``: a letter."""
    host = make_header().host
    return [
        Derived(
            _run(
                _flat("planed", *(m * f for f in (1, 1.001, 0.999))),
                run_id=f"{name}{i}",
                started_at=f"2026-11-21T0{hour}:00:00Z",
                host={**host, "boot_id": boots[i]} if boots else host,
            )
        )
        for i, (hour, m) in enumerate(zip(hours, rates, strict=True))
    ]


ALONE = "how runs vary is in no interval; it takes 3 of each side in turns (a, b, a, b), or 3 boots of each side"


@pytest.mark.parametrize("hours", [("024", "135"), ("034", "125"), ("0245", "136")], ids=["abab", "abba", "one-more"])
def test_of_runs_in_turns_the_difference_of_neighbors_is_the_unit(hours: tuple[str, str]) -> None:
    a = _of_runs("a", hours[0], *((10.0, 11.0, 12.0) if len(hours[0]) == 3 else (10.0, 11.0, 20.0, 12.0)))
    outcome = runs_compared(a, _of_runs("b", hours[1], 9.0, 9.91, 10.79))
    (found,) = outcome.comparisons
    assert (found.answer, found.starts_a, found.degrees, outcome.not_in_intervals) == ("different", len(a), 2, "")
    assert found.ratio == pytest.approx(0.9, rel=2e-3)
    assert found.low is not None and found.low > 0.89, "the drift of both is in no difference"


def test_else_the_boot_is_the_unit() -> None:
    a = _of_runs("a", "0123", 10.0, 10.3, 9.6, 9.8, boots="stuu")
    outcome = runs_compared(a, _of_runs("b", "456", 9.9, 9.5, 10.2, boots="vwx"))
    (found,) = outcome.comparisons
    assert (found.a, found.b) == ("planed@a0,a1,a2,a3", "planed@b0,b1,b2")
    assert (found.answer, found.starts_a, outcome.not_in_intervals) == ("open", 3, "")
    assert found.degrees == pytest.approx(4, abs=0.2)
    assert found.unit == "boot" and found.more_minutes is None
    assert result_words(found).startswith("open: ") and "more boots of each would decide it" in result_words(found)


@pytest.mark.parametrize(("hours", "boots"), [("01", ""), ("012345", "sssttt"), ("012345", "stusss"), ("012345", "")])
def test_runs_of_too_few_boots_one_after_the_other_are_open(hours: str, boots: str) -> None:
    half = len(hours) // 2
    a = _of_runs("a", hours[:half], *[10.0] * half, boots=boots[:half])
    outcome = runs_compared(a, _of_runs("b", hours[half:], *[9.0] * half, boots=boots[half:]))
    (found,) = outcome.comparisons
    assert (found.ratio, found.answer, found.more_starts) == (pytest.approx(0.9), "open", None)
    assert found.note == "how runs vary is not in the interval" and found.low is not None
    assert outcome.not_in_intervals == f"{half} and {half} runs: {ALONE}"


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
def test_what_is_different_has_an_interval_without_1(seed: int, ratio: float) -> None:
    for c in _noisy(seed, {"a": 1, "b": ratio}).comparisons:
        assert c.low is not None and c.high is not None
        assert c.answer != "different" or not c.low <= 1 <= c.high


@pytest.mark.parametrize(("where", "key"), [(where, key) for where, titles in MUST_MATCH.items() for key in titles])
def test_every_fact_that_differs_is_named(where: Literal["settings", "host"], key: str) -> None:
    old = make_header()
    a, b = (make_header(**{where: {**getattr(old, where), key: value}, "run_id": str(value)}) for value in (1024, 4096))
    assert differing_facts(a, b) == (f"{MUST_MATCH[where][key]}: 1024 against 4096",)


def test_runs_on_other_kinds_of_cores_are_not_compared() -> None:
    settings = make_header().settings
    on = {name: make_header(settings={**settings, "core_kinds": name}) for name in ("IntelCore", "IntelAtom", None)}
    words = "kinds of cores of pollers: IntelCore against IntelAtom"
    assert differing_facts(on["IntelCore"], on["IntelAtom"]) == (words,)
    assert differing_facts(on[None], on[None]) == ()


def test_a_clock_that_is_read_at_some_moment_is_that_of_the_same_cpu() -> None:
    host = make_header().host
    at = {mhz: make_header(host={**host, "cpu_mhz": mhz}) for mhz in (3409, 3412, 2600)}
    assert differing_facts(at[3409], at[3412]) == ()
    assert differing_facts(at[3409], at[2600]) == ("CPU MHz: 3409 against 2600",)


def test_a_sampled_run_is_compared_with_sampled_ones() -> None:
    settings = make_header().settings
    on = {check: make_header(settings={**settings, "check": check}) for check in ("full", "sampled")}
    older = make_header(settings={key: value for key, value in settings.items() if key != "check"})
    assert differing_facts(on["full"], on["sampled"]) == ("check of frames: full against sampled",)
    assert differing_facts(older, on["full"]) == differing_facts(on["sampled"], on["sampled"]) == ()


def test_points_with_other_vnfs_are_not_the_same_experiment() -> None:
    def of(chain: str) -> Derived:
        point = make_point("planed", "loopback", chain_length=1, chain=chain)
        return Derived(Run(make_header(("planed",)), tuple(make_trial(i, point, 9.0, start=i) for i in range(3))))

    outcome = runs_compared([of("")], [of("l2fwd:send_burst=32:drain_us=100")])
    assert not outcome.comparisons
    assert {entry.reason for entry in outcome.skipped} == {
        "the other run has other VNFs there (l2fwd:send_burst=32:drain_us=100): not the same experiment",
        "the other run has other VNFs there (l2fwd): not the same experiment",
    }


def test_what_must_match_is_whole() -> None:
    assert {key for titles in MUST_MATCH.values() for key in titles} >= {
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
