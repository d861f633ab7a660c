# SPDX-License-Identifier: BSD-3-Clause
"""The catalog of metrics: what is in it reaches every output."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from builders import make_header, make_point, make_trial, table_text

from planebench.analysis.compare import Derived
from planebench.analysis.histogram import encode
from planebench.analysis.metrics.column import TableRow, having, sql_type
from planebench.analysis.metrics.results import LATENCY, RESULT
from planebench.analysis.tables import TABLES, table_csv
from planebench.loaded import Loaded
from planebench.model.header import Run
from planebench.model.records import ControlPackets, FibUpdates, SwitchCycles, TrafficSent
from planebench.model.results import FURTHER_COUNTERS, SWITCH_FIGURES, SwitchFigure
from planebench.report.export import to_json
from planebench.report.html import to_html


def test_fib_updates_are_in_every_export() -> None:
    trial = dataclasses.replace(make_trial(0, make_point()), updates=FibUpdates(None, 2_000_000_000, 50, 40))
    source = Derived(Run(make_header(("planed",)), (trial,)))
    assert json.loads(to_json(source))["results"][0]["fib_updates_per_s"] == 20
    (line,) = csv.DictReader(io.StringIO(table_csv("results", source).decode()))
    assert line["fib_updates_per_s"] == "20.0"
    loaded = Loaded([source])
    assert loaded.rows("results")[0]["fib_updates_per_s"] == loaded.rows("trials")[0]["fib_updates_per_s"] == 20
    assert loaded.trials["fib_updates_per_s"].tolist() == [20]


def test_control_packets_are_in_every_output() -> None:
    control = ControlPackets(2.0, 4, 4, 3, encode([(12_000, 3)]))
    sent = TrafficSent("n0->n1", 1000, 64000)
    made = dataclasses.replace(make_trial(0, make_point(traffic="control-2")), control=control, sent=(sent,))
    trial = dataclasses.replace(made, updates=FibUpdates(2.0, 2_000_000_000, 4, 4))
    source = Derived(Run(make_header(("planed",)), (trial,)))
    (result,) = json.loads(to_json(source))["results"]
    assert (result["control"]["sent"], result["control"]["replies"]) == (4, 3)
    assert result["control_reply_p50_us"] == pytest.approx(12.0, rel=1e-2)
    page, text = to_html(source).decode(), " ".join(table_text(source).split())
    assert "3 of 4" in page and ">control replies</th>" in page
    assert "control replies" in text and "3 of 4" in text and "12.0" in text


COUNTED = SwitchCycles(100, 50, 640, {}, 640, 20, {"rx_bursts": 20, "rx_full_bursts": 15})


def test_a_counter_of_the_switch_reaches_every_output() -> None:
    """The share of full batches: planed counts both bursts, and nothing between its report and the page knows them."""
    trials = tuple(make_trial(i, mpps=9.0, verdict="tester-limited", switch=COUNTED) for i in range(3))
    source = Derived(Run(make_header(("planed",)), trials))
    assert json.loads(to_json(source))["results"][0]["switch_full_batch_share"] == 0.75
    (line,) = csv.DictReader(io.StringIO(table_csv("results", source).decode()))
    assert line["switch_full_batch_share"] == "0.75"
    loaded = Loaded([source])
    for table in ("results", "trials"):
        assert loaded.rows(table)[0]["switch_full_batch_share"] == 0.75
    page, text = to_html(source).decode(), " ".join(table_text(source).split())
    assert ">full batches</th>" in page and "75 %" in page
    assert "full batches" in text and "75 %" in text


@pytest.mark.parametrize("figure", SWITCH_FIGURES, ids=lambda figure: figure.name)
def test_a_figure_that_a_switch_does_not_report_is_unknown(figure: SwitchFigure) -> None:
    assert figure.of(SwitchCycles()) is None
    assert figure.over([None, None]) is None


def test_the_counters_that_figures_need_are_asked_for() -> None:
    assert FURTHER_COUNTERS == ("rx_full_bursts", "rx_bursts")


def _resolved(kind: Any, path: str) -> Any:
    """Return the type that a path of attributes leads to from a type of row; KeyError where it leads nowhere."""
    for name in path.split("."):
        kind = next((it for it in get_args(kind) if it is not type(None)), None) if _is_optional(kind) else kind
        found = getattr(kind, name, None)
        function = found.fget if isinstance(found, property) else None
        kind = get_type_hints(function)["return"] if function else get_type_hints(kind)[name]
    return kind


def _is_optional(kind: Any) -> bool:
    return get_origin(kind) is UnionType


@pytest.mark.parametrize("name", TABLES)
def test_every_path_leads_to_a_value_of_the_type_of_its_column(name: str) -> None:
    """mypy does not see the paths; a table without rows in the tests would hide one that is wrong."""
    for column in TABLES[name].columns:
        if isinstance(column.get, str):
            found = sql_type(_resolved(TableRow, column.get))
            assert found.replace("BIGINT", "INTEGER") == sql_type(column.type).replace("BIGINT", "INTEGER"), column.name


def test_names_are_unique_in_every_output() -> None:
    for table in TABLES.values():
        names = [column.flat_name for column in table.columns]
        assert len(names) == len(set(names))
    for columns in (having(RESULT, "json"), having(LATENCY, "json")):
        assert len({column.name for column in columns}) == len(columns)
