# SPDX-License-Identifier: BSD-3-Clause
"""The last screen of a run fits a terminal; it has who is first, second and third, by how much, and how sure it is."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial, screen_text
from rich.console import Console

from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.model.header import Finished, Run
from planebench.model.plan import Skipped
from planebench.model.records import Point, SwitchCycles, Trial
from planebench.model.results import Comparison
from planebench.model.wire import WIRES, Wire
from planebench.report.answers import winner_sentence
from planebench.report.terminal.screen import MAX_ROWS, lead_words, print_where
from planebench.report.terminal.table import print_screen

NINE = ("ovs-dpdk", "testpmd", "vpp", "bess", "snabb", "t4p4s", "fastclick", "vale", "planed")
SHAPES: dict[str, dict[str, Any]] = {
    "quick with three switches": {"sizes": (64, 256, 1024)},
    "two switches": {"switches": ("planed", "testpmd")},
    "one switch": {"switches": ("vpp",)},
    "nine switches": {"switches": NINE},
    "a chain of five VNFs": {"chains": (1, 2, 3, 4, 5), "sizes": (64,)},
    "twenty sizes": {"switches": ("planed", "vpp"), "sizes": tuple(range(64, 1344, 64))},
}


def _shape(name: str) -> Derived:
    run = make_run(**SHAPES[name])
    if name.startswith("quick"):  # 18 test points
        run = dataclasses.replace(run, trials=tuple(trial for trial in run.trials if trial.point.scenario != "p2v"))
    return Derived(run)


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest) -> Derived:
    return _shape(request.param)


@pytest.mark.parametrize(("width", "lines"), [(80, 23), (120, 30)])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_screen_fits_with_its_last_two_lines(shape: Derived, width: int, lines: int, unicode: bool) -> None:
    text = screen_text(shape, width, unicode)
    assert len(text.splitlines()) + 2 <= lines
    assert max(map(len, text.splitlines())) <= width
    assert text.isascii() or unicode
    for words in ("cycles/packet", "p99, ", "best / next" if len(shape.run.switch_labels) > 1 else "95 %"):
        assert words in text


RATES = {"planed": 20.0, "testpmd": 10.0, "ovs-dpdk": 5.0}


def _trials(
    points: Sequence[Point], rates: dict[str, float] = RATES, starts: int = 4, **verdicts: str
) -> tuple[Trial, ...]:
    """Return trials of these rates, which differ a little by start, and a latency at half of them."""
    trials = []
    for start in range(starts):
        for point in points:
            for switch, rate in rates.items():
                mpps = rate * (1 + 0.01 * (start % 2))
                cycles = SwitchCycles(int(2.6e9), int(1e7), int(mpps * 1e6))
                mine = dataclasses.replace(point, switch=switch)
                changes = {"repetition": start, "start": start}
                trials.append(
                    make_trial(len(trials), mine, mpps, verdicts.get(switch, "valid"), switch=cycles, **changes)
                )
                samples = ((4000 + 100 * start, 900), (int(9000 * 20 / rate), 100))
                trials.append(make_latency_trial(len(trials), mine, "0.50", mpps * 5e5, samples, **changes))
    return tuple(trials)


def _derived(points: Sequence[Point] = (make_point(),), rates: dict[str, float] = RATES, **verdicts: str) -> Derived:
    finished = Finished("complete", "2026-11-21T12:40:00Z")
    return Derived(Run(make_header(tuple(rates)), _trials(points, rates, **verdicts), finished))


def _line(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_a_row_has_first_second_and_third_and_the_lead_with_its_interval() -> None:
    text = screen_text(_derived(), 80)
    row = _line(text, "p2p →")
    figures = [word for word in row.split() if word[0].isdigit()]
    assert figures[:3] == ["20.1", "10.0", "5.02"] and figures[3].startswith("2.00±")
    assert _line(text, "Mpps").split()[-6:] == ["planed", "testpmd", "ovs-dpdk", "best", "/", "next"]
    assert "█" in row, "there is room for bars"
    assert _line(text, "At p2p").startswith("At p2p → 64 B, latency at 50 % of R+:")
    assert _line(text, "p99, µs").split()[2:5] == ["9.01", "18.0", "36.0"]
    assert _line(text, "cycles/packet").split()[1:4] == ["129", "259", "517"]
    sentence = "Fastest: planed at 1 of 1 test point (2.00 × the next); second: testpmd at 1 (2.00 × the one after it)."
    assert sentence in " ".join(text.split())
    assert "1 of 1 test points is decided at 95 %" in text.splitlines()[0]


def test_both_directions_share_a_row() -> None:
    points = [make_point(direction=way) for way in ("unidirectional", "bidirectional")]
    text = screen_text(_derived(points), 80)
    assert _line(text, "Mpps").startswith("Mpps, 64 B: → | ⇄")
    assert [word[:4] for word in _line(text, "p2p").split() if word[0].isdigit()] == [
        *("20.1", "20.1", "10.0", "10.0", "5.02", "5.02"),
        *("2.00", "2.00"),
    ]


def test_two_sizes_share_a_row() -> None:
    points = [make_point(frame_size_bytes=size) for size in (64, 1518)]
    text = screen_text(_derived(points), 80)
    assert _line(text, "Mpps").startswith("Mpps: 64 B | 1518 B")
    assert len([line for line in text.splitlines() if line.startswith("p2p →")]) == 1


def test_a_lower_bound_says_at_least_in_its_cell_and_in_the_sentence() -> None:
    text = " ".join(screen_text(_derived(planed="tester-limited"), 80).split())
    least = re.search(r"≥20\.1 \S+ +10\.0 \S+ +5\.02 \S+ +≥(\S+)", text)
    assert least and f"Fastest: planed at 1 of 1 test point (at least {least[1]} × the next)" in text
    assert "≥ lower bound: the tester or the links were the limit" in text
    assert "(129)" in text and "(…) not saturated" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "1.50±10%"),
        ({"answer": "same", "ratio": 1.01, "low": 0.99, "high": 1.03}, "=1.01±2%"),
        ({"answer": "open", "ratio": 1.08, "low": 0.9, "high": 1.296}, "?1.08±20%"),
        ({"answer": "untested", "low": None, "high": None}, "?1.50"),
        ({"high": None}, "≥1.40"),
        ({"low": None, "answer": "open"}, "?≤1.65"),
        ({"metric": "capacity"}, "≈1.50±10%"),
        ({"low": 0.01, "high": 200.0, "answer": "open"}, "?"),
        ({"low": 1.4999, "high": 1.5001}, "1.50±<1%"),
    ],
)
def test_a_lead_is_one_short_cell(changes: dict[str, Any], words: str) -> None:
    pair = Comparison("b", "a", "p2p", "throughput", 1.5, 1.4, 1.65, "different", 3, 3)
    assert lead_words(dataclasses.replace(pair, **changes)) == words
    assert lead_words(None) == "–"


def test_of_too_many_switches_the_first_four_and_the_own_have_a_column() -> None:
    text = screen_text(_shape("nine switches"), 80)
    assert _line(text, "Mpps").split()[-8:-3] == ["planed", "testpmd", "bess", "vpp", "ovs-dpdk"]
    assert "! 4 more switches: vale, fastclick, snabb and t4p4s" in text
    rates = {"slow": 1.0, "planed": 2.0, "a": 9.0, "b": 8.0, "c": 7.0, "d": 6.0, "e": 5.0}
    for rates_of, own in ((rates, "planed"), ({k: v for k, v in rates.items() if k != "planed"}, "slow")):
        text = screen_text(_derived(rates=rates_of), 80)
        assert _line(text, "Mpps").split()[-8:-3] == ["a", "b", "c", "d", own]


def test_of_too_many_rows_the_ends_are_shown_and_the_others_counted() -> None:
    text = screen_text(_shape("twenty sizes"), 80)
    rows = [line for line in text.splitlines() if (" B  " in line and "±" in line) or "≥" in line]
    assert len(rows) <= MAX_ROWS
    assert _line(text, "p2p 64 B") and _line(text, "p2p 1280 B")
    assert "… 162 more test points: planebench report --all" in text


class SamePorts(Wire):
    """A wire whose ports are those of VNFs."""

    name = "same-ports"
    title = help = ""
    order = 99
    vnf_ports = True


def test_paths_of_one_experiment_are_one_row_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (64, 128, 256, 512, 1024)
    points = [make_point(scenario=name, frame_size_bytes=size) for name in ("p2p", "p2v", "v2v") for size in sizes]
    points = [dataclasses.replace(point, chain_length=0) for point in points]
    derived = _derived(points)
    assert "v2v →" in screen_text(derived, 80)
    monkeypatch.setitem(WIRES, "same-ports", SamePorts())
    header = dataclasses.replace(derived.run.header, settings={"wire": "same-ports"})
    text = screen_text(Derived(dataclasses.replace(derived.run, header=header)), 80)
    assert "v2v" not in text and "… 10 more test points" in text
    assert all(_line(text, f"p2p → {size} B") for size in sizes)


def test_one_switch_has_its_figures_and_no_advice_to_add_another() -> None:
    text = screen_text(_derived(rates={"vpp": 12.0}), 80)
    row = _line(text, "p2p →").split()
    assert row[2] == "12.1" and row[3].startswith("±")
    assert _line(text, "p99, µs").split()[-1] == "15.0"
    assert "add a switch" not in text and "Fastest" not in text


def test_a_run_that_decides_nothing_says_so() -> None:
    run = Run(make_header(), _trials([make_point()], starts=1))
    sentence = winner_sentence(Standings(Derived(run)))
    assert sentence == "No switch is shown to be the fastest: not tested at 1 of 1 test point."
    assert "?2.00" in screen_text(Derived(run), 80) and sentence in screen_text(Derived(run), 80)


def test_how_the_run_ended_what_was_left_out_and_who_has_no_rate() -> None:
    finished = Finished("interrupted", "2026-11-21T12:40:00Z", "Ctrl-C")
    run = dataclasses.replace(
        _derived(testpmd="invalid").run,
        finished=finished,
        skipped=(Skipped("vpp", "not installed:\nuse apt"),),
        warnings=("the last line was cut off",),
    )
    text = screen_text(Derived(run), 80)
    assert "interrupted: Ctrl-C" in text.splitlines()[0]
    assert "! the last line was cut off" in text
    assert "! Left out: vpp: not installed: use apt" in text
    assert "! Without a rate at p2p → 64 B: testpmd (no trial counts: invalid)" in text
    assert "incomplete" in screen_text(Derived(dataclasses.replace(run, finished=None)), 80)


def test_the_first_is_green_on_a_terminal_and_plain_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    print_screen(_derived(), Console(file=out, width=100, force_terminal=True, color_system="standard", _environ={}))
    assert "\x1b[1;32m20.1" in out.getvalue() and "\x1b[1;32m10.0" not in out.getvalue()
    out = io.StringIO()
    print_screen(_derived(), Console(file=out, width=100))
    assert "\x1b" not in out.getvalue() and "20.1" in out.getvalue()


def test_a_terminal_without_unicode_gets_ascii() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    print_screen(_derived(planed="tester-limited"), Console(file=out, width=80))
    print_where("report: x", Console(file=out, width=80))
    out.flush()
    assert b">=20.1" in raw.getvalue() and b"report: x - planebench report --all" in raw.getvalue()


def test_a_run_that_ranks_nothing_has_its_table() -> None:
    out = io.StringIO()
    print_screen(Derived(Run(make_header())), Console(file=out, width=80))
    assert "No trial has been measured." in out.getvalue()


@pytest.mark.parametrize(("where", "lines"), [("report: a/report.html", 1), (f"report: {'a' * 60}/report.html", 2)])
def test_the_last_line_says_where_the_page_is_and_how_to_see_more(where: str, lines: int) -> None:
    out = io.StringIO()
    print_where(where, Console(file=out, width=80))
    assert len(out.getvalue().splitlines()) == lines
    assert where in out.getvalue().splitlines()[-1] and "planebench report --all" in out.getvalue()


def test_hostile_names_are_shown_and_not_interpreted() -> None:
    text = screen_text(_derived(rates={"[red]a\x1b[2J": 3.0, "b": 2.0}), 80)
    assert "\x1b" not in text and "[red]a" in text


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_gets_fewer_columns(width: int) -> None:
    text = screen_text(_shape("quick with three switches"), width)
    assert max(map(len, text.splitlines())) <= width
