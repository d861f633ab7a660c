# SPDX-License-Identifier: BSD-3-Clause
"""One supervisor, and one planed, for all tests of a file; each test loads its own document."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from planed_rig import Planed

from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")
    with high_priority(), Supervisor(Path("/tmp")) as it:
        yield it


@pytest.fixture(scope="module")
def running(supervisor: Supervisor) -> Planed:
    return Planed(supervisor, f"planed{next(_NUMBERS)}")


@pytest.fixture
def planed(running: Planed) -> Iterator[Planed]:
    """A planed without ports."""
    running.apply()
    yield running
    running.apply()


@pytest.fixture(scope="module")
def other_running(supervisor: Supervisor) -> Planed:
    return Planed(supervisor, f"other{next(_NUMBERS)}")


@pytest.fixture
def other(other_running: Planed) -> Iterator[Planed]:
    """A second planed: the other side of a wire."""
    yield other_running
    other_running.apply()
