# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the papers (claims.yaml) as frozen records. docs/papers.md says how each shape is judged."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from planebench.model.records import Direction, ScenarioName
from planebench.papers.data import Name, paper_facts

Metric = Literal["throughput", "gbps", "latency", "jitter"]
"""Packets a second, layer-1 bits a second, mean latency, mean burst jitter (ic16's definition)."""
Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ANY_CHAIN = "any"
_FACT = re.compile(r"\{([\w.-]+)(?::([^}]+))?\}")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cell(_Closed):
    """Points and a load. A field that is not given is as the run has it, and equal on both sides of a comparison.

    Without ``chain``, ``traffic`` and ``placement``, a cell has chains of l2fwd, plain frames and VNFs near the switch
    only.
    ``switches`` replace those of the claim.
    """

    scenario: ScenarioName | None = None
    direction: Direction | None = None
    frame_size_bytes: int | None = None
    chain_length: int | None = None
    chain: str | None = None
    traffic: str | None = None
    placement: str | None = None
    load: str | None = None
    switches: tuple[Name, ...] = ()


class Each(_Closed):
    """Values that both sides of a comparison take, one after the other."""

    load: tuple[str, ...] = ()
    chain_length: tuple[int, ...] = ()
    frame_size_bytes: tuple[int, ...] = ()


class Compare(_Closed):
    """The ratio a / b is above, below or between limits."""

    metric: Metric
    a: Cell
    b: Cell
    above: Limit | None = None
    below: Limit | None = None
    each: Each = Each()

    @model_validator(mode="after")
    def _limited(self) -> Compare:
        if self.above is None and self.below is None:
            raise ValueError("give above or below, or both")
        return self


class Trend(_Closed):
    """The metric goes up or down along the values of an axis, of which a run has two or more."""

    metric: Metric
    cell: Cell
    over: Literal["chain_length", "frame_size_bytes"]
    values: Annotated[tuple[int, ...], Field(min_length=2)]
    goes: Literal["up", "down"]
    each: Each = Each()


class Order(_Closed):
    """The switches are in the order of the paper's figures for these cells."""

    metric: Literal["throughput", "latency"]
    cell: Cell
    each: Each = Each()


class LineRate(_Closed):
    """Every switch fills the line, in each of these cells."""

    cells: Annotated[tuple[Cell, ...], Field(min_length=1)]


class TrafficRate(_Closed):
    """So many Mpps of a traffic profile fill 10 Gb/s; ``fact`` is the name of the paper's figure."""

    traffic: str
    fact: str


class Share(_Closed):
    """This part of the path takes more than this share of the mean latency, whatever the waits for polls took.

    In one place, or ``everywhere``.
    """

    part: Literal["switch", "vnf", "tester"]
    above: Annotated[float, Field(gt=0, lt=1)]
    everywhere: bool = False


class FarCores(_Closed):
    """Throughput in the far core-to-core latency band over that in the near band, at the same point, is below a limit.

    It stands in for a remote socket on a machine with one NUMA node, whose cores are near or far by chance.
    """

    cell: Cell
    below: Limit


class Clocks(_Closed):
    """Throughput at the highest CPU clock of a run over that at the lowest one, at the same point, is above a limit.

    Clocks that are emulated (duty) are compared with each other and with the machine's own.
    """

    cell: Cell
    above: Limit


class Reach(_Closed):
    """The layer-1 rate of every switch in a cell is at least so many Gb/s."""

    cell: Cell
    gbps: Limit


class Claim(_Closed):
    """One claim: exactly one of the shapes, or why it cannot be tested (``cannot``, with facts of the host in braces).

    ``switches``: those of the paper that it is about; empty: any switch. ``says`` takes figures of the paper by name.
    """

    id: Name
    paper: Name
    where: str
    says: str
    switches: tuple[Name, ...] = ()
    batching: bool = False
    """It is about VNFs that send in batches: a run whose plan has no ``send_burst`` does not test it."""
    compare: Compare | None = None
    trend: Trend | None = None
    order: Order | None = None
    line_rate: LineRate | None = None
    traffic_rate: TrafficRate | None = None
    share: Share | None = None
    chain_below_parts: Literal[True] | None = None
    far_cores: FarCores | None = None
    clocks: Clocks | None = None
    reach: Reach | None = None
    cannot: str | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> Claim:
        shapes = (self.compare, self.trend, self.order, self.line_rate, self.traffic_rate, self.share)
        others = (self.chain_below_parts, self.far_cores, self.clocks, self.reach, self.cannot)
        given = sum(shape is not None for shape in (*shapes, *others))
        if given != 1:
            raise ValueError(f"claim {self.id} has {given} shapes; give one")
        return self

    @property
    def sentence(self) -> str:
        """Return ``says`` with the figures of the paper in it. Raises KeyError for one that papers.yaml lacks."""
        facts = paper_facts(self.paper)
        return _FACT.sub(lambda found: format(facts[found[1]], found[2] or "g"), self.says)


class PaperInfo(_Closed):
    """A paper: its title, as it is cited."""

    title: str


class ClaimsModel(_Closed):
    """claims.yaml."""

    papers: dict[Name, PaperInfo]
    claims: tuple[Claim, ...]


def read_claims(text: str) -> ClaimsModel:
    """Return the claims in a YAML text. Raises pydantic's ValidationError if it does not fit the schema."""
    return ClaimsModel.model_validate(yaml.safe_load(text))


def all_claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of the papers and of their tables."""
    return _document().claims


def all_papers() -> dict[str, PaperInfo]:
    """Return the papers by short name."""
    return _document().papers


@cache
def _document() -> ClaimsModel:
    return read_claims(files("planebench.papers").joinpath("claims.yaml").read_text(encoding="utf-8"))
