# SPDX-License-Identifier: BSD-3-Clause
"""Reading a run folder back, whatever state its writer left it in, also while it is at work."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from planebench.host.files import replace_file
from planebench.host.procfs import is_running, start_ticks
from planebench.model.conditions import Conditions
from planebench.model.errors import StoreError
from planebench.model.header import Finished, Run, RunHeader
from planebench.model.plan import Skipped
from planebench.model.records import Trial
from planebench.model.status import STATUS_VERSION, Status
from planebench.store.codec import from_json, to_json
from planebench.store.folder import (
    CONDITIONS_FILE,
    FINISHED_FILE,
    SKIPPED_FILE,
    STATUS_FILE,
    TRIALS_FILE,
    read_finished,
    read_header,
)

# Runs to keep: the records of a run in one compressed Parquet file, its header and end as they are.
#
# The reader of run folders takes a kept run like any other.

RECORDS_FILE = "records.parquet"
"""A row per record: ``file`` and ``line`` that it comes from, and ``record``, its JSON text."""


def kept_lines(folder: Path, name: str) -> bytes:
    """Return what a file of records of a kept run had; empty for another run. Raises StoreError."""
    path = folder / RECORDS_FILE
    if not path.is_file():
        return b""
    import duckdb

    query = "SELECT record FROM read_parquet($1) WHERE file = $2 ORDER BY line"
    try:
        with duckdb.connect() as database:
            rows = database.execute(query, [str(path), name]).fetchall()
        return "".join(f"{record}\n" for (record,) in rows).encode()
    except duckdb.Error as error:
        raise StoreError(f"cannot read {path}: {error}") from error


R = TypeVar("R")


def read_run(path: Path) -> Run:
    """Return the run in a folder.

    A last line without its newline (the writer was killed in it) is left out, with a warning.

    Raises StoreError, naming file and line, for anything else that is not a record of this schema version.
    """
    header = read_header(path)
    trials, torn_trials = _read_lines(path / TRIALS_FILE, Trial)
    skipped, torn_skipped = _read_lines(path / SKIPPED_FILE, Skipped)
    conditions, torn_conditions = _read_lines(path / CONDITIONS_FILE, Conditions)
    return Run(
        header=header,
        trials=trials,
        finished=read_finished(path),
        skipped=header.skipped + skipped,
        warnings=header.warnings + torn_trials + torn_skipped + torn_conditions,
        conditions=conditions,
    )


def _read_lines(path: Path, kind: type[R]) -> tuple[tuple[R, ...], tuple[str, ...]]:
    try:
        data = path.read_bytes() if path.exists() else kept_lines(path.parent, path.name)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    *lines, rest = data.split(b"\n")
    read = tuple(from_json(kind, line, f"{path}, line {number}") for number, line in enumerate(lines, start=1))
    if not rest:
        return read, ()
    return read, (
        f"{path.name}, line {len(lines) + 1} is incomplete (planebench was killed while writing it) and is ignored",
    )


# A run folder read again and again while its writer is at work: each trial is read once.

# status.json of a run folder, written and read (docs/library.md).

_READ_MAX_BYTES = 1 << 20
"""A status has some kilobytes; whatever is larger is none."""


def write_status(folder: Path, status: Status) -> None:
    """Replace status.json at once. Not synced: it is worth nothing after a crash. Raises OSError, StoreError."""
    path = folder / STATUS_FILE
    replace_file(path, to_json(status) + b"\n")


def read_status(folder: Path) -> Status | None:
    """Read the last status of a run; None if it has none. Raises StoreError for invalid content."""
    path = folder / STATUS_FILE
    try:
        with path.open("rb") as file:
            data = file.read(_READ_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    status = from_json(Status, data, str(path))
    if status.version != STATUS_VERSION:
        raise StoreError(f"{path}: version is {status.version}, this planebench reads {STATUS_VERSION}")
    return status


def is_alive(status: Status) -> bool:
    """Return whether the process that wrote it is still there. Another that got its pid has another start."""
    if not is_running(status.pid):
        # It may exist and be hidden by /proc (hidepid): then we may not signal it.
        try:
            os.kill(status.pid, 0)
        except PermissionError:
            return True
        except (OSError, OverflowError):
            pass
        return False
    return status.pid_started_ticks in (None, start_ticks(status.pid))


def live_runs(runs_dir: Path) -> tuple[Path, ...]:
    """Return the folders of runs that go on now, newest first."""
    try:
        told = [path.parent for path in runs_dir.glob(f"*/{STATUS_FILE}")]
    except OSError:
        return ()
    found = []
    for folder in told:
        try:
            status = None if (folder / FINISHED_FILE).exists() else read_status(folder)
        except (OSError, StoreError):
            continue
        if status is not None and is_alive(status):
            found.append((status.session_at, folder))
    return tuple(folder for _, folder in sorted(found, reverse=True))


RunState = Literal["running", "complete", "interrupted", "killed"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as its folder shows it now. ``trials`` are without histograms, oldest first."""

    folder: Path
    header: RunHeader
    trials: tuple[Trial, ...]
    status: Status | None
    finished: Finished | None
    state: RunState
    problem: str = ""
    """Why there is no status, where one is missing."""


class Follower:
    """Follows one run. Raises StoreError for a folder that is not a run, cannot be read or was removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.header = read_header(folder)
        self._trials: list[Trial] = []
        self._read_bytes = 0

    def look(self) -> Seen:
        """Return the present state of the run. Raises StoreError."""
        try:
            status = read_status(self.folder)
            problem = "" if status else "it has no status.json, so it is not in progress"
        except StoreError as error:
            status, problem = None, str(error)
        try:  # after the status, which goes when this comes
            if not self.folder.is_dir():
                raise StoreError(f"{self.folder} was removed or moved")
            finished = read_finished(self.folder)
        except OSError as error:
            raise StoreError(f"cannot read {self.folder}: {error.strerror or error}") from error
        self._read_trials()
        state: RunState = "killed"
        if finished is not None:
            state = finished.status
        elif status is not None and is_alive(status):
            state = "running"
        return Seen(self.folder, self.header, tuple(self._trials), status, finished, state, problem)

    def _read_trials(self) -> None:
        path = self.folder / TRIALS_FILE
        try:
            with path.open("rb") as file:
                file.seek(self._read_bytes)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
        *lines, _ = data.split(b"\n")  # the rest is being written
        for line in lines:
            trial = from_json(Trial, line, f"{path}, line {len(self._trials) + 1}")
            self._trials.append(dataclasses.replace(trial, latency=None, anatomy=()))
            self._read_bytes += len(line) + 1
