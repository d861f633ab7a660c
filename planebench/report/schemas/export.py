# SPDX-License-Identifier: BSD-3-Clause
"""The JSON export as pydantic models, for its schema; results and latencies are made from the catalog of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from planebench.analysis.chains import Chains
from planebench.analysis.conditions import Condition
from planebench.analysis.metrics.column import Column, having
from planebench.analysis.metrics.results import LATENCY, RESULT
from planebench.model.conditions import Conditions
from planebench.model.header import Calibration
from planebench.model.reasons import Reason
from planebench.model.results import (
    Comparison,
)
from planebench.papers.told import ClaimOutcome, Why


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
    chains: Chains
    conditions: ConditionsExport
    drift: Reason | None
    """The drift of all rates with time; null if there was none."""
    papers: list[ClaimExport]
    export_version: Literal[2]
