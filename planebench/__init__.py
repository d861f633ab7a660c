# SPDX-License-Identifier: BSD-3-Clause
"""planebench: NFV software data planes, measured side by side.

As a library: ``planebench.load("latest")`` (docs/library.md). Only the scenarios, which register themselves, are
imported before something is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import planebench.scenarios  # noqa: F401  # registers every scenario

if TYPE_CHECKING:
    from pathlib import Path

    from planebench.library import Loaded
    from planebench.store import RunInfo

__all__ = ["__version__", "list_runs", "load"]

__version__ = "0.1.0"


def load(*wanted: str | Path, runs_dir: str | Path | None = None) -> Loaded:
    """Stored runs as tables: each ``latest``, a run id or the start of one, a name (its newest run), or a path.

    Several share their tables (column ``run_id``); without any: the latest. ``runs_dir``: where runs are, if not
    ``$PLANEBENCH_RUNS`` or ``runs``. Raises UsageError with the candidates where nothing fits, StoreError for a run
    that cannot be read.
    """
    from planebench.library import load as load_runs

    return load_runs(*wanted, runs_dir=runs_dir)


def list_runs(runs_dir: str | Path | None = None) -> tuple[RunInfo, ...]:
    """All readable runs, oldest first: ``run_id``, ``path``, ``header`` and how each ended (``finished``)."""
    from pathlib import Path

    from planebench.store import list_runs as list_stored

    return list_stored(None if runs_dir is None else Path(runs_dir))
