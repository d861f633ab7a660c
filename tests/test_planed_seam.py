# SPDX-License-Identifier: BSD-3-Clause
"""planed is asked through planebench.planed: no other package writes its documents or names its methods."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import planebench
from planebench.planed.document import Memory, Port, Worker

ROOT = Path(planebench.__file__).parent
OTHERS = [path for path in sorted(ROOT.rglob("*.py")) if not path.is_relative_to(ROOT / "planed")]
METHODS = {"config.apply", "ports.get", "stamps.get", "stats.get", "traffic.get"}
KINDS = {"vhost-user", "virtio-user", "ethdev", "generator", "monitor"}


def _strings(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _keys(path: Path) -> set[tuple[str, str]]:
    """Return the pairs of a key and a value that are both literals, of every dictionary display."""
    pairs = [
        (key.value, value.value)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
    ]
    return {(key, value) for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_methods_and_documents_of_planed_are_in_its_package(path: Path) -> None:
    assert not METHODS & _strings(path)
    assert not {("kind", kind) for kind in KINDS} & _keys(path)
    if "planebench.planed.statistics" in path.read_text(encoding="utf-8"):
        assert "stats: Mapping[str, Any]" not in path.read_text(encoding="utf-8")


SOURCES = Path(__file__).parent.parent / "dataplane"
OBJECTS = {
    "memory_fields": Memory(True, 64, 64, 2048),
    "port_fields": Port("p", "vhost-user", 256, 2, Path("p"), "d", "vring", "m", "c", True, True, 1, "g", 1, 1, 1),
    "worker_fields": Worker("w", 0, (), "sleep", 50, 20_000),
}
"""The objects of a document with every key, by the table of their keys in planed."""


@pytest.mark.parametrize("table", OBJECTS)
def test_a_document_has_every_key_that_planed_knows(table: str) -> None:
    source = (SOURCES / "runtime/config.c").read_text(encoding="utf-8")
    keys = re.findall(r'(?:\.key = |_FIELD\()"(\w+)"', source.split(f"{table}[] = {{")[1].split("};")[0])
    assert set(OBJECTS[table].to_json()) == set(keys)
