# SPDX-License-Identifier: BSD-3-Clause
"""A few of the kills of bench/crash.py: the run is readable, goes on to its end, and nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from crash_rig import MEASURED, RANDOM, Case, cases, crash

pytestmark = [pytest.mark.dataplane, pytest.mark.slow, pytest.mark.timeout(300)]

CASES = (
    pytest.param(Case("container", "vnf", MEASURED), marks=pytest.mark.all),
    Case("container", "harness and reaper", "the first trial is stored"),
    pytest.param(Case("container", "tester", RANDOM, 2.5), marks=pytest.mark.all),
)


@pytest.mark.parametrize("case", CASES, ids=("vnf", "harness and reaper", "tester"))
def test_kill_9(case: Case, tmp_path: Path) -> None:
    found = crash(case, tmp_path / "runs", Path(os.environ["XDG_CACHE_HOME"]))
    assert not (found.unreadable or found.not_resumed or found.left), found
    assert found.killed or case.moment == RANDOM


def test_every_victim_is_killed_at_named_and_random_moments() -> None:
    found = list(cases(100, 1, True))
    assert found == list(cases(100, 1, True))
    for victim in {case.victim for case in found}:
        moments = {case.moment for case in found if case.victim == victim}
        assert RANDOM in moments and len(moments) > 3, victim
    assert {case.way for case in cases(100, 1, False)} == {"container"}
