# SPDX-License-Identifier: BSD-3-Clause
"""JSON Schemas from the records that the reader uses: closed where the reader is closed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from planebench.analysis import answers, chains
from planebench.analysis import conditions as fairness
from planebench.analysis.metrics.column import ADDED, LEFT_OUT
from planebench.analysis.search import task
from planebench.model import anatomy, conditions, dimensions, header, plan, records, results
from planebench.model import header as run_records
from planebench.model import traffic as profile
from planebench.model.closed import CLOSED, close
from planebench.model.header import READABLE_VERSIONS
from planebench.model.scenario import SCENARIOS
from planebench.report.schemas import SCHEMAS
from planebench.report.schemas.export import ExportDocument
from planebench.store.codec import GONE

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SchemaDocument = dict[str, Any]

KINDS: Mapping[str, Any] = {
    "run": header.RunHeader,
    "trial": records.Trial,
    "conditions": conditions.Conditions,
    "skipped": header.Skipped,
    "finished": run_records.Finished,
    "export": ExportDocument,
}
_MODULES: tuple[ModuleType, ...] = (
    *(anatomy, conditions, header, dimensions, records, results, run_records),
    *(plan, task, profile, chains, answers, fairness),
)

_RULES: Mapping[str, SchemaDocument] = {
    "Verdict": {
        "if": {"properties": {"kind": {"const": "valid"}}},
        "else": {"properties": {"reasons": {"minItems": 1}}, "required": ["reasons"]},
    },
    "Point": {
        "if": {"properties": {"scenario": {"enum": [name for name, known in SCENARIOS.items() if known.has_vnfs]}}},
        "then": {"properties": {"chain_length": {"minimum": 1}}},
        "else": {"properties": {"chain_length": {"maximum": 0}}},
    },
}
"""Checks of the records (``__post_init__``) that JSON Schema can express."""


class _Generator(GenerateJsonSchema):
    """A generator without titles that only repeat a key in capitals."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def generate(name: str) -> str:
    """Return the schema called ``name`` of planebench.report.schemas.SCHEMAS, as text that ends with a newline."""
    info = SCHEMAS[name]
    made = _finish(name, _described(KINDS[name]))
    made.pop("title", None)
    top = {"$schema": DIALECT, "$id": info.id, "title": info.title, "version": info.version}
    return json.dumps({**top, **made}, indent=1, ensure_ascii=False) + "\n"


def closed(document: SchemaDocument) -> SchemaDocument:
    """Return the same schema with every object closed: what finds a key that nobody has described."""
    shut: SchemaDocument = json.loads(json.dumps(document))
    for part in _objects(shut):
        part.setdefault("additionalProperties", CLOSED["extra"] != "forbid")
    return shut


def _described(kind: Any) -> SchemaDocument:
    if kind is not ExportDocument:
        close(kind)
    with _docstrings():
        return TypeAdapter(kind).json_schema(schema_generator=_Generator)


@contextmanager
def _docstrings() -> Iterator[None]:
    """Have pydantic read the docstrings of fields: slow, so the reader does without."""
    found = {v for m in _MODULES for v in vars(m).values() if isinstance(v, type) and dataclasses.is_dataclass(v)}
    before = {kind: getattr(kind, "__pydantic_config__", {}) for kind in found}
    try:
        for kind, config in before.items():
            setattr(kind, "__pydantic_config__", {**config, "use_attribute_docstrings": True})  # noqa: B010
        yield
    finally:
        for kind, config in before.items():
            setattr(kind, "__pydantic_config__", config)  # noqa: B010


def _finish(name: str, made: SchemaDocument) -> SchemaDocument:
    """Add what pydantic does not know of the records."""
    parts: dict[str, SchemaDocument] = made.get("$defs", {})
    for part, rule in _RULES.items():
        if part in parts:
            parts[part].update(rule)
    if name == "run":
        made["properties"]["schema_version"]["enum"] = list(READABLE_VERSIONS)
    if name == "export":
        _as_exported(made, parts)
        return made
    for part in GONE.keys() & parts.keys():
        parts[part]["properties"].update((key, {"description": "Of an earlier planebench."}) for key in GONE[part])
    if "VerdictKind" in parts:
        parts["VerdictKind"]["enum"] += ["disturbed", "unstable"]
    return made


def _as_exported(made: SchemaDocument, parts: Mapping[str, SchemaDocument]) -> None:
    """Require every key and allow additional ones."""
    for record, names in ADDED.items():
        parts[record.__name__]["properties"].update((name, _of_property(getattr(record, name))) for name in names)
    for record, names in LEFT_OUT.items():
        for name in names:
            del parts[record.__name__]["properties"][name]
    for found in _objects(made):
        found["required"] = list(found["properties"])
        found.pop("additionalProperties", None)
        for value in found["properties"].values():
            value.pop("default", None)


def _of_property(found: property) -> SchemaDocument:
    assert found.fget is not None
    return {**TypeAdapter(get_type_hints(found.fget)["return"]).json_schema(), "description": found.__doc__}


def _objects(made: SchemaDocument) -> Iterator[SchemaDocument]:
    """Yield the document and its parts, as far as they are objects with keys of their own."""
    return (part for part in (made, *made.get("$defs", {}).values()) if "properties" in part)
