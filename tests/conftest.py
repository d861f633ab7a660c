# SPDX-License-Identifier: BSD-3-Clause
"""What every test may use. Tests of one part keep their fixtures beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# CI machines stall; a slow example is not a failure. The examples are the same in every run.
settings.register_profile("planebench", deadline=None, derandomize=True)
settings.load_profile("planebench")


@pytest.fixture(autouse=True)
def own_run_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test writes to the runs of the user, or to what is kept of the tester; tests share one calibration."""
    folder = tmp_path_factory.mktemp("runs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("PLANEBENCH_RUNS", str(folder))
    yield folder
