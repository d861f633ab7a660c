# SPDX-License-Identifier: BSD-3-Clause
"""JSON Schemas (draft 2020-12) of what a run folder holds and of the JSON export, one file each.

They are made from the records, never by hand: ``python -m planebench.report.schemas`` renews them (docs/library.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planebench.model.errors import unknown
from planebench.model.header import SCHEMA_VERSION
from planebench.report.export import EXPORT_VERSION

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """A schema: its name, its title and its version."""

    name: str
    title: str
    version: int

    @property
    def id(self) -> str:
        """Return text such as ``urn:planebench:schema:trial:5``."""
        return f"urn:planebench:schema:{self.name}:{self.version}"

    @property
    def path(self) -> Path:
        """Return where it is installed."""
        return FOLDER / f"{self.name}.json"


SCHEMAS: Mapping[str, SchemaInfo] = {
    name: SchemaInfo(name, title, version)
    for name, title, version in (
        ("run", "run.json: the header of a run", SCHEMA_VERSION),
        ("trial", "a line of trials.jsonl", SCHEMA_VERSION),
        ("conditions", "a line of conditions.jsonl", SCHEMA_VERSION),
        ("skipped", "a line of skipped.jsonl", SCHEMA_VERSION),
        ("finished", "finished.json: the end of a run", SCHEMA_VERSION),
        ("export", "planebench export --format json", EXPORT_VERSION),
    )
}


def schema_text(name: str) -> str:
    """Return a JSON Schema as text. UsageError with the names there are for another."""
    if name not in SCHEMAS:
        raise unknown("schema", name, tuple(SCHEMAS))
    return SCHEMAS[name].path.read_text(encoding="utf-8")
