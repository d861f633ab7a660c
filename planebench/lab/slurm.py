# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on Slurm: each takes whole nodes, which nothing else uses meanwhile. CPUs are placed by planebench alone.

A job is found by its name, which no other job has, so that a crash between submitting and noting a number loses
nothing. The columns of ``squeue --format`` are read, not its JSON, whose form differs between versions of Slurm.
"""

from __future__ import annotations

import getpass
import math
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from planebench.host.link import program_there
from planebench.host.programs import ProgramOutput, run_tool
from planebench.lab.job import LOG_FILE, Job, Queue, Queued, QueueState
from planebench.model.errors import NotInstalledError, StartError

TIMEOUT_S = 60.0
"""Slurm's own commands give up after 10 s per controller."""
ATTEMPTS_MAX = 3
"""A job whose run is killed is queued again unless it was so often before, for losses of nodes too."""

_OF_STATE: Mapping[QueueState, tuple[str, ...]] = {
    "ending": ("COMPLETING", "STAGE_OUT", "SIGNALING"),
    "pending": (
        *("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"),
    ),
    "running": ("RUNNING", "SUSPENDED", "STOPPED", "RESIZING"),
}
_STATES = {name: state for state, names in _OF_STATE.items() for name in names}
"""Without those of jobs that have ended, which squeue shows for a while."""

_SCRIPT = """#!/bin/sh
{program} machine run-job {folder} && exit
code=$?
# Killed from outside (memory, an operator): the run is resumed. 130, stopped in order, is a wish.
if [ "$code" -gt 130 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {attempts} ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
"""


def submit(job: Job, folder: Path) -> None:
    """Queue a job. ``singleton``: of two jobs of this name, the second waits, and finds the work done."""
    _run(sbatch_command(job, folder), script(folder))


def queue_of(jobs: Collection[Job]) -> Queue:
    """Return those of ``jobs`` that are in the queue, and the nodes that were drained, with the reason."""
    found = _run(["squeue", "--noheader", f"--user={getpass.getuser()}", "--format=%j|%T|%N|%r"])
    wanted = {job.ticket for job in jobs}
    queued = {name: it for name, it in parse_queue(found) if name in wanted}
    drained = _run(["sinfo", "--noheader", "--list-reasons", "--format=%n|%E"]) if queued else ""
    return Queue(queued, tuple(parse_drained(drained)))


def cancel(job: Job) -> None:
    """Remove a job from the queue, or end it in order."""
    _run(["scancel", f"--user={getpass.getuser()}", f"--name={job.ticket}"])


def sbatch_command(job: Job, folder: Path) -> list[str]:
    """Return the command that queues a job; the script goes to its standard input."""
    common = [f"--time={math.ceil(job.limit_s / 60)}", "--nodes=1", "--exclusive"]
    own = [
        "--parsable",
        "--requeue",
        "--dependency=singleton",
        "--open-mode=append",
        f"--output={folder.resolve() / LOG_FILE}",
        f"--comment=planebench {job.matrix}/{job.name}",
    ]
    words = ["sbatch", *own, f"--job-name={job.ticket}", *common, *shlex.split(job.place.slurm)]
    if job.place.switch is not None:  # of the same name, it would wait for the first
        words += [":", f"--job-name={job.ticket}-switch", *common, *shlex.split(job.place.switch)]
    return words


def script(folder: Path) -> str:
    """Return the batch script of a job."""
    where = shlex.quote(str(folder.resolve()))
    return _SCRIPT.format(program=program_there(), folder=where, attempts=ATTEMPTS_MAX)


def parse_queue(text: str) -> Iterator[tuple[str, Queued]]:
    """Yield name and state of each line of squeue."""
    for line in text.splitlines():
        name, state, nodes, reason = (*line.split("|", 3), "", "", "")[:4]
        if state in _STATES:
            yield name, Queued(_STATES[state], nodes, "" if reason == "None" else reason)


def parse_drained(text: str) -> Iterator[str]:
    """Yield a sentence for each node that takes no jobs and has a reason."""
    for line in text.splitlines():
        node, _, reason = line.partition("|")
        if reason and reason != "none":
            yield f"node {node} takes no jobs: {reason}"


def _run(command: list[str], stdin: str = "") -> str:
    """Run a command of Slurm; return what it prints. Raises NotInstalledError and StartError."""
    if shutil.which(command[0]) is None:
        raise NotInstalledError(f"{command[0]} is not here: install the client commands of Slurm (slurm-client)")
    done: ProgramOutput = run_tool(command, TIMEOUT_S, stdin=stdin)
    if not done.ok:
        words = "; ".join(line.removeprefix(f"{command[0]}: error: ") for line in done.stderr.strip().splitlines())
        code = "no answer" if done.code is None else f"exit code {done.code}"
        raise StartError(f"{command[0]} failed: {words or code}")
    return done.stdout
