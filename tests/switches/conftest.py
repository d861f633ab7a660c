# SPDX-License-Identifier: BSD-3-Clause
"""A supervisor for every test, and skips with a reason where a switch or the tester is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.switches.adapter import Adapter
from planebench.switches.registry import ADAPTERS

sys.path.append(str(Path(__file__).parent))  # for bench.py, with --import-mode=importlib


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with high_priority(), Supervisor(Path("/tmp")) as it:
        yield it


@pytest.fixture(params=[name for name, it in ADAPTERS.items() if name != "sim" and it.vnf_interface == "vhost-user"])
def adapter(request: pytest.FixtureRequest) -> Adapter:
    """Each switch that is a program. Those in the kernel: test_kernel.py."""
    it = ADAPTERS[request.param]
    found = it.find()
    if isinstance(found, NotFound):
        pytest.skip(f"{it.title} is not here: {found.remedy}")
    return it


@pytest.fixture
def needs_tester() -> None:
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")
