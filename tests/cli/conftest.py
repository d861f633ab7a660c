# SPDX-License-Identifier: BSD-3-Clause
"""The command as a user types it, without a new process: its exit code and what it wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench.cli import main
from planebench.host import programs
from planebench.model.header import Run


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Planebench = Callable[..., Done]


@pytest.fixture
def planebench(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Iterator[Planebench]:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["planebench", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        out, err = capfdbinary.readouterr()
        return Done(code, out.decode(), err.decode())

    yield call
    programs._program_output.cache_clear()


@pytest.fixture
def stored(own_run_folder: Path) -> Run:
    """A whole run with trials of every kind, the only one there is."""
    return store_run(own_run_folder, make_run())
