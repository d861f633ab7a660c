# SPDX-License-Identifier: BSD-3-Clause
"""A run as it is read back: header, trials, how it ended. What statistics and reports take, wherever it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planebench.model.conditions import Conditions
from planebench.model.header import RunHeader, Skipped
from planebench.model.quantity import Moment
from planebench.model.records import Point, Trial

RunStatus = Literal["complete", "interrupted"]


@dataclass(frozen=True, slots=True)
class Finished:
    """finished.json: the run came to an orderly end. ``finished_at`` is RFC 3339 UTC."""

    status: RunStatus
    finished_at: Moment
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a run folder holds. ``finished`` is None for a run that was killed, or is still going on."""

    header: RunHeader
    trials: tuple[Trial, ...] = ()
    finished: Finished | None = None
    skipped: tuple[Skipped, ...] = ()
    """Skipped points of the header and of the run."""
    warnings: tuple[str, ...] = ()
    """Warnings of the header, and faults of the folder found while reading."""
    conditions: tuple[Conditions, ...] = ()
    """Conditions at each start of each switch; none if simulated."""

    @property
    def switch_labels(self) -> tuple[str, ...]:
        """Return the labels in the order of the header; labels that only trials have come last."""
        known = [s.label for s in self.header.switches]
        return tuple(dict.fromkeys(known + [t.point.switch for t in self.trials]))

    def by_point(self) -> dict[Point, list[Trial]]:
        """Return the trials of each point, in the order in which they ran; a new dictionary each time."""
        trials: dict[Point, list[Trial]] = {}
        for trial in self.trials:
            trials.setdefault(trial.point, []).append(trial)
        return trials

    def version_of(self, label: str) -> str:
        """Return the version of the switch with this label; ``unknown`` if the header does not name it."""
        return next((s.version for s in self.header.switches if s.label == label), "unknown")

    def manifest_of(self, label: str) -> Mapping[str, str]:
        """Return the part of the fairness manifest of the switch with this label; empty if the header has none."""
        return next((s.settings for s in self.header.switches if s.label == label), {})
