# SPDX-License-Identifier: BSD-3-Clause
"""A job: one run of a matrix on one testbed, and its folder, which is all that is known of it.

    jobs/nightly/planed-rack1/job.json      what to run, and where; written when the job is submitted
                              log           what it printed
                              ended.json    how its last attempt ended; none if that was killed
                              runs/NODE/    the run folders, by the machine that measured

A job is attempted until it has a complete run. An attempt resumes the run that the last one on the same machine left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints

from planebench.host.files import open_file, read_file, replace_file
from planebench.model.errors import StoreError
from planebench.model.plan import Plan
from planebench.model.text import utc_now
from planebench.store import RunInfo, list_runs
from planebench.store.codec import from_json, to_json
from planebench.store.folder import is_complete, read_if_there

JOB_FILE = "job.json"
ENDED_FILE = "ended.json"
LOCK_FILE = "lock"
LOG_FILE = "log"
RUNS = "runs"
JOBS_VARIABLE = "PLANEBENCH_JOBS"


@dataclass(frozen=True, slots=True)
class JobPlace:
    """A testbed of a matrix: options of sbatch; and those for the node of the switch, if it is apart."""

    name: str
    slurm: str
    switch: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """A run to make: the plan with all its options, the testbed, and the time."""

    matrix: str
    name: str
    place: JobPlace
    plan: Plan
    time_budget: str | None
    hugepages: bool | None
    calibrated: bool
    tags: dict[str, str]
    estimate_s: float
    limit_s: int
    store: str | None
    """Folder of the store that gets the run; None for none."""
    ticket: Annotated[str, StringConstraints(pattern=r"^planebench-[A-Za-z0-9._=+-]{1,200}-[0-9a-f]{8}$")]
    """Name of the job in the queue. No other job of any user has it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ended: exit code of ``planebench run``, and the error if there was one."""

    code: int
    words: str
    at: str


def default_jobs_dir() -> Path:
    """Return ``$PLANEBENCH_JOBS``, or ``jobs`` in the current folder."""
    return Path(os.environ.get(JOBS_VARIABLE) or "jobs")


def safe_name(text: str) -> str:
    """Return a text reduced to characters that are safe in a path and in a command."""
    return re.sub(r"[^A-Za-z0-9._=+-]+", "-", text).strip("-.")[:100] or "job"


def read_job(folder: Path) -> Job:
    """Read the job of a folder. Raises StoreError."""
    path = folder / JOB_FILE
    try:
        data = read_file(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; give the folder of a job") from error
    return from_json(Job, data, str(path))


def write_job(folder: Path, job: Job) -> None:
    """Store a job in its folder, which is made. Raises StoreError."""
    _write(folder / JOB_FILE, to_json(job, indent=1) + b"\n")


def read_ended(folder: Path) -> Ended | None:
    """Return how the last attempt ended; None if there was none, or it was killed. Raises StoreError."""
    path = folder / ENDED_FILE
    data = read_if_there(path)
    return None if data is None else from_json(Ended, data, str(path))


def write_ended(folder: Path, code: int, words: str = "") -> None:
    """Store how this attempt ended. Raises StoreError."""
    _write(folder / ENDED_FILE, to_json(Ended(code, words, utc_now("seconds"))) + b"\n")


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data, durable=True)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until nobody else has the folder locked, on any machine that mounts it, and lock it. Raises StoreError.

    The lock belongs to this process and ends with it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(open_file(folder / LOCK_FILE, os.O_WRONLY | os.O_CREAT), "w")
    except OSError as error:
        raise StoreError(f"cannot lock {folder}: {error.strerror or error}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise StoreError(f"cannot lock {folder}: {error.strerror or error}") from error
        yield


def runs_on(folder: Path, machine: str) -> Path:
    """Return the folder of the runs that a machine made for a job."""
    return folder / RUNS / safe_name(machine)


def attempts(folder: Path) -> tuple[RunInfo, ...]:
    """Return the runs of a job on all machines, oldest first."""
    found = (info for machine in (folder / RUNS).glob("*") for info in list_runs(machine))
    return tuple(sorted(found, key=lambda info: info.header.started_at))


def complete_run(folder: Path) -> RunInfo | None:
    """Return the run that came to its end; None if there is none yet."""
    return next((info for info in attempts(folder) if is_complete(info)), None)


QueueState = Literal["pending", "running", "ending", "unreachable"]
"""``unreachable``: not known, because the controller of the queue does not answer."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A job that is in the queue: its state, the machines that it runs on, and why it waits."""

    state: QueueState
    machines: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """The jobs in the queue, by ticket, and notes for the user on the testbeds."""

    jobs: Mapping[str, Queued] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
