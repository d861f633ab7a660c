# SPDX-License-Identifier: BSD-3-Clause
"""``planebench lab submit``, ``lab jobs`` and ``machine run-job``: a matrix of runs on the testbeds of a lab."""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from planebench.cli.options import PLAN_OPTIONS, complain, print_json, print_table, tell
from planebench.cli.run import measured
from planebench.lab import slurm
from planebench.lab.job import (
    ENDED_FILE,
    JOB_FILE,
    Job,
    Queue,
    Queued,
    QueueState,
    attempts,
    complete_run,
    default_jobs_dir,
    locked,
    read_ended,
    read_job,
    runs_on,
    write_ended,
    write_job,
)
from planebench.lab.matrix import ENTRY_NAME, Combination, Matrix, read_matrix
from planebench.lab.store import add_run, has_run
from planebench.measure.header import read_labels
from planebench.model.errors import FAULT, INTERRUPTED, PlanebenchError, StartError, UsageError, unknown
from planebench.model.text import SECONDS, SUFFIXES, parse_number
from planebench.plan.estimate import duration_words, estimate_longest, parse_budget
from planebench.plan.expand import expand, switch_labels
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.store import RunInfo, list_runs, read_run
from planebench.store.folder import is_complete
from planebench.switches.registry import get_adapter

MARGIN = 1.5
"""Time limit of a job over its estimate: searches are guessed, and switches start later on a busy machine."""
FIXED_S = 300
"""Time of a job that is no measuring: doctor, calibration, starts of a busy machine."""
POLL_S = 10.0
"""How long to wait between two looks at the queue."""

_BESIDE_THE_PLAN: Mapping[str, Any] = {"time-budget": str, "hugepages": bool, "calibrate": bool}
"""Options of a run that do not change its plan."""
OPTION_KINDS: Mapping[str, Any] = {
    **{name.replace("_", "-"): get_args(kind)[0] for name, kind in PLAN_OPTIONS.items()},
    **_BESIDE_THE_PLAN,
}


@dataclass(frozen=True, slots=True)
class _Shown:
    """A job as it is shown. ``state``: that in the queue; done, interrupted, failed, killed, lost or new."""

    job: Job
    folder: Path
    state: str
    machines: str = ""
    detail: str = ""
    run: RunInfo | None = None

    @property
    def is_queued(self) -> bool:
        return self.state in get_args(QueueState)


def submit(
    matrix: Path, jobs: Path | None, name: str | None, *, dry_run: bool, wait: bool, json: bool, quiet: bool
) -> int:
    """Submit the jobs of a matrix that have no complete run and are not in the queue; return the exit code.

    ``name``: in place of the name of the matrix. Submitting twice is harmless: what ended early is resumed.
    """
    wanted, runs = read_matrix(matrix, OPTION_KINDS)
    if name is not None and not re.fullmatch(ENTRY_NAME, name):
        raise UsageError(f'--name "{name}" is not valid. Valid: a letter or digit, then up to 59 of these and "._+-"')
    wanted = wanted.model_copy(update={"name": name or wanted.name})
    folder = (jobs or default_jobs_dir()) / wanted.name
    found = [_job(wanted, run) for run in runs]
    if dry_run:
        return _print([_Shown(job, folder / job.name, "new") for job in found], (), json=json, quiet=quiet)
    with locked(folder):
        for job in found:
            if not (folder / job.name / JOB_FILE).exists():
                write_job(folder / job.name, job)
                continue
            old = read_job(folder / job.name)
            if old != replace(job, ticket=old.ticket):
                raise UsageError(
                    f"job {job.name} is in {folder} with other settings: give the matrix another name (--name), or "
                    "remove that folder"
                )
        shown, notes = _look(folder)
        for it in shown:
            if not it.is_queued and it.run is None:
                slurm.submit(it.job, it.folder)
    if any(it.state == "unreachable" for it in shown):
        raise StartError(f"{'; '.join(notes)}: its jobs were not submitted. Submit the matrix again later")
    return show(wanted.name, jobs, wait=wait, cancel=False, json=json, quiet=quiet)


