# SPDX-License-Identifier: BSD-3-Clause
import math
from itertools import pairwise

import pytest
from builders import make_header, make_latency_trial, make_run
from hypothesis import given
from hypothesis import strategies as st

from planebench.analysis.results import derive_results
from planebench.model import words as wording
from planebench.model.header import Run
from planebench.report.charts import curves
from planebench.report.figure import switch_colors
from planebench.report.latency import latency_rows, scatter_latencies
from planebench.report.svg import Scale, spread, tick_words


@given(st.dictionaries(st.text(max_size=3), st.floats(-100, 100), max_size=8), st.floats(0.1, 20))
def test_spread_labels_keep_their_order_and_their_distance(wanted: dict[str, float], gap: float) -> None:
    places = spread(wanted, gap)
    assert set(places) == set(wanted)
    ordered = sorted(wanted, key=lambda n: wanted[n])
    assert all(places[b] - places[a] >= gap * 0.999 for a, b in pairwise(ordered))


def test_labels_that_do_not_touch_stay_and_none_is_below_the_floor() -> None:
    assert spread({"a": 1.0, "b": 5.0}, 2.0) == {"a": 1.0, "b": 5.0}


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e6), st.booleans())
def test_axes_have_a_few_round_ticks_within_their_ends(low: float, factor: float, log: bool) -> None:
    scale = Scale(low if log else 0.0, low * factor, 0.0, 100.0, log)
    ticks = scale.ticks()
    assert len(ticks) <= 9 and all(-0.1 <= scale(tick) <= 100.1 for tick in ticks)
    assert len(set(map(tick_words, ticks))) == len(ticks)


def test_a_wide_interval_does_not_flatten_a_chart() -> None:
    rows = [
        {"switch": "planed", "x": x, "y": 10.0 + x, "low": 0.001, "high": 1e6, "p99": 20.0, "tip": ""}
        for x in (1, 2, 3)
    ]
    colors, titles = switch_colors(["planed"]), ("load", "µs")
    (wide, narrow) = (
        curves([{**row, **ends} for row in rows], 330.0, colors, titles, dashed="p99").svg("")
        for ends in ({}, {"low": 10.0, "high": 10.0})
    )
    ticks = ">10</text>", ">20</text>"
    assert all(tick in svg for svg in (wide, narrow) for tick in ticks)
    assert wide.count('stroke-width="1.2"') == 9, "three whiskers, both ends of each cut, with the head of an arrow"


def test_a_latency_of_zero_has_a_place_on_a_log_axis() -> None:
    run = Run(make_header(), (make_latency_trial(samples_ns=[(0, 10)]),))
    assert latency_rows(derive_results(run))[0]["p50"] > 0


def test_the_scatter_needs_two_switches_at_the_same_load() -> None:
    run = make_run(problems=False)
    results = [r for r in derive_results(run) if r.point.scenario == "p2p" and r.latency]
    assert {s.load for _, s in scatter_latencies(results)} == {"0.99"}
    assert scatter_latencies(results[:1]) == []
    v2v = [r for r in derive_results(run) if r.point.scenario == "v2v"]
    assert scatter_latencies(v2v) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (15_321_000.0, "15.32"), (99_000.0, "0.099"), (149e6, "149.00"), (None, wording.NOTHING)],
)
def test_mpps(value: float | None, text: str) -> None:
    assert wording.mpps(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.50"),
        (4.123, "4.12"),
        (34.26, "34.3"),
        (174.4, "174"),
        (7275.0, "7\u202f275"),
        (math.nan, wording.NOTHING),
    ],
)
def test_us(value: float, text: str) -> None:
    assert wording.us(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 %"), (0.0004, "< 0.1 %"), (0.023, "2.3 %"), (0.31, "31 %"), (None, wording.NOTHING)]
)
def test_percent(value: float | None, text: str) -> None:
    assert wording.percent(value) == text


def test_long_reasons_are_cut_to_one_line() -> None:
    assert wording.reasons(("a\n  b", "c")) == "a b (+ 1 more)"
    assert len(wording.reasons(("x" * 500,))) == 160
    assert wording.load_words("0.50") == "50 % of R+"
    assert wording.load_words("1Mpps") == "1 Mpps"
