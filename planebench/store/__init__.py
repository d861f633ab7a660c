# SPDX-License-Identifier: BSD-3-Clause
"""Run folders: ``runs/<run_id>/`` with run.json, some files of lines, and finished.json (docs/library.md).

A run is raw trials. Nothing derived is stored; everything is derived again by :mod:`planebench.analysis`.
"""

from planebench.store.folder import RunInfo, default_runs_dir, find_run, list_runs, new_run_id, runs_named
from planebench.store.reader import read_run
from planebench.store.writer import RunWriter, make_runs_dir

__all__ = [
    "RunInfo",
    "RunWriter",
    "default_runs_dir",
    "find_run",
    "list_runs",
    "make_runs_dir",
    "new_run_id",
    "read_run",
    "runs_named",
]
