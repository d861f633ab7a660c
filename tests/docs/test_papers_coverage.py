# SPDX-License-Identifier: BSD-3-Clause
"""The state of an item of a paper is what has run, and nothing that somebody wrote."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from planebench.cli.app import app
from planebench.plan import list_suites
from planebench.plan.expand import expand, points_of
from planebench.plan.override import override
from planebench.plan.schema import load_plan

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import papers_coverage as coverage
from papers_coverage import Evidence, Judge

PARTS = {f"{suite}/{part.name}": part for suite in list_suites() for part in load_plan(suite).parts}
SOURCE = yaml.safe_load(coverage.SOURCE.read_text(encoding="utf-8"))
PART = "conext19/table-3"
POINTS = len(coverage.by_switch(PARTS[PART])["bess"])
DAY = "2026-11-30"
SMALL = {"cores_allowed": 2, "numa_nodes": 1}
WORDS = {"item": "x", "where": "Table 3", "says": "y"}


def ran(letters: str = f"{POINTS}c", switch: str = "bess", part: str = PART, **host: int) -> Evidence:
    """Return the evidence of a part with one switch."""
    plan = PARTS[part]
    return Evidence(part, DAY, "abc", {**SMALL, **host}, coverage.key_of(plan), {switch: letters}, plan)


def state(row: dict[str, Any], *evidence: Evidence, **others: dict[str, Any]) -> str:
    """Return the state of an item, beside others."""
    source = {"conext19": {"X": {**WORDS, **row}, **{key: {**WORDS, **it} for key, it in others.items()}}}
    assert list(coverage.problems(source, PARTS)) == []
    return coverage.states(source, Judge(evidence, PARTS))["X"][0]


def item(**needs: Any) -> dict[str, Any]:
    """Return an item of the part that needs this."""
    return {"run": [PART], "needs": needs}


def test_faithful_is_what_ran_whole() -> None:
    assert state(item(), ran()) == "faithful"
    assert state(item(switch=["bess"]), ran()) == "faithful"
    assert state(item(loads=[0.10, 0.99], direction="unidirectional"), ran()) == "faithful"


@pytest.mark.parametrize(
    ("needs", "evidence", "wanted"),
    [
        ({}, [], "partial"),
        ({"switch": ["bess", "vpp"]}, [ran()], "hardware"),
        ({}, [ran(f"{POINTS - 1}c1.")], "partial"),
        ({}, [ran(f"{POINTS}f")], "hardware"),
        ({"hosting": "vm"}, [ran()], "hardware"),
        ({"numa_nodes": 2}, [ran()], "hardware"),
        ({"ring_size": 64}, [ran()], "partial"),
        ({"ring_size": 64, "hosting": "vm"}, [ran()], "partial"),
        ({"since": "2026-12-01"}, [ran()], "partial"),
        ({"method": "another VNF"}, [ran()], "partial"),
        ({"claims": ["near-saturation-p2p", "pigs-fly"]}, [ran()], "partial"),
        ({"software": "Xen"}, [ran()], "hardware"),
    ],
)
def test_what_an_item_needs_and_did_not_run_makes_it_less(
    needs: dict[str, Any], evidence: list[Evidence], wanted: str
) -> None:
    assert state(item(**needs), *evidence) == wanted
    # What stands in for hardware and software excuses neither a method that differs nor a part that did not run.
    stands_in = state({**item(**needs), "instead": "another thing"}, *evidence)
    assert stands_in == ("emulated" if wanted == "hardware" else "partial")


def test_a_host_that_has_what_is_needed() -> None:
    assert state(item(numa_nodes=2, cores_allowed=6), ran(numa_nodes=2, cores_allowed=8)) == "faithful"


def test_each_switch_may_be_of_another_run() -> None:
    half = ran(f"1c{POINTS - 1}.", "vpp")
    assert state(item(switch=["bess", "vpp"]), ran(), half, ran(switch="vpp")) == "faithful"
    assert state(item(switch=["bess", "vpp"]), ran(), half) == "hardware"


def test_conditions_are_those_of_the_run() -> None:
    lined = replace(PARTS[PART], throughput=replace(PARTS[PART].throughput, line_bps=2.5e9))
    assert state(item(line_bps="2.5G"), ran()) == "partial"
    assert state(item(line_bps="2.5G"), replace(ran(), plan=lined)) == "faithful"


def test_a_part_that_was_changed_has_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PARTS[PART]
    assert coverage.key_of(replace(part, ring_size=512)) != coverage.key_of(part)
    assert coverage.key_of(replace(part, frame_sizes_bytes=(64, 128))) != coverage.key_of(part)
    longer = replace(part, throughput=replace(part.throughput, duration_s=9.0), seed=7, name="other", switches=("vpp",))
    assert coverage.key_of(longer) == coverage.key_of(part)
    monkeypatch.setattr(coverage, "EVIDENCE", tmp_path / "evidence.yaml")
    command = Evidence("planebench doctor", DAY, "abc", SMALL)
    coverage.write([replace(ran(), plan=None), command], PARTS)
    assert coverage.stored(PARTS) == [ran(), command]
    assert coverage.stored({**PARTS, PART: replace(part, ring_size=512)}) == [command]


def test_a_command_has_to_have_ended_well() -> None:
    row = {"run": ["planebench doctor"]}
    assert state(row) == "partial"
    assert state(row, Evidence("planebench doctor", DAY, "abc", SMALL)) == "faithful"


def test_what_stands_in_or_is_lacking_is_said() -> None:
    rows = {
        "A": {**WORDS, **item(hosting="vm"), "instead": "a process"},
        "B": {**WORDS, **item(hosting="vm", numa_nodes=2)},
        "C": {**WORDS, **item(hosting="vm", ring_size=64), "instead": "a process", "depends_on": ["B"]},
        "D": {**WORDS, **item()},
        "E": {**WORDS, "run": ["conext19/vms"], "needs": {"hosting": "vm"}, "instead": "a process"},
        "F": {**WORDS, **item(), "depends_on": ["A"]},
        "G": {**WORDS, **item(), "depends_on": ["A", "B", "E"]},
    }
    found = coverage.states({"conext19": rows}, Judge([ran()], PARTS))
    assert [said for _, said in found.values()] == [
        ["a process"],
        ["hosting vm", "2 NUMA nodes"],
        ["ring_size 64"],
        [],
        ["hosting vm"],
        ["as A"],
        ["as A", "as B", "as E"],
    ]
    page = "\n".join(coverage.lines({"conext19": rows}, found))
    assert page.endswith("""
