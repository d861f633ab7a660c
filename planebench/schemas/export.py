# SPDX-License-Identifier: BSD-3-Clause
"""The JSON export as pydantic models, for its schema: keys and their order are those of planebench.report.export."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from planebench.model.conditions import Conditions
from planebench.model.header import Calibration
from planebench.model.hosting import Hosting
from planebench.model.records import Direction, ScenarioName, TrafficSent, VerdictKind, WireName
from planebench.model.results import (
    AnatomySummary,
    BandFigure,
    Comparison,
    JitterSummary,
    Ledger,
    LoadFinding,
    SearchResult,
)
from planebench.papers.outcome import Outcome, Why
from planebench.stats.chains import Chains
from planebench.stats.fairness import Condition


class _Described(BaseModel):
    # Built when the schema is made, not before: only then are the docstrings of the records in it read.
    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


class LatencyExport(_Described):
    """Latency of a result at one load, valid trials merged. Microseconds; null where no probe came back."""

    intended_pps: float
    achieved_fraction: float
    """Forwarded / intended during the latency trials."""
    mean: float | None
    stddev: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    p99_9: float | None
    max: float | None
    samples: int
    verdict: VerdictKind
    """The figures count only where it is valid."""
    probes_sent: int
    probes_stamped: int
    clock: str
    verdict_reasons: list[str]
    ipdv: JitterSummary | None
    """RFC 3393."""
    pdv: JitterSummary | None
    """RFC 5481 section 4.2."""
    burst_jitter: JitterSummary | None
    """ic16."""
    floor_p50: float | None
    """What the tester measures alone at this frame size; null where that is not known."""
    floor_p99: float | None
    anatomy: list[AnatomySummary]


class ResultExport(_Described):
    """What a point came to. What is not known is null."""

    switch: str
    version: str
    scenario: ScenarioName
    direction: Direction
    chain_length: int
    frame_size_bytes: int
    wire: WireName
    hosting: Hosting
    verdict: VerdictKind
    throughput_pps: float | None
    """A lower bound where the verdict is tester-limited; null where nothing counts."""
    throughput_l1_gbps: float | None
    """Layer 1: (frame + 20) x 8 bits."""
    loss_ratio: float | None
    latency_us: dict[str, LatencyExport]
    """By load: ``0.50`` is a share of R+, ``1Mpps`` a fixed load."""
    switch_cycles_per_packet: float | None
    verdict_reasons: list[str]
    throughput_stddev_pps: float | None
    trials: int
    """So many trials the result rests on."""
    rejected: int
    """So many trials did not count."""
    band: str | None
    run_id: str
    throughput_median_pps: float | None
    throughput_trials_pps: list[float]
    trial_indices: list[int]
    switch_busy_share: float | None
    capacity_estimate_pps: float | None
    """Throughput / busy share where the tester limits: an estimate."""
    other_bands: list[BandFigure]
    searches: list[SearchResult]
    load_finding: LoadFinding | None
    ledger: Ledger | None
    chain: str
    traffic: str
    mean_frame_bytes: float | None
    sent: list[TrafficSent]
    switch_batch_size: float | None
    switch_received_packets: int | None
    switch_forwarded_packets: int | None


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
    """Null where it cannot be told."""
    ratio: float | None
    low: float | None
    high: float | None
    paper_ratio: float | None
    """Of the paper's own figures, if it gives both."""
    why: str
    """Why it cannot be told."""


class ClaimExport(_Described):
    """A claim of a paper, and what became of it here (docs/papers.md)."""

    id: str
    paper: str
    where: str
    claim: str
    switches: list[str]
    outcome: Outcome
    why: Why
    evidence: str
    missing: list[str]
    compared: list[ComparedExport]
    """What the outcome rests on."""
    beside: list[ComparedExport]
    """The same of switches that the paper does not have."""


class ExportDocument(_Described):
    """Everything that is derived from a run. Keys are added without a new version."""

    results: list[ResultExport]
    comparisons: list[Comparison]
    calibration: Calibration | None
    """The tester against itself."""
    chains: Chains
    conditions: ConditionsExport
    papers: list[ClaimExport]
    export_version: Literal[1]
