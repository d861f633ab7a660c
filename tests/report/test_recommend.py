# SPDX-License-Identifier: BSD-3-Clause
"""A recommendation claims what the figures allow, in words: a case for each thing that it may not claim."""

import dataclasses
import re

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial
from rich_run import rich_run

from planebench.model.records import SwitchCycles, Trial
from planebench.model.run import Run
from planebench.report.comparison import ratio_words, versus
from planebench.report.conditions import cores_sentence, switch_cores
from planebench.report.cores import cores_table
from planebench.report.papers import paper_tables
from planebench.report.recommend import Recommendation, recommendations
from planebench.stats.derived import Derived

UNKNOWN = SwitchCycles()


def _trials(switch: str, rates: tuple[float, ...], verdict: str = "valid", **changes: object) -> list[Trial]:
    band = changes.pop("band", "near")
    point = make_point(switch, **changes)  # type: ignore[arg-type]
    return [make_trial(0, point, rate, verdict, band=band, switch=UNKNOWN) for rate in rates]  # type: ignore[arg-type]


def _run(*trials: Trial) -> Run:
    return Run(make_header(), tuple(dataclasses.replace(t, index=i) for i, t in enumerate(trials)))


def _only(run: Run) -> Recommendation:
    (found,) = recommendations(Derived(run))
    return found


def test_a_clear_lead_has_its_ratio_and_interval() -> None:
    found = _only(_run(*_trials("planed", (18.0, 18.1, 18.2)), *_trials("testpmd", (10.0, 10.1, 10.2))))
    assert (found.strength, found.pick, found.use) == ("clear", "planed", "between NICs (p2p), 64 B, unidirectional")
    assert found.why == "forwards 1.79 × [1.76, 1.82] the throughput of testpmd (18.10 Mpps and 10.10 Mpps)."
    assert found.more == ("18.10 Mpps on one core.",)


def test_the_other_order_in_the_header_turns_the_ratio() -> None:
    slow, fast = _trials("planed", (10.0, 10.1, 10.2)), _trials("testpmd", (18.0, 18.1, 18.2))
    derived = Derived(_run(*slow, *fast))
    cell = dataclasses.replace(slow[0].point, switch="")
    one, other = (versus(derived.comparisons, cell, "throughput", *pair) for pair in _both("testpmd", "planed"))
    assert one and other and one.low and one.high and other.low and other.high
    assert ratio_words(one) == "1.79 × [1.76, 1.82]"
    assert (one.ratio * other.ratio, one.low * other.high, one.high * other.low) == pytest.approx((1.0, 1.0, 1.0))
    assert versus(derived.comparisons, cell, "ndr", "testpmd", "planed") is None


