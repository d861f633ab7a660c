# SPDX-License-Identifier: BSD-3-Clause
import dataclasses

import pytest
from analysis.searching import PLAN, searched_run, simulated_run
from builders import make_point

from planebench.analysis.capacity import tester_ceiling_pps
from planebench.analysis.compare import Derived
from planebench.analysis.results import derive_results
from planebench.model.header import Calibration, Ceiling, Run
from planebench.model.plan import ThroughputPlan
from planebench.model.records import Point, VerdictKind
from planebench.model.topology import Side


def test_a_search_is_found_again_and_its_trials_count() -> None:
    run = searched_run({"planed": 10.0})
    (result,) = derive_results(run)
    (found,) = result.searches
    assert (found.method, found.complete) == ("ndr", True)
    assert found.lower_pps is not None and found.upper_pps is not None
    assert found.lower_pps <= 10e6 < found.upper_pps <= found.lower_pps / (1 - 0.005)
    searching = {t.index for t in run.trials if t.role == "search"}
    assert searching and searching <= set(found.trials) <= set(result.trials)


def test_one_search_has_bounds_but_no_interval() -> None:
    (result,) = derive_results(searched_run({"planed": 10.0}))
    (figure,) = result.search_figures
    assert figure.pps == pytest.approx(result.searches[0].lower_pps)
    assert (figure.method, figure.starts, figure.low_pps, figure.high_pps) == ("ndr", 1, None, None)
    assert not figure.is_bound


def test_searches_of_three_starts_have_an_interval_that_holds_the_rate_and_equal_switches_overlap() -> None:
    """Starts differ by 2 %: the bounds, 0.5 % apart, hold the rate in one of ten searches."""
    held = of_bounds = apart = different = 0
    for seed in range(20):
        spec = "sim:capacity=10M:start_noise=2%"
        derived = Derived(simulated_run({"a": spec, "b": spec}, seed, 3))
        a, b = (result.search_figures[0] for result in derived.results)
        assert a.low_pps < a.pps < a.high_pps
        held += sum(it.low_pps <= 10e6 <= it.high_pps for it in (a, b))
        apart += a.high_pps < b.low_pps or b.high_pps < a.low_pps
        searches = [result.searches[0] for result in derived.results]
        of_bounds += sum(it.lower_pps <= 10e6 <= it.upper_pps for it in searches)
        different += [it.answer for it in derived.comparisons if it.metric == "ndr"].count("different")
    assert held >= 36
    assert of_bounds <= 8
    assert apart == 0
    assert different <= 1


def test_the_interval_of_starts_that_do_not_differ_reaches_over_the_bounds() -> None:
    (result,) = derive_results(simulated_run({"a": "sim:capacity=10M"}, 1, 3))
    (figure,) = result.search_figures
    assert figure.low_pps < figure.pps <= 10e6 < result.searches[0].upper_pps < figure.high_pps


def test_a_search_that_met_its_goal_at_the_highest_load_is_a_lower_bound() -> None:
    plan = dataclasses.replace(PLAN, throughput=ThroughputPlan(1.0, 1, max_rate_pps=8e6))
    run = searched_run({"a": 10.0, "b": 20.0}, plan)
    derived = Derived(run)
    figures = [result.search_figures[0] for result in derived.results]
    assert [(it.pps, it.is_bound, it.high_pps) for it in figures] == [(8e6, True, None)] * 2
    (compared,) = (it for it in derived.comparisons if it.metric == "ndr")
    assert compared.answer not in ("same", "different")
    assert "a may do more (lower bound)" in compared.note


def test_a_search_that_was_cut_short_says_so() -> None:
    run = searched_run({"planed": 10.0})
    (result,) = derive_results(Run(run.header, run.trials[:5]))
    assert not result.searches[0].complete


@pytest.mark.parametrize(("ceiling_mpps", "kind"), [(11.0, "tester-limited"), (11.5, "valid"), (None, "valid")])
def test_a_bound_near_the_ceiling_of_the_tester_is_a_lower_bound(ceiling_mpps: float | None, kind: str) -> None:
    run = searched_run({"planed": 10.0})
    calibration = None if ceiling_mpps is None else _calibration(ceiling_mpps * 1e6)
    (found,) = derive_results(Run(dataclasses.replace(run.header, calibration=calibration), run.trials))[0].searches
    assert found.verdict.kind.value == kind
    if kind == "tester-limited":
        assert "is within 10% of the calibrated tester maximum (11.00 Mpps)" in found.verdict.texts[0]


def test_an_unfinished_search_near_the_ceiling_keeps_its_verdict() -> None:
    run = searched_run({"planed": 10.0})
    header = dataclasses.replace(run.header, calibration=_calibration(1e6))
    (found,) = derive_results(Run(header, run.trials[:5]))[0].searches
    assert found.verdict.kind is not VerdictKind.TESTER_LIMITED


@pytest.mark.parametrize(
    ("point", "cpus", "pps"),
    [
        (make_point(), (1, 1), 1.0),
        (make_point(scenario="p2v"), (1, 1), 2.0),
        (make_point(scenario="p2v", direction="reversed"), (1, 1), 3.0),
        (make_point(scenario="v2v"), (1, 1), 4.0),
        (make_point(scenario="loopback"), (1, 1), 1.0),
        (make_point(direction="bidirectional"), (1, 1), 1.0),
        (make_point(direction="bidirectional"), (2, 1), None),
        (make_point(direction="bidirectional"), (2, 2), 1.0),
        (make_point(frame_size_bytes=128), (1, 1), None),
    ],
)
def test_the_ceiling_is_that_of_the_ends_of_the_path(point: Point, cpus: tuple[int, int], pps: float | None) -> None:
    """``cpus``: CPUs of the tester, which has an end on each, or a queue of both ends; and its queues."""
    tester_cpus, tester_cores = cpus
    ends: tuple[tuple[Side, Side], ...] = (("wire", "wire"), ("wire", "vnf"), ("vnf", "wire"), ("vnf", "vnf"))
    ceilings = tuple(Ceiling(64, sender, receiver, i + 1.0, True) for i, (sender, receiver) in enumerate(ends))
    calibration = dataclasses.replace(
        _calibration(1.0), ceilings=ceilings, tester_cpus=tester_cpus, tester_cores=tester_cores
    )
    assert tester_ceiling_pps(calibration, point) == pps
    assert tester_ceiling_pps(None, point) is None


def _calibration(pps: float) -> Calibration:
    ceilings = (Ceiling(64, "wire", "wire", pps, True),)
    return Calibration("2026-11-21T09:00:00Z", "0.2.0", "cpu", "6.1", "virtio", 256, False, 1, 0.2, ceilings, (), ())
