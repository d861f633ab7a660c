# SPDX-License-Identifier: BSD-3-Clause
"""Runs with exactly the figures that a claim asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from builders import make_header, make_latency_trial, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.analysis.histogram import encode
from planebench.model.header import Finished, Run
from planebench.model.records import Anatomy, AnatomyPart, LatencyRecord, Point, Trial
from planebench.papers.claims import Claim, all_claims
from planebench.papers.data import paper_versions
from planebench.papers.judge import judge
from planebench.papers.measured import RunFigures, hosted
from planebench.papers.told import Judgement

NEAR = (0.999, 1.0, 1.001)
"""Three trials that hardly differ, as multiples of their middle."""

LARGE_HOST = {
    "cores_allowed": 62,
    "numa_nodes": 2,
    "memory_total_bytes": 64 << 30,
    "hypervisor": "Xen",
    "governor": "performance",
}
"""The facts of a host that lacks nothing, and has fewer cores than VNFs where there are 63."""
AS_PUBLISHED = {
    "send_burst": 32,
    "drain_us": 100,
    "line_bps": 10e9,
    "open_loop": True,
    "ring_size": 256,
    "wire_ring_size": "own",
    "clock": "hardware",
    "wire": "pci",
}
"""The settings of a run under the conditions of the papers."""
HOW = ("verdict", "band", "trials", "extra")

Figure = tuple[Point, float, dict[str, Any]]


def claim(wanted: str) -> Claim:
    return next(it for it in all_claims() if it.id == wanted)


def rate(switch: str, scenario: str, mpps: float, **changes: Any) -> list[Figure]:
    """Saturating trials: ``verdict``, ``band``, ``trials`` and ``extra`` are theirs, the rest is the point's."""
    how = {name: changes.pop(name) for name in HOW if name in changes}
    return [(make_point(switch, scenario, **changes), mpps, how)]


def delay(switch: str, scenario: str, load: str, us: float, **changes: Any) -> list[Figure]:
    """Latency trials at a load, with this mean ``deviation`` and burst ``jitter`` in us, too."""
    how = {name: changes.pop(name) for name in (*HOW, "deviation", "jitter") if name in changes}
    return [(make_point(switch, scenario, **changes), us, {**how, "load": load})]


def of_can17(chain: str) -> dict[str, Any]:
    """The fields of a point with a chain of can17's VNF."""
    text, hosting = hosted(",".join(f"ip-pipeline:{name}" for name in chain.split(",")), "process")
    return {"chain": text, "hosting": hosting, "chain_length": chain.count(",") + 1}


def run(*figures: Iterable[Figure], **header: Any) -> Run:
    trials: list[Trial] = []
    points = [figure for part in figures for figure in part]
    rates = {point: value for point, value, how in points if not how.get("load")}
    for point, value, how in points:
        share = float(how["load"]) if how.get("load", "").startswith("0.") else 0.0
        pps = share * rates.get(point, 0.0) * 1e6 / (2 if point.direction == "bidirectional" else 1)
        trials += _trials(len(trials), point, value, pps=pps or 1e6, **how)
    switches = tuple(dict.fromkeys(point.switch for point, _, _ in points)) or ("planed",)
    settings = header.pop("settings", {})
    made = make_header(switches, **header)
    adapters, versions = {"bess": "bess:serve=hops"}, paper_versions("conext19")
    named = tuple(
        replace(it, adapter=adapters.get(it.adapter, it.adapter), version=versions.get(it.adapter, "1"))
        for it in made.switches
    )
    made = replace(made, settings={**made.settings, **AS_PUBLISHED, **settings}, switches=named)
    return Run(made, tuple(trials), Finished("complete", "2026-11-21T12:38:31Z"))


def measured(made: Run) -> RunFigures:
    return RunFigures(Derived(made))


def judged(wanted: str, *figures: Iterable[Figure], **header: Any) -> Judgement:
    return judge(claim(wanted), measured(run(*figures, **header)))


def _trials(
    start: int,
    point: Point,
    value: float,
    *,
    load: str = "",
    pps: float = 1e6,
    verdict: str = "valid",
    band: str = "near",
    trials: Sequence[float] = NEAR,
    extra: dict[str, Any] | None = None,
    deviation: float = 0.0,
    jitter: float = 0.0,
) -> Iterable[Trial]:
    for number, factor in enumerate(trials):
        more = {"verdict": verdict, "band": band, "repetition": number, "start": number, **(extra or {})}
        if load:
            samples = [(int((value + off) * factor * 1000), 500) for off in (-deviation, deviation)]
            if jitter:
                falls = encode([[int(jitter * factor * 1000), 999]])
                more["latency"] = LatencyRecord(1000, 1000, encode(samples), burst_falls=falls)
            yield make_latency_trial(start + number, point, load, pps, samples, **more)
        else:
            yield make_trial(start + number, point, value * factor, **more)


def anatomy(switch_share: float, waited: float = 0.0) -> tuple[Anatomy, ...]:
    """The latency of a direction, of which the switch has this share and a VNF the rest.

    ``waited``: the share that may be a wait for the VNF's poll.
    """
    kinds = (("hop 1", "switch", switch_share), ("vnf0", "vnf", 1 - switch_share))
    histogram = make_latency_trial().latency.histogram  # type: ignore[union-attr]
    parts = []
    for name, kind, share in kinds:
        less, more = (waited, 0.0) if kind == "switch" else (0.0, waited)
        bounds = 1000 * (share - less), 1000 * (share + more)
        parts.append(AnatomyPart(name, kind, 1000 * share, 1.0, 1.0, histogram, *bounds))  # type: ignore[arg-type]
    return (Anatomy("n0->n1", 100, {}, tuple(parts), 1000.0),)
