# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a run as claims ask for them: by point, metric and load, each with its trials."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import product

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, latency_counts, saturating
from planebench.analysis.histogram import merge, summarise
from planebench.analysis.starts import SidesNoise, blocks_of, by_start, noise_of_sides
from planebench.model.chain_name import OWN
from planebench.model.dimensions import HostingName
from planebench.model.grouped import grouped
from planebench.model.records import L1_OVERHEAD_BYTES, Point, Trial, VerdictKind
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.server import NEAR, OWN_CLOCK, mhz_of, speed_of
from planebench.model.time_had import rate_pps
from planebench.model.words import WIDE, count, listed, mark, mpps, throughput, us
from planebench.papers.claims import ANY, IP_PIPELINE, ClaimCell, ClaimMetric, Each
from planebench.papers.told import FigureSample, middle

SIMULATED = "sim"
"""Adapter of switches that forward nothing: they confirm nothing."""
OFFLOAD = "offload"
EMULATED_NIC = "veb"
IP_PIPELINES = {
    "l3fwd": "exec:ip_pipeline {eal} -- -s {functions}/ip-pipeline-router.cli",
    "firewall": "exec:ip_pipeline {eal} -- -s {functions}/ip-pipeline-firewall.cli",
    "l2fwd": "separate:l2fwd",
}
"""The functions of can17's VNF, as its suite has them."""
UNITS: Mapping[ClaimMetric, str] = {
    "throughput": "Mpps",
    "gbps": "Gb/s",
    "updates": "updates/s",
    "latency": "µs",
    "deviation": "µs",
    "jitter": "µs",
}
SHARE_OFF = 0.05
"""How far a load may be from the share of R+ that it is named by."""
_SHARE = re.compile(r"0\.\d+")
LATENCIES: tuple[ClaimMetric, ...] = ("latency", "deviation", "jitter")
"""The metrics that are taken at a load."""