def _both(a: str, b: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (a, b), (b, a)


def test_what_is_level_is_not_recommended() -> None:
    found = _only(_run(*_trials("planed", (10.0, 10.4, 10.2)), *_trials("testpmd", (10.1, 10.3, 10.0))))
    assert (found.strength, found.pick) == ("open", "No significant difference:")
    assert found.why.startswith(
        "no significant difference between planed and testpmd: planed 10.20 Mpps, testpmd 10.13 Mpps;"
    )
    assert found.more == ()


def test_too_few_trials_are_said() -> None:
    found = _only(_run(*_trials("planed", (18.0,)), *_trials("testpmd", (10.0,))))
    assert (found.strength, found.pick) == ("open", "Insufficient data:")
    assert found.why.startswith("highest measured is planed; not tested against testpmd (n < 3): planed 18.00 Mpps,")
    assert "planed / testpmd: 1.80 × (no confidence interval); only 1 accepted trial each" in found.why


def test_a_lower_bound_that_is_behind_may_be_ahead() -> None:
    found = _only(
        _run(*_trials("planed", (18.0, 18.1, 18.2)), *_trials("testpmd", (10.0, 10.1, 10.2), "tester-limited"))
    )
    assert found.strength == "open"
    assert found.why.startswith(
        "testpmd reached the tester's maximum rate and cannot be ranked against planed: planed 18.10 Mpps, "
    )
    assert "testpmd ≥10.10 Mpps" in found.why and "testpmd is tester-limited" in found.why


def test_a_lower_bound_in_front_leads_by_at_least() -> None:
    found = _only(
        _run(*_trials("planed", (18.0, 18.1, 18.2), "tester-limited"), *_trials("testpmd", (10.0, 10.1, 10.2)))
    )
    assert found.why.startswith("forwards at least 1.79 × [1.76, unbounded] the throughput of testpmd (≥18.10 Mpps and")
    assert found.more == ("≥18.10 Mpps on one core, tester-limited.",)


def test_unstable_alone_and_not_compared_are_said() -> None:
    unstable = _only(_run(*_trials("planed", (18.0, 18.1, 21.2)), *_trials("testpmd", (10.0, 10.1, 10.2))))
    assert "Unstable: the trials of planed differ by more than 10 %." in unstable.more
    alone = _only(_run(*_trials("planed", (18.0, 18.1)), *_trials("testpmd", (10.0,), "disturbed")))
    assert (alone.strength, alone.why) == ("alone", "is the only switch with an accepted result (18.05 Mpps).")
    assert alone.more[-1] == "Excluded: testpmd (all trials rejected: disturbed)."
    none = _only(_run(*_trials("planed", (18.0,), "invalid")))
    assert (none.strength, none.pick, none.why) == ("none", "No recommendation:", "every trial was rejected.")


def test_another_band_is_not_compared_and_marked() -> None:
    run = _run(*_trials("planed", (18.0, 18.1, 18.2)), *_trials("testpmd", (10.0, 10.1), band="far"))
    assert _only(run).more[-1] == "Excluded: testpmd (measured with far cores (core-to-core latency); not comparable)."
    derived = Derived(run)
    (table,) = paper_tables(derived.results)
    assert table["rows"] == [
        {"switch": "planed", "groups": [["18.10"]]},
        {"switch": "testpmd", "groups": [["(10.05)"]]},
    ]
    assert [row.cells[2] for row in cores_table(run, derived.results).rows] == ["18.10", "(10.05)"]


def test_where_the_tester_limits_cycles_decide_and_latency_is_told_beside() -> None:
    found = _only(rich_run())
    assert found.why.startswith(
        "needs the fewest CPU cycles per packet (84); testpmd needs 2.26 × [2.26, 2.26] as many."
    )
    assert (
        found.more[0] == "≥14.34 Mpps on one core, 84 cycles per packet, tester-limited, core utilization "
        "45 %, extrapolated capacity est. 32 Mpps."
    )
    (latency,) = (text for text in found.more if "latency" in text)
    assert latency.startswith(
        "Lowest latency: no significant difference shown at 10 % of R+ (p50: planed 5.40, ovs-dpdk 10.8 µs; "
        "at 1.43 and 1.13 Mpps;"
    )


def test_of_many_loads_the_lowest_and_the_highest_are_told() -> None:
    (latency,) = (text for text in _only(rich_run()).more if "latency" in text)
    assert re.findall(r"at (\d+ % of R\+|\d+ loads? in between)", latency) == [
        "10 % of R+",
        "99 % of R+",
        "4 loads in between",
    ]
    assert latency.endswith(") and at 4 loads in between.")


def test_lower_latency_of_another_switch_is_told_with_its_interval() -> None:
    trials = [*_trials("planed", (18.0, 18.1, 18.2)), *_trials("testpmd", (10.0, 10.1, 10.2))]
    for i in range(3):
        trials.append(make_latency_trial(0, make_point("planed"), "0.10", 1.8e6, ((6000 + i, 900),)))
        trials.append(make_latency_trial(0, make_point("testpmd"), "0.10", 1e6, ((3000 + i, 900),)))
    found = _only(_run(*trials))
    assert found.more[1] == (
        "testpmd has the lowest latency at 10 % of R+ (p50 3.00 µs, 0.50 × [0.50, 0.50] that of planed; "
        "at 1.8 and 1 Mpps)."
    )


def test_other_sizes_and_directions_are_counted() -> None:
    trials = [*_trials("planed", (18.0, 18.1, 18.2)), *_trials("testpmd", (10.0, 10.1, 10.2))]
    trials += [*_trials("planed", (5.0, 5.01, 5.02), frame_size_bytes=1024)]
    trials += [*_trials("testpmd", (8.0, 8.01, 8.02), frame_size_bytes=1024)]
    trials += [*_trials("planed", (20.0, 20.1, 20.2), direction="bidirectional")]
    found = _only(_run(*trials))
    assert found.use == "between NICs (p2p), 64 B, bidirectional"
    assert found.strength == "alone"
    assert "Other 2 frame sizes and directions: planed leads in 1, testpmd leads in 1." in found.more


def test_cores_for_a_port_are_rounded_up_and_bounded() -> None:
    run = _run(
        *_trials("planed", (9.0,), "tester-limited"),
        *_trials("testpmd", (4.0,)),
        *_trials("ovs-dpdk", (1.0,), "invalid"),
    )
    rows = cores_table(run, Derived(run).results).rows
    assert [(row.cells[1], row.cells[-1]) for row in rows] == [("planed", "≤2"), ("ovs-dpdk", "–"), ("testpmd", "4")]
    two = dataclasses.replace(run.header, settings={**run.header.settings, "switch_cores": 2})
    rows = cores_table(dataclasses.replace(run, header=two), Derived(run).results).rows
    assert [row.cells[4:6] for row in rows] == [(2, "≥4.50"), (2, "–"), (2, "2.00")]


def test_the_cores_of_a_switch_are_those_that_it_has_threads_on() -> None:
    run = _run(*_trials("planed", (9.0,)), *_trials("testpmd", (4.0,)))
    planed, *rest = run.header.switches
    two = dataclasses.replace(planed, settings={"cores": "1,2"})
    run = dataclasses.replace(run, header=dataclasses.replace(run.header, switches=(two, *rest)))
    assert [switch_cores(run, label) for label in ("planed", "testpmd")] == [2, 1]
    assert cores_sentence(run) == "Cores: planed 2, ovs-dpdk 1, testpmd 1."
    assert cores_sentence(_run()) == "Each switch has one core."
