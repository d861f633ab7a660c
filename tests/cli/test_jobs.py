# SPDX-License-Identifier: BSD-3-Clause
"""submit, jobs and run-job as a user types them, with the simulator. Slurm is real in tests/jobs/test_cluster.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import planebench as package
from planebench.cli.jobs import run_job
from planebench.host.process import stretched
from planebench.lab.job import complete_run, read_ended, read_job, runs_on, write_job
from planebench.lab.store import open_store
from planebench.model.errors import UsageError
from planebench.store import list_runs, read_run

MATRIX = """# SPDX-License-Identifier: BSD-3-Clause
version: 1
name: nightly
plan: quick
options: {scenario: p2p, direction: unidirectional, frame-size: 64, duration: 0.02, loads: none, repeat: 2,
          calibrate: false}
matrix: {switch: ["sim:capacity=10M", "sim:capacity=9M"]}
testbeds: {desk: {slurm: ""}}
store: lab
tags: {ring: new}
"""


QUEUE = """#!/bin/sh
# A cluster of one node: a job is a file that is there while it is in the queue, and waits while there is a file "hold".
queue=FOLDER/queue
case "${0##*/}" in
sbatch)
    for word; do case "$word" in --job-name=*) name=${word#*=};; --output=*) out=${word#*=};; esac; done
    cat > "FOLDER/$name"; : > "$queue/$name"
    [ -e FOLDER/hold ] || { SLURMD_NODENAME=rack1 sh "FOLDER/$name" >> "$out" 2>&1; rm "$queue/$name"; } < /dev/null &;;
squeue)
    if [ -e FOLDER/down ]; then echo "squeue: error: no controller" >&2; exit 1; fi
    state=RUNNING; [ ! -e FOLDER/hold ] || state=PENDING
    for it in "$queue"/*; do [ ! -e "$it" ] || echo "${it##*/}|$state|rack1|None"; done;;
scancel) for word; do case "$word" in --name=*) rm "$queue/${word#*=}";; esac; done;;
esac
"""


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a matrix, and a Slurm that runs a job at once."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "queue").mkdir()
    source = Path(package.__file__).parents[1]
    for name in ("sbatch", "squeue", "sinfo", "scancel"):
        (programs / name).write_text(QUEUE.replace("FOLDER", str(tmp_path)))
    (programs / "there").write_text(f'#!/bin/sh\nPYTHONPATH={source} exec {sys.executable} -m planebench "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("PLANEBENCH_AGENT", str(programs / "there"))
    monkeypatch.setenv("PLANEBENCH_JOBS", str(tmp_path / "jobs"))
    monkeypatch.setattr("planebench.cli.jobs.POLL_S", 0.1)
    path = tmp_path / "nightly.yaml"
    path.write_text(MATRIX)
    return path


def eventually(condition: Callable[[], object], within_s: float = 30.0) -> bool:
    end = time.monotonic() + stretched(within_s)
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())


def stored_trials(store: Path) -> Counter[tuple[str, str, int]]:
    with open_store(store) as database:
        found = database.sql("SELECT testbed, run_id, trial_index FROM trials").fetchall()
    return Counter(found)


def test_a_matrix_is_measured_once_and_stored(planebench, matrix: Path) -> None:
    shown = json.loads(planebench("lab", "submit", matrix, "--dry-run", "--json").out)["jobs"]
    assert [it["job"] for it in shown] == ["sim-capacity=10M-desk", "sim-capacity=9M-desk"]
    assert all(it["limit_s"] >= 300 + it["estimate_s"] for it in shown)
    assert planebench("lab", "jobs", "nightly").code == 2  # nothing is submitted yet
    done = planebench("lab", "submit", matrix, "--wait", "--json")
    assert done.code == 0, done.err
    jobs = json.loads(done.out)["jobs"]
    assert {it["state"] for it in jobs} == {"done"} and {it["machines"] for it in jobs} == {"rack1"}
    assert all(it["run"].endswith(it["detail"]) for it in jobs)
    trials = stored_trials(matrix.parent / "lab")
    assert set(trials.values()) == {1}
    assert sum(trials.values()) == sum(len(read_run(Path(it["run"])).trials) for it in jobs)
    assert planebench("lab", "submit", matrix, "--wait", "--quiet").code == 0
    assert stored_trials(matrix.parent / "lab") == trials
    assert {Path(it["run"]).name[15:22] for it in jobs} == {"-quick-"}
    assert len({Path(it["run"]).name[15:] for it in jobs}) == 2, "two that begin in one second have two ids"
    header = read_run(Path(jobs[0]["run"])).header
    assert header.testbed == "rack1" and header.tags == {"matrix": "nightly", "job": jobs[0]["job"], "ring": "new"}
    assert "sim-capacity=9M-desk" in planebench("lab", "jobs", matrix).out
    matrix.write_text(matrix.read_text().replace("0.02", "0.03"))
    assert "with other settings" in planebench("lab", "submit", matrix).err


def test_a_name_that_is_none_is_refused_before_anything_is_written(planebench, matrix: Path) -> None:
    for name in ("nightly 2", "../x", ""):
        done = planebench("lab", "submit", matrix, "--name", name)
        assert done.code == 2 and f'--name "{name}" is not valid' in done.err
    assert not any(path.name.startswith(("nightly 2", "x")) for path in matrix.parent.rglob("*"))


def test_jobs_in_the_queue_are_left_alone_and_can_be_cancelled(planebench, matrix: Path) -> None:
    matrix.write_text(matrix.read_text().replace('"sim:capacity=10M", ', ""))
    (matrix.parent / "hold").touch()
    for _ in range(2):
        assert planebench("lab", "submit", matrix).code == 0
    assert len(list((matrix.parent / "queue").iterdir())) == 1
    shown = json.loads(planebench("lab", "jobs", "nightly", "--json").out)["jobs"]
    assert [it["state"] for it in shown] == ["pending"]
    (matrix.parent / "down").touch()
    down = planebench("lab", "jobs", "nightly")
    assert down.code == 0 and "squeue failed: no controller" in down.err and "unreachable" in down.out
    kept = planebench("lab", "jobs", "nightly", "--cancel")
    assert kept.code == 4 and "nothing was cancelled" in kept.err
    again = planebench("lab", "submit", matrix)
    assert again.code == 4 and "its jobs were not submitted" in again.err
    (matrix.parent / "down").unlink()
    lost = planebench("lab", "jobs", "nightly", "--cancel")
    assert lost.code == 1 and "1 of 1 jobs ended without a complete run" in lost.err
    (matrix.parent / "hold").unlink()
    done = planebench("lab", "submit", matrix, "--wait")
    assert done.code == 0, done.err


def test_the_matrix_of_the_docs(planebench, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/jobs.md").read_text()
    (tmp_path / "nightly.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    shown = json.loads(planebench("lab", "submit", tmp_path / "nightly.yaml", "--dry-run", "--json").out)["jobs"]
    assert len(shown) == 8 and shown[0]["job"] == "vpp-256-epyc"


@pytest.fixture
def job(planebench, matrix: Path) -> Path:
    """The folder of a job as Slurm's nodes have it, not started."""
    text = matrix.read_text().replace('"sim:capacity=10M", ', "")
    matrix.write_text(text.replace("repeat: 2", "repeat: 8"))
    for name in ("sbatch", "squeue"):
        (matrix.parent / "bin" / name).unlink()
        (matrix.parent / "bin" / name).symlink_to("/bin/true")
    assert planebench("lab", "submit", matrix).code == 1  # it is in no queue
    return matrix.parent / "jobs/nightly/sim-capacity=9M-desk"


