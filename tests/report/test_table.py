# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
import io

import pytest
from builders import make_header, make_latency_trial, make_plan, make_point, make_run, make_trial, table_text
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich_run import rich

from planebench.analysis.compare import Derived
from planebench.model.header import Finished, Run
from planebench.model.plan import LatencyPlan, Skipped
from planebench.model.words import NOTHING, mpps
from planebench.report.html import to_html
from planebench.report.terminal.grid import Glyphs
from planebench.report.terminal.table import print_table

SEVEN = ("planed", "ovs-dpdk", "testpmd", "vpp", "bess", "snabb", "t4p4s")


@pytest.fixture(scope="module")
def large() -> Derived:
    return Derived(make_run(SEVEN, sizes=(64, 256, 1024), chains=(1, 2, 3)))


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_the_terminal(large: Derived, width: int, unicode: bool) -> None:
    text = table_text(large, width, unicode)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("unicode", [True, False])
def test_a_run_with_everything_fits_too(width: int, unicode: bool) -> None:
    text = table_text(rich(), width, unicode)
    assert max(map(len, text.splitlines())) <= width
    assert text.isascii() != unicode


def test_every_scenario_switch_and_figure_is_there() -> None:
    text = table_text(Derived(make_run(problems=False)))
    for expected in ("p2p", "p2v", "v2v", "loopback", "planed", "ovs-dpdk", "testpmd", "99 % of R+", "⇄ 1024 B"):
        assert expected in text


def test_marks_and_reasons() -> None:
    trials = (
        make_trial(0, make_point("planed"), 14.0, "tester-limited"),
        make_trial(1, make_point("ovs-dpdk"), 9.0),
        make_trial(2, make_point("ovs-dpdk"), 12.0),
        make_trial(3, make_point("testpmd"), 9.0, "invalid", ("testpmd died",)),
        make_latency_trial(4, make_point("testpmd"), verdict="invalid", reasons=("testpmd died",)),
    )
    text = table_text(Derived(Run(make_header(), trials)))
    for expected in (
        "≥14.00",
        "invalid: testpmd died",
    ):
        assert expected in text, expected
    ascii_text = table_text(Derived(Run(make_header(), trials)), unicode=False)
    assert ascii_text.isascii()
    assert ">=14.00" in ascii_text


def test_a_switch_that_is_shown_to_be_faster_is_green_and_bold() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system="standard", _environ={})
    trials = tuple(
        make_trial(i, make_point(switch), rate, repetition=i // 2, start=i // 2)
        for i, (switch, rate) in enumerate([("planed", 20.0), ("testpmd", 10.0)] * 4)
    )
    print_table(Derived(Run(make_header(), trials[:2])), console)
    assert "\x1b[1;32m20.0" not in out.getvalue(), "one start each shows nothing"
    print_table(Derived(Run(make_header(), trials)), console)
    assert "\x1b[1;32m20.0" in out.getvalue()
    assert "\x1b[1;32m10.0" not in out.getvalue()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_color_there_are_no_colors(environment: dict[str, str]) -> None:
    out = io.StringIO()
    print_table(Derived(make_run()), Console(file=out, width=100, force_terminal=True, _environ=environment))
    assert "\x1b[32m" not in out.getvalue()
    assert "\x1b[1;32m" not in out.getvalue()


def test_a_terminal_without_unicode_gets_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    print_table(Derived(make_run()), Console(file=out, width=100))
    out.flush()
    assert raw.getvalue().isascii()


def test_how_the_run_ended_and_what_was_skipped() -> None:
    run = dataclasses.replace(
        make_run(),
        finished=Finished("interrupted", "2026-11-21T12:40:00Z", "Ctrl-C"),
        skipped=(Skipped("vpp", "not installed:\napt-get install vpp"),),
        warnings=("core 1 is shared",),
    )
    text = " ".join(table_text(Derived(run)).split())
    assert "interrupted: Ctrl-C" in text
    assert "Skipped vpp: not installed: apt-get install vpp" in text
    assert "core 1 is shared" in text
    assert "incomplete" in table_text(Derived(dataclasses.replace(run, finished=None)))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 40])
def test_a_run_that_was_cut_short_has_a_table(count: int) -> None:
    run = make_run()
    text = table_text(Derived(dataclasses.replace(run, trials=run.trials[:count], finished=None)))
    assert ("No trial has been measured" in text) == (count == 0)


def test_hostile_text_is_shown_and_not_interpreted() -> None:
    reason = "[bold red]x[/] \x1b[2J\x07 <script>"
    text = table_text(Derived(Run(make_header(), (make_trial(verdict="invalid", reasons=(reason,)),))))
    assert "[bold red]x[/] ?[2J? <script>" in " ".join(text.split())


@given(st.floats(-1, 2), st.integers(0, 20), st.booleans())
@settings(max_examples=50)
def test_bars_fill_exactly_their_width(share: float, width: int, unicode: bool) -> None:
    assert len(Glyphs(unicode).bar(share, width)) == width


@pytest.mark.parametrize(("loads", "times"), [((0.1, 0.5, 0.99), 1), ((0.5,), 0), ((), 0)])
def test_v2v_says_once_that_its_latency_is_not_along_loads(loads: tuple[float, ...], times: int) -> None:
    trials = (
        make_trial(0, make_point(scenario="v2v")),
        make_latency_trial(1, make_point(scenario="v2v"), "1Mpps", 1e6),
    )
    run = Run(make_header(plan=make_plan(latency=LatencyPlan(loads, 0.5))), trials)
    said = "v2v latency is measured only at a fixed 1 Mpps (see docs/methodology.md), not at several loads"
    assert table_text(Derived(run)).count(said) == times
    assert to_html(Derived(run)).decode().count(said) == times


def test_a_valid_latency_with_a_remark_says_it() -> None:
    trial = make_latency_trial(1)
    assert trial.latency is not None
    lossy = dataclasses.replace(trial, latency=dataclasses.replace(trial.latency, probes_sent=1100))
    text = " ".join(table_text(Derived(Run(make_header(), (make_trial(0), lossy)))).split())
    assert "valid: 100 of 1100 probes did not return" in text


@pytest.mark.parametrize(
    ("pps", "text"),
    [
        (None, NOTHING),
        (0.0, "0.00"),
        (1.0, "0.00000100"),
        (450.0, "0.000450"),
        (999.0, "0.000999"),
        (1e3, "0.001"),
        (5e5, "0.50"),
    ],
)
def test_small_rates_keep_their_digits(pps: float | None, text: str) -> None:
    assert mpps(pps) == text
