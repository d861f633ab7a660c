# SPDX-License-Identifier: BSD-3-Clause
"""Listeners of a run in progress. They work between trials only: they take CPU time from the pollers."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections import deque
from pathlib import Path

from planebench.host.procfs import start_ticks
from planebench.measure.ahead import Pace
from planebench.measure.campaign import Listener
from planebench.measure.trial import TrialRequest
from planebench.model.errors import StoreError
from planebench.model.plan import Plan
from planebench.model.records import Trial
from planebench.model.status import CurrentTrial, Status
from planebench.model.text import utc_now
from planebench.plan.expand import points_of
from planebench.store.reader import write_status

AHEAD_MAX = 8
"""Stages that status.json names."""
TROUBLES_MAX = 5


class StatusListener:
    """Writes status.json for `planebench watch`; a status that cannot be written does not end the run."""

    def __init__(self, pace: Pace, folder: Path, plan: Plan) -> None:
        self._pace, self._folder = pace, folder
        self._parts = {part.name: frozenset(points_of(part)) for part in plan.parts}
        self._troubles: deque[str] = deque(maxlen=TROUBLES_MAX)
        self._status = Status(
            pid=os.getpid(),
            pid_started_ticks=start_ticks(os.getpid()),
            cpus=tuple(sorted(os.sched_getaffinity(0))),
            written_at="",
            session_at=utc_now(),
            plan=plan.name,
            done=0,
            steps=pace.steps,
            left_s=0.0,
            doing="",
        )
        self._write("starting")

    def working_on(self, text: str) -> None:
        """Write work that is not a trial."""
        self._write(text)

    def trial_begins(self, request: TrialRequest) -> None:
        """Write the trial that begins."""
        of = (request.point, request.role, request.search, request.load, request.repetition, request.duration_s)
        parts = tuple(name for name, points in self._parts.items() if request.point in points)
        self._write("", CurrentTrial(*of, since=utc_now(), parts=parts))

    def trial_done(self, trial: Trial) -> None:
        """Write the result of a trial."""
        self._write("between trials")

    def trouble(self, text: str) -> None:
        """Write a failure; the run continues."""
        self._troubles.append(text)
        self._write(self._status.doing)

    def _write(self, doing: str, trial: CurrentTrial | None = None) -> None:
        ahead = self._pace.ahead()
        self._status = dataclasses.replace(
            self._status,
            written_at=utc_now(),
            done=self._pace.done,
            steps=self._pace.steps,
            left_s=round(self._pace.left_s(), 1),
            doing=doing,
            trial=trial,
            ahead=ahead[:AHEAD_MAX],
            ahead_more=len(ahead[AHEAD_MAX:]),
            troubles=tuple(self._troubles),
        )
        with contextlib.suppress(OSError, StoreError):
            write_status(self._folder, self._status)


class Listeners:
    """Several listeners as one."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def working_on(self, text: str) -> None:
        """Report work that is not a trial."""
        for listener in self._listeners:
            listener.working_on(text)

    def trial_begins(self, request: TrialRequest) -> None:
        """Report the trial that begins."""
        for listener in self._listeners:
            listener.trial_begins(request)

    def trial_done(self, trial: Trial) -> None:
        """Report the result of a trial."""
        for listener in self._listeners:
            listener.trial_done(trial)

    def trouble(self, text: str) -> None:
        """Report a failure; the run continues."""
        for listener in self._listeners:
            listener.trouble(text)
