# SPDX-License-Identifier: BSD-3-Clause
"""What the suites of the papers measure, part by part: nothing comes or goes unseen.

After a change that is meant: ``PLANEBENCH_GOLDEN=1 pytest tests/plan/test_plan_golden.py``; look at the diff.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.measure.suite_conditions import ConditionValues, conditions_of
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.plan.expand import expand, points_of
from planebench.plan.schema import load_plan

GOLDEN = Path(__file__).parents[1] / "golden"


def _words(values: Iterator[object]) -> str:
    return ",".join(dict.fromkeys(map(str, values)))


def _kind(point: Point) -> tuple[str, ...]:
    return point.scenario_label, point.direction, point.traffic or "plain", point.wire


def lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.name}: {len(expand(plan))} points, budget {plan.time_budget_s} s"
    last: dict[str, ConditionValues] = {}  # only those conditions of a part are told that the part before has otherwise
    for part in plan.parts:
        points, how = points_of(part), part.latency
        loads = [*how.loads, *map("{:g}pps".format, how.rates_pps), *map("{:g}b/s".format, how.total_bps)]
        loads += map("{:g}b/s per VNF".format, how.per_vnf_bps)
        searches = "".join(f"; search {method}" for method in part.search.methods)
        yield f"{part.name}: {len(points)} points; latency at {', '.join(map(str, loads)) or 'no load'}{searches}"
        for kind in dict.fromkeys(map(_kind, points)):
            mine = [point for point in points if _kind(point) == kind]
            sizes, switches = _words(p.frame_size_bytes for p in mine), _words(p.switch for p in mine)
            yield f"  {' '.join(kind)}: {sizes} B: {switches}"
        now = conditions_of(part)
        for name in (it for it in {**last, **now} if last.get(it) != now.get(it)):
            yield f"  {name}: {_words(iter(now.get(name, ())))}"
        last = now
        yield from (f"  differs: {entry.what}" for entry in part.differs)
    yield from (f"differs: {entry.what}" for entry in plan.differs)


@pytest.mark.parametrize("suite", ["netsoft19", "conext19", "can17", "ic16"])
def test_a_suite_measures_what_it_did(suite: str) -> None:
    text, file = "\n".join(lines(load_plan(suite))) + "\n", GOLDEN / f"plan-{suite}.txt"
    if os.environ.get("PLANEBENCH_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text.splitlines() == file.read_text(encoding="utf-8").splitlines()
