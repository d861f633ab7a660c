# SPDX-License-Identifier: BSD-3-Clause
"""A run folder read again and again while its writer is at work: each trial is read once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planebench.model.errors import StoreError
from planebench.model.header import RunHeader
from planebench.model.records import Trial
from planebench.model.run import Finished
from planebench.model.status import Status
from planebench.store.codec import from_json
from planebench.store.folder import TRIALS_FILE, read_finished, read_header
from planebench.store.status import is_alive, read_status

State = Literal["running", "complete", "interrupted", "killed"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as its folder shows it now. ``trials`` are without histograms, oldest first."""

    folder: Path
    header: RunHeader
    trials: tuple[Trial, ...]
    status: Status | None
    finished: Finished | None
    state: State
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
        state: State = "killed"
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
