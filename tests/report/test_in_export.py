# SPDX-License-Identifier: BSD-3-Clause
"""Every number in a table of results on the page follows from one number of the JSON export of the same result."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from builders import make_header, make_point, make_trial
from rich_run import rich

from planebench.analysis.compare import Derived
from planebench.model import words
from planebench.model.header import Run
from planebench.model.records import FibUpdates, SwitchCycles, TrafficSent
from planebench.model.results import Result
from planebench.report.anatomy import anatomy_table
from planebench.report.export import to_json
from planebench.report.latency import jitter_table, latency_table
from planebench.report.searches import search_table
from planebench.report.tables import PageTable
from planebench.report.throughput import throughput_table
from planebench.report.traffic import traffic_table
from planebench.report.trials import ledger_table

OF_TWO = {"ratio to the result", "lost", "sizes"}
"""Columns with a ratio or the difference of two numbers that are both exported."""

_NUMBER = re.compile(r"(?<![\w.])\d[\d\u202f]*(?:\.\d+)?")

TABLES: tuple[Callable[[Run, list[Result]], PageTable], ...] = (
    throughput_table,
    latency_table,
    jitter_table,
    ledger_table,
    lambda _, results: search_table(results),
    lambda _, results: anatomy_table(results),
    lambda _, results: traffic_table(results),
)


def _updated() -> Derived:
    """A run with a traffic profile, FIB updates and all counters of the switch."""
    sent = (TrafficSent("n0->n1", 123_457, 45_678_901, ((64, 100_001), (1518, 23_456)), 4321, (7, 9)),)
    counted = SwitchCycles(9_876_543, 1_234_567, 123_457, {}, 123_401, 2345, {"rx_full_bursts": 777, "rx_bursts": 2345})
    updates = FibUpdates(None, 2_000_000_000, 50_000, 46_914)
    trial = make_trial(0, make_point(traffic="imix"), 7.654321, "tester-limited", switch=counted)
    return Derived(Run(make_header(("planed",)), (dataclasses.replace(trial, sent=sent, updates=updates),)))


def _numbers(value: Any) -> Iterator[float]:
    """Yield every number of a JSON value, those in its keys and texts, and the length of every list."""
    if isinstance(value, dict):
        yield from _numbers("; ".join(value))
        yield from (number for item in value.values() for number in _numbers(item))
    elif isinstance(value, list):
        yield len(value)
        yield from (number for item in value for number in _numbers(item))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, str):
        yield from (float(text) for text in re.findall(r"\d+(?:\.\d+)?", value))


def _written(number: float) -> set[str]:
    """Return every way in which the page writes a number."""
    ways = {f"{number:g}", words.mpps(number), words.us(number), words.us(number / 1e3), words.percent(number)}
    ways |= {words.count(round(number)), words.cycles(number), words.batch(number), words.estimate(number)}
    ways |= {f"{number / 1e6:.3f}", f"{number:.2f}", f"{number * 100:.1f} %", f"{number * 100:g}"}
    return {text for way in ways for text in _NUMBER.findall(way)}


def _missing(table: PageTable, exported: set[str]) -> list[str]:
    """Return the cells of a table whose numbers are not among those that the export has, with their heads."""
    return [
        f"{table.caption}: {column.title}: {cell}"
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if column.title not in OF_TWO and not set(_NUMBER.findall(str(cell))) <= exported
    ]


def _not_exported(derived: Derived, document: dict[str, Any]) -> list[str]:
    return [
        cell
        for result, record in zip(derived.results, document["results"], strict=True)
        for make in TABLES
        for cell in _missing(make(derived.run, [result]), {way for n in _numbers(record) for way in _written(n)})
    ]


@pytest.mark.parametrize("derived", [rich(), _updated()], ids=["rich", "updates"])
def test_every_number_of_a_result_on_the_page_is_in_the_export(derived: Derived) -> None:
    assert _not_exported(derived, json.loads(to_json(derived))) == []


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("fib_updates_per_s", "FIB updates/s"),
        ("switch_full_batch_share", "full batches"),
        ("throughput_stddev_pps", "± sd"),
        ("ledger", "offered"),
    ],
)
def test_a_figure_that_is_not_exported_is_found(name: str, head: str) -> None:
    derived = _updated() if name != "throughput_stddev_pps" else rich()
    document = json.loads(to_json(derived))
    for record in document["results"]:
        del record[name]
    assert any(f": {head}: " in cell for cell in _not_exported(derived, document))
