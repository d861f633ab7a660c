# SPDX-License-Identifier: BSD-3-Clause
"""A search that is registered is known everywhere (docs/design/adding.md)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import planebench as package

HERE = Path(__file__).parent / "example"
PAGE = Path(__file__).parents[2] / "docs" / "design" / "adding.md"
PLAN = """
version: 1
name: stepped
switches: ["sim:capacity=10M"]
scenarios: [p2p]
directions: [unidirectional]
frame_sizes_bytes: [64]
throughput: {duration_s: 0.1, repetitions: 1}
latency: {loads: [], duration_s: 0.1}
search: {methods: [steps]}
"""


def planebench(folder: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, str(HERE), *arguments],
        cwd=folder,
        env={
            **os.environ,
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "PLANEBENCH_RUNS": str(folder / "runs"),
            "PYTHONPATH": str(Path(package.__file__).parents[1]),
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def plan(tmp_path: Path) -> str:
    (tmp_path / "stepped.yaml").write_text(PLAN)
    return "stepped.yaml"


def test_help_names_it(tmp_path: Path) -> None:
    assert "b2b, steps." in planebench(tmp_path, "run", "--help")


def test_a_plan_names_it_and_its_time_is_estimated(tmp_path: Path, plan: str) -> None:
    shown = json.loads(planebench(tmp_path, "plan", "show", plan, "--json"))
    without = json.loads(planebench(tmp_path, "plan", "show", plan, "--search", "r_plus", "--json"))
    assert shown["estimate_s"] - without["estimate_s"] == pytest.approx(9 * 0.29, abs=0.2)


def test_it_is_run_reported_and_exported(tmp_path: Path, plan: str) -> None:
    table = planebench(tmp_path, "run", plan)
    assert "steps" in table
    (result,) = json.loads(planebench(tmp_path, "export", "latest"))["results"]
    (search,) = result["searches"]
    assert (search["method"], search["verdict"]["kind"], search["complete"]) == ("steps", "valid", True)
    assert 8.7e6 <= search["lower_pps"] <= 10e6 <= search["upper_pps"] <= 11.3e6
    (row,) = json.loads(planebench(tmp_path, "export", "latest", "--table", "searches"))
    assert row["method"] == "steps"
    head, line = planebench(tmp_path, "export", "latest", "--format", "csv").splitlines()[:2]
    assert float(dict(zip(head.split(","), line.split(","), strict=False))["steps_pps"]) == search["lower_pps"]
    page = next((tmp_path / "runs").glob("*/report.html")).read_text()
    assert "steps" in page


def test_the_page_shows_the_example_as_it_is() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = (block for block in blocks if "STEPS = Method" in block)
    source = (HERE / "steps.py").read_text()
    for part in code.split("\n\n\n"):
        assert part.strip() in source
