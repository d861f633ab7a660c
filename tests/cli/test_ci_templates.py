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
    """A repository whose switch is slower in its second commit; ``planebench`` measures the tree that it is run in."""
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
        f'exec {sys.executable} -m planebench "${{@//CAPACITY/$(cat capacity)}}"\n'
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


@pytest.mark.parametrize(("base", "code", "words"), [("main~1", 1, "fails"), ("main", 0, "passes")])
def test_the_action_of_github_fails_for_a_slower_commit(
    project: Path, tmp_path: Path, base: str, code: int, words: str
) -> None:
    git(project, "worktree", "add", "--detach", "base", base)
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    output, summary = tmp_path / "output", tmp_path / "summary"
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    values = {f"inputs.{name}": str(it.get("default", "")) for name, it in action["inputs"].items()}
    values |= {"inputs.arguments": ARGUMENTS, "inputs.store": str(tmp_path / "lab"), "inputs.base": "base"}
    values |= {"inputs.runs": "3"}
    done = shell(project, step["run"], files | {name: expanded(text, values) for name, text in step["env"].items()})
    assert done.returncode == code, done.stderr
    assert f"**The gate {words}.**" in summary.read_text()
    assert output.read_text().count(",") == 2
    assert (project / "planebench-runs/junit.xml").exists()
    assert len(list((tmp_path / "lab/runs").rglob("*.parquet"))) == 3


def test_the_template_of_gitlab_fails_for_a_slower_commit(project: Path) -> None:
    template: dict[str, Any] = yaml.safe_load((ROOT / "docs/examples/ci/gitlab-ci.yml").read_text())
    base, new = git(project, "rev-parse", "main~1"), git(project, "rev-parse", "main")
    variables = {
        name: str(value).replace("$CI_PROJECT_DIR", str(project)) for name, value in template["variables"].items()
    }
    variables |= {"PLANEBENCH_ARGUMENTS": ARGUMENTS, "PLANEBENCH_BUILD": "test -f capacity"}
    variables |= {"PLANEBENCH_TURNS": "3"}
    variables |= {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "CI_COMMIT_SHA": new}
    done = shell(project, "\n".join(template[".planebench"]["script"]), variables)
    assert done.returncode == 1, done.stdout + done.stderr
    assert 'failures="1"' in (project / "planebench-runs/junit.xml").read_text()
