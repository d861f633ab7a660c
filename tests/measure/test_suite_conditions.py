# SPDX-License-Identifier: BSD-3-Clause
"""Suites measure under the conditions of their papers; what differs is declared, with the reason, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from planebench.measure.suite_conditions import ConditionValue, ConditionValues, conditions_of
from planebench.model.plan import Plan, Skipped
from planebench.model.text import parse_yaml
from planebench.papers.data import PaperCondition
from planebench.plan.schema import load_plan

SUITES = ("conext19", "netsoft19", "can17", "ic16")


def paper_conditions(paper: str) -> dict[str, PaperCondition]:
    """Return the conditions of a paper by name, as those of a suite are."""
    text = files("planebench.papers").joinpath("papers.yaml").read_text(encoding="utf-8")
    found = parse_yaml(text, "papers")[paper]["conditions"]
    return {name: PaperCondition.model_validate(it) for name, it in found.items()}


def undeclared(plan: Plan) -> list[str]:
    """Return, in words, what differs between a suite and its paper undeclared, and what is declared in vain."""
    paper = paper_conditions(plan.papers[0])
    parts = {part.name: conditions_of(part) for part in plan.sections}
    said = {entry.what for entry in plan.differs}
    found, needed = [], set[str]()
    for name, known in paper.items():
        there = {value for conditions in parts.values() for value in conditions.get(name, ())}
        if missing := [value for value in known.values if value not in there]:
            needed.add(name)
            found += [] if name in said else [f"{name}: no part has {_words(missing)} of {known.where}"]
    for part in plan.sections:
        own = {entry.what for entry in part.differs}
        for name, values in parts[part.name].items():
            extra = _beside(paper.get(name), values)
            if extra and name not in own and name not in said:
                found.append(f"{part.name}: {name}: {_words(extra)} is not of the paper")
            if extra and name in own:
                own.discard(name)
            elif extra:
                needed.add(name)
        found += [f"{part.name}: nothing of {name} differs" for name in sorted(own)]
    return [*found, *(f"nothing of {name} differs" for name in sorted(said - needed))]


def _beside(known: PaperCondition | None, values: ConditionValues) -> list[ConditionValue]:
    """Return the values that a paper has not; none of a condition that it does not say."""
    return [] if known is None or not known.values else [value for value in values if value not in known.values]


def _words(values: Iterable[ConditionValue]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


@pytest.mark.parametrize("suite", SUITES)
def test_what_differs_from_the_paper_is_declared_and_nothing_else(suite: str) -> None:
    assert undeclared(load_plan(suite)) == []


@pytest.mark.parametrize("suite", SUITES)
def test_the_papers_table_has_every_condition_of_a_suite(suite: str) -> None:
    there = {name for part in load_plan(suite).parts for name in conditions_of(part)}
    assert there == {*paper_conditions(suite)}


def part(name: str, suite: str = "conext19") -> Plan:
    return next(part for part in load_plan(suite).parts if part.name == name)


def test_conditions_are_those_of_the_points() -> None:
    found = conditions_of(part("throughput"))
    assert found["line_bps"] == (10e9,) and found["saturation"] == ("open loop",)
    assert found["batching"] == ("32 frames, 100 us",) and found["vnf_rings"] == (256,)
    assert {"fastclick: 4096", "ovs-dpdk: 2048", "vpp: 1024"} <= {*found["nic_rings"]}
    without = conditions_of(part("no-line"))
    assert without["line_bps"] == ("none",) and without["saturation"] == ("closed loop",)
    v2v = conditions_of(part("table-4"))
    assert not {"line_bps", "saturation", "nic_rings"} & {*v2v}, "between VNFs there is no wire"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"wire_ring_size": 512}, "nic_rings: 512 is not of the paper"),
        ({"frame_sizes_bytes": (64, 65)}, "frame_sizes_bytes: 65 is not of the paper"),
        ({"ring_size": 128}, "vnf_rings: 128 is not of the paper"),
        ({"differs": (Skipped("directions", "why"),)}, "nothing of directions differs"),
    ],
)
def test_an_undeclared_difference_is_found(changes: dict[str, Any], words: str) -> None:
    plan = load_plan("conext19")
    plan = replace(plan, differs=tuple(it for it in plan.differs if it.what != "nic_rings"))
    first, *others = plan.parts
    found = undeclared(replace(plan, parts=(replace(first, **changes), *others)))
    assert any(words in line for line in found), found


def test_a_condition_of_the_paper_that_no_part_has_is_found() -> None:
    plan = load_plan("conext19")
    few = replace(plan, parts=tuple(part for part in plan.parts if part.name != "table-4" and "vms" not in part.name))
    assert any("rates_pps: no part has 1e+06 of Table 4" in line for line in undeclared(few))
