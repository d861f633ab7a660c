# SPDX-License-Identifier: BSD-3-Clause
"""Store, trend and git bisect as a user types them, with the simulator."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from builders import make_run, store_run

BISECT = Path(__file__).parents[2] / "docs" / "examples" / "ci" / "bisect.sh"
RUN = ("run", "quick", "--scenario", "p2p", "--direction", "unidirectional", "--frame-size", "64", "--duration", "0.02",
       "--repeat", "2", "--loads", "none", "--quiet", "--no-report", "--no-calibrate")  # fmt: skip


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Commits whose simulated switch loses 5 % in the fourth of six."""
    folder = tmp_path / "switch"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(6):
        capacity = "9.5M" if number >= 3 else "10M"
        (folder / "capacity").write_text(f"{capacity}\n{number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"commit {number}")
    git(folder, "remote", "add", "origin", "https://user:secret@example.org/switch.git")
    return folder


def test_runs_of_commits_become_a_trend(planebench, repository: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    commits = git(repository, "rev-list", "--reverse", "main").split()
    for number, commit in enumerate([*commits[:3], *commits[3:]] * 1):
        git(repository, "checkout", "--quiet", commit)
        capacity = (repository / "capacity").read_text().split()[0]
        labels = ("--subject", f"sim={repository}", "--testbed", "rack3", "--tag", "ring=new")
        done = planebench(*RUN, "--switch", f"sim:capacity={capacity}", "--name", f"c{number}", *labels)
        assert (done.code, done.err) == (0, "")
        assert planebench("lab", "add", lab, f"c{number}").code == 0
    listed = json.loads(planebench("lab", "list", lab, "--json").out)["runs"]
    assert [it["commit"] for it in listed] == [commit[:12] for commit in commits]
    asked = json.loads(planebench("lab", "query", lab, "select tags, subject_repository from runs", "--json").out)
    assert asked["rows"][0] == {"tags": '{"ring": "new"}', "subject_repository": "https://example.org/switch.git"}
    odd = "select 1 / 0 as none, 'nan'::double as nan, [1.5::decimal(3, 1)] as list, date '2026-12-01' as day"
    (row,) = json.loads(planebench("lab", "query", lab, odd, "--json").out)["rows"]
    assert row == {"none": None, "nan": None, "list": ["1.5"], "day": "2026-12-01"}
    (trend,) = json.loads(planebench("lab", "trend", lab, "--json").out)["trends"]
    (step,) = trend["steps"]
    assert step["ratio"] == pytest.approx(0.95, abs=0.002)
    assert (step["before"]["commit"], step["after"]["commit"]) == (commits[2], commits[3])
    shown = planebench("lab", "trend", lab)
    assert "step of -5.0 %" in shown.out and "1 changes in 1 series of 6 runs" in shown.out


def test_bad_input_of_a_store_is_told(planebench, tmp_path: Path) -> None:
    assert "is not the store of a lab" in planebench("lab", "trend", tmp_path).err
    assert planebench("lab", "add", tmp_path, "latest").code == 2
    assert "Valid: KEY=VALUE" in planebench(*RUN, "--switch", "sim", "--tag", "new").err
    assert "git show in" in planebench(*RUN, "--switch", "sim", "--subject", tmp_path).err


def test_git_bisect_with_the_gate_finds_the_commit(repository: Path, tmp_path: Path) -> None:
    """The script of docs/ci.md, with the planebench of these tests as a user has it on PATH."""
    _, good, _, guilty, bad, _ = git(repository, "rev-list", "--reverse", "main").split()
    program = tmp_path / "planebench"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m planebench "$@"\n')
    program.chmod(0o755)
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PLANEBENCH_RUNS": str(tmp_path / "runs")}
    builds = ",".join(
        f"sim:name={name}:capacity={capacity}:start_noise=0.2%"
        for name, capacity in (("good", "10M"), ("now", "$(head -1 capacity)"))
    )
    measure = f"planebench {' '.join(RUN)} --repeat 5 --switch {builds}"

    def shell(command: str) -> str:
        done = subprocess.run(command, shell=True, cwd=repository, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    git(repository, "bisect", "start", bad, good)
    said = shell(f"git bisect run {BISECT} '{measure}' 'test -f capacity'")
    assert f"{guilty} is the first bad commit" in said.replace("'bad'", "bad")


def test_a_run_is_not_resumed_with_another_commit(planebench, repository: Path, own_run_folder: Path) -> None:
    command = (*RUN, "--switch", "sim", "--subject", repository)
    assert planebench(*command).code == 0
    for file in own_run_folder.glob("*/finished.json"):
        file.unlink()
    (repository / "capacity").write_text("1M\n")
    git(repository, "commit", "--quiet", "-a", "-m", "another")
    refused = planebench(*command, "--resume")
    assert refused.code == 2 and "commit " in refused.err and " against " in refused.err
    assert planebench(*RUN, "--switch", "sim", "--resume").code == 0


def test_files_of_a_gate(planebench, own_run_folder: Path, tmp_path: Path) -> None:
    for seed in range(6):
        run = make_run(("planed",), (64,), repetitions=2, seed=seed, problems=False, loads=(), run_id=f"run{seed}")
        header = dataclasses.replace(run.header, started_at=f"2026-11-21T0{seed}:00:00Z")
        store_run(own_run_folder, dataclasses.replace(run, header=header))
    junit, summary = (tmp_path / name for name in ("junit.xml", "summary.md"))
    gate = ("compare", "run0,run2,run4", "run1,run3,run5", "--fail-below", "0.9", "--quiet")
    for _ in range(2):
        assert planebench(*gate, "--junit", junit, "--summary", summary).code == 0
    assert ET.parse(junit).getroot().get("failures") == "0"
    assert summary.read_text().count("**The gate passes.**") == 2
    assert "add --fail-below" in planebench("compare", "run0", "run1", "--junit", junit).err
