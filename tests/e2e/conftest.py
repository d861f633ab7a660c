# SPDX-License-Identifier: BSD-3-Clause
"""A bench for every test; skips with a reason where planed is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_rig import Bench

from planebench.host.planed_program import REMEDY, find_planed


@pytest.fixture(autouse=True)
def needs_planed() -> None:
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    it = Bench(tmp_path / "runs")
    yield it
    it.close()