class RunFigures:
    """Look up figures in a run and in what is derived from it."""

    def __init__(self, derived: Derived) -> None:
        self.derived = derived
        self.sample = cache(self._sample)  # claims share figures, and decoding histograms is slow
        self._noise = cache(self._noise_of)

    @cached_property
    def by_point(self) -> Mapping[Point, Result]:
        """Return the results by point."""
        return {result.point: result for result in self.derived.results}

    @cached_property
    def adapters(self) -> Mapping[str, str]:
        """Return the adapter by label, without its options; ``offload`` if it forwards in place of the VNFs.

        It is empty for a switch that only trials name.
        """
        known = {switch.label: _paper_name(switch.adapter) for switch in self.derived.run.header.switches}
        return {label: known.get(label, "") for label in self.derived.run.switch_labels}

    def labels(self, adapters: Iterable[str]) -> list[str]:
        """Return the labels of ``adapters``, in their order."""
        return [label for name in adapters for label, adapter in self.adapters.items() if adapter == name]

    def absent(self, adapters: Iterable[str]) -> list[str]:
        """Return those of ``adapters`` that the run does not have."""
        there = set(self.adapters.values())
        return [name for name in adapters if name not in there]

    def points(self, label: str, cell: ClaimCell) -> list[Point]:
        """Return the points of a switch that fit a cell, but for those whose rates say nothing (functional)."""
        return [
            point
            for point, result in self.by_point.items()
            if point.switch == label and fits(point, cell) and result.verdict.kind is not VerdictKind.FUNCTIONAL
        ]

    def by_clock(self, label: str, cell: ClaimCell, *, emulated: bool) -> list[tuple[Point, Point]]:
        """Return the points of a switch that fit a cell at two clocks or more: at the lowest, and at the highest.

        ``emulated``: at clocks that are emulated, and the machine's own; else at those that the CPU was set to.
        """
        at_any = self.points(label, cell.model_copy(update={"cpu_clock": ANY}))
        wanted = (point for point in at_any if (mhz_of(point.cpu_clock) is None) is emulated)
        groups = grouped((replace(point, cpu_clock=OWN_CLOCK), point) for point in wanted)
        ordered = [sorted(group, key=lambda point: speed_of(point.cpu_clock)) for group in groups.values()]
        return [(group[0], group[-1]) for group in ordered if len(group) > 1]

    def _sample(self, point: Point, metric: ClaimMetric, load: str | None = None) -> FigureSample | None:
        """Return the figure of a point; None if the point, or its latency at this load, was not measured."""
        result = self.by_point.get(point)
        if result is None:
            return None
        if metric in LATENCIES:
            return self._latency(result, load or "", metric)
        if not counts(result):
            return FigureSample((), result.verdict.kind, throughput(result))
        counted = saturating(self._near(self.derived.trials[point]))
        if metric == "updates":
            updates = self._of_starts(metric, counted.trials, VerdictKind.VALID)
            per_s = updates.values
            return replace(updates, shown=count(round(sum(per_s) / len(per_s)))) if per_s else None
        rates = self._of_starts("throughput", counted.trials, counted.verdict.kind)
        pps = middle(rates) if rates.values else None
        wide = rates.estimate is None or rates.estimate.half_width() > math.log1p(WIDE)
        marked = mark(rates.kind) or "~" * wide
        if metric == "throughput" or pps is None:
            return replace(rates, shown=marked + mpps(pps))
        size = result.mean_frame_bytes or point.frame_size_bytes
        gbits = (size + L1_OVERHEAD_BYTES) * 8 / 1e9
        estimate = rates.estimate and replace(rates.estimate, mean=rates.estimate.mean + math.log(gbits))
        values = tuple(rate * gbits for rate in rates.values)
        return FigureSample(values, rates.kind, f"{marked}{pps * gbits:.2f}", estimate)

    def _near(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Return the trials on near cores in a run that has such: far ones are another placement than the papers'."""
        return [trial for trial in trials if trial.band == "near"] if self.has_near else trials

    @cached_property
    def has_near(self) -> bool:
        """Return whether cores were near in a trial of the run: then only such trials are compared with a paper."""
        return any(trial.band == "near" for trial in self.derived.run.trials)

    def in_band(self, point: Point, band: str) -> FigureSample | None:
        """Return the throughput of a point at a core distance; None without a trial there."""
        counted = saturating(t for t in self.derived.trials[point] if t.band == band)
        rates = self._of_starts("throughput", counted.trials, counted.verdict.kind)
        return replace(rates, shown=mark(rates.kind) + mpps(middle(rates))) if rates.values else None

    def _of_starts(self, metric: ClaimMetric, trials: Sequence[Trial], kind: VerdictKind) -> FigureSample:
        """Return the figure of some trials; what is shown of it is the caller's."""
        blocks, noise = blocks_of(trials, partial(_figure, metric)), self._noise(metric)
        values = tuple(map(math.exp, by_start(blocks)))
        at_one = {block.band for block in blocks}
        estimate = noise.by_distance(blocks).get(*at_one) if len(at_one) == 1 else noise.estimate(blocks)
        return FigureSample(values, kind, "", estimate)

    def _noise_of(self, metric: ClaimMetric) -> SidesNoise:
        """Return what the noise of a metric has in common in the run."""
        if metric in LATENCIES:
            found = [(it.point, of) for it in self.derived.results for of in self.derived.latency_trials(it).values()]
        else:
            found = [(point, saturating(self.derived.trials[point])) for point in self.by_point]
        return noise_of_sides((point, blocks_of(of.trials, partial(_figure, metric))) for point, of in found)

    def _latency(self, result: Result, load: str, metric: ClaimMetric) -> FigureSample | None:
        summary = next((s for s in result.latency if s.load == load), None)
        if summary is None:
            return None
        jitter = summary.burst_jitter.mean if summary.burst_jitter else None
        figure = {"jitter": jitter, "deviation": summary.stddev}.get(metric, summary.mean)
        if figure is None:
            return None
        if not latency_counts(summary):
            return FigureSample((), summary.verdict.kind, f"({us(figure)})")
        trials, unlike = self._at_share(result.point, load, self.derived.latency_trials(result)[load].trials)
        if unlike:
            return FigureSample((), summary.verdict.kind, f"({us(figure)})", why=unlike)
        found = self._of_starts(metric, trials, VerdictKind.VALID)
        return replace(found, shown=us(middle(found) if found.values else figure))

    def _at_share(self, point: Point, load: str, trials: Sequence[Trial]) -> tuple[Sequence[Trial], str]:
        """Return the trials on near cores whose load is the share of R+ that it is named by, or why there is none.

        R+ as it was known at that moment may have been that of far cores, or of a start that was slow.
        """
        near, trials = self.sample(point, "throughput"), self._near(trials)
        if near is None or not near.counts or not trials or not self.has_near or not _SHARE.fullmatch(load):
            return trials, ""
        shares = [(t.load.pps_per_direction or 0.0) * len(t.directions) / middle(near) for t in trials]
        alike = [t for t, share in zip(trials, shares, strict=True) if abs(share - float(load)) <= SHARE_OFF]
        told = f"its load was {listed([f'{it:.2f}' for it in shares])} of R+ with near cores, not {load}"
        return alike, "" if alike else told


def _paper_name(adapter: str) -> str:
    """Return the name that claims use for an adapter: FIB offload is an architecture, whichever switch does it."""
    name, *options = adapter.split(":")
    if any(option.startswith("nic=") for option in options):
        return EMULATED_NIC
    return OFFLOAD if any(option.startswith("offload=") for option in options) else name


def fits(point: Point, cell: ClaimCell) -> bool:
    """Return whether a point is one of a cell, whatever its switch and load."""
    chain = cell.chain or ""
    asked = {
        "scenario": cell.scenario,
        "direction": cell.direction,
        "frame_size_bytes": cell.frame_size_bytes,
        "chain_length": cell.chain_length,
        "chain": None if chain.endswith(ANY) else hosted(chain, point.hosting)[0],
        "traffic": None if cell.traffic == ANY else cell.traffic or "",
        "placement": cell.placement or NEAR,
        "cpu_clock": None if cell.cpu_clock == ANY else OWN_CLOCK,
    }
    if chain.endswith(ANY) and not of_the_plan(point, chain):
        return False
    return all(value is None or getattr(point, name) == value for name, value in asked.items())


def of_the_plan(point: Point, chain: str = ANY) -> bool:
    """Return whether the VNFs of a point collect frames as the plan says: none is another one, set beside them.

    ``chain``: ``ip-pipeline:any``, whether they are those of can17.
    """
    if chain != ANY:
        return "exec:ip_pipeline " in point.chain
    return "send_burst=" not in point.chain and not any(hosting in OWN for hosting in point.hostings)


@cache
def hosted(chain: str, usual: HostingName) -> tuple[str, HostingName]:
    """Return the chain of a cell, and its hosting, as points have them."""
    from planebench.testbed.chain import hosted_chain  # here: a page is drawn without hostings

    for name, text in IP_PIPELINES.items():
        chain = chain.replace(IP_PIPELINE + name, text)
    return hosted_chain(chain, 1, usual)


def counterpart(point: Point, cell: ClaimCell, label: str) -> Point:
    """Return the point of switch ``label`` that differs from ``point`` only in what ``cell`` requires."""
    said = {name: value for name, value in cell if name not in ("cpu_clock", "load")}
    changes = {name: value for name, value in said.items() if value is not None and not str(value).endswith(ANY)}
    if "chain" in changes:
        changes["chain"], changes["hosting"] = hosted(changes["chain"], point.hosting)
    if cell.scenario is not None and not scenario_named(cell.scenario).has_vnfs:
        changes |= {"chain_length": 0, "chain": "", "placement": NEAR, "hosting": "process"}
    return replace(point, switch=label, **changes)


def expanded(each: Each, *cells: ClaimCell) -> Iterator[tuple[ClaimCell, ...]]:
    """Yield the cells once per combination of the values of ``each``."""
    used = {name: values for name, values in each if values}
    for values in product(*used.values()):
        yield tuple(cell.model_copy(update=dict(zip(used, values, strict=True))) for cell in cells)


def _figure(metric: ClaimMetric, trial: Trial) -> float | None:
    """Return the figure of one trial by a metric; None where it has none."""
    if metric == "updates":
        return None if trial.updates is None else trial.updates.per_s
    if metric not in LATENCIES:
        return rate_pps(trial)
    if trial.latency is None:
        return None
    it = trial.latency
    texts = (it.burst_rises, it.burst_falls) if metric == "jitter" else (it.histogram,)
    summary = summarise(merge(filter(None, texts)))
    if summary is None:
        return None
    return summary.stddev if metric == "deviation" else summary.mean
