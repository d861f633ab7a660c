# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of this folder, with --import-mode=importlib, and CPUs that other tests use, too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(scope="session", autouse=True)
def shared_cpus() -> Iterator[None]:
    """Before the switches that a whole module has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANEBENCH_SHARE_CPUS", "1")
        yield
