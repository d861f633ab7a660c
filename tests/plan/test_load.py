# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from planebench.model.errors import UsageError
from planebench.plan import list_suites
from planebench.plan.estimate import estimate
from planebench.plan.expand import expand
from planebench.plan.schema import load_plan, plan_from_document


def changed(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """The document with one key set; ``throughput.repetitions`` reaches inside."""
    result = copy.deepcopy(document)
    *outer, key = path.split(".")
    target = result
    for name in outer:
        target = target[name]
    target[key] = value
    return result


@pytest.mark.parametrize("suite", list_suites())
def test_every_suite_loads_and_keeps_its_time_budget(suite: str) -> None:
    plan = load_plan(suite)
    points = expand(plan)
    assert plan.name == suite
    assert plan.description
    assert plan.time_budget_s is None or estimate(plan, points) < plan.time_budget_s


def test_quick_is_what_the_readme_promises() -> None:
    plan = load_plan("quick")
    assert plan.switches == ("planed", "ovs-dpdk", "testpmd")
    assert plan.scenarios == ("p2p", "p2v", "v2v", "loopback")
    assert plan.frame_sizes_bytes == (64, 1024)
    assert (plan.latency.of, plan.latency.loads) == ("carried", (0.10, 0.50, 0.90))
    assert plan.missing_switches == "skip"
    assert plan.time_budget_s == 270


def test_defaults(document: dict[str, Any]) -> None:
    plan = plan_from_document(document, "small")
    assert (plan.wire, plan.hosting, plan.ring_size, plan.missing_switches) == ("virtio", "process", 256, "error")
    assert plan.throughput.warmup_s == 0.0
    assert (plan.latency.repetitions, plan.latency.v2v_pps) == (1, 1_000_000)


def test_values_named_twice_count_once_but_switches_do_not(document: dict[str, Any]) -> None:
    document |= {"switches": ["planed", "planed"], "frame_sizes_bytes": [64, 64], "scenarios": ["p2p", "p2p"]}
    plan = plan_from_document(document, "small")
    assert (plan.switches, plan.frame_sizes_bytes, plan.scenarios) == (("planed", "planed"), (64,), ("p2p",))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("frame_size", [64], ['"frame_size"', "did you mean frame_sizes_bytes?", "chain_lengths"]),
        ("throughput.duration", 1, ['"throughput.duration"', "throughput.duration_s", "throughput.repetitions"]),
        ("latency.load", [0.1], ['"latency.load"', "latency.loads"]),
        ("scenarios", ["p2p", "p2q"], ['"p2q"', "Valid: p2p, p2v, v2v, loopback"]),
        ("directions", ["both"], ['"both"', "Valid: unidirectional, bidirectional, reversed"]),
        ("frame_sizes_bytes", [63], ['"63"', "64..1518 and 9000"]),
        ("frame_sizes_bytes", [64.5], ['"64.5"', "64..1518 and 9000"]),
        ("chain_lengths", [6], ['"6"', "1..5"]),
        ("ring_size", 300, ['"300"', "256, 512"]),
        ("wire_ring_size", 300, ['"300"', "own"]),
        ("wire", "pigeon", ["wire", '"pigeon"', "virtio, memif, vhost, veth"]),
        ("switches", [], ["switches", "at least 1"]),
        ("throughput.repetitions", 0, ["throughput.repetitions", '"0"']),
        ("throughput.repetitions_max", 1, ['repetitions_max "1"', "2.."]),
        ("throughput.duration_s", float("nan"), ["throughput.duration_s", "nan"]),
        ("latency.loads", [1.5], ["latency.loads.0", '"1.5"']),
        ("version", 2, ["version", '"2"']),
        ("name", "../x", ["name", '"../x"']),
        ("name", False, ["name", '"False"', "write it in quotes", "off"]),
        ("hosting", False, ["hosting", '"False"']),
        ("traffic", "imix", ["traffic", '"imix"', "array"]),
        ("search", {"methods": "ndr"}, ["search.methods", '"ndr"', "array"]),
        ("search", {"methods": False}, ["search.methods", '"False"']),
    ],
)
def test_errors_name_source_key_value_and_way_out(
    document: dict[str, Any], path: str, value: object, words: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        plan_from_document(changed(document, path, value), "my-plan.yaml")
    message = str(caught.value)
    assert message.startswith("my-plan.yaml: ")
    assert all(word in message for word in words), message


def test_a_missing_key_is_named(document: dict[str, Any]) -> None:
    del document["throughput"]["repetitions"]
    with pytest.raises(UsageError, match=r"key throughput\.repetitions is missing"):
        plan_from_document(document, "x")


def test_from_a_file(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert load_plan(path) == load_plan(str(path)) == plan_from_document(document, "x")


@pytest.mark.parametrize("text", ["", "[]", "just words", "1"])
def test_a_plan_is_a_mapping(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.yaml: a plan is a mapping"):
        load_plan(path)


def test_broken_yaml_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nname: [", encoding="utf-8")
    with pytest.raises(UsageError, match=r"mine\.yaml, line 2, column .* is not YAML"):
        load_plan(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.yaml cannot be read: No such file.*quick"):
        load_plan("nowhere.yaml")
    with pytest.raises(UsageError, match=r"cannot be read: Is a directory"):
        load_plan(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xfe\x01")
    with pytest.raises(UsageError, match=r"not UTF-8"):
        load_plan(tmp_path / "binary.yaml")


def test_unknown_suite() -> None:
    with pytest.raises(UsageError, match=r'unknown suite "quik", did you mean quick\? Valid: .*quik\.yaml'):
        load_plan("quik")


def test_searches_in_a_plan(document: dict[str, Any]) -> None:
    document["search"] = {"methods": ["r_plus", "ndr"], "duration_s": 0.5, "max_r": 3}
    plan = plan_from_document(document, "x")
    assert (plan.search.methods, plan.search.duration_s, plan.search.max_r) == (("ndr",), 0.5, 3)


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("search", {"methods": ["nrd"]}, 'unknown search "nrd"'),
        ("search", {"max_r": 0}, "search.max_r"),
        ("search", {"maxr": 2}, 'unknown key "search.maxr", did you mean search.max_r'),
        ("search", {"relative_width": 1.0}, "search.relative_width"),
        ("throughput", {"duration_s": 1.0, "repetitions": 2, "restarts": 2}, 'restarts "2" is not valid'),
        ("throughput", {"duration_s": 1.0, "repetitions": 2, "max_rate_pps": 0}, "throughput.max_rate_pps"),
        ("throughput", {"duration_s": 1.0, "repetitions": 2, "line_bps": -1}, "throughput.line_bps"),
    ],
)
def test_bad_searches_are_named(document: dict[str, Any], section: str, values: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_from_document({**document, section: values}, "x")
