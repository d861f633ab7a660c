# SPDX-License-Identifier: BSD-3-Clause
"""The claims of the papers (claims.yaml) as frozen records. docs/papers.md says how each shape is judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import Field

from planebench.model.closed import ClosedModel
from planebench.model.scenario import Direction, ScenarioName
from planebench.model.text import parse_yaml
from planebench.papers.data import PaperName, paper_facts

ClaimMetric = Literal["throughput", "gbps", "updates", "latency", "deviation", "jitter"]
"""Packets, layer-1 bits and FIB updates a second; mean latency, its standard deviation, mean burst jitter (ic16's)."""
ClaimCondition = Literal["line", "rings", "batching", "ports", "nics", "stamps", "hops", "entries", "versions", "cores"]
"""A condition of a paper on which what it finds rests (planebench.papers.conditions)."""
ClaimLimit = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ANY = "any"
"""Chain or traffic of a cell that may be whatever the run has."""
IP_PIPELINE = "ip-pipeline:"
"""Before a function in the chain of a cell: it is that of can17's VNF, DPDK's ip_pipeline, not planed's."""
_FACT = re.compile(r"\{([\w.-]+)(?::([^}]+))?\}")


class ClaimCell(ClosedModel):
    """Points and a load. A field that is not given is as the run has it, and equal on both sides of a comparison.

    Without ``chain``, ``traffic``, ``placement`` and ``cpu_clock``, a cell has chains of l2fwd, plain frames, VNFs near
    the switch and the clock of the machine only; ``any`` chain, traffic or clock is whatever the run has. The chain
    ``ip-pipeline:firewall,ip-pipeline:l3fwd`` is one of can17's VNFs, ``ip-pipeline:any`` whatever the run has of them.
    """

    scenario: ScenarioName | None = None
    direction: Direction | None = None
    frame_size_bytes: int | None = None
    chain_length: int | None = None
    chain: str | None = None
    traffic: str | None = None
    placement: str | None = None
    cpu_clock: Literal["any"] | None = None
    load: str | None = None


class Each(ClosedModel):
    """Values that both sides of a comparison take, one after the other."""

    load: tuple[str, ...] = ()
    chain_length: tuple[int, ...] = ()
    frame_size_bytes: tuple[int, ...] = ()


class Compare(ClosedModel):
    """The ratio a / b is above, below or between limits.

    ``rivals`` have side b, each in turn. Who is above several is so of all of them: each is there, and told apart.
    """

    metric: ClaimMetric
    a: ClaimCell
    b: ClaimCell = ClaimCell()
    rivals: tuple[PaperName, ...] = ()
    above: ClaimLimit | None = None
    below: ClaimLimit | None = None
    each: Each = Each()


class TrendClaim(ClosedModel):
    """The metric goes up or down along the values of an axis, of which a run has two or more."""

    metric: ClaimMetric
    cell: ClaimCell
    over: Literal["chain_length", "frame_size_bytes"]
    values: Annotated[tuple[int, ...], Field(min_length=2)]
    goes: Literal["up", "down"]
    each: Each = Each()


class Order(ClosedModel):
    """The switches are in the order of the paper's figures for these cells."""

    metric: Literal["throughput", "latency"]
    cell: ClaimCell
    each: Each = Each()


class LineRate(ClosedModel):
    """Every switch fills a line of 10 Gb/s in each of ``cells``, and none in ``short``; of a mix, by its mean size."""

    cells: tuple[ClaimCell, ...] = ()
    short: tuple[ClaimCell, ...] = ()


class NoLeader(ClosedModel):
    """No switch forwards more than every other one in all of these cells."""

    cells: Annotated[tuple[ClaimCell, ...], Field(min_length=2)]


class Correlation(ClosedModel):
    """Switches that rank high by one metric rank low by another (``opposite``), or the ranks are ``unrelated``."""

    metrics: tuple[ClaimMetric, ClaimMetric]
    cell: ClaimCell
    sign: Literal["opposite", "unrelated"]


class Minimum(ClosedModel):
    """Mean latency is least between the lowest and the highest of these loads."""

    cell: ClaimCell
    loads: Annotated[tuple[str, ...], Field(min_length=3)]


class Spread(ClosedModel):
    """The rates that a search finds vary more between its repetitions than the saturating throughput does."""

    search: str


class Predicted(ClosedModel):
    """The throughput of a chain is the one predicted from a chain of one VNF and v2v, within a share of it."""

    cell: ClaimCell
    within: Annotated[float, Field(gt=0, lt=1)]


class Needs(ClosedModel):
    """The facts that a host must have for a claim to be tested, named as in the header of a run.

    ``cpufreq``: the clock of its CPUs can be set. ``cores_below``: with so many there are no more VNFs than cores.
    """

    cores_allowed: int = 1
    cores_below: int = 0
    numa_nodes: int = 1
    memory_gib: int = 0
    hypervisor: str = ""
    cpufreq: bool = False

    def unmet(self, host: Mapping[str, Any]) -> str:
        """Return what ``host``, the facts of a run's header, lacks; empty if it has everything."""
        known = {name: value for name, value in host.items() if isinstance(value, int)}
        memory, hypervisor = known.get("memory_total_bytes"), host.get("hypervisor")
        wanted = (
            ("cores", self.cores_allowed, known.get("cores_allowed")),
            ("NUMA nodes", self.numa_nodes, known.get("numa_nodes")),
            ("GiB of memory", self.memory_gib, None if memory is None else memory // 2**30),
        )
        lacking = [
            f"{least} {name} (this host: {'unknown' if there is None else there})"
            for name, least, there in wanted
            if least > 1 and (there is None or there < least)
        ]
        if 0 < self.cores_below <= known.get("cores_allowed", 0):
            lacking.append(f"fewer than {self.cores_below} cores (this host: {known['cores_allowed']})")
        if self.cpufreq and not host.get("governor"):
            lacking.append("CPUs whose clock can be set (cpufreq; this host: none)")
        if self.hypervisor and self.hypervisor.casefold() != str(hypervisor).casefold():
            lacking.append(f"the hypervisor {self.hypervisor} (this host: {hypervisor or 'none'})")
        return ", ".join(lacking)


class ShareClaim(ClosedModel):
    """This part of the path takes more than this share of the mean latency, whatever the waits for polls took.

    In one place, or ``everywhere``; where ``hosting`` is given, of VNFs that are hosted so; ``chain``: as in a cell.
    """

    part: Literal["switch", "vnf", "tester"]
    chain: str = ANY
    above: Annotated[float, Field(gt=0, lt=1)]
    everywhere: bool = False
    hosting: str = ""


class ChainBelowParts(ClosedModel):
    """A chain of functions has less mean latency than they have alone, together, at one load."""

    cell: ClaimCell


class FarCores(ClosedModel):
    """Throughput with far cores over that with near ones, at the same point, is below a limit.

    It stands in for a remote socket on a machine with one NUMA node, whose cores are near or far by chance.
    """

    cell: ClaimCell
    below: ClaimLimit


class Clocks(ClosedModel):
    """Throughput at the highest CPU clock of a run over that at the lowest one, at the same point, is their ratio.

    ``within``: by how much it may be off. Emulated clocks (duty) stand beside and decide nothing: where a switch waits
    by design, it is slower by design.
    """

    cell: ClaimCell
    within: Annotated[float, Field(gt=0, lt=1)]


class Claim(ClosedModel):
    """One claim, with exactly one of the shapes.

    ``says``, what is read in the paper, takes figures of it by name. ``bound``: what a limit that the paper does not
    give stands for, and whose it is. ``switches``: those of the paper that it is about; only an order has those of the
    paper's figures. ``conditions``: in a run without one of them, it is neither confirmed nor contradicted. ``needs``:
    a host without it does not test the claim, whatever was measured there.
    """

    id: PaperName
    paper: PaperName
    where: str
    says: str
    bound: str = ""
    switches: tuple[PaperName, ...] = ()
    conditions: tuple[ClaimCondition, ...] = ()
    compare: Compare | None = None
    trend: TrendClaim | None = None
    order: Order | None = None
    line_rate: LineRate | None = None
    no_leader: NoLeader | None = None
    correlation: Correlation | None = None
    minimum: Minimum | None = None
    spread: Spread | None = None
    predicted: Predicted | None = None
    share: ShareClaim | None = None
    chain_below_parts: ChainBelowParts | None = None
    far_cores: FarCores | None = None
    clocks: Clocks | None = None
    needs: Needs = Needs()

    @property
    def of_all(self) -> bool:
        """Return whether one comparison that contradicts it is enough: not for ranks, nor for what holds somewhere."""
        ranks = self.order or self.correlation or self.no_leader
        return ranks is None and (self.share is None or self.share.everywhere)

    @property
    def of_rivals(self) -> bool:
        """Return whether it is about one against all others: none may be missing, or not be told apart."""
        return self.no_leader is not None or (self.compare is not None and len(self.compare.rivals) > 1)

    @property
    def sentence(self) -> str:
        """Return ``says`` with the figures of the paper in it, and the bound where it is not the paper's.

        Raises KeyError for a figure that papers.yaml lacks.
        """
        facts = paper_facts(self.paper)
        said = _FACT.sub(lambda found: format(facts[found[1]], found[2] or "g"), self.says)
        return f"{said} (Bound: {self.bound}.)" if self.bound else said


class ClaimsModel(ClosedModel):
    """claims.yaml. ``papers``: their titles, as they are cited."""

    papers: dict[PaperName, str]
    claims: tuple[Claim, ...]


def all_claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of the papers and of their tables."""
    return _document().claims


def all_papers() -> dict[str, str]:
    """Return the titles of the papers by short name."""
    return _document().papers


@cache
def _document() -> ClaimsModel:
    text = files("planebench.papers").joinpath("claims.yaml").read_text(encoding="utf-8")
    return ClaimsModel.model_validate(parse_yaml(text, "claims"))
