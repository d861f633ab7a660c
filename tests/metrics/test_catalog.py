# SPDX-License-Identifier: BSD-3-Clause
"""The catalog of metrics: what is in it reaches every output."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import pytest
from builders import make_header, make_point, make_trial

from planebench.library import Loaded
from planebench.library.source import Source
from planebench.model.records import SwitchCycles
from planebench.model.run import Run
from planebench.model.switch_figures import SWITCH_FIGURES, SwitchFigure, further_counters
from planebench.model.updates import FibUpdates
from planebench.report.export import to_csv, to_json
from planebench.report.html import to_html
from planebench.report.table import table_text
from planebench.schemas import schema_text


def test_fib_updates_are_in_every_export() -> None:
    trial = dataclasses.replace(make_trial(0, make_point()), updates=FibUpdates(None, 2_000_000_000, 50, 40))
    source = Source(Path("nowhere"), Run(make_header(("planed",)), (trial,)))
    assert json.loads(to_json(source))["results"][0]["fib_updates_per_s"] == 20
    (line,) = csv.DictReader(io.StringIO(to_csv(source).decode()))
    assert line["fib_updates_per_s"] == "20.0"
    loaded = Loaded([source])
    assert loaded.rows("results")[0]["fib_updates_per_s"] == loaded.rows("trials")[0]["fib_updates_per_s"] == 20
    assert loaded.trials["fib_updates_per_s"].tolist() == [20]


COUNTED = SwitchCycles(100, 50, 640, {}, 640, 20, {"rx_bursts": 20, "rx_full_bursts": 15})


def test_a_counter_of_the_switch_reaches_every_output() -> None:
    """The share of full batches: planed counts both bursts, and nothing between its report and the page knows them."""
    trials = tuple(make_trial(i, mpps=9.0, verdict="tester-limited", switch=COUNTED) for i in range(3))
    source = Source(Path("nowhere"), Run(make_header(("planed",)), trials))
    assert json.loads(to_json(source))["results"][0]["switch_full_batch_share"] == 0.75
    (line,) = csv.DictReader(io.StringIO(to_csv(source).decode()))
    assert line["switch_full_batch_share"] == "0.75"
    loaded = Loaded([source])
    for table in ("results", "trials"):
        assert loaded.rows(table)[0]["switch_full_batch_share"] == 0.75
    properties = json.loads(schema_text("export"))["$defs"]["ResultExport"]["properties"]
    assert "near 1, frames wait" in properties["switch_full_batch_share"]["description"]
    page, text = to_html(source).decode(), " ".join(table_text(source).split())
    assert ">full batches</th>" in page and "75 %" in page
    assert "75 % full" in text and "full: share of its batches that were full" in text


@pytest.mark.parametrize("figure", SWITCH_FIGURES, ids=lambda figure: figure.name)
def test_a_figure_that_a_switch_does_not_report_is_unknown(figure: SwitchFigure) -> None:
    assert figure.of(SwitchCycles()) is None
    assert figure.over([None, None]) is None


def test_the_counters_that_figures_need_are_asked_for() -> None:
    assert further_counters() == ("rx_full_bursts", "rx_bursts")