Faithful: D.

Emulated, by:

- **A** x: a process
- What rests on such: F (A)

Hardware, lacks:

- **B** x: hosting vm; 2 NUMA nodes
- **E** x: hosting vm
- What rests on such: G (A, B, E)

Partial, lacks:

- **C** x: ring_size 64""")


def test_no_item_is_better_than_what_it_depends_on() -> None:
    assert state({**item(), "depends_on": ["Y"]}, ran(), Y={}) == "missing"
    assert state({**item(), "depends_on": ["Y"]}, ran(), Y=item(hosting="vm")) == "hardware"
    assert state({"depends_on": ["Y"]}, ran(), Y=item()) == "faithful"


def test_a_state_that_somebody_wrote_is_an_error() -> None:
    rows = {"X": {**WORDS, **item(bell=1), "state": "faithful"}, "Y": {"item": "y", "run": ["conext19/none"]}}
    assert list(coverage.problems({"conext19": {**rows, "Z": {**WORDS, "depends_on": ["U"]}}}, PARTS)) == [
        "X: unknown key state",
        "X: no such need: bell",
        "Y: no where",
        "Y: no says",
        "Y: no such part: conext19/none",
        "Z: no such item: U",
    ]


def test_the_items_of_the_papers_are_whole() -> None:
    assert list(coverage.problems(SOURCE, PARTS)) == []
    assert sum(map(len, SOURCE.values())) >= 121


def test_the_runs_of_items_and_of_what_papers_advise_have_test_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run can17 --chain l3fwd:cores=2` parsed, and was refused: no part of the suite has that chain."""
    found: list[int] = []

    def measure(plan: str, overrides: dict[str, Any], **_: object) -> int:
        found.append(len(expand(override(load_plan(plan), **overrides))))
        return 0

    monkeypatch.setattr("planebench.cli.run.run_plan", measure)
    commands = {it for rows in SOURCE.values() for row in rows.values() for it in row.get("run", ())}
    page = (coverage.ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    advised = re.findall(r"\| `(planebench [^`]*)`", page)
    assert len(advised) >= 10
    commands |= {*advised}
    for words in (shlex.split(command)[1:] for command in commands if command.startswith("planebench run")):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0 and found.pop() > 0, (words, done.output)


def test_a_part_with_short_trials_is_the_same_part(tmp_path: Path) -> None:
    for name, part in PARTS.items():
        plan = tmp_path / "plan.yaml"
        plan.write_text(yaml.safe_dump(coverage.short_plan(name)), encoding="utf-8")
        whole = load_plan(plan)
        (short,) = (it for it in whole.parts if coverage.by_switch(it))
        assert (short.throughput.duration_s, coverage.key_of(short)) == (0.1, coverage.key_of(part)), name
        assert len(expand(whole)) == len(points_of(part))


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        ("===== 5 passed in 3.21s =====", True),
        ("===== 5 passed, 90 deselected in 300.00s (0:05:00) =====", True),
        ("===== 5 passed, 1 skipped in 3.21s =====", False),
        ("===== 2 skipped in 0.01s =====", False),
        ("===== 1 failed, 5 passed in 3.21s =====", False),
    ],
)
def test_tests_that_were_skipped_are_no_evidence(line: str, passed: bool) -> None:
    assert bool(coverage.PASSED.search(line)) == passed
