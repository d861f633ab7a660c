# SPDX-License-Identifier: BSD-3-Clause
"""Hold the layers of the harness: a package imports packages of lower layers only, also inside functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import planebench

ROOT = Path(planebench.__file__).parent

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

PURE = ("analysis.search",)
"""Packages that import nothing but ``model`` and themselves."""

NOT_FOR_A_PAGE = ("switches", "host", "measure", "testbed.hosting", "testbed.placement", "testbed.vnfs")
"""Packages that nothing which draws a page from stored files may load."""


def _modules() -> dict[str, Path]:
    """Return every module by its dotted name below planebench; the package itself is ""."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


def _imported(path: Path) -> Iterator[str]:
    """Yield every module of planebench that a file imports, by its dotted name below planebench."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("planebench.") and name != "planebench.__version__":
                yield _module_of(name.split(".")[1:])


def _module_of(parts: list[str]) -> str:
    """Return the module that holds a dotted name: the longest start of the name that is a module."""
    while parts and ".".join(parts) not in MODULES:
        parts = parts[:-1]
    return ".".join(parts)


def _edges() -> dict[tuple[str, str], list[str]]:
    """Return the imports between packages, each with the modules that do it."""
    edges: dict[tuple[str, str], list[str]] = {}
    for module, path in MODULES.items():
        for target in _imported(path):
            edge = (module.partition(".")[0], target.partition(".")[0])
            if edge[0] != edge[1]:
                edges.setdefault(edge, []).append(f"{module} imports {target}")
    return edges


EDGES = _edges()
LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}


def test_every_package_has_a_layer() -> None:
    assert {module.partition(".")[0] for module in MODULES} <= set(LAYER_OF)


def _breaks_the_rule(edge: tuple[str, str]) -> bool:
    """Tell whether an import goes up, to the side, or to a package that the importing one may not use."""
    source, target = edge
    return LAYER_OF[target] >= LAYER_OF[source] or target not in ONLY.get(source, LAYER_OF)


def test_a_package_imports_lower_layers_only() -> None:
    broken = {edge: who for edge, who in EDGES.items() if _breaks_the_rule(edge)}
    assert not broken, "\n".join(line for who in broken.values() for line in who)


@pytest.mark.parametrize("package", PURE)
def test_a_pure_package_imports_records_only(package: str) -> None:
    for module, path in MODULES.items():
        if module.startswith(package):
            others = [it for it in _imported(path) if not it.startswith(("model", package))]
            assert not others, f"{module} imports {others}"


@pytest.mark.parametrize("module", ["planebench.report", "planebench.report.html"])
def test_a_page_is_drawn_without_adapters(module: str) -> None:
    """A page is drawn from stored files: no switch, no hosting, no code of another package's entry point is loaded."""
    code = f"import sys, {module}; print(*sorted(name for name in sys.modules if name.startswith('planebench.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [name for name in done.stdout.split() if name.removeprefix("planebench.").startswith(NOT_FOR_A_PAGE)]
    assert not loaded
