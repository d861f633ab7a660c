# SPDX-License-Identifier: BSD-3-Clause
"""status.json: what a run tells of itself while it goes on, for `planebench watch` (docs/measure.md)."""

from __future__ import annotations

from dataclasses import dataclass

from planebench.model.records import Load, Point, Role
from planebench.model.text import Moment

STATUS_VERSION = 1
"""Version of status.json. History: 1 = first."""


@dataclass(frozen=True, slots=True)
class CurrentTrial:
    """The trial that goes on. ``since`` is RFC 3339 UTC; ``repetition`` counts from 0."""

    point: Point
    role: Role
    search: str
    load: Load
    repetition: int
    duration_s: float
    since: Moment
    parts: tuple[str, ...] = ()
    """The parts of the plan that want its point."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One method on one topology: about so many trials on so many points.

    ``method``: ``r_plus``, a search, or ``latency``. ``seconds``: by the plan, starting the switches included.
    """

    topology: str
    method: str
    points: int
    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Status:
    """The progress of a run, written between trials only; the results are in the other files of the folder."""

    pid: int
    pid_started_ticks: int | None
    """Start of the process in clock ticks since boot: with the pid, an identity."""
    cpus: tuple[int, ...]
    """CPUs of the harness, away from the cores of the switch; watching programs should use them too."""
    written_at: Moment
    session_at: Moment
    """When this session of the run began."""
    plan: str
    done: int
    steps: int
    left_s: float
    doing: str
    """The work between trials: ``starting vpp for p2p``; empty in a trial."""
    trial: CurrentTrial | None = None
    ahead: tuple[Stage, ...] = ()
    """The stages to come, in order; the first has begun."""
    ahead_more: int = 0
    """Stages after those."""
    troubles: tuple[str, ...] = ()
    """The last ones."""
    version: int = STATUS_VERSION
