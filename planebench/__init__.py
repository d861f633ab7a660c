# SPDX-License-Identifier: BSD-3-Clause
"""planebench: NFV software data planes, measured side by side.

As a library: ``planebench.run("quick")``, ``planebench.load("latest")`` (docs/library.md). Only the scenarios
and the wires, which register themselves, are imported before something is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import planebench.model.scenarios  # registers every scenario
import planebench.testbed.wires  # noqa: F401  # registers every wire

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from planebench.loaded import Loaded
    from planebench.measure.campaign import Listener
    from planebench.model.plan import Plan
    from planebench.store import RunInfo

__all__ = ["__version__", "list_runs", "load", "run"]

__version__ = "0.1.0"


def load(*wanted: str | Path, runs_dir: str | Path | None = None) -> Loaded:
    """Stored runs as tables: each ``latest``, a run id or the start of one, a name (its newest run), or a path.

    Several share their tables (column ``run_id``); without any: the latest. ``runs_dir``: where runs are, if not
    ``$PLANEBENCH_RUNS`` or ``runs``. Raises UsageError with the candidates where nothing fits, StoreError for a run
    that cannot be read.
    """
    from planebench.loaded import load as load_runs

    return load_runs(*wanted, runs_dir=runs_dir)


def list_runs(runs_dir: str | Path | None = None) -> tuple[RunInfo, ...]:
    """All readable runs, oldest first: ``run_id``, ``path``, ``header`` and how each ended (``finished``)."""
    from pathlib import Path

    from planebench.store import list_runs as list_stored

    return list_stored(None if runs_dir is None else Path(runs_dir))


def run(
    plan: Plan | str | Path = "quick",
    *,
    runs_dir: str | Path | None = None,
    hugepages: bool | None = None,
    time_budget: str | None = None,
    calibrate: bool = True,
    resume: bool = False,
    listener: Listener | None = None,
    subject: str | None = None,
    testbed: str | None = None,
    tags: Iterable[str] = (),
    **options: Any,
) -> Loaded:
    """Run a plan as ``planebench run`` does, and return the run as tables. Nothing is printed.

    ``plan`` is a suite, a plan file or a :class:`planebench.model.plan.Plan`; ``options`` are those of the command
    line, with underscores: ``run("quick", switch="planed,testpmd", frame_size="64", repeat=5)``. ``listener`` hears
    of every trial. ``subject``, ``testbed`` and ``tags`` are stored with the run. Ctrl-C ends the run in order: what
    was measured is returned, and ``resume=True`` continues it. Raises UsageError and NotInstalledError before anything
    is started.
    """
    from pathlib import Path

    from planebench.measure.header import read_labels
    from planebench.measure.session import open_session
    from planebench.measure.survey import survey

    held = survey(plan, options, hugepages=hugepages).required().within(time_budget)
    folder = None if runs_dir is None else Path(runs_dir)
    labels = read_labels(testbed, subject, tags)
    session = open_session(held, runs_dir=folder, resume=resume, calibrated=calibrate, labels=labels)
    session.measure(listener)
    return load(session.folder)
