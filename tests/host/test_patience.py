# SPDX-License-Identifier: BSD-3-Clause
"""PLANEBENCH_PATIENCE stretches deadlines; one that is none is told before anything was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host.patience import VARIABLE, patient
from planebench.host.process import Supervisor, wait_ready
from planebench.model.errors import StartError, UsageError


@pytest.mark.parametrize(("text", "deadline_s"), [(None, 2.0), ("", 2.0), ("1", 2.0), ("10", 20.0), ("1.5", 3.0)])
def test_factor(monkeypatch: pytest.MonkeyPatch, text: str | None, deadline_s: float) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
    assert patient(2.0) == deadline_s


@pytest.mark.parametrize("text", ["0", "0.5", "-1", "nan", "inf", "1e9", "ten"])
def test_what_is_no_factor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=f'{VARIABLE} "{text}" is no factor .* from 1 to 1000'):
        Supervisor(tmp_path)
    assert not list(tmp_path.iterdir())


def test_deadline_that_passes_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    with pytest.raises(StartError, match=r"nothing did not come up within 0\.02 s"):
        wait_ready("nothing", lambda: False, deadline_s=0.01)
