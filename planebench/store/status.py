# SPDX-License-Identifier: BSD-3-Clause
"""status.json of a run folder, written and read (docs/design/store.md)."""

from __future__ import annotations

import os
from pathlib import Path

from planebench.host.files import replace_file
from planebench.host.procfs import is_running, start_ticks
from planebench.model.errors import StoreError
from planebench.model.status import STATUS_VERSION, Status
from planebench.store.codec import from_json, to_json
from planebench.store.folder import FINISHED_FILE, STATUS_FILE

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
