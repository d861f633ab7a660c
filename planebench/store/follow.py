# SPDX-License-Identifier: BSD-3-Clause
"""A run folder read again and again while its writer is at work: each trial is read once."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planebench.host.files import replace_file
from planebench.host.procfs import is_running, start_ticks
from planebench.model.errors import StoreError
from planebench.model.header import Finished, RunHeader
from planebench.model.records import Trial
from planebench.model.status import STATUS_VERSION, Status
from planebench.store.codec import from_json, to_json
from planebench.store.folder import FINISHED_FILE, STATUS_FILE, TRIALS_FILE, read_finished, read_header

# status.json of a run folder, written and read (docs/design/store.md).

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
        return _exists(status.pid)
    return status.pid_started_ticks in (None, start_ticks(status.pid))


def live_runs(runs_dir: Path) -> tuple[Path, ...]:
    """Return the folders of runs that go on now, newest first."""
    try:
        told = [path.parent for path in runs_dir.glob(f"*/{STATUS_FILE}")]
    except OSError:
        return ()
    found = [(status.session_at, folder) for folder in told if (status := _live(folder)) is not None]
    return tuple(folder for _, folder in sorted(found, reverse=True))


def _live(folder: Path) -> Status | None:
    try:
        status = None if (folder / FINISHED_FILE).exists() else read_status(folder)
    except (OSError, StoreError):
        return None
    return status if status is not None and is_alive(status) else None


def _exists(pid: int) -> bool:
    """Return whether a process exists that /proc hides (hidepid) and that we may not signal."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


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
        status, problem = self._status()
        finished = self._finished()  # after the status, which goes when this comes
        self._read_trials()
        state: RunState = "killed"
        if finished is not None:
            state = finished.status
        elif status is not None and is_alive(status):
            state = "running"
        return Seen(self.folder, self.header, tuple(self._trials), status, finished, state, problem)

    def _status(self) -> tuple[Status | None, str]:
        try:
            status = read_status(self.folder)
        except StoreError as error:
            return None, str(error)
        return status, "" if status else "it has no status.json, so it is not in progress"

    def _finished(self) -> Finished | None:
        try:
            if not self.folder.is_dir():
                raise StoreError(f"{self.folder} was removed or moved")
            return read_finished(self.folder)
        except OSError as error:
            raise StoreError(f"cannot read {self.folder}: {error.strerror or error}") from error

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
