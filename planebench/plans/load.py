# SPDX-License-Identifier: BSD-3-Clause
"""Plans from YAML: the suites that come with planebench, by name, and files of the user, by path."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.model.yaml_text import is_yaml_file, parse_yaml, read_text
from planebench.plans.schema import plan_from_document

_SUITES = files("planebench.plans") / "suites"


def list_suites() -> tuple[str, ...]:
    """Return the names of the suites that planebench includes, sorted."""
    return tuple(sorted(Path(entry.name).stem for entry in _SUITES.iterdir() if entry.name.endswith(".yaml")))


def load_plan(name_or_path: str | Path) -> Plan:
    """Return the suite of that name, or the plan in that file (a path has a ``/`` or ends in .yaml or .yml).

    UsageError: no such suite, no such file, not YAML, or not a plan.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or is_yaml_file(text):
        path = Path(text)
        remedy = f"give a readable YAML file or a suite ({', '.join(list_suites())})"
        return _parse(read_text(path, f"plan {path}", remedy), text, path.resolve().parent)
    if text not in list_suites():
        raise UsageError(f"{unknown('suite', text, list_suites())}; or the path of a plan file, e.g. {text}.yaml")
    return _parse((_SUITES / f"{text}.yaml").read_text(encoding="utf-8"), f"suite {text}")


def _parse(text: str, source: str, folder: Path | None = None) -> Plan:
    document = parse_yaml(text, source)
    return plan_from_document(document, source, folder)