def show(matrix: str, jobs: Path | None, *, wait: bool, cancel: bool, json: bool, quiet: bool) -> int:
    """Print the jobs of a matrix and what they found so far; store the runs that are complete.

    Returns the exit code: 1 if a job ended without a complete run. ``wait``: until no job is in the queue. ``cancel``:
    end those that are.
    """
    directory = jobs or default_jobs_dir()
    wanted = read_matrix(Path(matrix), OPTION_KINDS)[0].name if matrix.lower().endswith(SUFFIXES) else matrix
    there = sorted(path.name for path in directory.iterdir() if path.is_dir()) if directory.is_dir() else []
    if not there:
        raise UsageError(f"{directory} has no jobs. Submit some with `planebench lab submit MATRIX.yaml`")
    if wanted not in there:
        raise unknown("matrix", wanted, there)
    folder = directory / wanted
    shown, notes = _look(folder)
    if cancel:
        if any(it.state == "unreachable" for it in shown):
            raise StartError(f"{'; '.join(notes)}: nothing was cancelled. Try again later")
        for it in (job for job in shown if job.is_queued):
            slurm.cancel(it.job)
        shown, notes = _look(folder)
    said: tuple[str, ...] = ()
    while wait and any(it.is_queued for it in shown):
        for note in notes if notes != said else ():  # a controller that does not come back is waited for
            tell(note)
        said = notes
        time.sleep(POLL_S)
        shown, notes = _look(folder)
    return _print(shown, notes, json=json, quiet=quiet)


def run_job(folder: Path) -> int:
    """Attempt a job on this machine; return the exit code. Another attempt that still goes on is waited for."""
    job = read_job(folder)
    with locked(folder):
        (folder / ENDED_FILE).unlink(missing_ok=True)
        try:
            code = _attempt(job, folder)
        except Exception as error:
            write_ended(folder, getattr(error, "exit_code", FAULT), str(error))
            raise
        except KeyboardInterrupt:
            code = INTERRUPTED
        write_ended(folder, code)
        return code


def _attempt(job: Job, folder: Path) -> int:
    done, place = complete_run(folder), job.place
    if done is None:
        machine = os.environ.get("SLURMD_NODENAME") or place.name
        switch_host = os.environ.get("SLURM_JOB_NODELIST_HET_GROUP_1") if place.switch is not None else None
        machine += "" if switch_host is None else f"+{switch_host}"
        runs = runs_on(folder, machine)
        tags = {"matrix": job.matrix, "job": job.name, **job.tags}
        labels = read_labels(machine, tags=[f"{key}={value}" for key, value in tags.items()])
        # Jobs have a folder each, and two may begin in one second: a store would take the second run for the first.
        labels = replace(labels, id_suffix=job.ticket.rpartition("-")[2])
        _, status = measured(
            job.plan,
            {},
            switch_host,
            time_budget=job.time_budget,
            hugepages=job.hugepages,
            calibrated=job.calibrated,
            resume=any(not is_complete(it) for it in list_runs(runs)),
            runs=runs,
            quiet=False,
            labels=labels,
        )
        done = complete_run(folder)
        if status != "complete" or done is None:
            return INTERRUPTED
    _store(job, done)
    return 0


def _store(job: Job, run: RunInfo) -> None:
    """Add a complete run to the store of its job, if there is one and it is not there yet."""
    if job.store is not None and not has_run(Path(job.store), run.header):
        add_run(Path(job.store), run.path)


