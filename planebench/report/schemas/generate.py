# SPDX-License-Identifier: BSD-3-Clause
"""JSON Schemas from the records that the reader uses: closed where the reader is closed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema

from planebench.analysis import answers, chains, standings
from planebench.analysis import conditions as fairness
from planebench.analysis.chains import Chains
from planebench.analysis.conditions import Condition
from planebench.analysis.metrics.column import ADDED, LEFT_OUT, Column, having
from planebench.analysis.metrics.results import LATENCY, RESULT
from planebench.analysis.search import task
from planebench.model import conditions, dimensions, header, plan, records, results
from planebench.model import traffic as profile
from planebench.model.closed import close
from planebench.model.conditions import Conditions
from planebench.model.header import SCHEMA_VERSION, Calibration
from planebench.model.reasons import Reason
from planebench.model.results import Comparison
from planebench.model.scenario import SCENARIOS
from planebench.papers.told import ClaimOutcome, Why
from planebench.report.export import ANSWER
from planebench.report.schemas import SCHEMAS

# The JSON export as pydantic models, for its schema; results and latencies are made from the catalog of metrics.


class _Described(BaseModel):
    # Built when the schema is made, not before: only then are the docstrings of the records in it read.
    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


def _of_columns(name: str, doc: str, columns: Iterable[Column], **types: Any) -> Any:
    """Return a model with a field for each column of the JSON export. ``types``: of those whose model is made here."""
    fields = {
        column.name: (types.get(column.name, column.type), Field(description=column.doc or None))
        for column in having(columns, "json")
    }
    return create_model(name, __base__=_Described, __doc__=doc, **fields)  # type: ignore[call-overload]


LatencyExport = _of_columns(
    "LatencyExport",
    "Latency of a result at one load in microseconds, valid trials merged; null if no probe returned.",
    LATENCY,
)
ResultExport = _of_columns(
    "ResultExport",
    "Result of a point. Unknown values are null.",
    RESULT,
    latency_us=dict[str, LatencyExport],  # type: ignore[valid-type]
)


AnswerExport = _of_columns("AnswerExport", "The answer at one test point, by throughput.", ANSWER)


class ConditionsExport(_Described):
    """The fairness manifest, and what was found at each start."""

    switches: list[str]
    """The order of the cells."""
    rows: list[Condition]
    contradictions: list[str]
    found: list[Conditions]


class ComparedExport(_Described):
    """One comparison of a claim."""

    what: str
    words: str
    """Our figures with their marks, ratio and interval."""
    holds: bool | None
    """Null if inconclusive."""
    ratio: float | None
    low: float | None
    high: float | None
    paper_ratio: float | None
    """Ratio of the published figures, if the paper gives both."""
    why: str
    """The reason if inconclusive."""


class ClaimExport(_Described):
    """A claim of a paper and its outcome in this run (docs/papers.md)."""

    id: str
    paper: str
    where: str
    claim: str
    switches: list[str]
    outcome: ClaimOutcome
    why: Why
    evidence: str
    missing: list[str]
    compared: list[ComparedExport]
    """Basis of the outcome."""
    beside: list[ComparedExport]
    """The same of switches that the paper does not have."""


class ExportDocument(_Described):
    """Everything that is derived from a run. Keys are added without a new version."""

    results: list[ResultExport]  # type: ignore[valid-type]
    comparisons: list[Comparison]
    calibration: Calibration | None
    """The tester against itself."""
    answers: list[AnswerExport]  # type: ignore[valid-type]
    """A row a test point: its switches, best first, and the best against the next."""
    chains: Chains
    conditions: ConditionsExport
    drift: Reason | None
    """The drift of all rates with time; null if there was none."""
    papers: list[ClaimExport]
    export_version: Literal[2]


DIALECT = "https://json-schema.org/draft/2020-12/schema"

SchemaDocument = dict[str, Any]

KINDS: Mapping[str, Any] = {
    "run": header.RunHeader,
    "trial": records.Trial,
    "conditions": conditions.Conditions,
    "skipped": plan.Skipped,
    "finished": header.Finished,
    "export": ExportDocument,
}
_MODULES: tuple[ModuleType, ...] = (
    *(conditions, header, dimensions, records, results),
    *(plan, task, profile, chains, answers, standings, fairness),
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
        made["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    if name == "export":
        _as_exported(made, parts)
        return made
    return made


def _as_exported(made: SchemaDocument, parts: Mapping[str, SchemaDocument]) -> None:
    """Require every key and allow additional ones."""
    for record, names in ADDED.items():
        parts[record.__name__]["properties"].update((name, _of_property(getattr(record, name))) for name in names)
    for record, names in LEFT_OUT.items():
        for name in names:
            del parts[record.__name__]["properties"][name]
    for found in (part for part in (made, *parts.values()) if "properties" in part):
        found["required"] = list(found["properties"])
        found.pop("additionalProperties", None)
        for value in found["properties"].values():
            value.pop("default", None)


def _of_property(found: property) -> SchemaDocument:
    assert found.fget is not None
    return {**TypeAdapter(get_type_hints(found.fget)["return"]).json_schema(), "description": found.__doc__}