def test_a_killed_attempt_is_resumed_on_the_same_machine_only(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "rack1")
    assert run_job(job) == 0
    run = complete_run(job)
    assert run is not None and read_ended(job).code == 0  # type: ignore[union-attr]
    (run.path / "finished.json").unlink()
    lines = (run.path / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (run.path / "trials.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:20])
    monkeypatch.setenv("SLURMD_NODENAME", "rack2")
    assert run_job(job) == 0
    assert [info.header.testbed for info in list_runs(runs_on(job, "rack2"))] == ["rack2"]
    other = runs_on(job, "rack2")
    other.rename(job / "elsewhere")
    monkeypatch.setenv("SLURMD_NODENAME", "rack1")
    assert run_job(job) == 0
    (resumed,) = list_runs(runs_on(job, "rack1"))
    assert resumed.path == run.path
    assert [trial.index for trial in read_run(run.path).trials] == list(range(len(lines)))
    assert run_job(job) == 0  # all is done
    assert len(list_runs(runs_on(job, "rack1"))) == 1
    assert sum(stored_trials(job.parents[2] / "lab").values()) == 2 * len(lines)


def test_a_job_that_runs_shows_its_trials_until_now(planebench, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURMD_NODENAME", "rack1")
    assert run_job(job) == 0
    (info,) = list_runs(runs_on(job, "rack1"))
    (info.path / "finished.json").unlink()
    squeue = job.parents[2] / "bin/squeue"
    squeue.unlink()
    squeue.write_text(f"#!/bin/sh\necho '{read_job(job).ticket}|RUNNING|rack1|None'\n")
    squeue.chmod(0o755)
    (shown,) = json.loads(planebench("lab", "jobs", "nightly", "--json").out)["jobs"]
    assert (shown["state"], shown["machines"]) == ("running", "rack1")
    assert shown["detail"] == f"{len(read_run(info.path).trials)} trials"


def test_an_attempt_waits_for_one_that_still_lives(job: Path) -> None:
    """A node that its controller has given up may measure on."""
    environment = {**os.environ, "SLURMD_NODENAME": "rack1"}
    command = [sys.executable, "-m", "planebench", "machine", "run-job", str(job)]
    attempts = [
        subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)
    ]
    for attempt in attempts:
        _, said = attempt.communicate(timeout=stretched(60))
        assert attempt.returncode == 0, said
    assert len(list_runs(runs_on(job, "rack1"))) == 1


def test_a_job_that_cannot_run_says_why(planebench, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = read_job(job)
    write_job(job, replace(old, plan=replace(old.plan, switches=("vpp:path=/nosuch",))))
    with pytest.raises(UsageError):
        run_job(job)
    shown = planebench("lab", "jobs", "nightly", "--json")
    (it,) = json.loads(shown.out)["jobs"]
    assert shown.code == 1 and it["state"] == "failed" and "/nosuch" in it["detail"]


def test_sigterm_ends_a_job_in_order(job: Path) -> None:
    old = read_job(job)
    write_job(job, replace(old, plan=replace(old.plan, throughput=replace(old.plan.throughput, repetitions=900))))
    command = [sys.executable, "-m", "planebench", "machine", "run-job", str(job)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as attempt:
        assert eventually(lambda: list(job.glob("runs/*/*/trials.jsonl")))
        attempt.send_signal(signal.SIGTERM)
        assert attempt.wait(stretched(30)) == 130
    assert read_ended(job).code == 130  # type: ignore[union-attr]
    assert complete_run(job) is None
