# SPDX-License-Identifier: BSD-3-Clause
"""Calibrations on disk: one file per condition, in $XDG_CACHE_HOME/planebench or ~/.cache/planebench.

Saving replaces the calibration of the same :class:`CalibrationCondition`, whatever its frame sizes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from planebench.host.files import default_folder
from planebench.host.programs import version_lines
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import Calibration
from planebench.store.codec import from_json, to_json
from planebench.store.writer import write_atomically

MAX_AGE_S = 86400.0
"""A day: the machine itself drifts (host of a VM, temperature, other guests)."""
CLOCK_SKEW_S = 60.0
"""A calibration from the future, by more than this, is from a clock that was wrong."""


@dataclass(frozen=True, slots=True)
class CalibrationCondition:
    """The facts that must be equal for a calibration to be valid. ``tester_cpus`` is the number of CPUs,
    ``tester_cores`` that of queue pairs over which they are spread."""

    planed_version: str
    cpu_model: str
    kernel: str
    wire: str
    ring_size: int
    hugepages: bool
    tester_cpus: int
    clock: str
    core_kinds: str
    tester_cores: int
    check: str

    @property
    def key(self) -> str:
        """Return the name of the file: 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(astuple(self)).encode()).hexdigest()[:16]


def condition_of(calibration: Calibration) -> CalibrationCondition:
    """Return the condition a calibration was measured under."""
    return CalibrationCondition(**{name: getattr(calibration, name) for name in CalibrationCondition.__slots__})


def version_of(planed: Path) -> str:
    """Return the version of this planed program and the start of its hash: a rebuilt program is another tester."""
    try:
        lines = version_lines(planed)
        digest = hashlib.sha256(planed.read_bytes()).hexdigest()[:12]
    except OSError:
        return "unknown"
    return f"{lines[0] if lines else 'unknown'} ({digest})"


def save(calibration: Calibration, folder: Path | None = None) -> Path:
    """Keep a calibration; its file is there whole or not at all. Returns its path. Raises StoreError."""
    path = _path(condition_of(calibration), folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make {path.parent}: {error.strerror}. Set XDG_CACHE_HOME to a folder you may write"
        ) from error
    write_atomically(path, to_json(calibration, indent=1))
    return path


def load(
    condition: CalibrationCondition,
    frame_sizes: Collection[int],
    *,
    folder: Path | None = None,
    now: datetime | None = None,
) -> Calibration | None:
    """Return the calibration of this condition that has every frame size, if it is younger than MAX_AGE_S.

    None when there is none, or it is too old, torn, of another schema, or lacks a frame size: measure again.
    """
    with contextlib.suppress(OSError, StoreError, UsageError):
        path = _path(condition, folder)
        found = from_json(Calibration, path.read_bytes(), str(path))
        age_s = ((now or datetime.now(UTC)) - datetime.fromisoformat(found.measured_at)).total_seconds()
        fresh = -CLOCK_SKEW_S <= age_s <= MAX_AGE_S
        with_ceiling = {ceiling.frame_size_bytes for ceiling in found.ceilings}
        sizes = with_ceiling & {floor.frame_size_bytes for floor in found.floors}
        if fresh and condition_of(found) == condition and set(frame_sizes) <= sizes:
            return found
    return None


def _path(condition: CalibrationCondition, folder: Path | None) -> Path:
    return (default_folder() if folder is None else folder) / f"calibration-{condition.key}.json"
