# SPDX-License-Identifier: BSD-3-Clause
"""The templates for GitHub and GitLab, run as their runners do: shell scripts with variables (docs/ci.md)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import planebench

ROOT = Path(__file__).parents[2]
ARGUMENTS = (
    "quick --switch sim:capacity=CAPACITY --scenario p2p --direction unidirectional --frame-size 64 --duration 0.02 "
    "--repeat 2 --loads none --no-report --no-calibrate"
)
pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose switch is slower in its second commit; ``planebench`` measures what is checked out."""
    folder = tmp_path / "switch"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for capacity in ("10M", "9M"):
        (folder / "capacity").write_text(capacity)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", capacity)
    program = tmp_path / "bin" / "planebench"
    program.parent.mkdir()
    source = Path(planebench.__file__).parents[1]
    program.write_text(
        f"#!/bin/bash\nexport PYTHONPATH={source}\n"
        f'exec {sys.executable} -m planebench "${{@//CAPACITY/$(cat {folder}/capacity)}}"\n'
    )
    program.chmod(0o755)
    return folder


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def shell(project: Path, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as a runner does: it ends at the first command that fails."""
    path = f"{project.parent / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=project, env=environment, capture_output=True, text=True
    )


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return a text with GitHub's ``${{ NAME }}`` replaced."""
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)


def test_the_action_of_github_fails_for_a_slower_commit(project: Path, tmp_path: Path) -> None:
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    measure, compare = action["runs"]["steps"]
    output, summary = tmp_path / "output", tmp_path / "summary"
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    values = {f"inputs.{name}": str(it.get("default", "")) for name, it in action["inputs"].items()}
    values |= {"inputs.arguments": ARGUMENTS, "inputs.store": str(tmp_path / "lab")}

    def step(it: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        return shell(project, it["run"], files | {name: expanded(text, values) for name, text in it["env"].items()})

    made = []
    for commit in ("main~1", "main"):
        git(project, "checkout", "--quiet", commit)
        done = step(measure)
        assert done.returncode == 0, done.stderr
        made.append(output.read_text().splitlines()[-1].removeprefix("runs="))
    assert [len(runs.split(",")) for runs in made] == [3, 3]
    for baseline, code, words in ((made[0], 1, "fails"), (made[1], 0, "passes")):
        values |= {"inputs.baseline": baseline, "steps.measure.outputs.runs": made[1]}
        done = step(compare)
        assert done.returncode == code, done.stderr
        assert f"**The gate {words}.**" in summary.read_text()
    assert (project / "planebench-runs/junit.xml").exists()
    assert len(list((tmp_path / "lab/runs").rglob("*.parquet"))) == 6


def test_the_template_of_gitlab_fails_for_a_slower_commit(project: Path) -> None:
    template: dict[str, Any] = yaml.safe_load((ROOT / "docs/examples/ci/gitlab-ci.yml").read_text())
    base, new = git(project, "rev-parse", "main~1"), git(project, "rev-parse", "main")
    variables = {
        name: str(value).replace("$CI_PROJECT_DIR", str(project)) for name, value in template["variables"].items()
    }
    variables |= {"PLANEBENCH_ARGUMENTS": ARGUMENTS, "PLANEBENCH_BUILD": "test -f capacity"}
    variables |= {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_COMMIT_SHA": new}
    done = shell(project, "\n".join(template[".planebench"]["script"]), variables)
    assert done.returncode == 1, done.stdout + done.stderr
    assert 'failures="1"' in (project / "planebench-runs/junit.xml").read_text()
