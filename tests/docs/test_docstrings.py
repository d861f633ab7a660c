# SPDX-License-Identifier: BSD-3-Clause
"""A docstring begins with a sentence: no fragment that leans on the signature (principle 26)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAGMENT = re.compile(r"(Of|As|What|Whether|Those|That|Where|Who|By)\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _fragments(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if text and (FRAGMENT.match(text) or not re.search(r"[.:?!]", text.split("\n\n")[0])):
            yield f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"


def test_a_docstring_begins_with_a_sentence() -> None:
    files = [*sorted((ROOT / "planebench").rglob("*.py")), *sorted((ROOT / "planebench_fib").rglob("*.py"))]
    found = [line for path in files for line in _fragments(path)]
    assert not found, "\n".join(found)
