# SPDX-License-Identifier: BSD-3-Clause
"""What every test may use. Tests of one part keep their fixtures beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from planebench.host.cache_folder import default_folder

# CI machines stall; a slow example is not a failure. The examples are the same in every run.
settings.register_profile("planebench", deadline=None, derandomize=True)
settings.load_profile("planebench")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that poll, or that change what all processes see, in one process, one after another.

    ``make test`` runs the others beside them in a second process (pytest-xdist, ``--dist loadgroup``).
    """
    for item in items:
        if any(item.get_closest_marker(name) for name in ("dataplane", "root", "slow")):
            item.add_marker(pytest.mark.xdist_group("machine"))


@pytest.fixture(autouse=True)
def own_run_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No test writes to the runs of the user, or to what is kept of the tester; tests share one calibration."""
    folder = tmp_path_factory.mktemp("runs")
    cache = tmp_path_factory.getbasetemp() / "cache"
    _share_guest(cache / "planebench" / "guest")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("PLANEBENCH_RUNS", str(folder))
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
