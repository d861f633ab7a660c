# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a run in its folder (plan.json), so that the run can be resumed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from planebench.model.errors import StoreError
from planebench.model.named_files import without_folders
from planebench.model.plan import Plan
from planebench.store.codec import from_json, to_json
from planebench.store.files import write_atomically
from planebench.store.folder import PLAN_FILE, RunInfo, list_runs

_NO_FILES: Mapping[str, object] = MappingProxyType({})


def write_plan(folder: Path, plan: Plan) -> None:
    """Store the plan of a run. Raises StoreError."""
    write_atomically(folder / PLAN_FILE, to_json(plan, indent=2) + b"\n")


def read_plan(folder: Path) -> Plan | None:
    """Return the plan of a run; None for a run that has none (of an earlier planebench). Raises StoreError."""
    path = folder / PLAN_FILE
    return from_json(Plan, path.read_bytes(), str(path)) if path.is_file() else None


def runs_of_plan(runs_dir: Path, plan: Plan, files: Mapping[str, object] = _NO_FILES) -> Iterator[RunInfo]:
    """Yield the runs of this plan, the newest first; those that cannot be read are left out.

    ``files``: the settings that name the files of the plan. They may have been in other folders.
    """
    wanted = without_folders(to_json(plan).decode(), files)
    for info in reversed(list_runs(runs_dir)):
        with contextlib.suppress(StoreError):
            found = read_plan(info.path)
            if found and without_folders(to_json(found).decode(), info.header.settings) == wanted:
                yield info


def find_unfinished(runs_dir: Path, plan: Plan, files: Mapping[str, object] = _NO_FILES) -> RunInfo | None:
    """Return the newest run of this plan that did not come to its end; None if there is none. ``files``: as above."""
    return next((info for info in runs_of_plan(runs_dir, plan, files) if not is_complete(info)), None)


def is_complete(info: RunInfo) -> bool:
    """Return whether a run came to its end."""
    return info.finished is not None and info.finished.status == "complete"
