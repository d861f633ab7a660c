# SPDX-License-Identifier: BSD-3-Clause
"""PLANEBENCH_PATIENCE stretches deadlines; one that is none is told before anything was started."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import planebench
from planebench.host.process import VARIABLE, Supervisor, stretched, wait_ready
from planebench.model.errors import StartError, UsageError


@pytest.mark.parametrize(("text", "deadline_s"), [(None, 2.0), ("", 2.0), ("1", 2.0), ("10", 20.0), ("1.5", 3.0)])
def test_factor(monkeypatch: pytest.MonkeyPatch, text: str | None, deadline_s: float) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
    assert stretched(2.0) == deadline_s


@pytest.mark.parametrize("text", ["0", "0.5", "-1", "nan", "inf", "1e9", "ten"])
def test_what_is_no_factor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=f'{VARIABLE} "{text}" is not a valid timeout factor.* from 1 to 1000'):
        Supervisor(tmp_path)
    assert not list(tmp_path.iterdir())


def test_deadline_that_passes_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "2")
    with pytest.raises(StartError, match=r"nothing did not start within 0\.02 s"):
        wait_ready("nothing", lambda: False, deadline_s=0.01)


REMAINDERS = ("0", "max(deadline - time.monotonic(), 0.001)", "left_s")
"""What is left of a deadline that was stretched when it was set, and a look without waiting."""


def _deadlines(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what subprocesses, sockets and stubs are given as their timeout."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            yield from (keyword.value for keyword in call.keywords if keyword.arg == "timeout")
            if name == "settimeout":
                yield call.args[0]


def test_every_deadline_of_a_tool_or_a_socket_is_stretched() -> None:
    root = Path(planebench.__file__).parent
    found = []
    for path in (path for path in sorted(root.rglob("*.py")) if not path.is_relative_to(root / "fib")):
        for value in _deadlines(ast.parse(path.read_text(encoding="utf-8"))):
            words = ast.unparse(value)
            if not words.startswith("stretched(") and words not in REMAINDERS:
                found.append(f"{path.relative_to(root)}: {words}")
    assert not found, "deadlines without stretched(...)"
