# SPDX-License-Identifier: BSD-3-Clause
"""What the commands print on a terminal of 80 columns, and where there is no terminal."""

import pytest

from planebench.cli.lists import LISTS
from planebench.switches.registry import all_adapters

SCREENS = (
    *(["list", name] for name in LISTS),
    ["report"],
    ["report", "--all"],
    ["papers", "latest"],
    ["capacity"],
)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("command", SCREENS, ids=" ".join)
def test_tables_fit_80_columns_and_have_no_color_in_a_pipe(planebench, command, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr("planebench.report.html.to_html", lambda _: b"")  # charts take seconds
    done = planebench(*command)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert [line for line in done.out.splitlines() if len(line) > 80 and not line.startswith("report: ")] == []


@pytest.mark.parametrize("switch", all_adapters())
def test_every_switch_can_be_shown(planebench, switch: str) -> None:
    done = planebench("switch", "show", switch)
    assert (done.code, done.err) == (0, "")
    assert switch in done.out
