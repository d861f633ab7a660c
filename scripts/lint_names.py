#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check who names what: which package of the harness may import which, that one of them knows what planed reads, and
that tests which start a program of the build are marked.

Exit code 1 with one sentence for each violation.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import structure

LAYERS = (
    ("model",),
    ("host", "analysis"),
    ("planed", "store"),
    ("testbed", "lab"),
    ("plan", "switches", "papers"),
    ("measure", "report"),
    ("conformance", "loaded"),
    ("", "cli"),
    ("__main__",),
)
"""Packages and modules of planebench, lowest first; "" is planebench itself. Those of one layer do not import each
other."""

ONLY = {
    "model": frozenset[str](),
    "analysis": frozenset({"model"}),
    "report": frozenset({"analysis", "model", "papers", "store"}),
}
"""The packages that these may import at most: they are pure, or are drawn from stored files alone."""

PURE = "analysis.search"
"""A package that imports nothing but ``model`` and itself."""

METHODS = {"config.apply", "ports.get", "stamps.get", "stats.get", "traffic.get"}
KINDS = {"vhost-user", "virtio-user", "ethdev", "generator", "monitor"}
"""What only planebench.planed writes: methods of planed, and kinds of ports and tasks in its documents."""

STARTERS = {("nf_rig", "nf_run"), ("nf_rig", "program"), ("fib_rig", "Forwarder")}
"""What starts a program of the build, by the module of tests/ that has it."""
MARK = "\npytestmark = pytest.mark.dataplane\n"


def main() -> int:
    """Return 1 for violations."""
    problems = [*upward_imports(), *documents_elsewhere(), *unmarked_tests()]
    print("\n".join(problems) or "names: fine")
    return 1 if problems else 0


def upward_imports() -> Iterator[str]:
    """Yield a sentence for each import that goes up, to the side, or to a package that the importing one may not use.

    Imports inside functions count.
    """
    layer_of = {package: number for number, layer in enumerate(LAYERS) for package in layer}
    for module, tree in structure.modules().items():
        source = module.partition(".")[0]
        if source not in layer_of:
            yield f"planebench.{module}: {source} has no layer; see LAYERS in scripts/lint_names.py"
            continue
        for target in sorted(structure.imported(tree)):
            package = target.partition(".")[0]
            if module.startswith(PURE) and not target.startswith(("model", PURE)):
                yield f"planebench.{module} imports {target or 'planebench'}; {PURE} imports records only"
            # A package without a layer has its own sentence.
            low = layer_of.get(package, -1) < layer_of[source] and package in ONLY.get(source, layer_of)
            if package != source and not low:
                yield f"planebench.{module} may not import {target or 'planebench'}; see LAYERS in this script"


def documents_elsewhere() -> Iterator[str]:
    """Yield a sentence for each module outside of planebench.planed that writes a document or names a method."""
    for module, tree in structure.modules().items():
        if module.partition(".")[0] == "planed":
            continue
        names = sorted(METHODS & {text for node in ast.walk(tree) if (text := _text(node))})
        names += sorted(kind for kind in _kinds(tree) if kind in KINDS)
        for name in names:
            yield f"planebench.{module}: {name} is of planed; take a function of planebench.planed"
        source = ast.unparse(tree)
        if "planebench.planed.statistics" in source and "stats: Mapping[str, Any]" in source:
            yield f"planebench.{module}: statistics of planed are read by planebench.planed.statistics"


def _text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _kinds(tree: ast.Module) -> set[str]:
    """Return the values of the key "kind" in dictionary displays."""
    displays = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    pairs = [pair for node in displays for pair in zip(node.keys, node.values, strict=True)]
    return {_text(value) for key, value in pairs if _text(key) == "kind"}


def unmarked_tests() -> Iterator[str]:
    """Yield a sentence for each file of tests that starts a program of the build: the others run without a build."""
    for path in sorted((structure.ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
        if MARK not in text and any((node.module, it.name) in STARTERS for node in imports for it in node.names):
            yield f"{path.relative_to(structure.ROOT)}: it starts a program of the build; add {MARK.strip()}"


if __name__ == "__main__":
    sys.exit(main())
