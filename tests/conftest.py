# SPDX-License-Identifier: BSD-3-Clause
"""What every test may use. Tests of one part keep their fixtures beside them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from planebench.host.files import default_folder

# CI machines stall; a slow example is not a failure. The examples are the same in every run.
settings.register_profile("planebench", deadline=None, derandomize=True)
# Other examples each time, and more of them: for make fuzz.
settings.register_profile("fuzz", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "planebench"))


MACHINE = "machine"


class MachineScheduling(LoadScopeScheduling):
    """Give the tests that poll, or change what all processes see, to one process, which runs them in order.

    The other tests run beside them, a file at a time, in the second process of ``make test``.
    """

    def _split_scope(self, nodeid: str) -> str:
        return MACHINE if nodeid.endswith(f"@{MACHINE}") else nodeid.partition("::")[0]


def _uses_the_machine(item: pytest.Item) -> bool:
    """Return whether a test has one of the markers ``dataplane``, ``root`` and ``slow``.

    Not those of network functions and of the FIB that start no planed: their programs read frames from a pipe or a
    file, and neither poll ports nor change what others see.
    """
    if item.path.parent.name in ("nf", "fib") and not hasattr(getattr(item, "module", None), "Planed"):
        return bool(item.get_closest_marker("root"))
    return any(item.get_closest_marker(name) for name in ("dataplane", "root", "slow"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the machine: ``--dist=loadgroup`` writes their group at the end of their ids."""
    for item in items:
        if _uses_the_machine(item):
            item.add_marker(pytest.mark.xdist_group(MACHINE))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Return the scheduler of ``pytest -n``."""
    return MachineScheduling(config, log)


@pytest.fixture(autouse=True)
def own_run_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test writes to the runs of the user, or to what is kept of the tester; tests share one calibration."""
    folder = tmp_path_factory.mktemp("runs")
    cache = tmp_path_factory.getbasetemp() / "cache"
    _share_guest(cache / "planebench" / "guest")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.with_name(f"{folder.name}-state")))
    monkeypatch.setenv("PLANEBENCH_RUNS", str(folder))
    monkeypatch.setenv("PLANEBENCH_SHARE_CPUS", "1")  # the tests' second process may measure, too
    yield folder


def _share_guest(link: Path) -> None:
    """The kernel of guests is the user's: 30 MB need not be fetched for every run of the tests."""
    if link.parent.exists():
        return
    kept = default_folder() / "guest"
    link.parent.mkdir(parents=True)
    with contextlib.suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True)
        link.symlink_to(kept)
