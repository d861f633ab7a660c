# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on machines whose parts die: is every trial in the store once? (tests/jobs_rig.py)

    sudo .venv/bin/python bench/jobs_chaos.py [-n 30] [--jobs 12] [--seed 1] [--keep]

A matrix of simulated runs is submitted to three nodes of Slurm. At random moments slurmctld, slurmd, a whole node, a
run, or the command of the user is killed by SIGKILL, or a node loses its network for longer than Slurm waits for it.
What was killed is started again. Then the matrix is submitted once more, and each job must be complete and each of
its trials in the store exactly once. Exit code 1 unless it is so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from jobs_rig import Cluster, missing

from planebench.lab.store import open_store
from planebench.store import read_run

REPETITIONS = 600
SIZES = (64, 128, 256)
TRIALS = REPETITIONS * len(SIZES)
MATRIX = """# SPDX-License-Identifier: BSD-3-Clause
version: 1
name: chaos
plan: quick
options: {{switch: sim, scenario: p2p, direction: unidirectional, frame-size: {sizes}, duration: 0.02, loads: none,
          repeat: {repetitions}, calibrate: false}}
testbeds: {{any: {{slurm: ""}}}}
repeat: {repeat}
store: lab
"""
SUBMIT_WITHIN_S = 300.0
DONE_WITHIN_S = 1800.0


class Chaos:
    """A lab with a matrix of jobs, and what was done to it."""

    def __init__(self, cluster: Cluster, jobs: int, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.matrix = cluster.folder / "chaos.yaml"
        self.matrix.write_text(MATRIX.format(repeat=jobs, repetitions=REPETITIONS, sizes=list(SIZES)))
        self.jobs = jobs
        self.done: Counter[str] = Counter()
        self.user: subprocess.Popen[str] | None = None

    def submit(self) -> None:
        """Have the user submit the matrix, unless they are at it."""
        if self.user is None or self.user.poll() is not None:
            self.user = subprocess.Popen(
                self.cluster.planebench("lab", "submit", self.matrix, "--quiet"),
                env=self.cluster.environment,
                cwd=self.cluster.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )

    def strike(self) -> bool:
        """Do one of the things that can happen; return False if there was nothing to kill."""
        name = self.random.choice(("slurmctld", "slurmd", "node", "run", "network", "command"))
        busy = [host for host in self.cluster.hosts[1:] if host.processes("planebench", "machine", "run-job")]
        node = self.random.choice(busy or self.cluster.hosts[1:])
        pause_s = self.random.uniform(0.2, 4.0)
        if name == "slurmctld":
            self.cluster.hosts[0].kill()
            time.sleep(pause_s)
            self.cluster.hosts[0].start()
        elif name == "slurmd":
            for pid in node.processes(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            node.kill()
            time.sleep(pause_s)
            node.start()
        elif name == "node":
            node.crash()
            time.sleep(pause_s)
            node.start()
        elif name == "network":
            node.link("down")
            time.sleep(self.random.choice((pause_s, 14.0)))
            node.link("up")
        else:
            words = {"run": ("planebench", "machine", "run-job"), "command": ("planebench", "lab", "submit")}
            pids = (node if name == "run" else self.cluster.hosts[0]).processes(*words[name])
            if not pids:
                return False
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.done[name] += 1
        return True

    def shown(self) -> list[dict[str, str]]:
        """Return the jobs as the user sees them; none where the controller does not answer."""
        said = self.cluster.run(self.cluster.planebench("lab", "jobs", "chaos", "--json"), SUBMIT_WITHIN_S)
        return json.loads(said.stdout)["jobs"] if said.stdout else []

    def to_the_end(self) -> None:
        """Submit until every job is complete."""
        end = time.monotonic() + DONE_WITHIN_S
        while time.monotonic() < end:
            self.submit()
            assert self.user is not None
            self.user.wait()
            self.cluster.hasten()
            states = Counter(it["state"] for it in self.shown())
            print(f"     {dict(states)}", file=sys.stderr, flush=True)
            if states["done"] == self.jobs:
                return
            time.sleep(3)

    def faults(self) -> list[str]:
        """Return what is wrong with the jobs and the store."""
        shown = self.shown()
        found = [f"job {it['job']} is {it['state']}: {it['detail']}" for it in shown if it["state"] != "done"]
        if len(shown) != self.jobs:
            found.append(f"{len(shown)} jobs, not {self.jobs}")
        with open_store(self.cluster.folder / "lab") as database:
            rows = database.sql("SELECT testbed, run_id, trial_index FROM trials").fetchall()
        stored = Counter(rows)
        found += [f"trial {trial} is there {count} times" for trial, count in stored.items() if count != 1]
        wanted = set()
        for it in shown:
            if it["run"]:
                run = read_run(Path(it["run"]))
                wanted |= {(run.header.testbed, run.header.run_id, trial.index) for trial in run.trials}
                if len(run.trials) != TRIALS:
                    found.append(f"job {it['job']} has {len(run.trials)} trials, not {TRIALS}")
        return [*found, *(f"trial {it} is lost" for it in wanted - set(stored)), *self._strangers(wanted, stored)]

    def _strangers(self, wanted: set[tuple[str, str, int]], stored: Counter[tuple[str, str, int]]) -> list[str]:
        return [f"trial {it} is of no job" for it in set(stored) - wanted]


def main() -> int:
    """Parse, start, strike, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=30, help="strikes")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and runs")
    options = parser.parse_args()
    without = missing("slurmctld", "slurmd", "munged", "sbatch")
    if without:
        print(without, file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="jobs-chaos-"))
    cluster = Cluster(folder)
    try:
        cluster.start()
        chaos = Chaos(cluster, options.jobs, options.seed)
        begun = time.monotonic()
        while sum(chaos.done.values()) < options.n:
            chaos.submit()
            time.sleep(chaos.random.uniform(0.5, 4.0))
            if chaos.strike():
                cluster.hasten()
                words = ", ".join(f"{name} {count}" for name, count in chaos.done.items())
                print(f"{time.monotonic() - begun:4.0f} s: {words}", file=sys.stderr, flush=True)
        chaos.to_the_end()
        faults = chaos.faults()
    finally:
        cluster.stop()
        if options.keep:
            print(folder, file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(faults) or f"{chaos.jobs} jobs, {sum(chaos.done.values())} strikes: every trial is there once")
    print("| killed | times |\n|---|---|\n" + "\n".join(f"| {name} | {n} |" for name, n in sorted(chaos.done.items())))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
