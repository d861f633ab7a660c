# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm runs a matrix: a node that is not fit is drained with doctor's sentence, two nodes make one job."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs_rig import Cluster, eventually, missing

WITHOUT = missing("slurmctld", "slurmd", "munged", "sbatch")
pytestmark = [
    pytest.mark.root,
    pytest.mark.lab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT),
]

MATRIX = """# SPDX-License-Identifier: BSD-3-Clause
version: 1
name: nightly
plan: quick
options: {switch: sim, scenario: p2p, direction: unidirectional, frame-size: 64, duration: 0.02, loads: none, repeat: 3,
          calibrate: false}
testbeds:
  any: {slurm: ""}
  first: {slurm: --constraint=rack1}
store: lab
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="pbj", dir="/tmp"))
    made = Cluster(folder, nodes=2)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def shown(cluster: Cluster, name: str) -> dict[str, dict[str, str]]:
    cluster.hasten()
    said = cluster.run(cluster.planebench("jobs", name, "--json"))
    assert said.stdout, said.stderr
    document = json.loads(said.stdout)
    return {it["job"]: it for it in document["jobs"]} | {"notes": document["notes"]}


def test_a_matrix_runs_and_an_unfit_node_is_drained_with_the_reason(cluster: Cluster) -> None:
    (cluster.folder / "nightly.yaml").write_text(MATRIX)
    (cluster.folder / "unfit-rack1").touch()
    said = cluster.run(cluster.planebench("submit", "nightly.yaml"))
    assert said.returncode == 0, said.stderr
    assert eventually(lambda: shown(cluster, "nightly")["any"]["state"] == "done", 180)
    found = shown(cluster, "nightly")
    assert found["any"]["machines"] == "rack2"
    assert found["first"]["state"] == "pending"
    assert found["notes"] == ["node rack1 takes no jobs: planebench: only CPU 0 is allowed -> give it 3"]
    (cluster.folder / "unfit-rack1").unlink()
    cluster.words("scontrol", "update", "NodeName=rack1", "State=RESUME")
    assert eventually(lambda: shown(cluster, "nightly")["first"]["state"] == "done", 180), cluster.words("squeue", "-l")
    assert "rack1" in cluster.words("find", "lab/runs")


def test_a_job_on_two_nodes_knows_both(cluster: Cluster) -> None:
    """The run itself is that of tests/e2e/test_two_hosts.py; here a program notes what it is called with."""
    agent = cluster.folder / "bin/there"
    there = agent.read_text()
    agent.write_text(f"#!/bin/sh\necho $SLURMD_NODENAME $SLURM_JOB_NODELIST_HET_GROUP_1 > {cluster.folder}/nodes\n")
    text = MATRIX.split("testbeds:")[0].replace("nightly", "pair")
    pair = "testbeds: {pair: {slurm: --constraint=rack1, switch: --constraint=rack2}}\n"
    (cluster.folder / "pair.yaml").write_text(text + pair)
    try:
        said = cluster.run(cluster.planebench("submit", "pair.yaml"))
        assert said.returncode == 0, said.stderr
        assert eventually((cluster.folder / "nodes").exists, 90), cluster.words("squeue", "-l")
        assert eventually(lambda: (cluster.folder / "nodes").read_text() == "rack1 rack2\n")
    finally:
        agent.write_text(there)


def test_cancelled_jobs_end_in_order_and_are_resumed(cluster: Cluster) -> None:
    text = MATRIX.replace("nightly", "long").replace("repeat: 3", "repeat: 900").split("  first")[0]
    (cluster.folder / "long.yaml").write_text(text.replace("size: 64", "size: [64, 128, 256, 512]"))
    assert cluster.run(cluster.planebench("submit", "long.yaml")).returncode == 0
    assert eventually(lambda: list(cluster.folder.glob("jobs/long/any/runs/*/*/trials.jsonl")), 180)
    cluster.run(cluster.planebench("jobs", "long", "--cancel"))
    assert eventually(lambda: shown(cluster, "long")["any"]["state"] == "interrupted", 180)
    (file,) = cluster.folder.glob("jobs/long/any/runs/*/*/trials.jsonl")
    before = file.read_bytes()
    assert 0 < len(before.splitlines()) < 3600
    where = file.parents[1].name  # the same node, which resumes it
    other = {"rack1": "rack2", "rack2": "rack1"}[where]
    cluster.words("scontrol", "update", f"NodeName={other}", "State=DRAIN", "Reason=test")
    assert cluster.run(cluster.planebench("submit", "long.yaml")).returncode == 0
    assert eventually(lambda: len(file.read_bytes().splitlines()) > len(before.splitlines()), 180)
    assert file.read_bytes().startswith(before)
    cluster.run(cluster.planebench("jobs", "long", "--cancel"))
    cluster.words("scontrol", "update", f"NodeName={other}", "State=RESUME")
