# SPDX-License-Identifier: BSD-3-Clause
"""A real Slurm runs a matrix: a node that is not fit is drained with doctor's sentence, two nodes make one job."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs_rig import Cluster, eventually, missing, run

from planebench.analysis.ledger import ledger
from planebench.host.planed_program import find_planed
from planebench.store import read_run

WITHOUT = missing("slurmctld", "slurmd", "munged", "sbatch")
pytestmark = [
    pytest.mark.root,
    pytest.mark.lab,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(WITHOUT), reason=WITHOUT),
]

USER = "nobody"
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
    folder.chmod(0o755)  # for users
    made = Cluster(folder, nodes=2)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def shown(cluster: Cluster, name: str) -> dict[str, dict[str, str]]:
    cluster.hasten()
    said = cluster.run(cluster.planebench("lab", "jobs", name, "--json"))
    assert said.stdout, said.stderr
    document = json.loads(said.stdout)
    return {it["job"]: it for it in document["jobs"]} | {"notes": document["notes"]}


def test_a_matrix_runs_and_an_unfit_node_is_drained_with_the_reason(cluster: Cluster) -> None:
    (cluster.folder / "nightly.yaml").write_text(MATRIX)
    (cluster.folder / "unfit-rack1").touch()
    said = cluster.run(cluster.planebench("lab", "submit", "nightly.yaml"))
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


@pytest.mark.skipif(bool(missing("sshd")), reason=missing("sshd"))
@pytest.mark.skipif(find_planed() is None, reason="planed is not built")
def test_a_job_on_two_nodes_measures_between_them(cluster: Cluster) -> None:
    """The tester is on one node, the switch on the other, and two cables are between them."""
    tester, switch = cluster.hosts[1:3]
    cluster.let_in()
    for cable in ("pbn0", "pbn1"):
        ends = ("netns", tester.space, "type", "veth", "peer", "name", cable, "netns", switch.space)
        run("ip", "link", "add", cable, *ends)
        for host in (tester, switch):
            run("ip", "-n", host.space, "link", "set", cable, "addrgenmode", "none", "up")
    text = MATRIX.split("testbeds:")[0].replace("nightly", "pair").replace("switch: sim", "switch: planed")
    text = text.replace("repeat: 3", "repeat: 1, max-rate: 10k, wire: 'veth:pbn0=pbn0,pbn1=pbn1'").replace(
        "0.02", "0.2"
    )
    pair = "testbeds: {pair: {slurm: --constraint=rack1, switch: --constraint=rack2}}\nstore: lab\n"
    (cluster.folder / "pair.yaml").write_text(text + pair)
    agent = cluster.folder / "bin/there"
    there = agent.read_text()
    own_sys = "exec unshare --mount sh -c 'mount -t sysfs sysfs /sys; exec \"$@\"' sh "  # that of its namespace
    agent.write_text(there.replace("exec ", own_sys))
    with subprocess.Popen([*switch.inside, *cluster.sshd(switch)], stderr=subprocess.DEVNULL) as sshd:
        try:
            said = cluster.run(cluster.planebench("lab", "submit", "pair.yaml"))
            assert said.returncode == 0, said.stderr
            assert eventually(lambda: shown(cluster, "pair")["pair"]["state"] not in ("pending", "running"), 180)
        finally:
            agent.write_text(there)
            sshd.kill()
    job = shown(cluster, "pair")["pair"]
    assert (job["state"], job["machines"]) == ("done", "rack1+rack2"), cluster.words("cat", "jobs/pair/pair/log")
    found = read_run(Path(job["run"]))
    assert found.header.switch_host is not None and found.header.switch_host.name == "rack2"
    for trial in found.trials:
        account = ledger(trial)
        assert account.counted and account.offered_packets and not account.unexplained_packets, trial.verdict


def test_a_job_of_a_user_has_the_nics_that_it_asks_for_and_the_limits_of_the_node(cluster: Cluster) -> None:
    """Locked memory is limited at the login, which says nothing about the testbed."""
    home = cluster.home(USER)
    agent = cluster.folder / "bin/there"
    there = agent.read_text()
    agent.write_text(there.replace("exec", f"ulimit -l > {home}/memlock\nexec"))
    nics = "testbeds: {fast: {slurm: --gres=nic:e810:2}}\nstore: lab\n"
    (home / "users.yaml").write_text(MATRIX.split("testbeds:")[0].replace("nightly", "users") + nics)
    login = (
        "prlimit",
        "--memlock=65536",
        *cluster.planebench("lab", "submit", "users.yaml", "--jobs", home / "jobs", user=USER),
    )
    asked = cluster.planebench("lab", "jobs", "users", "--jobs", home / "jobs", "--json", user=USER)
    said = cluster.run(login)
    try:
        assert said.returncode == 0, said.stderr
        assert eventually(lambda: '"done"' in cluster.run(asked).stdout, 180), cluster.words("squeue", "-l")
    finally:
        agent.write_text(there)
    (job,) = json.loads(cluster.run(asked).stdout)["jobs"]
    assert job["machines"] == "rack1", "the node with these NICs"
    assert (home / "memlock").read_text() == subprocess.run(
        ("sh", "-c", "ulimit -l"), capture_output=True, text=True
    ).stdout
    assert {path.owner() for path in (home / "jobs").rglob("*")} == {USER}
    assert list(home.glob("lab/runs/*/*/*.parquet"))


def test_cancelled_jobs_end_in_order_and_are_resumed(cluster: Cluster) -> None:
    text = MATRIX.replace("nightly", "long").replace("repeat: 3", "repeat: 900").split("  first")[0]
    (cluster.folder / "long.yaml").write_text(text.replace("size: 64", "size: [64, 128, 256, 512]"))
    assert cluster.run(cluster.planebench("lab", "submit", "long.yaml")).returncode == 0
    assert eventually(lambda: list(cluster.folder.glob("jobs/long/any/runs/*/*/trials.jsonl")), 180)
    cluster.run(cluster.planebench("lab", "jobs", "long", "--cancel"))
    assert eventually(lambda: shown(cluster, "long")["any"]["state"] == "interrupted", 180)
    (file,) = cluster.folder.glob("jobs/long/any/runs/*/*/trials.jsonl")
    before = file.read_bytes()
    assert 0 < len(before.splitlines()) < 3600
    where = file.parents[1].name  # the same node, which resumes it
    other = {"rack1": "rack2", "rack2": "rack1"}[where]
    cluster.words("scontrol", "update", f"NodeName={other}", "State=DRAIN", "Reason=test")
    assert cluster.run(cluster.planebench("lab", "submit", "long.yaml")).returncode == 0
    assert eventually(lambda: len(file.read_bytes().splitlines()) > len(before.splitlines()), 180)
    assert file.read_bytes().startswith(before)
    cluster.run(cluster.planebench("lab", "jobs", "long", "--cancel"))
    cluster.words("scontrol", "update", f"NodeName={other}", "State=RESUME")
