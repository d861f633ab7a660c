# SPDX-License-Identifier: BSD-3-Clause
"""The runs of a plan, of which one that did not come to its end can be resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from planebench.model.named_files import without_folders
from planebench.model.plan import Plan
from planebench.store.codec import to_json
from planebench.store.folder import RunInfo, list_runs

_NO_FILES: Mapping[str, object] = MappingProxyType({})


def runs_of_plan(runs_dir: Path, plan: Plan, files: Mapping[str, object] = _NO_FILES) -> Iterator[RunInfo]:
    """Yield the runs of this plan, whatever their time budget, the newest first; those that cannot be read are left
    out.

    ``files``: the settings that name the files of the plan. They may have been in other folders.
    """
    wanted = without_folders(to_json(plan).decode(), files)
    for info in reversed(list_runs(runs_dir)):
        found = replace(info.header.plan, time_budget_s=plan.time_budget_s)
        if without_folders(to_json(found).decode(), info.header.settings) == wanted:
            yield info


def find_unfinished(runs_dir: Path, plan: Plan, files: Mapping[str, object] = _NO_FILES) -> RunInfo | None:
    """Return the newest run of this plan that did not come to its end; None if there is none. ``files``: as above."""
    return next((info for info in runs_of_plan(runs_dir, plan, files) if not is_complete(info)), None)


def is_complete(info: RunInfo) -> bool:
    """Return whether a run came to its end."""
    return info.finished is not None and info.finished.status == "complete"
