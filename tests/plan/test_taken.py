# SPDX-License-Identifier: BSD-3-Clause
"""What a plan says, its paths do: a setting changes what is started or sent, is not about a path, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from planebench.measure.campaign import on_the_line, saturating_trial
from planebench.measure.live import LiveSettings, link_settings
from planebench.model.cpus import Cpus
from planebench.model.errors import UsageError
from planebench.model.plan import SECTIONS, Plan
from planebench.model.records import Point
from planebench.model.scenario import SCENARIOS
from planebench.plan.expand import points_of
from planebench.plan.override import override
from planebench.plan.schema import load_plan, plan_from_document
from planebench.plan.taken import RULES, PlanPath
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place_vnfs
from planebench.testbed.request import Ends
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request, vnf_documents

EVERYWHERE = frozenset(
    {
        *("name", "description", "papers", "left_out", "differs", "purpose", "only", "parts", "more_hostings", "seed"),
        *("switches", "missing_switches", "missing_hostings", "time_budget_s"),
        # The matrix, and where it is measured: points are made of them, or refused (planebench.switches.adapter).
        *("scenarios", "directions", "frame_sizes_bytes", "chain_lengths", "chains", "vnf_counts"),
        *("cpu_clocks", "wire", "switch_cores", "tester_cores", "tester", "clock", "check"),
        *("throughput.duration_s", "throughput.repetitions", "throughput.warmup_s", "throughput.restarts"),
        "throughput.max_rate_pps",
        *("throughput.repetitions_max", "search.methods"),
        *("latency.loads", "latency.rates_pps", "latency.total_bps", "latency.per_vnf_bps"),
        *("latency.duration_s", "latency.repetitions", "latency.of", "latency.probe_rate_pps", "latency.stamp"),
    }
)
"""Settings without a rule: every path takes them up, or what refuses them is elsewhere."""


def settings() -> Iterator[str]:
    """Yield every setting of a plan."""
    for field in fields(Plan):
        if (section := SECTIONS.get(field.name)) is not None:
            yield from (f"{field.name}.{it.name}" for it in fields(section))
        else:
            yield field.name


CPUS = Cpus((0, 1, 2, 3))
OTHERS: dict[str, Any] = {"ring_size": 512, "wire_ring_size": 2048, "send_burst": 8, "throughput.line_bps": 1e9}
"""Settings of what is started or sent, each with a value that no suite has."""


def test_every_setting_of_a_plan_has_a_rule_or_is_everywhere() -> None:
    assert {*RULES} | EVERYWHERE == {*settings()}
    assert not {*RULES} & EVERYWHERE


def changed(plan: Plan, key: str) -> Plan:
    section, _, name = key.rpartition(".")
    if section:
        return replace(plan, throughput=replace(plan.throughput, **{name: OTHERS[key]}))
    return replace(plan, **{key: OTHERS[key]})


def what_runs(plan: Plan, point: Point) -> list[object]:
    """Return what is started and sent for a point: the documents, the request to the switch, a saturating trial."""
    sent = on_the_line(plan, saturating_trial(plan, point, 0))
    echoes = sorted({False, plan.latency.wanted and point.echoes("latency")})
    return [sent, *(started for echo in echoes for started in what_starts(plan, point, echo=echo))]


def what_starts(plan: Plan, point: Point, *, echo: bool) -> list[object]:
    """Return the documents and the request to the switch; ``echo``: of latency, where it has a topology of its own."""
    topology = build_chain(
        point.scenario, point.chain_length, chain=point.chain, hosting=point.hosting, sending=plan.sending, echo=echo
    )
    live = LiveSettings(Path("planed"), plan.ring_size, False, 1518, plan.wire, wire_ring_size=plan.wire_ring_size)
    links = link_settings(get_adapter("planed"), topology, live, Path("/w"))
    links = replace(links, ends={name: Ends(f"{name}t", f"{name}s") for name in topology.wire_ports})
    placement = place_vnfs(CPUS, topology.cores_of_vnfs, hosted=topology.hosted_numbers)
    return [
        full_stage(topology, assign_tasks(placement, topology), links).to_json(),
        [document and document.to_json() for document in vnf_documents(topology, placement, links)],
        switch_request(topology, placement, links),
    ]


@pytest.mark.parametrize("suite", ["conext19", "netsoft19", "can17", "ic16", "quick", "regression"])
def test_every_path_of_a_suite_takes_up_what_the_plan_says(suite: str) -> None:
    """Another value changes what runs on every path but those that the rule says the setting is not about."""
    for plan in load_plan(suite).sections:
        for point in points_of(replace(plan, switches=("planed",), only=())):
            for key in OTHERS:
                told = RULES[key](PlanPath(changed(plan, key), point))
                seen = what_runs(plan, point) != what_runs(changed(plan, key), point)
                assert seen or told is False, f"{plan.name}: {point.point_id} ignores {key}"


@pytest.mark.parametrize(("scenario", "wire"), [*product(SCENARIOS, ("virtio", "memif", "vhost", "veth", "af_xdp"))])
def test_a_path_takes_a_setting_up_or_the_plan_is_refused(document: dict[str, Any], scenario: str, wire: str) -> None:
    del document["chain_lengths"]
    document |= {"scenarios": [scenario], "wire": wire, "frame_sizes_bytes": [64]}
    usual = plan_from_document(document, "x")
    for key, value in OTHERS.items():
        section, _, name = key.rpartition(".")
        said = {**document, section: {**document[section], name: value}} if section else {**document, name: value}
        try:
            plan = plan_from_document(said, "x")
        except UsageError as error:
            assert "takes it up" in str(error) or "ignores it" in str(error)
            continue
        for point in points_of(replace(plan, switches=("planed",))):
            assert what_runs(plan, point) != what_runs(usual, point), key


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "v2v", "line": "10G"}, "--line: nothing of v2v takes it up"),
        ({"scenario": "v2v", "wire_ring_size": "own"}, "--wire-ring-size: nothing of v2v"),
        ({"scenario": "p2p", "wire": "af_xdp", "wire_ring_size": "512"}, "--wire-ring-size: p2p ignores it"),
        ({"scenario": "p2p", "wire": "af_xdp", "ring_size": 512}, "--ring-size: nothing of p2p"),
        ({"scenario": "p2p", "hosting": "separate"}, "--hosting: nothing of p2p"),
        ({"scenario": "p2p", "placement": "far"}, "--placement: nothing of p2p"),
        ({"open_loop": True}, "--open-loop: .* needs a rate"),
        ({"open_loop": False, "max_rate": "1M"}, "--open-loop: .* an open loop"),
        ({"line": "10G", "max_rate": "1M"}, "--line: .* leave out one"),
        ({"loads": "none", "anatomy": True}, "--anatomy: nothing"),
        ({"search_duration": 0.5}, "--search-duration: nothing"),
        ({"traffic": "closed-loop"}, "--traffic: .* no speed"),
    ],
)
def test_an_option_that_nothing_takes_up_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        override(load_plan("quick"), **options)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"send_burst": 32, "scenarios": ["p2p"]}, "send_burst: nothing of p2p takes it up"),
        ({"send_burst": 32, "chains": ["l2fwd:send_burst=0"]}, "send_burst: nothing"),
        ({"drain_us": 50}, "drain_us: loopback-1 ignores it: no VNF waits"),
        ({"placements": ["far"], "scenarios": ["p2p"]}, "placements: nothing of p2p"),
    ],
)
def test_so_is_a_key_of_a_document(document: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    del document["chain_lengths"]
    document["scenarios"] = ["loopback"]
    with pytest.raises(UsageError, match=words):
        plan_from_document(document | changes, "x")
