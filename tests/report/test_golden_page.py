# SPDX-License-Identifier: BSD-3-Clause
"""The page of a stored real run says what it said: headings, sentences, tables, and the rows that its charts draw.

After a change that is meant: ``PLANEBENCH_GOLDEN=1 pytest tests/report/test_golden_page.py``; look at the diff. How the
run itself is renewed is in docs/report.md.
"""

import os
from pathlib import Path

import pytest
from page_words import figure_words, page_words

from planebench.analysis.compare import Derived
from planebench.model.header import Run
from planebench.model.time_had import is_disturbed
from planebench.report.figures import make_figures
from planebench.report.html import to_html
from planebench.store import read_run

GOLDEN = Path(__file__).parents[1] / "golden"
RUN = GOLDEN / "run"
MAX_RUN_BYTES = 310_000


@pytest.fixture(scope="module")
def run() -> Run:
    return read_run(RUN)


@pytest.fixture(scope="module")
def derived(run: Run) -> Derived:
    return Derived(run)


def _same(name: str, text: str) -> None:
    if os.environ.get("PLANEBENCH_GOLDEN"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text.splitlines() == (GOLDEN / name).read_text(encoding="utf-8").splitlines()


def test_the_run_is_real_small_and_has_what_a_page_can_show(run: Run) -> None:
    assert sum(path.stat().st_size for path in RUN.iterdir()) < MAX_RUN_BYTES
    assert not any(switch.adapter == "sim" for switch in run.header.switches)
    assert {t.point.scenario for t in run.trials} == {"p2p", "v2v", "loopback"}
    assert {"valid", "tester-limited"} <= {t.verdict.kind.value for t in run.trials}
    assert any(map(is_disturbed, run.trials))
    assert run.conditions and run.header.calibration


def test_the_page_says_what_it_said(derived: Derived) -> None:
    _same("report.txt", page_words(to_html(derived)))


def test_charts_draw_the_rows_that_they_drew(derived: Derived) -> None:
    _same("figures.txt", figure_words(make_figures(derived)))
