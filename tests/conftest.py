# SPDX-License-Identifier: BSD-3-Clause
"""What every test may use. Tests of one part keep their fixtures beside them."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import re
from collections.abc import Iterator, Set
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


class MachineScheduling(LoadScopeScheduling):
    """Give the tests that poll, or change what all processes see, to one process, which runs them in order.

    The other tests run beside them, a file at a time, in the second process of ``make test``.
    """

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        marked = using_the_machine(path)
        return "machine" if marked & {"", *name.partition("[")[0].split("::")} else path


@functools.cache
def using_the_machine(path: str) -> Set[str]:
    """Return the functions and classes of a file with one of the markers ``dataplane``, ``root`` and ``slow``; "" if
    the whole file has one.

    They are read from the text, as the process that hands out tests knows nothing but their names. Not those of network
    functions and of the FIB that start no planed: their programs read frames from a pipe or a file, and neither poll
    ports nor change what others see. Nor those of peers of memif and virtio that lie, and of what a VNF can
    reach: they wait more than they poll.
    """
    text = Path(path).read_text(encoding="utf-8")
    waits = Path(path).name in ("test_memif_hostile.py", "test_virtio_hostile.py", "test_reach.py")
    apart = waits or (Path(path).parent.name in ("nf", "fib") and "Planed(" not in text)
    markers = re.compile(r"mark\.(root)\b" if apart else r"mark\.(dataplane|root|slow)\b")
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name, marks = node.name, node.decorator_list
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            name, marks = "", [node.value]
        else:
            continue
        if any(markers.search(ast.unparse(mark)) for mark in marks):
            found.add(name)
    return found


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Return the scheduler of ``pytest -n``."""
    return MachineScheduling(config, log)


@pytest.fixture(autouse=True)
def same_cpus_and_priority() -> Iterator[None]:
    """No test leaves this process on fewer CPUs, or with another priority: the tests after it would have that too."""
    before = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    yield
    after = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    os.sched_setaffinity(0, before[0])
    assert after == before


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
