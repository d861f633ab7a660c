# SPDX-License-Identifier: BSD-3-Clause
"""planebench_fib can be taken alone: its client imports nothing but the standard library."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import planebench_fib

ROOT = Path(planebench_fib.__file__).parent


def test_no_module_imports_planebench() -> None:
    for path in ROOT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.split(".")[0] == "planebench"], path.name


def test_the_client_loads_the_standard_library_alone() -> None:
    program = (
        "import sys, planebench_fib.client, planebench_fib.transport\n"
        "strange = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(name for name in strange if not name.startswith('_')))"
    )
    argv = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT.parent)!r})\n{program}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['planebench_fib']"
