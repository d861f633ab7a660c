# SPDX-License-Identifier: BSD-3-Clause
"""A scenario is one module: the sixth one here runs from plan to report, and nobody else knows a scenario by name."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import planebench
from planebench.cli import main
from planebench.model.errors import UsageError
from planebench.model.scenario import SCENARIOS, Scenario, register
from planebench.model.scenarios import build, flows, pair, parse_scenario

ROOT = Path(planebench.__file__).parent


@pytest.fixture
def v2p() -> Iterator[Scenario]:
    """The example of docs/design/adding.md."""
    register(
        Scenario(
            name="v2p",
            order=35,
            path="VNF -> switch -> NIC",
            meaning="Last hop of a service chain, from the side of the VNF.",
            use="between VNF and NIC",
            build=lambda _: pair("v0", "n0"),
            ends=("vnf", "wire"),
        )
    )
    yield SCENARIOS["v2p"]
    del SCENARIOS["v2p"]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run the command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["planebench", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def test_a_scenario_takes_its_place_in_the_registry(v2p: Scenario) -> None:
    assert list(SCENARIOS) == ["p2p", "p2v", "v2v", "v2p", "loopback", "bridged", "bare", "parallel"]
    assert parse_scenario("v2p") == "v2p"
    assert [flow.name for flow in flows(build("v2p"), "bidirectional")] == ["v0->n0", "n0->v0"]


def test_a_scenario_that_left_is_unknown_again() -> None:
    with pytest.raises(UsageError, match='unknown scenario "v2p"'):
        build("v2p")


def test_it_runs_from_plan_to_report(
    v2p: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "last-hop.yaml"
    plan.write_text(
        "version: 1\nname: last-hop\nswitches: ['sim:name=a', 'sim:name=b:capacity=8M']\nscenarios: [v2p, p2p]\n"
        "frame_sizes_bytes: [64]\nthroughput: {duration_s: 0.1, repetitions: 3}\n"
        "latency: {loads: [0.5], duration_s: 0.1}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PLANEBENCH_RUNS", str(tmp_path / "runs"))
    assert call(monkeypatch, "run", plan) == 0
    assert call(monkeypatch, "report", "latest", "--all") == 0
    assert "v2p ⇄ 64 B" in capsys.readouterr().out
    assert call(monkeypatch, "report", "latest", "--html", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (
        "VNF → switch → NIC" in page and "Last hop of a service chain" in page and "between VNF and NIC (v2p)" in page
    )
    assert call(monkeypatch, "export", "latest", "--format", "json", "--out", tmp_path / "run.json") == 0
    results = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["results"]
    assert list(dict.fromkeys(result["scenario"] for result in results)) == ["p2p", "v2p"]


def _compared(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield whatever a value is compared with, and the keys of every dictionary, which are as good as comparisons."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Dict):
            yield from (key for key in node.keys if key is not None)
        elif isinstance(node, ast.MatchValue):
            yield node.value


def _texts(found: ast.expr) -> Iterator[object]:
    """Yield the constants of an expression, also those in a tuple, list or set."""
    for node in ast.walk(found):
        if isinstance(node, ast.Constant):
            yield node.value


@pytest.mark.parametrize("names", [tuple(SCENARIOS)])
def test_nobody_else_compares_the_name_of_a_scenario(names: tuple[str, ...]) -> None:
    """Others ask a property of the scenario, the point or the topology."""
    found = [
        f"{path.relative_to(ROOT)}:{expression.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.parent != ROOT / "scenarios"
        for expression in _compared(ast.parse(path.read_text(encoding="utf-8")))
        if set(_texts(expression)) & set(names)
    ]
    assert not found
