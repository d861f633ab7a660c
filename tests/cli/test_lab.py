# SPDX-License-Identifier: BSD-3-Clause
"""Store, trend, git bisect and metrics as a user types them, with the simulator."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench.model.header import Run
from planebench.planed.statistics import Statistics, decoded

pytest.importorskip("prometheus_client")

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from planebench.cli.openmetrics import exposition, of_statistics

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
    page = tmp_path / "trend.html"
    (trend,) = json.loads(planebench("lab", "trend", lab, "--html", page, "--json").out)["trends"]
    (step,) = trend["steps"]
    assert step["ratio"] == pytest.approx(0.95, abs=0.002)
    assert (step["before"]["commit"], step["after"]["commit"]) == (commits[2], commits[3])
    assert "<script" not in page.read_text() and commits[3][:12] in page.read_text()
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


def test_metrics_of_a_run_are_read_by_the_parsers(planebench, stored: Run, tmp_path: Path) -> None:
    families = {it.name: it for it in openmetrics(planebench("machine", "metrics", "latest").out)}
    states = {sample.labels["state"]: sample.value for sample in families["planebench_run_state"].samples}
    assert states["complete"] == 1 and sum(states.values()) == 1
    assert sum(it.value for it in families["planebench_trials"].samples) == len(stored.trials)
    assert families["planebench_throughput_pps"].samples
    file = tmp_path / "planebench.prom"
    assert planebench("machine", "metrics", "latest", "--format", "text", "--out", file).code == 0
    assert {it.name for it in text_format(file.read_text())} == {
        it + "_info" * (it == "planebench_run") for it in families
    }
    assert "no run is in progress" in planebench("machine", "metrics").err
    assert planebench("machine", "metrics", "latest", "--format", "xml").code == 2


def statistics() -> Statistics:
    """Return an answer of ``stats.get`` with a worker, a port and a task whose name has to be quoted."""
    worker = {
        "name": "w0",
        "tid": 1,
        "busy_cycles": 5,
        "gap_threshold_ns": 1,
        "gaps": 2,
        "gap_sum_ns": 3,
        "gap_max_ns": 3,
    }
    port = {
        "name": "n0",
        "rx_packets": 7,
        "tx_packets": 8,
        "rx_missed": 1,
        "rx_nombuf": 0,
        "rx_errors": 0,
        "tx_errors": 0,
    }
    task = {"name": 'a"\n\\b', "kind": "l2fwd", "busy_cycles": 3, "idle_cycles": 1, "rx_packets": 7, "tx_packets": 6,
            "drops": {"hairpin": 1}, "drops_by_port": {}}  # fmt: skip
    return decoded(Statistics, "stats.get", {"tsc_hz": 10, "ports": [port], "workers": [worker], "tasks": [task]})


def test_metrics_of_planed_are_read_by_the_parser() -> None:
    found = list(of_statistics(statistics()))
    families = {it.name: it for it in openmetrics(exposition(found, "openmetrics").decode())}
    (drop,) = families["planed_task_drops"].samples
    assert (drop.name, drop.labels["task"], drop.labels["reason"], drop.value) == (
        "planed_task_drops_total",
        'a"\n\\b',
        "hairpin",
        1,
    )
    assert [it.value for it in families["planed_worker_busy_seconds"].samples] == [0.5]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here: apt-get install prometheus")
def test_promtool_finds_nothing_wrong(planebench, stored: Run) -> None:
    """It reads the text format, and judges names, units and help texts."""
    of_run = planebench("machine", "metrics", "latest", "--format", "text").out
    of_planed = exposition(list(of_statistics(statistics())), "text").decode()
    for text in (of_run, of_planed):
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
