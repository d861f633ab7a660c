# SPDX-License-Identifier: BSD-3-Clause
"""Plans: what a run measures, as data. Suites in YAML, options of the command line, expansion, order, time.

Here are the names of the suites: a wrong one is told before what reads plans is imported.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from planebench.model.errors import UsageError, unknown
from planebench.model.text import is_yaml_file

SUITES = files("planebench.plan") / "suites"


def list_suites() -> tuple[str, ...]:
    """Return the names of the suites that planebench includes, sorted."""
    return tuple(sorted(Path(entry.name).stem for entry in SUITES.iterdir() if entry.name.endswith(".yaml")))


def check_suite(text: str) -> None:
    """Raise UsageError for a text that is neither a suite nor the path of a plan."""
    if not is_yaml_file(text) and text not in (known := list_suites()):
        raise UsageError(f"{unknown('suite', text, known)}; or the path of a plan file, e.g. {text}.yaml")
