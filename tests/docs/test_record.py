# SPDX-License-Identifier: BSD-3-Clause
"""docs/results is what scripts/record.py makes of the kept runs; `make lint` compares all of it."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from planebench.model.text import parse_yaml
from planebench.papers.claims import all_claims

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import record  # noqa: E402
import record_drawings  # noqa: E402
import record_kept  # noqa: E402


def test_what_is_kept_is_small_and_has_no_path_of_its_machine() -> None:
    files = [path for path in record_kept.RUNS.rglob("*") if path.is_file()]
    assert files and sum(path.stat().st_size for path in files) < record.MAX_BYTES
    headers = [path.read_text(encoding="utf-8") for path in files if path.name == "run.json"]
    assert [text for text in headers if re.search(r'"PLANEBENCH_\w+": "|"folder"|"command": \[[^]]*"/', text)] == []


def test_tables_are_those_of_the_kept_run() -> None:
    """Only the smallest run is checked, because all of them take seconds."""
    assert record.ports_table() in (record.RESULTS / "README.md").read_text(encoding="utf-8")


def test_a_switch_that_counts_no_cycles_has_those_of_its_core_where_it_has_one() -> None:
    run = record_kept.run_of("netsoft19")
    (of_core,) = record_kept.chosen("netsoft19", "v2v →")
    costs = record_kept.costs("netsoft19", of_core.point)
    alone = next(r for r in of_core.results if r.point.switch == "t4p4s")
    value, counted = costs["t4p4s"]
    assert not counted and value * (alone.throughput_pps or 0) == pytest.approx(run.run.header.host["cpu_mhz"] * 1e6)
    assert costs["testpmd"][1] and costs["testpmd"][0] < value
    chained = replace(alone, point=replace(alone.point, scenario="loopback", chain_length=1))
    assert record_kept.core_cycles(run, chained) == pytest.approx(value / 2)
    elsewhere = replace(alone, point=replace(alone.point, scenario="parallel", chain_length=1))
    assert record_kept.core_cycles(run, elsewhere) is None


def test_each_part_of_the_pages_is_made() -> None:
    pages = [(folder / "README.md").read_text(encoding="utf-8") for folder in (record.ROOT, record.RESULTS)]
    made = [re.findall(r"<!-- made ([a-z-]+) -->", page) for page in pages]
    assert made[0] == ["main"]
    assert sorted([*made[0], *made[1]]) == sorted(record.PARTS)
    assert [page.count("<!-- end -->") for page in pages] == [len(parts) for parts in made]


def test_a_drawing_follows_the_scheme_of_its_reader() -> None:
    drawn = record_drawings.in_both_schemes('<svg width="1"><rect fill="white"/><text fill="#22303c"/></svg>')
    assert drawn.startswith('<svg width="1"><style>@media (prefers-color-scheme: dark) {[fill="white"]{fill:#171c21}')
    assert '[fill="#22303c"]{fill:#e3e8ec}' in drawn and drawn.endswith('<text fill="#22303c"/></svg>')


def test_every_drawing_is_there_and_no_other() -> None:
    page = (record.RESULTS / "README.md").read_text(encoding="utf-8")
    shown = sorted(re.findall(r"\]\(img/([^)]+)\)", page))
    assert shown == sorted(record_drawings.DRAWINGS) == sorted(path.name for path in record_drawings.IMAGES.iterdir())


def test_every_data_file_is_on_the_page() -> None:
    page = (record.RESULTS / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\(data/([^)]+)\)", page)) == sorted(path.name for path in record.DATA.iterdir())


def test_every_claim_belongs_to_one_finding() -> None:
    found = parse_yaml(record.FINDINGS.read_text(encoding="utf-8"), "findings")
    assert sorted(name for it in found for name in it["claims"]) == sorted(claim.id for claim in all_claims())