def _job(matrix: Matrix, run: Combination) -> Job:
    """Return the job of a combination; its plan is whole, so that later changes of suites and files do not matter."""
    options = {name: value for name, value in run.options.items() if name not in _BESIDE_THE_PLAN}
    try:
        plan = override(load_plan(matrix.plan), **{name.replace("-", "_"): it for name, it in options.items()})
        points = expand(plan)
        costs = {label.label: get_adapter(label.adapter).cost for label in switch_labels(plan.switches)}
        budget = run.options.get("time-budget")
        # As long as it takes at most, where all switches are installed.
        takes_s = estimate_longest(plan, points, costs) if budget is None else parse_budget(budget)
    except UsageError as error:
        raise UsageError(f"job {run.name}: {error}") from None
    limit_s = MARGIN * takes_s + FIXED_S
    if matrix.time is not None:
        limit_s = parse_number(str(matrix.time), SECONDS) or 0
        if limit_s < 60:
            raise UsageError(f'time: "{matrix.time}" is not valid. Valid: e.g. 20m, 2h; at least one minute')
    return Job(
        matrix.name,
        run.name,
        run.place,
        plan,
        budget,
        run.options.get("hugepages"),
        run.options.get("calibrate", True),
        matrix.tags,
        round(takes_s, 1),
        math.ceil(limit_s),
        matrix.store,
        f"planebench-{matrix.name}-{run.name}-{secrets.token_hex(4)}",
    )


def _look(folder: Path) -> tuple[list[_Shown], tuple[str, ...]]:
    """Return the jobs of a matrix, and notes on the nodes; complete runs are stored."""
    jobs = {path.parent: read_job(path.parent) for path in sorted(folder.glob(f"*/{JOB_FILE}"))}
    queue, missing = Queue(), [job for path, job in jobs.items() if complete_run(path) is None]
    if missing:
        try:
            queue = slurm.queue_of(missing)
        except StartError as error:  # the controller may come back, and what runs goes on
            queue = Queue({job.ticket: Queued("unreachable") for job in missing}, (str(error),))
    return [_shown(job, path, queue.jobs.get(job.ticket)) for path, job in jobs.items()], queue.notes


def _shown(job: Job, folder: Path, queued: Queued | None) -> _Shown:
    run = complete_run(folder)
    if run is not None:
        _store(job, run)
        return _Shown(job, folder, "done", run.header.testbed, run.run_id, run)
    if queued is not None:
        detail = queued.reason if queued.state == "pending" else _progress(folder)
        return _Shown(job, folder, queued.state, queued.machines, detail)
    ended = read_ended(folder)
    if ended is not None:
        return _Shown(job, folder, "interrupted" if ended.code == INTERRUPTED else "failed", "", ended.words)
    return _Shown(job, folder, "killed" if attempts(folder) else "lost", "", _progress(folder))


def _progress(folder: Path) -> str:
    """Return how many trials the newest attempt has."""
    with contextlib.suppress(PlanebenchError, OSError):  # it may be written just now
        if runs := attempts(folder):
            return f"{len(read_run(runs[-1].path).trials)} trials"
    return ""


def _print(shown: Sequence[_Shown], notes: Sequence[str], *, json: bool, quiet: bool) -> int:
    """Print jobs; return the exit code: 1 if one has ended without a complete run."""
    ended = [it for it in shown if it.state not in ("done", "new") and not it.is_queued]
    if json:
        documents = [
            {
                "job": it.job.name,
                "testbed": it.job.place.name,
                "state": it.state,
                "machines": it.machines,
                "detail": it.detail,
                "estimate_s": it.job.estimate_s,
                "limit_s": it.job.limit_s,
                "folder": str(it.folder),
                "run": None if it.run is None else str(it.run.path),
            }
            for it in shown
        ]
        print_json({"jobs": documents, "notes": list(notes)})
    elif not quiet:
        rows = []
        for it in shown:
            times = duration_words(it.job.estimate_s), duration_words(it.job.limit_s)
            rows.append((it.job.name, it.machines or it.job.place.name, it.state, *times, it.detail))
        print_table(("job", "testbed", "state", "estimate", "limit", "progress or run"), rows)
    for note in () if json else notes:
        tell(f"note: {note}")
    if ended and not json:
        words = "jobs ended without a complete run; submit the matrix again to resume them"
        complain(f"{len(ended)} of {len(shown)} {words}")
    return int(bool(ended))
