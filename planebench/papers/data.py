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

import yaml
from pydantic import BaseModel, ConfigDict, Field

from planebench.model.records import Direction, ScenarioName

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Metric = Literal["throughput", "latency"]

LOADS = ("0.10", "0.50", "0.99")
"""Columns of conext19's Table 3, as our loads are labelled."""
V2V_LOAD = "1Mpps"
"""The load of conext19's Table 4."""
LATENCY_FRAME_BYTES = 64


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaxonomyModel(_Closed):
    """A row of conext19's Table 1."""

    architecture: str
    paradigm: str
    models: tuple[str, ...]
    virtual_interface: str
    reprogrammability: Literal["low", "medium", "high"]
    languages: tuple[str, ...]
    purpose: str


class UseCaseModel(_Closed):
    """A row of conext19's Table 5."""

    best_at: str
    remark: str


class Conext19Model(_Closed):
    """conext19."""

    testbed: dict[str, str | int]
    throughput_gbps: dict[ScenarioName, dict[Direction, dict[int, dict[Name, Positive]]]]
    rtt_latency_us: dict[Name, dict[Name, tuple[Positive, Positive, Positive] | None]]
    v2v_rtt_latency_us: dict[Name, Positive]
    taxonomy: dict[Name, TaxonomyModel]
    use_cases: dict[Name, UseCaseModel]


class Can17Model(_Closed):
    """can17."""

    testbed: dict[str, str]
    throughput_mpps_64b_by_cpu_ghz: dict[Name, dict[Name, dict[float, Positive]]]
    facebook_mix_mpps_at_10g: dict[Name, Positive]
    facebook_median_utilisation: tuple[Positive, Positive]
    latency_us: dict[str, Positive]


class FibModel(_Closed):
    """Routes that ic16 speaks of."""

    per_vnf: int
    bare_metal: int
    supported: int


class OffloadModel(_Closed):
    """ic16's prototype."""

    vnfs: int
    control_kbps: Positive
    jitter_over_bare_metal: Positive
    cuckooswitch_updates_per_s: int


class Ic16Model(_Closed):
    """ic16."""

    testbed: dict[str, str]
    vnfs_tested: tuple[int, ...]
    max_vnfs_at_10g_without_loss: int
    overprovisioned_loss_range: tuple[Positive, Positive]
    worst_case_placement_loss: Positive
    hypervisor_share_of_latency_max: Positive
    fib_entries: FibModel
    offload: OffloadModel


class PapersModel(_Closed):
    """papers.yaml."""

    conext19: Conext19Model
    can17: Can17Model
    ic16: Ic16Model


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One cell of a table: ``value`` is in Gb/s (layer 1, all directions) for throughput, mean us for latency.

    ``direction`` is None where the paper's table does not say it. ``load`` is empty for throughput.
    """

    paper: str
    metric: Metric
    scenario: ScenarioName
    chain_length: int
    direction: Direction | None
    frame_size_bytes: int
    load: str
    switch: str
    value: float


def read_papers(text: str) -> PapersModel:
    """Return the papers in a YAML text. Raises pydantic's ValidationError if it does not fit the schema."""
    return PapersModel.model_validate(yaml.safe_load(text))


@cache
def paper_figures() -> tuple[PaperFigure, ...]:
    """Return every published figure whose scenario planebench has."""
    conext19 = _papers().conext19
    return (*_throughput(conext19), *_table_3(conext19), *_table_4(conext19))


@cache
def paper_facts(paper: str) -> Mapping[str, float]:
    """Return the single figures of a paper by dotted name, e.g. ``latency_us.at_100pps_worst``; empty without any."""
    document = _papers().model_dump().get(paper, {})
    return {name: value for key in document if key != "testbed" for name, value in _flat(key, document[key])}


@cache
def _papers() -> PapersModel:
    return read_papers(files("planebench.papers").joinpath("papers.yaml").read_text(encoding="utf-8"))


def _throughput(paper: Conext19Model) -> Iterator[PaperFigure]:
    for scenario, directions in paper.throughput_gbps.items():
        for direction, sizes in directions.items():
            for size, switches in sizes.items():
                for switch, gbps in switches.items():
                    yield PaperFigure("conext19", "throughput", scenario, 0, direction, size, "", switch, gbps)


def _table_3(paper: Conext19Model) -> Iterator[PaperFigure]:
    for label, switches in paper.rtt_latency_us.items():
        kind, _, length = label.partition("-")
        for switch, values in switches.items():
            for load, us in zip(LOADS, values or (), strict=False):
                yield PaperFigure(
                    "conext19", "latency", kind, int(length or 0), None, LATENCY_FRAME_BYTES, load, switch, us
                )


def _table_4(paper: Conext19Model) -> Iterator[PaperFigure]:
    for switch, us in paper.v2v_rtt_latency_us.items():
        yield PaperFigure("conext19", "latency", "v2v", 0, None, LATENCY_FRAME_BYTES, V2V_LOAD, switch, us)


def _flat(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _flat(f"{name}.{index}", item)
    elif isinstance(value, int | float):
        yield name, value
