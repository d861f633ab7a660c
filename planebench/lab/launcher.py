# SPDX-License-Identifier: BSD-3-Clause
"""The seam to what runs jobs: submit, state, cancel, fetch. Nothing of a job is kept but its folder and its ticket."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from planebench.lab.job import Job

QueueState = Literal["pending", "running", "ending", "unreachable"]
"""``unreachable``: not known, because the host or the controller of the queue does not answer."""


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


class Launcher(Protocol):
    """Something that runs jobs. All methods raise StartError if it cannot be reached."""

    poll_s: float
    """How long to wait between two calls of :meth:`state`."""

    def submit(self, job: Job, folder: Path) -> None:
        """Queue a job. A job that is in the queue already does not start twice."""

    def state(self, jobs: Collection[Job]) -> Queue:
        """Return those of ``jobs``, all of one host, that are in the queue; the others have ended, or never were."""

    def cancel(self, job: Job) -> None:
        """Remove a job from the queue, or end it in order; what it measured is kept."""

    def fetch(self, job: Job, folder: Path) -> None:
        """Bring the folder of a job that has ended here."""
