# SPDX-License-Identifier: BSD-3-Clause
"""What is said to Slurm, and how its answers are read: lines in the form of 22.05. test_cluster.py has a real one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planebench.lab.job import Job, JobPlace, Queued
from planebench.lab.slurm import parse_drained, parse_queue, queue_of, sbatch_command, script
from planebench.model.errors import NotInstalledError, StartError
from planebench.plan.schema import load_plan

JOB = Job(
    matrix="nightly",
    name="planed-epyc",
    place=JobPlace("epyc", slurm="--constraint='epyc&e810' --gres=nic:2", switch=None),
    plan=load_plan("quick"),
    time_budget=None,
    hugepages=None,
    calibrated=True,
    tags={},
    estimate_s=100.0,
    limit_s=450,
    store=None,
    ticket="planebench-nightly-planed-epyc-0011aabb",
)
QUEUE = """\
planebench-nightly-planed-epyc-0011aabb|RUNNING|rack1|None
planebench-nightly-two-1|PENDING||(ReqNodeNotAvail, UnavailableNodes:rack3)
planebench-nightly-two-1-switch|PENDING||Dependency
planebench-nightly-three|COMPLETING|rack[1-2]|None
planebench-nightly-four|COMPLETED|rack1|None
other|PENDING||launch failed requeued held
"""


def test_the_command_of_a_job() -> None:
    words = sbatch_command(JOB, Path("/nfs/jobs/nightly/planed-epyc"))
    assert words[0] == "sbatch" and "--time=8" in words and "--exclusive" in words
    assert words[-2:] == ["--constraint=epyc&e810", "--gres=nic:2"]
    two = sbatch_command(replace(JOB, place=replace(JOB.place, switch="--constraint=dut")), Path("/nfs/j"))
    here, there = two[: two.index(":")], two[two.index(":") + 1 :]
    assert there[-1] == "--constraint=dut"
    for part, name in ((here, JOB.ticket), (there, f"{JOB.ticket}-switch")):
        assert {"--time=8", "--exclusive", "--nodes=1", f"--job-name={name}"} <= set(part)


def test_the_script_goes_on_after_a_kill_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_AGENT", "/opt/planebench")
    text = script(Path("/nfs/my jobs/a"))
    assert "/opt/planebench machine run-job '/nfs/my jobs/a' && exit" in text
    assert '"$code" -gt 130' in text


def test_the_queue() -> None:
    assert dict(parse_queue(QUEUE)) == {
        JOB.ticket: Queued("running", "rack1"),
        "planebench-nightly-two-1": Queued("pending", "", "(ReqNodeNotAvail, UnavailableNodes:rack3)"),
        "planebench-nightly-two-1-switch": Queued("pending", "", "Dependency"),
        "planebench-nightly-three": Queued("ending", "rack[1-2]"),
        "other": Queued("pending", "", "launch failed requeued held"),
    }
    sentence = "planebench: only CPU 0 is allowed -> give it 3"
    assert list(parse_drained(f"rack3|{sentence}\nrack4|none\n")) == [f"node rack3 takes no jobs: {sentence}"]


def test_errors_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    squeue = tmp_path / "squeue"
    squeue.write_text(
        "#!/bin/sh\necho 'squeue: error: Unable to contact slurm controller (connect failure)' >&2; exit 1\n"
    )
    squeue.chmod(0o755)
    with pytest.raises(StartError, match=r"^squeue failed: Unable to contact slurm controller \(connect failure\)$"):
        queue_of([JOB])
    squeue.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstalledError, match=r"squeue is not here: .* \(slurm-client\)"):
        queue_of([JOB])
