# SPDX-License-Identifier: BSD-3-Clause
"""The papers' own figures (papers.yaml), checked at the border by a closed schema, as frozen records.

Switches are named as our adapters are. A figure that a paper does not report is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import Field

from planebench.model.closed import ClosedModel
from planebench.model.scenario import Direction, ScenarioName
from planebench.model.text import parse_yaml

PaperName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PaperBounds = tuple[Annotated[float, Field(ge=0)], Positive]
"""A figure that a paper only says to be between two others."""
PaperMetric = Literal["throughput", "latency"]

LOADS = ("0.10", "0.50", "0.99")
"""Columns of conext19's Table 3, as our loads are labelled."""
V2V_LOAD = "1Mpps"
"""The load of conext19's Table 4."""
LATENCY_FRAME_BYTES = 64

PaperFigures = dict[str, Any]
"""Single figures and lists of them, by the names that sentences of claims have for them; and :data:`BESIDE`."""
BESIDE = ("testbed", "conditions")


class PaperCondition(ClosedModel):
    """A condition of a paper: its values, none where the paper does not say them, and where they stand in it."""

    values: tuple[str | int | float, ...] = Field(alias="is")
    where: str


class Conext19Model(ClosedModel):
    """conext19."""

    conditions: dict[str, PaperCondition]
    testbed: dict[str, str | int]
    versions: dict[PaperName, str]
    throughput_gbps: dict[ScenarioName, dict[Direction, dict[int, dict[PaperName, Positive | PaperBounds]]]]
    rtt_latency_us: dict[PaperName, dict[PaperName, tuple[Positive, Positive, Positive] | None]]
    v2v_rtt_latency_us: dict[PaperName, Positive]


class PapersModel(ClosedModel):
    """papers.yaml."""

    conext19: Conext19Model
    netsoft19: PaperFigures
    can17: PaperFigures
    ic16: PaperFigures


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One cell of a table, in Gb/s (layer 1, all directions) for throughput, in mean us for latency.

    ``value`` is None where the paper gives no more than ``bounds``. ``direction`` is None where the paper's table does
    not say it. ``load`` is empty for throughput.
    """

    paper: str
    metric: PaperMetric
    scenario: ScenarioName
    chain_length: int
    direction: Direction | None
    frame_size_bytes: int
    load: str
    switch: str
    value: float | None
    bounds: tuple[float, float] | None = None

    def above(self, other: PaperFigure) -> bool:
        """Return whether the paper has this figure above another one for certain."""
        (low, _), (_, high) = (it.bounds or (it.value or 0.0, it.value or 0.0) for it in (self, other))
        return low > high


@cache
def paper_figures() -> tuple[PaperFigure, ...]:
    """Return every published figure whose scenario planebench has."""
    paper = _papers().conext19
    found = []
    for scenario, directions in paper.throughput_gbps.items():
        for direction, sizes in directions.items():
            for size, switches in sizes.items():
                for switch, gbps in switches.items():
                    value, bounds = (None, gbps) if isinstance(gbps, tuple) else (gbps, None)
                    place = scenario, 0, direction, size, "", switch
                    found.append(PaperFigure("conext19", "throughput", *place, value, bounds))
    for label, rtts in paper.rtt_latency_us.items():
        kind, _, length = label.partition("-")
        for switch, values in rtts.items():
            for load, us in zip(LOADS, values or (), strict=False):
                row = kind, int(length or 0), None, LATENCY_FRAME_BYTES, load, switch
                found.append(PaperFigure("conext19", "latency", *row, us))
    for switch, us in paper.v2v_rtt_latency_us.items():
        found.append(PaperFigure("conext19", "latency", "v2v", 0, None, LATENCY_FRAME_BYTES, V2V_LOAD, switch, us))
    return tuple(found)


@cache
def paper_facts(paper: str) -> Mapping[str, float]:
    """Return the single figures of a paper by dotted name, e.g. ``latency_us.at_100pps_worst``; empty without any."""
    document = _papers().model_dump().get(paper, {})
    return {name: value for key in document if key not in BESIDE for name, value in _flat(key, document[key])}


def paper_versions(paper: str) -> Mapping[str, str]:
    """Return the versions of a paper's switches, as far as its authors name them."""
    return _papers().conext19.versions if paper in ("conext19", "netsoft19") else {}


@cache
def _papers() -> PapersModel:
    text = files("planebench.papers").joinpath("papers.yaml").read_text(encoding="utf-8")
    return PapersModel.model_validate(parse_yaml(text, "papers"))


def _flat(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _flat(f"{name}.{index}", item)
    elif isinstance(value, int | float):
        yield name, value
