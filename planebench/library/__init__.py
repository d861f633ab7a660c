# SPDX-License-Identifier: BSD-3-Clause
"""Runs as data, for notebooks and scripts: :func:`planebench.load` (docs/library.md)."""

from __future__ import annotations

from pathlib import Path

from planebench.library.loaded import Loaded
from planebench.library.tables import TABLES, TABLES_VERSION, Source
from planebench.model.errors import UsageError
from planebench.store import find_run, read_run

__all__ = ["TABLES", "TABLES_VERSION", "Loaded", "load"]


def load(*wanted: str | Path, runs_dir: str | Path | None = None) -> Loaded:
    """Load runs; see :func:`planebench.load`."""
    folder = None if runs_dir is None else Path(runs_dir)
    paths = [find_run(folder, str(one)) for one in wanted or ("latest",)]
    for path in paths:
        if [other.resolve() for other in paths].count(path.resolve()) > 1:
            raise UsageError(f"run {path.name} is given twice, so its rows would be counted twice. Give it once")
    return Loaded(Source(path, read_run(path)) for path in paths)
