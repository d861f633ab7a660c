# SPDX-License-Identifier: BSD-3-Clause
"""docs/results is what scripts/record.py makes of the kept runs; `make lint` compares all of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import record  # noqa: E402
import record_kept  # noqa: E402


def test_what_is_kept_is_small_and_has_no_path_of_its_machine() -> None:
    files = [path for path in record_kept.RUNS.rglob("*") if path.is_file()]
    assert files and sum(path.stat().st_size for path in files) < record.MAX_BYTES
    headers = [path.read_text(encoding="utf-8") for path in files if path.name == "run.json"]
    assert [text for text in headers if re.search(r'"PLANEBENCH_\w+": "|"folder"|"command": \[[^]]*"/', text)] == []


def test_tables_are_those_of_the_kept_run() -> None:
    """Only the smallest run is checked, because all of them take seconds."""
    assert record.suite_tables("netsoft19") in (record.RESULTS / "tables.md").read_text(encoding="utf-8")


def test_a_switch_that_counts_no_cycles_has_those_of_its_core_where_it_has_one() -> None:
    found = record.standings("netsoft19")
    assert found is not None
    of_core = next(it for it in found.cost.values() if it.point.scenario == "v2v" and it.point.frame_size_bytes == 64)
    costs = record._cost("netsoft19", of_core)
    alone = next(
        r
        for r in found.derived.results
        if r.point.switch == "t4p4s" and replace(r.point, switch=of_core.point.switch) == of_core.point
    )
    value, counted = costs["t4p4s"]
    assert not counted and value * (alone.throughput_pps or 0) == pytest.approx(
        found.derived.run.header.host["cpu_mhz"] * 1e6
    )
    assert costs["planed"][1] and costs["planed"][0] < value
    chained = replace(alone, point=replace(alone.point, scenario="loopback", chain_length=1))
    assert record._core_cycles(found.derived, chained) == pytest.approx(value / 2)
    elsewhere = replace(alone, point=replace(alone.point, scenario="parallel", chain_length=1))
    assert record._core_cycles(found.derived, elsewhere) is None


def test_each_part_of_the_pages_is_made() -> None:
    pages = [(folder / "README.md").read_text(encoding="utf-8") for folder in (record.ROOT, record.RESULTS)]
    made = [re.findall(r"<!-- made ([a-z-]+) -->", page) for page in pages]
    assert made[0] == ["main"]
    assert sorted([*made[0], *made[1]]) == sorted(record.PARTS)
    assert [page.count("<!-- end -->") for page in pages] == [len(parts) for parts in made]


def test_a_drawing_follows_the_scheme_of_its_reader() -> None:
    drawn = record.in_both_schemes('<svg width="1"><rect fill="white"/><text fill="#22303c"/></svg>')
    assert drawn.startswith('<svg width="1"><style>@media (prefers-color-scheme: dark) {[fill="white"]{fill:#171c21}')
    assert '[fill="#22303c"]{fill:#e3e8ec}' in drawn and drawn.endswith('<text fill="#22303c"/></svg>')


def _pictures() -> Iterator[Path]:
    page = (record.RESULTS / "README.md").read_text(encoding="utf-8")
    yield from (record.RESULTS / name for name in re.findall(r"\]\((img/[^)]+)\)", page))


def test_every_drawing_is_there_and_no_other() -> None:
    assert sorted(_pictures()) == sorted(record.IMAGES.iterdir())
