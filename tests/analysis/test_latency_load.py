# SPDX-License-Identifier: BSD-3-Clause
import pytest
from builders import make_header, make_latency_trial, make_trial

from planebench.analysis.latency import LoadPoint, load_finding
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.results import LoadFinding


def _find(*p50_us: float, spread: float | None = None) -> LoadFinding | None:
    return load_finding([LoadPoint(f"L{i}", p50, spread) for i, p50 in enumerate(p50_us)])


@pytest.mark.parametrize("curve", [(), (5.0,)])
def test_one_load_tells_nothing(curve: tuple[float, ...]) -> None:
    assert _find(*curve) is None


def test_a_steady_curve_has_neither() -> None:
    assert _find(5.0, 5.2, 5.4) == LoadFinding()


def test_the_strongest_inversion_is_reported_with_its_ratio() -> None:
    assert _find(8.0, 6.0, 5.0, 9.0) == LoadFinding(("L0", "L2"), pytest.approx(1.6), None)


@pytest.mark.parametrize(("low", "found"), [(5.49, False), (5.51, True)])
def test_ten_per_cent_are_no_inversion_yet(low: float, found: bool) -> None:
    finding = _find(low, 5.0)
    assert finding is not None
    assert (finding.inversion is not None) == found


@pytest.mark.parametrize(("spread", "found"), [(None, True), (0.15, True), (0.25, False)])
def test_an_inversion_within_the_spread_of_the_trials_is_noise(spread: float | None, found: bool) -> None:
    finding = _find(6.0, 5.0, spread=spread)
    assert finding is not None
    assert (finding.inversion is not None) == found


@pytest.mark.parametrize(
    ("curve", "knee"),
    [
        ((5.0, 6.0, 6.0, 6.0, 30.0), "L3"),
        ((5.0, 10.0, 10.1, 11.0, 12.0), "L1"),
        ((5.0, 6.0, 7.0, 8.0, 9.9), None),
        ((5.0, 6.0, 6.0, 30.0), None),
        ((12.0, 5.0, 6.0, 6.0, 40.0), "L3"),
        ((5.0, 11.0, 6.0, 6.0, 11.0), "L3"),
        ((5.0, 30.0, 40.0, 40.0, 50.0), "L0"),
    ],
)
def test_the_knee_is_the_last_load_of_the_plateau(curve: tuple[float, ...], knee: str | None) -> None:
    finding = _find(*curve)
    assert finding is not None
    assert finding.knee == knee


def test_a_result_finds_it_in_the_loads_that_count() -> None:
    loads = {
        "0.10": (1e6, 9000),
        "0.30": (3e6, 5000),
        "0.50": (5e6, 4000),
        "0.90": (9e6, 5000),
        "0.99": (9.9e6, 60_000),
    }
    trials = [make_latency_trial(0, None, label, pps, [(ns, 100)]) for label, (pps, ns) in loads.items()]
    trials.append(make_latency_trial(0, None, "1.00", 10e6, [(900_000, 100)], verdict="tester-limited"))
    (result,) = derive_results(Run(make_header(), (make_trial(), *trials)))
    finding = result.load_finding
    assert finding is not None
    assert (finding.inversion, finding.knee) == (("0.10", "0.50"), "0.90")
    assert finding.inversion_ratio == pytest.approx(2.25, rel=1e-2)


def test_trials_that_disagree_make_no_inversion() -> None:
    slow = [make_latency_trial(0, None, "0.10", 1e6, [(ns, 100)]) for ns in (5000, 9000)]
    fast = [make_latency_trial(0, None, "0.50", 5e6, [(4500, 100)])]
    (result,) = derive_results(Run(make_header(), (make_trial(), *slow, *fast)))
    assert result.load_finding == LoadFinding()
