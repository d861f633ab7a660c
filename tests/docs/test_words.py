# SPDX-License-Identifier: BSD-3-Clause
"""Texts that a user reads do not have the words that docs/terminology.md lists as words to avoid."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "planebench"
TERMS = ROOT / "docs" / "terminology.md"
_TITLE = "## Words to avoid"

NOT_YET_CODE = {
    "conformance",
    "doctor",
    "fib",
    "host",
    "hosting",
    "placement",
    "planed",
    "scenarios",
    "sim",
    "switches",
    "traffic",
    "vnfs",
    "wiring",
}
"""Packages with texts that still have such words. This set only shrinks: take out a package when it is clean."""

OLD_TEXTS = {PACKAGE / "model" / "reasons.py"}
"""Modules that recognize texts of stored runs, whatever the words."""

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "bench" / "README.md", *(ROOT / "docs").rglob("*.md")])
"""All documents of the project; none has such words, except in the table itself."""


def words_to_avoid() -> dict[str, str]:
    """Return the words of the table, in lower case, each with what to write instead."""
    _, _, table = TERMS.read_text(encoding="utf-8").partition(_TITLE)
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    return {word.strip(): instead for words, instead in rows for word in words.lower().split(",")}


AVOID = words_to_avoid()
_ANY = re.compile("|".join(rf"\b{re.escape(word)}(?!\w)" for word in AVOID), re.IGNORECASE)


def found(text: str) -> list[str]:
    """Return a sentence for each word of a text that is to be avoided."""
    words = {match.lower() for match in _ANY.findall(" ".join(text.split()))}
    return [f'"{word}": write {AVOID[word]}' for word in sorted(words)]


def texts_of_module(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of a module that is not a documentation string."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def faults(folder: Path) -> Iterator[str]:
    """Yield every word to avoid in the modules, templates and YAML files below a folder or in one file."""
    for path in sorted(folder.rglob("*") if folder.is_dir() else [folder]):
        where = path.relative_to(ROOT)
        if path in OLD_TEXTS:
            continue
        if path.suffix == ".py":
            yield from (f"{where}:{line}: {fault}" for line, text in texts_of_module(path) for fault in found(text))
        elif path.suffix in (".j2", ".yaml"):
            yield from (f"{where}: {fault}" for fault in found(path.read_text(encoding="utf-8")))


def test_the_table_is_read() -> None:
    assert AVOID["flat out"] == AVOID["saturating input"] == "maximum offered load"
    assert found("Trials that  count, flat\nout") == [
        '"flat out": write maximum offered load',
        '"trials that count": write rejected; no accepted trial; accepted trials',
    ]
    assert found("the float output counts") == []


@pytest.mark.parametrize("name", sorted(path.name for path in PACKAGE.iterdir() if path.name not in NOT_YET_CODE))
def test_texts_of_the_program(name: str) -> None:
    assert list(faults(PACKAGE / name)) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents(path: Path) -> None:
    assert found(path.read_text(encoding="utf-8").partition(_TITLE)[0]) == []
