# SPDX-License-Identifier: BSD-3-Clause
"""Tests that start programs of the meson build are marked, so that the others run without a build."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STARTERS = {("nf_rig", "nf_run"), ("nf_rig", "program"), ("fib_rig", "Forwarder")}


def _starts(path: Path) -> bool:
    """Return whether a module imports what starts a program."""
    imports = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)]
    return any((node.module, name.name) in STARTERS for node in imports for name in node.names)


@pytest.mark.parametrize("path", [path for path in sorted(TESTS.rglob("test_*.py")) if _starts(path)], ids=str)
def test_what_starts_a_program_of_the_build_is_marked(path: Path) -> None:
    assert "\npytestmark = pytest.mark.dataplane\n" in path.read_text()
