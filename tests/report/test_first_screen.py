# SPDX-License-Identifier: BSD-3-Clause
"""The first screen of the page of a stored real run, and how large the page of a run as large as quick's is."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from builders import screen_text

from planebench.analysis.compare import Derived
from planebench.report.figure import SWITCH_COLORS
from planebench.report.figures import make_figures
from planebench.report.html import to_html
from planebench.store import read_run

QUICK = Path(__file__).parents[2] / "docs/examples/runs/quick"
GOLDEN = Path(__file__).parents[1] / "golden/run"
MAX_QUICK_BYTES = 1_000_000
ANSWERS = (
    "7 of 8 test points are decided at 95 %",
    "At loopback-1 → 64 B, latency at 50 % of the carried load",
    "Fastest: planed at 7 of 8 test points (at least 1.45 to 2.46 × the next); open at 1; second: testpmd at "
    "p2v → 64 B, p2v ← 64 B and loopback-1 → 64 B (1.35 to 1.54 × the one after it).",
    "≥ lower bound",
    "? not decided",
)


@pytest.fixture(scope="module")
def derived() -> Derived:
    return Derived(read_run(QUICK))


@pytest.fixture(scope="module")
def screen(derived: Derived) -> str:
    """The first section of the page."""
    return to_html(derived).decode().partition('<section id="answers">')[2].partition("</section>")[0]


def _row(screen: str, name: str) -> list[str]:
    """The cells of a row of the table."""
    (row,) = re.findall(rf"<th scope=\"row\">{re.escape(name)}</th>(.*?)</tr>", screen)
    return [" ".join(unescape(re.sub(r"<[^>]+>", "", cell)).split()) for cell in re.findall(r"<td.*?</td>", row)]


def test_it_says_who_is_first_second_third_by_how_much_how_sure_that_is_and_what_p99_costs(
    screen: str,
) -> None:
    heads = re.findall(r"<i class=s\d></i>([\w-]+)</span></th>", screen)
    assert heads == ["planed", "testpmd", "ovs-dpdk"], "best first"
    assert _row(screen, "loopback-1 →") == ["≥21.4 ≥7.59", "~7.74 ~4.23", "~5.20 ~2.16", "≥2.34 ≥1.45"]
    assert _row(screen, "p99, µs") == ["8.95", "29.7", "34.6", "?2.90"]
    assert all(words in screen for words in ANSWERS)


def test_so_does_the_last_screen_of_the_terminal(derived: Derived) -> None:
    text = screen_text(derived, 80)
    rows = {cells[0]: cells[1:] for line in text.splitlines() if (cells := re.split(r"\s{2,}", line))}
    assert rows["Mpps: 64 B | 1024 B"] == ["planed", "testpmd", "ovs-dpdk", "best / next"]
    assert " ".join(rows["loopback-1 →"]) == "≥21.4 ≥7.59 ~7.74 ~4.23 ~5.20 ~2.16 ≥2.34 ≥1.45"
    assert rows["p99, µs"] == ["8.95", "29.7", "34.6", "?2.90"]
    assert all(words in " ".join(text.split()) for words in ANSWERS)


def test_its_charts_have_all_paths_and_switches(derived: Derived) -> None:
    figures = {figure.kind: figure for figure in make_figures(derived)}
    smallest = [r for r in derived.results if r.point.frame_size_bytes == 64]
    assert {row["cell"] for row in figures["overview"].rows} == {
        f"{r.point.switch} {path} 64 B" for r in smallest for path in [f"{r.point.scenario_label} {_arrow(r.point)}"]
    }
    p99 = {row["switch"]: round(row["us"], 1) for row in figures["p99"].rows}
    assert p99 == {"planed": 9.0, "testpmd": 29.7, "ovs-dpdk": 34.6}


def _arrow(point) -> str:  # type: ignore[no-untyped-def]
    return {"unidirectional": "→", "reversed": "←"}[point.direction]


def test_the_title_names_switches_and_paths(derived: Derived) -> None:
    assert "<h1>planed, ovs-dpdk and testpmd in p2v, v2v and loopback-1</h1>" in to_html(derived).decode()


def test_nothing_of_it_is_said_again(derived: Derived, screen: str) -> None:
    page = to_html(derived).decode()
    for note in re.findall(r"<span class=\"note\">(.*?)</span>", screen):
        assert page.count(note) == 1, note


def test_a_switch_has_one_color_in_the_pages_of_two_runs(derived: Derived) -> None:
    drawn = []
    for source in (derived, Derived(read_run(GOLDEN))):
        overview = next(figure for figure in make_figures(source) if figure.kind == "overview")
        colors = dict(overview.look.keywords["colors"])  # type: ignore[attr-defined]
        assert all(color in overview.svg() for color in colors.values())
        drawn.append(colors)
    assert drawn[0].keys() != drawn[1].keys()
    assert {label: drawn[0][label] for label in drawn[1]} == drawn[1]
    assert drawn[0]["planed"] == SWITCH_COLORS[0]


def test_a_page_as_large_as_that_of_quick_has_one_megabyte_at_most(derived: Derived) -> None:
    """455 trials at 18 test points; here 436 at 32."""
    trials = [
        replace(trial, point=replace(trial.point, frame_size_bytes=trial.point.frame_size_bytes + more))
        for more in (0, 8, 16, 24)
        for trial in derived.run.trials
    ]
    run = replace(derived.run, trials=tuple(replace(trial, index=index) for index, trial in enumerate(trials)))
    assert len(to_html(Derived(run))) <= MAX_QUICK_BYTES
