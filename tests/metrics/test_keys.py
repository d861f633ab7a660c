# SPDX-License-Identifier: BSD-3-Clause
"""A test point has one key, and no two rows of any output have the same one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

from builders import make_header, make_latency_trial, make_trial
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st

from planebench.analysis import tables
from planebench.analysis.compare import Derived, runs_compared
from planebench.analysis.metrics.results import POINT
from planebench.analysis.results import point_order
from planebench.model.conditions import Conditions
from planebench.model.errors import UsageError
from planebench.model.header import Run
from planebench.model.plan import Plan
from planebench.model.records import POINT_KEY, Point, Trial
from planebench.plan.expand import expand
from planebench.plan.schema import plan_from_document
from planebench.report.export import to_json

OF_POINT = tuple(column.name for column in POINT)
KEYS: dict[str, tuple[str, ...]] = {
    "results": OF_POINT,
    "latency": (*OF_POINT, "load"),
    "searches": (*OF_POINT, "method"),
    "ledger": (*OF_POINT, "place", "cause"),
    "anatomy": (*OF_POINT, "load", "flow", "part"),
    "trials": (*POINT_KEY, "role", "load", "repetition", "flow"),
    "evidence": ("run_id", "trial_index"),
    "threads": ("run_id", "trial_index", "owner", "thread"),
    "comparisons": ("run_id", "a", "b", "point", "metric", "load"),
    "conditions": ("run_id", "key", "switch"),
    "outages": ("run_id", "trial_index"),
    "skipped": ("run_id", "kind", "what", "reason"),
    "runs": ("run_id",),
}


def several(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)


DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "any",
    "switches": ["planed"],
    "scenarios": ["loopback"],
    "directions": ["unidirectional"],
    "frame_sizes_bytes": [64],
    "chain_lengths": [2],
    "hosting": ["process", "separate"],
    "placements": ["near", "far"],
    "cpu_clocks": ["", "1200MHz"],
    "traffic": ["plain", "flows-1k:name=far", "flows-1k:name=1200MHz"],
    "throughput": {"duration_s": 0.1, "repetitions": 1},
    "latency": {"loads": [0.5], "duration_s": 0.1},
}
"""Traffic may be named as a placement or a clock is."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan whose dimensions have one to three values each."""
    document = DOCUMENT | {
        "switches": draw(several("planed", "sim")),
        "scenarios": draw(several("p2p", "p2v", "v2v", "loopback", "parallel")),
        "directions": draw(several("unidirectional", "bidirectional", "reversed")),
        "traffic": draw(
            several("plain", "flows-1k:name=far", "flows-1k:name=1200MHz", "imix", "flows-1k", "flows-1k:count=5")
        ),
        "hosting": draw(several("process", "separate", "vm")),
        "placements": draw(several("near", "random", "far", "split:1")),
        "cpu_clocks": draw(several("", "1200MHz", "duty:0.46")),
    }
    if "loopback" in document["scenarios"]:
        document["chain_lengths"] = draw(st.lists(st.integers(1, 3), max_size=2, unique=True))
        document["chains"] = draw(several("l3fwd", "l2fwd,l3fwd", "vm:l2fwd,l3fwd", "firewall"))
    else:
        del document["chain_lengths"]
    try:
        plan = plan_from_document(document, "any")
        expand(plan)
    except UsageError:  # such as ends in VMs whose latency no clock can tell
        reject()
    return plan


def measured(plan: Plan) -> Run:
    """A run that has a saturating trial and one of latency of every point, and the conditions of each start."""
    points = expand(plan)[:24]
    trials: list[Trial] = []
    for point in points:
        trials.append(make_trial(len(trials), point))
        trials.append(make_latency_trial(len(trials), point))
    starts = {(point.switch, point.topology): point for point in points}.values()
    conditions = tuple(_conditions(point) for point in starts)
    labels = tuple(dict.fromkeys(point.switch for point in points))
    return Run(make_header(labels, plan=plan), tuple(trials), conditions=conditions)


def _conditions(point: Point) -> Conditions:
    named = {"vnf_hosting": point.hosting, "placement": point.placement, "cpu_clock": point.cpu_clock}
    return Conditions(
        point.switch,
        point.scenario,
        point.chain_length,
        point.wire,
        0,
        "2026-11-21T12:00:00Z",
        chain=point.chain,
        **named,
    )


def assert_unlike(name: str, rows: Iterable[dict[str, Any]], key: Sequence[str]) -> None:
    keys = [tuple(str(row[column]) for column in key) for row in rows]
    assert len(set(keys)) == len(keys), (name, next(it for it in keys if keys.count(it) > 1))


def test_the_key_of_a_point_is_every_field() -> None:
    """A new dimension of a plan is in every output at once."""
    assert set(POINT_KEY) == {field.name for field in dataclasses.fields(Point)}
    assert set(OF_POINT) == {*POINT_KEY, "run_id", "version"}
    assert set(KEYS) == set(tables.TABLES)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plans())
@example(plan_from_document(DOCUMENT, "any"))
def test_no_two_rows_of_an_output_have_one_key(plan: Plan) -> None:
    run = measured(plan)
    source, points = Derived(run), expand(plan)
    assert len({point.point_id for point in points}) == len(points)
    assert len({(point.switch, point_order(point)) for point in points}) == len(points)
    assert len({tuple(point.key.values()) for point in points}) == len(points)
    for name, key in KEYS.items():
        assert_unlike(name, tables.rows(name, [source]), key)
    document = json.loads(to_json(source))
    assert_unlike("json", document["results"], OF_POINT)
    assert_unlike("comparisons", document["comparisons"], ("a", "b", "point", "metric", "load"))
    started = ("switch", "scenario", "chain_length", "chain", "wire", "vnf_hosting", "placement", "cpu_clock", "start")
    assert_unlike("conditions", document["conditions"]["found"], started)
    between = runs_compared([source], [source]).comparisons
    assert_unlike("runs", map(dataclasses.asdict, between), ("a", "b", "point", "metric", "load"))
    assert len({c.point for c in between}) == len({point_order(point) for point in run.by_point()})
