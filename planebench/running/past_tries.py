# SPDX-License-Identifier: BSD-3-Clause
"""How often trials were repeated on this machine before."""

from __future__ import annotations

import contextlib
from itertools import islice
from pathlib import Path

from planebench.host.facts import HostFacts
from planebench.model.errors import StoreError
from planebench.plans.costs import Tries
from planebench.plans.tries import TRIALS_MIN, expected_tries
from planebench.store import list_runs, read_run

RUNS_MAX = 3
"""Runs that are read for one that has enough trials."""


def known_tries(facts: HostFacts, runs_dir: Path | None = None) -> Tries:
    """Return how often trials will be measured, by the newest finished run on a machine that calibrated its tester."""
    here = [
        info.path
        for info in reversed(list_runs(runs_dir))
        if (calibration := info.header.calibration) is not None
        and (calibration.cpu_model, calibration.kernel) == (facts.cpu_model, facts.kernel)
        and info.finished is not None
    ]
    for path in islice(here, RUNS_MAX):
        with contextlib.suppress(StoreError):
            if len(trials := read_run(path).trials) >= TRIALS_MIN:
                return expected_tries(trials)
    return expected_tries(())
